"""Transactions in data directories that go both ways: open ones, aborted ones, ends that were decided and not carried
out, pending offsets.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from ..sim.producers import committed_rows
from ..support.ask import create, fetch_message, lab
from ..support.dumps import check_directory
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}
BUSY = {14, 15, 16, 51}  # what answers while coordinators come up and markers are written


class Writer:
    """A transactional producer over one connection, which may be exchanged for one to another broker."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire = wire
        self.name = name
        self.sequences: dict[int, int] = {}
        reply = self._patiently(
            "InitProducerId", 5, m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        )
        self.id, self.epoch = reply.producer_id, reply.producer_epoch

    def _patiently(self, name: str, version: int, message: Any) -> Any:
        def answered() -> Any:
            reply = self.wire.ask(name, version, message)
            code = reply.error_code if hasattr(reply, "error_code") else reply.topics[0].partitions[0].error_code
            assert code in (0, *BUSY), f"{name}: {code}"
            return None if code else reply

        return until(answered, f"{name} is answered")

    def write(self, topic: str, value: bytes, partition: int = 0) -> None:
        sequence = self.sequences.get(partition, 0)
        template = Template(producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence, transactional=True)
        data = bytes(records.encode([Record(None, value, 1)], template))
        r = m.ProduceRequest
        parts = [r.PartitionProduceData(index=partition, records=data)]
        request = r(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=5000,
            topic_data=[r.TopicProduceData(name=topic, partition_data=parts)],
        )

        def is_written() -> bool:
            code = self.wire.ask("Produce", 12, request).responses[0].partition_responses[0].error_code
            assert code in (0, *BUSY, 19, 6, 3), code
            return bool(code == 0)

        until(is_written, f"a record is written to {topic}")
        self.sequences[partition] = sequence + 1

    def commit_offset(self, topic: str, offset: int) -> None:
        r = m.TxnOffsetCommitRequest
        part = r.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = r(transactional_id=self.name, group_id="g", producer_id=self.id, producer_epoch=self.epoch)
        request.topics = [r.TxnOffsetCommitRequestTopic(name=topic, partitions=[part])]
        self._patiently("TxnOffsetCommit", 5, request)

    def end(self, committed: bool) -> None:
        request = m.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        reply = self._patiently("EndTxn", 5, request)
        self.id, self.epoch, self.sequences = reply.producer_id, reply.producer_epoch, {}


def prepare(wire: Wire) -> Writer:
    """Committed and aborted transactions, and one that is open, with offsets."""
    for kind in (0, 1):
        request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])

        def is_found(request: Any = request) -> bool:
            return not wire.ask("FindCoordinator", 4, request).coordinators[0].error_code

        until(is_found, f"a coordinator of type {kind}")
    create(wire, "t", 2)
    done = Writer(wire, "done")
    for n in range(6):
        done.write("t", b"%d" % n, n % 2)
        done.commit_offset("t", n)
        done.end(committed=n % 3 != 0)
    other = Writer(wire, "open")
    other.write("t", b"open")
    other.commit_offset("t", 100)
    return other


def committed(wire: Wire, partition: int, offset: int = 0) -> list[bytes]:
    """Every committed record, once the broker serves the partition."""
    found: list[bytes] = []

    def is_read() -> bool:
        nonlocal offset, found
        (part,) = wire.ask("Fetch", 11, fetch_message("t", offset, partition, isolation=1)).responses[0].partitions
        if part.error_code or part.high_watermark < 1:
            return False
        found += [value for _, value in committed_rows(part.records, part.aborted_transactions or (), offset)]
        ends = [at.header.next_offset for at in records.batches(part.records)]
        offset = ends[-1] if ends else offset
        return not ends

    until(is_read, f"partition {partition} is read to its end")
    return found


