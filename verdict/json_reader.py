"""Messages from the JSON of a trace, by one flat function per schema and version, compiled on first use: the reverse of
`protocol.json_text`, whose form it reads.

The function takes what a broker writes: all fields of the version, of their types. It refuses everything else with
`Changed`, and the caller asks `from_trace.message_of`, which is slower and takes what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ..protocol.emit import compile_function
from ..protocol.message import Member, Message, Nullable
from ..protocol.structs import Struct, late_class
from ..protocol.trees import tree
from ..protocol.wire import Array, Bytes, Fixed, Records, String, Wire
from .events import BatchHead

JsonReader = Callable[[object], Struct]
_HEAD: Final = ("bytes", "attributes", "count", "producer_id", "producer_epoch", "base_sequence", "crc")
_HEAD_FIELDS: Final = len(_HEAD) + len(("base_offset", "last_offset_delta"))


class Changed(ValueError):
    """JSON that a broker does not write for this version."""


@cache
def json_reader(name: str, version: int) -> JsonReader:
    """Returns the function that makes messages of a version. It raises Changed, KeyError, TypeError or ValueError.
    Raises UnsupportedVersion.
    """
    source = _Source()
    last = source.add(tree(name, version))
    return compile_function(f"from json {name} v{version}", last, "\n".join(source.lines), source.names)


class _Source:
    """The text of the functions of a message and of its structs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {
            "new": object.__new__,
            "Changed": Changed,
            "integers": _integers,
            "texts": _texts,
            "number": _number,
            "data": bytes.fromhex,
            "records": batch_head,
            "TextOrNone": (str, type(None)),
        }

    def add(self, message: Message) -> str:
        """Adds the function for a struct; returns its name."""
        members = (*message.plain, *message.tagged)
        values = [self._value(member) for member in members]
        number = len(self.names)
        cls = f"Class{number}"
        self.names[cls] = late_class(message.cls) if any(map(_is_struct, message.absent)) else message.cls
        lines = [f"def read_{number}(d):", f"    if len(d) != {len(members)}: raise Changed", f"    o = new({cls})"]
        for member, (expression, check) in zip(members, values, strict=True):
            lines.append(f"    o.{member.name} = {'v = ' if check else ''}{expression}")
            if check:
                lines.append(f"    if {check}: raise Changed")
        for member in message.absent:
            if not _is_struct(member):  # a struct is made on first access
                default = "[]" if member.default is list else repr(member.default)
                lines.append(f"    o.{member.name} = {default}")
        self.lines += [*lines, "    o.unknown_tags = None", "    return o"]
        self.names[f"read_{number}"] = None  # so that the next number is another
        return f"read_{number}"

    def _value(self, member: Member) -> tuple[str, str]:
        """The expression for a field, and the condition on `v`, its value, in which it is refused."""
        assert member.wire is not None
        wire, place = member.wire, f'd["{member.name}"]'
        if isinstance(wire, Fixed) and wire.fmt not in ("d", "16s"):
            return place, f"type(v) is not {'bool' if wire.fmt == '?' else 'int'}"
        if isinstance(wire, String):
            return place, "not isinstance(v, TextOrNone)" if wire.nullable else "type(v) is not str"
        if isinstance(wire, Array):
            return self._array(wire, place), ""
        call = self._call(wire.item if isinstance(wire, Nullable) else wire)
        if isinstance(wire, Nullable) or (isinstance(wire, Bytes) and wire.nullable and call == "data"):
            return f"None if {place} is None else {call}({place})", ""
        return f"{call}({place})", ""

    def _array(self, wire: Array, place: str) -> str:
        if isinstance(wire.item, Fixed) and wire.item.fmt not in ("?", "d", "16s"):
            made = f"integers({place})"
        elif isinstance(wire.item, String):
            made = f"texts({place})"
        else:
            made = f"[{self._call(wire.item)}(x) for x in {place}]"
        return f"None if {place} is None else {made}" if wire.nullable else made

    def _call(self, wire: Wire) -> str:
        """The name of the function that reads a value alone."""
        if isinstance(wire, Message):
            return self.add(wire)
        if isinstance(wire, Fixed):
            return "number" if wire.fmt == "d" else "data"
        assert isinstance(wire, Bytes), wire
        return "records" if isinstance(wire, Records) else "data"


def _is_struct(member: Member) -> bool:
    return callable(member.default) and member.default is not list


def _integers(found: object) -> list[int]:
    if type(found) is not list or not all(type(one) is int for one in found):
        raise Changed
    return found


def _texts(found: object) -> list[str]:
    if type(found) is not list or not all(type(one) is str for one in found):
        raise Changed
    return found


def _number(found: object) -> float:
    """A number; those that JSON does not have are texts."""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise Changed
    return float(found)


def batch_head(found: object) -> BatchHead | None:
    """The head of a partition's records, as `json_text` writes it."""
    if found is None:
        return None
    if type(found) is not dict:
        raise Changed
    if len(found) == 1:
        size = found["bytes"]
        if type(size) is int:
            return BatchHead(size)
    elif len(found) == _HEAD_FIELDS:
        values = [found[name] for name in _HEAD]
        if all(type(one) is int for one in values):
            return BatchHead(*values)
    raise Changed
