"""The records of Kafka's own topics as plain data: for people, and for tables. What they mean is left to who reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..protocol import codec, schema
from ..protocol.codec import as_plain
from ..protocol.records import Record
from .format import CoordinatorFormat, group_key_names, share_key_names, transaction_key_names
from .metadata.format import CLUSTER_METADATA, MetadataFormat

INTERNAL_TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state", CLUSTER_METADATA)
ABORT, COMMIT = "ABORT", "COMMIT"
_CONTROL = {
    0: ABORT,
    1: COMMIT,
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
_SHORTS = struct.Struct(">hh")


class Described(NamedTuple):
    """A record: its type (its schema's name without `Key`, such as `OffsetCommit`), and its key and value as dicts; a tombstone has no value."""

    type: str
    key: Any
    value: Any


Describer = Callable[[Record], Described | None]


def describer(topic: str) -> Describer | None:
    """What tells the meaning of the records of a topic; None for topics that are not Kafka's own.

    A describer gives None for a type or a version that it does not know, and raises MalformedMessage for bytes that are not of their type.
    """
    names = _KEYS.get(topic)
    if names is not None:
        return _of_coordinator(names())
    return _of_metadata if topic == CLUSTER_METADATA else None


def _of_coordinator(names: Mapping[int, str]) -> Describer:
    read = CoordinatorFormat(names, {}).decode

    def describe(record: Record) -> Described | None:
        found = read(record)
        if found is None:
            return None
        key, value = found
        return Described(type(key).__name__.removesuffix("Key"), as_plain(key), None if value is None else as_plain(value))

    return describe


def _of_metadata(record: Record) -> Described | None:
    found = MetadataFormat().decode(record)
    return None if found is None else Described(type(found[1]).__name__, None, as_plain(found[1]))


_KEYS: dict[str, Callable[[], dict[int, str]]] = {
    "__consumer_offsets": group_key_names,
    "__share_group_state": share_key_names,
    "__transaction_state": transaction_key_names,
}


def control_type(key: bytes | None) -> str | None:
    """What kind of control record a key is of; None for one that is not known."""
    if key is None or len(key) < _SHORTS.size:
        return None
    return _CONTROL.get(_SHORTS.unpack_from(key)[1])


def control_value(kind: str, value: bytes | None) -> Any:
    """The value of a control record as a dict. MalformedMessage."""
    if value is None or len(value) < 2:
        return None
    version = int.from_bytes(value[:2], "big", signed=True)
    if kind in (ABORT, COMMIT):
        return as_plain(codec.parse("EndTxnMarker", version, value, 2)) if version in schema.load("EndTxnMarker").valid else None
    return as_plain(codec.parse(kind, version, value)) if version in schema.load(kind).valid else None
