"""What producers and consumers may do again, and what an odd trace may have: neither is held against a client."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.verdict.events import Request
from ottla.verdict.from_trace import examine
from ottla.verdict.report import ClientReport, junit, lines
from ottla.verdict.rule import FAILURES_MAX

from ..support import verdict_client_cases, verdict_group_cases
from ..support.seeds import seeds
from ..support.verdict_cases import CASES, fetched, initialized, metadata, produced
from ..support.verdict_client_cases import writes
from ..support.verdict_group_cases import acknowledges, acquires
from ..support.verdict_script import Script, records

WITH_CASES = verdict_client_cases, verdict_group_cases
OUT_OF_ORDER = Errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_first_batch_that_was_not_written_comes_again_in_its_epoch() -> None:
    """Kafka's producer then sends the batches again that came after it (`TransactionManager.canRetry`)."""
    script = Script()
    produced(script, records(0, 5), Errors.NOT_ENOUGH_REPLICAS)
    produced(script, records(5), OUT_OF_ORDER)
    for sequence, count in ((0, 5), (5, 1), (6, 1)):
        produced(script, records(sequence, count))
    assert script.rule("KIP-360.epoch-bumped")["failed"] == 0


def test_a_first_batch_that_was_written_may_come_again_as_it_was() -> None:
    script = Script()
    produced(script, records(0, 5))
    produced(script, records(9), OUT_OF_ORDER)
    produced(script, records(0, 5))
    assert script.rule("KIP-360.epoch-bumped")["failed"] == 0


def test_a_transactional_producer_whose_records_are_gone_starts_again() -> None:
    """Kafka's does if the log begins after what it wrote last (`TransactionManager.canRetry`)."""
    script = Script()
    writes(script)
    writes(script, 1, Errors.UNKNOWN_PRODUCER_ID)
    produced(script, records(0, transactional=True, time=1), version=12, transactional_id="tx")
    assert script.rule("KIP-360.epoch-bumped")["failed"] == 0


def test_batches_on_their_way_keep_their_epoch_where_another_partition_has_begun_a_new_one() -> None:
    """Kafka's producer begins a partition's new epoch when none of its batches is in flight
    (`TransactionManager.maybeUpdateProducerIdAndEpoch`).
    """
    r = m.ProduceRequest
    script = Script()
    for index, epoch in ((0, 0), (1, 0), (0, 1), (1, 0)):
        part = r.PartitionProduceData(index=index, records=records(0, epoch=epoch))
        request = r(acks=-1, topic_data=[r.TopicProduceData(name="t", partition_data=[part])])
        script.asks("Produce", 11, request, m.ProduceResponse())
    found = script.rule("KIP-360.epoch-rises")
    assert (found["kept"], found["failed"]) == (2, 0)


def test_sequence_numbers_of_batches_that_were_not_written_are_free() -> None:
    """Those after a batch that is refused move up (`TxnPartitionMap.adjustSequencesDueToFailedBatch`)."""
    script = Script()
    produced(script, records(0, 5), Errors.INVALID_RECORD)
    produced(script, records(5, 3), OUT_OF_ORDER)
    for sequence, count in ((0, 3), (3, 2), (5, 7)):
        produced(script, records(sequence, count))
    assert script.rule("KIP-98.batch-unchanged")["failed"] == 0


def test_a_transaction_may_go_on_with_the_producer_id_that_the_end_of_another_gave() -> None:
    """The epochs of the one before were used up."""
    script = Script()
    script.opens()
    initialized(script, "tx")
    writes(script)
    request = m.EndTxnRequest(transactional_id="tx", producer_id=7, committed=True)
    script.asks("EndTxn", 5, request, m.EndTxnResponse(producer_id=8, producer_epoch=0))
    produced(script, records(0, producer_id=8, transactional=True), version=12, transactional_id="tx")
    found = script.rule("KIP-98.init-first")
    assert (found["kept"], found["failed"]) == (3, 0)


def test_a_client_that_is_told_the_leader_need_not_ask_for_it() -> None:
    script = Script()
    leader = m.FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    for _ in range(6):
        fetched(script, code=Errors.NOT_LEADER_OR_FOLLOWER, after_ms=600, leader=leader)
    assert script.rule("KIP-320.metadata-refreshed")["outcome"] == "not exercised"


