"""Transactions, told the same stories by ottla and by Apache Kafka: every version of every API, good and bad, compared field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from ottla.coordinator.transaction.format import TransactionFormat
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from .ask import fetch_message
from .differential import Pair, own_brokers
from .test_differential import topic, versions
from .test_differential_groups import first_beat, group_topic
from .test_differential_share import began
from .wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
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
TIMEOUT_MS = 60_000


oracle, ours, coordinators = own_brokers(SETTINGS)


# requests


class Writer(NamedTuple):
    """A transactional producer: its ids here and there, and its epoch."""

    name: str
    ids: tuple[int, int]
    epoch: int

    def at(self, epoch: int) -> Writer:
        return self._replace(epoch=epoch)

    def stranger(self) -> Writer:
        """Somebody with another producer id."""
        return self._replace(ids=(self.ids[0] + 7, self.ids[1] + 7))


def initialized(pair: Pair, name: str | None, before: Writer | None = None, version: int = 5, timeout_ms: int = TIMEOUT_MS) -> Writer:
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
    pair.until("DescribeTransactions", 0, request, lambda r: not any(s.transaction_state.startswith("Prepare") for s in r.transaction_states))
    for name in names:  # Kafka tells the state before it takes the next request
        a = m.AddPartitionsToTxnRequest
        probe = a(v3_and_below_transactional_id=name, v3_and_below_producer_id=0, v3_and_below_producer_epoch=0)
        probe.v3_and_below_topics = [a.AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=[0])]
        pair.until("AddPartitionsToTxn", 3, probe, lambda r: r.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code != 51)


def added(pair: Pair, version: int, writer: Writer, name: str, *partitions: int) -> None:
    a = m.AddPartitionsToTxnRequest

    def make(side: int) -> Any:
        topics = [a.AddPartitionsToTxnTopic(name=name, partitions=list(partitions))]
        if version < 4:
            return a(
                v3_and_below_transactional_id=writer.name,
                v3_and_below_producer_id=writer.ids[side],
                v3_and_below_producer_epoch=writer.epoch,
                v3_and_below_topics=topics,
            )
        return a(transactions=[asked(writer, side, topics)])

    pair.both("AddPartitionsToTxn", version, make)


def asked(writer: Writer, side: int, topics: list[Any], verify_only: bool = False) -> Any:
    t = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    return t(transactional_id=writer.name, producer_id=writer.ids[side], producer_epoch=writer.epoch, verify_only=verify_only, topics=topics)


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
        lambda side: m.EndTxnRequest(transactional_id=writer.name, producer_id=writer.ids[side], producer_epoch=writer.epoch, committed=committed),
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
) -> Any:
    r = m.ProduceRequest

    def make(side: int) -> Any:
        data = batch(writer, side, values, sequence, transactional)
        named = r.TopicProduceData(name=name) if version < 13 else r.TopicProduceData(topic_id=topic_ids[side] if topic_ids else b"")
        named.partition_data = [r.PartitionProduceData(index=partition, records=data)]
        who = writer.name if transactional_id == "" else transactional_id
        return r(transactional_id=who, acks=-1, timeout_ms=10_000, topic_data=[named])

    mine, _ = pair.both("Produce", version, make)
    return mine.responses[0].partition_responses[0]


def batch(writer: Writer, side: int, values: tuple[bytes, ...], sequence: int = 0, transactional: bool = True) -> bytes:
    template = Template(producer_id=writer.ids[side], producer_epoch=writer.epoch, base_sequence=sequence, transactional=transactional)
    return bytes(records.encode([Record(None, value, 1) for value in values], template))


def watched(pair: Pair, name: str, partition: int = 0, fetch_from: int = 0) -> None:
    """What a partition looks like from outside: records without producer ids, offsets, producers."""
    for isolation in (0, 1):
        listed = m.ListOffsetsRequest
        for timestamp in (-1, -2, 0):
            part = listed.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=-1)
            request = listed(replica_id=-1, isolation_level=isolation, topics=[listed.ListOffsetsTopic(name=name, partitions=[part])])
            pair.ask("ListOffsets", 5, request)
        replies = [w.ask("Fetch", 11, fetch_message(name, fetch_from, partition, isolation=isolation)) for w in (pair.ours, pair.theirs)]
        told = [seen(r.responses[0].partitions[0]) for r in replies]
        assert told[0] == told[1], f"ottla {told[0]}, Kafka {told[1]}"
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
        batches.append((h.base_offset, h.last_offset_delta, h.is_transactional, h.is_control, who, h.producer_epoch, h.base_sequence, found))
    aborted = sorted((t.first_offset, numbers.get(t.producer_id)) for t in answer.aborted_transactions or ())
    return answer.error_code, answer.high_watermark, answer.last_stable_offset, batches, aborted


def described(pair: Pair, *names: str) -> None:
    pair.ask("DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=list(names)))


# InitProducerId


@pytest.mark.parametrize("version", versions("InitProducerId"))
def test_producers_begin(pair: Pair, version: int) -> None:
    name = f"init-{version}"
    initialized(pair, None, version=version)
    initialized(pair, "", version=version)
    for timeout_ms in (0, -1, 100_001, 2**31 - 1):
        initialized(pair, f"{name}-slow", version=version, timeout_ms=timeout_ms)
    first = initialized(pair, name, version=version)
    second = initialized(pair, name, version=version)
    described(pair, name, f"{name}-slow", "")
    if version < 3:
        return
    third = initialized(pair, name, second, version)  # KIP-360
    again = initialized(pair, name, second, version)  # its reply was lost
    assert third == again
    for old in (first, second.stranger(), third.at(third.epoch + 1), third.at(-1), third._replace(ids=(-1, -1))):
        initialized(pair, name, old, version)
    initialized(pair, None, third, version)
    initialized(pair, f"{name}-unheard-of", third, version)


@pytest.mark.parametrize("version", versions("InitProducerId"))
def test_a_producer_that_begins_aborts_what_is_open(pair: Pair, version: int) -> None:
    name = f"fenced-{version}"
    topic(pair, name)
    old = initialized(pair, name, version=version)
    added(pair, 3, old, name, 0)
    produced(pair, 11, old, name, b"a")
    initialized(pair, name, version=version)  # CONCURRENT_TRANSACTIONS: the abort goes first
    settle(pair, name)
    new = initialized(pair, name, version=version)
    described(pair, name)
    produced(pair, 11, old, name, b"b", sequence=1)
    ended(pair, 4, old, COMMITTED)
    ended(pair, 1, old, COMMITTED)
    added(pair, 3, old, name, 0)
    added(pair, 1, old, name, 0)
    offsets_added(pair, 1, old, "g")
    offsets_added(pair, 3, old, "g")
    added(pair, 3, new, name, 0)
    produced(pair, 11, new, name, b"c")
    ended(pair, 4, new, COMMITTED)
    watched(pair, name)


# AddPartitionsToTxn, AddOffsetsToTxn


@pytest.mark.parametrize("version", versions("AddPartitionsToTxn"))
def test_partitions_join(pair: Pair, version: int) -> None:
    name = f"join-{version}"
    topic(pair, name, 3)
    writer = initialized(pair, name)
    added(pair, version, writer._replace(name=""), name, 0)
    added(pair, version, writer._replace(name="nobody"), name, 0)
    added(pair, version, writer.stranger(), name, 0)
    added(pair, version, writer.at(5), name, 0)
    added(pair, version, writer, name)
    added(pair, version, writer, name, 0)
    described(pair, name)
    added(pair, version, writer, name, 0)
    added(pair, version, writer, name, 1, 9)
    added(pair, version, writer, "not-there", 0)
    described(pair, name)
    added(pair, version, writer, name, 1, 2)
    described(pair, name)
    ended(pair, 5 if version >= 4 else 4, writer, ABORTED)
    described(pair, name)


@pytest.mark.parametrize("version", [4, 5])
def test_several_transactions_and_asking_only(pair: Pair, version: int) -> None:
    a = m.AddPartitionsToTxnRequest
    topic(pair, f"several-{version}", 3)
    writers = [initialized(pair, f"several-{version}-{n}") for n in range(3)]

    def topics(*partitions: int) -> list[Any]:
        return [a.AddPartitionsToTxnTopic(name=f"several-{version}", partitions=list(partitions))]

    def both(*wanted: tuple[Writer, tuple[int, ...], bool]) -> None:
        pair.both("AddPartitionsToTxn", version, lambda side: a(transactions=[asked(w, side, topics(*p), only) for w, p, only in wanted]))

    both((writers[0], (0,), True), (writers[1], (1,), False), (writers[2].at(9), (0, 2), False))
    both((writers[0], (0, 1), False), (writers[1], (0, 1), True), (writers[2], (0,), True), (writers[1]._replace(name="nobody"), (0,), True))
    both((writers[1].at(7), (1,), True), (writers[0].stranger(), (0,), True), (writers[2]._replace(name=""), (0,), True))
    both((writers[0], (8,), True), (writers[1], (0,), False))
    described(pair, *(w.name for w in writers))


@pytest.mark.parametrize("version", versions("AddOffsetsToTxn"))
def test_offsets_join(pair: Pair, version: int) -> None:
    writer = initialized(pair, f"offsets-{version}")
    for one in (writer._replace(name=""), writer._replace(name="nobody"), writer.stranger(), writer.at(3), writer, writer):
        offsets_added(pair, version, one, "group")
    offsets_added(pair, version, writer, "")
    described(pair, writer.name)
    ended(pair, 4, writer, COMMITTED)


# EndTxn


@pytest.mark.parametrize("version", versions("EndTxn"))
@pytest.mark.parametrize("committed", [COMMITTED, ABORTED])
def test_transactions_end(pair: Pair, version: int, committed: bool) -> None:
    name = f"end-{version}-{committed}"
    topic(pair, name, 2)
    writer = initialized(pair, name)
    for one in (writer._replace(name=""), writer._replace(name="nobody"), writer.stranger(), writer.at(4)):
        ended(pair, version, one, committed)
    ended(pair, version, writer, COMMITTED)  # nothing has begun
    writer = ended(pair, version, writer, ABORTED)  # which clients of KIP-890 may
    described(pair, name)
    added(pair, 3, writer, name, 0, 1)
    produced(pair, 11, writer, name, b"a", b"b")
    after = ended(pair, version, writer, committed)
    described(pair, name)
    ended(pair, version, writer, committed)  # its reply was lost
    ended(pair, version, writer, not committed)
    ended(pair, version, after, committed)
    last = ended(pair, version, after, ABORTED)
    ended(pair, version, last, COMMITTED)
    ended(pair, version, after, COMMITTED)
    described(pair, name)
    for partition in (0, 1):
        watched(pair, name, partition)


# Produce and Fetch


@pytest.mark.parametrize("version", versions("Produce"))
def test_records_in_transactions(pair: Pair, version: int) -> None:
    name = f"records-{version}"
    ids = topic(pair, name, 2)
    end = 5 if version >= 12 else 4

    def sent(writer: Writer, *values: bytes, **more: Any) -> Any:
        return produced(pair, version, writer, name, *values, topic_ids=ids, **more)

    writer = initialized(pair, name)
    sent(writer, b"x", transactional_id=None)
    sent(writer, b"x", transactional_id="nobody")
    sent(writer.stranger(), b"x")
    sent(writer.at(3), b"x")
    if version < 12:
        sent(writer, b"not announced")
        added(pair, 3, writer, name, 1)
        sent(writer, b"not announced either")
        added(pair, 3, writer, name, 0)
    else:
        sent(writer, b"too far", sequence=4)
    sent(writer, b"a", b"b")
    sent(writer, b"a", b"b")  # a duplicate
    described(pair, name)
    watched(pair, name)
    sent(writer, b"gap", sequence=9)
    sent(writer, b"c", sequence=2)
    sent(writer, b"plain", sequence=3, transactional=False)
    watched(pair, name)
    writer = ended(pair, end, writer, ABORTED)
    watched(pair, name)
    sent(writer.at(writer.epoch - 1) if version >= 12 else writer, b"late", sequence=3)
    watched(pair, name)
    if version < 12:
        added(pair, 3, writer, name, 0)
    sent(writer, b"d", b"e", sequence=0 if version >= 12 else 3)
    other = initialized(pair, f"{name}-other")
    added(pair, 3, other, name, 0)
    produced(pair, 11, other, name, b"o")
    writer = ended(pair, end, writer, COMMITTED)
    watched(pair, name)
    watched(pair, name, fetch_from=5)
    ended(pair, 4, other, ABORTED)
    watched(pair, name)
    for offset in (1, 4, 8):
        watched(pair, name, fetch_from=offset)


def test_one_request_has_one_producer(pair: Pair) -> None:
    topic(pair, "one-producer", 2)
    first, second = initialized(pair, "one-producer-1"), initialized(pair, "one-producer-2")
    r = m.ProduceRequest

    def make(side: int) -> Any:
        parts = [r.PartitionProduceData(index=i, records=batch(w, side, (b"x",))) for i, w in enumerate((first, second))]
        return r(transactional_id=first.name, acks=-1, timeout_ms=1000, topic_data=[r.TopicProduceData(name="one-producer", partition_data=parts)])

    for version in (9, 11, 12):
        pair.both("Produce", version, make)


def test_some_partitions_of_a_request_may_be_written(pair: Pair) -> None:
    topic(pair, "some", 3)
    writer = initialized(pair, "some")
    added(pair, 3, writer, "some", 0, 2)
    r = m.ProduceRequest

    def make(side: int, *partitions: int) -> Any:
        parts = [r.PartitionProduceData(index=i, records=batch(writer, side, (b"x",))) for i in partitions]
        return r(transactional_id="some", acks=-1, timeout_ms=1000, topic_data=[r.TopicProduceData(name="some", partition_data=parts)])

    pair.both("Produce", 11, lambda side: make(side, 0, 1))
    pair.both("Produce", 12, lambda side: make(side, 1, 2, 7))
    described(pair, "some")
    ended(pair, 4, writer, COMMITTED)
    for partition in range(3):
        watched(pair, "some", partition)


def test_a_transaction_that_takes_too_long_is_aborted(pair: Pair) -> None:
    topic(pair, "overdue")
    writer = initialized(pair, "overdue", timeout_ms=300)
    produced(pair, 12, writer, "overdue", b"a")
    request = m.DescribeTransactionsRequest(transactional_ids=["overdue"])
    pair.until("DescribeTransactions", 0, request, lambda r: r.transaction_states[0].transaction_state == "CompleteAbort")
    settle(pair, "overdue")
    described(pair, "overdue")
    produced(pair, 12, writer, "overdue", b"b", sequence=1)
    ended(pair, 5, writer, COMMITTED)
    initialized(pair, "overdue", writer)
    watched(pair, "overdue")


# WriteTxnMarkers


@pytest.mark.parametrize(("version", "transactions"), [(1, 0), (2, 0), (2, 2), (2, -1)])
def test_markers_from_outside(pair: Pair, version: int, transactions: int) -> None:
    name = f"markers-{version}-{transactions}"
    topic(pair, name, 2)
    writer = initialized(pair, name)
    r = m.WriteTxnMarkersRequest

    def marked(epoch: int, committed: bool, coordinator_epoch: int, *partitions: int, topic_name: str = name, who: Writer = writer) -> None:
        def make(side: int) -> Any:
            named = [r.WritableTxnMarkerTopic(name=topic_name, partition_indexes=list(partitions))]
            marker = r.WritableTxnMarker(
                producer_id=who.ids[side], producer_epoch=epoch, transaction_result=committed, coordinator_epoch=coordinator_epoch, topics=named
            )
            if version >= 2:
                marker.transaction_version = transactions
            return r(markers=[marker])

        pair.both("WriteTxnMarkers", version, make)

    pair.ask("WriteTxnMarkers", version, r(markers=[]))
    marked(0, COMMITTED, 0, 0, 5)
    marked(0, COMMITTED, 0, 0, topic_name="not-there")
    watched(pair, name)
    produced(pair, 12, writer, name, b"a")
    produced(pair, 12, writer, name, b"b", partition=1)
    marked(-1, ABORTED, 0, 0)
    marked(0, ABORTED, -1, 0)
    marked(0, ABORTED, 0, 1)
    watched(pair, name)
    watched(pair, name, 1)
    marked(1, ABORTED, 3, 0, 1)
    marked(1, ABORTED, 3, 0, 1)
    marked(1, COMMITTED, 2, 0)
    marked(2, COMMITTED, 2, 0)
    marked(2, COMMITTED, 4, 0, 1, topic_name="__consumer_offsets")
    watched(pair, name)
    watched(pair, name, 1)


# share groups


def leased(pair: Pair, name: str, ids: tuple[bytes, bytes], epoch: int) -> list[tuple[int, int]]:
    """What a member of a share group acquires; the same here and there, but for producers' ids in the records."""
    f = m.ShareFetchRequest
    found = []
    for side, wire in enumerate((pair.ours, pair.theirs)):
        request = f(group_id=name, member_id="m1", share_session_epoch=epoch, max_wait_ms=3000 if epoch == 0 else 500, min_bytes=1)
        request.max_bytes, request.max_records, request.batch_size = 1 << 20, 500, 500
        request.topics = [f.FetchTopic(topic_id=ids[side], partitions=[f.FetchPartition(partition_index=0)])]
        reply = wire.ask("ShareFetch", 2, request)
        parts = [p for t in reply.responses for p in t.partitions]
        found.append((reply.error_code, [p.error_code for p in parts], [(a.first_offset, a.last_offset) for p in parts for a in p.acquired_records]))
    assert found[0] == found[1], f"ottla {found[0]}, Kafka {found[1]}"
    return found[0][2]


