"""Logs under power failures: random work on `MemFiles`, then the power goes, and what is found is held against what was
promised.

    python -m tests.sim [seeds=20000] [seed=N]
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage.files import HandlePool
from ottla.storage.log import Log
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.memory_files import MemFiles
from ..support.world import told_with

DIRECTORY = "/data/t-0"


@dataclass
class Promise:
    """What the log may not forget, and what it may hold at most."""

    values: dict[int, bytes] = field(default_factory=dict)  # by offset, everything that was ever appended there last
    durable_to: int = 0
    start: int = 0


class OneBatchOneRecordOneOffset:
    """Every record found is the one that was appended at its offset; no offset twice; none missing between."""

    @staticmethod
    def check(log: Log, promise: Promise) -> None:
        expected = log.start_offset
        for segment, batch in log.batches_from(log.start_offset):
            assert batch.header is not None
            for record in records.decode(segment.read_batch(batch), records.BatchAt(0, batch.header)):
                if record.offset < log.start_offset:
                    continue
                assert record.offset == expected, f"offset {record.offset} where {expected} was due"
                assert record.value == promise.values.get(record.offset), f"another record at {record.offset}"
                expected += 1
        assert expected == log.end_offset, f"the log says it ends at {log.end_offset}, its records end at {expected}"


class NothingFlushedIsLost:
    @staticmethod
    def check(log: Log, promise: Promise) -> None:
        assert log.end_offset >= promise.durable_to, (
            f"{promise.durable_to} was flushed, the log ends at {log.end_offset}"
        )


class IndexesFindEveryOffset:
    @staticmethod
    def check(log: Log, promise: Promise) -> None:
        for offset in range(log.start_offset, log.end_offset):
            slice_ = log.read(offset, 1, None, True)
            assert slice_ is not None
            at = next(records.batches(bytes(slice_)))
            slice_.release()
            assert at.header.base_offset <= offset <= at.header.last_offset


class ProducersAreThoseOfTheLog:
    @staticmethod
    def check(log: Log, promise: Promise) -> None:
        last: dict[int, int] = {}
        for _, batch in log.batches_from(log.start_offset):
            if batch.header is not None and batch.header.producer_id >= 0:
                last[batch.header.producer_id] = batch.header.last_sequence
        for pid, sequence in last.items():
            assert log.producers.by_id[pid].last_sequence == sequence, f"producer {pid}"


INVARIANTS = (OneBatchOneRecordOneOffset, NothingFlushedIsLost, IndexesFindEveryOffset, ProducersAreThoseOfTheLog)


def run(seed: int) -> None:
    """One history: work, power failures, recoveries. AssertionError with the seed."""
    chance = random.Random(seed)
    files = MemFiles()
    files.make_directory("/data")
    files.sync_directory("/")
    sizes, intervals = (300, 1000, 5000), (1, 200, 4096)
    settings = LogSettings(
        segment_bytes=chance.choice(sizes),
        index_interval_bytes=chance.choice(intervals),
        preallocate=chance.random() < 0.25,
    )
    promise = Promise()
    sequences: dict[int, int] = {}
    log = open_now(HandlePool(files, 3), DIRECTORY, settings, 0)
    now = 1000
    with told_with(seed):
        for _ in range(chance.randint(1, 4)):
            for _ in range(chance.randint(1, 40)):
                now += chance.randint(0, 50)
                _act(log, chance, promise, sequences, now)
            recovery_point = log.recovery_point if chance.random() < 0.7 else 0
            start = log.start_offset
            files = files.lose_power(chance)
            if not files.exists(DIRECTORY):
                assert promise.durable_to == 0, "the directory of flushed records is gone"
                return
            log = open_now(
                HandlePool(files, 3),
                DIRECTORY,
                settings,
                now,
                clean=False,
                recovery_point=recovery_point,
                start_offset=start,
            )
            for invariant in INVARIANTS:
                invariant.check(log, promise)
            promise.values = {o: v for o, v in promise.values.items() if o < log.end_offset}
            promise.durable_to = log.end_offset
            log.flush_now()
            _rebuild_sequences(log, sequences)


def _rebuild_sequences(log: Log, sequences: dict[int, int]) -> None:
    sequences.clear()
    for pid, producer in log.producers.by_id.items():
        sequences[pid] = (producer.last_sequence + 1) & 0x7FFFFFFF


def _act(log: Log, chance: random.Random, promise: Promise, sequences: dict[int, int], now: int) -> None:
    action = chance.random()
    if action < 0.75:
        values = [chance.randbytes(chance.randrange(60)) for _ in range(chance.randint(1, 4))]
        template = Template(codec=chance.choice((0, 0, 1)))
        if chance.random() < 0.5:
            pid = chance.randrange(3)
            template.producer_id, template.producer_epoch, template.base_sequence = pid, 0, sequences.get(pid, 0)
            sequences[pid] = sequences.get(pid, 0) + len(values)
        data = records.encode([Record(b"k", v, now) for v in values], template)
        done = log.append(data, list(records.batches(data)), 1, now)
        for n, value in enumerate(values):
            promise.values[done.base_offset + n] = value
    elif action < 0.87:
        log.flush_now()
        promise.durable_to = log.end_offset
    elif action < 0.92:
        log.roll(now)
    elif action < 0.96 and log.recovery_point > log.start_offset:
        log.advance_start(chance.randint(log.start_offset, log.recovery_point))
        promise.start = log.start_offset
    else:
        gone = [s for s, after in zip(log.segments, log.bases[1:], strict=False) if after <= log.start_offset]
        log.remove_segments(gone, now)
