"""Opens a log: after a clean shutdown its files are trusted, after a crash they are checked batch by batch.

`open_log` is a generator, so that the caller can do other work between its steps; its value is the log. After an
unclean shutdown every segment from the recovery point on is read. The log is truncated at the first batch that is
incomplete or has a wrong CRC, a wrong size or an offset out of order; later segments are removed. `before_cut` is
called before that, and may refuse by raising an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import NamedTuple

from ..protocol.errors import MalformedMessage
from ..protocol.records import HEADER_SIZE, computed_crc
from . import checkpoints, message_sets
from .batch_info import BatchInfo
from .files import HandlePool
from .index import AbortedIndex
from .layout import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    PARTITION_METADATA,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    offset_of,
)
from .log import Log
from .rebuilding import MAX_OFFSET, answered, end_of, paced, rebuild_damaged, rebuild_producers, replay_batch
from .segment import Segment
from .settings import LogSettings

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogLoader")
STEP_BYTES = 1 << 20
SEGMENTS_STEP = 8


class Cut(NamedTuple):
    """The data that recovery is about to remove from the end of a log."""

    path: str  # of the segment's file
    position: int  # of the first byte that is removed
    offset: int  # the log end offset afterwards
    size: int  # removed bytes, including later segments
    later_segments: int
    reason: str

    def __str__(self) -> str:
        later = f" and {self.later_segments} later segments" if self.later_segments else ""
        return (
            f"{self.path}: position {self.position}, offset {self.offset}: {self.reason}; {self.size} bytes from "
            f"this position on{later}"
        )


BeforeCut = Callable[[Cut], None]


class OtherTopic(ValueError):
    """The directory belongs to another topic: its topic id is not the expected one."""


def log_cut(cut: Cut) -> None:
    logger.warning("%s were truncated", cut)


def open_log(
    pool: HandlePool,
    directory: str,
    settings: LogSettings,
    now_ms: int,
    *,
    clean: bool,
    recovery_point: int = 0,
    start_offset: int = 0,
    before_cut: BeforeCut = log_cut,
    has_holes: bool = True,
    topic_id: bytes | None = None,
) -> Generator[None, None, Log]:
    """Opens the log in `directory`, which is created if it does not exist.

    `before_cut` is called before anything is truncated; if it raises, the files stay as they are. `has_holes`: whether
    offsets may be missing between batches, as after compaction. `topic_id`: the expected topic.

    Raises OtherTopic if the directory belongs to another topic, OSError if a file cannot be read or written, ValueError
    for a file with an invalid format.
    """
    created = not pool.files.exists(directory)
    if created:
        pool.files.make_directory(directory)
    log = Log(pool, directory, settings, has_new_names=created or not clean)
    epochs_are_lost = log.load_small_files(clean)
    if topic_id is not None and log.topic_id not in (None, topic_id):
        raise OtherTopic(
            f"{log.path(PARTITION_METADATA)}: the topic id is {checkpoints.uuid_to_text(log.topic_id or b'')}"
        )
    yield from _load_segments(log, (yield from _finish_swaps(log)), clean, recovery_point)
    if not log.segments:
        segment = Segment(pool, directory, start_offset, now_ms)
        segment.create(settings.bytes_in_advance)
        log.set_segments([segment])
    elif not clean:
        yield from _recover(log, recovery_point, before_cut, has_holes)
    log.begin_at(max(start_offset, log.segments[0].base_offset))
    end_offset = yield from _find_end(log, before_cut, has_holes)
    log.end_at(end_offset, recovery_point)
    if log.start_offset > log.end_offset:
        reason = f"the log ends at offset {log.end_offset}, but its checkpointed start offset is {log.start_offset}"
        if clean:
            raise ValueError(f"{log.active.path(LOG)}: {reason}")
        before_cut(Cut(log.segments[0].path(LOG), 0, log.start_offset, log.size, len(log.segments) - 1, reason))
        log.start_over_at(log.start_offset, now_ms)
    if epochs_are_lost or not log.epochs.entries:
        yield from _rebuild_epochs(log)
    is_ahead = any(start > log.end_offset for _, start in log.epochs.entries)
    # an epoch that begins at the end may be the one to come
    if log.epochs.truncate_from_end(log.end_offset) and is_ahead:
        log.save_epochs()
    if not created:
        yield from rebuild_producers(log, log.end_offset)
    return log


def create_log(
    pool: HandlePool, directory: str, settings: LogSettings, now_ms: int, topic_id: bytes, leader_epoch: int
) -> Log:
    """Creates a log in `directory`, which must not exist: what `open_log` does there, with a quarter of its calls of
    the system. Raises OSError; what is there then can be opened as after a crash.
    """
    pool.files.make_directory(directory)
    log = Log(pool, directory, settings)
    segment = Segment(pool, directory, 0, now_ms)
    segment.create(settings.bytes_in_advance)
    log.set_segments([segment])
    log.begin_with(topic_id, leader_epoch)
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
    before_cut: BeforeCut = log_cut,
    has_holes: bool = True,
) -> Log:
    """`open_log` in one go."""
    steps = open_log(
        pool,
        directory,
        settings,
        now_ms,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        before_cut=before_cut,
        has_holes=has_holes,
    )
    while True:
        try:
            next(steps)
        except StopIteration as done:
            log: Log = done.value
            return log


def swaps_that_count(names: list[str]) -> list[int]:
    """Returns the base offsets of the segments that a compaction had ready when it was interrupted. `names`: of all
    files of a log. If it had not renamed all files of one group, none of them counts.
    """
    swaps = sorted(offset_of(n) for n in names if n.endswith(LOG + SWAP))
    unfinished = [offset_of(n) for n in names if n.endswith(LOG + CLEANED)]
    return [base for base in swaps if base < min(unfinished)] if unfinished else swaps


def _finish_swaps(log: Log) -> Generator[None, None, list[str]]:
    """Takes a compaction that a crash interrupted to its end, or back to its beginning; returns what the directory
    holds then.
    """
    names = log.files.names(log.directory)
    if not any(name.endswith((SWAP, DELETED, CLEANED, ".tmp")) for name in names):
        return names
    swaps = swaps_that_count(names)
    for name in names:
        old_swap = name.endswith(SWAP) and offset_of(name) not in swaps
        if name.endswith((DELETED, CLEANED, ".tmp")) or old_swap:
            log.files.remove(log.path(name))
    for base in swaps:
        swap = Segment(log.pool, log.directory, base, 0, log.files.size(log.path(file_name(base, LOG) + SWAP)))
        swap.suffix = SWAP
        last = base
        for batch in paced(swap.scan()):
            if batch is None:
                yield
            else:
                last = batch.last_offset
        for name in log.files.names(log.directory):
            if name.endswith(LOG) and base <= offset_of(name) <= last:
                Segment(log.pool, log.directory, offset_of(name), 0).remove()
        swap.rename("")
        log.small_files.note_new_names()
    return log.files.names(log.directory)


def _load_segments(log: Log, names: list[str], clean: bool, recovery_point: int) -> Generator[None, None, None]:
    segments = []
    _remove_orphans(log, names)
    for name in names:
        if name.endswith(LOG):
            path = log.path(name)
            segment = Segment(
                log.pool, log.directory, offset_of(name), log.files.modified_ms(path), log.files.size(path)
            )
            segments.append(segment)
    log.set_segments(segments)
    known = len(segments) if clean else max(log.floor(recovery_point - 1), 0)
    for segment in segments[known:]:
        segment.reset_indexes()  # recovery rebuilds them
    for number, segment in enumerate(segments[:known], 1):
        wrong = _wrong_at_sight(log, segment)
        if wrong:
            segment.damaged(INDEX, wrong)
            yield from rebuild_damaged(log)
        yield from answered(log, segment.check_last_timestamp)
        segment.load_timestamps()
        if segment.size:
            yield from _read_tail_timestamps(log, segment)
        if not number % SEGMENTS_STEP:
            yield


def _remove_orphans(log: Log, names: list[str]) -> None:
    """Removes indexes without a segment, as Kafka does: a segment was removed in part, or is lost."""
    held = {name[: -len(LOG)] for name in names if name.endswith(LOG)}
    for name in names:
        base, _, kind = name.rpartition(".")
        if f".{kind}" in (INDEX, TIME_INDEX, TXN_INDEX) and base.isdigit() and base not in held:
            logger.warning("%s: an index without a segment %s%s; the file is removed", log.path(name), base, LOG)
            log.files.remove(log.path(name))


def _wrong_at_sight(log: Log, segment: Segment) -> str:
    """Returns what is wrong with a segment's indexes; their entries are compared with the log when they are used."""
    if not segment.size:
        return ""
    if not log.files.exists(segment.path(INDEX)):
        return "the file is missing"
    if not segment.index.is_sane(segment.size):
        return "a position is impossible"
    first = next(segment.scan(), None)
    has_times = first is not None and first.max_timestamp >= 0
    return "" if segment.times.is_sane() and (len(segment.times) or not has_times) else "a timestamp is impossible"


