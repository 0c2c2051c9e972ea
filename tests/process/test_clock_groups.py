"""The lab's clock on a running broker: members of share groups and streams groups, tasks and partitions that are not
given back in time, and rates of connections.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.clock import Clock
from ottla.testing import Broker

from ..support.ask import create
from ..support.frozen import clock, wire
from ..support.scripted import assert_silent, beat, consumer_members, find
from ..support.stories.streams import joining, part
from ..support.wire import Closed, Wire

__all__ = ["clock", "wire"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"ottla.lab.clock": "frozen", "connections.max.idle.ms": 360_000_000}) as running:
        yield running


def test_the_session_of_a_share_group_s_member_expires(wire: Wire, clock: Clock) -> None:
    create(wire, "share")
    find(wire, "share")
    request = m.ShareGroupHeartbeatRequest(
        group_id="share", member_id="m", member_epoch=0, subscribed_topic_names=["share"]
    )
    assert wire.ask("ShareGroupHeartbeat", 1, request).error_code == 0
    clock.advance("44s")
    assert share_members(wire, "share") == ["m"]
    clock.advance("2s")
    assert share_members(wire, "share") == []


def share_members(wire: Wire, group: str) -> list[str]:
    (found,) = wire.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[group])).groups
    return [one.member_id for one in found.members]


def test_the_session_of_a_streams_group_s_member_expires(wire: Wire, clock: Clock) -> None:
    create(wire, "streams")
    find(wire, "streams")
    assert wire.ask("StreamsGroupHeartbeat", 1, joining("streams", part("0", "streams"))).error_code == 0
    clock.advance("44s")
    assert streams_members(wire, "streams") == ["m1"]
    clock.advance("2s")
    assert streams_members(wire, "streams") == []


def streams_members(wire: Wire, group: str) -> list[str]:
    (found,) = wire.ask("StreamsGroupDescribe", 1, m.StreamsGroupDescribeRequest(group_ids=[group])).groups
    return [one.member_id for one in found.members]


def test_a_member_of_a_consumer_group_that_gives_nothing_back_is_put_out(wire: Wire, clock: Clock) -> None:
    """Its session is kept by heartbeats, which leave out that it has revoked, for the rebalance timeout."""
    topic_id = create(wire, "revoking", partitions=2)
    find(wire, "revoking")
    owned = [(topic_id, [0, 1])]
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["revoking"], "owned": []}
    epoch = beat(wire, "revoking", "m1", 0, **joining).member_epoch
    assert beat(wire, "revoking", "m1", epoch, owned=owned).error_code == 0
    later = beat(wire, "revoking", "m2", 0, **joining).member_epoch
    clock.advance("1s")  # in which assignments are batched
    assert len(beat(wire, "revoking", "m1", epoch).assignment.topic_partitions[0].partitions) == 1
    clock.advance("40s")
    assert beat(wire, "revoking", "m1", epoch).error_code == 0
    assert beat(wire, "revoking", "m2", later).error_code == 0
    clock.advance("19s")
    assert sorted(consumer_members(wire, "revoking")) == ["m1", "m2"]
    clock.advance("2s")
    assert consumer_members(wire, "revoking") == ["m2"]


def test_connections_above_the_rate_of_their_address_are_closed_in_the_broker_s_time(
    broker: Broker, wire: Wire, clock: Clock
) -> None:
    a = m.AlterClientQuotasRequest
    entity = [a.EntityData(entity_type="ip", entity_name="127.0.0.2")]
    entry = a.EntryData(entity=entity, ops=[a.OpData(key="connection_creation_rate", value=1.0)])
    assert wire.ask("AlterClientQuotas", 1, a(entries=[entry])).entries[0].error_code == 0
    wires = [Wire(broker.bootstrap_servers, timeout=20, source="127.0.0.2") for _ in range(30)]
    wires[0].ask("ApiVersions", 0, m.ApiVersionsRequest())
    last = wires[-1]
    last.say("ApiVersions", 0, m.ApiVersionsRequest())
    assert_silent(last)
    clock.advance("1m")
    with pytest.raises(Closed):
        last.read(1)
    wires[0].ask("ApiVersions", 0, m.ApiVersionsRequest())
    for one in wires:
        one.close()


def test_a_listener_takes_connections_at_its_rate_in_the_broker_s_time() -> None:
    settings: dict[str, object] = {
        "ottla.lab.clock": "frozen",
        "max.connection.creation.rate": 1,
        "quota.window.num": 2,
    }
    with Broker(settings) as broker:
        wires = [Wire(broker.bootstrap_servers, timeout=20) for _ in range(6)]
        last = wires[-1]
        last.say("ApiVersions", 0, m.ApiVersionsRequest())
        assert_silent(last)
        broker.clock.advance("1m")
        assert last.reply("ApiVersions", 0).error_code == 0
        for one in wires:
            one.close()
