"""Transactions in a whole broker: steps, time, epochs and crashes."""

from __future__ import annotations

import pytest
from ottla.broker.transaction.coordinators import TOPIC_NAME
from ottla.coordinator.shard import Result
from ottla.coordinator.transaction.state import NAMES, NO_TIMEOUT, unborn
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.records import PRODUCER_EPOCH_MAX

from ..support.transaction_world import (
    SMALL,
    Writer,
    all_values,
    begun,
    committed_values,
    create,
    hold,
    lower,
    partition,
    produced,
    state,
    steps,
    world,
)
from ..support.world import World

# steps


@pytest.mark.parametrize("raises", [True, False])
def test_a_transaction_goes_through_its_states(raises: bool) -> None:
    w = world()
    one = begun(w, raises=raises)
    assert state(w) == ("Empty", 0, [])
    assert one.write(b"a") == 0
    assert one.write(b"b", index=2) == 0
    assert state(w) == ("Ongoing", 0, [("t", 0), ("t", 2)])
    assert one.end() == 0
    assert state(w) == ("CompleteCommit", int(raises), [])
    assert one.write(b"c", index=1) == 0
    assert one.end(committed=False) == 0
    assert state(w) == ("CompleteAbort", 2 * raises, [])
    names = [NAMES[step.state] for step in steps(w)]
    assert names == [
        "Empty",
        "Ongoing",
        "Ongoing",
        "PrepareCommit",
        "CompleteCommit",
        "Ongoing",
        "PrepareAbort",
        "CompleteAbort",
    ]
    assert [committed_values(w, index) for index in range(3)] == [[b"a"], [], [b"b"]]
    assert [all_values(w, index)[:1] for index in range(3)] == [[b"a"], [b"c"], [b"b"]]


def test_prepared_ends_can_be_seen_while_a_marker_waits() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    one.write(b"b", index=1)
    hold(w, "t")
    answer = one.ending()
    w.pass_ms(5)
    assert answer.reply.error_code == 0, "the reply does not wait for markers"
    assert state(w) == ("PrepareCommit", 1, [("t", 0), ("t", 1)])
    one.take(answer)
    assert one.init() == Errors.CONCURRENT_TRANSACTIONS
    assert (
        one.add(0).reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        == Errors.CONCURRENT_TRANSACTIONS
    )
    assert one.ending().reply.error_code == Errors.CONCURRENT_TRANSACTIONS
    hold(w, "t", "immediate")
    w.pass_ms(5)
    assert state(w) == ("CompleteCommit", 1, [])


def test_a_step_waits_for_the_high_watermark_and_is_not_seen_before() -> None:
    w = world()
    one = begun(w)
    hold(w)
    answer = one.send(b"a")
    w.pass_ms(5)
    assert not answer.done, "the partition joins the transaction once that is committed"
    assert partition(w).end_offset == 0
    assert state(w) == ("Empty", 0, [])
    assert one.ending().reply.error_code == Errors.CONCURRENT_TRANSACTIONS
    hold(w, text="immediate")
    assert produced(answer) == 0
    assert state(w) == ("Ongoing", 0, [("t", 0)])
    hold(w)
    ending = one.ending()
    w.pass_ms(100)
    assert not ending.done
    assert state(w)[0] == "Ongoing"
    assert partition(w).end_offset == 1, "no marker before the decision is committed"
    hold(w, text="immediate")
    w.pass_ms(5)
    assert ending.reply.error_code == 0
    assert state(w)[0] == "CompleteCommit"


@pytest.mark.parametrize("api", ["InitProducerId", "AddPartitionsToTxn", "EndTxn"])
def test_a_reply_that_waits_too_long_is_an_error_and_its_record_stays(api: str) -> None:
    """Kafka gives a step as long as the transaction may take, and then COORDINATOR_NOT_AVAILABLE."""
    w = world()
    one = begun(w, timeout_ms=2000)
    if api == "EndTxn":
        one.write(b"a")
    hold(w)
    if api == "InitProducerId":
        answer = w.send(api, 5, m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=2000))
    else:
        answer = one.add(1) if api == "AddPartitionsToTxn" else one.ending()
    w.pass_ms(1990)
    assert not answer.done
    w.pass_ms(20)
    reply = answer.reply
    code = (
        reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        if api.startswith("Add")
        else reply.error_code
    )
    assert code == Errors.COORDINATOR_NOT_AVAILABLE
    hold(w, text="immediate")
    w.pass_ms(5)
    assert state(w)[0] == {"InitProducerId": "Empty", "AddPartitionsToTxn": "Ongoing", "EndTxn": "CompleteCommit"}[api]


