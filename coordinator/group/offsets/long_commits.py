"""Commits with metadata or an expiry, which differ in length: a client such as Kafka Streams has metadata in all of its
commits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import NamedTuple

from ....protocol.records import starts_of, unsigned_varint, varint
from ..format import COMMIT_VERSION, NO_EXPIRY, VERSION_WITH_EXPIRY, CommitKeys, Commits, Key, Stored

_SHORT = struct.Struct(">h")
_TIME = struct.Struct(">q")
_TIMES = struct.Struct(">qq")
_TO_DELTA = 3  # bytes of the start of a small record that are before its offset delta
_LENGTHS_MAX = 4  # bytes that the lengths of metadata and value may have more than without metadata
_EXPIRY = 5  # bytes that a value with an expiry has more than one without, and without the tags that it does not have


class _Shape(NamedTuple):
    """What packs commits whose offset deltas and metadata have the same sizes, and the fields that are the same."""

    pack: Callable[..., bytes]
    start: bytes
    value_start: bytes
    length: bytes
    end: bytes


class LongCommits(Commits):
    """The commits of one topic in one request, with metadata or an expiry."""

    __slots__ = ("_texts", "expire_ms", "metadatas")

    def __init__(
        self,
        of: CommitKeys,
        commit_ms: int,
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        metadatas: Sequence[str],
        expire_ms: int,
    ) -> None:
        super().__init__(of, commit_ms, offsets, leader_epochs)
        self.metadatas = metadatas
        self.expire_ms = expire_ms
        self._texts = [one.encode("utf-8", "replace") for one in metadatas]  # as the codec encodes them

    @property
    def size(self) -> int:
        more = _LENGTHS_MAX if self.expire_ms == NO_EXPIRY else _LENGTHS_MAX + _EXPIRY + 1 - len(self.of.tail)
        return super().size + sum(map(len, self._texts)) + len(self._texts) * more

    def pack(self, index: int) -> bytes:
        texts = self._texts
        # the version with an expiry has the length of the metadata where the other one has the leader epoch
        numbers = self.leader_epochs if self.expire_ms == NO_EXPIRY else map(len, texts)
        deltas = [start[_TO_DELTA:] for start in starts_of(0, index, len(texts))]
        shapes: dict[tuple[int, int], _Shape] = {}
        head, records = self.of.head, []
        for delta, partition, offset, number, text in zip(
            deltas, self.of.partitions, self.offsets, numbers, texts, strict=True
        ):
            sizes = len(delta), len(text)
            shape = shapes.get(sizes)
            if shape is None:
                shape = shapes[sizes] = self._shape(*sizes)
            pack, start, value_start, length, end = shape
            records.append(pack(start, delta, head, partition, value_start, offset, number, length, text, end))
        return b"".join(records)

    def _shape(self, delta_size: int, text_size: int) -> _Shape:
        if self.expire_ms == NO_EXPIRY:
            version, number, length = COMMIT_VERSION, "i", unsigned_varint(text_size + 1)
            end = _TIME.pack(self.commit_ms) + self.of.tail
        else:
            version, number, length = VERSION_WITH_EXPIRY, "h", b""
            end = _TIMES.pack(self.commit_ms, self.expire_ms) + b"\0"  # no headers
        value = f"q{number}{len(length)}s{text_size}s{len(end)}s"
        value_size = struct.calcsize(f">h{value}") - 1  # the last byte of `end` is the number of headers
        value_start = varint(value_size) + _SHORT.pack(version)
        rest = f"{delta_size}s{len(self.of.head)}si{len(value_start)}s{value}"
        start = varint(2 + struct.calcsize(f">{rest}")) + b"\0\0"
        return _Shape(struct.Struct(f">{len(start)}s{rest}").pack, start, value_start, length, end)

    def stored(self, offset: int) -> dict[Key, Stored]:
        same = repeat(self.commit_ms), repeat(self.of.topic_id), repeat(self.expire_ms)
        values = zip(count(offset), self.offsets, self.leader_epochs, self.metadatas, *same, strict=False)
        return dict(zip(self.of.keys, values, strict=False))
