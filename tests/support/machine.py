"""A machine whose time passes when a test says so. Its threads are calls one millisecond later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from ottla.broker.clock import Cancellable, VirtualSchedule
from ottla.broker.lab.traces.feeding import Feed


class VirtualProgram:
    """A program within the test, which has done with bytes as soon as it has them."""

    def __init__(self, module: str, arguments: Sequence[str], descriptors: Sequence[int]) -> None:
        own = {str(one): str(os.dup(one)) for one in descriptors}
        self._answers = bytearray()
        self._feed = Feed(import_module(module).begin([own.get(one, one) for one in arguments], self._answers.extend))
        self._has_ended = False

    def take(self, data: memoryview) -> int:
        if self._has_ended:
            raise BrokenPipeError("the program has ended")
        self._feed.feed(bytes(data))
        return len(data)

    def read(self) -> bytes | None:
        data = bytes(self._answers)
        self._answers.clear()
        return data or (None if self._has_ended else b"")

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._feed.end()

    def kill(self) -> None:
        self._has_ended = True

    def has_ended(self) -> bool:
        return self._has_ended

    def finish(self, rest: Iterable[memoryview], seconds: float) -> bool:
        for one in rest:
            self.take(one)
        self.end()
        return True


class VirtualMachine:
    """`MachineTime` on a virtual schedule, which may also be that of a broker. `advance` lets the machine's time
    pass.
    """

    def __init__(self, schedule: VirtualSchedule | None = None) -> None:
        self.schedule = schedule or VirtualSchedule()
        self.advance = self.schedule.advance
        self.wall_ms = self.schedule.now_ms
        self.uptime_ms = self.schedule.monotonic_ms
        self.work_ns = self.schedule.work_ns
        self.run_all = self.schedule.run_all

    def exact_uptime_ms(self) -> float:
        return self.schedule.elapsed_ms

    def after(self, delay_ms: float, call: Callable[[], None]) -> Cancellable:
        return self.schedule.later(delay_ms, call)

    def at_end_of_turn(self, call: Callable[[], None]) -> object:
        return self.schedule.soon(call)

    def start_program(
        self, module: str, arguments: Sequence[str], descriptors: Sequence[int], answers: bool = False
    ) -> VirtualProgram:
        return VirtualProgram(module, arguments, descriptors)

    def run_in_thread(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.schedule.in_thread(work, done)
