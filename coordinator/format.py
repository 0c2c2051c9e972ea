"""Encodes coordinator records: a key after the record's type, a value after its version (CoordinatorRecordSerde).

A record is a pair of messages, key and value; a value of None is a tombstone. Unknown types are skipped at loading and
stay in the log, through compactions too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..protocol import codec, schema
from ..protocol.outlines import outline
from ..protocol.records import Record

CoordinatorRecord = tuple[Any, Any]

COMMIT_KEY = b"\0\1"  # the first bytes of the key of a committed offset
COMMIT_KEYS = (COMMIT_KEY, b"\0\0")  # also of the older key version 0
_SHORT = struct.Struct(">h")
# the topics of keys, except those of __consumer_offsets
SHARE_KEYS = frozenset(("ShareSnapshotKey", "ShareUpdateKey"))
TRANSACTION_KEYS = frozenset(("TransactionLogKey",))


@cache
def group_key_names() -> dict[int, str]:
    """Returns the names of the keys of `__consumer_offsets` by record type."""
    return {number: name for name, number in _numbers().items() if name not in SHARE_KEYS | TRANSACTION_KEYS}


@cache
def share_key_names() -> dict[int, str]:
    """Returns the names of the keys of `__share_group_state` by record type."""
    return {number: name for name, number in _numbers().items() if name in SHARE_KEYS}


@cache
def transaction_key_names() -> dict[int, str]:
    """Returns the names of the keys of `__transaction_state` by record type."""
    return {number: name for name, number in _numbers().items() if name in TRANSACTION_KEYS}


def _numbers() -> dict[str, int]:
    found: dict[str, int] = schema.index()["records"]["coordinator-key"]
    return found


@cache
def _key_head(name: str) -> bytes:
    return _SHORT.pack(outline(name).api_key or 0)


class CoordinatorFormat:
    """Converts pairs such as `(ShareSnapshotKey, ShareSnapshotValue)` to records and back.

    `names`: the keys by record type. `versions`: the versions of values that are not written in version 0.
    """

    def __init__(self, names: Mapping[int, str], versions: Mapping[str, int]) -> None:
        self._names = names
        self._versions = versions

    def encode(self, record: CoordinatorRecord) -> Record:
        key, value = record
        name = type(key).__name__
        key_bytes = bytes(codec.build(name, 0, key, bytearray(_key_head(name))))
        if value is None:
            return Record(key_bytes, None)
        value_name = type(value).__name__
        version = self._versions.get(value_name, 0)
        return Record(key_bytes, bytes(codec.build(value_name, version, value, bytearray(_SHORT.pack(version)))))

    def replayed(self, record: CoordinatorRecord) -> CoordinatorRecord:
        return record

    def decode(self, record: Record) -> CoordinatorRecord | None:
        """Returns key and value; None for an unknown type or version."""
        data = record.key
        if data is None or len(data) < 2:
            return None
        name = self._names.get(_SHORT.unpack_from(data)[0])
        if name is None:
            return None
        key = codec.parse(name, 0, data, 2)
        if record.value is None:
            return key, None
        value_name = name.removesuffix("Key") + "Value"
        version = _SHORT.unpack_from(record.value)[0] if len(record.value) >= 2 else -1
        if version not in outline(value_name).valid:
            return None
        return key, codec.parse(value_name, version, record.value, 2)


def share_format() -> CoordinatorFormat:
    """The records of `__share_group_state`."""
    return CoordinatorFormat(share_key_names(), {})
