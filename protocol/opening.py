"""Opens the records of a batch while it is decompressed, a chunk at a time, so that the caller can pause and stop.

`shapes` returns what checks need of records without an object per record; it skips keys, values and headers. `contents`
returns records. Both read the whole batch. They raise MalformedMessage if its bytes are not the records that its header
claims, and DecompressedTooLarge if there are more bytes than a batch of its size may hold (`openable_bytes`). No memory
is reserved for the claimed record count.

An item is the work of one step: the records of one chunk (`CHUNK_BYTES`),
including the record that began before the chunk, or some of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from . import compression
from .buffers import Data
from .compression import CHUNK_BYTES, openable_bytes
from .errors import MalformedMessage
from .records import (
    HEADER_SIZE,
    INT64_MIN,
    RECORD_BYTES_MIN,
    VARINT_BYTES_MAX,
    BatchAt,
    BatchHeader,
    Record,
    check_end,
    int64,
    varint_at,
    whole_records,
)

RECORDS_AT_ONCE = 1024  # at most, in an item: small ones are thousands in a chunk


class Shapes(NamedTuple):
    """Consecutive records: the index of the first one in its batch, and a column per property."""

    first: int
    timestamps: list[int]
    offset_deltas: list[int]
    keyless: list[int]  # indexes of the records without a key


class Source:
    """The decompressed bytes of a batch as they become available."""

    def __init__(self, buf: Data, at: BatchAt, limit: int, step_bytes: int = CHUNK_BYTES) -> None:
        header = at.header
        body = memoryview(buf)[at.position + HEADER_SIZE : at.position + header.size]
        self.header: BatchHeader = header
        self._chunks = compression.chunks(header.codec, body, limit, step_bytes)
        self.data = b""
        self.pos = 0
        self._taken = 0

    @property
    def passed(self) -> int:
        """The number of bytes from the batch's first record to `pos`."""
        return self._taken - self.left

    @property
    def left(self) -> int:
        return len(self.data) - self.pos

    def more(self) -> bool:
        """Reads one chunk; returns False at the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._taken += len(chunk)
        self.data = self.data[self.pos :] + chunk if self.left else chunk
        self.pos = 0
        return True

    def fill(self, size: int) -> Iterator[None]:
        """Reads chunks until `size` bytes are available, or the data ends."""
        parts, held = [self.data[self.pos :]], self.left
        while held < size and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            held += len(chunk)
            self._taken += len(chunk)
            yield
        self.data, self.pos = b"".join(parts), 0

    def skip(self, size: int) -> Iterator[None]:
        """Skips `size` bytes. Raises MalformedMessage if there are fewer."""
        while size > self.left:
            size -= self.left
            self.data, self.pos = b"", 0
            if not self.more():
                raise MalformedMessage("records", f"records end {size} bytes early")
            yield
        self.pos += size

    def number(self) -> Generator[None, None, int]:
        if self.left < VARINT_BYTES_MAX:
            yield from self.fill(VARINT_BYTES_MAX)
        try:
            found, self.pos = varint_at(self.data, self.pos)
        except IndexError:
            raise MalformedMessage("records", "records end early") from None
        return found


def contents(buf: Data, at: BatchAt, limit: int | None = None) -> Iterator[list[Record]]:
    """Yields the records of a batch, at most `RECORDS_AT_ONCE` in each list. `limit`: how many bytes the batch may
    hold; by default in proportion to its size.
    """
    source = Source(buf, at, openable_bytes(at.header.size) if limit is None else limit)
    count, done = at.header.record_count, 0
    source.more()
    while True:
        most = min(count - done, RECORDS_AT_ONCE)
        found, begin, end = whole_records(source.data, source.pos, at.header, most)
        done += len(found)
        yield found
        source.pos = begin
        if len(found) == most and done < count:
            continue
        if end - begin > CHUNK_BYTES:
            for _ in source.fill(end - begin):
                yield []
            if source.left < end - begin:
                break
        elif (done == count and source.left) or not source.more():
            break
    check_end(at.header, done, source.left)


def shapes(buf: Data, at: BatchAt, limit: int | None = None) -> Iterator[Shapes]:
    """Yields what checks need of the records of a batch. `limit` as for `contents`."""
    source = Source(buf, at, openable_bytes(at.header.size) if limit is None else limit)
    count, done = at.header.record_count, 0
    source.more()
    while True:
        found = Shapes(done, [], [], [])
        is_giant = _pass_over(source, found)
        done += len(found.timestamps)
        yield _dated(found, at.header)
        if is_giant:
            for some in _giant(source, done):
                yield _dated(some, at.header)
            done += 1
        elif (done == count and source.left) or not source.more():
            break
    check_end(at.header, done, source.left)


def _dated(found: Shapes, header: BatchHeader) -> Shapes:
    """Returns the records with the batch's timestamp if it is the log append time, and with timestamps truncated to 64
    bits, as in Java.
    """
    timestamps = found.timestamps
    if header.is_append_time:
        return found._replace(timestamps=[header.max_timestamp] * len(timestamps))
    if timestamps and (min(timestamps) < INT64_MIN or max(timestamps) >= -INT64_MIN):
        return found._replace(timestamps=[int64(one) for one in timestamps])
    return found


def _pass_over(source: Source, found: Shapes) -> bool:
    """Adds the complete records to `found`; returns whether a record follows that is larger than a chunk."""
    data, pos, end, index = source.data, source.pos, len(source.data), found.first
    base, count = source.header.base_timestamp, source.header.record_count
    note_timestamp, note_offset = found.timestamps.append, found.offset_deltas.append
    start = pos
    try:
        while pos < end and index < count:
            size, pos = varint_at(data, pos)
            stop = pos + size
            if size < RECORD_BYTES_MIN - 1:
                raise MalformedMessage("records", f"a record of {size} bytes")
            if stop > end:
                source.pos = start
                return size > CHUNK_BYTES
            number = data[pos + 1]  # the byte after the attributes; most deltas have one byte
            timestamp, pos = ((number >> 1) ^ -(number & 1), pos + 2) if number < 0x80 else varint_at(data, pos + 1)
            offset, pos = varint_at(data, pos)
            number, pos = varint_at(data, pos)
            if number < 0:
                found.keyless.append(index)
            else:
                pos += number
            number, pos = varint_at(data, pos)
            if number > 0:
                pos += number
            number = data[pos]
            pos += 1
            if number:
                pos = pass_headers(data, pos - 1, stop)
            if pos != stop:
                raise MalformedMessage("records", f"a record ends at {pos} instead of {stop}")
            note_timestamp(base + timestamp)
            note_offset(offset)
            index += 1
            start = pos
    except IndexError:
        if end - start >= VARINT_BYTES_MAX:  # more than a record's size is missing
            raise MalformedMessage("records", "records end early") from None
    source.pos = start
    return False


def pass_headers(data: bytes, pos: int, stop: int) -> int:
    """Returns where the headers end whose count is at `pos`. Raises MalformedMessage or IndexError."""
    count, pos = varint_at(data, pos)
    if count < 0 or count * 2 > stop - pos:
        raise MalformedMessage("records", f"{count} headers in {stop - pos} bytes")
    left, pos = _pass_some_headers(data, pos, stop, count)
    if left:
        raise MalformedMessage("records", "headers end early")
    return pos


def _pass_some_headers(data: bytes, pos: int, stop: int, count: int) -> tuple[int, int]:
    """Skips at most `count` headers that end before `stop`;
    returns how many are left, and where they begin. Raises MalformedMessage.
    """
    start = pos
    try:
        while count:
            size, pos = varint_at(data, pos)
            if size < 0:
                raise MalformedMessage("records", "a header without a name")
            size, pos = varint_at(data, pos + size)
            pos += max(size, 0)
            if pos > stop:
                break
            count, start = count - 1, pos
    except IndexError:
        pass  # the header goes on in bytes that are not there yet
    return count, start


def _giant(source: Source, index: int) -> Iterator[Shapes]:
    """Reads a record field by field, without holding all of it.
    Yields an item after each chunk; all but the last are empty.
    """
    nothing = Shapes(index, [], [], [])

    def steps() -> Generator[None, None, Shapes]:
        whole = yield from source.number()
        stop = source.passed + whole
        yield from source.skip(1)
        timestamp = yield from source.number()
        offset = yield from source.number()
        key_size = yield from source.number()
        yield from source.skip(max(0, key_size))
        size = yield from source.number()
        yield from source.skip(max(0, size))
        count = yield from source.number()
        if count < 0:
            raise MalformedMessage("records", f"{count} headers")
        while count:
            count, source.pos = _pass_some_headers(source.data, source.pos, len(source.data), count)
            if count:  # the next header is incomplete
                size = yield from source.number()
                if size < 0:
                    raise MalformedMessage("records", "a header without a name")
                yield from source.skip(size)
                size = yield from source.number()
                yield from source.skip(max(0, size))
                count -= 1
        if source.passed != stop:
            raise MalformedMessage("records", f"a record of {whole} bytes has {whole + source.passed - stop}")
        return Shapes(index, [source.header.base_timestamp + timestamp], [offset], [index] if key_size < 0 else [])

    ahead = steps()
    while True:
        try:
            next(ahead)
        except StopIteration as end:
            yield end.value
            return
        yield nothing
