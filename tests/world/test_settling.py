"""How a classic group settles without Kafka's initial delay: an assignment by a leader that knows of no partitions."""

from __future__ import annotations

import pytest
from ottla.coordinator.group.classic.settling import GATHER_QUIET_MS
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.at_once import IN_WORLD
from ..support.group_world import join, sync, world
from ..support.world import Answer, World

OWNED = m.ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[0])
ASSIGNED = m.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0])


def subscription(*owned: m.ConsumerProtocolSubscription.TopicPartition, topics: tuple[str, ...] = ("t",)) -> bytes:
    said = m.ConsumerProtocolSubscription(topics=list(topics), owned_partitions=list(owned))
    return bytes(codec.build("ConsumerProtocolSubscription", 1, said, bytearray(b"\0\1")))


def subscription_of_kafka_go() -> bytes:
    """Version 1, without the owned partitions."""
    said = m.ConsumerProtocolSubscription(topics=["t"])
    return bytes(codec.build("ConsumerProtocolSubscription", 0, said, bytearray(b"\0\1")))


def assignment(*assigned: m.ConsumerProtocolAssignment.TopicPartition, user_data: bytes | None = None) -> bytes:
    given = m.ConsumerProtocolAssignment(assigned_partitions=list(assigned), user_data=user_data)
    return bytes(codec.build("ConsumerProtocolAssignment", 1, given, bytearray(b"\0\1")))


EMPTY = assignment()


def joined(w: World, member: str = "", metadata: bytes | None = None) -> Answer:
    data = subscription() if metadata is None else metadata
    return join(
        w, member, version=3, protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=data)]
    )


def two(w: World) -> tuple[str, str]:
    """A leader and another member in the first generation."""
    answers = [joined(w), joined(w)]
    w.pass_ms(GATHER_QUIET_MS)
    leader, other = (answer.reply.member_id for answer in answers)
    assert answers[0].reply.leader == leader
    return leader, other


def test_a_leader_that_knows_of_no_partitions_has_all_members_join_again() -> None:
    w = world()
    leader, other = two(w)
    waits = [sync(w, other, 1), sync(w, leader, 1, **{leader: EMPTY, other: EMPTY})]
    w.pass_ms(149)
    assert not any(answer.done for answer in waits), "time for the leader's metadata"
    w.pass_ms(1)
    assert [answer.reply.error_code for answer in waits] == [Errors.REBALANCE_IN_PROGRESS] * 2
    again = [joined(w, member) for member in (other, leader)]
    assert [answer.reply.generation_id for answer in again] == [2, 2], "nothing waits for a heartbeat"
    sync(w, leader, 2, **{leader: assignment(ASSIGNED), other: EMPTY})
    assert sync(w, leader, 2).reply.assignment == assignment(ASSIGNED)


def test_a_member_whose_metadata_end_before_the_owned_partitions_owns_none() -> None:
    w = world()
    first = joined(w, metadata=subscription_of_kafka_go())
    w.pass_ms(GATHER_QUIET_MS)
    answer = sync(w, first.reply.member_id, 1, **{first.reply.member_id: EMPTY})
    assert not answer.done, "time for the leader's metadata"
    w.pass_ms(150)
    assert answer.reply.error_code == Errors.REBALANCE_IN_PROGRESS


def test_an_empty_assignment_is_taken_after_as_long_as_kafka_waits() -> None:
    """The topics may not exist. Later rebalances of the same members do not wait again."""
    w = world()
    leader, other = two(w)
    began = w.schedule.monotonic_ms()
    for generation in (1, 2, 3):
        answer = sync(w, leader, generation, **{leader: EMPTY, other: EMPTY})
        w.pass_ms(2400)
        assert answer.reply.error_code == Errors.REBALANCE_IN_PROGRESS
        assert joined(w, other).done is False
        assert joined(w, leader).reply.generation_id == generation + 1
    assert sync(w, leader, 4, **{leader: EMPTY, other: EMPTY}).reply.error_code == 0
    assert w.schedule.monotonic_ms() - began == 3 * 2400
    third = joined(w)
    assert [joined(w, member).done for member in (leader, other)] == [False, True]
    assert third.reply.generation_id == 5
    assert sync(w, leader, 5, **{leader: EMPTY}).reply.error_code == 0


def test_a_member_that_joins_meanwhile_ends_the_wait() -> None:
    w = world()
    leader, other = two(w)
    waits = [sync(w, other, 1), sync(w, leader, 1, **{leader: EMPTY, other: EMPTY})]
    third = joined(w)
    assert [answer.reply.error_code for answer in waits] == [Errors.REBALANCE_IN_PROGRESS] * 2
    for member in (leader, other):
        joined(w, member)
    assert third.reply.generation_id == 2
    answer = sync(w, leader, 2, **{leader: assignment(ASSIGNED)})
    w.pass_ms(200)
    assert answer.reply.error_code == 0, "the timer of the first generation has no effect on the second"


@pytest.mark.parametrize(
    ("metadata", "given", "settings"),
    [
        (subscription(), assignment(ASSIGNED), {}),
        (subscription(), assignment(user_data=b"streams"), {}),
        (subscription(), b"", {}),
        (subscription(topics=()), EMPTY, {}),
        (subscription(OWNED), EMPTY, {}),
        (b"\0", EMPTY, {}),
        (subscription(), EMPTY, IN_WORLD),
        (subscription(), EMPTY, {"group_initial_rebalance_delay_ms": "1"}),
    ],
    ids=["partitions", "user data", "unknown", "no topics", "cooperative", "metadata", "not settling", "a delay"],
)
def test_other_assignments_are_taken_at_once(metadata: bytes, given: bytes, settings: dict[str, str]) -> None:
    w = world(4, **settings)
    first = joined(w, metadata=metadata)
    w.pass_ms(GATHER_QUIET_MS)
    leader = first.reply.member_id
    assert sync(w, leader, 1, **{leader: given}).reply.assignment == given
