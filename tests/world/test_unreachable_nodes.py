"""Nodes that do not answer, or are cut off from the others: what brokers do among themselves waits or fails, as it
would over the wire, and a leader that is cut off loses what only it has.
"""

from __future__ import annotations

import pytest
from ottla.broker.config.nodes import NodeRefused
from ottla.broker.replica.partition import Partition
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.dead_letters import QUEUE, letters
from ..support.lab import LabWorld
from ..support.node_world import NODES, cluster, create, happens, produce, records, state
from ..support.share_world import EARLIEST, Consumer, beat, configure
from ..support.transaction_world import Writer
from ..support.world import Answer, World

SESSION_MS = 9_000
ACCEPT, REJECT = 1, 3
# the log of transactions has one replica, so that it does not wait for the node with which something happens
ALONE = {"transaction_state_log_replication_factor": "1", "transaction_state_log_min_isr": "1"}


@pytest.fixture
def w() -> World:
    return cluster(**ALONE)


def waiting(w: World, node: int, timeout_ms: int = 120_000) -> Answer:
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = w.send("Produce", 10, produce_message("t", batch(b"v"), 0, -1, timeout_ms))
    w.dispatcher = before
    return answer


def code(answer: Answer) -> str:
    return Errors(answer.reply.responses[0].partition_responses[0].error_code).name


def named(topic: str) -> m.CreateTopicsRequest:
    r = m.CreateTopicsRequest
    return r(topics=[r.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=1000)


def coordinator(w: World, kind: int, key: str) -> int:
    found = w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
    return int(found.coordinators[0].node_id)


# cut off


def test_what_waits_for_the_controller_without_a_client_leaves_nothing(w: World) -> None:
    happens(w, "cut", 1)
    w.pass_ms(1_000)
    before, w.dispatcher = w.dispatcher, w.dispatchers[1]
    timers = len(list(w.schedule.timers.first(1000)))
    asked = w.send("CreateTopics", 5, named("u"))
    w.dispatcher = before
    assert len(list(w.schedule.timers.first(1000))) > timers
    asked.waiting.cancel()
    assert len(list(w.schedule.timers.first(1000))) == timers


def test_a_leader_that_is_cut_off_takes_what_is_lost_later(w: World) -> None:
    """It has no follower any more, and cannot ask the controller for fewer replicas in sync."""
    assert produce(w, 1).error_code == 0
    happens(w, "cut", 1)
    assert produce(w, 1, value=b"lost", acks=1).error_code == 0
    late = waiting(w, 1, timeout_ms=5_000)
    assert records(w, 1) == [b"v"], "nothing is committed without followers"
    w.pass_ms(5_000)
    assert code(late) == "REQUEST_TIMED_OUT"
    assert state(w)[:3] == (1, 0, [1, 2, 3])
    waits_longer = waiting(w, 1, timeout_ms=5_000)
    w.pass_ms(SESSION_MS - 5_000 + 100)
    assert state(w, at=2)[:3] == (2, 1, [2, 3]), "its session has expired, and the others have elected one of them"
    assert not waits_longer.done, "it does not hear of that"
    w.pass_ms(1_000)
    assert code(waits_longer) == "REQUEST_TIMED_OUT"
    (loss,) = LabWorld(w).ask("GET /v1/losses")["losses"]
    assert (loss["first_offset"], loss["end_offset"], loss["committed"], loss["leader_before"]) == (1, 4, 0, 1)
    assert produce(w, 2, value=b"w").error_code == 0, "the followers that are left follow the new leader"
    assert records(w, 2) == [b"v", b"w"]


def test_a_node_that_is_reached_again_follows_the_new_leader(w: World) -> None:
    happens(w, "cut", 1)
    produce(w, 1, acks=1)
    w.pass_ms(SESSION_MS + 100)
    produce(w, 2)
    happens(w, "heal", 1)
    assert state(w) == (2, 1, [1, 2, 3], [], [])
    assert produce(w, 2).error_code == 0


def test_a_short_cut_changes_nothing(w: World) -> None:
    happens(w, "cut", 1)
    late = waiting(w, 1)
    w.pass_ms(5_000)
    assert not late.done
    happens(w, "heal", 1)
    assert code(late) == "NONE"
    w.pass_ms(2 * SESSION_MS)
    assert state(w) == (1, 0, [1, 2, 3], [], [])


def test_a_follower_that_is_cut_off_holds_acks_all_until_it_is_out_of_sync(w: World) -> None:
    happens(w, "cut", 2)
    late = waiting(w, 1)
    assert not late.done
    w.pass_ms(SESSION_MS + 100)
    assert (code(late), state(w)[2]) == ("NONE", [1, 3])


def test_a_committed_record_outlives_the_cut(w: World) -> None:
    """Whichever node is cut off: what was acknowledged with acks=all is there afterwards."""
    for node in (1, 2, 3):
        leader = state(w)[0]
        assert produce(w, leader, value=b"%d" % node).error_code == 0
        happens(w, "cut", node)
        produce(w, leader, value=b"maybe lost", acks=1)
        w.pass_ms(SESSION_MS + 100)
        happens(w, "heal", node)
        w.pass_ms(100)
    kept = [one for one in records(w, state(w)[0]) if one != b"maybe lost"]
    assert kept == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("before", "what"), [("cut", "cut"), ("cut", "stop"), ("cut", "drain"), ("cut", "unfence"), ("", "heal")]
)
def test_what_needs_the_controller_is_refused(w: World, before: str, what: str) -> None:
    if before:
        happens(w, before, 1)
    with pytest.raises(NodeRefused, match="cut off"):
        happens(w, what, 1)


