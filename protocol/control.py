"""Control records: records that a log contains besides those of clients (`ControlRecordType` in Kafka).

The key is a version and a type; the value begins with its version. Transaction markers are by far the most frequent
kind. Their two numbers (`EndTxnMarker`) are read here without the codec, because loading a log reads all of them.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from .records import Record

_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")
VERSION = 0


class ControlType(IntEnum):
    """The control record types of Kafka's keys."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_TYPES = {int(one): one for one in ControlType}


class Marker(NamedTuple):
    """The content of a transaction marker."""

    committed: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> ControlType | None:
    """Returns the type of a control record with this key, None for an unknown type."""
    if key is None or len(key) < _KEY.size:
        return None
    return _TYPES.get(_KEY.unpack_from(key)[1])


def marker_of(record: Record) -> Marker | None:
    """Returns the transaction marker of a control record;
    None for another type (a leader change, a snapshot's header).
    """
    kind, value = control_type(record.key), record.value
    if kind is None or kind > ControlType.COMMIT or value is None or len(value) < _MARKER.size:
        return None
    return Marker(kind == ControlType.COMMIT, _MARKER.unpack_from(value)[1])


def marker_record(marker: Marker, timestamp: int) -> Record:
    """Returns the control record that ends a transaction."""
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    return Record(_KEY.pack(VERSION, kind), _MARKER.pack(VERSION, marker.coordinator_epoch), timestamp)
