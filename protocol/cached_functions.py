"""The codec's emitted functions, from the cache (`schema_cache`), or made of the schemas.

The cache has the code of a function, and what its global names stand for: `class_5` is a class of a message,
`unpack_hi` a method of a struct, and the others are names of `COMMON`. A function with any other global is not cached.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Final, SupportsIndex, TypeVar, cast, overload

from . import emit, messages, schema_cache
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

    ClassNames = tuple[str, str, bool]  # schema, struct, and whether it is the class of parsed messages (`late_class`)
    Globals = tuple[tuple[str, ClassNames | None], ...]  # by name; None for what is no class


def cached_function(schema: str, name: str, make: Callable[[], F]) -> F:
    """Returns the function of a schema that is in the cache as `name`; if there is none, makes it, and adds it."""
    found = schema_cache.load(schema, name)
    if found is not None:
        code, names = cast("tuple[CodeType, Globals]", found)
        linecache.cache[code.co_filename] = (0, None, _Source(code.co_filename, make), code.co_filename)
        return cast("F", FunctionType(code, {each: _value(each, of_class) for each, of_class in names}))
    made = make()
    assert isinstance(made, FunctionType)
    described = _described(made)
    if described is not None:
        schema_cache.save(schema, name, (made.__code__, described))
    return made


def _value(name: str, of_class: ClassNames | None) -> object:
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


def _described(made: FunctionType) -> Globals | None:
    """Returns the globals of a function as `_value` takes them; None if it cannot make one of them."""
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


def _names_of(cls: type[Struct]) -> ClassNames | None:
    is_late = Late in cls.__bases__
    found = messages.names_of(cls.__bases__[1] if is_late else cls)
    return None if found is None else (*found, is_late)


class _Source(list[str]):
    """The lines of a cached function, for tracebacks: the function is made again when they are read."""

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
