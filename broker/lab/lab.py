"""What the routes of the lab work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, cast, runtime_checkable

from ..broker import Broker
from .served import Served

P = TypeVar("P")


@runtime_checkable
class Resettable(Protocol):
    """A part that changes something in the broker."""

    def reset(self) -> None:
        """Ends every change, so that the broker serves as if the part had not been used."""


class Lab:
    """A server with its broker, and the parts of the lab (faults, clock, ...), each made when it is first used."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self._parts: dict[object, object] = {}

    @property
    def broker(self) -> Broker:
        return self.server.broker

    def part(self, make: Callable[[Lab], P]) -> P:
        """Returns the part of a class; `make` is the class, which takes the lab."""
        found = self._parts.get(make)
        if found is None:
            found = self._parts[make] = make(self)
        return cast(P, found)

    def reset(self) -> None:
        """Ends what the parts have changed."""
        for part in self._parts.values():
            if isinstance(part, Resettable):
                part.reset()
