"""Source text of one flat function per schema and version, written by the wire types and compiled once.

An `Emitter` collects lines and the names that those lines use. The resulting functions are fast because they fail early
instead of checking: a struct, index or length error leaves them at once, and the caller runs the checked path to
describe the error.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from typing import Any, Final

from .buffers import Data
from .errors import TooManyElements
from .varints import FastPathFailed, uvarint_at, uvarint_to

PAUSE_ELEMENTS: Final = 1000  # that are read in about a millisecond
BYTESLIKE: Final = frozenset((bytes, bytearray, memoryview))


def write_tags(out: bytearray, tags: list[tuple[int, Data]]) -> None:
    """Appends the section of tagged fields, in ascending order of their tags."""
    tags.sort(key=lambda tag: tag[0])
    uvarint_to(out, len(tags))
    last = -1
    for tag, data in tags:
        if tag == last:
            raise ValueError("the same tag twice")
        last = tag
        uvarint_to(out, tag)
        uvarint_to(out, len(data))
        out += data


def uuid16(value: bytes) -> bytes:
    """Returns the value if it has 16 bytes, because `struct` would pad or cut another one. Raises ValueError."""
    if len(value) != 16:
        raise ValueError("not a uuid of 16 bytes")
    return value


GLOBALS: Final[dict[str, object]] = {
    "FastPathFailed": FastPathFailed,
    "TooManyElements": TooManyElements,
    "uvarint_at": uvarint_at,
    "uvarint_to": uvarint_to,
    "new": object.__new__,
}
"""What every function may call."""


class Emitter:
    """Lines of one function, fresh names for its locals, and the globals it needs. `counting`: whether it counts a
    message's elements. `pausing`: whether it is a generator that yields after each `PAUSE_ELEMENTS` of them.
    """

    def __init__(self, counting: bool = False, pausing: bool = False) -> None:
        self.counting = counting
        self.pausing = pausing
        self.lines: list[str] = []
        self.names: dict[str, object] = {**GLOBALS}
        self.path: list[str] = []  # of the field that is being emitted
        self._count = 0

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def count_elements(self, depth: int, count: str) -> None:
        """Emits taking the local `count` from the elements that the message may still have, where they are counted."""
        if not self.counting:
            return
        self.line(depth, f"room -= {count}")
        self.line(depth, f"if room < 0: raise TooManyElements({'.'.join(self.path)!r})")

    def pause(self, depth: int) -> None:
        """Emits what follows each element: a pause after many of them."""
        if self.pausing:
            self.line(depth, "left -= 1")
            self.line(depth, f"if not left: left = {PAUSE_ELEMENTS}; yield")

    def bind(self, prefix: str, value: object) -> str:
        """Returns a global name for `value`, the same for the same object."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def unpacker(self, formats: str) -> tuple[str, int]:
        """Returns the name of a bound `unpack_from` for big-endian `formats`, and how many bytes it reads."""
        name = "unpack_" + formats.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + formats).unpack_from
        return name, struct.calcsize(">" + formats)

    def packer(self, formats: str) -> str:
        name = "pack_" + formats.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + formats).pack
        return name


def compile_function(title: str, name: str, source: str, names: dict[str, object]) -> Callable[..., Any]:
    """Compiles the function `name` of `source`; registers its text for tracebacks."""
    filename = f"<codec {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)  # the source is our own, made from the schemas
    function = names[name]
    assert callable(function)
    return function
