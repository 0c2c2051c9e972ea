"""The loggers of the process, by Kafka's names, and their levels (KIP-412).

A module whose work is that of a class of Kafka logs under the name of that class; the lab's modules have names of their
own (`lab.http`). In Python a name stands below `ottla`, which is Kafka's `root`. As in Kafka, a logger exists once the
module that has it is loaded, a logger without a level has that of the nearest one above it, levels belong to the
process, and a restart forgets them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

ROOT = "root"
TRACE = 5
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's levels, by name, in ascending order."""
_TOP = "ottla"
_BELOW = f"{_TOP}."
requests = logging.getLogger(f"{_BELOW}kafka.request.logger")
rights = logging.getLogger(f"{_BELOW}kafka.authorizer.logger")
requests.setLevel(logging.WARNING)  # as in the log4j2.yaml that comes with Kafka: its lines are asked for by name


class Loggers:
    """The loggers, as a broker shows and changes them."""

    def __init__(self) -> None:
        self._watching: list[Callable[[], None]] = []

    def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` after each change of a level."""
        self._watching.append(changed)

    def names(self) -> list[str]:
        """Returns the names of all loggers, the root first."""
        known = logging.root.manager.loggerDict.items()
        found = (name for name, one in known if name.startswith(_BELOW) and isinstance(one, logging.Logger))
        return [ROOT, *sorted(name.removeprefix(_BELOW) for name in found)]

    def level(self, name: str) -> str:
        """Returns the level in force of a logger that exists."""
        number = _logger(name).getEffectiveLevel()
        return next(level for level, least in reversed(LEVELS.items()) if number >= least or level == "TRACE")

    def set_level(self, name: str, level: str | None) -> None:
        """Sets the level of a logger that exists; None: the level of the logger above it."""
        _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])
        for changed in self._watching:
            changed()


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_TOP if name == ROOT else _BELOW + name)
