"""The network is parted: nodes reach those on their own side alone, and one side has the active controller."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ottla.broker.config.nodes import NodeRefused
from ottla.broker.later import Later, drive
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.lab import LabWorld
from ..support.node_world import SMALL, create, happens, produce, records, state
from ..support.world import Answer, World

FETCH_MS = 2_000  # controller.quorum.fetch.timeout.ms
SESSION_MS = 9_000  # broker.session.timeout.ms
LAG_MS = 30_000  # replica.lag.time.max.ms


def five(controller: int = -1, nodes: int = 5, **settings: str) -> World:
    """Nodes with the topic `t`, led by node 4, with replicas on 4, 5 and 1."""
    w = World(None, 0, **{"ottla_nodes": str(nodes), "ottla_controller_node": str(controller), **SMALL, **settings})
    if nodes == 5:
        create(w, "t", [4, 5, 1])
    return w


def parting(w: World, *sides: Sequence[int]) -> Later[None]:
    lives = w.broker.node_lives
    done = drive(lives.part([[lives.find(node) for node in side] for side in sides]))
    w.broker.turn.settle()
    return done


def part(w: World, *sides: Sequence[int]) -> None:
    parting(w, *sides).get()


def join(w: World) -> None:
    """Ends the partition, and lets a controller be elected if there is none."""
    done = drive(w.broker.node_lives.join())
    w.broker.turn.settle()
    w.pass_ms(FETCH_MS + 10)
    done.get()


def sent(w: World, node: int, timeout_ms: int = 120_000, topic: str = "t") -> Answer:
    """Produces with acks=all at a node."""
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send("Produce", 10, produce_message(topic, batch(b"v"), 0, -1, timeout_ms))
    w.dispatcher = before
    return answer


def code(answer: Answer) -> str:
    return Errors(answer.reply.responses[0].partition_responses[0].error_code).name


def alive(w: World) -> list[int]:
    return [one.id for one in w.broker.alive()]


def problems(w: World, topic: str) -> list[str]:
    found: list[str] = LabWorld(w).ask(f"GET /v1/partitions/{topic}/0")["problems"]
    return found


def ends(w: World, topic: str = "t") -> dict[int, int]:
    """How far the replicas have the log."""
    one = w.broker.partitions.get(topic, 0)
    assert one.replica_set is not None
    return {node: end for node, end, _ in one.replica_set.views(one.end_offset, one.follower.replicated)}


# who has the controller


@pytest.mark.parametrize("active", [1, 4])
@pytest.mark.parametrize("sides", [([1, 2, 3], [4, 5]), ([4, 5], [1, 2, 3])])
def test_the_side_with_most_voters_has_or_elects_a_controller(active: int, sides: tuple[list[int], ...]) -> None:
    w = five(active)
    part(w, *sides)
    assert w.broker.metadata.quorum.leader == (1 if active == 1 else -1)
    w.pass_ms(FETCH_MS + 10)
    assert w.broker.metadata.quorum.leader == 1


@pytest.mark.parametrize("sides", [([1, 2], [3, 4]), ([1, 2], [3], [4])])
def test_without_a_majority_there_is_no_controller_until_the_sides_join(sides: tuple[list[int], ...]) -> None:
    """Nor is any node fenced, as no controller hears that its session has expired."""
    w = five(1, nodes=4)
    part(w, *sides)
    w.pass_ms(3 * SESSION_MS)
    assert (w.broker.metadata.quorum.leader, alive(w)) == (-1, [1, 2, 3, 4])
    join(w)
    assert w.broker.metadata.quorum.leader > 0
    w.pass_ms(3 * SESSION_MS)
    assert alive(w) == [1, 2, 3, 4]


@pytest.mark.parametrize("others", [[3, 4], [3, 4, 5]])
def test_a_controller_that_loses_the_majority_answers_until_it_resigns(others: list[int]) -> None:
    """It changes nothing meanwhile. A node that waits for a change does not reach it for more. The others may have
    elected one by then.
    """
    w = five(1, nodes=2 + len(others))
    part(w, [1, 2], others)
    w.pass_ms(FETCH_MS * 3 // 2 - 100)
    for node in (1, 2):
        assert leader(asked_at(w, node, "DescribeQuorum")) == (1, 1)
        assert asked_at(w, node, "ListPartitionReassignments").reply.error_code == 0
    assert asked_at(w, 3, "DescribeQuorum").done is (len(others) == 3)
    waiting = [asked_at(w, 1, name) for name in ("CreateTopics", "DescribeQuorum", "ListPartitionReassignments")]
    w.pass_ms(200)
    waiting.append(asked_at(w, 2, "DescribeQuorum"))
    w.pass_ms(FETCH_MS)
    assert not any(one.done for one in waiting)
    join(w)
    assert leader(waiting[1]) == leader(waiting[3]) == (3 if len(others) == 3 else 1, 2)
    assert waiting[0].reply.topics[0].error_code == waiting[2].reply.error_code == 0


def test_a_controller_that_is_reached_again_in_time_goes_on() -> None:
    w = five(1)
    part(w, [1], [2, 3], [4, 5])
    w.pass_ms(FETCH_MS * 3 // 2 - 100)
    assert leader(asked_at(w, 1, "DescribeQuorum")) == (1, 1)
    join(w)
    assert leader(asked_at(w, 1, "DescribeQuorum")) == leader(asked_at(w, 5, "DescribeQuorum")) == (1, 1)
    happens(w, "cut", 1)
    w.pass_ms(FETCH_MS - 100)
    happens(w, "heal", 1)
    happens(w, "cut", 1)
    w.pass_ms(FETCH_MS - 100)
    happens(w, "pause", 1)
    happens(w, "resume", 1)
    assert leader(asked_at(w, 1, "DescribeQuorum")) == (1, 1)
    w.pass_ms(FETCH_MS)
    assert not asked_at(w, 1, "DescribeQuorum").done, "it has resigned"
    assert leader(asked_at(w, 2, "DescribeQuorum")) == (2, 2)


def asked_at(w: World, node: int, name: str) -> Answer:
    """Asks a node something that it forwards to the controller."""
    r, move, create_ = m.DescribeQuorumRequest, m.ListPartitionReassignmentsRequest, m.CreateTopicsRequest
    log = r.TopicData(topic_name="__cluster_metadata", partitions=[r.PartitionData(partition_index=0)])
    topic = create_.CreatableTopic(name="late", num_partitions=1, replication_factor=1)
    version, message = {
        "DescribeQuorum": (2, r(topics=[log])),
        "ListPartitionReassignments": (0, move(topics=None, timeout_ms=1000)),
        "CreateTopics": (7, create_(topics=[topic], timeout_ms=1000)),
    }[name]
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send(name, version, message)
    w.dispatcher = before
    return answer


def leader(answer: Answer) -> tuple[int, int]:
    """The active controller and its epoch."""
    part = answer.reply.topics[0].partitions[0]
    return part.leader_id, part.leader_epoch


def test_a_majority_of_nodes_that_do_not_run_elects_none() -> None:
    w = five(4)
    happens(w, "kill", 3)
    part(w, [1, 2, 3], [4, 5])
    w.pass_ms(3 * SESSION_MS)
    assert w.broker.metadata.quorum.leader == -1
    happens(w, "begin", 3)
    assert w.broker.metadata.quorum.leader == 1


def test_a_controller_at_no_node_is_on_the_first_side() -> None:
    w = five()
    part(w, [4, 5], [1, 2, 3])
    w.pass_ms(SESSION_MS + 100)
    assert alive(w) == [4, 5]
    with pytest.raises(NodeRefused, match="does not reach most voters"):
        happens(w, "control", 4)
    with pytest.raises(NodeRefused, match="cut off"):
        happens(w, "control", 1)


def test_the_other_side_may_have_the_majority_next() -> None:
    """Two nodes change sides: who heard of the controller does not any more, and the others hear again."""
    w = five(1)
    part(w, [1, 2, 3], [4, 5])
    w.pass_ms(SESSION_MS + 100)
    assert alive(w) == [1, 2, 3]
    done = parting(w, [1, 2], [3, 4, 5])
    w.pass_ms(FETCH_MS + 10)
    done.get()
    assert w.broker.metadata.quorum.leader == 3
    w.pass_ms(2 * SESSION_MS)
    assert alive(w) == [3, 4, 5]


@pytest.mark.parametrize(("removed", "leader"), [(4, 1), (2, -1)])
def test_the_removal_of_a_voter_gives_the_majority_to_no_other_side(removed: int, leader: int) -> None:
    """The voters that are left have to agree: where too few of them are reached, the controller resigns."""
    w = five(1)
    part(w, [1, 2, 3], [4, 5])
    w.broker.metadata.quorum.remove(removed)
    w.pass_ms(3 * FETCH_MS)
    assert w.broker.metadata.quorum.leader == leader
    join(w)
    assert w.broker.metadata.quorum.leader == 1


# what leaders and followers do


def test_a_leader_without_the_controller_keeps_the_followers_on_its_side() -> None:
    """Until it is fenced: it cannot change who is in sync, and commits nothing without those on the other side."""
    w = five()
    part(w, [1, 2, 3], [4, 5])
    late = sent(w, 4)
    assert (ends(w), state(w, at=4)[:3]) == ({4: 1, 5: 1, 1: 0}, (4, 0, [4, 5, 1]))
    assert records(w, 4) == []
    assert produce(w, 4, acks=1).error_code == 0
    w.pass_ms(SESSION_MS - 100)
    assert not late.done
    assert state(w, at=1)[:3] == (4, 0, [4, 5, 1])
    w.pass_ms(200)
    assert state(w, at=1)[0] == 1, "both are fenced, and the last one in sync leads"
    assert state(w, at=4)[:2] == state(w, at=5)[:2] == (4, 0), "they do not hear of that"
    assert "node 4, which is cut off, leads on in epoch 0: what it takes is lost" in problems(w, "t")
    assert produce(w, 4, acks=1).error_code == 0
    assert produce(w, 1, value=b"w").error_code == 0
    join(w)
    assert code(late) == "NOT_LEADER_OR_FOLLOWER"
    assert sorted(state(w)[2]) == [1, 4, 5]
    assert records(w, 1) == [b"w"]


def test_what_all_in_sync_have_on_one_side_is_committed() -> None:
    """They are where the controller is not, and need it for nothing."""
    w = five()
    create(w, "near", [4, 5])
    part(w, [1, 2, 3], [4, 5])
    assert produce(w, 4, topic="near").error_code == 0
    w.pass_ms(SESSION_MS + 100)
    assert state(w, 0, "near", at=1)[0] == -1
    assert produce(w, 4, topic="near", value=b"w").error_code == 0, "it does not hear that there is no leader"
    assert (records(w, 4, topic="near"), ends(w, "near")) == ([b"v", b"w"], {4: 2, 5: 2})
    assert "node 4, which is cut off, leads on in epoch 0" in problems(w, "near")
    refused = produce(w, 1, topic="near")
    assert refused.error_code == Errors.NOT_LEADER_OR_FOLLOWER
    join(w)
    assert sorted(state(w, 0, "near")[2]) == [4, 5]
    leader, epoch = state(w, 0, "near")[:2]
    assert (records(w, leader, topic="near"), epoch) == ([b"v", b"w"], 3), "5 was elected before"


def unled() -> World:
    """Node 4 is cut off, and the last one in sync of `far`; it has taken a record since there is no leader."""
    w = five()
    create(w, "far", [4, 3])
    happens(w, "stop", 3)
    part(w, [1, 2, 3], [4, 5])
    w.pass_ms(SESSION_MS + 100)
    assert produce(w, 4, topic="far").error_code == 0
    return w


@pytest.mark.parametrize(("end", "begin"), [("kill", "begin"), ("pause", "resume")])
def test_what_a_leader_took_while_there_was_none_is_there_when_it_leads_again(end: str, begin: str) -> None:
    w = unled()
    happens(w, end, 4)
    assert state(w, 0, "far")[0] == -1
    join(w)
    happens(w, begin, 4)
    assert (state(w, 0, "far")[0], records(w, 4, topic="far")) == (4, [b"v"])


def test_what_a_leader_took_while_there_was_none_is_lost_in_an_unclean_election() -> None:
    w = unled()
    happens(w, "begin", 3)
    r = m.ElectLeadersRequest
    far = r.TopicPartitions(topic="far", partitions=[0])
    w.at(2, "ElectLeaders", 2, r(election_type=1, topic_partitions=[far], timeout_ms=1000))
    assert produce(w, 3, topic="far", value=b"w").error_code == 0
    assert records(w, 4, topic="far") == []
    join(w)
    assert (state(w, 0, "far")[0], records(w, 3, topic="far")) == (3, [b"w"])


def test_a_leader_that_is_cut_off_does_not_hear_who_is_in_sync() -> None:
    """The controller takes one out that has stopped; the leader waits for it still."""
    w = five()
    create(w, "far", [4, 1])
    part(w, [1, 2, 3], [4, 5])
    happens(w, "stop", 1)
    assert state(w, 0, "far", at=2)[2] == [4]
    late = sent(w, 4, topic="far")
    w.pass_ms(1_000)
    assert not late.done
    w.pass_ms(SESSION_MS)
    assert not late.done
    join(w)
    assert state(w, 0, "far", at=2)[0] == 4
    assert code(late) == "NOT_LEADER_OR_FOLLOWER"
    assert records(w, 4, topic="far") == [b"v"]


def test_a_leader_that_is_cut_off_waits_for_those_that_it_wanted_in_sync() -> None:
    """The controller has taken one in, which may be elected, and the leader does not hear of it."""
    w = five()
    create(w, "far", [4, 5, 1])
    happens(w, "hold", 1)
    assert produce(w, 4, acks=1, topic="far").error_code == 0
    w.pass_ms(2 * LAG_MS)
    assert state(w, 0, "far")[2] == [4, 5]
    lives = w.broker.node_lives
    drive(lives.release(lives.find(1)))
    part(w, [1, 2, 3], [4, 5])
    w.pass_ms(10)
    assert (state(w, 0, "far", at=2)[2], state(w, 0, "far", at=4)[2]) == ([1, 4, 5], [4, 5])
    late = sent(w, 4, topic="far")
    w.pass_ms(1_000)
    assert (late.done, records(w, 4, topic="far")) == (False, [b"v"])
    w.pass_ms(SESSION_MS)
    assert state(w, 0, "far", at=1)[0] == 1
    join(w)
    assert (code(late), records(w, 1, topic="far")) == ("NOT_LEADER_OR_FOLLOWER", [b"v"])


def test_followers_leave_the_isr_of_a_leader_that_reaches_the_controller() -> None:
    """They fall behind, and are fenced before that; when the sides join they catch up."""
    w = five(broker_session_timeout_ms="90000")
    create(w, "far", [1, 2, 4])
    part(w, [1, 2, 3], [4, 5])
    late = sent(w, 1, topic="far")
    w.pass_ms(LAG_MS - 1_000)
    assert not late.done
    w.pass_ms(LAG_MS)
    assert (code(late), state(w, 0, "far")[2], ends(w, "far")) == ("NONE", [1, 2], {1: 1, 2: 1, 4: 0})
    assert 4 in alive(w)
    join(w)
    assert (state(w, 0, "far")[2], ends(w, "far")) == ([1, 2, 4], {1: 1, 2: 1, 4: 1})


def test_nothing_follows_a_leader_that_has_not_heard_of_its_election() -> None:
    """It does not lead, and a replica on its side gets nothing from it before the sides join."""
    w = five()
    create(w, "far", [4, 5, 3])
    happens(w, "hold", 3)
    assert produce(w, 4, acks=1, topic="far").error_code == 0
    part(w, [1, 2, 3, 5], [4])
    w.pass_ms(SESSION_MS - 100)
    part(w, [1, 2], [4], [3, 5])
    happens(w, "release", 3)
    w.pass_ms(200)
    assert (state(w, 0, "far")[:2], ends(w, "far")) == ((5, 1), {4: 1, 5: 1, 3: 0})
    assert state(w, 0, "far", at=5)[:2] == (4, 0)
    happens(w, "hold", 3)
    happens(w, "release", 3)
    assert ends(w, "far") == {4: 1, 5: 1, 3: 0}
    join(w)
    assert (state(w, 0, "far")[0], ends(w, "far")) == (5, {4: 1, 5: 1, 3: 1})


@pytest.mark.parametrize("what", [("hold", "release"), ("pause", "resume")])
def test_a_follower_goes_on_behind_the_leader_on_its_side(what: tuple[str, str]) -> None:
    w = five()
    part(w, [1, 2, 3], [4, 5])
    happens(w, what[0], 5)
    assert produce(w, 4, acks=1).error_code == 0
    assert ends(w) == {4: 1, 5: 0, 1: 0}
    happens(w, what[1], 5)
    assert ends(w) == {4: 1, 5: 1, 1: 0}


def test_nodes_that_were_cut_off_alone_reach_each_other_on_one_side() -> None:
    w = five()
    happens(w, "cut", 4)
    happens(w, "cut", 5)
    assert produce(w, 4, acks=1).error_code == 0
    assert ends(w) == {4: 1, 5: 0, 1: 0}
    part(w, [1, 2, 3], [4, 5])
    assert ends(w) == {4: 1, 5: 1, 1: 0}


def test_a_node_can_be_healed_alone() -> None:
    w = five()
    part(w, [1, 2, 3], [4, 5])
    assert produce(w, 4, acks=1).error_code == 0
    happens(w, "heal", 5)
    assert produce(w, 4, acks=1).error_code == 0
    assert ends(w) == {4: 2, 5: 1, 1: 0}
    w.pass_ms(SESSION_MS + 100)
    assert alive(w) == [1, 2, 3, 5]
    assert (state(w, at=5)[0], records(w, 5)) == (5, [b"v"]), "it leads with what it had before it was healed"


def test_what_a_side_asks_of_the_controller_waits_for_the_join() -> None:
    w = five(1)
    part(w, [1, 2, 3], [4, 5])
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="late", num_partitions=1, replication_factor=1)
    before, w.dispatcher = w.dispatcher, w.dispatchers[5]
    late = w.send("CreateTopics", 7, r(topics=[topic], timeout_ms=1000))
    w.dispatcher = before
    w.pass_ms(30_000)
    assert not late.done
    join(w)
    assert late.reply.topics[0].error_code == 0


def test_a_node_that_stands_still_is_parted_too() -> None:
    """One that was stopped starts when the sides have joined; one that was paused goes on at once."""
    w = five()
    happens(w, "pause", 5)
    happens(w, "stop", 3)
    part(w, [1, 2], [3, 4, 5])
    w.pass_ms(SESSION_MS + 100)
    assert alive(w) == [1, 2]
    with pytest.raises(NodeRefused, match="cut off"):
        happens(w, "begin", 3)
    join(w)
    assert alive(w) == [1, 2, 4]
    happens(w, "resume", 5)
    happens(w, "begin", 3)
    assert alive(w) == [1, 2, 3, 4, 5]


# what is refused


@pytest.mark.parametrize(
    ("sides", "why"),
    [
        (([1, 2, 3, 4, 5],), "there are 1"),
        (([1, 2, 3], [4]), "node 5 is on 0"),
        (([1, 2, 3], [3, 4, 5]), "node 3 is on 2"),
        (([1, 2, 3, 4, 5], []), "there are 2"),
    ],
)
def test_each_node_is_on_one_side(sides: tuple[list[int], ...], why: str) -> None:
    w = five()
    with pytest.raises(NodeRefused, match=why):
        part(w, *sides)
    with pytest.raises(NodeRefused, match="reach each other"):
        join(w)
    assert produce(w, 4).error_code == 0
