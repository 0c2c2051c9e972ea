"""Metadata records on the wire: no key, and a value framed by frame version, record type and record version (KIP-631)."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...protocol import codec, schema
from ...protocol.emit import uvarint_at, uvarint_to
from ...protocol.records import Record

CLUSTER_METADATA = "__cluster_metadata"
FRAME_VERSION = 1


@cache
def _names() -> dict[int, str]:
    """Names by record type. Kafka's remote-log records have types of their own and are not among them."""
    found: dict[str, int] = schema.index()["records"]["metadata"]
    return {key: name for name, key in found.items() if not name.startswith("Remote")}


@cache
def _written_version(name: str) -> int:
    return schema.load(name).valid.high


class MetadataFormat:
    """Messages such as `messages.TopicRecord` to records and back."""

    def encode(self, record: Any) -> Record:
        name = type(record).__name__
        version = _written_version(name)
        out = bytearray()
        for number in (FRAME_VERSION, schema.load(name).api_key or 0, version):
            uvarint_to(out, number)
        codec.build(name, version, record, out)
        return Record(None, bytes(out))

    def replayed(self, record: Any) -> tuple[Any, Any]:
        return None, record

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        """The message as value; None for a type that is not known here."""
        if not record.value:
            return None
        data = record.value
        _, pos = uvarint_at(data, 0)
        kind, pos = uvarint_at(data, pos)
        version, pos = uvarint_at(data, pos)
        name = _names().get(kind)
        if name is None or version not in schema.load(name).valid:
            return None
        return None, codec.parse(name, version, data, pos)
