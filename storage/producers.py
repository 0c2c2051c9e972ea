"""What a partition knows of its producers: epochs, the last five batches of each, and open transactions.

The rules are Kafka's (`ProducerStateManager`, KIP-98, KIP-360): sequences grow by one per record and wrap from 2^31 - 1 to 0;
a batch that is one of the last five is a duplicate and gets its first offset again; a producer of which nothing is known may
begin anywhere. State is rebuilt from a snapshot file and the batches behind it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from crc32c import crc32c

from ..protocol import codec, messages
from ..protocol.errors import ApiError, Errors
from ..protocol.records import NO_PRODUCER_ID, NO_SEQUENCE, BatchHeader
from .index import AbortedTransaction

KEPT_BATCHES = 5
NO_EPOCH = -1
SNAPSHOT_VERSION = 1


class CorruptSnapshot(ValueError):
    """A snapshot that is not whole; the state is rebuilt from the log instead."""


class Batch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & 0x7FFFFFFF

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Producer:
    """One producer's state in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_first_offset")

    def __init__(self, epoch: int = NO_EPOCH) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_first_offset = -1
        self.batches: list[Batch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate(self, header: BatchHeader) -> Batch | None:
        """The batch of which this one is a repetition."""
        if header.producer_epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                    return batch
        return None


class Marker(NamedTuple):
    """The end of a transaction, as a control batch says it."""

    committed: bool
    coordinator_epoch: int


class Producers:
    """All producers of a partition, by id; the least recently heard first."""

    def __init__(self, partition: str = "") -> None:
        self.partition = partition  # for messages
        self.by_id: OrderedDict[int, Producer] = OrderedDict()
        self.open_transactions: dict[int, int] = {}  # producer id to first offset
        self.snapshot_offset = -1  # up to where the newest snapshot file speaks

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the transaction that has been open longest."""
        return min(self.open_transactions.values(), default=None)

    def find_duplicate(self, header: BatchHeader) -> Batch | None:
        producer = self.by_id.get(header.producer_id)
        return producer.duplicate(header) if producer else None

    def check(self, header: BatchHeader, offset: int) -> None:
        """Refuses a client's batch that does not follow from what its producer wrote. ApiError with Kafka's code and words."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return
        pid, epoch = header.producer_id, header.producer_epoch
        if epoch < producer.epoch:
            raise ApiError(
                Errors.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {pid} at offset {offset} in {self.partition} is {epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}",
            )
        if epoch != producer.epoch:
            if header.base_sequence != 0 and producer.epoch != NO_EPOCH:
                raise ApiError(
                    Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {pid} at offset {offset} in partition {self.partition}: "
                    f"{epoch} (request epoch), {header.base_sequence} (seq. number), {producer.epoch} (current producer epoch)",
                )
        elif producer.epoch != NO_EPOCH and not self._follows(producer.last_sequence, header.base_sequence):
            raise ApiError(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {pid} at offset {offset} in partition {self.partition}: "
                f"{header.base_sequence} (incoming seq. number), {producer.last_sequence} (current end sequence number)",
            )
        if producer.transaction_first_offset >= 0 and not header.is_transactional:
            raise ApiError(
                Errors.INVALID_TXN_STATE,
                f"Expected transactional write from producer {pid} at offset {offset} in partition {self.partition}",
            )

    @staticmethod
    def _follows(last: int, first: int) -> bool:
        return first == (last + 1) & 0x7FFFFFFF

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Notes a batch of records that has been appended, or was found in the log."""
        pid = header.producer_id
        if pid == NO_PRODUCER_ID:
            return
        producer = self.by_id.get(pid)
        if producer is None:
            producer = self.by_id[pid] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        last_offset = base_offset + header.last_offset_delta
        producer.batches.append(Batch(header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp))
        del producer.batches[:-KEPT_BATCHES]
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = self.open_transactions[pid] = base_offset
        self.by_id.move_to_end(pid)

    def end_transaction(self, header: BatchHeader, marker: Marker, offset: int, stable: int) -> AbortedTransaction | None:
        """Notes a marker at `offset`; returns the entry of an aborted transaction. `stable`: the high watermark's bound."""
        pid = header.producer_id
        producer = self.by_id.get(pid)
        if producer is None:
            producer = self.by_id[pid] = Producer(header.producer_epoch)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        first = producer.transaction_first_offset
        producer.transaction_first_offset = -1
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        self.open_transactions.pop(pid, None)
        self.by_id.move_to_end(pid)
        if first < 0 or marker.committed:
            return None
        open_now = self.first_open_offset
        return AbortedTransaction(0, pid, first, offset, open_now if open_now is not None else offset + 1)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets producers without a transaction that have not been heard for `expiration_ms`."""
        for pid in [p for p, s in self.by_id.items() if now_ms - s.last_timestamp >= expiration_ms]:
            if self.by_id[pid].transaction_first_offset < 0:
                del self.by_id[pid]

    def truncate_before(self, offset: int) -> None:
        """The log begins at `offset` now: what is known of earlier records stays, open transactions before it end."""
        for pid, first in list(self.open_transactions.items()):
            if first < offset and self.by_id[pid].last_offset < offset:
                del self.open_transactions[pid]
                self.by_id[pid].transaction_first_offset = -1

    # snapshot files

    def snapshot(self) -> bytes:
        """The state in the format of Kafka's `.snapshot` files."""
        entry_class = messages.ProducerSnapshot.ProducerEntry
        entries = []
        for pid, p in self.by_id.items():
            last = p.batches[-1] if p.batches else Batch(NO_SEQUENCE, -1, 0, p.last_timestamp)
            entries.append(
                entry_class(
                    producer_id=pid,
                    epoch=p.epoch,
                    last_sequence=last.last_sequence,
                    last_offset=last.last_offset,
                    offset_delta=last.offset_delta,
                    timestamp=p.last_timestamp,
                    coordinator_epoch=p.coordinator_epoch,
                    current_txn_first_offset=p.transaction_first_offset,
                )
            )
        body = codec.build("ProducerSnapshot", SNAPSHOT_VERSION, messages.ProducerSnapshot(crc=0, producer_entries=entries))
        body[0:4] = crc32c(bytes(body[4:])).to_bytes(4, "big")
        return SNAPSHOT_VERSION.to_bytes(2, "big") + bytes(body)

    def load_snapshot(self, data: bytes, offset: int) -> None:
        """Takes the state from a snapshot file. CorruptSnapshot leaves it empty."""
        self.by_id.clear()
        self.open_transactions.clear()
        if len(data) < 10 or int.from_bytes(data[:2], "big") != SNAPSHOT_VERSION:
            raise CorruptSnapshot("not a snapshot of version 1")
        if crc32c(data[6:]) != int.from_bytes(data[2:6], "big"):
            raise CorruptSnapshot("wrong CRC")
        for e in codec.parse("ProducerSnapshot", SNAPSHOT_VERSION, data[2:]).producer_entries:
            p = self.by_id[e.producer_id] = Producer(e.epoch)
            p.coordinator_epoch, p.last_timestamp = e.coordinator_epoch, e.timestamp
            p.transaction_first_offset = e.current_txn_first_offset
            if e.last_offset >= 0:
                p.batches.append(Batch(e.last_sequence, e.last_offset, e.offset_delta, e.timestamp))
            if e.current_txn_first_offset >= 0:
                self.open_transactions[e.producer_id] = e.current_txn_first_offset
        self.snapshot_offset = offset
