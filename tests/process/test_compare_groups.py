"""`ottla compare` with groups of several members: classic groups, groups of KIP-848 and share groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing import Broker

from ..support import compared_work
from ..support.compared import Compared, assert_same, compared

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {"ottla.group.settle": False, "group.initial.rebalance.delay.ms": 1000}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    with Broker(SETTINGS) as a, Broker(SETTINGS) as b:
        yield a, b


@pytest.fixture
def proxy(pair: tuple[Broker, Broker]) -> Iterator[Compared]:
    with compared(*(one.bootstrap_servers for one in pair), "--timeout", "10") as found:
        yield found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_share_partitions(proxy: Compared, protocol: str) -> None:
    compared_work.share_partitions(proxy.bootstrap_servers, protocol)
    proxy.end()
    assert_same(proxy, "JoinGroup" if protocol == "classic" else "ConsumerGroupHeartbeat", "OffsetCommit")


def test_members_of_a_share_group_get_the_same_records(proxy: Compared) -> None:
    compared_work.share_records(proxy.bootstrap_servers)
    proxy.end()
    assert_same(proxy, "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")


def test_another_record_of_b_is_found(pair: tuple[Broker, Broker]) -> None:
    """Someone writes to B beside the proxy."""
    a, b = (one.bootstrap_servers for one in pair)
    compared_work.prepare(a, b, "planted")
    with compared(a, b, "--timeout", "10") as proxy:
        compared_work.take(proxy.bootstrap_servers, "planted")
        proxy.end()
    assert proxy.code == 1, proxy.events
    paths = {path.rpartition(".")[2] for api, path in proxy.differences if api == "ShareFetch"}
    assert (proxy.code, paths) == (1, {"value"})
