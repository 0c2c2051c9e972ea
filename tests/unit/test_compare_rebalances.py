"""Groups at two brokers: generations of classic groups that stand for each other, and what consumers are assigned."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.compare.exchange import Exchange
from ottla.compare.pace import Pace
from ottla.compare.rebalances import UNEXPLAINED, Rebalances
from ottla.comparing.assignments import CONSUMER, Assignments, Heartbeat
from ottla.comparing.differences import Difference, differences
from ottla.comparing.generations import Round, Rounds
from ottla.comparing.identities import MEMBER, MEMBER_EPOCH, TOPIC, Identities
from ottla.comparing.owners import Owners

GROUP = "g"
MINE, ITS = bytes(15) + b"\x01", bytes(15) + b"\x02"


def id_of(broker: str, member: str) -> str:
    return f"{member}-{broker * 8}-{broker * 4}-{broker * 4}-{broker * 4}-{broker * 12}"


AX, AY = (id_of("a", one) for one in "xy")


def joined(broker: str, member: str, leader: str, *members: str, generation: int = 1, code: int = 0) -> Any:
    row = m.JoinGroupResponse.JoinGroupResponseMember
    reply = m.JoinGroupResponse(error_code=code, generation_id=generation, protocol_name="range")
    reply.member_id, reply.leader = id_of(broker, member), id_of(broker, leader)
    reply.members = [row(member_id=id_of(broker, one), metadata=one.encode()) for one in members]
    return reply


@pytest.fixture
def ids() -> Identities:
    return Identities()


@pytest.fixture
def rounds(ids: Identities) -> Rounds:
    return Rounds(ids)


def both(found: Round, member: str, *, generation: int = 4, leader: str = "x", members: str = "xy") -> tuple[Any, Any]:
    """The replies of both; A's leader is x."""
    a = joined("a", member, "x", *("xy" if member == "x" else ""))
    b = joined("b", member, leader, *(members if member == leader else ""), generation=generation)
    found.take_b(a, b)
    return a, b


def round_of_two(rounds: Rounds) -> Round:
    found = [rounds.take_a(GROUP, joined("a", one, "x", *("xy" if one == "x" else ""))) for one in "yx"]
    assert found[0] is found[1]
    assert found[0] is not None
    return found[0]


def test_a_round_is_whole_when_a_generation_of_b_has_the_same_members(rounds: Rounds, ids: Identities) -> None:
    found = round_of_two(rounds)
    assert found.members == frozenset((AX, AY))
    both(found, "x", generation=4, members="x")
    assert not found.is_whole
    both(found, "y", generation=5)
    assert not found.is_whole, "x was told of the generation before"
    found.join_again(AX)
    assert not found.is_whole
    both(found, "x", generation=5)
    assert found.is_whole
    both(found, "x", generation=5, members="xyz")
    assert not found.is_whole, "only B has z"
    for one in "xy":
        assert ids.of_b(MEMBER, {}, id_of("a", one)) == id_of("b", one)
        assert ids.of_b(MEMBER_EPOCH, {"group_id": GROUP, "member_id": id_of("a", one)}, 1) == 5


def test_another_leader_of_b_does_what_that_of_a_does(rounds: Rounds, ids: Identities) -> None:
    found = round_of_two(rounds)
    replies = [both(found, one, leader="y") for one in "xy"]
    assert found.is_whole
    assert found.other_leader == AY
    for a, b in replies:
        assert not differences(a, found.comparable(a, b), ids, {"group_id": GROUP})
    r = m.SyncGroupRequest
    leads = r(group_id=GROUP, generation_id=1, member_id=AX)
    leads.assignments = [r.SyncGroupRequestAssignment(member_id=one, assignment=b"1") for one in (AX, AY)]
    follows = r(group_id=GROUP, generation_id=1, member_id=AY)
    assert rounds.take_request(leads)
    assert not rounds.take_request(follows)
    behalf = found.on_behalf(leads)
    assert behalf is not None
    assert (behalf.member_id, behalf.assignments) == (AY, leads.assignments)
    assert found.on_behalf(follows) is None
    sent = r(group_id=GROUP, generation_id=1, member_id=AY)
    found.assign(sent)
    assert sent.assignments == leads.assignments
    found.assign(leads)
    assert not leads.assignments


