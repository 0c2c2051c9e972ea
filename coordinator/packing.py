"""Records of a coordinator as they are written, one or many at once, and the encoding of its batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ..protocol import records
from ..protocol.records import Record, Template

RECORD_OVERHEAD = 21  # the most bytes of a record besides its key and value


class Packed:
    """Several records that a handler decides, writes and replays as one, because they are many."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The most bytes that the records take in a batch."""
        raise NotImplementedError

    def pack(self, index: int) -> bytes:
        """Returns the encoded records. The first is record number `index` of its batch,
        whose records all have the same timestamp.
        """
        raise NotImplementedError

    def told(self) -> Iterable[Record]:
        """Returns the records if they tell what happens to a group."""
        return ()


class Built(Packed):
    """A record that its handler has encoded, in steps, because it is large."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

    def __len__(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return len(self.record.key or b"") + len(self.record.value or b"") + RECORD_OVERHEAD

    def pack(self, index: int) -> bytes:
        out = bytearray()
        records.put_record(out, self.record, 0, index)
        return bytes(out)

    def told(self) -> Iterable[Record]:
        return (self.record,)


Encoded = Record | Packed


class Body:
    """Encoded records of a batch. `taken`: how many of the batch's records, or packs of them, it has; `count`: how many
    records these are.
    """

    __slots__ = ("count", "data", "taken")

    def __init__(self) -> None:
        self.data = bytearray()
        self.taken = self.count = 0

    def take(self, encoded: Sequence[Encoded], until: int) -> None:
        """Takes records of the batch until it has `until` of them, or all."""
        while self.taken < len(encoded) and self.count < until:
            one = encoded[self.taken]
            if isinstance(one, Packed):
                self.data += one.pack(self.count)
                self.count += len(one)
            else:
                records.put_record(self.data, one, 0, self.count)
                self.count += 1
            self.taken += 1


def encode_batch(encoded: Sequence[Encoded], now_ms: int, template: Template, body: Body | None = None) -> bytearray:
    """Returns a batch of the records, all with the timestamp `now_ms`. `body`: has those that are encoded already."""
    body = body or Body()
    body.take(encoded, sys.maxsize)
    return records.batch_of(body.data, template, body.count, body.count - 1, now_ms, now_ms)
