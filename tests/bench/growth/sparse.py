"""A log of 100 GB, most of which is holes: batches of one record of zeros, with their indexes, put into the directory
of a server that has stopped. Both sides read the same files.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage.checkpoints import decode_offsets, encode_offsets
from ottla.storage.layout import (
    HIGH_WATERMARKS,
    INDEX,
    INDEX_ENTRY,
    LOG,
    RECOVERY_POINTS,
    SNAPSHOT,
    TIME_INDEX,
    TIME_INDEX_ENTRY,
    file_name,
)

from ...support.wire import Wire
from ..servers import produce_request, topic
from ..sides import dispose, fresh
from . import Curve, Point
from .data import first_record, offset_at, reap
from .probes import asking, median_us, memory_kib, seconds

GIGABYTES = (1, 10, 100)
VALUE = bytes(1_000_000)
BATCHES = 1000  # of a segment
WRITTEN = 128  # the bytes at the beginning of a batch that are not zeros


def sparse(side: str) -> Iterator[Point]:
    """Each point is a server of its own, and a log that ends with the last batch of a full segment."""
    for gigabytes in GIGABYTES:
        server = fresh(side)
        server.start()
        topic(server, "long")
        with Wire(server.bootstrap_servers) as wire:
            asking(wire, produce_request("long", [b"x"]))()
        server.stop()
        began_ms = int(time.time() * 1000) - gigabytes * BATCHES
        end = lengthen(server.data_directory, gigabytes, began_ms)
        clean = seconds(lambda: first_record(server, end - 1))  # noqa: B023
        used = memory_kib(server)
        os.kill(server.pid, signal.SIGKILL)
        reap(server)
        killed = seconds(lambda: first_record(server, end - 1))  # noqa: B023
        with Wire(server.bootstrap_servers) as wire:
            tail = seconds(lambda: first_record(server, end - 1, starts=False))  # noqa: B023
            middle_ms = began_ms + gigabytes * BATCHES // 2
            by_time = median_us(lambda: offset_at(wire, middle_ms))  # noqa: B023
        stopped = seconds(server.stop)
        dispose(server)
        yield (
            gigabytes,
            {
                "start to tail, s": clean,
                "kill to tail, s": killed,
                "tail, ms": tail * 1e3,
                "by time, us": by_time,
                "stop, s": stopped,
                "memory, MB": used / 1024,
            },
        )


def lengthen(data: Path, segments: int, began_ms: int) -> int:
    """Replaces the log of the one partition by segments of a gigabyte; returns its end. A batch is a millisecond after
    the one before.
    """
    directory, key = data / "long-0", ("long", 0)
    (empty,) = directory.glob(f"*{SNAPSHOT}")  # as without idempotent producers at any offset
    for path in (directory / file_name(0, suffix) for suffix in (LOG, INDEX, TIME_INDEX)):
        path.unlink(missing_ok=True)
    for number in range(segments):
        base = number * BATCHES
        _write_segment(directory, base, began_ms + base)
        shutil.copy(empty, directory / file_name(base + BATCHES, SNAPSHOT))
    empty.unlink()
    end = segments * BATCHES
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        path = data / name
        path.write_bytes(encode_offsets({**decode_offsets(path.read_bytes()), key: end}))
    return end


def _write_segment(directory: Path, base: int, base_ms: int) -> None:
    index, times, position = bytearray(), bytearray(), 0
    with (directory / file_name(base, LOG)).open("wb") as file:
        for number in range(BATCHES):
            template = Template(base_offset=base + number)
            batch = records.encode([Record(None, VALUE, base_ms + number, offset=base + number)], template)
            file.seek(position)
            file.write(batch[:WRITTEN])
            if number:
                index += INDEX_ENTRY.pack(number, position)
                times += TIME_INDEX_ENTRY.pack(base_ms + number, number)
            position += len(batch)
        file.truncate(position)
    (directory / file_name(base, INDEX)).write_bytes(index)
    (directory / file_name(base, TIME_INDEX)).write_bytes(times)


CURVES = {"sparse-log": Curve("GB of one partition", sparse)}
