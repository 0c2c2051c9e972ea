"""Encodes metadata records: no key, and a value after frame version, record type and record version (KIP-631)."""

from __future__ import annotations

from functools import cache

from ...protocol import codec, schema
from ...protocol.outlines import outline
from ...protocol.records import Record
from ...protocol.structs import Struct
from ...protocol.varints import uvarint_at, uvarint_to

CLUSTER_METADATA = "__cluster_metadata"
FRAME_VERSION = 1


@cache
def _names() -> dict[int, str]:
    """Returns names by record type, without Kafka's remote-log records, whose types are separate."""
    found: dict[str, int] = schema.index()["records"]["metadata"]
    return {key: name for name, key in found.items() if not name.startswith("Remote")}


@cache
def _written_version(name: str) -> int:
    return outline(name).valid.high


class MetadataFormat:
    """Converts messages such as `messages.TopicRecord` to records and back."""

    def encode(self, record: Struct) -> Record:
        name = type(record).__name__
        version = _written_version(name)
        out = bytearray()
        for number in (FRAME_VERSION, outline(name).api_key or 0, version):
            uvarint_to(out, number)
        codec.build(name, version, record, out)
        return Record(None, bytes(out))

    def replayed(self, record: Struct) -> tuple[None, Struct]:
        return None, record

    def decode(self, record: Record) -> tuple[None, Struct] | None:
        """Returns the message as value; None for an unknown type."""
        if not record.value:
            return None
        data = record.value
        _, pos = uvarint_at(data, 0)
        kind, pos = uvarint_at(data, pos)
        version, pos = uvarint_at(data, pos)
        name = _names().get(kind)
        if name is None or version not in outline(name).valid:
            return None
        return None, codec.parse(name, version, data, pos)