def offset_of(wire: Wire) -> tuple[int, int]:
    """The committed offset, and the error code where it must be stable."""
    f = m.OffsetFetchRequest
    asked = f.OffsetFetchRequestGroup(
        group_id="g", topics=[f.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )

    def found(stable: bool) -> Any:
        group = wire.ask("OffsetFetch", 8, f(groups=[asked], require_stable=stable)).groups[0]
        return None if group.error_code in BUSY else group.topics[0].partitions[0]

    offset: int = until(lambda: found(stable=False), "the offsets are loaded").committed_offset
    error: int = until(lambda: found(stable=True), "the offsets are loaded").error_code
    return offset, error


def states(wire: Wire, *names: str) -> list[tuple[str, int, int]]:
    request = m.DescribeTransactionsRequest(transactional_ids=list(names))

    def loaded() -> Any:
        found = wire.ask("DescribeTransactions", 0, request).transaction_states
        return None if any(one.error_code in BUSY for one in found) else found

    found = until(loaded, "the transactions are loaded")
    return [(one.transaction_state, one.producer_id, one.producer_epoch) for one in found]


def await_end(wire: Wire) -> None:
    """The coordinator may have to ask for its markers more than once, seconds apart."""
    until(lambda: states(wire, "open")[0][0] == "CompleteCommit", "the transaction ends")


def check(wire: Wire, one: Writer) -> None:
    """The other broker goes on where the first one stopped."""
    assert [s[0] for s in states(wire, "done", "open")] == ["CompleteCommit", "Ongoing"]
    assert (committed(wire, 0), committed(wire, 1)) == ([b"2", b"4"], [b"1", b"5"])
    assert offset_of(wire) == (5, 88), "an offset of the open transaction is pending"
    one.wire = wire
    one.write("t", b"more", 1)
    one.end(committed=True)
    await_end(wire)
    assert (committed(wire, 0), committed(wire, 1)) == ([b"2", b"4", b"open"], [b"1", b"5", b"more"])
    assert offset_of(wire) == (100, 0)


def test_kafka_goes_on_with_ottlas_transactions(tmp_path: Path) -> None:
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        one = prepare(wire)
        known = states(wire, "done", "open")
    logs = ",".join(str(p) for p in (tmp_path / "data").glob("__transaction_state-*/*.log"))
    dumped = tool("DumpLogSegments", "--transaction-log-decoder", "--files", logs).stdout
    assert re.search(r'"transactionalId":"open".*"transactionStatus":1,"transactionPartitions":\[\{"topic":', dumped), (
        dumped[-3000:]
    )
    assert (
        "endTxnMarker"
        in tool(
            "DumpLogSegments", "--files", str(next((tmp_path / "data").glob("t-0/*.log"))), "--print-data-log"
        ).stdout
    )
    with Kafka(SETTINGS, directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert states(wire, "done", "open") == known
        check(wire, one)


def test_ottla_goes_on_with_kafkas_transactions(tmp_path: Path) -> None:
    with Kafka(SETTINGS, directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        one = prepare(wire)
        known = states(wire, "done", "open")
    with Broker({"node.id": 1, **SETTINGS}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert states(wire, "done", "open") == known
        check(wire, one)
    assert check_directory(tmp_path / "data") > 5
    with Kafka(SETTINGS, directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert (committed(wire, 0), committed(wire, 1)) == ([b"2", b"4", b"open"], [b"1", b"5", b"more"])


def test_kafka_carries_out_an_end_that_ottla_decided(tmp_path: Path) -> None:
    """Kafka gets the logs as they are between the decision and the first marker that counts.

    The metadata log is that of a clean stop, which fences the broker. While Kafka fences a broker that was killed, its
    coordinator takes partitions without a leader for deleted ones, and skips their markers.
    """
    killed = tmp_path / "killed"
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        one = prepare(wire)
        lab(broker, "/v1/hold", {"topic": "t"})
        lab(broker, "/v1/hold", {"topic": "__consumer_offsets"})
        one.end(committed=True)
        assert states(wire, "open")[0][0] == "PrepareCommit"
        shutil.copytree(tmp_path / "data", killed / "data")
    shutil.rmtree(killed / "data" / "__cluster_metadata-0")
    shutil.copytree(tmp_path / "data" / "__cluster_metadata-0", killed / "data" / "__cluster_metadata-0")
    with Kafka(SETTINGS, directory=killed, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        await_end(wire)
        assert committed(wire, 0) == [b"2", b"4", b"open"]
        assert offset_of(wire) == (100, 0)
