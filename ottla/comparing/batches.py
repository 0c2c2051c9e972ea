"""The records of batches, to be compared one by one: two brokers may cut the same log into other replies."""

from __future__ import annotations

from ..protocol import records
from ..protocol.buffers import Data
from ..protocol.errors import MalformedMessage

Row = dict[str, object]
COORDINATOR_EPOCH_AT = 2  # in the value of a marker


def opened(data: object) -> dict[int, Row]:
    """The records of batches by their offsets. Raises MalformedMessage for data that are no whole batches."""
    if not isinstance(data, bytes | bytearray | memoryview) or not len(data):
        return {}
    found: dict[int, Row] = {}
    for at in records.batches(data):
        if at.header.magic != records.MAGIC:
            raise MalformedMessage("records", f"version {at.header.magic} of the format")
        is_whole = at.header.crc == records.computed_crc(data, at.position, at.header.size)
        found.update(_rows(data, at) if is_whole else {at.header.base_offset: {"crc": "wrong"}})
    return found


def _rows(data: Data, at: records.BatchAt) -> dict[int, Row]:
    header = at.header
    return {
        record.offset: {
            "key": record.key,
            "value": record.value[:COORDINATOR_EPOCH_AT] if header.is_control and record.value else record.value,
            "headers": [list(one) for one in record.headers],
            "append_time_ms" if header.is_append_time else "timestamp_ms": (
                "a marker's" if header.is_control else record.timestamp
            ),
            "is_transactional": header.is_transactional,
            "is_control": header.is_control,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
        }
        for record in records.decode(data, at)
    }


def span(data: object) -> tuple[int, int] | None:
    """The first offset of batches and the one after the last; None without batches."""
    if not isinstance(data, bytes | bytearray | memoryview):
        return None
    found = [at.header for at in records.batches(data) if at.header.magic == records.MAGIC]
    return (found[0].base_offset, found[-1].next_offset) if found else None
