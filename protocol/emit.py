"""Source text of one flat function per schema and version, written by the wire types and compiled once.

An `Emitter` collects lines and the names those lines use. The functions that result are fast because they trust nothing but
fail early: a struct, index or length error leaves them at once, and the caller runs the checked path to say what was wrong.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable
from typing import Any


class Truncated(Exception):
    """The fast path met a length or a count that the bytes cannot hold."""


def uvarint_at(buf: Any, pos: int) -> tuple[int, int]:
    """The unsigned varint at `pos` and the position behind it; more than five bytes or 32 bits are refused."""
    n = shift = 0
    while True:
        b = buf[pos]
        pos += 1
        n |= (b & 0x7F) << shift
        if b < 0x80:
            if n > 0xFFFFFFFF:
                raise Truncated
            return n, pos
        shift += 7
        if shift > 28:
            raise Truncated


def uvarint_to(out: bytearray, n: int) -> None:
    """Appends `n` as an unsigned varint."""
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


class Emitter:
    """Lines of one function, fresh names for its locals, and the globals it needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "Truncated": Truncated,
            "uvarint_at": uvarint_at,
            "uvarint_to": uvarint_to,
            "new": object.__new__,
        }
        self._count = 0

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def bind(self, prefix: str, value: Any) -> str:
        """A global name for `value`, the same for the same object."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def unpacker(self, formats: str) -> tuple[str, int]:
        """The name of a bound `unpack_from` for big-endian `formats`, and how many bytes it takes."""
        name = "unpack_" + formats.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + formats).unpack_from
        return name, struct.calcsize(">" + formats)

    def packer(self, formats: str) -> str:
        name = "pack_" + formats.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + formats).pack
        return name


def compile_function(title: str, name: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function `name` of `source`; its text is kept where tracebacks find it."""
    filename = f"<codec {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)  # the source is ours, made from the schemas
    function: Callable[..., Any] = names[name]
    return function
