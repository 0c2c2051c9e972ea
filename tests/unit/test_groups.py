"""Groups under virtual time: the exact replies and records of each step, the high watermark, expiry, assignors. The seed's invariants:

| invariant (seed 002)                                             | held by                                                            |
|------------------------------------------------------------------|--------------------------------------------------------------------|
| a group is served by the leader of its hashed partition          | test_groups_live_where_kafka_puts_them                             |
| a partition has one owner at any instant                         | sim_groups._check_owners; test_a_partition_changes_hands           |
| acknowledged commits, joins and assignments survive a failover   | sim_groups._check_commits, check_replay; test_a_shard_moves        |
| replies leave when the high watermark has passed their records   | test_replies_wait_for_the_high_watermark                           |
| state is a function of the log                                   | sim_groups.check_replay                                            |
| epochs never go back                                             | sim_groups._check_epochs                                           |
| reads see what is committed                                      | test_readers_see_what_is_committed                                 |
"""

from __future__ import annotations

import random
import sys
import types
from typing import Any

import pytest
from ottla.broker.coordinators import TOPIC_NAME
from ottla.broker.hosting import live_entries, log_entries
from ottla.broker.replication import parse_policy
from ottla.coordinator.group.assignors import AssignorFailed, MemberSpec, Spec, uniform
from ottla.coordinator.group.assignors import range as range_assignor
from ottla.coordinator.group.assignors.registry import Assignors
from ottla.coordinator.group.format import Commit, Commits, GroupFormat
from ottla.coordinator.hashing import java_hash, java_order, partition_for
from ottla.coordinator.shard import encode_batch
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.records import Record, Template

from .. import sim_groups
from ..world import Answer, World

T, U = b"t" * 16, b"u" * 16


def world(partitions: int = 4, **settings: str) -> World:
    """A broker with a topic `t` and a topic of groups."""
    made = World(None, 0, **{"offsets_topic_num_partitions": "3", **settings})
    r = m.CreateTopicsRequest
    made.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)], timeout_ms=1000))
    found = made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators[0]
    assert found.error_code == 0
    return made


def beat(w: World, member: str, epoch: int, *topics: str, group: str = "g", **more: Any) -> Answer:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.topic_partitions = 10_000, []
        request.subscribed_topic_names = list(topics)
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("ConsumerGroupHeartbeat", 1, request)


def owned(w: World, *partitions: int) -> list[Any]:
    topic_id = w.broker.image.topics["t"].id
    return [m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=list(partitions))]


def given(answer: Answer) -> list[int] | None:
    """The partitions of an assignment; None where the reply has none."""
    assignment = answer.reply.assignment
    return None if assignment is None else [p for t in assignment.topic_partitions for p in t.partitions]


