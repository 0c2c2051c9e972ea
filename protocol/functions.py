"""The codec's emitted functions, as an earlier process kept them (`kept`), or made from the schemas.

A function is kept as its code, and what its global names stand for: `class_5` is a class of a message, `unpack_hi` a
method of a struct, and the rest are names of `COMMON`. A function with another global is made again each time.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Final, SupportsIndex, TypeVar, cast, overload

from . import emit, kept, messages
from .encoded import Encoded
from .structs import Late, Struct, late_class

COMMON: Final[dict[str, object]] = {
    **emit.GLOBALS,
    "Encoded": Encoded,
    "byteslike": emit.BYTESLIKE,
    "iter_unpack": struct.iter_unpack,
    "pack": struct.pack,
    "unpack_from": struct.unpack_from,
    "uuid16": emit.uuid16,
    "write_tags": emit.write_tags,
}
"""What emitted functions of all messages call."""
_PACK, _UNPACK = "pack_", "unpack_"

F = TypeVar("F", bound=Callable[..., object])

if TYPE_CHECKING:
    from types import CodeType

    Names = tuple[tuple[str, tuple[str, str, bool] | None], ...]  # for a class its names, and whether it is late


def function(schema: str, what: str, make: Callable[[], F]) -> F:
    """Returns the function that was kept of a schema under the name `what`, or else makes it, and keeps it."""
    found = kept.load(schema, what)
    if found is not None:
        code, names = cast("tuple[CodeType, Names]", found)
        linecache.cache[code.co_filename] = (0, None, _Source(code.co_filename, make), code.co_filename)
        return cast("F", FunctionType(code, {name: _value(name, of_class) for name, of_class in names}))
    made = make()
    assert isinstance(made, FunctionType)
    described = _described(made)
    if described is not None:
        kept.save(schema, what, (made.__code__, described))
    return made


def _value(name: str, of_class: tuple[str, str, bool] | None) -> object:
    """Returns what a global name stands for."""
    if of_class is not None:
        schema, struct_name, is_late = of_class
        cls: type = messages.named_class(schema, struct_name)
        return late_class(cls) if is_late else cls
    if name in COMMON:
        return COMMON[name]
    kind, _, formats = name.partition("_")
    made = struct.Struct(">" + formats.replace("o", "?"))
    return made.pack if kind == "pack" else made.unpack_from


def _described(made: FunctionType) -> Names | None:
    """Returns how the globals of a function are made again; None if one of them cannot."""
    names = []
    for name, value in made.__globals__.items():
        if name == "__builtins__" or value is made:
            continue
        of_class = None
        if isinstance(value, type) and issubclass(value, Struct):
            of_class = _names_of(value)
            if of_class is None:
                return None
        elif COMMON.get(name) is not value and not name.startswith((_PACK, _UNPACK)):
            return None
        names.append((name, of_class))
    return tuple(names)


def _names_of(cls: type[Struct]) -> tuple[str, str, bool] | None:
    is_late = Late in cls.__bases__
    found = messages.names_of(cls.__bases__[1] if is_late else cls)
    return None if found is None else (*found, is_late)


class _Source(list[str]):
    """The lines of a kept function, for tracebacks: the function is made again when someone reads them."""

    def __init__(self, filename: str, make: Callable[[], object]) -> None:
        super().__init__()
        self._filename = filename
        self._make = make

    def __len__(self) -> int:
        return len(self._lines())

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines())

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> str | list[str]:
        return self._lines()[at]

    def _lines(self) -> list[str]:
        self._make()  # puts its lines in the place of these
        return linecache.getlines(self._filename)
