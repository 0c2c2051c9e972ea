"""The base classes of messages and their structs, and of messages that were parsed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar, TypeVar, cast

V = TypeVar("V")


class Struct:
    """Base class of all messages: equality by fields, and a representation that leaves out defaults."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # they are mutable
    defaults: ClassVar[dict[str, object]] = {}  # by field; a function makes the default
    structs_by_default: ClassVar[dict[str, Callable[[], Struct]]] = {}  # by field
    unknown_tags: list[tuple[int, bytes]] | None  # a field of every message, after its own

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) and not isinstance(self, type(other)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fresh = type(self)()
        values = ((name, getattr(self, name)) for name in self.__slots__)
        shown = ", ".join(f"{name}={value!r}" for name, value in values if value != getattr(fresh, name))
        return f"{type(self).__name__}({shown})"


def copied(value: V) -> V:
    """A copy of a message with its structs and lists; other values are shared."""
    if isinstance(value, list):
        return cast(V, [copied(one) for one in value])
    if not isinstance(value, Struct):
        return value
    made = type(value).__new__(type(value))
    for name in value.__slots__:
        setattr(made, name, copied(getattr(value, name)))
    return made


class Late(Struct):
    """A parsed message: makes a struct of defaults on first access, because most are never accessed.

    A separate class, because Python reads all attributes of a class with `__getattr__` more slowly.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Struct:
        if name not in self.structs_by_default:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        made = self.structs_by_default[name]()
        setattr(self, name, made)
        return made


@cache
def late_class(cls: type[Struct]) -> type[Struct]:
    """Returns the class of parsed messages of `cls`."""
    made: type[Struct] = type(cls.__name__, (Late, cls), {"__slots__": ()})
    made.__slots__ = cls.__slots__  # the names of the fields
    return made
