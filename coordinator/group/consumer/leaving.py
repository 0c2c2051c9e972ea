"""Many members that leave a consumer group at once: their tombstones are decided, written and replayed as one."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, repeat

from ....protocol.records import RECORD_START_MAX, Record, put_record, starts_of, varint
from ...packing import Packed
from ..format import GroupFormat
from .records import member_tombstones

FEW = 16  # members whose tombstones are records of their own
_SHORT = struct.Struct(">h")
_ENDS = b"\1\0"  # no value, and no headers


class MembersGone(Packed):
    """The records that take members out of a consumer group, those of `records.member_tombstones` for each."""

    __slots__ = ("_heads", "_ids", "group", "member_ids")

    def __init__(self, group: str, member_ids: Sequence[str]) -> None:
        self.group = group
        self.member_ids = member_ids
        encode = GroupFormat().encode
        keys = [encode(one).key or b"" for one in member_tombstones(group, "")]
        self._heads = [key[: -_SHORT.size] for key in keys]  # of the keys, without the member
        self._ids = [one.encode("utf-8", "replace") for one in member_ids]  # as the codec encodes them

    def __len__(self) -> int:
        return len(self._heads) * len(self._ids)

    @property
    def size(self) -> int:
        lengths = sum(map(len, self._ids)) + len(self._ids) * (len(self._heads[0]) + _SHORT.size + RECORD_START_MAX + 5)
        return len(self._heads) * lengths

    def told(self) -> Iterator[Record]:
        for one in self._ids:
            for head in self._heads:
                yield Record(head + _SHORT.pack(len(one)) + one, None)

    def pack(self, index: int) -> bytes:
        lengths = set(map(len, self._ids))
        if len(lengths) > 1:
            body = bytearray()
            for number, record in enumerate(self.told(), index):
                put_record(body, record, 0, number)
            return bytes(body)
        (length,) = lengths  # clients take ids of one length: the records differ in their numbers and ids
        key_size = len(self._heads[0]) + _SHORT.size + length
        before = [varint(key_size) + head + _SHORT.pack(length) for head in self._heads]
        starts = starts_of(len(varint(key_size)) + key_size + len(_ENDS), index, len(self))
        ids = chain.from_iterable(zip(*(self._ids for _ in before), strict=True))
        return b"".join(chain.from_iterable(zip(starts, cycle(before), ids, repeat(_ENDS), strict=False)))