def test_share_groups_lease_what_is_committed(pair: Pair) -> None:
    """`share.isolation.level`: aborted records are passed over, and nothing is leased behind the last stable offset."""
    for isolation, wanted in (("read_committed", [(0, 1), (5, 5)]), ("read_uncommitted", [(0, 1), (3, 3), (5, 5), (7, 8)])):
        name = f"queue-{isolation.replace('_', '-')}"
        ids = began(pair, name, share_isolation_level=isolation)
        one, other = initialized(pair, name), initialized(pair, f"{name}-open")
        produced(pair, 12, one, name, b"a", b"b")
        one = ended(pair, 5, one, COMMITTED)
        produced(pair, 12, one, name, b"aborted")
        one = ended(pair, 5, one, ABORTED)
        produced(pair, 12, one, name, b"c")
        ended(pair, 5, one, COMMITTED)
        produced(pair, 12, other, name, b"open", b"still")
        taken = leased(pair, name, ids, 0) + leased(pair, name, ids, 1)
        assert {o for a, b in taken for o in range(a, b + 1)} >= {o for a, b in wanted for o in range(a, b + 1)}, taken
        if isolation == "read_committed":
            assert not {o for a, b in taken for o in range(a, b + 1)} & {3, 7, 8}
        ended(pair, 5, other, COMMITTED)
        leased(pair, name, ids, 2)


