"""Truncates a log at an offset, as a replica does whose new leader has less."""

from __future__ import annotations

from .log import Log
from .recovery import drop_after


def truncate(log: Log, offset: int) -> None:
    """Removes the records from `offset` on; the caller closes the log and opens it again, unclean: indexes, epochs and
    producers are read from what is left. Raises OSError.
    """
    offset = max(offset, log.start_offset)
    segment, position = log.position_of(offset)
    slot = log.segments.index(segment)
    segment.handle.truncate(position)
    segment.handle.sync()  # otherwise a power failure brings back the truncated bytes
    segment.size = position
    segment.reset_indexes()
    drop_after(log, slot)
    for snapshot in log.small_files.snapshot_offsets():
        if snapshot > offset:
            log.small_files.remove_snapshot(snapshot)
    log.end_at(offset, min(log.recovery_point, segment.base_offset))