def test_a_node_that_is_cut_off_and_killed_starts_when_it_is_healed(w: World) -> None:
    happens(w, "cut", 1)
    happens(w, "kill", 1)
    with pytest.raises(NodeRefused, match="cut off"):
        happens(w, "begin", 1)
    happens(w, "heal", 1)
    happens(w, "begin", 1)
    assert state(w) == (2, 1, [1, 2, 3], [], [])


def test_a_node_that_is_elected_while_it_is_cut_off_has_no_followers(w: World) -> None:
    """The controller does not know yet that it cannot be reached."""
    happens(w, "cut", 2)
    happens(w, "stop", 1)
    assert state(w)[:3] == (2, 1, [2, 3])
    for _ in range(2):
        refused = produce(w, 2, acks=1)
        assert Errors(refused.error_code).name == "NOT_LEADER_OR_FOLLOWER", "nor does it know that it leads"
        assert refused.current_leader.leader_id == 1
        w.pass_ms(SESSION_MS)
    assert state(w, at=3)[0] == 3
    assert produce(w, 3, value=b"w").error_code == 0
    assert records(w, 3) == [b"w"]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_node_that_is_healed_while_it_is_paused_is_followed_again(w: World, is_held: bool) -> None:
    """Also one that itself does not follow."""
    if is_held:
        happens(w, "hold", 1)
    happens(w, "cut", 1)
    happens(w, "pause", 1)
    happens(w, "heal", 1)
    happens(w, "resume", 1)
    assert produce(w, 1).error_code == 0
    w.pass_ms(2 * SESSION_MS)
    assert state(w)[:3] == (1, 0, [1, 2, 3])


# transactions


def begun(w: World) -> tuple[Writer, int, int, int]:
    """A transactional producer; its coordinator's node, and a partition with another node that leads it."""
    node = coordinator(w, 1, "x")
    index, leader = next((one, state(w, one)[0]) for one in (0, 1) if state(w, one)[0] != node)
    writer = Writer(w)
    w.dispatcher = w.dispatchers[node]
    assert writer.init() == 0
    return writer, node, index, leader


def end_of(w: World, index: int) -> int:
    return w.broker.partitions.get("t", index).end_offset