def commit(w: World, offset: int, group: str = "s", member: str = "", epoch: int = -1, metadata: str = "", version: int = 9, **more: Any) -> Answer:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    request = r(
        group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("OffsetCommit", version, request)


def code(answer: Answer) -> int:
    return int(answer.reply.topics[0].partitions[0].error_code)


def fetched(w: World, group: str = "s", stable: bool = False) -> Any:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(group_id=group, topics=[r.OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    found = w.send("OffsetFetch", 9, r(groups=[asked], require_stable=stable))
    return found.reply.groups[0].topics[0].partitions[0] if found.done else None


def policy(w: World, text: str) -> None:
    w.broker.policies.set(TOPIC_NAME, None, parse_policy(text))
    w.broker.event(w.broker.partitions.configure)


def written(w: World, group: str = "g") -> list[tuple[str, Any]]:
    """Types and values of the records of a group's partition, in order."""
    partition = w.broker.partitions.by_name[TOPIC_NAME, w.broker.groups.partition_for(group)]
    found = []
    for entry in log_entries(partition.open_log()):
        decoded = GroupFormat().decode(entry.record) if entry.record is not None else None
        assert decoded is not None
        found.append((type(decoded[0]).__name__.removesuffix("Key"), decoded[1]))
    return found


# where groups live, and their bytes


def test_groups_live_where_kafka_puts_them() -> None:
    """The numbers are Java's: `"…".hashCode()`."""
    hashes = {
        "": 0,
        "a": 97,
        "my-app": -1061206400,
        "hello world": 1794106052,
        "polygenelubricants": -(1 << 31),
        "gro\u00fc\U0001f600": java_hash("gro\u00fc\ud83d\ude00"),
    }
    assert {text: java_hash(text) for text in hashes} == hashes
    assert partition_for("my-app", 50) == 0
    assert partition_for("polygenelubricants", 50) == 0, "the least integer counts as 0"
    assert java_order(["range", "sticky"]) == ["sticky", "range"]


def test_the_short_way_of_commits_gives_the_bytes_of_their_schemas() -> None:
    chance = random.Random(1)
    form = GroupFormat()
    for _ in range(300):
        text = "".join(chance.choice("aü€\U0001f600") for _ in range(chance.choice((0, 0, 1, 60, 200))))
        topic_id = chance.choice((bytes(16), chance.randbytes(16)))
        one = Commit(
            "g" * chance.randint(1, 300), "töpic", chance.randint(0, 9), chance.randint(0, 1 << 60), chance.randint(-1, 9), text, 1 << 40, topic_id
        )
        plain = form.encode(one)
        found = form.decode(plain)
        assert found is not None
        assert (found[0] if isinstance(found[0], Commit) else None) in (one, None)
        if text:
            continue
        count = chance.choice((1, 10, 100))
        each = [one._replace(partition=n, offset=chance.randint(0, 1 << 60), leader_epoch=chance.randint(-1, 9)) for n in range(count)]
        packed = Commits(one.group, one.topic, topic_id, one.commit_ms, list(range(count)), [c.offset for c in each], [c.leader_epoch for c in each])
        encoded = [form.encode(c) for c in each]
        assert encode_batch([packed], 5, Template()) == encode_batch([*encoded], 5, Template())
        assert encode_batch([plain, packed, packed], 5, Template()) == encode_batch([plain, *encoded, *encoded], 5, Template())
        assert packed.size >= len(packed.pack(0))
        assert packed.stored(7) == {(c.topic, c.partition): c.stored(7 + n) for n, c in enumerate(each)}
    late = one._replace(expire_ms=77, topic_id=bytes(16))
    decoded = form.decode(form.encode(late))
    assert decoded is not None
    assert (decoded[1].expire_timestamp, decoded[1].offset) == (77, late.offset)


@pytest.mark.parametrize("junk", [b"", b"\0", b"\0\1", b"\0\1\0\5g", b"\xff\xff", b"\0\x09", b"\0\1\0\1g\0\1t\0\0\0\0"])
def test_records_that_are_none_are_skipped_or_refused(junk: bytes) -> None:
    for value in (None, b"", b"\0", b"\0\4", b"\0\4" + b"\0" * 5, b"\0\x63"):
        try:
            GroupFormat().decode(Record(junk, value))
        except ValueError:
            continue


def test_a_load_passes_over_what_was_superseded() -> None:
    w = world()
    for n in range(30):
        commit(w, n)
    (host,) = [h for h in w.broker.groups.hosts.values() if h.shard.offsets.by_group]
    log = host.partition.open_log()
    assert len(list(log_entries(log))) == 30
    assert len([e for e in live_entries(log) if e is not None]) == 1
    w.broker.event(lambda: w.broker.groups.reload(host.partition))
    assert fetched(w).committed_offset == 29


# classic groups, record by record


def join(w: World, member: str = "", version: int = 9, **more: Any) -> Answer:
    r = m.JoinGroupRequest
    request = r(group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id=member, protocol_type="consumer")
    request.protocols = [r.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")]
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("JoinGroup", version, request)


def sync(w: World, member: str, generation: int, **assignments: bytes) -> Answer:
    s = m.SyncGroupRequest
    request = s(group_id="g", generation_id=generation, member_id=member, protocol_type="consumer", protocol_name="range")
    request.assignments = [s.SyncGroupRequestAssignment(member_id=i, assignment=a) for i, a in assignments.items()]
    return w.send("SyncGroup", 5, request)


def alive(w: World, member: str, generation: int) -> int:
    return int(w.send("Heartbeat", 4, m.HeartbeatRequest(group_id="g", generation_id=generation, member_id=member)).reply.error_code)


def stable(w: World, assignment: bytes = b"all") -> str:
    """A classic group of one member, stable in its first generation."""
    first = join(w, version=3)
    w.pass_ms(300)
    member: str = first.reply.member_id
    assert sync(w, member, 1, **{member: assignment}).reply.assignment == assignment
    return member


def test_a_classic_group_from_empty_to_stable_and_back() -> None:
    w = world()
    asked = join(w)
    assert asked.reply.error_code == Errors.MEMBER_ID_REQUIRED
    member = asked.reply.member_id
    second = join(w, member)
    w.pass_ms(300)
    reply = second.reply
    assert (reply.error_code, reply.generation_id, reply.leader, reply.protocol_name) == (0, 1, member, "range")
    assert [one.member_id for one in reply.members] == [member]
    assert alive(w, member, 1) == 0
    assert sync(w, member, 1, **{member: b"all"}).reply.assignment == b"all"
    l = m.LeaveGroupRequest  # noqa: E741
    w.send("LeaveGroup", 5, l(group_id="g", members=[l.MemberIdentity(member_id=member)]))
    told = written(w)
    assert [kind for kind, _ in told] == ["GroupMetadata"] * 3
    empty, full, left = (value for _, value in told)
    assert (empty.generation, empty.protocol_type, empty.members) == (0, "", [])
    assert (full.generation, full.protocol, full.leader, [(o.member_id, o.assignment) for o in full.members]) == (
        1,
        "range",
        member,
        [(member, b"all")],
    )
    assert (left.generation, left.protocol_type, left.protocol, left.leader, left.members) == (2, "consumer", None, None, [])


def test_the_session_of_a_member_ends_without_heartbeats_or_commits() -> None:
    w = world()
    member = stable(w)
    for _ in range(4):
        w.pass_ms(9000)
        assert code(commit(w, 1, "g", member, 1)) == 0, "a commit renews the session"
    for _ in range(3):
        w.pass_ms(9000)
        assert alive(w, member, 1) == 0
    w.pass_ms(10_001)
    assert alive(w, member, 1) == Errors.UNKNOWN_MEMBER_ID


def test_who_does_not_rejoin_is_out_when_the_rebalance_time_out_is_over() -> None:
    w = world()
    member = stable(w)
    late = join(w, version=3)
    assert not late.done
    assert alive(w, member, 1) == Errors.REBALANCE_IN_PROGRESS
    for _ in range(3):
        w.pass_ms(6000)
        alive(w, member, 1)
    assert not late.done
    w.pass_ms(2100)
    assert (late.reply.generation_id, late.reply.leader) == (2, late.reply.member_id)
    assert alive(w, member, 1) == Errors.UNKNOWN_MEMBER_ID


def test_who_joined_and_does_not_sync_is_out_too() -> None:
    w = world()
    first = join(w, version=3)
    w.pass_ms(300)
    member = first.reply.member_id
    for _ in range(4):
        w.pass_ms(4900)
        assert alive(w, member, 1) == 0
    w.pass_ms(600)
    assert alive(w, member, 1) == Errors.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_as_long_as_somebody_comes() -> None:
    w = world(group_initial_rebalance_delay_ms="3000")
    first = join(w, version=3)
    w.pass_ms(2900)
    second = join(w, version=3)
    w.pass_ms(200)
    assert not first.done
    w.pass_ms(3000)
    assert first.reply.generation_id == second.reply.generation_id == 1
    assert len(first.reply.members) == 2


def test_a_full_group_takes_nobody() -> None:
    w = world(group_max_size="1")
    stable(w)
    assert join(w, version=3).reply.error_code == Errors.GROUP_MAX_SIZE_REACHED


# consumer groups, record by record


def test_the_records_of_a_consumer_groups_first_member_and_of_its_end() -> None:
    w = world()
    first = beat(w, "m1", 0, "t")
    assert (first.reply.member_epoch, given(first)) == (2, [0, 1, 2, 3])
    kinds = ["ConsumerGroupMemberMetadata", "ConsumerGroupMetadata", "ConsumerGroupTargetAssignmentMember"]
    kinds += ["ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupCurrentMemberAssignment"]
    told = written(w)
    assert [kind for kind, _ in told] == kinds
    assert (told[1][1].epoch, told[3][1].assignment_epoch) == (2, 2)
    assert (told[4][1].member_epoch, told[4][1].previous_member_epoch, told[4][1].state) == (2, 0, 0)
    assert told[4][1].assigned_partitions[0].assignment_epochs == [2, 2, 2, 2]
    assert given(beat(w, "m1", 2)) is None, "nothing new"
    assert len(written(w)) == len(told)
    beat(w, "m1", -1)
    gone = written(w)[len(told) :]
    assert [(kind.removeprefix("ConsumerGroup"), value is None) for kind, value in gone[:3]] == [
        ("CurrentMemberAssignment", True),
        ("TargetAssignmentMember", True),
        ("MemberMetadata", True),
    ]
    assert [(kind, getattr(value, "epoch", None) or value.assignment_epoch) for kind, value in gone[3:]] == [(kinds[1], 3), (kinds[3], 3)]


def test_a_partition_changes_hands_only_when_it_was_given_back() -> None:
    w = world()
    beat(w, "m1", 0, "t")
    second = beat(w, "m2", 0, "t")
    assert given(second) == [], "everything is with the first"
    told = beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3))
    assert (told.reply.member_epoch, given(told)) == (2, [0, 1])
    assert given(beat(w, "m2", 3)) is None
    assert beat(w, "m1", 2, topic_partitions=owned(w, 0, 1)).reply.member_epoch == 3
    assert given(beat(w, "m2", 3)) == [2, 3]


def test_a_member_that_does_not_give_back_is_fenced() -> None:
    w = world(group_consumer_session_timeout_ms="45000")
    beat(w, "m1", 0, "t")
    beat(w, "m2", 0, "t")
    beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3))
    for _ in range(3):
        w.pass_ms(3000)
        beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3))
        beat(w, "m2", 3)
    w.pass_ms(1100)
    assert beat(w, "m1", 2).reply.error_code == Errors.UNKNOWN_MEMBER_ID
    assert given(beat(w, "m2", 3)) == [0, 1, 2, 3]


