"""The records of `__consumer_offsets`. Commits, which are most of the records,
have their own code instead of the codec.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, count, repeat
from typing import Final, NamedTuple

from ...protocol import codec, messages
from ...protocol.records import RECORD_START_MAX, Record, starts_of, varint
from ...protocol.schema import NO_UUID
from ..format import COMMIT_KEY, CoordinatorFormat, CoordinatorRecord, group_key_names
from ..packing import Packed
from ..remembered import remembered

Key = tuple[str, int]
"""A topic's name and a partition."""

Stored = tuple[int, int, int, str, int, bytes, int]
"""A commit in memory: the offset of its record in the log, then offset, leader epoch, metadata, time of the commit, the
topic's id and the expiry. A plain tuple, because `zip` makes them for all commits of a request.
"""
COMMIT_MS: Final = 4  # places in it
TOPIC_ID: Final = 5
EXPIRE_MS: Final = 6
NO_EXPIRY: Final = -1  # kept as long as the broker says


class Commit(NamedTuple):
    """A committed offset: what OffsetCommitKey and OffsetCommitValue hold.

    Commits are most of what a coordinator writes and loads, so they have ways of their own through the codec
    (`Commits`, `_decode_commit`). The bytes are those of the schemas, which a test holds.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    topic_id: bytes
    expire_ms: int = NO_EXPIRY

    def stored(self, log_offset: int) -> Stored:
        return log_offset, self.offset, self.leader_epoch, self.metadata, self.commit_ms, self.topic_id, self.expire_ms

    def encode(self) -> Record:
        """The record by its schema; with an expiry in version 1 of the value, as no later one holds it (OffsetCommit 2
        to 4).
        """
        m = messages
        value = m.OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_ms,
            expire_timestamp=self.expire_ms,
            topic_id=self.topic_id,
        )
        version = VERSION_WITH_EXPIRY if self.expire_ms != NO_EXPIRY else COMMIT_VERSION
        data = bytes(codec.build("OffsetCommitValue", version, value, bytearray(_SHORT.pack(version))))
        return Record(_commit_key(self.group, self.topic) + _INT.pack(self.partition), data)


class CommitKeys:
    """The partitions of one topic for which a group commits offsets together, and what is the same in all of their
    records.
    """

    __slots__ = ("_places", "group", "head", "keys", "partitions", "size", "tail", "topic_id")

    def __init__(self, group: str, topic: str, topic_id: bytes, partitions: Sequence[int]) -> None:
        self.group = group
        self.topic_id = topic_id
        self.partitions = tuple(partitions)
        self.keys: list[Key] = list(zip(repeat(topic), partitions, strict=False))
        self.head = _packed_key(group, topic)
        self.tail = (_TOPIC_ID_TAG + topic_id if topic_id != NO_UUID else b"\0") + b"\0"  # no headers
        self.size = len(self.head) + _PACKED.size + len(self.tail)  # of each record, from the length of its key on
        self._places: dict[int, int] = {}  # made when one is looked for

    def __len__(self) -> int:
        return len(self.partitions)

    def place_of(self, partition: int) -> int:
        """Returns the place of a partition among these."""
        if not self._places:
            self._places = {one: place for place, one in enumerate(self.partitions)}
        return self._places[partition]


def commit_keys(group: str, topic: str, topic_id: bytes, partitions: Sequence[int]) -> CommitKeys:
    """Returns what may be kept from an earlier request: the members of a group commit the same partitions again and
    again.
    """
    if len(partitions) > _KEPT_PARTITIONS or len(group) > _KEPT_CHARACTERS:
        return CommitKeys(group, topic, topic_id, partitions)
    return _kept_keys(group, topic, topic_id, tuple(partitions))


class Commits(Packed):
    """The commits of one topic in one request, none with metadata or an expiry: all but partition, offset and epoch are
    the same for them.
    """

    __slots__ = ("commit_ms", "group", "leader_epochs", "of", "offsets")

    def __init__(self, of: CommitKeys, commit_ms: int, offsets: Sequence[int], leader_epochs: Sequence[int]) -> None:
        self.of = of
        self.group = of.group
        self.commit_ms = commit_ms
        self.offsets = offsets
        self.leader_epochs = leader_epochs

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size(self) -> int:
        return len(self.offsets) * (self.of.size + RECORD_START_MAX)

    def pack(self, index: int) -> bytes:
        of, number = self.of, len(self.offsets)
        if number * of.size > _KEPT_BYTES:
            return self._packed(index)
        packer, same = _layout(of.head, of.tail, index, of.partitions)
        fields = same.copy()
        fields[1::_FIELDS] = self.offsets
        fields[2::_FIELDS] = self.leader_epochs
        fields[4::_FIELDS] = [self.commit_ms] * number
        return packer.pack(*fields)

    def _packed(self, index: int) -> bytes:
        """Like `pack`, without a layout that is kept."""
        of = self.of
        value_size = varint(_COMMIT.size + len(of.tail) - 1)[0]  # it is one byte
        size, version, no_metadata, at = repeat(value_size), repeat(COMMIT_VERSION), repeat(1), repeat(self.commit_ms)
        packed = map(_PACKED.pack, of.partitions, size, version, self.offsets, self.leader_epochs, no_metadata, at)
        starts = starts_of(of.size, index, len(of.partitions))
        return b"".join(chain.from_iterable(zip(starts, repeat(of.head), packed, repeat(of.tail), strict=False)))

    def stored(self, offset: int) -> dict[Key, Stored]:
        """The commits, the first of which is in the log at `offset`."""
        same = repeat(""), repeat(self.commit_ms), repeat(self.of.topic_id), repeat(NO_EXPIRY)
        stored = zip(count(offset), self.offsets, self.leader_epochs, *same, strict=False)
        return dict(zip(self.of.keys, stored, strict=False))

    def stored_at(self, offset: int, place: int) -> Stored:
        """The commit at `place` of those that `stored` returns."""
        at, epoch = self.offsets[place], self.leader_epochs[place]
        return offset + place, at, epoch, "", self.commit_ms, self.of.topic_id, NO_EXPIRY


_kept_keys = lru_cache(1024)(CommitKeys)


@lru_cache(1024)
def _layout(head: bytes, tail: bytes, index: int, partitions: tuple[int, ...]) -> tuple[struct.Struct, list[object]]:
    """Returns what packs the commits of some partitions, which the members of a group commit again and again, and its
    fields: the bytes between an offset and the next one do not change, but for the leader epoch and the time.
    """
    value_size, version = varint(_COMMIT.size + len(tail) - 1), _SHORT.pack(COMMIT_VERSION)
    kinds, between = ">", b""
    fields: list[object] = []
    for start, partition in zip(
        starts_of(len(head) + _PACKED.size + len(tail), index, len(partitions)), partitions, strict=True
    ):
        between += start + head + _INT.pack(partition) + value_size + version
        kinds += f"{len(between)}sqiBq"
        fields += [between, 0, 0, 1, 0]  # an offset, a leader epoch, no metadata, and the time
        between = tail
    return struct.Struct(f"{kinds}{len(tail)}s"), [*fields, tail]


def commit_of(key: messages.OffsetCommitKey, value: messages.OffsetCommitValue) -> Commit:
    """Returns the commit of an OffsetCommitKey and an OffsetCommitValue."""
    return Commit(
        key.group,
        key.topic,
        key.partition,
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        bytes(value.topic_id),
        value.expire_timestamp,
    )


def _decode_commit(key: bytes, value: bytes) -> Commit | None:
    """A commit of the newest version, quickly; None for bytes that must be looked at more closely."""
    if len(value) < _COMMIT.size + 1 or value[:2] != b"\0\4" or len(key) < 10:
        return None
    _, offset, leader_epoch = _COMMIT_HEAD.unpack_from(value)
    size = value[14] - 1
    at = 15 + size
    if not 0 <= size < 0x7F or len(value) < at + 9:
        return None
    tags = value[at + 8 :]
    if tags == b"\0":
        topic_id = NO_UUID
    elif len(tags) == 19 and tags[:3] == _TOPIC_ID_TAG:
        topic_id = tags[3:]
    else:
        return None
    names = _names_of(key[:-4])
    if names is None:
        return None
    metadata = value[15:at].decode() if size else ""
    return Commit(
        *names,
        _INT.unpack_from(key, len(key) - 4)[0],
        offset,
        leader_epoch,
        metadata,
        _LONG.unpack_from(value, at)[0],
        topic_id,
    )


@remembered(1024)
def _names_of(prefix: bytes) -> tuple[str, str] | None:
    """Group and topic of a commit's key without its partition."""
    group_end = 4 + int.from_bytes(prefix[2:4], "big")
    topic_end = group_end + 2 + int.from_bytes(prefix[group_end : group_end + 2], "big")
    if len(prefix) != topic_end:
        return None
    return prefix[4:group_end].decode(), prefix[group_end + 2 :].decode()