def _read_tail_timestamps(log: Log, segment: Segment) -> Generator[None, None, None]:
    """Reads the largest timestamp after the last index entry, and where the index continues."""
    start = yield from answered(log, lambda: segment.position_before(MAX_OFFSET))
    for batch in paced(segment.scan(start)):
        if batch is None:
            yield
            continue
        if batch.position == start and start:
            segment.bytes_since_index = 0
        segment.bytes_since_index += batch.size
        if batch.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = batch.max_timestamp, batch.last_offset
    first = next(segment.scan(), None)
    segment.rolling_timestamp = first.max_timestamp if first else None


def _rebuild_epochs(log: Log) -> Generator[None, None, None]:
    """Rebuilds the leader epochs from the batches of the log.
    An epoch without batches leaves no trace, and none is needed.
    """
    yield from answered(log, lambda: log.segments[0].position_before(log.start_offset))
    for number, (_, batch) in enumerate(log.batches_from(log.start_offset)):
        if batch.header is None or batch.header.partition_leader_epoch < 0:
            return  # message sets have no leader epochs
        log.epochs.assign(batch.header.partition_leader_epoch, max(batch.base_offset, log.start_offset))
        if number % 256 == 255:
            yield
    if log.epochs.entries:
        log.save_epochs()


def _find_end(log: Log, before_cut: BeforeCut, has_holes: bool) -> Generator[None, None, int]:
    """Returns the end offset: reads the active segment from its last index entry on,
    which must lead to the end of the file.

    If it does not, the index is wrong and rebuilt; if it still does not, the log itself is damaged, and recovered as
    after a crash.
    """
    active = log.active
    end_offset, is_whole = yield from _read_end(log, active)
    if not is_whole:
        active.damaged(INDEX, "it does not lead to the end of the log")
        yield from rebuild_damaged(log)
        end_offset, is_whole = yield from _read_end(log, active)
    if not is_whole:
        logger.warning(
            "%s can be read only up to offset %d, although its shutdown was clean", active.path(LOG), end_offset
        )
        yield from _recover(log, active.base_offset + 1, before_cut, has_holes)
        end_offset, _ = yield from _read_end(log, log.active)
    return end_offset