def test_a_lost_reply_is_made_good() -> None:
    w = world()
    beat(w, "m1", 0, "t")
    beat(w, "m2", 0, "t")
    beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3))
    beat(w, "m1", 2, topic_partitions=owned(w, 0, 1))  # the reply with epoch 3 is lost
    again = beat(w, "m1", 2, topic_partitions=owned(w, 0, 1))
    assert (again.reply.error_code, again.reply.member_epoch) == (0, 3)
    assert beat(w, "m1", 1, topic_partitions=owned(w, 0, 1)).reply.error_code == Errors.FENCED_MEMBER_EPOCH


def test_new_partitions_are_assigned_with_the_next_heartbeat() -> None:
    w = world(partitions=2)
    beat(w, "m1", 0, "t")
    r = m.CreatePartitionsRequest
    w.ask("CreatePartitions", 3, r(topics=[r.CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1000))
    assert given(beat(w, "m1", 2)) == [0, 1, 2]


def test_a_topic_that_is_made_later_reaches_its_subscribers() -> None:
    w = world()
    assert given(beat(w, "m1", 0, "later")) == []
    r = m.CreateTopicsRequest
    w.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="later", num_partitions=2, replication_factor=1)], timeout_ms=1000))
    assert given(beat(w, "m1", 2)) == [0, 1]
    d = m.DeleteTopicsRequest
    w.ask("DeleteTopics", 5, d(topic_names=["later"], timeout_ms=1000))
    assert given(beat(w, "m1", 3, topic_partitions=[])) == []


