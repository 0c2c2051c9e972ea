"""What the classes of messages and of their structs share, and those of messages that were read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar


class Struct:
    """What all message classes share: equality by fields, and a representation that leaves out defaults."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # they are mutable
    structs_by_default: ClassVar[dict[str, Callable[[], Any]]] = {}  # by field

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) and not isinstance(self, type(other)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fresh = type(self)()
        values = ((name, getattr(self, name)) for name in self.__slots__)
        shown = ", ".join(f"{name}={value!r}" for name, value in values if value != getattr(fresh, name))
        return f"{type(self).__name__}({shown})"


class Late(Struct):
    """A message that was read: a struct that it did not bring is made when it is asked for, as most are not.

    Classes of their own, as Python reads all attributes of one with `__getattr__` more slowly.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in self.structs_by_default:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        made = self.structs_by_default[name]()
        setattr(self, name, made)
        return made


@cache
def late_class(cls: type[Struct]) -> type[Struct]:
    """The class of messages of `cls` that were read."""
    made: type[Struct] = type(cls.__name__, (Late, cls), {"__slots__": ()})
    made.__slots__ = cls.__slots__  # the names of the fields
    return made
