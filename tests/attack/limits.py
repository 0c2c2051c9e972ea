"""Limits of groups, sessions and the state of share groups at small values: as many clients as there is room for, and
many more. The errors are those of Kafka with the same settings (`tests/differential/test_sizes.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ottla.broker.net.limits import elements_max
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.storage.checkpoints import uuid_to_text

from ..support.ask import create, lab_text
from ..support.poll import until
from ..support.wire import Wire
from .harness import Site, attack, refused

MORE = 2000  # clients beyond the limit
FULL = int(Errors.GROUP_MAX_SIZE_REACHED)
SMALL: dict[str, object] = {"offsets.topic.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 1}


def member_ids(count: int) -> list[str]:
    return [uuid_to_text((1 << 127 | n).to_bytes(16, "big")) for n in range(count)]


def coordinator(wire: Wire, group: str) -> None:
    wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))


def reached(site: Site, limit: str) -> int:
    """How often the metrics say that a limit was reached."""
    line = f'ottla_limit_reached_total{{limit="{limit}"}} '
    (found,) = [one for one in lab_text(site.broker, "/metrics").splitlines() if one.startswith(line)]
    return int(float(found.removeprefix(line)))


def beyond(ask: Callable[[str], int], limit: int) -> None:
    """The first members have room, and all others are refused, again and again."""
    ids = member_ids(limit + MORE)
    found = [ask(one) for one in ids]
    assert found[:limit] == [0] * limit, found[:limit]
    assert set(found[limit:]) == {FULL}
    assert ask(ids[0]) == 0, "a member that is there goes on"


@attack(
    lab=True,
    quick=True,
    memory_mib_max=40,
    settings={**SMALL, "group.max.size": 10, "group.initial.rebalance.delay.ms": 3000},
)
def a_classic_group_beyond_its_size(site: Site) -> None:
    """JoinGroup version 3, which adds a member at once, over a connection for each, as joins wait for each other."""
    j = m.JoinGroupRequest
    request = j(group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="c")
    request.protocols = [j.JoinGroupRequestProtocol(name="p", metadata=bytes(1000))]
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(site.wire()) for _ in range(10)]
        coordinator(wires[0], "g")
        for wire in wires:
            wire.say("JoinGroup", 3, request)
        with site.wire() as last:
            d = m.DescribeGroupsRequest(groups=["g"])
            for _ in range(1000):
                if len(last.ask("DescribeGroups", 5, d).groups[0].members) == 10:
                    break
            else:
                raise AssertionError("the members did not join")
            for _ in range(MORE):
                assert last.ask("JoinGroup", 3, request).error_code == FULL
    assert reached(site, "group-size") == MORE


@attack(lab=True, quick=True, memory_mib_max=40, settings={**SMALL, "group.consumer.max.size": 10})
def a_consumer_group_beyond_its_size(site: Site) -> None:
    with site.wire() as wire:
        coordinator(wire, "g")

        def beat(member: str) -> int:
            request = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, rebalance_timeout_ms=30_000)
            request.subscribed_topic_names, request.topic_partitions = ["t"], []
            code: int = wire.ask("ConsumerGroupHeartbeat", 1, request).error_code
            return code

        beyond(beat, 10)
    assert reached(site, "group-size") == MORE


@attack(lab=True, quick=True, memory_mib_max=40, settings={**SMALL, "group.share.max.size": 10})
def a_share_group_beyond_its_size(site: Site) -> None:
    with site.wire() as wire:
        coordinator(wire, "g")

        def beat(member: str) -> int:
            request = m.ShareGroupHeartbeatRequest(group_id="g", member_id=member, subscribed_topic_names=["t"])
            code: int = wire.ask("ShareGroupHeartbeat", 1, request).error_code
            return code

        beyond(beat, 10)
    assert reached(site, "group-size") == MORE


@attack(lab=True, quick=True, memory_mib_max=60, settings={"ottla.groups.max": 50, "offsets.topic.num.partitions": 1})
def more_groups_than_there_may_be(site: Site) -> None:
    """Commits to groups of new names, whose ids have the greatest length."""
    c = m.OffsetCommitRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    with site.wire() as wire:
        create(wire, "t")
        coordinator(wire, "g")

        def commit(number: int) -> int:
            request = c(group_id=f"{number}-{'x' * 32_000}", topics=[c.OffsetCommitRequestTopic(name="t")])
            request.topics[0].partitions = [part]
            code: int = wire.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code
            return code

        found = [commit(number) for number in range(50 + MORE)]
        assert found == [0] * 50 + [FULL] * MORE
        assert commit(0) == 0
    assert reached(site, "groups") == MORE


@attack(
    lab=True,
    quick=True,
    memory_mib_max=60,
    settings={**SMALL, "group.share.max.size": 100, "group.share.max.share.sessions": 100},
)
def more_share_sessions_than_there_may_be(site: Site) -> None:
    """Each member has one; a session ends with its connection, and makes room."""
    f = m.ShareFetchRequest
    with contextlib.ExitStack() as stack:
        wire = stack.enter_context(site.wire())
        topic_id = create(wire, "t")
        coordinator(wire, "g")
        ids = member_ids(150)
        request = m.ShareGroupHeartbeatRequest(group_id="g", member_id=ids[0], subscribed_topic_names=["t"])
        assert wire.ask("ShareGroupHeartbeat", 1, request).error_code == 0

        def fetch(at: Wire, member: str) -> int:
            wanted = f(group_id="g", member_id=member, share_session_epoch=0, max_bytes=1000, max_records=1)
            wanted.topics = [f.FetchTopic(topic_id=topic_id, partitions=[f.FetchPartition(partition_index=0)])]
            code: int = at.ask("ShareFetch", 1, wanted).error_code
            return code

        wires = [stack.enter_context(site.wire()) for _ in range(100)]
        assert [fetch(at, member) for at, member in zip(wires, ids, strict=False)] == [0] * 100
        limit = int(Errors.SHARE_SESSION_LIMIT_REACHED)
        for _ in range(20):
            assert {fetch(wire, member) for member in ids[100:]} == {limit}
        assert reached(site, "share-sessions") == 1000
        wires[0].close()
        for _ in range(1000):
            if fetch(wire, ids[100]) == 0:
                return
        raise AssertionError("the session of a lost connection makes no room")


@attack(lab=True, quick=True, memory_mib_max=40, settings={"max.incremental.fetch.session.cache.slots": 100})
def more_fetch_sessions_than_there_may_be(site: Site) -> None:
    """Beyond the slots a fetch is answered without a session, and a session that exists goes on."""
    f = m.FetchRequest
    with site.wire() as wire:
        create(wire, "t")

        def fetch(session_id: int, epoch: int) -> Any:
            topic = f.FetchTopic(topic="t", partitions=[f.FetchPartition(partition=0, partition_max_bytes=100)])
            wanted = f(session_id=session_id, session_epoch=epoch, max_bytes=100)
            wanted.topics = [topic] if epoch == 0 else []
            return wire.ask("Fetch", 11, wanted)

        ids = [fetch(0, 0).session_id for _ in range(100 + MORE)]
        assert all(ids[:100])
        assert not any(ids[100:])
        assert fetch(ids[0], 1).error_code == 0
    assert reached(site, "fetch-sessions") == MORE


@attack(lab=True, memory_mib_max=120, settings=SMALL)
def the_state_of_share_groups_at_the_greatest_size(site: Site) -> None:
    """InitializeShareGroupState, WriteShareGroupState and ReadShareGroupState with as many partitions as a request may
    name, of a topic that has them and of topics that do not exist, for several groups.
    """
    i = m.InitializeShareGroupStateRequest
    count = elements_max(83) - 1
    with site.wire() as wire:
        topic_id = create(wire, "t", 5000)
        wire.ask(
            "FindCoordinator",
            6,
            m.FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{uuid_to_text(topic_id)}:0"]),
        )
        for group in ("g", "h"):
            for topic in (topic_id, bytes(15) + b"\1"):
                parts = [i.PartitionData(partition=n, state_epoch=0, start_offset=0) for n in range(count)]
                asked = i(group_id=group, topics=[i.InitializeStateData(topic_id=topic, partitions=parts)])
                found = wire.ask("InitializeShareGroupState", 0, asked).results[0].partitions
                assert len(found) == count
        r = m.ReadShareGroupStateRequest
        read = r(group_id="g", topics=[r.ReadStateData(topic_id=topic_id)])
        read.topics[0].partitions = [r.PartitionData(partition=n, leader_epoch=0) for n in range(count)]
        assert len(wire.ask("ReadShareGroupState", 0, read).results[0].partitions) == count
        with site.wire() as other, refused():
            parts = [i.PartitionData(partition=n) for n in range(count + 1)]
            other.ask(
                "InitializeShareGroupState",
                0,
                i(group_id="g", topics=[i.InitializeStateData(topic_id=topic_id, partitions=parts)]),
            )
            raise AssertionError("more elements than may be were taken")
    assert reached(site, "request-elements") == 1


@attack(lab=True, quick=True, settings={"ottla.connections.per.ip.max": 50})
def more_connections_than_an_address_may_have(site: Site) -> None:
    """Those beyond are closed at once; another address is served."""
    with contextlib.ExitStack() as stack:
        for _ in range(500):
            with contextlib.suppress(OSError):
                stack.enter_context(site.wire())
        until(lambda: reached(site, "connections-per-ip") >= 400, "the connections are refused")
        with Wire(site.broker.bootstrap_servers, source="127.0.0.2") as other:
            other.ask("Metadata", 12, m.MetadataRequest(topics=[]))


def unread(site: Site) -> Iterator[Wire]:
    """Connections that ask for long replies and read none."""
    r = m.DescribeConfigsRequest
    broker = r.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    while True:
        wire = site.wire()
        for _ in range(20):
            wire.say(
                "DescribeConfigs", 4, r(resources=[broker] * 60, include_synonyms=True, include_documentation=True)
            )
        yield wire


@attack(lab=True, memory_mib_max=150, settings={"ottla.buffered.bytes.max": 32 << 20})
def replies_that_are_not_read_and_requests_that_do_not_end(site: Site) -> None:
    """Those who hold the most are closed; the broker holds no more than it may, and serves the others."""
    half = (90 << 20).to_bytes(4, "big") + b"\0\0\0\x09\0\0\0\1" + bytes(1 << 20)
    with contextlib.ExitStack() as stack:
        for _, wire in zip(range(15), unread(site), strict=False):
            stack.callback(wire.close)
        for _ in range(60):
            wire = stack.enter_context(site.wire())
            with refused(), contextlib.suppress(OSError):
                wire.send(half)
        with site.wire() as other:
            other.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        closed = reached(site, "buffered-bytes")
        assert closed > 0
        site.note(f"{closed} connections closed")


@attack(lab=True, quick=True, memory_mib_max=40, settings={"ottla.producers.per.partition.max": 100})
def more_producers_than_a_partition_remembers(site: Site) -> None:
    """Each with one record of its own."""
    from ..support.ask import produce

    with site.wire() as wire:
        create(wire, "t")
        for number in range(MORE):
            found = produce(wire, "t", b"v", producer_id=number, producer_epoch=0, base_sequence=0)
            assert found.error_code == 0
        r = m.DescribeProducersRequest
        asked = r(topics=[r.TopicRequest(name="t", partition_indexes=[0])])
        described = wire.ask("DescribeProducers", 0, asked).topics[0].partitions[0].active_producers
        assert sorted(one.producer_id for one in described) == list(range(MORE - 100, MORE))
    assert reached(site, "producers") == MORE - 100