def test_expressions_are_resolved_elsewhere_and_again_when_topics_come() -> None:
    w = world()
    beat(w, "m1", 0, subscribed_topic_names=None, subscribed_topic_regex="t|u.*")
    w.pass_ms(5)
    assert given(beat(w, "m1", 1)) == [0, 1, 2, 3]
    r = m.CreateTopicsRequest
    w.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="unseen", num_partitions=1, replication_factor=1)], timeout_ms=1000))
    w.pass_ms(10_001)
    beat(w, "m1", 2)
    w.pass_ms(5)
    assert given(beat(w, "m1", 2)) == [0, 1, 2, 3, 0]
    assert beat(w, "m2", 0, subscribed_topic_names=None, subscribed_topic_regex="(").reply.error_code == Errors.INVALID_REGULAR_EXPRESSION


def test_while_a_group_settles_it_beats_faster_and_then_as_kafka_says() -> None:
    w = world()
    assert beat(w, "m1", 0, "t").reply.heartbeat_interval_ms == 100
    w.pass_ms(1001)
    assert beat(w, "m1", 2).reply.heartbeat_interval_ms == 5000
    strict = world(ottla_group_settle="false")
    assert beat(strict, "m1", 0, "t").reply.heartbeat_interval_ms == 5000


def test_a_groups_own_configuration_counts_within_the_brokers_bounds() -> None:
    w = world(ottla_group_settle="false")
    i = m.IncrementalAlterConfigsRequest
    changes = [
        i.AlterableConfig(name="consumer.heartbeat.interval.ms", value="7000"),
        i.AlterableConfig(name="consumer.session.timeout.ms", value="50000"),
    ]
    w.ask("IncrementalAlterConfigs", 1, i(resources=[i.AlterConfigsResource(resource_type=32, resource_name="g", configs=changes)]))
    assert beat(w, "m1", 0, "t").reply.heartbeat_interval_ms == 7000, "set before the group was there"
    w.pass_ms(49_000)
    assert beat(w, "m1", 2).reply.error_code == 0
    w.pass_ms(50_001)
    assert beat(w, "m1", 2).reply.error_code == Errors.UNKNOWN_MEMBER_ID


