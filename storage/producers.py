"""The producer state of a partition: epochs, the last five batches of each producer, and open transactions.

The rules are Kafka's (`ProducerStateManager`, `ProducerAppendInfo`, KIP-98, KIP-360): sequences grow by one per record
and wrap from 2^31 - 1 to 0; a batch that equals one of the last five is a duplicate and gets its first offset again; an
unknown producer may begin with any sequence. The state is rebuilt from a snapshot file and the batches after it.

The first batch of a transaction needs a `Verification` (KIP-890): the coordinator has confirmed that the partition is
part of the transaction, and no marker was written between this confirmation and the append.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import OrderedDict
from itertools import islice
from typing import NamedTuple

from ..protocol import codec, messages
from ..protocol.checksum import crc32c
from ..protocol.control import Marker
from ..protocol.errors import ApiError, Errors
from ..protocol.records import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, PRODUCER_EPOCH_MAX, BatchHeader
from .index import AbortedTransaction

KEPT_BATCHES = 5
FORGOTTEN_MAX = 1000  # producers that are forgotten in one append
SNAPSHOT_VERSION = 1


class CorruptSnapshot(ValueError):
    """A damaged snapshot; the state is rebuilt from the log instead."""


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

    def copy(self) -> Producer:
        made = Producer(self.epoch)
        made.coordinator_epoch, made.last_timestamp = self.coordinator_epoch, self.last_timestamp
        made.transaction_first_offset, made.batches = self.transaction_first_offset, self.batches.copy()
        return made

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate(self, header: BatchHeader) -> Batch | None:
        """Returns the batch that this one repeats."""
        if header.producer_epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                    return batch
        return None


class Verification:
    """A pending verification of a producer's first batch of a transaction. `raises`: its client uses transactions
    version 2, which raises the epoch.
    """

    __slots__ = ("epoch", "lowest_sequence", "raises", "since_ms")

    def __init__(self, epoch: int, sequence: int, raises: bool, since_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.raises = raises
        self.since_ms = since_ms

    def note(self, epoch: int, sequence: int) -> None:
        """Adds another batch that waits for the same verification."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


RAISES_SINCE = 2  # the transaction version in which a marker's epoch is higher than that of its records


