"""Where a message has its records, by one flat function per schema and version, compiled on first use: it passes over
everything else without decoding it.

Like the readers of the codec, a function gives up (`UNREADABLE`) at whatever is unusual, damaged bytes as well as
tagged fields.
"""

from __future__ import annotations

from collections.abc import Callable

from .buffers import Data
from .emit import Emitter, compile_function
from .message import Message
from .trees import tree
from .wire import Array, Bytes, Fixed, Records, String, Wire

RecordPlaces = Callable[[Data, int], list[tuple[int, int]]]
"""Takes bytes, and where the message begins in them; returns for all records that are not null their position and their
size.
"""


def record_places(name: str, version: int) -> RecordPlaces:
    """Returns the function for the messages of a version, which raises UNREADABLE. `name`: of a schema with records.
    Raises UnsupportedVersion.
    """
    source = _Source()
    source.message(tree(name, version), 1)
    source.skip(1)
    first = ["    limit = len(buf)", "    found = []"]
    last = ["    if pos > limit: raise FastPathFailed", "    return found"]
    lines = ["def places(buf, pos):", *first, *source.lines, *last]
    return compile_function(f"places of records in {name} v{version}", "places", "\n".join(lines), source.names)


class _Source(Emitter):
    """The text of the function. `passed`: bytes after `pos` that are passed over with the next line."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0

    def skip(self, depth: int) -> None:
        """Emits passing over the bytes before the next value."""
        if self.passed:
            self.line(depth, f"pos += {self.passed}")
        self.passed = 0

    def message(self, message: Message, depth: int) -> None:
        for member in message.plain:
            assert member.wire is not None
            self._value(member.wire, depth)
        if message.flexible:
            self.line(depth, f"if buf[pos + {self.passed}]: raise FastPathFailed")  # tagged fields
            self.passed += 1

    def _value(self, wire: Wire, depth: int) -> None:
        if isinstance(wire, Fixed):
            self.passed += wire.smallest
        elif isinstance(wire, Message):
            self.message(wire, depth)
        else:
            assert isinstance(wire, String | Bytes | Array), wire
            self._sized(wire, depth)

    def _sized(self, wire: String | Bytes | Array, depth: int) -> None:
        size = self.fresh("n")
        if wire.flexible:
            self.line(depth, f"{size} = buf[pos + {self.passed}]; pos += {self.passed + 1}")
            wire.emit_length(self, depth, size)
            self.line(depth, f"{size} -= 1")
        else:
            unpack, length = self.unpacker(wire.head)
            self.line(depth, f"{size}, = {unpack}(buf, pos + {self.passed}); pos += {self.passed + length}")
        self.passed = 0
        self.line(depth, f"if {size} > 0:")
        if isinstance(wire, Records):
            self.line(depth + 1, f"found.append((pos, {size}))")
        if not isinstance(wire, Array):
            self.line(depth + 1, f"pos += {size}")
        elif isinstance(wire.item, Fixed):
            self.line(depth + 1, f"pos += {size} * {wire.item.smallest}")
        else:
            self.line(depth + 1, f"if {size} * {wire.item.smallest} > limit - pos: raise FastPathFailed")
            self.line(depth + 1, f"for _ in range({size}):")
            self._value(wire.item, depth + 2)
            self.skip(depth + 2)