# offsets


def offsets_committed(
    pair: Pair,
    version: int,
    writer: Writer,
    group: str,
    name: str,
    offset: int,
    *,
    member: tuple[str, str] = ("", ""),
    generation: int = -1,
    instance: str | None = None,
    metadata: str = "",
    partitions: tuple[int, ...] = (0,),
    ids: tuple[bytes, bytes] | None = None,
) -> Any:
    r = m.TxnOffsetCommitRequest

    def make(side: int) -> Any:
        parts = [r.TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata=metadata) for p in partitions]
        named = r.TxnOffsetCommitRequestTopic(partitions=parts)
        if version >= 6:
            named.topic_id = ids[side] if ids else bytes(15) + b"\x07"
        else:
            named.name = name
        request = r(transactional_id=writer.name, group_id=group, producer_id=writer.ids[side], producer_epoch=writer.epoch, topics=[named])
        if version >= 3:
            request.member_id, request.generation_id_or_member_epoch, request.group_instance_id = member[side], generation, instance
        return request

    return pair.both("TxnOffsetCommit", version, make)[0]


def offsets_watched(pair: Pair, group: str, name: str) -> None:
    f = m.OffsetFetchRequest
    for stable in (False, True):
        wanted = f.OffsetFetchRequestGroup(group_id=group, topics=[f.OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1])])
        pair.ask("OffsetFetch", 8, f(groups=[wanted], require_stable=stable))
        pair.ask("OffsetFetch", 8, f(groups=[f.OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=stable))


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_offsets_in_transactions(pair: Pair, version: int) -> None:
    name = f"txn-offsets-{version}"
    ids = topic(pair, name, 2)
    end = 5 if version >= 5 else 4
    writer = initialized(pair, name)

    def committed(who: Writer, offset: int, group: str = name, **more: Any) -> Any:
        return offsets_committed(pair, version, who, group, name, offset, **{"ids": ids, **more})

    committed(writer, 1, group="")
    for stranger in (writer._replace(name=""), writer._replace(name="nobody"), writer.stranger(), writer.at(4)):
        committed(stranger, 1)
    if version < 5:
        committed(writer, 1)  # not announced
        offsets_added(pair, 3, writer, name)
    committed(writer, 5, partitions=(0, 1, 9))
    committed(writer, 5, partitions=())
    committed(writer, 5, ids=None) if version >= 6 else offsets_committed(pair, version, writer, name, "not-there", 1)
    committed(writer, 6, metadata="x" * 5000)
    offsets_watched(pair, name, name)
    described(pair, name)
    writer = ended(pair, end, writer, COMMITTED)
    offsets_watched(pair, name, name)
    if version < 5:
        committed(writer, 7)  # not announced again
        offsets_added(pair, 3, writer, name)
    committed(writer, 8, metadata="why")
    committed(writer.at(writer.epoch - 1) if version >= 5 else writer, 9)
    offsets_watched(pair, name, name)
    after = ended(pair, end, writer, ABORTED)
    offsets_watched(pair, name, name)
    if version < 5:
        offsets_added(pair, 3, after, name)
    if version >= 3:
        committed(after, 9, generation=3)
        committed(after, 9, generation=3, group=f"{name}-unheard-of")
        committed(after, 9, member=("m", "m"))
        committed(after, 9, instance="i")
        committed(after, 9, generation=-2)
    committed(after, 10, partitions=(1,))
    d = m.OffsetDeleteRequest
    parts = [d.OffsetDeleteRequestPartition(partition_index=p) for p in (0, 1)]
    pair.ask("OffsetDelete", 0, d(group_id=name, topics=[d.OffsetDeleteRequestTopic(name=name, partitions=parts)]))
    offsets_watched(pair, name, name)
    committed(after, 11)
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[name]))
    offsets_watched(pair, name, name)
    ended(pair, end, after, COMMITTED)
    offsets_watched(pair, name, name)


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_offsets_in_transactions_of_members_and_of_share_groups(pair: Pair, version: int) -> None:
    name = f"txn-members-{version}"
    ids = group_topic(pair, name, 2)
    first_beat(pair, f"{name}-c", "m1", [name])
    r = m.ShareGroupHeartbeatRequest
    pair.ask("ShareGroupHeartbeat", 1, r(group_id=f"{name}-s", member_id="m1", member_epoch=0, subscribed_topic_names=[name]))
    writer = initialized(pair, name)
    for group in (f"{name}-c", f"{name}-s", f"{name}-none"):
        if version < 5:
            offsets_added(pair, 3, writer, group)
        for member in ("m1", "nobody", "") if version >= 3 else ("",):
            for generation in (-1, 0, 1, 2, 99) if version >= 3 else (-1,):
                offsets_committed(pair, version, writer, group, name, 3, member=(member, member), generation=generation, ids=ids)
    ended(pair, 5 if version >= 5 else 4, writer, COMMITTED)


