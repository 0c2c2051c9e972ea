"""Message sets of versions 0 and 1 in logs: appending them, and reading them for timestamps, recovery and dumps."""

from __future__ import annotations

from ..protocol import legacy
from ..protocol.buffers import Data
from .batch_info import Appended, infos_of
from .log import Log

contents = legacy.contents


def append_messages(log: Log, data: Data, now_ms: int) -> Appended:
    """Appends a message set whose offsets follow the log end. After an OSError the log is unchanged."""
    infos = list(infos_of(data))
    first, last = log.end_offset, infos[-1].last_offset
    assert first <= infos[0].last_offset, "offsets that the log has already"
    largest = max(info.max_timestamp for info in infos)
    active = log.with_room(len(data), largest, last, now_ms)
    at = active.size
    log.write(active, [data], [info._replace(position=at + info.position) for info in infos], now_ms)
    return Appended(first, last + 1, largest if log.settings.is_append_time else -1)


def is_valid(data: Data) -> bool:
    """Whether the CRC of a single outer entry is right."""
    found = next(legacy.entries(data), None)
    return found is not None and found.crc_valid
