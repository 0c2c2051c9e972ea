"""What a trace or a live verdict takes of the loop for an exchange: `make bench ARGS=recording`.

The recorder is called as by the seam, with the frames of a client, and its blocks go to /dev/null. Other work between
two exchanges takes it out of the processor's caches, as the rest of a broker does. Figures are medians, of the clock:
they are steady where the rate of a broker depends on what else the machine does.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import time
from types import SimpleNamespace
from typing import Any, Final, cast

from ottla.broker.lab.faults.matching import Matcher
from ottla.broker.lab.seam import Line
from ottla.broker.lab.traces.stream import Stream
from ottla.broker.lab.traces.tracer import TraceAsked, Tracer
from ottla.broker.peer import Peer
from ottla.broker.replies import Reply

from ..support.wire import request_frame
from .lab import commit
from .servers import RECORD_100, Figures, fetch_request, produce_request

EXCHANGES, IN_BLOCK = 20_000, 200
LENGTH: Final = 4  # before a frame
OTHER_WORK: Final = [{"number": number, "text": str(number)} for number in range(150)]


class Nowhere:
    """A program that takes everything."""

    def __init__(self) -> None:
        self._descriptor = os.open(os.devnull, os.O_WRONLY)

    def take(self, data: memoryview) -> int:
        return os.write(self._descriptor, data)

    def close(self) -> None:
        os.close(self._descriptor)


class Records:
    """Of a reply, in a file."""

    def __len__(self) -> int:
        return 100


def recorder(program: Nowhere) -> Tracer:
    machine = SimpleNamespace(
        work_ns=time.perf_counter_ns, wall_ms=lambda: time.time_ns() // 1_000_000, after=lambda delay_ms, call: None
    )
    schedule = SimpleNamespace(is_machines=True, now_ms=machine.wall_ms)
    broker = SimpleNamespace(schedule=schedule, config=None, cluster_id="", nodes=())
    made = Tracer(TraceAsked(), None, Matcher(TraceAsked(), cast(Any, None)), cast(Any, broker), cast(Any, machine))
    made.sink = cast(Any, Stream(cast(Any, program), cast(Any, machine), "nothing"))
    return made


def taken_us(key: int, version: int, sent: bytes, head: bytes, has_records: bool) -> float:
    """Microseconds that recording an exchange takes, with its part of a block."""
    program = Nowhere()
    tracer, line = recorder(program), Line(1, Peer("PLAINTEXT", "127.0.0.1:50000"), None, 1)
    api = cast(Any, SimpleNamespace(key=key, has_records=has_records))
    frame = memoryview(sent)[LENGTH:]
    parts = cast(Any, [(len(head) - 1, Records())] if key == 1 else [])
    watch = tracer.watching(line)
    events: list[int] = []
    blocks: list[int] = []

    def send(reply: Reply | None, end: bool) -> None: ...

    clock = time.perf_counter_ns
    for number in range(EXCHANGES):
        json.loads(json.dumps(OTHER_WORK))
        context = cast(Any, SimpleNamespace(api=api, version=version, correlation_id=number, client_id="bench"))
        reply = Reply(bytearray(head), parts)
        began = clock()
        watch(number, context, cast(Any, None), frame, send)(reply, False)
        events.append(clock() - began)
        if number % IN_BLOCK == IN_BLOCK - 1:
            began = clock()
            tracer.flush()
            blocks.append(clock() - began)
    program.close()
    return (statistics.median(events) + statistics.median(blocks) / IN_BLOCK) / 1000


def recording(side: str) -> Figures:
    """Microseconds of the loop for an exchange."""
    if side != "ottla":
        return {}
    gc.disable()
    try:
        return {
            "Produce of 100 B": taken_us(0, 9, produce_request("small", [RECORD_100]), bytes(60), True),
            "Fetch of 100 B": taken_us(1, 11, request_frame("Fetch", 11, fetch_request("one", 0)), bytes(90), False),
            "OffsetCommit": taken_us(8, 8, commit("g"), bytes(40), False),
        }
    finally:
        gc.enable()


SECTIONS = {"recording": recording}
