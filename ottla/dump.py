"""Reads Kafka's files into dicts: one per batch, record, index entry or producer."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from .coordinator.described import describer
from .protocol import legacy, opening, records
from .protocol.compression import NAMES
from .protocol.errors import MalformedMessage
from .protocol.records import BatchAt
from .storage import layout
from .storage.batch_info import BatchInfo, info_at
from .storage.index import decode_aborted
from .storage.producers import Producers

Entry = dict[str, object]
Opener = Callable[[records.Record], "Entry | None"]
_INDEX_NAME: Final = re.compile(r"\d{20}", re.ASCII)
_PART_BYTES: Final = 1 << 20


def dump_file(path: str, with_records: bool = True) -> Iterator[Entry]:
    """Yields the entries of a file, by its suffix. A part that cannot be read becomes an entry with `error`."""
    suffix = os.path.splitext(_name(path))[1]
    reader = _READERS.get(suffix)
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        yield {"kind": "file", "path": path, "error": "not a regular file"}
        return
    yield {"kind": "file", "path": path, "bytes": found.st_size}
    if reader is None:
        for number, line in enumerate(Path(path).read_text(errors="replace").splitlines(), 1):
            yield {"kind": "line", "number": number, "text": line}
        return
    yield from reader(path, with_records)


def _name(path: str) -> str:
    """Returns the name of a file, without the suffix of one that waits for its deletion or its place."""
    return layout.PASSING.sub("", os.path.basename(path))


def text_of(entry: Entry) -> str:
    """Returns an entry as one line of text; records are indented below their batch."""
    kind = entry["kind"]
    rest = " ".join(f"{key}={value}" for key, value in entry.items() if key != "kind")
    return f"{'  ' if kind in ('record', 'message') else ''}{kind} {rest}"


def _log(path: str, with_records: bool) -> Iterator[Entry]:
    opener = _opener(os.path.basename(os.path.dirname(os.path.abspath(path))).rpartition("-")[0])
    with open(path, "rb") as file:
        position, size = 0, os.path.getsize(path)
        while position < size:
            file.seek(position)
            info = info_at(file.read(records.HEADER_SIZE), 0, position)
            if info is None or position + info.size > size:
                file.seek(position)
                yield {"kind": "rest", "position": position, "bytes": size - position, **_problem(file)}
                return
            file.seek(position)
            yield from _batch(info, file.read(info.size), with_records, opener)
            position += info.size


def _problem(file: BinaryIO) -> Entry:
    """Returns what is wrong with the rest of a file; zeros are right, which are there where it was allocated before."""
    is_zeros = all(not any(part) for part in iter(partial(file.read, _PART_BYTES), b""))
    return {"zeros": True} if is_zeros else {"error": "not a whole batch"}


def _batch(info: BatchInfo, data: bytes, with_records: bool, opener: Opener) -> Iterator[Entry]:
    if info.header is None:
        yield from _legacy(info, data, with_records)
        return
    h = info.header
    crc = records.computed_crc(data, 0, len(data))
    yield {
        "kind": "batch",
        "base_offset": h.base_offset,
        "last_offset": h.last_offset,
        "count": h.record_count,
        "position": info.position,
        "size": info.size,
        "magic": h.magic,
        "codec": NAMES[h.codec] if h.codec < len(NAMES) else h.codec,
        "timestamp_type": "LogAppendTime" if h.is_append_time else "CreateTime",
        "base_timestamp": h.base_timestamp,
        "max_timestamp": h.max_timestamp,
        "delete_horizon_ms": h.delete_horizon_ms,
        "partition_leader_epoch": h.partition_leader_epoch,
        "producer_id": h.producer_id,
        "producer_epoch": h.producer_epoch,
        "base_sequence": h.base_sequence,
        "transactional": h.is_transactional,
        "control": h.is_control,
        "crc": h.crc,
        "crc_valid": crc == h.crc,
    }
    if with_records:
        try:
            for some in opening.contents(data, BatchAt(0, h)):
                for record in some:
                    yield _record(record, _closed if h.is_control else opener)
        except MalformedMessage as error:
            yield {"kind": "record", "error": str(error)}


def _opener(topic: str) -> Opener:
    """Returns a function that decodes the records of a topic; it returns None for records of user topics."""
    describe = describer(topic)
    if describe is None:
        return _closed

    def opened(record: records.Record) -> Entry | None:
        try:
            found = describe(record)
        except MalformedMessage:
            return None
        if found is None:
            return None
        return {"type": found.type, **({} if found.key is None else {"key": found.key}), "data": found.value}

    return opened


def _closed(record: records.Record) -> Entry | None:
    return None


def _record(record: records.Record, opener: Opener) -> Entry:
    entry: Entry = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
    found = opener(record)
    if found is not None:
        return {**entry, **found}
    headers = [[name, _text(value)] for name, value in record.headers]
    return {**entry, "key": _text(record.key), "value": _text(record.value), "headers": headers}


def _legacy(info: BatchInfo, data: bytes, with_records: bool) -> Iterator[Entry]:
    entry = next(legacy.entries(data), None)
    valid = entry is not None and entry.crc_valid
    yield {
        "kind": "entry",
        "offset": info.last_offset,
        "position": info.position,
        "size": info.size,
        "magic": info.magic,
        "crc_valid": valid,
    }
    if with_records and valid:
        for message in chain.from_iterable(legacy.contents(data)):
            yield {
                "kind": "message",
                "offset": message.offset,
                "timestamp": message.timestamp,
                "key": _text(message.key),
                "value": _text(message.value),
            }


def _text(value: bytes | None) -> str | None:
    """Returns a value as text if it is printable, else as hex."""
    if value is None:
        return None
    try:
        found = value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return found if found.isprintable() else "0x" + value.hex()


def _index(path: str, _: bool) -> Iterator[Entry]:
    data, rest = _entries(path, layout.INDEX_ENTRY.size)
    for relative, position in layout.INDEX_ENTRY.iter_unpack(data):
        yield {"kind": "index", "offset": layout.offset_of(_name(path)) + relative, "position": position}
    yield from rest


def _time_index(path: str, _: bool) -> Iterator[Entry]:
    data, rest = _entries(path, layout.TIME_INDEX_ENTRY.size)
    for timestamp, relative in layout.TIME_INDEX_ENTRY.iter_unpack(data):
        yield {"kind": "time", "timestamp": timestamp, "offset": layout.offset_of(_name(path)) + relative}
    yield from rest


def _transactions(path: str, _: bool) -> Iterator[Entry]:
    data, rest = _entries(path, layout.TXN_INDEX_ENTRY.size)
    for aborted in decode_aborted(data):
        yield {"kind": "aborted", **aborted._asdict()}
    yield from rest


def _entries(path: str, entry_bytes: int) -> tuple[bytes, list[Entry]]:
    """Returns the whole entries of an index, without the zeros after them that Kafka allocates before, and what is
    wrong.
    """
    if not _INDEX_NAME.match(_name(path)):
        return b"", [{"kind": "file", "path": path, "error": "the name does not begin with an offset of 20 digits"}]
    data = Path(path).read_bytes()
    whole = len(data) - len(data) % entry_bytes
    used = min(whole, -(-len(data.rstrip(b"\0")) // entry_bytes) * entry_bytes)
    left = len(data) - whole
    error: Entry = {"kind": "rest", "position": whole, "bytes": left, "error": "not a whole entry"}
    return data[:used], [error] if left else []


def _producers(path: str, _: bool) -> Iterator[Entry]:
    producers = Producers()
    try:
        producers.load_snapshot(Path(path).read_bytes(), 0)
    except ValueError as error:
        yield {"kind": "producer", "error": str(error)}
    for pid, p in producers.by_id.items():
        yield {
            "kind": "producer",
            "producer_id": pid,
            "producer_epoch": p.epoch,
            "coordinator_epoch": p.coordinator_epoch,
            "current_txn_first_offset": p.transaction_first_offset,
            "last_timestamp": p.last_timestamp,
            "last_sequence": p.last_sequence,
            "last_offset": p.last_offset,
        }


_READERS: dict[str, Callable[[str, bool], Iterator[Entry]]] = {
    layout.LOG: _log,
    ".checkpoint": _log,
    layout.INDEX: _index,
    layout.TIME_INDEX: _time_index,
    layout.TXN_INDEX: _transactions,
    layout.SNAPSHOT: _producers,
}