# administration


def listed(pair: Pair, version: int, **filters: Any) -> None:
    def make(side: int) -> Any:
        return m.ListTransactionsRequest(**{k: v(side) if callable(v) else v for k, v in filters.items()})

    pair.both("ListTransactions", version, make)


@pytest.mark.parametrize("version", versions("ListTransactions"))
def test_transactions_are_listed(pair: Pair, version: int) -> None:
    name = f"listed-{version}"
    topic(pair, name)
    open_one, idle = initialized(pair, f"{name}-open"), initialized(pair, f"{name}-idle")
    produced(pair, 12, open_one, name, b"a")

    def mine(side: int) -> list[int]:
        return [open_one.ids[side], idle.ids[side], 10**12]

    for states in ([], ["Ongoing"], ["Empty"], ["Ongoing", "Empty", "Dead"], ["Nonsense", "ongoing"], ["PrepareEpochFence", "CompleteAbort"]):
        listed(pair, version, producer_id_filters=mine, state_filters=states)
    listed(pair, version, producer_id_filters=[10**12])
    if version >= 1:
        for longer_ms in (-1, 0, 10**9):
            listed(pair, version, producer_id_filters=mine, duration_filter=longer_ms)
    if version >= 2:
        for pattern in ("", f"{name}-open", f"{name}-.*", "open", "(", "[a-z]+-2-(open|idle)"):
            listed(pair, version, producer_id_filters=mine, transactional_id_pattern=pattern)
    described(pair, open_one.name, idle.name, open_one.name, "nobody")
    ended(pair, 5, open_one, COMMITTED)


