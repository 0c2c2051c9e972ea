"""A log of one partition that becomes a compacted one: each of its batches has a record of the same keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from ...support.ask import produce_message
from ...support.wire import Wire, request_frame
from ..servers import RECORD_1K, topic, warm_memory
from ..sides import dispose, fresh
from . import Curve, Point
from .probes import asking, memory_kib, processor_us_of_all

MEGABYTES = (64, 256, 1024)
KEYS = 900
SETTINGS = {"log_segment_bytes": 16 << 20, "log_cleaner_backoff_ms": 100, "log_segment_delete_delay_ms": 100}
LEFT_BYTES = 34 << 20  # of the active segment, and of what is left of the others
LOOK_SECONDS = 0.05


def compaction(side: str) -> Iterator[Point]:
    """Each point is a server of its own. From the change of `cleanup.policy` until the log is short."""
    for megabytes in MEGABYTES:
        server = fresh(side, **SETTINGS)
        server.start()
        warm_memory()
        topic(server, "long")
        with Wire(server.bootstrap_servers) as wire:
            write = asking(wire, _produce())
            for _ in range(megabytes * 1000 // KEYS):
                write()
            began, work = time.perf_counter(), processor_us_of_all(server)
            _compact(wire)
            while _log_bytes(server.data_directory / "long-0") > LEFT_BYTES:
                time.sleep(LOOK_SECONDS)
        took, work = time.perf_counter() - began, processor_us_of_all(server) - work
        used = memory_kib(server)
        dispose(server)
        yield (
            megabytes,
            {
                "compact, us per MB": took / megabytes * 1e6,
                "processor, us per MB": work / megabytes,
                "memory, KiB": used,
            },
        )


def _produce() -> bytes:
    now_ms = int(time.time() * 1000)
    data = bytes(records.encode([Record(b"%d" % key, RECORD_1K, now_ms) for key in range(KEYS)]))
    return request_frame("Produce", 9, produce_message("long", data))


def _compact(wire: Wire) -> None:
    r = m.IncrementalAlterConfigsRequest
    config = r.AlterableConfig(name="cleanup.policy", config_operation=0, value="compact")
    resource = r.AlterConfigsResource(resource_type=2, resource_name="long", configs=[config])
    reply = wire.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
    assert not reply.responses[0].error_code, reply


def _log_bytes(directory: Path) -> int:
    """Returns the bytes of the segments; files may go meanwhile."""
    found = 0
    for path in directory.glob("*.log"):
        try:
            found += path.stat().st_size
        except FileNotFoundError:
            continue
    return found


CURVES = {"compaction": Curve("MB of a log that is compacted", compaction, frozenset(("processor, us per MB",)))}
