"""Index files in which bits have flipped: what a log says is what its batches say.

    python -m tests.sim indexes [seeds=20000] [seed=N]

A log of several segments with transactions is closed in order, one bit of one of its indexes or snapshots is flipped,
and the log is opened
again: every question that a log can be asked has the same answer.
"""

from __future__ import annotations

import functools
import random
import struct
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage import timestamps
from ottla.storage.aborted import aborted_between
from ottla.storage.files import HandlePool
from ottla.storage.log import Log
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.memory_files import MemFiles
from ..support.steps import answer_of, result_of

T = TypeVar("T")
DIRECTORY = "/d/t-0"
KINDS = (".index", ".timeindex", ".txnindex", ".snapshot")


def open_log(files: MemFiles) -> Log:
    return open_now(
        HandlePool(files, 8), DIRECTORY, LogSettings(segment_bytes=800, index_interval_bytes=100), 0, recovery_point=60
    )


def write(log: Log, now: int, values: int, **template: Any) -> None:
    rows = [Record(b"k", b"%d" % now, now - values + n + 1) for n in range(values)]
    data = records.encode(rows, Template(**template))
    log.append(data, list(records.batches(data)), 0, now)


def end(log: Log, pid: int, committed: bool, now: int) -> None:
    marker = Record(struct.pack(">hh", 0, int(committed)), struct.pack(">hi", 0, 3), now)
    data = records.encode([marker], Template(producer_id=pid, producer_epoch=0, transactional=True, control=True))
    log.append(data, list(records.batches(data)), 0, now)


def filled() -> tuple[MemFiles, Log]:
    """Three segments of batches of several records, with transactions that overlap, closed in order."""
    files = MemFiles()
    files.make_directory("/d")
    files.sync_directory("/")
    log = open_log(files)
    sent = Counter[int]()
    for turn in range(6):
        for pid in (1, 2, 3):
            if pid != 3 or turn % 3 == 0:
                write(
                    log,
                    1000 + 10 * log.end_offset,
                    2,
                    producer_id=pid,
                    producer_epoch=0,
                    base_sequence=sent[pid],
                    transactional=True,
                )
                sent[pid] += 2
        write(log, 1000 + 10 * log.end_offset, 3)
        end(log, 1, turn % 2 == 0, 1000 + 10 * log.end_offset)
        if turn % 3 == 2:
            end(log, 3, False, 1000 + 10 * log.end_offset)
        end(log, 2, turn % 4 == 0, 1000 + 10 * log.end_offset)
    log.close()
    assert len(log.segments) >= 3
    return files, log


def said(log: Log) -> dict[str, Any]:
    """Everything that a log can be asked."""

    def asked(ask: Callable[[], T]) -> T:
        return answer_of(log, ask)

    found: dict[str, Any] = {
        "end": log.end_offset,
        "largest": asked(lambda: result_of(timestamps.largest(log))),
        "sizes": [s.size for s in log.segments],
    }
    found["timestamps"] = [s.max_timestamp for s in log.segments]
    for offset in range(log.end_offset):
        piece = asked(partial(log.read, offset, 1, None, True))
        assert piece is not None
        found[f"read {offset}"] = bytes(piece)
        for upper in (offset + 1, log.end_offset):
            aborted = asked(partial(aborted_between, log, offset, upper))
            found[f"aborted {offset} {upper}"] = [one[1:4] for one in aborted]
        found[f"upper {offset}"] = records.header_at(bytes(piece)).last_offset < asked(partial(log.offset_after, piece))
        piece.release()
    for timestamp in range(995, 1005 + 10 * log.end_offset, 10):
        found[f"time {timestamp}"] = asked(lambda at=timestamp: result_of(timestamps.first_from(log, at)))  # type: ignore[misc]
    found["producers"] = {pid: (p.last_sequence, p.transaction_first_offset) for pid, p in log.producers.by_id.items()}
    return found


def clone(files: MemFiles) -> MemFiles:
    made = MemFiles()
    made.make_directory(DIRECTORY)
    for name in files.names(DIRECTORY):
        made.open(f"{DIRECTORY}/{name}", create=True).write_at(0, files.read(f"{DIRECTORY}/{name}"))
    return made


@functools.cache
def known() -> tuple[MemFiles, dict[str, Any]]:
    """The files of a log, and what it says."""
    files, log = filled()
    return files, said(log)


def run(seed: int) -> None:
    """Flips one bit. AssertionError with the seed."""
    chance = random.Random(seed)
    files, before = known()
    name = chance.choice([name for name in files.names(DIRECTORY) if name.endswith(KINDS)])
    bit = chance.randrange(8 * files.size(f"{DIRECTORY}/{name}"))
    damaged = clone(files)
    handle = damaged.open(f"{DIRECTORY}/{name}")
    handle.write_at(bit // 8, bytes([handle.read_at(bit // 8, 1)[0] ^ 1 << bit % 8]))
    assert said(open_log(damaged)) == before, f"seed {seed}: bit {bit % 8} of byte {bit // 8} of {name}"