@pytest.mark.parametrize("version", versions("FindCoordinator"))
def test_the_coordinator_of_a_transaction_is_found(pair: Pair, version: int) -> None:
    r = m.FindCoordinatorRequest
    for key in ("tx", ""):
        if version == 0:
            pair.ask("FindCoordinator", 0, r(key=key))
        elif version < 4:
            pair.ask("FindCoordinator", version, r(key=key, key_type=1))
        else:
            pair.ask("FindCoordinator", version, r(coordinator_keys=[key, "other"], key_type=1))


# features


@pytest.fixture
def lowered(pair: Pair, request: pytest.FixtureRequest) -> Iterator[int]:
    """The finalized transaction.version at a lower level, and at its old one afterwards."""
    finalize(pair, request.param)
    yield request.param
    finalize(pair, 2)


def finalize(pair: Pair, level: int) -> None:
    u = m.UpdateFeaturesRequest
    kind = 1 if level == 2 else 2
    pair.ask("UpdateFeatures", 1, u(feature_updates=[u.FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)]))
    request = m.ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    wanted = level or None  # a level of 0 is not told
    pair.until("ApiVersions", 4, request, lambda r: {f.name: f.max_version_level for f in r.finalized_features}.get("transaction.version") == wanted)


@pytest.mark.parametrize("lowered", [1, 0], indirect=True)
def test_transactions_of_an_older_feature_level(pair: Pair, lowered: int) -> None:
    """A producer that fences another raises its epoch at once and not with the end of the transaction; records are of an older version."""
    name = f"lowered-{lowered}"
    topic(pair, name)
    old = initialized(pair, name)
    added(pair, 3, old, name, 0)
    produced(pair, 11, old, name, b"a")
    initialized(pair, name)
    settle(pair, name)
    described(pair, name)
    new = initialized(pair, name)
    described(pair, name)
    ended(pair, 4, old, COMMITTED)
    added(pair, 3, new, name, 0)
    produced(pair, 11, new, name, b"b")
    ended(pair, 4, new, COMMITTED)
    careless = initialized(pair, f"{name}-careless")
    produced(pair, 12, careless, name, b"c")
    if lowered:  # at level 0 there is no record for it; Kafka refuses it and then never does anything else for this id
        ended(pair, 5, careless, COMMITTED)
    watched(pair, name)
    slow = initialized(pair, f"{name}-slow", timeout_ms=300)
    added(pair, 3, slow, name, 0)
    produced(pair, 11, slow, name, b"d")
    request = m.DescribeTransactionsRequest(transactional_ids=[slow.name])
    pair.until("DescribeTransactions", 0, request, lambda r: r.transaction_states[0].transaction_state == "CompleteAbort")
    settle(pair, slow.name)
    described(pair, slow.name)
    ended(pair, 4, slow, COMMITTED)
    watched(pair, name)


