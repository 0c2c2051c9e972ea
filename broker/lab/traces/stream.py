"""The stream of blocks to a program that works beside the broker (`feeding.py`)."""

from __future__ import annotations

import logging
import struct
from collections import deque
from typing import Final

from ...later import Later
from ...machine import MachineTime
from ...program import Program

logger = logging.getLogger("ottla.lab.traces")
SIZE: Final = struct.Struct(">I")  # before each block
PENDING_BYTES_MAX: Final = 32 << 20  # that the program has not taken
RETRY_MS: Final = 2  # after the program took less than there is
ENDED_MS: Final = 5  # between two looks whether the program has ended


class Stream:
    """What a program is given. `what`: the work of the program, for the log."""

    def __init__(self, program: Program, machine: MachineTime, what: str) -> None:
        self.program = program
        self.ended: Later[None] = Later()
        """Completes when the program has done with everything, after `end`."""
        self._machine, self._what = machine, what
        self._pending: deque[memoryview] = deque()
        self._pending_bytes = 0
        self._is_waiting = self._is_ending = False
        self._is_broken = self._is_slow = False

    def has_room(self) -> bool:
        """Whether a block may be added."""
        if self._pending_bytes <= PENDING_BYTES_MAX and not self._is_broken:
            return True
        if not self._is_slow and not self._is_broken:
            self._is_slow = True
            logger.warning("%s is too slow; events are dropped", self._what)
        return False

    def put(self, block: bytes) -> None:
        """Adds a block, if there is room."""
        self._pending += (memoryview(SIZE.pack(len(block))), memoryview(block))
        self._pending_bytes += SIZE.size + len(block)
        if not self._is_waiting:
            self._give()

    def _give(self) -> None:
        """Gives the program as much as it takes."""
        self._is_waiting = False
        pending = self._pending
        try:
            while pending:
                taken = self.program.take(pending[0])
                self._pending_bytes -= taken
                if taken < len(pending[0]):
                    pending[0] = pending[0][taken:]
                    self._is_waiting = True
                    self._machine.after(RETRY_MS, self._give)
                    return
                pending.popleft()
        except OSError as error:
            self._break(str(error))
        if self._is_ending:
            self._end()

    def _break(self, why: str) -> None:
        self._is_broken = True
        self._pending.clear()
        logger.warning("%s has ended: %s", self._what, why)

    def end(self) -> None:
        """No more blocks come: the program has everything when `ended` is complete."""
        self._is_ending = True
        if not self._is_waiting:
            self._end()

    def _end(self) -> None:
        self.program.end()
        self._look()

    def _look(self) -> None:
        if self.program.has_ended():
            self.ended.finish(None)
        else:
            self._machine.after(ENDED_MS, self._look)

    def close(self, seconds: float) -> None:
        """Waits until the program has done with everything, at most so long. Call it when the loop does not serve any
        more.
        """
        if self.ended.done:
            return
        try:
            if not self.program.finish(list(self._pending), seconds):
                logger.warning("%s still works", self._what)
        except OSError as error:
            self._break(str(error))
        self._pending.clear()
        self.ended.finish(None)