def test_an_id_whose_first_record_cannot_be_written_is_known_without_an_epoch() -> None:
    """As Kafka's coordinator knows it until it is loaded again; the next attempt has the same producer id."""
    w = world()
    begun(w)
    asked = m.InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=2000)
    of_log = [partition(w, TOPIC_NAME, index) for index in range(w.broker.transactions.partition_count)]
    for one in of_log:
        one.isr_size = 0
    assert w.ask("InitProducerId", 5, asked).error_code == Errors.COORDINATOR_NOT_AVAILABLE
    (found,) = w.ask(
        "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=["new"])
    ).transaction_states
    assert (found.error_code, found.transaction_state, found.producer_epoch) == (0, "Empty", -1)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (2000, -1)
    listed = w.ask("ListTransactions", 2, m.ListTransactionsRequest()).transaction_states
    assert sorted(one.transactional_id for one in listed) == ["new", "x"]
    for one in of_log:
        one.isr_size = 1
    begins = w.ask("InitProducerId", 5, asked)
    assert (begins.error_code, begins.producer_id, begins.producer_epoch) == (0, found.producer_id, 0)
    assert state(w, "new")[:2] == ("Empty", 0)


# time


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(level: int) -> None:
    w = world(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    lower(w, level)
    one = begun(w, raises=level == 2, timeout_ms=5000)
    one.write(b"a")
    w.pass_ms(4900)
    assert state(w)[0] == "Ongoing"
    w.pass_ms(2000)
    assert state(w) == ("CompleteAbort", 1, [])
    assert committed_values(w) == []
    assert partition(w).last_stable_offset == partition(w).end_offset
    assert one.write(b"late") in (Errors.INVALID_PRODUCER_EPOCH, Errors.PRODUCER_FENCED)
    assert one.end() == (Errors.INVALID_TXN_STATE if level == 2 else Errors.PRODUCER_FENCED)


def test_a_transaction_of_another_coordinator_has_no_time_limit() -> None:
    """KIP-939: such a producer is begun only where the broker allows it, and with the unstable version of
    InitProducerId.
    """
    settings = {
        "unstable_api_versions_enable": "true",
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": "1000",
    }
    for allowed in ("false", "true"):
        w = world(transaction_two_phase_commit_enable=allowed, **settings)
        request = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000, enable2_pc=True)
        reply = w.ask("InitProducerId", 6, request)
        if allowed == "false":
            assert reply.error_code == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            continue
        one = Writer(w)
        one.id, one.epoch = reply.producer_id, reply.producer_epoch
        assert one.write(b"a") == 0
        w.pass_ms(3_600_000)
        assert state(w)[0] == "Ongoing"
        assert steps(w)[-1].timeout_ms == NO_TIMEOUT
        assert one.end() == 0
        kept = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000, keep_prepared_txn=True)
        assert w.ask("InitProducerId", 6, kept).error_code == Errors.UNSUPPORTED_VERSION


def test_transactional_ids_are_forgotten_when_they_are_not_used() -> None:
    w = world(
        transactional_id_expiration_ms="600000", transaction_remove_expired_transaction_cleanup_interval_ms="10000"
    )
    one, other = begun(w), begun(w, "busy", timeout_ms=900_000)
    one.write(b"a")
    one.end()
    other.write(b"b")
    w.pass_ms(590_000)
    assert state(w)[0] == "CompleteCommit"
    w.pass_ms(30_000)
    assert state(w) == Errors.TRANSACTIONAL_ID_NOT_FOUND
    assert steps(w)[-1] is None
    assert state(w, "busy")[0] == "Ongoing", "a transaction keeps its id"
    assert one.write(b"c") == Errors.INVALID_PRODUCER_ID_MAPPING


# epochs


def wear_out(w: World, epoch: int, producer_id: int = 10**6) -> None:
    """A transactional id `x` that has used many epochs."""
    worn = unborn(producer_id, 60_000, w.schedule.now_ms())._replace(epoch=epoch)
    host = w.broker.transactions.host("x")
    w.broker.turn.event(lambda: host.write_later("test", lambda: Result([("x", worn)])))


def test_a_producer_whose_epochs_are_used_up_goes_on_with_a_new_id() -> None:
    w = world()
    wear_out(w, PRODUCER_EPOCH_MAX - 3)
    one = begun(w)
    assert (one.id, one.epoch) == (10**6, PRODUCER_EPOCH_MAX - 2)
    one.write(b"a")
    assert one.end() == 0
    assert (one.id, one.epoch) == (10**6, PRODUCER_EPOCH_MAX - 1)
    one.write(b"b")
    before = (one.id, one.epoch)
    assert one.end() == 0
    assert one.id != 10**6
    assert one.epoch == 0
    assert steps(w)[-2].next_producer_id == one.id
    after = (one.id, one.epoch)
    one.id, one.epoch = before
    assert one.end() == 0, "the end is repeated by who has not heard of it"
    assert (one.id, one.epoch) == after
    one.write(b"c")
    one.end()
    assert committed_values(w) == [b"a", b"b", b"c"]
    wear_out(w, PRODUCER_EPOCH_MAX - 1, producer_id=one.id)
    again = begun(w)
    assert again.id not in (10**6, one.id)
    assert again.epoch == 0


