"""A node that is cut off goes on with what it knew: it leads what it led, in its old epoch, and its clients hear of
nothing else; what it asks of the controller waits.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.shards import host
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message, values
from ..support.node_world import cluster, create, happens, produce, records, state
from ..support.world import Answer, World

SESSION_MS = 9_000


@pytest.fixture
def w() -> World:
    """Node 1 leads `t-0`, where one record is committed, and is cut off; the others have elected node 2."""
    w = cluster()
    assert produce(w, 1).error_code == 0
    happens(w, "cut", 1)
    w.pass_ms(SESSION_MS + 100)
    assert state(w, at=2)[:3] == (2, 1, [2, 3])
    return w


def sent(w: World, name: str, version: int, message: Any, node: int = 1) -> Answer:
    """A request that is not answered at once."""
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send(name, version, message)
    w.dispatcher = before
    return answer


def fetched(w: World, node: int, epoch: int, offset: int = 0) -> tuple[str, list[bytes | None]]:
    """The error and the records."""
    message = fetch_message("t", offset)
    message.topics[0].partitions[0].current_leader_epoch = epoch
    found = w.at(node, "Fetch", 12, message).responses[0].partitions[0]
    return Errors(found.error_code).name, values(found.records or b"")


def latest(w: World, node: int) -> tuple[int, int]:
    r = m.ListOffsetsRequest
    part = r.ListOffsetsPartition(partition_index=0, timestamp=-1)
    message = r(replica_id=-1, topics=[r.ListOffsetsTopic(name="t", partitions=[part])])
    found = w.at(node, "ListOffsets", 6, message).topics[0].partitions[0]
    return found.offset, found.leader_epoch


def creation(name: str) -> Any:
    r = m.CreateTopicsRequest
    return r(topics=[r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000)


def test_its_metadata_are_old(w: World) -> None:
    create_at_2 = sent(w, "CreateTopics", 7, creation("new"), node=2)
    w.pass_ms(10)
    assert create_at_2.reply.topics[0].error_code == 0
    for node, known in ((1, (1, 0, [1, 2, 3], [1, 2, 3])), (2, (2, 1, [2, 3], [2, 3]))):
        reply = w.at(node, "Metadata", 12, m.MetadataRequest(topics=None))
        parts = {one.name: one.partitions[0] for one in reply.topics}
        part = parts["t"]
        assert (part.leader_id, part.leader_epoch, part.isr_nodes, [one.node_id for one in reply.brokers]) == known
        assert ("new" in parts) == (node == 2)


def test_it_serves_what_was_committed_in_its_own_epoch(w: World) -> None:
    assert produce(w, 2, value=b"w").error_code == 0
    assert fetched(w, 1, 0) == ("NONE", [b"v"])
    assert fetched(w, 1, 1)[0] == "UNKNOWN_LEADER_EPOCH"
    assert fetched(w, 2, 0) == ("FENCED_LEADER_EPOCH", [])
    assert (latest(w, 1), latest(w, 2)) == ((1, 0), (2, 1))


def test_it_takes_records_that_are_lost(w: World) -> None:
    offsets = [produce(w, 1, value=b"lost", acks=1).base_offset for _ in range(2)]
    assert offsets == [1, 2]
    assert produce(w, 2, value=b"w").base_offset == 1
    assert fetched(w, 1, 0, 3) == ("NONE", [])
    happens(w, "heal", 1)
    refused = produce(w, 1, acks=1)
    assert (Errors(refused.error_code).name, refused.current_leader.leader_id) == ("NOT_LEADER_OR_FOLLOWER", 2)
    assert fetched(w, 1, 0)[0] == "FENCED_LEADER_EPOCH"
    assert records(w, 2) == records(w, 1) == [b"v", b"w"]


@pytest.mark.parametrize("before_ms", [0, 2_000], ids=["times out", "hears of the new leader"])
def test_acks_all_waits_for_followers_that_do_not_come(w: World, before_ms: int) -> None:
    late = sent(w, "Produce", 10, produce_message("t", batch(b"x"), 0, -1, 5_000))
    for _ in range(3):
        assert produce(w, 2).error_code == 0, "offsets that are committed elsewhere"
    w.pass_ms(before_ms or 5_000)
    if before_ms:
        assert not late.done
        happens(w, "heal", 1)
    found = late.reply.responses[0].partition_responses[0]
    assert Errors(found.error_code).name == ("NOT_LEADER_OR_FOLLOWER" if before_ms else "REQUEST_TIMED_OUT")


def test_a_fetch_that_waits_hears_nothing(w: World) -> None:
    late = sent(w, "Fetch", 12, fetch_message("t", 1, wait_ms=3_000))
    assert produce(w, 2).error_code == 0
    w.pass_ms(2_000)
    assert not late.done
    w.pass_ms(1_000)
    assert late.reply.responses[0].partitions[0].high_watermark == 1


def test_too_few_replicas_in_sync_stay_too_few() -> None:
    w = cluster()
    create(w, "safe", [1, 2], min_insync_replicas="2")
    happens(w, "stop", 2)
    happens(w, "cut", 1)
    w.pass_ms(SESSION_MS + 100)
    assert Errors(produce(w, 1, topic="safe").error_code).name == "NOT_ENOUGH_REPLICAS"


def test_it_refuses_what_it_never_led(w: World) -> None:
    refused = produce(w, 1, 1, acks=1)
    assert (Errors(refused.error_code).name, refused.current_leader.leader_id) == ("NOT_LEADER_OR_FOLLOWER", 2)


def test_a_follower_that_is_cut_off_serves_what_it_knows() -> None:
    w = cluster()
    assert produce(w, 2, 1).error_code == 0
    happens(w, "cut", 1)
    happens(w, "stop", 2)
    assert produce(w, 3, 1).error_code == 0
    message = fetch_message("t", 0, 1)
    message.topics[0].partitions[0].current_leader_epoch = 0
    found = w.at(1, "Fetch", 12, message).responses[0].partitions[0]
    assert (found.error_code, values(found.records), found.high_watermark) == (0, [b"v"], 1)


@pytest.mark.parametrize("heals", [True, False])
def test_what_it_asks_of_the_controller_waits(w: World, heals: bool) -> None:
    late = sent(w, "CreateTopics", 7, creation("late"))
    listed = sent(w, "ListPartitionReassignments", 0, m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000))
    w.pass_ms(30_000)
    assert not late.done
    assert not listed.done
    if heals:
        happens(w, "heal", 1)
    w.pass_ms(10 if heals else 30_000)
    expected = "NONE" if heals else "REQUEST_TIMED_OUT"
    assert Errors(late.reply.topics[0].error_code).name == expected
    assert Errors(listed.reply.error_code).name == expected
    assert ("late" in w.broker.image.topics) == heals


def test_a_node_that_is_killed_while_it_is_cut_off_knows_everything_when_it_starts(w: World) -> None:
    produce(w, 1, acks=1)
    happens(w, "kill", 1)
    assert w.broker.partitions.get("t", 0).stale == {}
    happens(w, "heal", 1)
    happens(w, "begin", 1)
    assert state(w) == state(w, at=2)
    assert records(w, 1) == [b"v"]


def group_at(partition: int) -> str:
    return next(name for n in range(100) if partition_for(name := f"g{n}", 3) == partition)


def commit(group: str, offset: int) -> Any:
    c = m.OffsetCommitRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [c.OffsetCommitRequestTopic(name="t", partitions=[part])]
    return c(group_id=group, generation_id_or_member_epoch=-1, topics=topics)


def offset_at(w: World, node: int, group: str) -> tuple[str, int]:
    """What a node says that a group has committed."""
    f = m.OffsetFetchRequest
    topics = [f.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    found = w.at(node, "OffsetFetch", 8, f(groups=[f.OffsetFetchRequestGroup(group_id=group, topics=topics)])).groups[0]
    return Errors(found.error_code).name, found.topics[0].partitions[0].committed_offset if found.topics else -1


def coordinator_alone(ends_at: int, is_loaded: bool = True) -> tuple[World, str]:
    """A world in which node 1 coordinates a group, has committed an offset, and is cut off while another one was
    elected. `ends_at`: the offset; `is_loaded`: whether node 1 had loaded what it coordinates.
    """
    w = cluster()
    w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    led = next(index for index in range(3) if w.broker.partitions.get("__consumer_offsets", index).leader == 1)
    group = group_at(led)
    assert w.at(1, "OffsetCommit", 8, commit(group, ends_at)).topics[0].partitions[0].error_code == 0
    if not is_loaded:
        begin, w.broker.groups.begin = w.broker.groups.begin, lambda host: None
        w.broker.groups.reload(w.broker.partitions.get("__consumer_offsets", led))
        w.broker.groups.begin = begin
    happens(w, "cut", 1)
    w.pass_ms(SESSION_MS + 100)
    return w, group


def test_its_groups_go_on_until_it_is_healed() -> None:
    w, group = coordinator_alone(5)
    taker = w.broker.partitions.get("__consumer_offsets", partition_for(group, 3)).leader
    assert taker in (2, 3)
    assert offset_at(w, 1, group) == offset_at(w, taker, group) == ("NONE", 5)
    late = sent(w, "OffsetCommit", 8, commit(group, 6))
    assert w.at(taker, "OffsetCommit", 8, commit(group, 7)).topics[0].partitions[0].error_code == 0
    assert not late.done
    w.pass_ms(5_000)  # offsets.commit.timeout.ms
    assert late.reply.topics[0].partitions[0].error_code == Errors.COORDINATOR_NOT_AVAILABLE
    assert offset_at(w, 1, group) == ("NONE", 5)
    waiting = sent(w, "OffsetCommit", 8, commit(group, 8))
    happens(w, "heal", 1)
    assert waiting.reply.topics[0].partitions[0].error_code == Errors.NOT_COORDINATOR
    assert (offset_at(w, 1, group), offset_at(w, taker, group)) == (("NOT_COORDINATOR", -1), ("NONE", 7))


def test_groups_that_it_has_not_loaded_do_not_go_on() -> None:
    w, group = coordinator_alone(5, is_loaded=False)
    assert offset_at(w, 1, group) == ("NOT_COORDINATOR", -1)


@pytest.mark.parametrize("end", ["kill", "stop of the process"])
def test_its_groups_end_with_it(end: str) -> None:
    w, group = coordinator_alone(5)
    late = sent(w, "OffsetCommit", 8, commit(group, 6))
    if end == "kill":
        happens(w, "kill", 1)
    else:
        w.broker.stop()
    assert late.done
    assert not w.broker.groups.left


def test_what_its_groups_write_in_vain_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "LOST_BYTES_MAX", 200)
    w, group = coordinator_alone(5)
    first, second = (sent(w, "OffsetCommit", 8, commit(group, offset)) for offset in (6, 7))
    assert not first.done
    assert second.reply.topics[0].partitions[0].error_code == Errors.COORDINATOR_NOT_AVAILABLE
    assert offset_at(w, 1, group) == ("NONE", 5)
