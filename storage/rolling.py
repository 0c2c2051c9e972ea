"""When a log closes its active segment and begins a new one."""

from __future__ import annotations

from typing import NamedTuple

from ..protocol.checksum import crc32c
from .layout import INDEX_ENTRY, TIME_INDEX_ENTRY
from .segment import MAX_RELATIVE_OFFSET, Segment
from .settings import FOREVER, LogSettings

LONG_AGO = -FOREVER - 2  # before every timestamp


def is_due(
    active: Segment,
    settings: LogSettings,
    owner: tuple[bytes | None, int],
    size: int,
    timestamp: int,
    last_offset: int,
    now_ms: int,
) -> bool:
    """Whether an append of `size` bytes up to `last_offset` needs a new segment.

    `timestamp`: the largest of its records. A segment that begins without a timestamp is as old as its file, as in
    Kafka (`timeWaitedForRoll`). `owner`: the log's topic id and partition. The last entry of the time index is kept for
    the end of the segment (`finish`).
    """
    if active.size == 0 and active.rolling_timestamp is None:
        return last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    return (
        active.size > settings.segment_bytes - size
        or (active.size > 0 and timestamp > _until_ms(active, settings, owner, now_ms))
        or len(active.index.data) + INDEX_ENTRY.size > settings.segment_index_bytes
        or len(active.times.data) + 2 * TIME_INDEX_ENTRY.size > settings.segment_index_bytes
        or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    )


class Room(NamedTuple):
    """What batches may be, taken together, so that no append of one of them needs a new segment: their bytes and
    number, the last offset and the largest timestamp.
    """

    size: int
    batches: int
    last_offset: int
    timestamp: int


def room_of(active: Segment, settings: LogSettings, owner: tuple[bytes | None, int], now_ms: int) -> Room | None:
    """Returns the room of a segment, by the rules of `is_due`, whose parameters these are; None for one that is
    empty.
    """
    if active.size == 0:
        return None
    batches = min(
        (settings.segment_index_bytes - len(active.index.data)) // INDEX_ENTRY.size,
        (settings.segment_index_bytes - len(active.times.data)) // TIME_INDEX_ENTRY.size - 1,
    )
    until_ms = _until_ms(active, settings, owner, now_ms)
    return Room(settings.segment_bytes - active.size, batches, active.base_offset + MAX_RELATIVE_OFFSET, until_ms)


def _until_ms(active: Segment, settings: LogSettings, owner: tuple[bytes | None, int], now_ms: int) -> int:
    """Returns the largest timestamp of what may still be appended to a segment, by its age."""
    lasts_ms = settings.segment_ms - (_jitter_ms(*owner, active, settings) if settings.segment_jitter_ms else 0)
    since = active.rolling_timestamp
    if since is not None and since >= 0:
        return since + lasts_ms
    return FOREVER if now_ms - active.created_ms <= lasts_ms else LONG_AGO


def _jitter_ms(topic_id: bytes | None, partition: int, active: Segment, settings: LogSettings) -> int:
    """Returns by how much `segment.ms` is shorter for a segment: a part of `segment.jitter.ms`, which is not 0; always
    the same, so that simulations can be repeated.
    """
    seed = b"%s-%d-%d" % (topic_id or b"", partition, active.base_offset)
    return crc32c(seed) % settings.segment_jitter_ms
