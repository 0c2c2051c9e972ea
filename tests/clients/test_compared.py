"""Clients of other languages on `ottla compare`, in front of two clusters of three nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ottla.testing import Broker

from ..support.compared import assert_same, compared

if TYPE_CHECKING:
    from .conftest import Run

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {"ottla.nodes": 3, "ottla.group.settle": False, "group.initial.rebalance.delay.ms": 1000}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, str]]:
    with Broker(SETTINGS, lab=False) as a, Broker(SETTINGS, lab=False) as b:
        yield a.bootstrap_servers.split(",")[0], b.bootstrap_servers.split(",")[0]


def test_franz_go(pair: tuple[str, str], go_clients: Run) -> None:
    with compared(*pair, "--timeout", "10") as proxy:
        go_clients(proxy.bootstrap_servers, "clients", within=200)
        proxy.end()
        assert_same(proxy, "Produce", "Fetch", "Metadata")


def test_members_of_a_share_group_of_franz_go(pair: tuple[str, str], go_clients: Run) -> None:
    with compared(*pair, "--timeout", "10") as proxy:
        go_clients(proxy.bootstrap_servers, "share", within=200)
        proxy.end()
        assert_same(proxy, "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
