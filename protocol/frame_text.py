"""Frames as JSON text, by one flat function per schema and version, compiled on first use: what `codec.parse` and
`json_text` make of a message, without the message.

It takes half of their time, for who only writes messages down. Like the readers of the codec, a function gives up
(`UNREADABLE`) at whatever is unusual, damaged bytes as well as tagged fields; then the caller goes the long way, which
knows what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .buffers import Data
from .emit import Emitter, compile_function
from .json_text import BATCH_HEADER_BYTES, Masks, json_names, may_have_secrets, tagged_text
from .message import Message, Nullable
from .trees import tree
from .varints import FastPathFailed
from .wire import Array, Bytes, Fixed, Records, String, Wire, emit_run

NEXT_HOLE: Final = "hole, missing = next(holes, NO_HOLE)"
FrameText = Callable[[Data, int, Sequence[tuple[int, int]]], str]
"""Takes bytes, where the message begins in them, and where records are missing in them: the position and the size."""


def frame_text(name: str, version: int, masks: Masks) -> FrameText:
    """Returns the function that writes messages of a version, which raises UNREADABLE, for all messages that may have
    secrets too. Raises UnsupportedVersion.
    """
    if may_have_secrets(name, masks):
        return _unreadable
    source = _Source(masks)
    parts = source.message(tree(name, version), 1)
    first, last = ["if holes: raise FastPathFailed"], []
    if source.has_records:
        first, last = ["holes = iter(holes)", NEXT_HOLE], ["if hole >= 0: raise FastPathFailed"]
    before, after = (["    " + one for one in lines] for lines in (["limit = len(buf)", *first], last))
    lines = ["def text(buf, pos, holes):", *before, *source.lines, *after, f"    return f'{parts}'"]
    return compile_function(f"text of {name} v{version}", "text", "\n".join(lines), source.names)


class _Source(Emitter):
    """The text of the function. Methods emit what reads a value, and return the part of an f-string for it."""

    def __init__(self, masks: Masks) -> None:
        super().__init__()
        self._masks = masks
        self.has_records = False
        self.names |= {**json_names(masks), "COMMA": ",", "NO_HOLE": (-1, 0), "batch": BATCH_HEADER_BYTES}

    def message(self, message: Message, depth: int) -> str:
        run: list[tuple[str, str]] = []  # format and local of the fixed fields that are read together
        parts = []
        for member in message.plain:
            wire, local = member.wire, self.fresh()
            assert wire is not None
            if isinstance(wire, Fixed):
                run.append((wire.fmt, local))
                parts.append(f'"{member.name}":{_fixed(wire, local)}')
                continue
            if wire.head:
                run.append((wire.head, local))
            emit_run(self, depth, run)
            parts.append(f'"{member.name}":{self._value(wire, depth, local)}')
        if message.flexible:
            tags = self.fresh("n")
            run.append(("B", tags))
            emit_run(self, depth, run)
            self.line(depth, f"if {tags}: raise FastPathFailed")
        emit_run(self, depth, run)
        return f"{{{{{','.join([*parts, *self._tagged(message)])}}}}}"

    def _tagged(self, message: Message) -> Sequence[str]:
        """The tagged fields, which are not there."""
        if not message.tagged:
            return ()
        return (f"{{{self.bind('tagged', tagged_text(message, self._masks))}}}",)

    def _value(self, wire: Wire, depth: int, head: str) -> str:
        """Of a value whose head is in a local."""
        if isinstance(wire, Message):
            return self.message(wire, depth)
        made = self.fresh("t")
        if isinstance(wire, Records):
            self._records(wire, depth, made, head)
        elif isinstance(wire, String):
            wire.emit_read(self, depth, made, head)
            return f"{{NULL if {made} is None else quoted({made})}}" if wire.nullable else f"{{quoted({made})}}"
        elif isinstance(wire, Bytes):
            wire.emit_read(self, depth, made, head)
            return f"{{data({made})}}"
        elif isinstance(wire, Nullable):
            is_null = f"{head} == 0" if wire.null == b"\0" else f"{head} < 0"
            self.line(depth, f"if {is_null}: {made} = NULL\n{'    ' * depth}else:")
            self.line(depth + 1, f"{made} = f'{self.message(wire.item, depth + 1)}'")
        else:
            assert isinstance(wire, Array), wire
            self._array(wire, depth, made, head)
        return f"{{{made}}}"

    def _array(self, wire: Array, depth: int, made: str, head: str) -> None:
        if isinstance(wire.item, Fixed):
            wire.emit_read(self, depth, made, head)
            self.line(depth, f"{made} = array({_ELEMENTS.get(wire.item.fmt, 'integer')}, {made})")
            return
        wire.emit_length(self, depth, head)
        wire.emit_present(self, depth, made, head)
        if wire.flexible:
            self.line(depth + 1, f"{head} -= 1")
        self.line(depth + 1, f"if {head} * {wire.item.smallest} > limit - pos: raise FastPathFailed")
        items, first = self.fresh("l"), self.fresh("n")
        self.line(depth + 1, f"{items} = []\n{'    ' * (depth + 1)}for _ in range({head}):")
        if isinstance(wire.item, Message):
            part = self.message(wire.item, depth + 2)
        else:
            emit_run(self, depth + 2, [(wire.item.head, first)])
            part = self._value(wire.item, depth + 2, first)
        self.line(depth + 2, f"{items}.append(f'{part}')")
        self.line(depth + 1, f"{made} = f'[{{COMMA.join({items})}}]'")
        if wire.nullable:
            self.line(depth, f"if {made} is None: {made} = NULL")

    def _records(self, wire: Records, depth: int, made: str, head: str) -> None:
        self.has_records = True
        wire.emit_length(self, depth, head)
        wire.emit_present(self, depth, made, head)
        if wire.flexible:
            self.line(depth + 1, f"{head} -= 1")
        self.line(depth + 1, "if pos == hole:")
        self.line(depth + 2, f"if missing != {head}: raise FastPathFailed")
        self.line(depth + 2, f"{made} = size_text({head}); {NEXT_HOLE}")
        self.line(depth + 1, "else:")
        self.line(depth + 2, f"if pos + {head} > limit: raise FastPathFailed")
        self.line(depth + 2, f"{made} = head_text(buf[pos:pos + min({head}, batch)], {head}); pos += {head}")
        if wire.nullable:
            self.line(depth, f"if {made} is None: {made} = NULL")


def _unreadable(buf: Data, pos: int, holes: Sequence[tuple[int, int]]) -> str:
    raise FastPathFailed


_ELEMENTS: Final = {"d": "number", "16s": "uuid"}


def _fixed(wire: Fixed, local: str) -> str:
    if wire.fmt == "?":
        return f"{{TRUE if {local} else FALSE}}"
    if wire.fmt == "d":
        return f"{{number({local})}}"
    return f"{{uuid({local})}}" if wire.fmt == "16s" else f"{{{local}}}"