# the high watermark


def test_replies_wait_for_the_high_watermark() -> None:
    w = world()
    policy(w, "held")
    answers = [commit(w, 1), beat(w, "m1", 0, "t"), commit(w, 2)]
    w.pass_ms(1000)
    assert not any(a.done for a in answers)
    policy(w, "immediate")
    assert all(a.done for a in answers)
    assert (code(answers[0]), answers[1].reply.member_epoch, code(answers[2])) == (0, 2, 0)


def test_readers_see_what_is_committed() -> None:
    w = world()
    commit(w, 1)
    policy(w, "held")
    commit(w, 2)
    assert fetched(w).committed_offset == 1
    newest = fetched(w, stable=True)
    assert newest is None, "who asks for stable offsets waits for what it saw"
    policy(w, "immediate")
    assert fetched(w).committed_offset == 2


def test_a_reply_that_waited_too_long_leaves_with_kafkas_error_and_its_records_stay() -> None:
    w = world()
    policy(w, "held")
    late, joining = commit(w, 5), beat(w, "m1", 0, "t")
    w.pass_ms(5001)
    assert code(late) == Errors.COORDINATOR_NOT_AVAILABLE
    assert joining.reply.error_code == Errors.COORDINATOR_NOT_AVAILABLE
    policy(w, "immediate")
    assert fetched(w).committed_offset == 5


def test_an_append_that_fails_takes_back_what_it_decided() -> None:
    w = world()
    beat(w, "m1", 0, "t")
    host = w.broker.groups.host("g")
    host.partition.isr_size = 0
    refused = beat(w, "m2", 0, "t")
    assert refused.reply.error_code == Errors.COORDINATOR_NOT_AVAILABLE
    assert list(host.shard.groups["g"].members) == ["m1"]
    host.partition.isr_size = 1
    assert beat(w, "m2", 0, "t").reply.error_code == 0


def test_a_shard_moves_away_and_back() -> None:
    w = world()
    member = stable(w)
    commit(w, 3, "g", member, 1)
    waiting = join(w, version=3)
    host = w.broker.groups.host("g")
    w.broker.event(lambda: w.broker.groups.reload(host.partition))
    assert waiting.reply.error_code == Errors.NOT_COORDINATOR
    assert alive(w, member, 1) == 0
    assert fetched(w, "g").committed_offset == 3
    w.pass_ms(10_001)
    assert alive(w, member, 1) == Errors.UNKNOWN_MEMBER_ID, "its session began anew with the load, and is over now"


# offsets of transactions, as a Kafka's log may hold them


