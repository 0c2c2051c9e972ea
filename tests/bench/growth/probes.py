"""What the curves measure with."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import psutil

from ...support.wire import Wire
from ..sides import Server

REPEATED = 20


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median_us(work: Callable[[], object], times: int = REPEATED) -> float:
    """The median of some times, without the first two."""
    return statistics.median([seconds(work) for _ in range(times)][2:]) * 1e6


def asking(wire: Wire, frame: bytes) -> Callable[[], object]:
    """Sends a request, and reads the reply without a look at it."""

    def ask() -> None:
        wire.send(frame)
        wire.read_frame()

    return ask


def memory_kib(server: Server) -> float:
    return float(psutil.Process(server.pid).memory_info().rss) / 1024


def processor_us(server: Server) -> float:
    """What a server has needed of processors until now, in microseconds."""
    times = psutil.Process(server.pid).cpu_times()
    return float(times.user + times.system) * 1e6


def processor_us_of_all(server: Server) -> float:
    """The same with its own processes, such as those that compact logs."""
    main = psutil.Process(server.pid)
    times = main.cpu_times()
    found = float(times.children_user + times.children_system) * 1e6
    for child in main.children(recursive=True):
        of_child = child.cpu_times()
        found += float(of_child.user + of_child.system) * 1e6
    return processor_us(server) + found


def idle_percent(server: Server, during_s: float = 10.0) -> float:
    """The share of a core when there are no requests, after the work that follows from what was asked before."""
    time.sleep(during_s)
    before = processor_us(server)
    time.sleep(during_s)
    return (processor_us(server) - before) / during_s / 1e4
