"""Logs of JSON lines that wait to be written.

A thread writes: one write at a time, with all lines since the last write. If the disk is slower than the broker, lines
beyond `PENDING_BYTES_MAX` are dropped and counted, so that a log never slows down the broker.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..protocol.text import Json
from .log_file import LogFile
from .machine import MachineTime

logger = logging.getLogger("ottla.log.files")
PENDING_BYTES_MAX = 32 << 20
Values = Callable[[str], Any]
"""Returns the value of a configuration key."""


class LineLog:
    """The queue of a log's lines. `name`: what warnings call the log."""

    def __init__(self, name: str, file: LogFile, machine: MachineTime) -> None:
        self.name = name
        self.file = file
        self.machine = machine
        self.dropped = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._writing = False
        self._failed = False

    def has_room(self) -> bool:
        """Whether a line may be added; one that has no room counts as dropped."""
        if self._pending_bytes <= PENDING_BYTES_MAX:
            return True
        if not self.dropped:
            logger.warning("the %s %s is written too slowly; lines are dropped", self.name, self.file.path)
        self.dropped += 1
        return False

    def add(self, line: Mapping[str, Json]) -> None:
        encoded = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self._pending.append(encoded)
        self._pending_bytes += len(encoded)
        if not self._writing:
            self._writing = True
            self.machine.at_end_of_turn(self._write)

    def _take(self) -> list[bytes]:
        lines, self._pending, self._pending_bytes = self._pending, [], 0
        return lines

    def _write(self) -> None:
        lines = self._take()
        if not lines:
            self._writing = False
            return

        def written(_: object, error: BaseException | None) -> None:
            if error is not None:
                self._note_failure(error, len(lines))
            self._writing = bool(self._pending)
            if self._pending:
                self._write()

        self.machine.run_in_thread(lambda: self.file.write(lines), written)

    def _note_failure(self, error: BaseException, count: int) -> None:
        if not self._failed:
            logger.warning("the %s %s cannot be written: %s; its lines are lost", self.name, self.file.path, error)
        self._failed = True
        self.dropped += count

    def close(self) -> None:
        """Writes the remaining lines, and closes the file. Call it when no thread writes any more."""
        lines = self._take()
        try:
            self.file.write(lines)
        except OSError as error:
            self._note_failure(error, len(lines))
        self.file.close()


def opened(name: str, prefix: str, config: Values, machine: MachineTime) -> LineLog:
    """Opens the log whose file, size and backups the keys with a prefix name. Raises OSError if the file cannot be
    opened.
    """
    return LineLog(name, LogFile(config(prefix), config(f"{prefix}.max.bytes"), config(f"{prefix}.backups")), machine)
