"""Reads the entries of a coordinator's log that a loading shard replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...coordinator.format import COMMIT_KEYS
from ...coordinator.loading import Entry
from ...protocol import legacy, opening, records
from ...protocol.compression import CHUNK_BYTES, NONE
from ...protocol.control import marker_of
from ...protocol.records import BatchAt, Record
from ...storage.batch_info import BatchInfo
from ...storage.file_slice import read_whole
from ...storage.log import Log
from ...storage.segment import Segment

Skip = Callable[[int, Exception], None]
"""Called with the first offset of a batch that cannot be opened, and the error."""


def _refuse(offset: int, error: Exception) -> None:
    raise error


def live_entries(log: Log, skip: Skip = _refuse) -> Iterator[Entry | None]:
    """Yields the entries of a coordinator's log to replay: all but commits that later ones supersede. None is a pause.

    Most entries of a log are such commits. The valid ones come last, with their own offsets; their meaning does not
    depend on the other records. The keys of both types of commits are equal after their type.
    """
    latest: dict[bytes, tuple[int, bytes, bytes]] = {}
    for segment, batch in log.batches_from(log.start_offset):
        header = batch.header
        if header is not None and (header.is_control or header.is_transactional):
            yield from entries_of(segment, batch, skip)
            continue
        for pairs in _pairs(segment, batch, skip):
            for offset, key, value in pairs:
                if key is not None and key[:2] in COMMIT_KEYS:
                    if value is not None:
                        latest[key[2:]] = offset, key, value
                        continue
                    latest.pop(key[2:], None)
                yield Entry(offset, -1, -1, Record(key, value))
            yield None
    for offset, key, value in latest.values():
        yield Entry(offset, -1, -1, Record(key, value))


def log_entries(log: Log, skip: Skip = _refuse) -> Iterator[Entry]:
    """Yields all entries of a coordinator's log."""
    for segment, batch in log.batches_from(log.start_offset):
        yield from filter(None, entries_of(segment, batch, skip))


def _pairs(segment: Segment, batch: BatchInfo, skip: Skip) -> Iterator[list[tuple[int, bytes | None, bytes | None]]]:
    """Yields offsets, keys and values of a batch: at once if it is small, else in chunks."""
    if batch.header is not None and batch.header.codec == NONE and batch.size <= CHUNK_BYTES:
        try:
            found = records.pairs(read_whole(segment, batch), BatchAt(0, batch.header))
        except OSError:
            raise
        except Exception as error:
            skip(batch.base_offset, error)
        else:
            yield found
        return
    for some in _opened(segment, batch, skip):
        yield [(record.offset, record.key, record.value) for record in some]


def _opened(segment: Segment, batch: BatchInfo, skip: Skip) -> Iterator[list[Record]]:
    """Yields the records of a batch in chunks, as far as it can be opened:
    stored batches may never have been validated.
    """
    chunks = None
    while True:
        try:
            chunks = chunks or _contents(segment, batch)
            some = next(chunks)
        except StopIteration:
            return
        except OSError:
            raise
        except Exception as error:
            skip(batch.base_offset, error)
            return
        yield some


def _contents(segment: Segment, batch: BatchInfo) -> Iterator[list[Record]]:
    """Yields the records of a batch, or of a message set that a Kafka before 0.11 wrote, in chunks."""
    if batch.header is not None:
        return opening.contents(read_whole(segment, batch), BatchAt(0, batch.header))
    sets = legacy.contents(segment.read_batch(batch))
    return ([Record(one.key, one.value, one.timestamp, offset=one.offset) for one in some] for some in sets)


def entries_of(segment: Segment, batch: BatchInfo, skip: Skip = _refuse) -> Iterator[Entry | None]:
    """Yields the entries of one batch. None is a pause."""
    header = batch.header
    producer_id, epoch = -1, -1
    if header is not None:
        producer_id, epoch = header.producer_id if header.is_transactional else -1, header.producer_epoch
    for some in _opened(segment, batch, skip):
        for record in some:
            entry = Entry(record.offset, producer_id, epoch, record)
            if header is not None and header.is_control:
                marker = marker_of(record)
                if marker is None:
                    continue
                entry.record, entry.marker = None, marker
            yield entry
        if len(some) > 1:
            yield None
