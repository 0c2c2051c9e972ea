"""Transactions in a whole broker: what readers see, offsets, features, histories."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.shards.loader import log_entries
from ottla.broker.transaction.coordinators import TOPIC_NAME
from ottla.coordinator.transaction.state import NAMES, State
from ottla.protocol import messages as m
from ottla.protocol.compression import ZSTD
from ottla.protocol.errors import Errors

from ..sim import transactions as sim_transactions
from ..support.seeds import in_turn, spans
from ..support.transaction_world import (
    begun,
    committed_values,
    create,
    fetched,
    hold,
    lower,
    partition,
    produced,
    world,
)
from ..support.world import World

OFFSETS = "__consumer_offsets"


# readers


def test_transactions_that_ended_do_not_pile_up_where_nothing_reads() -> None:
    w = world()
    writer = begun(w)
    for _ in range(3):
        assert writer.write(b"a") == 0
        assert writer.end(committed=False) == 0
    log = partition(w).open_log()
    assert partition(w).high_watermark == log.end_offset == 6
    assert not log.producers._unreplicated


def test_readers_of_committed_records_stop_at_the_first_open_transaction() -> None:
    w = world()
    one, other = begun(w), begun(w, "y")
    one.write(b"a")
    other.write(b"b")
    assert one.end() == 0
    found = fetched(w)
    assert (found.high_watermark, found.last_stable_offset) == (3, 1), "up to the one that is open"
    assert committed_values(w) == [b"a"]
    assert other.end(committed=False) == 0
    found = fetched(w)
    assert found.last_stable_offset == 4
    assert [(t.producer_id, t.first_offset) for t in found.aborted_transactions] == [(other.id, 1)]
    assert committed_values(w) == [b"a"]


def test_an_end_counts_once_the_high_watermark_has_passed_its_marker() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    hold(w, "t")
    one.ending()
    w.pass_ms(5)
    assert partition(w).end_offset == 2
    assert fetched(w).last_stable_offset == 0
    hold(w, "t", "immediate")
    assert fetched(w).last_stable_offset == 2


def test_a_waiting_reader_is_not_woken_by_what_it_may_not_read() -> None:
    w = world()
    one = begun(w)
    one.write(b"a")
    r = m.FetchRequest
    part = r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = r(
        topics=[r.FetchTopic(topic="t", partitions=[part])],
        max_wait_ms=5000,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
    )
    waiting = w.send("Fetch", 11, request)
    one.write(b"b")
    w.pass_ms(1000)
    assert not waiting.done
    one.ending()
    w.pass_ms(1)
    assert waiting.done
    assert len(waiting.reply.responses[0].partitions[0].records) > 0


# offsets


def offsets(w: World, stable: bool = False) -> Any:
    f = m.OffsetFetchRequest
    wanted = f.OffsetFetchRequestGroup(
        group_id="g", topics=[f.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    found = w.ask("OffsetFetch", 8, f(groups=[wanted], require_stable=stable)).groups[0].topics[0].partitions[0]
    return int(found.error_code) or found.committed_offset


@pytest.mark.parametrize("raises", [True, False])
def test_offsets_hold_once_their_transaction_is_committed(raises: bool) -> None:
    w = world()
    one = begun(w, raises=raises)

    def commit(offset: int) -> None:
        if not raises:
            request = m.AddOffsetsToTxnRequest(
                transactional_id="x", producer_id=one.id, producer_epoch=one.epoch, group_id="g"
            )
            assert w.ask("AddOffsetsToTxn", 3, request).error_code == 0
        answer = one.commit_offset(offset, version=5 if raises else 3)
        assert answer.reply.topics[0].partitions[0].error_code == 0

    commit(5)
    assert (offsets(w), offsets(w, stable=True)) == (-1, Errors.UNSTABLE_OFFSET_COMMIT)
    assert one.end() == 0
    assert (offsets(w), offsets(w, stable=True)) == (5, 5)
    commit(9)
    assert one.end(committed=False) == 0
    assert (offsets(w), offsets(w, stable=True)) == (5, 5)
    log = partition(w, OFFSETS).open_log()
    kinds = [(entry.producer_id, entry.marker and entry.marker.committed) for entry in log_entries(log)]
    assert kinds == [(one.id, None), (one.id, True), (one.id, None), (one.id, False)]


def test_what_a_transaction_committed_is_not_undone_by_an_older_commit_at_loading() -> None:
    """A log's plain commits are replayed last."""
    w = world()
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    request = r(
        group_id="g", generation_id_or_member_epoch=-1, topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    assert w.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code == 0
    one = begun(w)
    one.commit_offset(8)
    assert one.end() == 0
    assert offsets(w) == 8
    w.broker.turn.event(lambda: w.broker.groups.reload(partition(w, OFFSETS)))
    w.pass_ms(10)
    assert offsets(w) == 8


def test_offsets_wait_for_the_high_watermark_too() -> None:
    w = world()
    one = begun(w)
    hold(w, OFFSETS)
    answer = one.commit_offset(5)
    w.pass_ms(4900)
    assert not answer.done
    w.pass_ms(200)
    assert answer.reply.topics[0].partitions[0].error_code == Errors.COORDINATOR_NOT_AVAILABLE
    hold(w, OFFSETS, "immediate")
    assert one.end() == 0
    assert offsets(w) == 5, "its record stayed"


@pytest.mark.parametrize("level", [0, 1, 2])
def test_records_are_written_as_the_finalized_feature_says(level: int) -> None:
    w = world()
    lower(w, level)
    one = begun(w, raises=level == 2)
    one.write(b"a")
    one.end()
    versions = {
        entry.record.value[1]
        for entry in log_entries(partition(w, TOPIC_NAME).open_log())
        if entry.record and entry.record.value
    }
    assert versions == {min(level, 1)}


def test_states_have_kafkas_numbers_and_names() -> None:
    assert {int(one): NAMES[one] for one in State} == {
        0: "Empty",
        1: "Ongoing",
        2: "PrepareCommit",
        3: "PrepareAbort",
        4: "CompleteCommit",
        5: "CompleteAbort",
        6: "Dead",
        7: "PrepareEpochFence",
    }


@pytest.mark.long
@pytest.mark.parametrize("seeds", in_turn(spans(0, 100, quick=3, each=25)))
def test_histories_hold(seeds: range) -> None:
    """More of them, and deliberate bugs, in `test_sims`."""
    for seed in seeds:
        sim_transactions.run(seed)


@pytest.mark.parametrize("raises", [True, False])
def test_a_first_batch_that_takes_long_to_open_is_answered(raises: bool) -> None:
    """Its records are looked at because the topic is compacted; the transaction's coordinator is asked before that."""
    w = world()
    create(w, "c", cleanup_policy="compact")
    one = begun(w, raises=raises)
    if not raises:
        assert (
            one.add(0, name="c").reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            == 0
        )
    answer = one.send(bytes(30 << 20), name="c", key=b"k", codec=ZSTD)
    w.pass_ms(5000)
    assert produced(answer) == 0
    assert partition(w, "c").end_offset == 1
    assert w.broker.metrics.bugs == 0
