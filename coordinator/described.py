"""The records of Kafka's internal topics as plain data, for people and for tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..protocol import codec
from ..protocol.codec import as_plain
from ..protocol.control import ControlType, control_type
from ..protocol.outlines import outline
from ..protocol.records import Record
from ..protocol.text import Json
from .format import CoordinatorFormat, group_key_names, share_key_names, transaction_key_names
from .metadata.format import CLUSTER_METADATA, MetadataFormat

INTERNAL_TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state", CLUSTER_METADATA)
ABORT, COMMIT = "ABORT", "COMMIT"
_CONTROL = {
    ControlType.ABORT: ABORT,
    ControlType.COMMIT: COMMIT,
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


class Described(NamedTuple):
    """A record: its type (its schema's name without `Key`, such as `OffsetCommit`), and its key and value as dicts; a
    tombstone has no value.
    """

    type: str
    key: Json
    value: Json


Describer = Callable[[Record], Described | None]


def describer(topic: str) -> Describer | None:
    """Returns a function that describes the records of an internal topic; None for other topics.

    The function returns None for an unknown type or version, and raises MalformedMessage for invalid bytes.
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
        return Described(
            type(key).__name__.removesuffix("Key"), as_plain(key), None if value is None else as_plain(value)
        )

    return describe


def _of_metadata(record: Record) -> Described | None:
    found = MetadataFormat().decode(record)
    return None if found is None else Described(type(found[1]).__name__, None, as_plain(found[1]))


_KEYS: dict[str, Callable[[], dict[int, str]]] = {
    "__consumer_offsets": group_key_names,
    "__share_group_state": share_key_names,
    "__transaction_state": transaction_key_names,
}


def control_name(key: bytes | None) -> str | None:
    """Returns the type of a control record: ABORT, COMMIT, or the name of its value's schema;
    None for an unknown one.
    """
    kind = control_type(key)
    return None if kind is None else _CONTROL[kind]


def control_value(kind: str, value: bytes | None) -> Json:
    """Returns the value of a control record as a dict. Raises MalformedMessage."""
    if value is None or len(value) < 2:
        return None
    version = int.from_bytes(value[:2], "big", signed=True)
    if kind in (ABORT, COMMIT):
        return (
            as_plain(codec.parse("EndTxnMarker", version, value, 2))
            if version in outline("EndTxnMarker").valid
            else None
        )
    return as_plain(codec.parse(kind, version, value)) if version in outline(kind).valid else None
