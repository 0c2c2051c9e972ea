"""Transactions, told the same stories by ottla and by Apache Kafka: records and markers, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.share import began
from ..support.stories.topics import topic, versions
from ..support.stories.transactions import (
    ABORTED,
    COMMITTED,
    SETTINGS,
    Writer,
    added,
    batch,
    described,
    ended,
    initialized,
    produced,
    settle,
    watched,
)

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


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
    sent(writer._replace(name="nobody"), b"x", acks=7)
    sent(writer, b"a", b"b", acks=7)
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
    assert pair.errors("Produce") >= {
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "NONE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    }


def test_one_request_has_one_producer(pair: Pair) -> None:
    topic(pair, "one-producer", 2)
    first, second = initialized(pair, "one-producer-1"), initialized(pair, "one-producer-2")
    r = m.ProduceRequest

    def make(side: int) -> Any:
        parts = [
            r.PartitionProduceData(index=i, records=batch(w, side, (b"x",))) for i, w in enumerate((first, second))
        ]
        return r(
            transactional_id=first.name,
            acks=-1,
            timeout_ms=1000,
            topic_data=[r.TopicProduceData(name="one-producer", partition_data=parts)],
        )

    for version in (9, 11, 12):
        pair.both("Produce", version, make)
    assert pair.errors("Produce") == {"INVALID_PRODUCER_ID_MAPPING"}


def test_records_that_are_refused_count_for_no_producer(pair: Pair) -> None:
    topic(pair, "refused-producer", 2)
    first, second = initialized(pair, "refused-producer-1"), initialized(pair, "refused-producer-2")
    r = m.ProduceRequest

    def make(side: int, index: int, times: int, acks: int) -> Any:
        parts = [
            r.PartitionProduceData(index=0, records=batch(first, side, (b"x",))),
            r.PartitionProduceData(index=index, records=batch(second, side, (b"x",)) * times),
        ]
        named = [r.TopicProduceData(name="refused-producer", partition_data=parts)]
        return r(transactional_id=first.name, acks=acks, timeout_ms=1000, topic_data=named)

    for acks in (-1, 7):
        pair.both("Produce", 11, lambda side: make(side, 9, 1, acks))  # noqa: B023
        pair.both("Produce", 11, lambda side: make(side, 1, 2, acks))  # noqa: B023
    assert pair.errors("Produce") == {"INVALID_RECORD", "TRANSACTION_ABORTABLE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_transactional_records_without_a_producer(pair: Pair) -> None:
    """They belong to no transaction: no one asks for one, and readers of committed records see them at once."""
    topic(pair, "unowned")
    unowned = Writer("unowned", (-1, -1), -1)
    produced(pair, 10, unowned, "unowned", b"v", sequence=-1)
    produced(pair, 12, unowned, "unowned", b"w", b"x", sequence=-1)
    produced(pair, 12, unowned, "unowned", b"y", sequence=5)
    produced(pair, 12, Writer("unowned", (-1, -1), 3), "unowned", b"z", sequence=-1)
    watched(pair, "unowned")


def test_some_partitions_of_a_request_may_be_written(pair: Pair) -> None:
    topic(pair, "some", 3)
    writer = initialized(pair, "some")
    added(pair, 3, writer, "some", 0, 2)
    r = m.ProduceRequest

    def make(side: int, *partitions: int) -> Any:
        parts = [r.PartitionProduceData(index=i, records=batch(writer, side, (b"x",))) for i in partitions]
        return r(
            transactional_id="some",
            acks=-1,
            timeout_ms=1000,
            topic_data=[r.TopicProduceData(name="some", partition_data=parts)],
        )

    pair.both("Produce", 11, lambda side: make(side, 0, 1))
    pair.both("Produce", 12, lambda side: make(side, 1, 2, 7))
    described(pair, "some")
    ended(pair, 4, writer, COMMITTED)
    for partition in range(3):
        watched(pair, "some", partition)
    assert pair.errors("Produce") == {"NONE", "TRANSACTION_ABORTABLE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_transaction_that_takes_too_long_is_aborted(pair: Pair) -> None:
    topic(pair, "overdue")
    writer = initialized(pair, "overdue", timeout_ms=300)
    produced(pair, 12, writer, "overdue", b"a")
    request = m.DescribeTransactionsRequest(transactional_ids=["overdue"])
    pair.until(
        "DescribeTransactions", 0, request, lambda r: r.transaction_states[0].transaction_state == "CompleteAbort"
    )
    settle(pair, "overdue")
    described(pair, "overdue")
    produced(pair, 12, writer, "overdue", b"b", sequence=1)
    ended(pair, 5, writer, COMMITTED)
    initialized(pair, "overdue", writer)
    watched(pair, "overdue")
    assert pair.errors("Produce") == {"INVALID_PRODUCER_EPOCH", "NONE"}
    assert pair.errors("EndTxn") == {"INVALID_TXN_STATE"}


# WriteTxnMarkers


@pytest.mark.parametrize(("version", "transactions"), [(1, 0), (2, 0), (2, 2), (2, -1)])
def test_markers_from_outside(pair: Pair, version: int, transactions: int) -> None:
    name = f"markers-{version}-{transactions}"
    topic(pair, name, 2)
    writer = initialized(pair, name)
    r = m.WriteTxnMarkersRequest

    def marked(
        epoch: int,
        committed: bool,
        coordinator_epoch: int,
        *partitions: int,
        topic_name: str = name,
        who: Writer = writer,
    ) -> None:
        def make(side: int) -> Any:
            named = [r.WritableTxnMarkerTopic(name=topic_name, partition_indexes=list(partitions))]
            marker = r.WritableTxnMarker(
                producer_id=who.ids[side],
                producer_epoch=epoch,
                transaction_result=committed,
                coordinator_epoch=coordinator_epoch,
                topics=named,
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
    assert pair.errors("WriteTxnMarkers") >= {"UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize("version", versions("WriteTxnMarkers"))
def test_markers_that_cannot_be_written(pair: Pair, version: int) -> None:
    """Without a producer id or epoch. One that no partition here gets fails nothing; others fail the whole request,
    after the markers before them were written.
    """
    name = f"unwritable-{version}"
    topic(pair, name, 2)
    writer = initialized(pair, name)
    produced(pair, 12, writer, name, b"a")
    r = m.WriteTxnMarkersRequest

    def asked(*markers: tuple[Writer | int, int, dict[str, list[int]]]) -> None:
        def make(side: int) -> Any:
            rows = []
            for who, epoch, places in markers:
                one = r.WritableTxnMarker(producer_id=who if isinstance(who, int) else who.ids[side])
                one.topics = [r.WritableTxnMarkerTopic(name=n, partition_indexes=of) for n, of in places.items()]
                one.producer_epoch = epoch
                rows.append(one)
            return r(markers=rows)

        pair.both("WriteTxnMarkers", version, make)

    # one partition of each producer: Kafka's maps have an order of their own
    here: dict[str, list[int]] = {name: [0]}
    empty: dict[str, list[int]] = {name: [], "missing": []}
    asked((-1, 0, {}))
    asked((-1, 0, empty))
    asked((writer, -1, {"missing": [0]}))
    asked((-1, -1, empty), (-1, 0, {name: [7]}), (writer, -1, {name: [-1]}))
    asked((-1, 0, {"__consumer_offsets": [0]}))
    watched(pair, name)
    asked((-1, 0, here))
    asked((-1, 0, {}), (writer, -1, {name: [0], "missing": []}), (-1, -1, {name: [1]}))
    watched(pair, name)
    asked((writer, 0, here), (writer, -1, {name: [1]}), (writer, 0, {name: [1]}))
    watched(pair, name)
    watched(pair, name, 1)
    assert pair.errors("WriteTxnMarkers") == {"UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"}


# share groups


def leased(pair: Pair, name: str, ids: tuple[bytes, bytes], epoch: int) -> list[tuple[int, int]]:
    """What a member of a share group acquires; the same here and there, but for producers' ids in the records."""
    f = m.ShareFetchRequest
    found = []
    for side, wire in enumerate(pair.wires):
        request = f(
            group_id=name,
            member_id="m1",
            share_session_epoch=epoch,
            max_wait_ms=3000 if epoch == 0 else 500,
            min_bytes=1,
        )
        request.max_bytes, request.max_records, request.batch_size = 1 << 20, 500, 500
        request.topics = [f.FetchTopic(topic_id=ids[side], partitions=[f.FetchPartition(partition_index=0)])]
        reply = wire.ask("ShareFetch", 2, request)
        parts = [p for t in reply.responses for p in t.partitions]
        found.append(
            (
                reply.error_code,
                [p.error_code for p in parts],
                [(a.first_offset, a.last_offset) for p in parts for a in p.acquired_records],
            )
        )
    assert found[0] == found[1], f"ottla {found[0]}, Kafka {found[1]}"
    return found[0][2]


