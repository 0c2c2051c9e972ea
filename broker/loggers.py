"""The loggers of the process, by Kafka's names, and their levels (KIP-412).

A module whose work is that of a class of Kafka logs under the name of that class; the lab's modules have names of their
own (`lab.http`). In Python a name stands below `ottla`, which is Kafka's `root`. As in Kafka, a logger exists once the
module that has it is loaded, a logger without a level has that of the nearest one above it, levels belong to the
process, and a restart forgets them.

Each node has levels of its own. A line is written if the level of any node lets it pass, except for the lines of
`kafka.request.logger` and `kafka.authorizer.logger`, which are each of one node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy

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
    """The loggers, as a node shows and changes them."""

    def __init__(self) -> None:
        self._watching: list[Callable[[], None]] = []  # all nodes have these three
        self._nodes = [self]
        self._before: dict[str, int] = {}  # the levels of altered loggers, before a node altered them
        self._altered: dict[str, int] = {}

    def of_node(self) -> Loggers:
        """Returns the loggers of another node, which has altered none."""
        found = copy(self)
        found._altered = {}
        self._nodes.append(found)
        return found

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
        number = self._effective(name)
        return next(level for level, least in reversed(LEVELS.items()) if number >= least or level == "TRACE")

    def lets_pass(self, logger: logging.Logger, level: int) -> bool:
        """Whether a line of a logger is written, if it is of this node alone."""
        return level >= self._effective(logger.name.removeprefix(_BELOW))

    def set_level(self, name: str, level: str | None) -> None:
        """Sets the level of a logger that exists; None: the level of the logger above it."""
        self._before.setdefault(name, _logger(name).level)
        self._altered[name] = logging.NOTSET if level is None else LEVELS[level]
        for one in self._before:
            _logger(one).setLevel(self._least(one))
        for changed in self._watching:
            changed()

    def _least(self, name: str) -> int:
        """Returns the level that lets pass what any node does."""
        own = [one._own(name) for one in self._nodes]
        return own[0] if len(set(own)) == 1 else min(one._effective(name) for one in self._nodes)

    def _own(self, name: str) -> int:
        found = self._altered.get(name, self._before.get(name))
        return _level(name) if found is None else found

    def _effective(self, name: str) -> int:
        while name != ROOT:
            own = self._own(name)
            if own:
                return own
            name = name.rpartition(".")[0] or ROOT
        return self._own(ROOT) or logging.root.level


def _level(name: str) -> int:
    """Returns the own level of a logger, which need not exist; it is not made."""
    found = logging.root.manager.loggerDict.get(_TOP if name == ROOT else _BELOW + name)
    return found.level if isinstance(found, logging.Logger) else logging.NOTSET


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_TOP if name == ROOT else _BELOW + name)
