"""Replies of a group's coordinator wait for the high watermark, and go back with what cannot be appended."""

from __future__ import annotations

import re

from ottla.broker.watermark_policies import Policies
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.protocol.errors import Errors

from ..support.at_once import IN_WORLD
from ..support.failing_appends import fail_appends
from ..support.group_world import (
    alive,
    beat,
    code,
    commit,
    fetched,
    join,
    policy,
    stable,
    sync,
    sync_in,
    world,
    written,
)
from ..support.world import Answer, World

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


def test_a_policy_for_every_topic_delays_coordinators_and_changes_nothing_else() -> None:
    """`*:lag=20ms`: commits, joins, assignments and heartbeats that write are answered 20 ms later, with the same
    replies and records.
    """

    def history(w: World) -> tuple[list[int], str]:
        waits, replies = [], []

        def timed(answer: Answer) -> None:
            waited = 0
            while not answer.done and waited < 1000:
                w.pass_ms(1)
                waited += 1
            waits.append(waited)
            replies.append(answer.reply)

        timed(commit(w, 1))
        timed(beat(w, "m1", 0, "t"))
        timed(beat(w, "m1", 2))
        member = join(w, group_id="c", version=3)
        timed(member)
        timed(sync_in(w, "c", member.reply.member_id, 1, {member.reply.member_id: b"all"}))
        records = [written(w, group) for group in ("g", "s", "c")]
        return waits, re.sub(r"\b17000000\d{5}\b", "now", repr([replies, records]))

    at_once, expected = history(world(4, **IN_WORLD))
    delayed, found = history(world(4, **IN_WORLD, ottla_high_watermark="*:lag=20ms"))
    assert at_once == [0, 0, 0, 1, 0], "the first rebalance is begun by a timer"
    assert delayed == [20, 20, 0, 1, 20], "what writes nothing has nothing to wait for"
    assert found == expected


def test_policies_hold_by_how_particular_they_are() -> None:
    policies = Policies()
    policies.configure(["*:lag=20ms", "t:held"], [])
    assert (
        str(policies.of("__consumer_offsets", 0, internal=True))
        == str(policies.of("u", 0, internal=False))
        == "lag=20ms"
    )
    assert policies.metadata_lag_ms() == 20
    policies.configure(["bytes=7"], [])
    assert [str(policies.of(*of)) for of in (("u", 0, False), ("t", 0, False), ("__share_group_state", 0, True))] == [
        "bytes=7",
        "held",
        "lag=20ms",
    ]
    policies.configure(["*:held"], [])
    assert policies.metadata_lag_ms() == 0, "the metadata log is never held"


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
    fail_appends(w, host.partition)
    refused = beat(w, "m2", 0, "t")
    assert refused.reply.error_code == Errors.NOT_COORDINATOR
    group = host.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert list(group.members) == ["m1"]
    fail_appends(w)
    assert beat(w, "m2", 0, "t").reply.error_code == 0


def test_an_assignment_that_cannot_be_stored_is_an_error_for_all_members() -> None:
    """GroupMetadataManager resets the assignment, and the group rebalances again."""
    w = world()
    answers = [join(w, version=3), join(w, version=3)]
    w.pass_ms(300)
    leader, other = (answer.reply.member_id for answer in answers)
    waiting = sync(w, other, 1)
    partition = w.broker.groups.host("g").partition
    fail_appends(w, partition)
    refused = sync(w, leader, 1, **{leader: b"one", other: b"two"})
    for answer in (waiting, refused):
        reply = answer.reply
        assert (reply.error_code, reply.assignment) == (Errors.NOT_COORDINATOR, b"")
        assert (reply.protocol_type, reply.protocol_name) == (None, None)
    assert [alive(w, member, 1) for member in (leader, other)] == [Errors.REBALANCE_IN_PROGRESS] * 2
    fail_appends(w)
    again = [join(w, member, version=3) for member in (other, leader)]
    assert [answer.reply.generation_id for answer in again] == [2, 2]
    assert sync(w, leader, 2, **{leader: b"one", other: b"two"}).reply.assignment == b"one"
    assert sync(w, other, 2).reply.assignment == b"two"


def test_a_shard_moves_away_and_back() -> None:
    w = world()
    member = stable(w)
    commit(w, 3, "g", member, 1)
    waiting = join(w, version=3)
    host = w.broker.groups.host("g")
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    assert waiting.reply.error_code == Errors.NOT_COORDINATOR
    assert alive(w, member, 1) == 0
    assert fetched(w, "g").committed_offset == 3
    w.pass_ms(10_001)
    assert alive(w, member, 1) == Errors.UNKNOWN_MEMBER_ID, "its session began again with the load, and is over now"