def test_share_groups_lease_what_is_committed(pair: Pair) -> None:
    """`share.isolation.level`: aborted records are passed over, and nothing is leased after the last stable offset."""
    for isolation, wanted in (
        ("read_committed", [(0, 1), (5, 5)]),
        ("read_uncommitted", [(0, 1), (3, 3), (5, 5), (7, 8)]),
    ):
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


def test_an_open_transaction_whose_first_records_are_deleted(pair: Pair) -> None:
    """Nothing is stable from the batch on in which the log begins, also where that is before the log begins."""
    name, r = "records-deleted", m.DeleteRecordsRequest
    topic(pair, name)
    writer = initialized(pair, name)
    produced(pair, 12, writer, name, b"a", b"b", b"c")
    produced(pair, 12, writer, name, b"d", b"e", sequence=3)
    for offset in (1, 3, 4, 5):
        part = r.DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [r.DeleteRecordsTopic(name=name, partitions=[part])]
        pair.ask("DeleteRecords", 2, r(topics=topics, timeout_ms=10_000))
        watched(pair, name, fetch_from=offset)
    produced(pair, 12, writer, name, b"f", sequence=5)
    watched(pair, name, fetch_from=5)
    ended(pair, 5, writer, ABORTED)
    watched(pair, name, fetch_from=5)
