"""Prints what a schema means in one version: the structure that is declared, and the functions that are emitted for it.

python -m ottla.protocol.show FetchRequest 16
make show SCHEMA=FetchRequest VERSION=16
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator

from construct import Construct

from . import schema
from .errors import UnsupportedVersion
from .message import Message, Nullable
from .trees import tree
from .wire import Array, Bytes, Fixed, String

NAMES = {fmt: name for name, fmt in schema.FIXED.items()}
USAGE = "usage: python -m ottla.protocol.show SCHEMA VERSION (such as FetchRequest 16)"


def structure(message: Message) -> Iterator[str]:
    """The declared structure, a line for each field in the order of the wire."""
    yield f"{message.title}{' (flexible)' if message.flexible else ''}"
    yield from _fields(message, 1)


def _fields(message: Message, depth: int) -> Iterator[str]:
    for member in (*message.plain, *message.tagged):
        tag = "" if member.tag is None else f"  tag {member.tag}"
        yield f"{'    ' * depth}{member.name}: {describe(member.wire)}{tag}"
        inner = struct_of(member.wire)
        if inner is not None:
            yield from _fields(inner, depth + 1)


def describe(wire: Construct) -> str:
    """A type in a few words: `compact nullable array of int32`."""
    if isinstance(wire, Array):
        return f"{_qualities(wire)}array of {describe(wire.item)}"
    if isinstance(wire, Nullable):
        return f"nullable {describe(wire.item)}"
    if isinstance(wire, Message):
        return f"struct {wire.title.rpartition(' v')[0]}"
    if isinstance(wire, Fixed):
        return NAMES[wire.fmt]
    if isinstance(wire, String | Bytes):
        return f"{_qualities(wire)}{wire.noun}"
    return type(wire).__name__


def _qualities(wire: Array | String | Bytes) -> str:
    return f"{'compact ' if wire.flexible else ''}{'nullable ' if wire.nullable else ''}"


def struct_of(wire: Construct) -> Message | None:
    """The struct whose fields a type brings."""
    while isinstance(wire, Array | Nullable):
        wire = wire.item
    return wire if isinstance(wire, Message) else None


def emitted(message: Message) -> Iterator[str]:
    """The source of the functions that read and write a message."""
    for verb, compiled in (("read", message.reader()), ("write", message.writer())):
        filename = compiled.__code__.co_filename
        yield f"# {verb}: {filename}"
        yield "".join(linecache.getlines(filename)).rstrip("\n") + "\n"


def main(arguments: list[str]) -> int:
    """The command. Returns its exit code: 2 for words that it cannot read,
    and schemas and versions that do not exist.
    """
    if len(arguments) != 2 or not arguments[1].isdecimal():
        print(USAGE, file=sys.stderr)
        return 2
    name, version = arguments[0], int(arguments[1])
    try:
        message = tree(name, version)
    except KeyError:
        print(f"no schema is called {name}", file=sys.stderr)
        return 2
    except UnsupportedVersion as error:
        valid = schema.load(name).valid
        print(f"{error}, but {valid.low} to {valid.high}", file=sys.stderr)
        return 2
    print("\n".join((*structure(message), "", *emitted(message))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