# crashes


def crashed(w: World) -> World:
    """The process ends without a word; what it wrote is there."""
    return World(w.files, 1, w.schedule.now_ms() + 1000, **SMALL)


@pytest.mark.parametrize("committed", [True, False])
def test_ends_that_were_decided_are_carried_out_after_a_crash(committed: bool) -> None:
    w = world()
    one = begun(w)
    for index in range(3):
        one.write(b"%d" % index, index=index)
    one.commit_offset(7)
    hold(w, "t")
    one.ending(committed)
    w.pass_ms(1)  # some markers are written already, none of them is committed
    w = crashed(w)
    w.pass_ms(200)
    assert state(w) == ("CompleteCommit" if committed else "CompleteAbort", 1, [])
    for index in range(3):
        assert committed_values(w, index) == ([b"%d" % index] if committed else [])
        assert partition(w, index=index).last_stable_offset == partition(w, index=index).end_offset
    assert w.broker.metrics.bugs == 0


def test_an_open_transaction_goes_on_after_a_crash() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    w = crashed(w)
    w.pass_ms(200)
    assert partition(w).last_stable_offset == 0
    assert committed_values(w) == []
    one.w = w
    assert one.write(b"b") == 0
    assert one.end() == 0
    assert committed_values(w) == [b"a", b"b"]


def test_a_partition_that_is_deleted_does_not_keep_a_transaction_open() -> None:
    w = world()
    create(w, "gone")
    one = begun(w)
    one.write(b"a")
    one.write(b"b", name="gone")
    hold(w, "gone")
    one.ending()
    w.pass_ms(5)
    assert state(w) == ("PrepareCommit", 1, [("gone", 0)])
    w.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000))
    w.pass_ms(200)
    assert state(w)[0] == "CompleteCommit"


def test_a_marker_is_tried_again_while_its_partition_cannot_take_it() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    one.write(b"b", index=1)
    partition(w).isr_size = 0
    assert one.ending().reply.error_code == 0
    w.pass_ms(1000)
    assert state(w) == ("PrepareCommit", 1, [("t", 0)])
    partition(w).isr_size = 1
    w.pass_ms(200)
    assert state(w)[0] == "CompleteCommit"


def test_a_marker_of_offsets_is_appended_where_too_few_replicas_are_in_sync() -> None:
    """The coordinator of groups writes it as with acks=1; the transaction is complete when it is committed."""
    w = world()
    one = begun(w)
    one.commit_offset(7)
    offsets = partition(w, "__consumer_offsets")
    offsets.isr_size, end = 0, offsets.end_offset
    hold(w, "__consumer_offsets")
    one.ending()
    w.pass_ms(100)
    assert (offsets.end_offset, state(w)[0]) == (end + 1, "PrepareCommit")
    hold(w, "__consumer_offsets", "immediate")
    w.pass_ms(200)
    assert (offsets.end_offset, state(w)[0]) == (end + 1, "CompleteCommit")


def test_a_completion_is_tried_again_while_its_record_cannot_be_written() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    hold(w, "t")
    one.ending()
    w.pass_ms(1)
    partition(w, TOPIC_NAME).isr_size = 0
    hold(w, "t", "immediate")
    w.pass_ms(500)
    assert state(w)[0] == "PrepareCommit"
    assert w.broker.transactions.completion_retries > 0
    partition(w, TOPIC_NAME).isr_size = 1
    w.pass_ms(200)
    assert state(w)[0] == "CompleteCommit"


def test_a_marker_that_an_older_coordinator_would_write_ends_the_attempt() -> None:
    """As in Kafka: the transaction stays prepared until its coordinator is loaded again."""
    w = world()
    one = begun(w)
    one.write(b"a")
    partition(w).open_log().producers.by_id[one.id].coordinator_epoch = 99
    one.ending()
    w.pass_ms(1000)
    assert state(w)[0] == "PrepareCommit"
    assert w.broker.transactions.completions["x"].given_up is not None
    partition(w).open_log().producers.by_id[one.id].coordinator_epoch = 0
    w.broker.turn.event(lambda: w.broker.transactions.reload(partition(w, TOPIC_NAME)))
    w.pass_ms(100)
    assert state(w)[0] == "CompleteCommit"


def test_a_coordinator_that_moves_answers_what_waits_and_goes_on() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    hold(w)
    answer = one.ending()
    assert not answer.done
    w.broker.turn.event(lambda: w.broker.transactions.reload(partition(w, TOPIC_NAME)))
    assert answer.reply.error_code == Errors.NOT_COORDINATOR
    hold(w, text="immediate")
    w.pass_ms(100)
    assert state(w)[0] == "CompleteCommit", "what was written is decided"
