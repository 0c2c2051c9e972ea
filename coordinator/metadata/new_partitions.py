"""The records of a topic's new partitions, written and replayed as one: a request may ask for ten thousand.

They differ in the partition's number only, as long as replicas and directories are the same.
"""

from __future__ import annotations

import struct

from ...protocol.records import RECORD_START_MAX, starts_of, varint
from ..shard import Packed
from .format import MetadataFormat
from .state import Partition, partition_record

_FRAME_BYTES = 3  # frame version, record type and record version, before the partition's number
_NUMBER = struct.Struct(">i")
_NO_KEY, _NO_HEADERS = varint(-1), varint(0)


class NewPartitions(Packed):
    """`partitions`: at least one; all with the same number of replicas, as in Kafka."""

    __slots__ = ("_size", "_templates", "partitions")

    def __init__(self, partitions: list[Partition]) -> None:
        self.partitions = partitions
        self._templates: dict[tuple[tuple[int, ...], tuple[bytes, ...]], tuple[bytes, bytes]] = {}
        head, tail = self._template(partitions[0])
        self._size = len(head) + _NUMBER.size + len(tail)

    def _template(self, partition: Partition) -> tuple[bytes, bytes]:
        """Returns the bytes of a record, from its key on, before and after the partition's number."""
        key = partition.replicas, partition.directories
        found = self._templates.get(key)
        if found is None:
            value = MetadataFormat().encode(partition_record(partition)).value or b""
            after = _FRAME_BYTES + _NUMBER.size
            found = self._templates[key] = (
                _NO_KEY + varint(len(value)) + value[:_FRAME_BYTES],
                value[after:] + _NO_HEADERS,
            )
        return found

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def size(self) -> int:
        return len(self.partitions) * (self._size + RECORD_START_MAX)

    def pack(self, index: int) -> bytes:
        parts: list[bytes] = []
        number, template = _NUMBER.pack, self._template
        for start, partition in zip(starts_of(self._size, index, len(self.partitions)), self.partitions, strict=True):
            head, tail = template(partition)
            parts += (start, head, number(partition.index), tail)
        return b"".join(parts)