def test_what_b_says_wrongly_of_its_leader_is_a_difference(rounds: Rounds, ids: Identities) -> None:
    """Of a leader that was told no list, of one that is no member, and of members with other metadata."""
    found = round_of_two(rounds)
    for one in "xy":
        both(found, one, leader="y")
    for wrong in (joined("b", "x", "x", generation=4), joined("b", "x", "z", generation=4)):
        a = joined("a", "x", "x", "x", "y")
        assert differences(a, found.comparable(a, wrong), ids, {"group_id": GROUP})
    a, b = both(found, "y", leader="y")
    b.members[0].metadata = b"another"
    a, b = both(found, "x", leader="y")
    paths = [one.path for one in differences(a, found.comparable(a, b), ids, {"group_id": GROUP})]
    assert paths == [f"members[{AX}].metadata"]


def test_a_list_of_members_does_not_change_who_stands_for_whom(rounds: Rounds, ids: Identities) -> None:
    found = round_of_two(rounds)
    for one in "xy":
        both(found, one)
    assert differences(joined("a", "x", "y"), joined("b", "x", "x"), ids)
    assert ids.of_b(MEMBER, {}, AY) == id_of("b", "y")


def test_a_group_that_assigns_by_itself_has_no_rounds(rounds: Rounds) -> None:
    reply = joined("a", "x", "x")
    reply.leader = ""
    assert rounds.take_a(GROUP, reply) is None
    assert rounds.take_a(GROUP, joined("a", "x", "x", code=Errors.UNKNOWN_MEMBER_ID)) is None


def exchange(api: str, request: Any, at: int, *, finished_at: int = 0) -> Exchange:
    made = Exchange(b"", 0, 0, 0, api, request, 0)
    made.came_at, made.finished_at = at, finished_at
    return made


@pytest.mark.parametrize(
    ("other", "finished_at", "is_explained"),
    [("LeaveGroup", 0, True), ("LeaveGroup", 6, True), ("LeaveGroup", 4, False), (None, 0, False)],
)
@pytest.mark.parametrize("api", ["Heartbeat", "SyncGroup"])
def test_a_rebalance_that_only_b_tells_of_needs_a_reason(
    ids: Identities, api: str, other: str | None, finished_at: int, is_explained: bool
) -> None:
    rebalances = Rebalances(ids)
    if other is not None:
        rebalances.begin(exchange(other, m.LeaveGroupRequest(group_id=GROUP), 3, finished_at=finished_at))
    rebalances.begin(exchange("LeaveGroup", m.LeaveGroupRequest(group_id="another"), 5))
    asked = {"Heartbeat": m.HeartbeatRequest, "SyncGroup": m.SyncGroupRequest}[api](group_id=GROUP, member_id=AX)
    told = [Difference("error_code", 0, Errors.REBALANCE_IN_PROGRESS)]
    found = rebalances.explained(exchange(api, asked, 5), told)
    if is_explained:
        assert found == (None if api == "SyncGroup" else told)
    else:
        assert found == [Difference("error_code", 0, UNEXPLAINED)]
    behind = [Difference("error_code", Errors.REBALANCE_IN_PROGRESS, 0)]
    assert rebalances.explained(exchange(api, asked, 5), behind) == behind


def test_a_generation_begins_at_b_when_the_one_before_is_complete(ids: Identities) -> None:
    """A is further: without that, the one before would get a member too many at B."""
    rebalances = Rebalances(ids)

    class Joining(Exchange):
        said: Any = None

        def reply(self, frame: bytes) -> Any:
            return self.said

    def joining(member: str, at: int, generation: int) -> Joining:
        made = Joining(b"", 11, 5, 0, "JoinGroup", m.JoinGroupRequest(group_id=GROUP, member_id=id_of("a", member)), 0)
        made.came_at, made.answer, made.said = at, b"", joined("a", member, member, member, generation=generation)
        rebalances.begin(made)
        rebalances.take_a(made)
        made.answered.set()
        return made

    async def turns() -> None:
        later, earlier = joining("y", 1, 2), joining("x", 2, 1)
        await asyncio.wait_for(rebalances.turn(earlier), 10)
        waiting = asyncio.ensure_future(rebalances.turn(later))
        await asyncio.sleep(0)
        assert not waiting.done()
        earlier.done.set()
        await asyncio.wait_for(waiting, 10)

    asyncio.run(turns())