class Producers:
    """All producers of a partition, by id; the least recently active one first."""

    def __init__(self, partition: str = "") -> None:
        self.partition = partition  # for messages
        self.by_id: OrderedDict[int, Producer] = OrderedDict()
        self.open_transactions: dict[int, int] = {}  # producer id to first offset, the oldest first
        self.verifying: dict[int, Verification] = {}  # by producer id
        # ended transactions by the offset of the marker, with the first offset; without those that began after one that
        # ended later, which do not matter any more: so both offsets ascend
        self._unreplicated: list[tuple[int, int]] = []
        self.snapshot_offset = 0  # the offset of the newest snapshot file

    @property
    def first_open_offset(self) -> int | None:
        """The first offset of the oldest open transaction."""
        return next(iter(self.open_transactions.values()), None)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Returns the first offset of a transaction that is open, or whose marker is not below the high watermark."""
        ended = self._unreplicated
        if not ended and not self.open_transactions:  # as in most partitions
            return None
        self.replicated(high_watermark)
        first_open = self.first_open_offset
        if not ended:
            return first_open
        return ended[0][1] if first_open is None else min(first_open, ended[0][1])

    def replicated(self, high_watermark: int) -> None:
        """Forgets ended transactions whose markers are below the high watermark."""
        ended = self._unreplicated
        if ended and ended[0][0] < high_watermark:
            del ended[: bisect_left(ended, (high_watermark,))]

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        producer = self.by_id.get(producer_id)
        return producer is not None and producer.transaction_first_offset >= 0 and producer.epoch == epoch

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, raises: bool, now_ms: int
    ) -> Verification | None:
        """Returns the verification that a transactional batch needs;
        None if its transaction is already open. Raises ApiError.
        """
        self._check_older(producer_id, epoch)
        if self.is_in_transaction(producer_id, epoch):
            return None
        found = self.verifying.get(producer_id)
        if found is None:
            found = self.verifying[producer_id] = Verification(epoch, sequence, raises, now_ms)
        else:
            found.note(epoch, sequence)
        return found

    def forget_verifications(self) -> None:
        """The partition has another leader, which knows nothing of what was being verified."""
        self.verifying.clear()

    def _check_older(self, producer_id: int, epoch: int) -> None:
        producer = self.by_id.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise ApiError(
                Errors.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch "
                f"{producer.epoch}",
            )

    def find_duplicate(self, header: BatchHeader) -> Batch | None:
        producer = self.by_id.get(header.producer_id)
        return producer.duplicate(header) if producer else None

    def check_verified(self, producer_id: int, epoch: int, verification: Verification | None) -> None:
        """Refuses a transactional batch that has no valid verification. Raises ApiError."""
        if not self.is_in_transaction(producer_id, epoch):
            self._check_older(producer_id, epoch)
            if verification is None or self.verifying.get(producer_id) is not verification:
                raise ApiError(Errors.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def check(self, header: BatchHeader, offset: int) -> None:
        """Refuses a client's batch whose epoch or sequence does not continue those of its producer. Raises ApiError
        with Kafka's code and message.
        """
        pid, epoch = header.producer_id, header.producer_epoch
        producer = self.by_id.get(pid)
        verification = self.verifying.get(pid)
        if verification is not None:
            self._check_first(header, offset, verification, producer)
        if producer is None:
            return
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
                    f"Invalid sequence number for new epoch of producer {pid} at offset {offset} in partition "
                    f"{self.partition}: "
                    f"{epoch} (request epoch), {header.base_sequence} (seq. number), {producer.epoch} (current "
                    "producer epoch)",
                )
        elif producer.epoch != NO_EPOCH and not self._follows(producer.last_sequence, header.base_sequence):
            raise ApiError(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {pid} at offset {offset} in partition {self.partition}: "
                f"{header.base_sequence} (incoming seq. number), {producer.last_sequence} (current end sequence "
                "number)",
            )
        if producer.transaction_first_offset >= 0 and not header.is_transactional:
            raise ApiError(
                Errors.INVALID_TXN_STATE,
                f"Expected transactional write from producer {pid} at offset {offset} in partition {self.partition}",
            )

    def _check_first(
        self, header: BatchHeader, offset: int, verification: Verification, producer: Producer | None
    ) -> None:
        """Of the batches that waited for a verification,
        the one with the lowest sequence must come first. Raises ApiError.
        """
        head = (
            f"sequence number for producer {header.producer_id} at offset {offset} in partition {self.partition}: "
            f"{header.base_sequence}"
        )
        if verification.raises and header.base_sequence != 0 and (producer is None or not producer.batches):
            raise ApiError(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid {head} (incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer "
                "with no existing state.",
            )
        if header.base_sequence > verification.lowest_sequence:
            raise ApiError(
                Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order {head} (incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)",
            )

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, version: int, offset: int) -> None:
        """Refuses a marker of an older producer or coordinator. `version`: the client's transaction version.

        Raises ApiError(INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED).
        """
        producer = self.by_id.get(producer_id)
        if producer is None:
            return
        raises = version >= RAISES_SINCE
        repeated = (
            raises
            and epoch == producer.epoch
            and (producer.transaction_first_offset < 0 or epoch == PRODUCER_EPOCH_MAX)
        )
        if not repeated and (epoch < producer.epoch or (raises and epoch == producer.epoch)):
            raise ApiError(
                Errors.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self.partition} is {epoch}, "
                f"which is {'<=' if raises else '<'} the last seen epoch {producer.epoch} (TV{version})",
            )
        if producer.coordinator_epoch > coordinator_epoch:
            raise ApiError(
                Errors.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} at offset {offset} in partition "
                f"{self.partition}: "
                f"{coordinator_epoch} (zombie), {producer.coordinator_epoch} (current)",
            )

    @staticmethod
    def _follows(last: int, first: int) -> bool:
        return first == (last + 1) & 0x7FFFFFFF

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Updates the state with a batch of records that was appended, or read from the log."""
        pid = header.producer_id
        if pid == NO_PRODUCER_ID:
            return
        producer = self._heard(header)
        last_offset = base_offset + header.last_offset_delta
        producer.batches.append(
            Batch(header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp)
        )
        del producer.batches[:-KEPT_BATCHES]
        producer.last_timestamp = header.max_timestamp
        if header.is_transactional and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = self.open_transactions[pid] = base_offset
        if header.is_transactional:
            self.verifying.pop(pid, None)

    def _heard(self, header: BatchHeader) -> Producer:
        """Returns the producer of a batch in the batch's epoch, as the one heard last."""
        pid = header.producer_id
        producer = self.by_id.get(pid)
        if producer is None:
            producer = self.by_id[pid] = Producer(header.producer_epoch)
            return producer
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        self.by_id.move_to_end(pid)
        return producer

    def saved(self, producer_id: int) -> Producer | None:
        """Returns the state of a producer as it is now, for `restore`; None of one that is not known."""
        known = self.by_id.get(producer_id)
        return None if known is None else known.copy()

    def restore(self, producer_id: int, saved: Producer | None) -> None:
        """Takes back batches without a transaction that came after `saved`."""
        if saved is None:
            self.by_id.pop(producer_id, None)
        else:
            self.by_id[producer_id] = saved

    def end_transaction(self, header: BatchHeader, marker: Marker, offset: int) -> AbortedTransaction | None:
        """Ends a transaction with the marker at `offset`; returns its index entry if it was aborted."""
        pid = header.producer_id
        producer = self._heard(header)
        first = producer.transaction_first_offset
        producer.transaction_first_offset = -1
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        self.open_transactions.pop(pid, None)
        verification = self.verifying.get(pid)
        if verification is not None and not (verification.raises and verification.epoch == header.producer_epoch):
            del self.verifying[pid]
        if first < 0:
            return None
        ended = self._unreplicated
        while ended and ended[-1][1] >= first:
            ended.pop()
        ended.append((offset, first))
        if marker.committed:
            return None
        open_now = self.first_open_offset
        return AbortedTransaction(0, pid, first, offset, open_now if open_now is not None else offset + 1)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Removes producers without an open transaction that have been inactive for `expiration_ms`."""
        for pid in [p for p, s in self.by_id.items() if now_ms - s.last_timestamp >= expiration_ms]:
            if self.by_id[pid].transaction_first_offset < 0:
                del self.by_id[pid]
        for pid in [p for p, v in self.verifying.items() if now_ms - v.since_ms >= expiration_ms]:
            del self.verifying[pid]

    def next_expiry_ms(self, expiration_ms: int) -> float:
        """Returns a time before which `expire` removes nothing, unless a producer writes."""
        known = min((p.last_timestamp for p in self.by_id.values() if p.transaction_first_offset < 0), default=math.inf)
        verified = min((one.since_ms for one in self.verifying.values()), default=math.inf)
        return min(known, verified) + expiration_ms

    def forget(self, count: int) -> None:
        """Removes the `count` producers that were silent for longest, except those with open transactions; looks at
        FORGOTTEN_MAX of them at most.
        """
        for pid in list(islice(self.by_id, min(count + len(self.open_transactions), FORGOTTEN_MAX))):
            if count > 0 and self.by_id[pid].transaction_first_offset < 0:
                del self.by_id[pid]
                count -= 1

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
        body = codec.build(
            "ProducerSnapshot", SNAPSHOT_VERSION, messages.ProducerSnapshot(crc=0, producer_entries=entries)
        )
        body[0:4] = crc32c(bytes(body[4:])).to_bytes(4, "big")
        return SNAPSHOT_VERSION.to_bytes(2, "big") + bytes(body)

    def load_snapshot(self, data: bytes, offset: int) -> None:
        """Loads the state from a snapshot file. After CorruptSnapshot the state is empty."""
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
        self.open_transactions = dict(sorted(self.open_transactions.items(), key=lambda one: one[1]))
        self.snapshot_offset = offset
