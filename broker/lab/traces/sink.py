"""Where the blocks of a trace go: to the program that writes its file."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping
from typing import Final

from ....protocol.text import Json
from ...later import Later
from ...log_file import LogFile
from ...machine import MachineTime
from .writer import SIZE

logger = logging.getLogger("ottla.lab.traces")
MODULE: Final = f"{__package__}.writer"
PENDING_BYTES_MAX: Final = 32 << 20  # that the program has not taken
RETRY_MS: Final = 2  # after the program took less than there is
ENDED_MS: Final = 5  # between two looks whether the program has ended
END_SECONDS: Final = 10.0  # for which the end of the broker waits


class Sink:
    """The stream to the program. Raises OSError if the file cannot be opened."""

    def __init__(
        self, path: str, max_bytes: int, backups: int, about: Mapping[str, Json], machine: MachineTime
    ) -> None:
        self._path = path
        self._machine = machine
        file = LogFile(path, max_bytes, backups)
        try:
            arguments = [path, str(file.descriptor), str(max_bytes), str(backups), json.dumps(about)]
            self._program = machine.start_program(MODULE, arguments, [file.descriptor])
        finally:
            file.close()
        self._pending: deque[memoryview] = deque()
        self._pending_bytes = 0
        self._is_waiting = self._is_ending = False
        self._is_broken = self._is_slow = False
        self.ended: Later[None] = Later()
        """Completes when the file has everything, after `end`."""

    def has_room(self) -> bool:
        """Whether a block may be added."""
        if self._pending_bytes <= PENDING_BYTES_MAX and not self._is_broken:
            return True
        if not self._is_slow and not self._is_broken:
            self._is_slow = True
            logger.warning("the trace %s is written too slowly; events are dropped", self._path)
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
                taken = self._program.take(pending[0])
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
        logger.warning("the trace %s is not written any more: its program has ended: %s", self._path, why)

    def end(self) -> None:
        """No more blocks come: the file is complete when `ended` is."""
        self._is_ending = True
        if not self._is_waiting:
            self._end()

    def _end(self) -> None:
        self._program.end()
        self._look()

    def _look(self) -> None:
        if self._program.has_ended():
            self.ended.finish(None)
        else:
            self._machine.after(ENDED_MS, self._look)

    def close(self) -> None:
        """Waits until the file is complete. Call it when the loop does not serve any more."""
        if self.ended.done:
            return
        try:
            if not self._program.finish(list(self._pending), END_SECONDS):
                logger.warning("the trace %s is still being written", self._path)
        except OSError as error:
            self._break(str(error))
        self._pending.clear()
        self.ended.finish(None)