class Answered(Exchange):
    """A heartbeat with the epoch of A's reply."""

    epoch = 0

    def reply(self, frame: bytes) -> Any:
        return m.ConsumerGroupHeartbeatResponse(member_epoch=self.epoch)


def test_heartbeats_have_the_order_of_a_by_its_epochs() -> None:
    pace = Pace()

    def asked(epoch: int, connection: object) -> Answered:
        made = Answered(b"", 68, 1, 0, CONSUMER, m.ConsumerGroupHeartbeatRequest(group_id=GROUP, member_epoch=epoch), 0)
        pace.begin(made, connection)
        return made

    def answer(one: Answered, epoch: int) -> None:
        one.epoch = epoch
        pace.take_a(one)

    other, first, second = asked(3, "c"), asked(0, "a"), asked(0, "b")
    answer(second, 5)
    assert not second.is_placed.is_set(), "the other one may have joined before"
    answer(other, 3)
    following = asked(5, "b")
    answer(following, 5)
    leaving = asked(-1, "b")
    answer(leaving, -1)
    answer(first, 4)
    order = [other, first, second, following, leaving]
    for number, one in enumerate(order):
        assert one.is_placed.is_set()
        assert one.after == tuple(before.done for before in order[:number])
    for one in (other, first):
        pace.finish(one)
    later = asked(5, "c")
    answer(later, 5)
    assert later.after == (second.done, following.done, leaving.done)
    gone, waiting = asked(0, "d"), asked(0, "e")
    answer(waiting, 6)
    assert not waiting.is_placed.is_set()
    pace.finish(gone)
    assert waiting.is_placed.is_set(), "A will not answer the one that has gone"


def rows(topic: bytes, *partitions: int) -> Any:
    return {"topic_partitions": [{"topic_id": topic.hex(), "partitions": list(partitions)}]}


def beat(member: str, *partitions: int, epoch: int = 1) -> Heartbeat:
    reply: dict[str, object] = {"member_id": member, "member_epoch": epoch}
    if partitions:
        reply["assignment"] = rows(MINE, *partitions)
    return Heartbeat(CONSUMER, {"group_id": GROUP, "member_id": member, "member_epoch": epoch}, reply)


def told(member: str, *partitions: int) -> dict[str, object]:
    return {"member_id": member, "member_epoch": 7, "assignment": rows(ITS, *partitions)}


def owning(member: str, *partitions: int, epoch: int = 1) -> m.ConsumerGroupHeartbeatRequest:
    r = m.ConsumerGroupHeartbeatRequest
    row = r.TopicPartitions(topic_id=MINE, partitions=list(partitions))
    return r(group_id=GROUP, member_id=member, member_epoch=epoch, topic_partitions=[row])


def test_a_member_owns_at_b_what_b_has_given_it(ids: Identities) -> None:
    assignments = Assignments(ids)
    ids.match(TOPIC, {}, MINE, ITS)
    assignments.take(beat("x", 0, 1), told("x", 4, 5))
    for owned, expected in (((0, 1), [4, 5]), ((0, 1, 2), None)):
        message = owning("x", *owned)
        assignments.prepare(CONSUMER, owning("x", *owned), message)
        found = message.topic_partitions
        assert (None if found is None else [(one.topic_id, one.partitions) for one in found]) == (
            None if expected is None else [(ITS, expected)]
        )
    again: Any = assignments.again(beat("x", 0, 1))
    assert (again.member_epoch, again.topic_partitions[0].partitions) == (7, [4, 5])


def test_of_several_members_one_may_have_more_at_b_for_a_moment(ids: Identities) -> None:
    assignments, alone = Assignments(ids), Assignments(ids)
    alone.take(beat("x", 0), told("x", 0, 1))
    assert alone.is_behind(beat("x", 0))
    assignments.note(CONSUMER, owning("y", epoch=0))
    assignments.take(beat("x", 0), told("x", 0, 1))
    assert not assignments.is_behind(beat("x", 0))
    said, left = assignments.settle(beat("x", 0), told("x", 0, 1))
    assert said["assignment"] == left["assignment"]
    assert assignments.is_behind(beat("x", 0, 1, 2)), "less is a difference"
    said, left = assignments.settle(beat("x", 0, 1, 2), told("x", 0, 1))
    assert (said["assignment"], left["assignment"]) == ([3], [2])


