"""What takes the clients of a broker through an examination that faults alone do not bring about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .testing import Broker

POLL_S: Final = 0.1


class Guide(ABC):
    """Works in a thread of its own, while a verdict goes on. `steps`: what it brings about; `done`: what of that it
    has brought about.
    """

    steps: tuple[str, ...]

    def __init__(self, broker: Broker) -> None:
        self._lab = broker.lab
        self.done: list[str] = []
        self._ended = Event()
        self._threads = ThreadPoolExecutor(1)

    def begin(self) -> None:
        self._work = self._threads.submit(self._run)

    def end(self) -> None:
        """Goes no further. Raises LabRefused or LabUnreachable if the broker did not do what it had to."""
        self._ended.set()
        self._threads.shutdown()
        self._work.result()

    @abstractmethod
    def _run(self) -> None: ...

    def _until(self, condition: Callable[[], bool]) -> bool:
        """Waits until a condition holds; returns False if the examination ends before."""
        while not condition():
            if self._ended.wait(POLL_S):
                return False
        return True
