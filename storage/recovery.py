"""Opening a log: what a clean shutdown left is trusted, what a crash left is checked batch by batch.

`open_log` is a generator, so that a caller with other work can take a step at a time; its value is the log. After an unclean
shutdown every segment from the recovery point on is read: at the first batch that is short, has a wrong CRC, a wrong size or
an offset out of order the log ends, and later segments go (seed 001, section 5.5: both the lost and the added block).
"""

from __future__ import annotations

from collections.abc import Generator

from ..protocol.errors import MalformedMessage
from ..protocol.records import HEADER_SIZE, computed_crc
from . import checkpoints, legacy_read
from .files import HandlePool
from .layout import (
    CLEANED,
    DELETED,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    SNAPSHOT,
    SWAP,
    file_name,
    offset_of,
)
from .log import Log
from .segment import BatchInfo, Segment
from .settings import LogSettings

STEP_BYTES = 1 << 20


def open_log(
    pool: HandlePool,
    directory: str,
    settings: LogSettings,
    now_ms: int,
    *,
    clean: bool,
    recovery_point: int = 0,
    start_offset: int = 0,
) -> Generator[None, None, Log]:
    """Opens the log in `directory`, which is made when it is not there. OSError when a file cannot be read or written."""
    log = Log(pool, directory, settings)
    created = not pool.files.exists(directory)
    if created:
        pool.files.make_directory(directory)
    _finish_swaps(log)
    _load_segments(log, now_ms)
    _load_small_files(log)
    log.recovery_point = recovery_point
    if not log.segments:
        segment = Segment(pool, directory, start_offset, now_ms)
        segment.create(settings.bytes_in_advance)
        log.set_segments([segment])
    elif not clean:
        yield from _recover(log)
    log.start_offset = max(start_offset, log.segments[0].base_offset)
    _find_end(log)
    if log.start_offset > log.end_offset:
        log.begin_anew(log.start_offset, now_ms)
    log.recovery_point = min(max(recovery_point, log.start_offset), log.end_offset)
    if log.epochs.truncate_from_end(log.end_offset):
        log.save_epochs()
    if not created:
        yield from log.rebuild_producers_steps(log.end_offset)
    else:
        log.save_epochs()
    log.first_dirty_offset = log.start_offset
    return log


def open_now(
    pool: HandlePool,
    directory: str,
    settings: LogSettings,
    now_ms: int,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    start_offset: int = 0,
) -> Log:
    """`open_log` in one go."""
    steps = open_log(pool, directory, settings, now_ms, clean=clean, recovery_point=recovery_point, start_offset=start_offset)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            log: Log = done.value
            return log


def _finish_swaps(log: Log) -> None:
    """Takes a compaction that a crash interrupted to its end, or back to its beginning."""
    names = log.files.names(log.directory)
    swaps = sorted(offset_of(n) for n in names if n.endswith(LOG + SWAP))
    cleaned = any(n.endswith(LOG + CLEANED) for n in names)
    if cleaned and swaps:  # the files of one group were not all renamed: none of them counts
        first = min(offset_of(n) for n in names if n.endswith(LOG + CLEANED))
        swaps = [base for base in swaps if base < first]
    for name in names:
        old_swap = name.endswith(SWAP) and offset_of(name) not in swaps
        if name.endswith((DELETED, CLEANED, ".tmp")) or old_swap:
            log.files.remove(log.path(name))
    for base in swaps:
        swap = Segment(log.pool, log.directory, base, 0, log.files.size(log.path(file_name(base, LOG) + SWAP)))
        swap.suffix = SWAP
        last = base
        for batch in swap.scan():
            last = batch.last_offset
        for name in log.files.names(log.directory):
            if name.endswith(LOG) and base <= offset_of(name) <= last:
                Segment(log.pool, log.directory, offset_of(name), 0).remove()
        swap.rename("")


def _load_segments(log: Log, now_ms: int) -> None:
    segments = []
    for name in log.files.names(log.directory):
        if name.endswith(LOG):
            path = log.path(name)
            segment = Segment(log.pool, log.directory, offset_of(name), log.files.modified_ms(path), log.files.size(path))
            segments.append(segment)
    log.set_segments(segments)
    for segment in segments:
        missing = segment.size and not log.files.exists(segment.path(".index"))
        if missing or not segment.index.is_sane(segment.size) or not segment.times.is_sane():
            _rebuild_indexes(log, segment)
        segment.load_timestamps()
        if segment.size:
            _read_tail_timestamps(segment)