def _read_end(log: Log, active: Segment) -> Generator[None, None, tuple[int, bool]]:
    """Returns the offset after the last whole batch, and whether the file ends with that batch."""
    end_offset, position = yield from end_of(log, active)
    return end_offset, position == active.size


def _recover(log: Log, recovery_point: int, before_cut: BeforeCut, has_holes: bool) -> Generator[None, None, None]:
    """Checks every segment that is not below the recovery point; truncates the log at the first wrong byte."""
    first = max(log.floor(recovery_point - 1), 0)  # the indexes of a segment that was active may not be durable
    # a transaction that is aborted in this segment may have begun before it
    yield from rebuild_producers(log, log.segments[first].base_offset)
    known_end = log.segments[first].base_offset
    for slot in range(first, len(log.segments)):
        segment = log.segments[slot]
        # holes in durable segments come from compaction
        hole = segment.base_offset > known_end and (not has_holes or segment.base_offset > recovery_point)
        if slot > first and (segment.base_offset < known_end or hole):
            valid, reason = (
                0,
                f"its first offset is {segment.base_offset}, but the segment before it ends at {known_end}",
            )
        else:
            valid, known_end, reason = yield from _check_segment(log, segment, has_holes)
        if not slot % SEGMENTS_STEP:
            yield
        gone = log.segments[slot + 1 :]
        is_dropped = valid == 0 and slot > first
        if not is_dropped and valid == segment.size:
            continue
        if segment.size or gone:
            size = segment.size - valid + sum(one.size for one in gone)
            before_cut(Cut(segment.path(LOG), valid, known_end, size, len(gone), reason))
        if is_dropped:
            drop_after(log, slot - 1)
            return
        segment.handle.truncate(valid)
        segment.handle.sync()  # otherwise a power failure brings back the truncated bytes
        segment.size = valid
        drop_after(log, slot)
        return


