"""Coordinator records on the wire: a key with the record's type in front, a value with its version in front (CoordinatorRecordSerde).

A record is a pair of messages, key and value; a value of None is a tombstone. Types that are not known here are skipped at
loading and left in the log, where they survive compaction.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from ...protocol import codec, schema
from ...protocol.records import Record

CoordinatorRecord = tuple[Any, Any]
_SHORT = struct.Struct(">h")

# Records of `__consumer_offsets` that this version of Kafka writes in another version than 0.
WRITTEN_VERSIONS = {"GroupMetadataValue": 3, "OffsetCommitValue": 4}
OTHER_TOPICS = frozenset(("ShareSnapshotKey", "ShareUpdateKey", "TransactionLogKey"))
# A request's own retention time is held by version 1 of a commit and by no later one (OffsetCommit 2 to 4).
VERSION_WITH_EXPIRY = 1


@cache
def _key_names() -> dict[int, str]:
    """Names of the keys by record type. 0 and 1 are commits, from before and after the type had its own number."""
    found: dict[str, int] = schema.index()["records"]["coordinator-key"]
    return {number: name for name, number in found.items() if name not in OTHER_TOPICS}


@cache
def _key_head(name: str) -> bytes:
    return _SHORT.pack(schema.load(name).api_key or 0)


class GroupFormat:
    """Pairs such as `(OffsetCommitKey, OffsetCommitValue)` to records and back."""

    def encode(self, record: CoordinatorRecord) -> Record:
        key, value = record
        name = type(key).__name__
        key_bytes = bytes(codec.build(name, 0, key, bytearray(_key_head(name))))
        if value is None:
            return Record(key_bytes, None)
        value_name = type(value).__name__
        version = WRITTEN_VERSIONS.get(value_name, 0)
        if version == 4 and value.expire_timestamp >= 0:
            version = VERSION_WITH_EXPIRY
        return Record(key_bytes, bytes(codec.build(value_name, version, value, bytearray(_SHORT.pack(version)))))

    def replayed(self, record: CoordinatorRecord) -> CoordinatorRecord:
        return record

    def decode(self, record: Record) -> CoordinatorRecord | None:
        """Key and value; None for a type or a version that is not known here."""
        data = record.key
        if data is None or len(data) < 2:
            return None
        name = _key_names().get(_SHORT.unpack_from(data)[0])
        if name is None:
            return None
        key = codec.parse(name, 0, data, 2)
        if record.value is None:
            return key, None
        value_name = name.removesuffix("Key") + "Value"
        version = _SHORT.unpack_from(record.value)[0] if len(record.value) >= 2 else -1
        if version not in schema.load(value_name).valid:
            return None
        return key, codec.parse(value_name, version, record.value, 2)