# records


def written(wire: Wire) -> list[tuple[str, Any]]:
    """Every record of the coordinators' log, with producer ids as distances from the first of their transactional id, and without times."""
    found: list[tuple[str, Any]] = []
    first: dict[str, int] = {}
    for partition in (0, 1):
        answer = wire.ask("Fetch", 11, fetch_message("__transaction_state", 0, partition, max_bytes=1 << 24)).responses[0].partitions[0]
        for at in records.batches(answer.records):
            for record in records.decode(answer.records, at):
                decoded = TransactionFormat(lambda: 1).decode(record)
                assert decoded is not None
                name, value = decoded
                if value is not None:
                    base = first.setdefault(name, value.producer_id)
                    value = value._replace(producer_id=value.producer_id - base, start_ms=min(value.start_ms, 0), updated_ms=0)
                    value = value._replace(previous_producer_id=-1 if value.previous_producer_id < 0 else value.previous_producer_id - base)
                found.append((name, (value, len(record.value or b""))))
    return found


def test_the_same_records_are_written(pair: Pair) -> None:
    """After all the stories before: the same steps, in the same bytes but for ids and times, for every transactional id."""
    mine, other = (by_name(written(wire)) for wire in (pair.ours, pair.theirs))
    assert mine.keys() == other.keys()
    for name, steps in mine.items():
        assert steps == other[name], name


def by_name(found: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    steps: dict[str, list[Any]] = {}
    for name, step in found:
        steps.setdefault(name, []).append(step)
    return steps