def drop_after(log: Log, slot: int) -> None:
    gone = log.segments[slot + 1 :]
    log.set_segments(log.segments[: slot + 1])
    for segment in gone:
        segment.remove()
    end = log.segments[-1]
    for offset in log.small_files.snapshot_offsets():
        if offset > end.base_offset:
            log.small_files.remove_snapshot(offset)


def _check_segment(log: Log, segment: Segment, has_holes: bool) -> Generator[None, None, tuple[int, int, str]]:
    """Returns how many bytes of a segment are valid, the offset after them, and what is wrong there.
    Rebuilds its indexes.
    """
    segment.reset_indexes()
    segment.set_aborted(AbortedIndex())
    valid, next_offset, since_step = 0, segment.base_offset, 0
    reason = "no whole batch"
    for batch in paced(segment.scan()):
        if batch is None:
            yield
            continue
        wrong = what_is_wrong(segment, batch, next_offset, has_holes)
        if wrong is not None:
            reason = wrong
            break
        segment.note(batch, log.settings.index_interval_bytes)
        if segment.rolling_timestamp is None:
            segment.rolling_timestamp = batch.max_timestamp
        aborted = replay_batch(log.producers, segment, batch)
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
    if segment.size or any(log.files.exists(segment.path(suffix)) for suffix in (INDEX, TIME_INDEX)):
        segment.save_indexes()
    return valid, next_offset, reason


def what_is_wrong(segment: Segment, batch: BatchInfo, next_offset: int, has_holes: bool) -> str | None:
    """Returns why the log must end before a batch; None if the batch is valid and in its place."""
    if batch.last_offset < next_offset or batch.base_offset < segment.base_offset:
        return f"a batch from offset {batch.base_offset} to {batch.last_offset}, where offset {next_offset} is expected"
    data = segment.read_batch(batch)
    if len(data) < batch.size:
        return "an incomplete batch"
    header = batch.header
    if header is None:
        return None if _is_message_set(data) else "an incomplete message"
    if batch.size < HEADER_SIZE or header.last_offset_delta < 0:
        return "a batch with an impossible header"
    if header.base_offset < next_offset or (header.base_offset > next_offset and not has_holes):
        return f"a batch that begins at offset {header.base_offset}, where offset {next_offset} is expected"
    if computed_crc(data, 0, batch.size) != header.crc:
        return "a batch with a wrong CRC"
    return None


def _is_message_set(data: bytes) -> bool:
    try:
        return message_sets.is_valid(data)
    except MalformedMessage:
        return False