@pytest.mark.parametrize(("before", "after"), [("pause", "resume"), ("cut", "heal")])
def test_markers_wait_for_a_leader_that_does_not_answer(w: World, before: str, after: str) -> None:
    writer, node, index, leader = begun(w)
    w.dispatcher = w.dispatchers[leader]
    assert writer.write(b"a", index=index) == 0
    happens(w, before, leader)
    w.dispatcher = w.dispatchers[node]
    assert writer.end(True) == 0
    w.pass_ms(3_000)
    assert end_of(w, index) == 1
    happens(w, after, leader)
    w.pass_ms(200)
    assert end_of(w, index) == 2


def test_markers_go_to_the_next_leader(w: World) -> None:
    writer, node, index, leader = begun(w)
    w.dispatcher = w.dispatchers[leader]
    assert writer.write(b"a", index=index) == 0
    happens(w, "pause", leader)
    w.dispatcher = w.dispatchers[node]
    assert writer.end(True) == 0
    w.pass_ms(SESSION_MS + 300)
    assert state(w, index)[0] != leader
    assert end_of(w, index) == 2


def test_a_paused_coordinator_ends_no_transaction(w: World) -> None:
    writer, node, index, leader = begun(w)
    writer.timeout_ms = 1000
    assert writer.init() == 0
    w.dispatcher = w.dispatchers[leader]
    assert writer.write(b"a", index=index) == 0
    happens(w, "pause", node)
    w.pass_ms(5_000)
    assert end_of(w, index) == 1, "its timers stand still"
    happens(w, "resume", node)
    w.pass_ms(15_000)
    assert end_of(w, index) == 2


def test_a_first_batch_waits_for_a_coordinator_that_does_not_answer(w: World) -> None:
    writer, node, index, leader = begun(w)
    happens(w, "pause", node)
    w.dispatcher = w.dispatchers[leader]
    answer = writer.send(b"a", index=index)
    w.pass_ms(1_000)
    assert (answer.done, end_of(w, index)) == (False, 0)
    happens(w, "resume", node)
    w.pass_ms(200)
    assert code(answer) == "NONE"


def test_a_first_batch_gets_an_error_if_no_one_answers_for_long(w: World) -> None:
    w = cluster(request_timeout_ms="2000", **ALONE)
    writer, node, index, leader = begun(w)
    happens(w, "cut", node)
    w.dispatcher = w.dispatchers[leader]
    answer = writer.send(b"a", index=index)
    w.pass_ms(2_200)
    found = answer.reply.responses[0].partition_responses[0]
    assert Errors(found.error_code).name == "NOT_ENOUGH_REPLICAS"
    assert found.error_message is None or "NETWORK_EXCEPTION" in found.error_message


# share groups


def has_one_record(w: World) -> tuple[Consumer, Partition]:
    """Returns a consumer of the queue `q` that has acquired a record, and the partition with the state of its queue."""
    w.dispatcher = w.dispatchers[coordinator(w, 0, "q")]
    assert beat(w, "m", 0, "s").error_code == 0
    w.pass_ms(1000)
    w.dispatcher = w.dispatchers[1]
    one = Consumer(w, topic="s")
    one.fetch()
    assert produce(w, 1, topic="s").error_code == 0
    assert one.got() == [(0, 0, 1)]
    states = w.broker.share_states
    (key,) = w.broker.share_partitions.partitions
    return one, states.partitions.by_name[states.topic_name, states.partition_for(key)]


def test_share_states_wait_for_a_coordinator_that_does_not_answer() -> None:
    w = cluster(share_coordinator_state_topic_num_partitions="3")
    create(w, "s", [1, 2, 3])
    assert configure(w, 32, "q", EARLIEST) == 0
    one, stored = has_one_record(w)
    if stored.leader == 1:  # the node that asks would be the one that does not answer
        LabWorld(w).ask(f"POST /v1/partitions/{stored.topic}/{stored.index}/move")
    node = stored.leader
    assert node is not None
    happens(w, "pause", node)
    late = one.send_acknowledge((0, 0, ACCEPT))
    w.pass_ms(2_500)
    assert not late.done
    happens(w, "resume", node)
    w.pass_ms(5_000)
    assert late.reply.responses[0].partitions[0].error_code == 0