def test_offsets_of_a_transaction_are_pending_until_its_end() -> None:
    w = world()
    commit(w, 5)
    shard = w.broker.groups.host("s").shard
    k, v = m.OffsetCommitKey, m.OffsetCommitValue

    def pending(producer_id: int, offset: int, at: int, partition: int = 0) -> None:
        shard.replay(at, producer_id, 0, k(group="s", topic="t", partition=partition), v(offset=offset, metadata="", commit_timestamp=1))

    pending(7, 50, 100)
    assert fetched(w).committed_offset == 5
    assert fetched(w, stable=True).error_code == Errors.UNSTABLE_OFFSET_COMMIT
    shard.replay_marker(101, 7, 0, 0, committed=False)
    assert fetched(w, stable=True).committed_offset == 5
    pending(7, 60, 102)
    pending(8, 70, 103)
    shard.replay_marker(104, 8, 0, 0, committed=True)
    assert fetched(w, stable=True).error_code == Errors.UNSTABLE_OFFSET_COMMIT, "the other one is not over"
    shard.replay_marker(105, 7, 0, 0, committed=True)
    assert fetched(w, stable=True).committed_offset == 70, "the later record wins, whichever ends first"
    pending(9, 80, 106)
    shard.replay(107, -1, -1, k(group="s", topic="t", partition=0), None)
    shard.replay_marker(108, 9, 0, 0, committed=True)
    assert fetched(w, stable=True).committed_offset == -1, "a tombstone takes pending ones too"
    pending(9, 90, 109, partition=1)
    assert shard.expire().records == [], "a group with pending offsets does not expire"


# offsets that age


def test_offsets_of_a_simple_group_expire_with_the_group() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    commit(w, 1)
    w.pass_ms(58_000)
    assert fetched(w).committed_offset == 1
    w.pass_ms(4_000)
    assert fetched(w).committed_offset == -1
    assert w.send("ListGroups", 4, m.ListGroupsRequest()).reply.groups == []


def test_offsets_of_what_a_group_is_subscribed_to_do_not_expire() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    beat(w, "m1", 0, "t")
    commit(w, 1, "g", "m1", 2)
    for _ in range(20):
        w.pass_ms(30_000)
        beat(w, "m1", 2)
    assert fetched(w, "g").committed_offset == 1
    beat(w, "m1", -1)
    w.pass_ms(2_000)
    assert fetched(w, "g").committed_offset == -1


def test_offsets_of_a_classic_group_age_once_it_is_empty() -> None:
    """And while it is stable those of topics that nobody is subscribed to (KIP-211)."""
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000", group_max_session_timeout_ms="900000")
    r, c = m.CreateTopicsRequest, m.OffsetCommitRequest
    w.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="u", num_partitions=1, replication_factor=1)], timeout_ms=1000))
    joined = join(w, version=3, session_timeout_ms=900_000)
    w.pass_ms(300)
    member = joined.reply.member_id
    parts = [c.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topics = [c.OffsetCommitRequestTopic(name=name, partitions=parts) for name in ("t", "u")]
    sync(w, member, 1, **{member: b"all"})
    w.send("OffsetCommit", 8, c(group_id="g", member_id=member, generation_id_or_member_epoch=1, topics=topics))

    def kept() -> list[str]:
        f = m.OffsetFetchRequest
        found = w.send("OffsetFetch", 8, f(groups=[f.OffsetFetchRequestGroup(group_id="g", topics=None)])).reply.groups[0]
        return sorted(t.name for t in found.topics)

    w.pass_ms(58_000)
    assert kept() == ["t", "u"]
    w.pass_ms(4_000)
    assert kept() == ["t"], "nobody is subscribed to the other, and its commit is a minute old"
    w.pass_ms(120_000)
    assert kept() == ["t"]
    leaving = m.LeaveGroupRequest(group_id="g", members=[m.LeaveGroupRequest.MemberIdentity(member_id=member)])
    assert w.send("LeaveGroup", 5, leaving).reply.error_code == 0
    w.pass_ms(58_000)
    assert kept() == ["t"], "empty for less than a minute, however old the commit"
    w.pass_ms(4_000)
    assert kept() == []
    assert w.send("ListGroups", 4, m.ListGroupsRequest()).reply.groups == []


def test_metadata_is_measured_in_javas_units() -> None:
    w = world(offset_metadata_max_bytes="4")
    assert code(commit(w, 1, metadata="\U0001f600\U0001f600")) == 0
    assert code(commit(w, 1, metadata="\U0001f600\U0001f600x")) == Errors.OFFSET_METADATA_TOO_LARGE


def test_a_request_may_say_itself_how_long() -> None:
    w = world(offsets_retention_check_interval_ms="1000")
    commit(w, 1, version=4, retention_time_ms=5000)
    w.pass_ms(4_000)
    assert fetched(w).committed_offset == 1
    w.pass_ms(2_500)
    assert fetched(w).committed_offset == -1


def test_a_topic_takes_its_offsets_with_it_and_not_those_of_its_successor() -> None:
    w = world()
    commit(w, 1)
    d, r = m.DeleteTopicsRequest, m.CreateTopicsRequest
    w.ask("DeleteTopics", 5, d(topic_names=["t"], timeout_ms=1000))
    assert fetched(w).committed_offset == -1
    w.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000))
    commit(w, 2)
    from ottla.coordinator.group import offsets

    host = w.broker.groups.host("s")
    host.write_later(lambda: offsets.of_deleted_topic(host.shard, "t", b"another topic id"))
    w.broker.settle()
    assert fetched(w).committed_offset == 2


