"""Structs on the wire: fields in order, followed in flexible versions by the section of tagged fields.

`Message` is for a schema and version what the types of `wire` are for a field. It has a checked form that names the
faulty field, and an emitted form: one flat function per message (`reader`, `writer`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator
from typing import Any

from construct import CodeGen, Container

from .buffers import Data, Parts
from .emit import PAUSE_ELEMENTS, Emitter, compile_function, write_tags
from .errors import MalformedMessage
from .streams import count_elements, left, read_uvarint, take, write_uvarint
from .structs import Struct, late_class
from .wire import Array, Fixed, Wire, emit_pack, emit_packed, emit_run, emit_value_read, emit_value_write

NO_STRUCT = b"\0"

Reader = Callable[..., tuple[Any, int]]
PausingReader = Callable[[Data, int, int], Generator[None, None, Struct]]
Writer = Callable[[object, bytearray, Parts], bytearray]


class Nullable(Wire):
    """A struct that may be null: a byte precedes it, 1 if it is present, else -1, or 0 in a tagged field."""

    head = "b"

    def __init__(self, item: Message, tagged: bool) -> None:
        super().__init__()
        self.item = item
        self.null = NO_STRUCT if tagged else b"\xff"

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        mark = take(stream, 1, path)
        absent = mark == NO_STRUCT if self.null == NO_STRUCT else mark[0] > 127
        return None if absent else self.item._parse(stream, context, path)

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        stream.write(self.null if obj is None else b"\x01")
        if obj is not None:
            self.item._build(obj, stream, context, path)
        return obj

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        e.line(depth, f"if {head} {'== 0' if self.null == NO_STRUCT else '< 0'}: {target} = None")
        e.line(depth, "else:")
        self.item.emit_read(e, depth + 1, target, "")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        e.line(depth, f"if {value} is None: out.append({self.null[0]})")
        e.line(depth, "else:")
        e.line(depth + 1, "out.append(1)")
        self.item.emit_write(e, depth + 1, value)


class Member:
    """A field of a message in one version: its name, type and default, and whether its value may be dropped if the
    version lacks it.
    """

    __slots__ = ("default", "ignorable", "name", "tag", "wire")

    def __init__(
        self, name: str, wire: Wire | None, default: object, tag: int | None = None, ignorable: bool = False
    ) -> None:
        self.name = name
        self.wire = wire  # None: the version does not have the field
        self.default = default  # a value, or a function that makes one
        self.tag = tag
        self.ignorable = ignorable

    def fresh_default(self) -> object:
        return self.default() if callable(self.default) else self.default

    def is_default(self, value: object) -> bool:
        return bool(value == self.fresh_default())


class Message(Wire):
    """A struct in one version: fields in order, followed in a flexible version by the section of tagged fields."""

    def __init__(self, title: str, cls: type, members: list[Member], flexible: bool) -> None:
        super().__init__()
        self.title = title
        self.cls = cls
        self.flexible = flexible
        self.plain = [m for m in members if m.wire is not None and m.tag is None]
        self.tagged = sorted((m for m in members if m.wire is not None and m.tag is not None), key=lambda m: m.tag or 0)
        self.absent = [m for m in members if m.wire is None]
        self.smallest = sum(m.wire.smallest for m in self.plain if m.wire) + (1 if flexible else 0)

    def at(self, array: str) -> Message:
        """Returns the structs in an array, such as `topics.partitions`."""
        item = self
        for field in array.split("."):
            (wire,) = (member.wire for member in item.plain if member.name == field)
            assert isinstance(wire, Array)
            assert isinstance(wire.item, Message)
            item = wire.item
        return item

    # the checked form

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        obj: Any = object.__new__(self.cls)
        for member in (*self.tagged, *self.absent):
            setattr(obj, member.name, member.fresh_default())
        for member in self.plain:
            setattr(obj, member.name, self._wire(member)._parse(stream, context, _join(path, member.name)))
        obj.unknown_tags = self._parse_tags(obj, stream, context, path) if self.flexible else None
        return obj

    @staticmethod
    def _wire(member: Member) -> Wire:
        assert member.wire is not None
        return member.wire

    def _parse_tags(
        self, obj: object, stream: io.BytesIO, context: Container, path: str
    ) -> list[tuple[int, bytes]] | None:
        known = {m.tag: m for m in self.tagged}
        unknown: list[tuple[int, bytes]] = []
        count = read_uvarint(stream, path)
        if count * 2 > left(stream):
            raise MalformedMessage(path, f"{count} tagged fields in {left(stream)} bytes")
        count_elements(context, count, path)
        for _ in range(count):
            tag, size = read_uvarint(stream, path), read_uvarint(stream, path)
            data = take(stream, size, path)
            member = known.get(tag)
            if member is None:
                unknown.append((tag, data))
                continue
            inner = io.BytesIO(data)
            name = _join(path, member.name)
            setattr(obj, member.name, self._wire(member)._parse(inner, context, name))
            if left(inner):
                raise MalformedMessage(name, f"tagged field with {left(inner)} bytes too many")
        return unknown or None

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        if not isinstance(obj, self.cls):
            raise MalformedMessage(path, f"not a {self.title}: {type(obj).__name__}")
        for member in self.absent:
            if not member.ignorable and not member.is_default(getattr(obj, member.name)):
                raise MalformedMessage(
                    _join(path, member.name), "this version has no such field, and its value is not the default"
                )
        for member in self.plain:
            self._wire(member)._build(getattr(obj, member.name), stream, context, _join(path, member.name))
        if self.flexible:
            self._build_tags(obj, stream, context, path)
        elif getattr(obj, "unknown_tags", None):
            raise MalformedMessage(path, "tagged fields in a version that has none")
        return obj

    def _build_tags(self, obj: Any, stream: io.BytesIO, context: Container, path: str) -> None:
        tags: list[tuple[int, bytes]] = list(obj.unknown_tags or ())
        for member in self.tagged:
            value = getattr(obj, member.name)
            if member.is_default(value):
                continue
            inner = io.BytesIO()
            self._wire(member)._build(value, inner, context, _join(path, member.name))
            assert member.tag is not None
            tags.append((member.tag, inner.getvalue()))
        tags.sort(key=lambda tag: tag[0])
        if len({tag for tag, _ in tags}) < len(tags):
            raise MalformedMessage(path, "the same tag twice")
        write_uvarint(stream, len(tags))
        for tag, data in tags:
            write_uvarint(stream, tag)
            write_uvarint(stream, len(data))
            stream.write(data)

    # the emitted form

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        obj = e.fresh("s")
        missing = (*self.tagged, *self.absent)
        late = any(map(_is_struct, missing))
        e.line(depth, f"{obj} = new({e.bind('class', late_class(self.cls) if late else self.cls)})")
        for member in missing:
            if not _is_struct(member):  # a struct is made on first access
                e.line(depth, f"{obj}.{member.name} = {_literal(e, member.default)}")
        run: list[tuple[str, str]] = []  # format and target of the fixed fields read together
        for member in self.plain:
            wire = self._wire(member)
            place = f"{obj}.{member.name}"
            if isinstance(wire, Fixed):
                run.append((wire.fmt, place))
                continue
            first = e.fresh("n") if wire.head else ""
            if wire.head:
                run.append((wire.head, first))
            emit_run(e, depth, run)
            e.path.append(member.name)
            wire.emit_read(e, depth, place, first)
            e.path.pop()
        if self.flexible:
            first = e.fresh("n")
            run.append(("B", first))
            emit_run(e, depth, run)
            self._emit_read_tags(e, depth, obj, first)
        else:
            emit_run(e, depth, run)
            e.line(depth, f"{obj}.unknown_tags = None")
        e.line(depth, f"{target} = {obj}")

    def _emit_read_tags(self, e: Emitter, depth: int, obj: str, count: str) -> None:
        e.line(depth, f"if not {count}: {obj}.unknown_tags = None")
        e.line(depth, "else:")
        d = depth + 1
        tag, size, stop, unknown, outer = (e.fresh(p) for p in ("t", "z", "q", "u", "m"))
        e.line(d, f"if {count} > 127: {count}, pos = uvarint_at(buf, pos - 1)")
        e.line(d, f"if {count} * 2 > limit - pos: raise FastPathFailed")
        e.count_elements(d, count)
        e.line(d, f"{unknown} = None")
        e.line(d, f"for _ in range({count}):")
        e.line(d + 1, f"{tag}, pos = uvarint_at(buf, pos); {size}, pos = uvarint_at(buf, pos); {stop} = pos + {size}")
        e.line(d + 1, f"if {stop} > limit: raise FastPathFailed")
        word = "if"
        for member in self.tagged:
            e.line(d + 1, f"{word} {tag} == {member.tag}:")
            e.line(d + 2, f"{outer} = limit; limit = {stop}")
            e.path.append(member.name)
            emit_value_read(self._wire(member), e, d + 2, f"{obj}.{member.name}")
            e.path.pop()
            e.line(d + 2, f"limit = {outer}")
            e.line(d + 2, f"if pos != {stop}: raise FastPathFailed")
            word = "elif"
        if self.tagged:
            e.line(d + 1, "else:")
        inner = d + 2 if self.tagged else d + 1
        e.line(inner, f"if {unknown} is None: {unknown} = []")
        e.line(inner, f"{unknown}.append(({tag}, bytes(buf[pos:{stop}]))); pos = {stop}")
        e.line(d, f"{obj}.unknown_tags = {unknown}")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        for member in self.absent:
            if not member.ignorable:
                e.line(depth, f"if {self._differs(e, member, value)}: raise FastPathFailed")
        run: list[tuple[str, str]] = []
        for member in self.plain:
            wire = self._wire(member)
            if isinstance(wire, Fixed):
                place = f"{value}.{member.name}"
                run.append((wire.fmt, f"uuid16({place})" if wire.fmt == "16s" else place))
                continue
            emit_pack(e, depth, run)
            local = e.fresh("x")
            e.line(depth, f"{local} = {value}.{member.name}")
            wire.emit_write(e, depth, local)
        if run and self.flexible and not self.tagged:  # the usual end of a message, in one operation
            e.line(depth, f"if {value}.unknown_tags is None: out += {emit_packed(e, [*run, ('B', '0')])}")
            e.line(depth, "else:")
            depth += 1
        emit_pack(e, depth, run)
        if self.flexible:
            self._emit_write_tags(e, depth, value)
        else:
            e.line(depth, f"if {value}.unknown_tags: raise FastPathFailed")

    @staticmethod
    def _differs(e: Emitter, member: Member, value: str) -> str:
        place = f"{value}.{member.name}"
        if member.default is None:
            return f"{place} is not None"
        if member.default is list:
            return f"{place} is None or len({place})"
        if isinstance(member.default, type):
            return f"({place} is None or {_struct_differs(member.default, place)})"
        return f"{place} != {_literal(e, member.default)}"

    def _emit_write_tags(self, e: Emitter, depth: int, value: str) -> None:
        if not self.tagged:
            e.line(depth, f"if {value}.unknown_tags is None: out.append(0)")
            e.line(depth, f"else: write_tags(out, list({value}.unknown_tags))")
            e.names["write_tags"] = write_tags
            return
        differs = " or ".join(self._differs(e, member, value) for member in self.tagged)
        e.line(depth, f"if {value}.unknown_tags is None and not ({differs}): out.append(0)")
        e.line(depth, "else:")
        tags, outer = e.fresh("t"), e.fresh("w")
        e.line(depth + 1, f"{tags} = list({value}.unknown_tags or ()); {outer} = out")
        for member in self.tagged:
            e.line(depth + 1, f"if {self._differs(e, member, value)}:")
            local = e.fresh("x")
            e.line(depth + 2, f"out = bytearray(); {local} = {value}.{member.name}")
            emit_value_write(self._wire(member), e, depth + 2, local)
            e.line(depth + 2, f"{tags}.append(({member.tag}, out))")
        e.line(depth + 1, f"out = {outer}; write_tags(out, {tags})")
        e.names["write_tags"] = write_tags

    # construct's interface: `Message.compile()` holds one flat function per direction

    def _emitparse(self, code: CodeGen) -> str:
        read = self.reader()

        def parse(stream: io.BytesIO) -> object:
            start = stream.tell()
            obj, end = read(stream.read(), 0)
            stream.seek(start + end)
            return obj

        code.linkedparsers[id(self)] = parse
        return f"linkedparsers[{id(self)}](io)"

    def _emitbuild(self, code: CodeGen) -> str:
        write = self.writer()

        def build(obj: object, stream: io.BytesIO) -> object:
            out = bytearray()
            write(obj, out, [])
            stream.write(bytes(out))
            return obj

        code.linkedbuilders[id(self)] = build
        return f"linkedbuilders[{id(self)}](obj, io)"

    def reader(self, counting: bool = False) -> Reader:
        """Returns the compiled function `read(buf, pos) -> (message, end)`. With `counting` it takes `room` too:
        how many elements the message may have.
        """
        e = Emitter(counting)
        e.line(0, "def read(buf, pos, room):" if counting else "def read(buf, pos):")
        e.line(1, "limit = len(buf)")
        self.emit_read(e, 1, "obj", "")
        e.line(1, "return obj, pos")
        title = f"read {self.title}{', counting' if counting else ''}"
        return compile_function(title, "read", "\n".join(e.lines), e.names)

    def pausing_reader(self) -> PausingReader:
        """Returns the compiled generator `read(buf, pos, room)`, which yields between steps and returns the message."""
        e = Emitter(counting=True, pausing=True)
        e.line(0, "def read(buf, pos, room):")
        e.line(1, f"limit = len(buf); left = {PAUSE_ELEMENTS}")
        e.line(1, "if room < 0: yield")  # a generator, though the message may have no arrays
        self.emit_read(e, 1, "obj", "")
        e.line(1, "return obj")
        return compile_function(f"read {self.title} in steps", "read", "\n".join(e.lines), e.names)

    def writer(self) -> Writer:
        """Returns the compiled function `write(message, out, parts)`: values that are not bytes go to `parts`,
        with their positions in `out`.
        """
        e = Emitter()
        e.line(0, "def write(obj, out, parts):")
        self.emit_write(e, 1, "obj")
        e.line(1, "return out")
        return compile_function(f"write {self.title}", "write", "\n".join(e.lines), e.names)


def _is_struct(member: Member) -> bool:
    """Whether the default of a missing field is a struct of defaults."""
    return isinstance(member.default, type) and member.default is not list


def _struct_differs(cls: type[Struct], place: str) -> str:
    """Returns an expression for whether the struct at `place` differs from its defaults; it compares field by field,
    without making a struct.
    """
    tests = []
    for name, default in cls.defaults.items():
        inner = f"{place}.{name}"
        if default is list:
            tests.append(f"{inner} is None or len({inner})")
        elif isinstance(default, type):
            tests.append(f"{inner} is None or {_struct_differs(default, inner)}")
        else:
            tests.append(f"{inner} is not None" if default is None else f"{inner} != {default!r}")
    return " or ".join(tests)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _literal(e: Emitter, default: object) -> str:
    if default is list:
        return "[]"
    if callable(default):
        return f"{e.bind('default', default)}()"
    return repr(default)
