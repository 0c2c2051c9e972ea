"""A log on files in memory, for tests of storage."""

from __future__ import annotations

import math
from typing import Any

from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage import cleaning
from ottla.storage.cleaning_pieces import Compaction
from ottla.storage.files import HandlePool
from ottla.storage.log import Log
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from .memory_files import MemFiles


def open_log(
    files: MemFiles, name: str = "t-0", now: int = 0, clean: bool = True, recovery_point: int = 0, **settings: Any
) -> Log:
    return open_now(
        HandlePool(files, 8), f"/d/{name}", LogSettings(**settings), now, clean=clean, recovery_point=recovery_point
    )


def append(
    log: Log,
    *values: bytes | None,
    now: int = 0,
    epoch: int = 0,
    keys: list[bytes] | None = None,
    timestamp: int | None = None,
    **template: Any,
) -> int:
    time = now if timestamp is None else timestamp
    rows = [Record(keys[i] if keys else b"k", v, time) for i, v in enumerate(values)]
    data = records.encode(rows, Template(**template))
    return log.append(data, list(records.batches(data)), epoch, now).base_offset


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    found = []
    for segment, batch in log.batches_from(log.start_offset):
        assert batch.header is not None
        for r in records.decode(segment.read_batch(batch), records.BatchAt(0, batch.header)):
            found.append((r.offset, r.key, r.value))
    return found


# compaction


def cleaned(files: MemFiles, job: cleaning.Job) -> cleaning.Outcome:
    """Writes the cleaned segments at once."""
    outcome = Compaction(files, job).go_on(math.inf).outcome
    assert outcome is not None
    return outcome


def remove_due(log: Log, now: int) -> None:
    """Removes the files of segments whose time has come, and that nobody reads."""
    for segment in log.removable(now):
        segment.remove()
        log.forget(segment)


def compact(log: Log, files: MemFiles, now: int = 0, keys_max: int = cleaning.KEYS_MAX) -> bool:
    plan = cleaning.plan(log, log.end_offset, now)
    if plan is None or not plan.is_due:
        return False
    cleaning.swap(log, plan, cleaned(files, plan.job(log.end_offset, keys_max)), now)
    return True