@pytest.mark.parametrize(("away", "back"), [("cut", "heal"), ("pause", "resume")])
def test_dead_letters_wait_for_the_leader_of_their_queue(away: str, back: str) -> None:
    own = {"num_partitions": "3", "replication_factor": "1", "min_isr": "1"}
    w = cluster(**{f"share_coordinator_state_topic_{name}": value for name, value in own.items()})
    create(w, "s", [1])
    assert configure(w, 32, "q", EARLIEST | {"errors.deadletterqueue.topic.name": QUEUE}) == 0
    one, stored = has_one_record(w)
    node = 3 if stored.leader == 2 else 2
    create(w, QUEUE, [node], errors_deadletterqueue_group_enable="true")
    happens(w, away, node)
    one.send_acknowledge((0, 0, REJECT))
    w.pass_ms(500)
    assert letters(w) == []
    happens(w, back, node)
    w.pass_ms(5_000)
    assert [letter["offset"] for letter in letters(w)] == ["0"]


@pytest.mark.parametrize(("away", "back"), [("cut", "heal"), ("pause", "resume")])
def test_a_drained_node_that_was_away_is_fenced_until_it_registers_again(w: World, away: str, back: str) -> None:
    """As in Kafka, where a fenced broker in controlled shutdown is told to end."""
    create(w, "alone", [1])
    happens(w, "drain", 1)
    happens(w, away, 1)
    w.pass_ms(SESSION_MS + 100)
    happens(w, back, 1)
    w.pass_ms(100)
    assert (state(w, 0, "alone")[0], [one.id for one in w.broker.alive()]) == (-1, [2, 3])
    happens(w, "unfence", 1)
    assert (state(w, 0, "alone")[0], [one.id for one in w.broker.alive()]) == (1, [1, 2, 3])


# verifications of transactions


def waiting_in_transaction(w: World, node: int, writer: Writer, index: int) -> Answer:
    before, w.dispatcher = w.dispatcher, w.dispatchers[node]
    answer = writer.send(b"v", index=index)
    w.pass_ms(100)
    w.dispatcher = before
    return answer


@pytest.mark.parametrize("raises", [True, False])
def test_a_first_batch_is_verified_only_where_its_partition_is_led(w: World, raises: bool) -> None:
    """A node that was paused gets batches late. What it would remember of them must not refuse those of the leader."""
    writer, _, index, leader = begun(w)
    writer.raises = raises
    if not raises:
        writer.add(index)
    late = waiting_in_transaction(w, next(one for one in NODES if one != leader), writer, index)
    refused = late.reply.responses[0].partition_responses[0]
    assert code(late) == "NOT_LEADER_OR_FOLLOWER"
    assert (refused.current_leader.leader_id, [one.node_id for one in late.reply.node_endpoints]) == (leader, [leader])
    assert not w.broker.partitions.by_name["t", index].open_log().producers.verifying
    assert code(waiting_in_transaction(w, leader, writer, index)) == "NONE"


def test_a_new_leader_knows_nothing_of_what_the_old_one_was_verifying(w: World) -> None:
    writer, node, index, leader = begun(w)
    happens(w, "pause", node)
    assert not waiting_in_transaction(w, leader, writer, index).done, "the coordinator does not answer"
    producers = w.broker.partitions.by_name["t", index].open_log().producers
    assert producers.verifying
    LabWorld(w).ask(f"POST /v1/partitions/t/{index}/move")
    w.pass_ms(10)
    assert state(w, index)[0] != leader
    assert not producers.verifying