@remembered(1024)
def _packed_key(group: str, topic: str) -> bytes:
    """The key without its partition, and its length in front."""
    key = _commit_key(group, topic)
    return varint(len(key) + _INT.size) + key


@remembered(1024)
def _commit_key(group: str, topic: str) -> bytes:
    """The key without its partition."""
    return bytes(
        codec.build("OffsetCommitKey", 0, messages.OffsetCommitKey(group=group, topic=topic), bytearray(b"\0\1"))
    )[:-4]


_COMMIT_HEAD = struct.Struct(">hqi")
_COMMIT = struct.Struct(">hqiBq")  # with no metadata
_PACKED = struct.Struct(">iBhqiBq")  # the end of a key, the value's size, and the value
_FIELDS = 5  # of a commit in a layout
_KEPT_BYTES = 8192  # of the commits of one layout: a thousand larger ones would take much memory
_KEPT_PARTITIONS = 64  # whose keys are kept together
_KEPT_CHARACTERS = 1000  # of a group's id
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_TOPIC_ID_TAG = b"\1\0\x10"
_SHORT = struct.Struct(">h")

# Records of `__consumer_offsets` that this version of Kafka writes in another version than 0.
WRITTEN_VERSIONS = {"GroupMetadataValue": 3}
COMMIT_VERSION = 4
VERSION_WITH_EXPIRY = 1


class GroupFormat(CoordinatorFormat):
    """The records of `__consumer_offsets`: pairs such as `(GroupMetadataKey, GroupMetadataValue)`, and commits."""

    def __init__(self) -> None:
        super().__init__(group_key_names(), WRITTEN_VERSIONS)

    def encode(self, record: CoordinatorRecord | Commit) -> Record:
        return record.encode() if isinstance(record, Commit) else super().encode(record)

    def replayed(self, record: CoordinatorRecord | Commit | Packed) -> CoordinatorRecord:
        # a union of classes in `isinstance` would be made again by each call
        return (record, record) if isinstance(record, Packed) or isinstance(record, Commit) else record  # noqa: SIM101

    def decode(self, record: Record) -> CoordinatorRecord | None:
        data = record.key
        if data is not None and data[:2] == COMMIT_KEY and record.value is not None:
            found = _decode_commit(data, record.value)
            if found is not None:
                return found, found
        return super().decode(record)
