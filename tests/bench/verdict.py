"""What a live verdict costs produce and consume, in turns with and without it on one broker. `make bench ARGS=verdict`.

The processor time of the broker's loop and of the program that examines says what it costs, whatever else the machine
does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import psutil

from ottla.testing import Broker

from ..support.wire import Wire, request_frame
from .lab import loop_seconds
from .servers import RECORD_1K, Figures, drain, fetch_request, flood, produce_request, topic
from .sides import dispose

TURNS = 6
SECONDS = 2.0
RAW = {"100 records": (100, 400), "one record": (1, 2000)}
Load = Callable[[], float]


def verdict(side: str) -> Figures:
    """Ratios of throughput with a verdict to that without, and of the processor time that a megabyte, or a request,
    costs the broker's loop; and what it costs the program.
    """
    if side != "ottla":
        return {}
    broker = Broker().start()
    try:
        topic(broker, "flood")
        found: Figures = {}
        loads: dict[str, Load] = {
            "produce 1 KB": lambda: flood(broker, "flood", RECORD_1K, SECONDS) * SECONDS,
            "consume 1 KB": lambda: _drained(broker),
        }
        with Wire(broker.bootstrap_servers) as wire:
            for name, (count, requests) in RAW.items():
                topic(broker, name.replace(" ", "-"))
                frame = produce_request(name.replace(" ", "-"), [RECORD_1K] * count)
                fetch = fetch_request(name.replace(" ", "-"), 0)
                fetch.max_bytes = fetch.topics[0].partitions[0].partition_max_bytes = count * 1100
                loads[f"produce requests of {name}"] = _raw(wire, frame, requests)
                loads[f"fetches of {name}"] = _raw(wire, request_frame("Fetch", 11, fetch), requests)
            for name, load in loads.items():
                found |= {f"{name}, {what}": figure for what, figure in _compared(broker, load).items()}
        return found
    finally:
        dispose(broker)


def _drained(broker: Broker) -> float:
    """Megabytes that one consumer reads."""
    count = 200_000
    drain(broker, "flood", len(RECORD_1K), count)
    return count * len(RECORD_1K) / 1e6


def _raw(wire: Wire, frame: bytes, requests: int) -> Load:
    def load() -> float:
        for _ in range(requests):
            wire.send(frame)
            wire.read_frame()
        return requests

    return load


def _program_seconds(broker: Broker) -> float:
    """The processor time of the programs beside the broker."""
    times = [one.cpu_times() for one in psutil.Process(broker.pid).children()]
    return float(sum(one.user + one.system for one in times))


def _compared(broker: Broker, load: Load) -> Figures:
    """Runs a load in turns with and without a verdict."""
    costs: dict[bool, list[float]] = {True: [], False: []}
    rates: dict[bool, list[float]] = {True: [], False: []}
    programs = []
    load()
    for turn in range(2 * TURNS):
        examined = bool(turn % 2)
        if examined:
            broker.lab.post("verdict")
            broker.lab.get("verdict")  # the program has started
        program, used, began = _program_seconds(broker), loop_seconds(broker.pid), time.perf_counter()
        done = load()
        rates[examined].append(done / (time.perf_counter() - began))
        costs[examined].append((loop_seconds(broker.pid) - used) / done * 1e6)
        if examined:
            broker.lab.get("verdict")  # it has examined everything
            programs.append((_program_seconds(broker) - program) / done * 1e6)
            broker.lab.delete("verdict")
    with_, without = (statistics.median(costs[one]) for one in (True, False))
    return {
        "throughput with a verdict to that without": statistics.median(rates[True]) / statistics.median(rates[False]),
        "processor time of the loop to that without": with_ / without,
        "processor time of the loop for a verdict, us": with_ - without,
        "processor time of the program, us": statistics.median(programs),
    }


SECTIONS = {"verdict": verdict}