# assignors


def spec(members: dict[str, Any], counts: dict[bytes, int], homogeneous: bool = True) -> Spec:
    made = {i: MemberSpec(None, None, frozenset(topics), target) for i, (topics, target) in members.items()}
    return Spec(made, counts, homogeneous)


def test_range_gives_the_same_ranges_of_every_topic() -> None:
    found = range_assignor.assign(spec({"b": ([T, U], {}), "a": ([T, U], {})}, {T: 3, U: 3}))
    assert found == {"a": {T: frozenset((0, 1)), U: frozenset((0, 1))}, "b": {T: frozenset((2,)), U: frozenset((2,))}}


@pytest.mark.parametrize("seed", range(60))
def test_uniform_is_even_complete_and_sticky(seed: int) -> None:
    chance = random.Random(seed)
    topics = [bytes([n]) * 16 for n in range(chance.randint(1, 4))]
    counts = {t: chance.randint(1, 9) for t in topics}
    homogeneous = chance.random() < 0.5
    names = [f"m{n}" for n in range(chance.randint(1, 6))]
    subscribed = {i: topics if homogeneous else chance.sample(topics, chance.randint(1, len(topics))) for i in names}
    first = uniform.assign(spec({i: (subscribed[i], {}) for i in names}, counts, homogeneous))
    every = {(t, p) for t in {t for of in subscribed.values() for t in of} for p in range(counts[t])}
    assert sorted((t, p) for target in first.values() for t, of in target.items() for p in of) == sorted(every)
    if homogeneous:
        sizes = [sum(map(len, target.values())) for target in first.values()]
        assert max(sizes) - min(sizes) <= 1
    again = uniform.assign(spec({i: (subscribed[i], first[i]) for i in names}, counts, homogeneous))
    assert again == first, "nothing changed, nothing moves"
    if len(names) > 1:
        rest = names[1:]
        fewer = uniform.assign(spec({i: (subscribed[i], first[i]) for i in rest}, counts, homogeneous))
        for i in rest:
            if homogeneous:
                assert all(of <= fewer[i].get(t, frozenset()) for t, of in first[i].items()), "who stays keeps what it had"


