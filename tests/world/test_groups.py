"""Groups under virtual time: exact replies and records of each step, the high watermark, expiry, assignors.

Which test or check of the simulator (`tests/sim/groups.py`) holds each promise:

- the leader of its hashed partition serves a group: test_groups_live_where_kafka_puts_them
- a partition has one owner at any instant: `_check_owners`, test_a_partition_changes_hands
- acknowledged commits, joins and assignments survive a failover: `_check_commits`, `check_replay`, test_a_shard_moves
- replies leave when the high watermark has passed their records: test_replies_wait_for_the_high_watermark
- state is a function of the log: `check_replay`
- epochs never go back: `_check_epochs`
- reads see what is committed: test_readers_see_what_is_committed
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from ottla.broker.shards.loader import live_entries, log_entries
from ottla.coordinator.batch import size_of
from ottla.coordinator.group.classic.settling import GATHER_MAX_MS, GATHER_QUIET_MS
from ottla.coordinator.group.format import NO_EXPIRY, Commit, CommitKeys, Commits, GroupFormat
from ottla.coordinator.group.offsets.commit import Answers
from ottla.coordinator.group.offsets.long_commits import LongCommits
from ottla.coordinator.hashing import java_order, partition_for
from ottla.coordinator.packing import encode_batch
from ottla.coordinator.shard import Decision
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.java import java_hash
from ottla.protocol.records import Record, Template

from ..support.group_world import (
    alive,
    beat,
    code,
    commit,
    fetched,
    given,
    join,
    owned,
    stable,
    sync,
    world,
    written,
)

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
            "g" * chance.randint(1, 300),
            "töpic",
            chance.randint(0, 9),
            chance.randint(0, 1 << 60),
            chance.randint(-1, 9),
            text,
            1 << 40,
            topic_id,
        )
        plain = form.encode(one)
        found = form.decode(plain)
        assert found is not None
        assert (found[0] if isinstance(found[0], Commit) else None) in (one, None)
        count = chance.choice((1, 10, 100))
        expire_ms = chance.choice((NO_EXPIRY, NO_EXPIRY, 77))
        each = [
            one._replace(
                partition=n,
                offset=chance.randint(0, 1 << 60),
                leader_epoch=chance.randint(-1, 9),
                metadata=text[: chance.randint(0, len(text))],
                expire_ms=expire_ms,
            )
            for n in range(count)
        ]
        made = (
            CommitKeys(one.group, one.topic, topic_id, range(count)),
            one.commit_ms,
            [c.offset for c in each],
            [c.leader_epoch for c in each],
        )
        is_short = not text and expire_ms == NO_EXPIRY
        packed = Commits(*made) if is_short else LongCommits(*made, [c.metadata for c in each], expire_ms)
        encoded = [form.encode(c) for c in each]
        assert encode_batch([packed], 5, Template()) == encode_batch([*encoded], 5, Template())
        assert encode_batch([plain, packed, packed], 5, Template()) == encode_batch(
            [plain, *encoded, *encoded], 5, Template()
        )
        assert len(packed.pack(0)) <= packed.size <= sum(map(size_of, encoded))  # no fewer fit than one by one
        assert packed.stored(7) == {(c.topic, c.partition): c.stored(7 + n) for n, c in enumerate(each)}
    late = one._replace(expire_ms=77, topic_id=bytes(16))
    decoded = form.decode(form.encode(late))
    assert decoded is not None
    assert (decoded[1].expire_timestamp, decoded[1].offset) == (77, late.offset)


@pytest.mark.parametrize("version", [2, 8, 10])
@pytest.mark.parametrize("number", [1, 300])
def test_the_answers_of_accepted_commits_are_those_that_the_codec_makes(version: int, number: int) -> None:
    r = m.OffsetCommitResponse
    asked = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", topic_id=bytes(range(16)))
    indexes = [7 * n for n in range(number)]
    answers = Answers(r(), r.OffsetCommitResponseTopic, r.OffsetCommitResponsePartition, version, 10)
    answers.add(asked, indexes, {})
    (topic,) = codec.parse(r.__name__, version, codec.build(r.__name__, version, answers.response)).topics
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(index, 0) for index in indexes]


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
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    assert fetched(w).committed_offset == 29


# classic groups, record by record


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
    assert (left.generation, left.protocol_type, left.protocol, left.leader, left.members) == (
        2,
        "consumer",
        None,
        None,
        [],
    )


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


@pytest.mark.parametrize(("name", "members"), [("range", 2), ("stream", 1)])
def test_members_are_gathered_unless_their_only_protocol_is_that_of_streams(name: str, members: int) -> None:
    """The leader of a Streams application changes its metadata after its first generation; a second thread in that one
    would hear of it late.
    """
    w = world()
    protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=b"")]
    first = join(w, version=3, protocols=protocols)
    w.pass_ms(5)
    join(w, version=3, protocols=protocols)
    w.pass_ms(300)
    assert len(first.reply.members) == members


@pytest.mark.parametrize(("apart_ms", "generations"), [(50, [1, 1]), (GATHER_QUIET_MS, [1, 2])])
def test_members_are_gathered_until_none_has_come_for_a_while(apart_ms: int, generations: list[int]) -> None:
    """Clients of librdkafka that start together join up to 50 ms apart."""
    w = world()
    first = join(w, version=3)
    w.pass_ms(apart_ms)
    second = join(w, version=3)
    if generations[1] == 2:
        join(w, first.reply.member_id, version=3)
    w.pass_ms(GATHER_QUIET_MS)
    assert [first.reply.generation_id, second.reply.generation_id] == generations


def test_members_that_keep_coming_are_gathered_for_a_bounded_time() -> None:
    w = world()
    answers = [join(w, version=3)]
    for _ in range(GATHER_MAX_MS // 40):
        assert not answers[0].done
        answers.append(join(w, version=3))
        w.pass_ms(40)
    assert len(answers[0].reply.members) == len(answers)


def test_a_full_group_takes_no_member() -> None:
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
    assert [(kind, getattr(value, "epoch", None) or value.assignment_epoch) for kind, value in gone[3:]] == [
        (kinds[1], 3),
        (kinds[3], 3),
    ]


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
    w.ask(
        "CreatePartitions", 3, r(topics=[r.CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1000)
    )
    assert given(beat(w, "m1", 2)) == [0, 1, 2]


def test_a_topic_that_is_made_later_reaches_its_subscribers() -> None:
    w = world()
    assert given(beat(w, "m1", 0, "later")) == []
    r = m.CreateTopicsRequest
    w.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="later", num_partitions=2, replication_factor=1)], timeout_ms=1000),
    )
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
    w.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="unseen", num_partitions=1, replication_factor=1)], timeout_ms=1000),
    )
    w.pass_ms(10_001)
    beat(w, "m1", 2)
    w.pass_ms(5)
    assert given(beat(w, "m1", 2)) == [0, 1, 2, 3, 0]
    assert (
        beat(w, "m2", 0, subscribed_topic_names=None, subscribed_topic_regex="(").reply.error_code
        == Errors.INVALID_REGULAR_EXPRESSION
    )


def test_an_expression_is_resolved_again_after_a_long_write_was_refused_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a thread brings belongs to no write, and is not taken back with one."""
    w = world()
    threads: list[Callable[[], None]] = []
    with monkeypatch.context() as patch:
        patch.setattr(w.schedule, "in_thread", lambda work, done: threads.append(lambda: done(work(), None)))
        beat(w, "m1", 0, subscribed_topic_names=None, subscribed_topic_regex="t|u.*")
    refused: list[ApiError | None] = []

    def decision() -> Decision[None]:
        yield
        raise ApiError(Errors.STALE_MEMBER_EPOCH)

    host = w.broker.groups.host("g")
    host.write("commit-offset", lambda shard: decision(), lambda reply, error: refused.append(error))
    (resolved,) = threads
    resolved()
    w.pass_ms(5)
    assert [error and error.code for error in refused] == [Errors.STALE_MEMBER_EPOCH]
    assert given(beat(w, "m1", 1)) == [0, 1, 2, 3]
    assert not host.shard.resolving, "it is resolved again when there are more topics"


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
    w.ask(
        "IncrementalAlterConfigs",
        1,
        i(resources=[i.AlterConfigsResource(resource_type=32, resource_name="g", configs=changes)]),
    )
    assert beat(w, "m1", 0, "t").reply.heartbeat_interval_ms == 7000, "set before the group was there"
    w.pass_ms(49_000)
    assert beat(w, "m1", 2).reply.error_code == 0
    w.pass_ms(50_001)
    assert beat(w, "m1", 2).reply.error_code == Errors.UNKNOWN_MEMBER_ID