def _read_tail_timestamps(segment: Segment) -> None:
    """The largest timestamp behind the last index entry, and where the index goes on."""
    start = segment.index.position_before(segment.index.last_offset())
    for batch in segment.scan(start):
        if batch.position == start and start:
            segment.bytes_since_index = 0
        segment.bytes_since_index += batch.size
        if batch.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = batch.max_timestamp, batch.last_offset
    first = next(segment.scan(), None)
    segment.rolling_timestamp = first.max_timestamp if first else None


def _rebuild_indexes(log: Log, segment: Segment) -> None:
    segment.reset_indexes()
    for batch in segment.scan():
        segment.note(batch, log.settings.index_interval_bytes)
    segment.finish()


def _load_small_files(log: Log) -> None:
    try:
        log.topic_id = checkpoints.decode_partition_metadata(log.files.read(log.path(PARTITION_METADATA)))
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):
        log.topic_id = None
    try:
        log.epochs.entries = checkpoints.decode_epochs(log.files.read(log.path(LEADER_EPOCHS)))
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):
        log.epochs.entries = []


def _find_end(log: Log) -> None:
    active = log.active
    log.end_offset = active.base_offset
    for batch in active.scan(active.index.position_before(2**62)):
        log.end_offset = batch.last_offset + 1


def _recover(log: Log) -> Generator[None, None, None]:
    """Checks every segment that the recovery point does not vouch for; cuts the log at the first wrong byte."""
    first = max(log.floor(log.recovery_point - 1), 0)  # the indexes of what was active are not vouched for
    yield from log.rebuild_producers_steps(log.segments[first].base_offset)  # a transaction that is aborted there may have begun before
    known_end = log.segments[first].base_offset
    for slot in range(first, len(log.segments)):
        segment = log.segments[slot]
        hole = segment.base_offset > known_end and segment.base_offset > log.recovery_point  # compaction makes holes, but durable ones
        if slot > first and (segment.base_offset < known_end or hole):
            valid = 0
        else:
            valid, known_end = yield from _check_segment(log, segment)
        if valid == 0 and slot > first:
            _drop_behind(log, slot - 1)
            return
        if valid < segment.size:
            segment.handle.truncate(valid)
            segment.handle.sync()  # or a power failure brings back what was cut off
            segment.size = valid
            _drop_behind(log, slot)
            return


def _drop_behind(log: Log, slot: int) -> None:
    gone = log.segments[slot + 1 :]
    log.set_segments(log.segments[: slot + 1])
    for segment in gone:
        segment.remove()
    end = log.segments[-1]
    for offset in log.snapshot_offsets():
        if offset > end.base_offset:
            log.files.remove(log.path(file_name(offset, SNAPSHOT)))


def _check_segment(log: Log, segment: Segment) -> Generator[None, None, tuple[int, int]]:
    """How many bytes of a segment are whole and true, and the offset behind them. Its indexes are made anew."""
    segment.reset_indexes()
    segment.reset_aborted()
    log.end_offset = segment.base_offset
    valid, next_offset, since_step = 0, segment.base_offset, 0
    for batch in segment.scan():
        if not _is_true(segment, batch, next_offset):
            break
        segment.note(batch, log.settings.index_interval_bytes)
        if segment.rolling_timestamp is None:
            segment.rolling_timestamp = batch.max_timestamp
        aborted = log.replay_batch(segment, batch)
        if aborted is not None:
            segment.add_aborted(aborted)
        epoch = batch.header.partition_leader_epoch if batch.header else -1
        if epoch > log.epochs.latest:
            log.assign_epoch(epoch, batch.base_offset)
        valid, next_offset = batch.position + batch.size, batch.last_offset + 1
        since_step += batch.size
        if since_step > STEP_BYTES:
            since_step = 0
            yield
    segment.finish()
    segment.save_indexes()
    return valid, next_offset


def _is_true(segment: Segment, batch: BatchInfo, next_offset: int) -> bool:
    if batch.last_offset < next_offset or batch.base_offset < segment.base_offset:
        return False
    data = segment.read_batch(batch)
    if len(data) < batch.size:
        return False
    header = batch.header
    if header is None:
        try:
            return legacy_read.is_valid(data)
        except MalformedMessage:
            return False
    if batch.size < HEADER_SIZE or header.base_offset < next_offset or header.last_offset_delta < 0:
        return False
    return computed_crc(data, 0, batch.size) == header.crc