def test_a_users_assignor_is_asked_and_its_mistakes_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_assignors")

    def all_to_first(given_spec: Spec) -> Any:
        first = min(given_spec.members)
        return {first: {t: set(range(n)) for t, n in given_spec.partition_counts.items()}}

    def wrong(given_spec: Spec) -> Any:
        return {member: {t: {0} for t in given_spec.partition_counts} for member in given_spec.members}

    module.all_to_first, module.wrong = all_to_first, wrong  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_assignors", module)
    w = world(group_consumer_assignors="uniform,my_assignors:all_to_first,my_assignors:wrong")
    assert given(beat(w, "m1", 0, "t", server_assignor="my_assignors:all_to_first")) == [0, 1, 2, 3]
    assert given(beat(w, "m2", 0, "t", server_assignor="my_assignors:all_to_first")) == []
    assert beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3)).reply.member_epoch == 3
    before = written(w)
    broken = beat(w, "w1", 0, "t", group="g2", server_assignor="my_assignors:wrong")
    beat(w, "w1", 2, group="g2")
    refused = beat(w, "w2", 0, "t", group="g2", server_assignor="my_assignors:wrong")
    assert (broken.reply.error_code, refused.reply.error_code) == (0, Errors.UNKNOWN_SERVER_ERROR)
    assert "given twice" in refused.reply.error_message
    assert written(w) == before, "the other group is as it was"
    assert beat(w, "m1", 3, server_assignor="nobody:knows").reply.error_code == Errors.UNSUPPORTED_ASSIGNOR
    with pytest.raises(ValueError, match="neither"):
        Assignors(["nonsense"])
    with pytest.raises(AssignorFailed):
        Assignors(["my_assignors:wrong"]).by_name("my_assignors:wrong")(spec({"a": ([T], {}), "b": ([T], {})}, {T: 1}))


# the way between the protocols


@pytest.mark.parametrize(("way", "works"), [("bidirectional", True), ("upgrade", True), ("downgrade", False), ("disabled", False)])
def test_a_classic_group_is_upgraded_where_that_is_allowed(way: str, works: bool) -> None:
    w = world(group_consumer_migration_policy=way)
    member = stable(w, b"")
    answer = beat(w, "m1", 0, "t")
    assert (answer.reply.error_code == 0) is works
    assert type(w.broker.groups.host("g").shard.groups["g"]).__name__ == ("ConsumerGroup" if works else "ClassicGroup")
    assert alive(w, member, 1) in (0, Errors.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize(("way", "works"), [("bidirectional", True), ("downgrade", True), ("upgrade", False)])
def test_a_consumer_group_is_downgraded_where_that_is_allowed(way: str, works: bool) -> None:
    w = world(group_consumer_migration_policy=way)
    beat(w, "m1", 0, "t")
    asked = join(w)
    member = asked.reply.member_id
    joined = join(w, member)
    assert joined.reply.error_code == 0
    beat(w, "m1", -1)
    assert type(w.broker.groups.host("g").shard.groups["g"]).__name__ == ("ClassicGroup" if works else "ConsumerGroup")


def test_a_hundred_histories_under_trouble_hold() -> None:
    """More of them, and deliberate bugs, in `test_sims`."""
    for seed in range(20_000, 20_100):
        sim_groups.run(seed)


# the time lines of seed 003


def test_a_zombies_commit_is_refused() -> None:
    """The text says ILLEGAL_GENERATION: so it is while the zombie is a member; once it was taken out it is nobody."""
    w = world()
    zombie = stable(w)
    second = join(w, version=3)
    alive(w, zombie, 1)
    again = join(w, zombie)
    assert second.reply.generation_id == again.reply.generation_id == 2
    assert code(commit(w, 1, "g", zombie, 1)) == Errors.ILLEGAL_GENERATION
    w.pass_ms(10_001)
    assert code(commit(w, 1, "g", zombie, 2)) == Errors.UNKNOWN_MEMBER_ID


def test_a_crash_is_noticed_one_session_after_the_last_heartbeat() -> None:
    """Heartbeats at 0 and 3 s, a crash at 5 s: with a session of 10 s the member is out at 13 s, and the others begin anew."""
    w = world()
    crashing = stable(w)
    other = join(w, version=3)
    assert alive(w, crashing, 1) == Errors.REBALANCE_IN_PROGRESS
    join(w, crashing)
    leader, member = (other.reply.leader, other.reply.member_id)
    assert leader == crashing
    sync(w, crashing, 2, **{crashing: b"1", member: b"2"})
    sync(w, member, 2)
    assert alive(w, crashing, 2) == 0
    w.pass_ms(3000)
    assert alive(w, crashing, 2) == alive(w, member, 2) == 0
    for _ in range(3):
        w.pass_ms(3300)
        assert alive(w, member, 2) == 0, "12.9 s: still there"
    w.pass_ms(101)
    assert alive(w, member, 2) == Errors.REBALANCE_IN_PROGRESS
    rejoined = join(w, member)
    assert (rejoined.reply.generation_id, rejoined.reply.leader) == (3, member)
