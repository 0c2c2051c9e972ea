"""Large requests are handled in steps and other requests are served in between; replies have a budget. Steps, calls and
timers are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.apis._fetch_reading import STEP_READS
from ottla.broker.apis._groups import STEP_GROUPS
from ottla.broker.apis.k27_write_txn_markers import STEP_MARKERS
from ottla.broker.controller.events import EVENT_STEP
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.group.classic import description
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.storage.checkpoints import uuid_to_text

from ..support.ask import batch
from ..support.generate import Generator, all_schemas
from ..support.turns import Turns
from ..support.world import World

SEED = 20261121


def create(world: World, name: str, partitions: int = 1) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    assert (
        world.ask("CreateTopics", 7, m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0
    )


def joined(world: World, group: str, metadata: bytes) -> None:
    """A classic group with one member."""
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
    join = m.JoinGroupRequest(group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="p")
    join.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="p", metadata=metadata)]
    answer = world.ask("JoinGroup", 3, join)
    sync = m.SyncGroupRequest(group_id=group, generation_id=answer.generation_id, member_id=answer.member_id)
    sync.assignments = [m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"a")]
    world.ask("SyncGroup", 1, sync)


def test_arrays_that_are_encoded_piece_by_piece_are_the_same_bytes() -> None:
    """For the arrays of structs of every response."""
    import random

    for name, version in all_schemas():
        loaded = schema.load(name)
        if loaded.kind != "response":
            continue
        message = Generator(loaded, version, random.Random(f"{SEED} {name} {version}"), present=1.0).message()
        expected = bytes(codec.build(name, version, message))
        for f in loaded.root.fields:
            if version not in f.versions or version in f.tagged or not f.is_array or f.struct is None:
                continue
            array = codec.encoded(name, version, f.name)
            for element in getattr(message, f.name):
                array.append(element)
            assert array.decoded() == getattr(message, f.name)
            setattr(message, f.name, array)
            assert bytes(codec.build(name, version, message)) == expected, (name, version, f.name)
            plain: Any = codec.as_plain(message)
            assert plain[f.name] == [codec.as_plain(one) for one in array.decoded()]
            setattr(message, f.name, array.decoded())


def test_a_large_request_goes_on_in_steps_and_others_are_served_in_between() -> None:
    world = Turns()
    joined(world, "g", b"metadata")
    names = ["g", "absent"] * 4 * STEP_ELEMENTS
    large = world.send("DescribeGroups", 5, m.DescribeGroupsRequest(groups=names))
    assert not large.done
    assert world.send("Metadata", 12, m.MetadataRequest(topics=[])).done
    world.pass_ms(1)
    in_order = [("absent", "Dead")] * (len(names) // 2) + [("g", "Stable")] * (len(names) // 2)
    assert [(one.group_id, one.group_state) for one in large.reply.groups] == in_order
    assert world.turns >= len(names) // STEP_ELEMENTS


def test_a_large_request_is_decoded_handled_and_answered_in_turns_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Turns()
    create(world, "t")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    world.turns = 0
    assert world.send("OffsetCommit", 9, _commit(10)).done
    assert world.turns == 0
    happened: list[str] = []

    def note(at: Any, name: str) -> None:
        does = getattr(at, name)

        def noted(*arguments: Any) -> Any:
            happened.append(name)
            return does(*arguments)

        monkeypatch.setattr(at, name, noted)

    for name in ("_parse", "call", "_reply"):
        note(world.dispatcher, name)
    note(world.broker.turn, "_next_step")
    answer = world.send("OffsetCommit", 9, _commit(1000))
    assert happened == ["_parse"]
    assert world.send("Metadata", 12, m.MetadataRequest(topics=[])).done
    happened.clear()
    world.pass_ms(1)
    assert [p.error_code for p in answer.reply.topics[0].partitions] == 1000 * [0]
    assert happened == ["_next_step", "call", "_next_step", "_reply"]


def test_a_large_request_that_fails_as_a_whole_is_answered_partition_by_partition() -> None:
    world = World()
    create(world, "t")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    request = _commit(1000)
    request.generation_id_or_member_epoch, request.member_id = 7, "absent"
    found = world.ask("OffsetCommit", 8, request).topics[0].partitions
    assert [one.error_code for one in found] == 1000 * [int(Errors.ILLEGAL_GENERATION)]


def _commit(times: int) -> Any:
    """Commits an offset of the same partition many times."""
    r = m.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)] * times
    return r(group_id="g", topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts)])


def test_of_many_large_requests_one_goes_on_in_each_turn() -> None:
    world = World()
    request = ("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"] * 4 * STEP_ELEMENTS))
    world.ask(*request)
    answers = [world.send(*request) for _ in range(5)]
    steps = 0
    while not all(one.done for one in answers):
        assert len(world.broker.turn._steps) <= 5
        assert len(world.schedule.timers)
        world.broker.turn._next_step()
        steps += 1
    assert steps >= 5 * 4


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_a_group_of_many_members_is_described_in_steps(kind: str) -> None:
    world, count = Turns(group_share_max_size="1000"), STEP_GROUPS + 10
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    ids = [uuid_to_text(n.to_bytes(16, "big")) for n in range(1, count + 1)]
    if kind == "classic":
        r = m.JoinGroupRequest
        joins = [
            r(
                group_id="g",
                group_instance_id=one,
                protocol_type="p",
                session_timeout_ms=9000,
                rebalance_timeout_ms=9000,
            )
            for one in ids
        ]
        for join in joins:
            join.protocols = [r.JoinGroupRequestProtocol(name="p", metadata=b"m")]
        world.together(*(("JoinGroup", 9, join) for join in joins))
        asked: tuple[str, int, Any] = ("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["g", "absent", "g"]))
    elif kind == "consumer":
        c = m.ConsumerGroupHeartbeatRequest
        for one in ids:
            beat = c(group_id="g", member_id=one, rebalance_timeout_ms=9000, topic_partitions=[])
            beat.subscribed_topic_names = ["t"]
            assert world.ask("ConsumerGroupHeartbeat", 1, beat).error_code == 0
        asked = ("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["g", "absent", "g"]))
    else:
        s = m.ShareGroupHeartbeatRequest
        for one in ids:
            share = s(group_id="g", member_id=one, subscribed_topic_names=["t"])
            assert world.ask("ShareGroupHeartbeat", 1, share).error_code == 0
        asked = ("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["g", "absent", "g"]))
    world.turns = 0
    answer = world.send(*asked)
    assert not answer.done
    world.pass_ms(1)
    assert world.turns == 2
    described = answer.reply.groups
    assert [(one.group_id, len(one.members)) for one in described] == [("absent", 0), ("g", count), ("g", count)]


def test_a_reply_stops_at_its_budget_and_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ottla_reply_max_bytes=str(1 << 20))
    joined(world, "heavy", bytes(100_000))
    described, describe = [], description.describe

    def counted(*arguments: Any) -> Any:
        described.append(1)
        return describe(*arguments)

    monkeypatch.setattr(description, "describe", counted)
    assert len(world.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["heavy"] * 10)).groups) == 10
    described.clear()
    answer = world.send("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["heavy"] * 5000))
    world.pass_ms(1)
    assert answer.closed
    assert len(described) == 11
    assert answer.reply is None


def test_the_budget_holds_within_an_answer_too() -> None:
    world = World(ottla_reply_max_bytes=str(1 << 20))
    create(world, "t")
    producers = world.broker.partitions.get("t", 0).open_log().producers
    for producer_id in range(100):
        world.ask(
            "Produce", 9, _produce("t", 1, batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0))
        )
    assert len(producers.by_id) == 100
    r = m.DescribeProducersRequest
    asked = [r(topics=[r.TopicRequest(name="t", partition_indexes=[0] * count)]) for count in (200, 20_000)]
    partitions = world.ask("DescribeProducers", 0, asked[0]).topics[0].partitions
    assert [len(one.active_producers) for one in partitions] == [100] * 200
    answer = world.send("DescribeProducers", 0, asked[1])
    world.pass_ms(1)
    assert answer.closed


def test_topics_that_metadata_creates_are_created_in_steps() -> None:
    world = Turns()
    names = [f"t{number}" for number in range(200)]
    topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = world.send("Metadata", 12, m.MetadataRequest(topics=topics, allow_auto_topic_creation=True))
    assert len(world.broker.image.topics) < len(names)
    world.pass_ms(1000)
    assert sorted(world.broker.image.topics) == sorted(names)
    assert [topic.name for topic in answer.reply.topics] == names
    assert world.turns >= 3


def test_offsets_of_many_partitions_are_listed_in_steps() -> None:
    world, count = Turns(), 4 * STEP_ELEMENTS
    create(world, "t", 2)
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
    reply = world.ask("ListOffsets", 7, r(replica_id=-1, topics=[r.ListOffsetsTopic(name="t", partitions=parts)]))
    found = sorted(reply.topics[0].partitions, key=lambda one: one.partition_index)
    assert [one.partition_index for one in found] == list(range(count))
    assert {one.error_code for one in found[:2]} == {0}
    assert {one.error_code for one in found[2:]} == {int(Errors.UNKNOWN_TOPIC_OR_PARTITION)}
    assert world.turns >= 4


def _of_many() -> Iterator[Any]:
    """Requests about many things, with the array of the reply, its length, and the turns that they take at least."""
    count, marked = 4 * STEP_ELEMENTS, 4 * STEP_MARKERS
    e = m.ElectLeadersRequest
    elections = e(topic_partitions=count * [e.TopicPartitions(topic="t", partitions=[0])], timeout_ms=1000)
    yield "ElectLeaders", 2, elections, "replica_election_results", count, count // EVENT_STEP + 4
    s = m.DescribeUserScramCredentialsRequest
    users = s(users=[s.UserName(name=f"u{number}") for number in range(count)])
    yield "DescribeUserScramCredentials", 0, users, "results", count, 4
    w = m.WriteTxnMarkersRequest
    topics = [w.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    markers = w(markers=[w.WritableTxnMarker(number, 0, False, topics) for number in range(marked)])
    yield "WriteTxnMarkers", 1, markers, "markers", marked, 4


@pytest.mark.parametrize("asked", list(_of_many()), ids=lambda asked: asked[0])
def test_many_are_elected_described_or_marked_in_steps(asked: Any) -> None:
    name, version, request, answers, count, turns = asked
    world = Turns()
    create(world, "t")
    world.turns = 0
    assert len(getattr(world.ask(name, version, request), answers)) == count
    assert world.turns >= turns


@pytest.mark.long
def test_logs_and_resources_of_a_broker_are_listed_in_steps() -> None:
    world, count = Turns(), 2 * STEP_ELEMENTS
    r = m.CreateTopicsRequest
    names = [f"t{number}" for number in range(count)]
    topics = [r.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    world.ask("CreateTopics", 7, r(topics=topics, timeout_ms=10_000))
    world.turns = 0
    (directory,) = world.ask("DescribeLogDirs", 4, m.DescribeLogDirsRequest(topics=None)).results
    assert sorted(one.name for one in directory.topics) == sorted(names)
    assert world.turns >= 2
    world.turns = 0
    listed = world.ask("ListConfigResources", 1, m.ListConfigResourcesRequest(resource_types=[2])).config_resources
    assert [one.resource_name for one in listed] == names
    assert world.turns >= 2


def test_errors_of_answers_in_steps_are_counted() -> None:
    world = World()
    joined(world, "g", b"")
    before = world.broker.metrics.errors.copy()
    world.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=["g", "absent", "absent"]))
    assert world.broker.metrics.errors - before == {(15, int(Errors.GROUP_ID_NOT_FOUND)): 2}


def test_the_share_coordinator_is_asked_again_for_all_partitions_at_once() -> None:
    """One timer, and not one for each partition that is not there; a partition that is named twice is asked for
    once.
    """
    world = World()
    create(world, "t", 2)
    r = m.DescribeShareGroupOffsetsRequest
    topic = r.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[*range(1000), *range(1000)])
    world.ask(
        "ShareGroupHeartbeat",
        1,
        m.ShareGroupHeartbeatRequest(group_id="s", member_id="m", subscribed_topic_names=["t"]),
    )
    few = r.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    group = r.DescribeShareGroupOffsetsRequestGroup
    world.ask("DescribeShareGroupOffsets", 1, r(groups=[group(group_id="s", topics=[few])]))
    timers = len(world.schedule.timers)
    answer = world.send("DescribeShareGroupOffsets", 1, r(groups=[group(group_id="s", topics=[topic])]))
    world.pass_ms(10)
    assert len(world.schedule.timers) <= timers + 2
    world.pass_ms(30_000)
    assert [one.partition_index for one in answer.reply.groups[0].topics[0].partitions] == list(range(1000))


def _produce(name: str, partitions: int, records: bytes, acks: int = -1) -> Any:
    r = m.ProduceRequest
    parts = [r.PartitionProduceData(index=index, records=records) for index in range(partitions)]
    return r(acks=acks, timeout_ms=1000, topic_data=[r.TopicProduceData(name=name, partition_data=parts)])


def _fetch(name: str, partitions: int, wait_ms: int = 0) -> Any:
    r = m.FetchRequest
    parts = [
        r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(partitions)
    ]
    return r(topics=[r.FetchTopic(topic=name, partitions=parts)], max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20)


@pytest.mark.long
def test_many_partitions_are_produced_to_and_fetched_in_steps() -> None:
    world, count = Turns(), 1200
    create(world, "t", count)
    waiting = world.send("Fetch", 11, _fetch("t", count, 500))
    world.pass_ms(1)
    assert not waiting.done
    produced = world.ask("Produce", 9, _produce("t", count, batch(b"v"))).responses
    assert [(one.index, one.error_code, one.base_offset) for one in produced[0].partition_responses] == [
        (index, 0, 0) for index in range(count)
    ]
    assert len(produced) == 1
    assert world.turns >= 2 * (count // STEP_ELEMENTS)
    world.pass_ms(500)
    first, second = (
        found.responses[0].partitions for found in (waiting.reply, world.ask("Fetch", 11, _fetch("t", count)))
    )
    assert [one.partition_index for one in first] == [one.partition_index for one in second] == list(range(count))
    assert any(len(one.records) for one in first)  # the first record was enough to wake it
    assert all(len(one.records) for one in second)
    refused = world.send("Produce", 9, _produce("t", count + 1, batch(b"v"), acks=0))
    world.pass_ms(1)
    assert refused.closed


@pytest.mark.long
def test_a_fetch_in_steps_lets_go_of_records_when_its_connection_is_lost() -> None:
    world, count = World(), 1200
    create(world, "t", count)
    world.ask("Produce", 9, _produce("t", count, batch(b"v")))
    answer = world.send("Fetch", 11, _fetch("t", count))
    segments = [world.broker.partitions.get("t", index).open_log().segments[0] for index in range(count)]
    while not any(segment.holds for segment in segments):
        world.broker.turn._next_step()
    assert not answer.done
    assert sum(segment.holds for segment in segments) == STEP_READS
    answer.waiting.cancel()
    world.pass_ms(10)
    assert not answer.done
    assert sum(segment.holds for segment in segments) == 0


def test_a_fetch_whose_reply_is_too_large_lets_go_of_its_records() -> None:
    world = World()
    create(world, "t", 1)
    world.ask("Produce", 9, _produce("t", 1, batch(b"v")))
    segment = world.broker.partitions.get("t", 0).open_log().segments[0]
    world.dispatcher.reply_bytes_max = 10
    answer = world.send("Fetch", 11, _fetch("t", 1))
    world.pass_ms(1000)
    assert answer.closed
    assert segment.holds == 0


@pytest.mark.long
def test_a_large_reply_is_encoded_in_a_turn_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last batch was appended, and after the offsets were read."""
    from ottla.broker.apis import k00_produce, k09_offset_fetch
    from ottla.broker.net.answers import Answers

    world, count = World(), 2100
    create(world, "t", count)
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    happened: list[str] = []

    def note(at: Any, name: str) -> None:
        does = getattr(at, name)

        def noted(*arguments: Any) -> Any:
            happened.append(name)
            return does(*arguments)

        monkeypatch.setattr(at, name, noted)

    note(k00_produce, "_append_all")
    note(world.dispatcher, "_reply")
    note(world.broker.turn, "_next_step")
    world.ask("Produce", 9, _produce("t", count, batch(b"v")))
    assert happened[-3:] == ["_append_all", "_next_step", "_reply"]
    happened.clear()
    note(k09_offset_fetch, "fetch")
    note(Answers, "add")
    r = m.OffsetFetchRequest
    topic = r.OffsetFetchRequestTopics(name="t", partition_indexes=list(range(count)))
    group = r.OffsetFetchRequestGroup(group_id="g", topics=[topic])
    found = world.ask("OffsetFetch", 9, r(groups=[group])).groups[0].topics[0].partitions
    assert len(found) == count
    between = happened[happened.index("fetch") : happened.index("add")]
    assert "_next_step" in between


def test_topics_that_are_not_there_are_not_remembered() -> None:
    world = World()
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    joins = m.ShareGroupHeartbeatRequest(group_id="g", member_id=uuid_to_text(bytes(15) + b"\1"))
    joins.subscribed_topic_names = [f"absent-{number}" for number in range(500)]
    assert world.ask("ShareGroupHeartbeat", 1, joins).error_code == 0
    assert not world.broker.groups.image._hashes
