"""The broker's time as a function of the machine's. It never goes back: a change begins at the present time."""

from __future__ import annotations

from enum import Enum

from ...machine import MachineTime


class Mode(Enum):
    """How time passes."""

    SYSTEM = "system"  # as the machine's
    FROZEN = "frozen"  # not at all
    RATE = "rate"  # faster or slower than the machine's


class LabTime:
    """Begins at the machine's present time, or at `start_ms` (wall time) and 0 (monotonic time). It passes in `mode`
    from the first moment on: between two moments, the machine may let the process wait.
    """

    def __init__(
        self, machine: MachineTime, start_ms: int | None = None, mode: Mode = Mode.SYSTEM, rate: float = 1.0
    ) -> None:
        self._machine = machine
        self.mode = mode
        self.rate = rate
        self._since_ms = machine.exact_uptime_ms()  # the machine's time of the last change
        elapsed_ms = self._since_ms if start_ms is None else 0.0
        self._elapsed_ms = elapsed_ms if rate else float(int(elapsed_ms))  # the monotonic time at that moment
        wall_ms = machine.wall_ms() if start_ms is None else start_ms
        self._ahead_ms = wall_ms - machine.wall_ms()  # in the mode SYSTEM, where the machine's wall time may be set
        self._offset_ms = wall_ms - int(self._elapsed_ms)  # in the others

    def exact_ms(self) -> float:
        if not self.rate:
            return self._elapsed_ms
        return self._elapsed_ms + (self._machine.exact_uptime_ms() - self._since_ms) * self.rate

    def monotonic_ms(self) -> int:
        return int(self.exact_ms())

    def now_ms(self) -> int:
        if self.mode is Mode.SYSTEM:
            return self._machine.wall_ms() + self._ahead_ms
        return int(self.exact_ms()) + self._offset_ms

    @property
    def offset_ms(self) -> int:
        """How far the broker's wall time is ahead of the machine's."""
        return self.now_ms() - self._machine.wall_ms()

    def change(self, mode: Mode, rate: float) -> None:
        """Lets time pass in another way from now on. The fraction of a millisecond that has passed is dropped when time
        begins to stand still.
        """
        exact_ms, wall_ms = self.exact_ms(), self.now_ms()
        self._elapsed_ms = float(int(exact_ms)) if mode is Mode.FROZEN and self.rate else exact_ms
        self._since_ms = self._machine.exact_uptime_ms()
        self._ahead_ms, self._offset_ms = wall_ms - self._machine.wall_ms(), wall_ms - int(exact_ms)
        self.mode, self.rate = mode, rate

    def jump(self, to_ms: float) -> None:
        """Moves the time, which must stand still, to a later monotonic time; wall time moves with it."""
        self._elapsed_ms = to_ms
