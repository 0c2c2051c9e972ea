"""Requests of stories about transactions."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ..ask import fetch_message
from ..differential import Pair

SETTINGS: dict[str, object] = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.max.timeout.ms": 100_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
    "share.coordinator.state.topic.num.partitions": 2,
    "log.retention.ms": -1,  # what is produced bears times long ago
}


ABORTED, COMMITTED = False, True
NOBODY = 1 << 40  # a producer id that no broker has given out


TIMEOUT_MS = 60_000


# requests


class Writer(NamedTuple):
    """A transactional producer: its ids here and there, and its epoch."""

    name: str
    ids: tuple[int, int]
    epoch: int

    def at(self, epoch: int) -> Writer:
        return self._replace(epoch=epoch)

    def stranger(self) -> Writer:
        """A producer with another id."""
        return self._replace(ids=(self.ids[0] + 7, self.ids[1] + 7))


def initialized(
    pair: Pair, name: str | None, before: Writer | None = None, version: int = 5, timeout_ms: int = TIMEOUT_MS
) -> Writer:
    def make(side: int) -> Any:
        request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        if before is not None:
            request.producer_id, request.producer_epoch = before.ids[side], before.epoch
        return request

    mine, other = pair.both("InitProducerId", version, make)
    return Writer(name or "", (mine.producer_id, other.producer_id), mine.producer_epoch)


def settle(pair: Pair, *names: str) -> None:
    """Waits until no markers of these transactional ids are under way."""
    request = m.DescribeTransactionsRequest(transactional_ids=list(names))
    pair.until(
        "DescribeTransactions",
        0,
        request,
        lambda r: not any(s.transaction_state.startswith("Prepare") for s in r.transaction_states),
    )
    for name in names:  # Kafka replies with the state before it takes the next request
        a = m.AddPartitionsToTxnRequest
        probe = a(v3_and_below_transactional_id=name, v3_and_below_producer_id=NOBODY, v3_and_below_producer_epoch=0)
        probe.v3_and_below_topics = [a.AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=[0])]
        pair.until(
            "AddPartitionsToTxn",
            3,
            probe,
            lambda r: r.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code != 51,
        )


def added(pair: Pair, version: int, writer: Writer, name: str, *partitions: int) -> None:
    a = m.AddPartitionsToTxnRequest

    topics = [a.AddPartitionsToTxnTopic(name=name, partitions=list(partitions))]
    pair.both("AddPartitionsToTxn", version, lambda side: adding(version, writer, side, topics))


def adding(version: int, writer: Writer, side: int, topics: list[Any], verify_only: bool = False) -> Any:
    """Returns an AddPartitionsToTxn of one transaction."""
    a = m.AddPartitionsToTxnRequest
    if version >= 4:
        return a(transactions=[asked(writer, side, topics, verify_only)])
    return a(
        v3_and_below_transactional_id=writer.name,
        v3_and_below_producer_id=writer.ids[side],
        v3_and_below_producer_epoch=writer.epoch,
        v3_and_below_topics=topics,
    )


def asked(writer: Writer, side: int, topics: list[Any], verify_only: bool = False) -> Any:
    t = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    return t(
        transactional_id=writer.name,
        producer_id=writer.ids[side],
        producer_epoch=writer.epoch,
        verify_only=verify_only,
        topics=topics,
    )


def offsets_added(pair: Pair, version: int, writer: Writer, group: str) -> None:
    pair.both(
        "AddOffsetsToTxn",
        version,
        lambda side: m.AddOffsetsToTxnRequest(
            transactional_id=writer.name, producer_id=writer.ids[side], producer_epoch=writer.epoch, group_id=group
        ),
    )


def ended(pair: Pair, version: int, writer: Writer, committed: bool) -> Writer:
    """The producer as it goes on; where markers were written they are all there."""
    mine, other = pair.both(
        "EndTxn",
        version,
        lambda side: m.EndTxnRequest(
            transactional_id=writer.name, producer_id=writer.ids[side], producer_epoch=writer.epoch, committed=committed
        ),
    )
    if mine.error_code == 0:
        settle(pair, writer.name)
    if version < 5 or mine.error_code or mine.producer_id < 0:
        return writer
    return Writer(writer.name, (mine.producer_id, other.producer_id), mine.producer_epoch)


def produced(
    pair: Pair,
    version: int,
    writer: Writer,
    name: str,
    *values: bytes,
    sequence: int = 0,
    partition: int = 0,
    transactional: bool = True,
    transactional_id: str | None = "",
    topic_ids: tuple[bytes, bytes] | None = None,
    acks: int = -1,
) -> Any:
    r = m.ProduceRequest

    def make(side: int) -> Any:
        data = batch(writer, side, values, sequence, transactional)
        named = (
            r.TopicProduceData(name=name)
            if version < 13
            else r.TopicProduceData(topic_id=topic_ids[side] if topic_ids else b"")
        )
        named.partition_data = [r.PartitionProduceData(index=partition, records=data)]
        who = writer.name if transactional_id == "" else transactional_id
        return r(transactional_id=who, acks=acks, timeout_ms=10_000, topic_data=[named])

    mine, _ = pair.both("Produce", version, make)
    return mine.responses[0].partition_responses[0]


def batch(writer: Writer, side: int, values: tuple[bytes, ...], sequence: int = 0, transactional: bool = True) -> bytes:
    template = Template(
        producer_id=writer.ids[side], producer_epoch=writer.epoch, base_sequence=sequence, transactional=transactional
    )
    return bytes(records.encode([Record(None, value, 1) for value in values], template))


def watched(pair: Pair, name: str, partition: int = 0, fetch_from: int = 0) -> None:
    """What a partition looks like from outside: records without producer ids, offsets, producers."""
    for isolation in (0, 1):
        listed = m.ListOffsetsRequest
        for timestamp in (-1, -2, 0):
            part = listed.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=-1)
            request = listed(
                replica_id=-1, isolation_level=isolation, topics=[listed.ListOffsetsTopic(name=name, partitions=[part])]
            )
            pair.ask("ListOffsets", 5, request)
        replies = [
            w.ask("Fetch", 11, fetch_message(name, fetch_from, partition, isolation=isolation)) for w in pair.wires
        ]
        shown = [seen(r.responses[0].partitions[0]) for r in replies]
        assert shown[0] == shown[1], f"ottla {shown[0]}, Kafka {shown[1]}"
    d = m.DescribeProducersRequest
    pair.ask("DescribeProducers", 0, d(topics=[d.TopicRequest(name=name, partition_indexes=[partition])]))


def seen(answer: Any) -> Any:
    """A fetched partition with producers numbered in the order in which they appear."""
    numbers: dict[int, int] = {}
    batches = []
    for at in records.batches(answer.records):
        h = at.header
        who = numbers.setdefault(h.producer_id, len(numbers))
        found = [(r.offset, r.key, r.value) for r in records.decode(answer.records, at)]
        batches.append(
            (
                h.base_offset,
                h.last_offset_delta,
                h.is_transactional,
                h.is_control,
                who,
                h.producer_epoch,
                h.base_sequence,
                found,
            )
        )
    aborted = sorted((t.first_offset, numbers.get(t.producer_id)) for t in answer.aborted_transactions or ())
    return answer.error_code, answer.high_watermark, answer.last_stable_offset, batches, aborted


def described(pair: Pair, *names: str) -> None:
    pair.ask("DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=list(names)))


# administration


def listed(pair: Pair, version: int, **filters: Any) -> None:
    def make(side: int) -> Any:
        return m.ListTransactionsRequest(**{k: v(side) if callable(v) else v for k, v in filters.items()})

    pair.both("ListTransactions", version, make)
