"""The records of a topic's new partitions, written, read and replayed as one: a request may ask for ten thousand.

They differ in the partition's number only, as long as replicas and directories are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from ...protocol import messages
from ...protocol.records import RECORD_START_MAX, Record, starts_of, varint
from ...protocol.structs import Struct
from ..packing import Packed
from .format import MetadataFormat
from .state import Partition, partition_of, partition_record

_FRAME_BYTES = 3  # frame version, record type and record version, before the partition's number
_NUMBER = struct.Struct(">i")
_AFTER_NUMBER = _FRAME_BYTES + _NUMBER.size
_NO_KEY, _NO_HEADERS = varint(-1), varint(0)
PARTITIONS_AS_ONE = 128  # at most: so many are made, prepared or read in a step


class NewPartitions(Packed):
    """`partitions`: at least one; all with the same number of replicas, as in Kafka."""

    __slots__ = ("_templates", "partitions")

    def __init__(self, partitions: list[Partition]) -> None:
        self.partitions = partitions
        self._templates: dict[tuple[tuple[int, ...], tuple[bytes, ...]], tuple[bytes, bytes]] = {}

    def _template(self, partition: Partition) -> tuple[bytes, bytes]:
        """Returns the bytes of a record, from its key on, before and after the partition's number."""
        key = partition.replicas, partition.directories
        found = self._templates.get(key)
        if found is None:
            value = MetadataFormat().encode(partition_record(partition)).value or b""
            found = self._templates[key] = (
                _NO_KEY + varint(len(value)) + value[:_FRAME_BYTES],
                value[_AFTER_NUMBER:] + _NO_HEADERS,
            )
        return found

    @property
    def _record_size(self) -> int:
        head, tail = self._template(self.partitions[0])
        return len(head) + _NUMBER.size + len(tail)

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def size(self) -> int:
        return len(self.partitions) * (self._record_size + RECORD_START_MAX)

    def pack(self, index: int) -> bytes:
        parts: list[bytes] = []
        number, template = _NUMBER.pack, self._template
        starts = starts_of(self._record_size, index, len(self.partitions))
        for start, partition in zip(starts, self.partitions, strict=True):
            head, tail = template(partition)
            parts += (start, head, number(partition.index), tail)
        return b"".join(parts)


def decoded(records: Iterable[Record]) -> Iterator[tuple[int, Struct | NewPartitions | None]]:
    """Decodes records of the metadata log; yields each with its offset, and None in place of an unknown type.

    New partitions of a topic, in the order of their numbers, are yielded as one, with the offset of the first.
    """
    decode = MetadataFormat().decode
    known: dict[bytes, Partition] = {}  # by the bytes of a record without the partition's number
    new: list[Partition] = []
    first = 0
    for record in records:
        value = record.value or b""
        shape = value[:_FRAME_BYTES] + value[_AFTER_NUMBER:]
        like = known.get(shape)
        if like is not None:
            made = _numbered(like, _NUMBER.unpack_from(value, _FRAME_BYTES)[0])
        else:
            found = decode(record)
            other = None if found is None else found[1]
            if not isinstance(other, messages.PartitionRecord) or not _is_plain(other):
                if new:
                    yield first, NewPartitions(new)
                    new = []
                yield record.offset, other
                continue
            made = partition_of(other)
            if max(value[:_FRAME_BYTES]) < 0x80:  # each of them is a byte
                known[shape] = made
        if new and not (
            made.topic_id == new[-1].topic_id and made.index == new[-1].index + 1 and len(new) < PARTITIONS_AS_ONE
        ):
            yield first, NewPartitions(new)
            new = []
        if not new:
            first = record.offset
        new.append(made)
    if new:
        yield first, NewPartitions(new)


def _is_plain(record: messages.PartitionRecord) -> bool:
    """Whether neither a reassignment nor a recovery of the partition goes on."""
    return not (record.adding_replicas or record.removing_replicas or record.leader_recovery_state)


def _numbered(like: Partition, index: int) -> Partition:
    """Returns a partition that differs in its number only (`dataclasses.replace` takes five times as long)."""
    return Partition(
        like.topic_id,
        index,
        like.replicas,
        like.isr,
        like.leader,
        like.leader_epoch,
        like.partition_epoch,
        like.directories,
        like.elr,
        like.last_known_elr,
    )