def test_each_renewal_lasts_as_long_as_a_lock() -> None:
    script = Script()
    acquires(script, (0, 4))
    for waits_ms in (20_000, 20_000, 40_000):
        script.waits(waits_ms)
        acknowledges(script, (0, 1), types=(4,), renews=True)
    found = script.rule("KIP-1222.renews-in-time")
    assert (found["kept"], found["failed"]) == (2, 1)


def test_of_many_members_that_are_gone_the_first_are_shown() -> None:
    script = Script()
    for number in range(FAILURES_MAX + 5):
        request = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id=f"m{number}")
        reply = m.ConsumerGroupHeartbeatResponse(member_id=f"m{number}", member_epoch=1)
        script.asks("ConsumerGroupHeartbeat", 1, request, reply)
    script.closes()
    found = script.rule("KIP-848.leaves-at-close")
    assert (found["failed"], len(found["failures"])) == (FAILURES_MAX + 5, FAILURES_MAX)


def test_a_partition_is_found_twice_among_very_many_in_linear_work() -> None:
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int.__eq__(self, other)

        __hash__ = int.__hash__

    r = m.FetchRequest
    script = Script()
    parts = [r.FetchPartition(partition=one, partition_max_bytes=1) for one in range(2000)]
    request = r(topics=[r.FetchTopic(topic="t", partitions=[*parts, parts[-1]])])
    script.asks("Fetch", 12, request, m.FetchResponse())
    asked = script.events[0]
    assert isinstance(asked, Request)
    assert isinstance(asked.message, m.FetchRequest)
    found = asked.message.topics[0].partitions
    for one in found:
        one.partition = Counted(one.partition)
    assert script.rule("protocol.partitions-once")["failed"] == 1
    assert compared < 10 * len(found)


HEAD = {"event": "trace", "clock_ms": 0, "mono_us": 0}


def failed_rules(client: ClientReport) -> list[str]:
    return [one["id"] for one in client["rules"] if one["outcome"] == "failed"]


def test_a_broker_that_starts_again_in_the_same_trace_has_connections_of_its_own() -> None:
    """Also where the machine was not started again, whose clock goes on, and where the first broker was killed."""
    killed, again = Script(), Script()
    killed.opens()
    fetched(killed)
    again.opens()
    metadata(again)
    again.closes()
    (client,) = examine([HEAD, *killed.lines, HEAD, *again.lines]).report()
    assert "KIP-227.session-closed" not in failed_rules(client)


def test_a_trace_goes_on_in_its_next_file() -> None:
    script = Script()
    script.opens()
    fetched(script)
    script.opens(2)
    script.closes()
    (client,) = examine([HEAD, *script.lines[:3], HEAD, *script.lines[3:]]).report()
    assert "KIP-227.session-closed" in failed_rules(client)


JUNK: tuple[Any, ...] = (
    *(None, -1, 2**70, "", "x", True, 1.5, "\ud800", [], [None], [[]], [0], ["a", None], {}, [{}]),
    *({"bytes": "x"}, {"bytes": 5, "count": "a"}),
)


def places(found: Any) -> Iterator[tuple[Any, Any]]:
    """All values within a line, as what holds them and where."""
    for at in list(found) if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ():
        yield found, at
        yield from places(found[at])


@pytest.mark.parametrize("seed", seeds(30, 3))
def test_a_trace_may_have_anything(seed: int) -> None:
    """Lines that are missing, and fields that are missing or have other values."""
    chance = random.Random(seed)
    for id in chance.sample(sorted(CASES), 20):
        script = Script()
        CASES[id](script, chance.random() < 0.5)
        for _ in range(3):
            held, at = chance.choice([one for line in script.lines for one in places(line)])
            held[at] = copy.deepcopy(chance.choice(JUNK))
            if chance.random() < 0.2 and len(script.lines) > 1:
                del script.lines[chance.randrange(len(script.lines))]
        found = list(examine(script.lines).report())
        assert "\n".join(lines(found, every=True)).encode() or not found
        assert junit(found).encode()
