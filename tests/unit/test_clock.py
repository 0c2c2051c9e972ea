"""Who has the machine's time and who the broker's, and what becomes of threads when the broker ends."""

from __future__ import annotations

import ast
import asyncio
import re
import threading

from ottla.broker.broker_schedule import BrokerSchedule
from ottla.broker.machine import Machine

from ..support.sources import dotted, nodes, trees


def test_nothing_is_called_after_the_schedule_is_closed() -> None:
    """A timer of a stopped broker that begins a sync is no failure, and has nothing to report."""
    called: list[str] = []

    async def run() -> None:
        machine = Machine()
        schedule = BrokerSchedule(machine)
        free = threading.Event()
        schedule.in_thread(free.wait, lambda result, error: called.append(f"a thread that ran: {error}"))
        schedule.soon(free.set)
        await asyncio.sleep(0)
        machine.close()
        schedule.in_thread(lambda: None, lambda result, error: called.append(f"a thread after the end: {error}"))
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert called == []


def test_what_reads_the_time_asks_for_it_each_time() -> None:
    """A function of the schedule that someone keeps would go on with the time of before."""
    readings = {"now_ms", "monotonic_ms", "work_ns", "soon"}
    for path, tree in trees("broker").items():
        if path == "broker/broker_schedule.py":
            continue
        called = {id(node.func) for node in nodes(tree) if isinstance(node, ast.Call)}
        for node in nodes(tree):
            if isinstance(node, ast.Attribute) and node.attr in readings and dotted(node.value).endswith("schedule"):
                assert id(node) in called, f"{path}:{node.lineno} keeps {dotted(node)}"


def test_only_what_concerns_the_machine_reads_its_time() -> None:
    """Everything else has its time and timers of a schedule. Measured durations are not times."""
    own_timers = {"broker/machine.py", "broker/net/server.py", "broker/net/tls.py"}
    for path, tree in trees("broker").items():
        for node in nodes(tree):
            if isinstance(node, ast.Attribute) and node.attr in ("call_later", "call_at"):
                assert path in own_timers, f"{path}:{node.lineno} sets a timer of the loop"
            if isinstance(node, ast.Attribute) and re.fullmatch(r"time\.(time|monotonic)(_ns)?", dotted(node)):
                assert path == "broker/machine.py", f"{path}:{node.lineno} reads the machine's time"