def test_what_a_has_told_counts_until_it_tells_something_else(ids: Identities) -> None:
    assignments = Assignments(ids)
    asked = owning("x")

    def answered(*partitions: int, epoch: int = 2) -> Heartbeat:
        found = rows(MINE, *partitions) if partitions else None
        reply = m.ConsumerGroupHeartbeatResponse(member_id="x", member_epoch=epoch)
        reply.assignment = found  # what it is does not matter
        return beat("x", *partitions)._replace(number=assignments.answered(CONSUMER, asked, reply))

    first = answered(0, 1, 2)
    assignments.take(first, told("x", 0))
    assert assignments.is_behind(first)
    answered()
    assert assignments.is_behind(first), "it still has the same"
    second = answered(0)
    assert not assignments.is_behind(first)
    assert assignments.settle(first, told("x", 0))[1]["assignment"] == [3]
    assert not assignments.is_behind(second)
    assignments.answered(CONSUMER, owning("x", epoch=-1), m.ConsumerGroupHeartbeatResponse())
    assert not assignments.is_behind(beat("x", 0, 1)._replace(number=second.number)), "it has left"


def test_a_partition_of_two_members_is_a_difference_whichever_broker_gives_it(ids: Identities) -> None:
    assignments = Assignments(ids)

    def a_says(member: str, *partitions: int, epoch: int = 1, error: int = 0) -> None:
        r = m.ConsumerGroupHeartbeatResponse
        given = r.Assignment(topic_partitions=[r.TopicPartitions(topic_id=MINE, partitions=list(partitions))])
        reply = r(member_id=member, member_epoch=epoch, error_code=error, assignment=given if partitions else None)
        assignments.answered(CONSUMER, owning(member, epoch=epoch), reply)

    a_says("x", 0, 1)
    a_says("y", 1, 2)
    a_says("x")
    assert assignments.twice() == [], "the request may have come before"
    a_says("x")
    path = f"groups[{GROUP}].assigned[{MINE.hex()}-1].members"
    assert assignments.twice() == [Difference(path, ["x", "y"], "one member")]
    a_says("x")
    assert assignments.twice() == [], "once"
    assignments.take(beat("x"), told("x", 5))
    assignments.take(beat("y"), told("y", 5))
    for _ in range(2):
        assignments.take_other((CONSUMER, GROUP, "x"), {"member_id": "x", "member_epoch": 7})
    assert assignments.twice() == [
        Difference(f"groups[{GROUP}].assigned[{ITS.hex()}-5].members", "one member", ["x", "y"])
    ]


@pytest.mark.parametrize("over", ["given back", "left", "begun again", "refused", "left by the younger"])
def test_a_partition_that_went_from_one_member_to_another_is_of_one(over: str) -> None:
    owners = Owners()
    assert owners.told("g", "x", {MINE: [0, 1]}) == []
    if over == "given back":
        owners.told("g", "x", {MINE: [0]})
    elif over != "left by the younger":
        owners.gone("g", "x")
    owners.told("g", "y", {MINE: [1]})
    if over == "begun again":
        owners.told("g", "x", {MINE: [0]})
    if over == "left by the younger":
        assert owners.told("g", "x", None) == []
        owners.told("g", "y", {})
    for _ in range(3):
        assert owners.told("g", "x", None) == []
        assert owners.told("g", "y", None) == []
        assert owners.told("other", "x", {MINE: [1]}) == [], "another group has partitions of its own"


def test_the_odd_partition_may_be_anothers(ids: Identities) -> None:
    assignments = Assignments(ids)
    assignments.take(beat("y", 0, 1), told("y", 0, 1, 2))
    assignments.take(beat("x", 2, 3, 4), told("x", 3, 4))
    assert not assignments.is_behind(beat("x", 2, 3, 4))
    assert assignments.is_behind(beat("x", 2, 3, 4, 5))
    others = [(key[2], found.topic_partitions[0].partitions) for key, found in assignments.others(beat("x", 2))]  # type: ignore[attr-defined]
    assert others == [("y", [0, 1, 2])]
    assignments.take_other((CONSUMER, GROUP, "y"), {"error_code": Errors.UNKNOWN_MEMBER_ID})
    assert not list(assignments.others(beat("x", 2)))
