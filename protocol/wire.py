"""The wire types of Kafka's protocol, each a `construct` subclass.

Every type has two forms of one meaning. The checked form is construct's own `_parse` and `_build`: it goes field by field,
bounds every length by the bytes that are there, and names the field when something is wrong. The emitted form
(`emit_read`, `emit_write`) is source text for one flat function per message and version, fast because it leaves at the first
surprise. `protocol.codec` runs the fast form and falls back to the checked one to explain an error; a test proves them equal.

A type that begins with a fixed number of bytes (`head`) lets its parent read them together with the fixed fields before it.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Sequence
from typing import Any

from construct import Construct

from .emit import Emitter, compile_function
from .errors import MalformedMessage

NO_STRUCT = b"\0"


def _take(stream: io.BytesIO, length: int, path: str) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise MalformedMessage(path, f"needs {length} bytes where {len(data)} are left")
    return data


def _left(stream: io.BytesIO) -> int:
    return stream.getbuffer().nbytes - stream.tell()


def read_uvarint(stream: io.BytesIO, path: str) -> int:
    """An unsigned varint of at most 32 bits."""
    n = shift = 0
    while True:
        b = _take(stream, 1, path)[0]
        n |= (b & 0x7F) << shift
        if b < 0x80:
            if n > 0xFFFFFFFF:
                raise MalformedMessage(path, "varint of more than 32 bits")
            return n
        shift += 7
        if shift > 28:
            raise MalformedMessage(path, "varint of more than five bytes")


def write_uvarint(stream: io.BytesIO, n: int) -> None:
    while n > 0x7F:
        stream.write(bytes((n & 0x7F | 0x80,)))
        n >>= 7
    stream.write(bytes((n,)))


class Wire(Construct):  # type: ignore[misc]  # construct has no types
    """A wire type: the checked form, the emitted form, and the fewest bytes that one value takes."""

    head = ""  # struct format of the fixed bytes that begin the encoding and say how it goes on
    smallest = 1

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        raise NotImplementedError

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        raise NotImplementedError

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        """Emits the reading of what follows the head, whose value is in the local `head`."""
        raise NotImplementedError

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        """Emits the appending of the local `value` to `out`."""
        raise NotImplementedError


class Fixed(Wire):
    """A number, a boolean or a uuid: a struct format."""

    def __init__(self, fmt: str) -> None:
        super().__init__()
        self.fmt = fmt
        self.packed = struct.Struct(">" + fmt)
        self.smallest = self.packed.size

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        return self.packed.unpack(_take(stream, self.smallest, path))[0]

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if self.fmt == "16s" and (not isinstance(obj, bytes) or len(obj) != 16):
            raise MalformedMessage(path, f"not a uuid of 16 bytes: {obj!r}")
        try:
            stream.write(self.packed.pack(obj))
        except (struct.error, TypeError) as error:
            raise MalformedMessage(path, f"{obj!r} does not fit: {error}") from None
        return obj


class _Sized(Wire):
    """A type that begins with its length: compact (unsigned varint of length + 1, null is 0) or not (null is -1)."""

    noun = "value"

    def __init__(self, flexible: bool, nullable: bool, fmt: str) -> None:
        super().__init__()
        self.flexible = flexible
        self.nullable = nullable
        self.head = "B" if flexible else fmt
        self.smallest = struct.calcsize(">" + self.head)
        self.packed = struct.Struct(">" + fmt)

    def _read_length(self, stream: io.BytesIO, path: str) -> int:
        if self.flexible:
            n = read_uvarint(stream, path) - 1
        else:
            n = int(self.packed.unpack(_take(stream, self.packed.size, path))[0])
        if n < -1 or (n == -1 and not self.nullable):
            raise MalformedMessage(path, f"{self.noun} of length {n}")
        return n

    def _write_length(self, stream: io.BytesIO, n: int, path: str) -> None:
        if self.flexible:
            write_uvarint(stream, n + 1)
        else:
            try:
                stream.write(self.packed.pack(n))
            except struct.error:
                raise MalformedMessage(path, f"{self.noun} of length {n} is too long") from None

    def _write_null(self, stream: io.BytesIO, path: str) -> None:
        if not self.nullable:
            raise MalformedMessage(path, f"{self.noun} may not be null")
        self._write_length(stream, -1, path)

    def emit_length(self, e: Emitter, depth: int, head: str) -> None:
        """Makes the local `head` the length plus one where compact, the length where not."""
        if self.flexible:
            e.line(depth, f"if {head} > 127: {head}, pos = uvarint_at(buf, pos - 1)")

    def emit_present(self, e: Emitter, depth: int, target: str, head: str) -> None:
        """Opens the branch in which there is a value, after the one in which there is none."""
        null, bad = (f"not {head}", "False") if self.flexible else (f"{head} == -1", f"{head} < -1")
        if self.nullable:
            e.line(depth, f"if {null}: {target} = None")
            if not self.flexible:
                e.line(depth, f"elif {bad}: raise Truncated")
            e.line(depth, "else:")
        else:
            e.line(depth, f"if {null if self.flexible else head + ' < 0'}: raise Truncated")
            e.line(depth, "else:")

    def emit_size(self, e: Emitter, depth: int, size: str) -> None:
        """Emits the length `size` of a value that is there."""
        if self.flexible:
            e.line(depth, f"if {size} < 127: out.append({size} + 1)")
            e.line(depth, f"else: uvarint_to(out, {size} + 1)")
        else:
            e.line(depth, f"out += {e.packer(self.head)}({size})")

    def emit_null(self, e: Emitter, depth: int, value: str) -> int:
        """Opens the branch in which `value` is not None; returns the depth to go on with."""
        if not self.nullable:
            return depth
        e.line(depth, f"if {value} is None: out += {self.null_bytes!r}")
        e.line(depth, "else:")
        return depth + 1

    @property
    def null_bytes(self) -> bytes:
        return b"\0" if self.flexible else b"\xff" * self.packed.size


class String(_Sized):
    """Text in UTF-8; bytes that are none become the replacement character, as in Kafka."""

    noun = "string"

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "h")

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        n = self._read_length(stream, path)
        if n > 0x7FFF:
            raise MalformedMessage(path, f"string of length {n}")
        return None if n == -1 else str(_take(stream, n, path), "utf-8", "replace")

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._write_null(stream, path)
            return obj
        if not isinstance(obj, str):
            raise MalformedMessage(path, f"not a string: {obj!r}")
        data = obj.encode("utf-8", "replace")
        if len(data) > 0x7FFF:
            raise MalformedMessage(path, f"string of length {len(data)} is too long")
        self._write_length(stream, len(data), path)
        stream.write(data)
        return obj

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        extra = " - 1" if self.flexible else ""
        e.line(depth + 1, f"end = pos + {head}{extra}")
        e.line(depth + 1, f"if end > limit or {head} > {0x8000 if self.flexible else 0x7FFF}: raise Truncated")
        e.line(depth + 1, f"{target} = str(buf[pos:end], 'utf-8', 'replace'); pos = end")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        data, size = e.fresh("b"), e.fresh("n")
        e.line(depth, f"{data} = {value}.encode('utf-8', 'replace'); {size} = len({data})")
        if self.flexible:
            e.line(depth, f"if {size} > 32767: raise Truncated")
        self.emit_size(e, depth, size)
        e.line(depth, f"out += {data}")


class Bytes(_Sized):
    """Bytes, copied out of the message."""

    noun = "bytes"

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "i")

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        n = self._read_length(stream, path)
        return None if n == -1 else _take(stream, n, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._write_null(stream, path)
            return obj
        try:
            data = bytes(memoryview(obj))
        except TypeError:
            raise MalformedMessage(path, f"not bytes: {type(obj).__name__}") from None
        self._write_length(stream, len(data), path)
        stream.write(data)
        return obj

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        e.line(depth + 1, f"end = pos + {head}{' - 1' if self.flexible else ''}")
        e.line(depth + 1, "if end > limit: raise Truncated")
        e.line(depth + 1, f"{target} = {self.emit_slice()}; pos = end")

    def emit_slice(self) -> str:
        return "bytes(buf[pos:end])"

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        size = e.fresh("n")
        e.line(depth, f"{size} = len({value})")
        self.emit_size(e, depth, size)
        e.line(depth, f"out += {value}")


class Records(Bytes):
    """Record batches: a view of the message when parsed, never copied.

    To be built it may be bytes, or anything with a length that is not bytes (a slice of a file): such a part is noted in
    `parts` with its place, and whoever sends the message puts it there.
    """

    noun = "records"

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        n = self._read_length(stream, path)
        return None if n == -1 else memoryview(_take(stream, n, path))

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None or isinstance(obj, bytes | bytearray | memoryview):
            return super()._build(obj, stream, context, path)
        self._write_length(stream, len(obj), path)
        context.append((stream.tell(), obj))
        return obj

    def emit_slice(self) -> str:
        return "buf[pos:end]"

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        size = e.fresh("n")
        e.line(depth, f"{size} = len({value})")
        self.emit_size(e, depth, size)
        e.line(depth, f"if type({value}) in byteslike: out += {value}")
        e.line(depth, f"else: parts.append((len(out), {value}))")
        e.names["byteslike"] = frozenset((bytes, bytearray, memoryview))


class Array(_Sized):
    """A list of values of one type; the count is held against the bytes left before anything is allocated."""

    noun = "array"

    def __init__(self, item: Wire, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "i")
        self.item = item

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        n = self._read_length(stream, path)
        if n == -1:
            return None
        if n * self.item.smallest > _left(stream):
            raise MalformedMessage(path, f"array of {n} elements in {_left(stream)} bytes")
        return [self.item._parse(stream, context, f"{path}[{i}]") for i in range(n)]

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._write_null(stream, path)
            return obj
        if not isinstance(obj, Sequence):
            raise MalformedMessage(path, f"not a list: {type(obj).__name__}")
        self._write_length(stream, len(obj), path)
        for i, item in enumerate(obj):
            self.item._build(item, stream, context, f"{path}[{i}]")
        return obj

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        depth += 1
        count = head
        if self.flexible:
            e.line(depth, f"{head} -= 1")
        smallest = f" * {self.item.smallest}" if self.item.smallest > 1 else ""
        e.line(depth, f"if {count} and {count}{smallest} > limit - pos: raise Truncated")
        if isinstance(self.item, Fixed):
            self._emit_read_fixed(e, depth, target, count)
            return
        items, item = e.fresh("l"), e.fresh("o")
        e.line(depth, f"{items} = []")
        e.line(depth, f"for _ in range({count}):")
        emit_value_read(self.item, e, depth + 1, item)
        e.line(depth + 1, f"{items}.append({item})")
        e.line(depth, f"{target} = {items}")

    def _emit_read_fixed(self, e: Emitter, depth: int, target: str, count: str) -> None:
        fixed = self.item
        assert isinstance(fixed, Fixed)
        e.names["unpack_from"] = struct.unpack_from
        one, _ = e.unpacker(fixed.fmt)
        many = f"[v for v, in iter_unpack('>{fixed.fmt}', buf[pos:pos + {count} * {fixed.smallest}])]"
        if fixed.fmt != "16s":
            many = f"list(unpack_from('>%d{fixed.fmt}' % {count}, buf, pos))"
        e.names["iter_unpack"] = struct.iter_unpack
        e.line(depth, f"if {count} == 1: {target} = list({one}(buf, pos)); pos += {fixed.smallest}")
        e.line(depth, f"elif {count}: {target} = {many}; pos += {count} * {fixed.smallest}")
        e.line(depth, f"else: {target} = []")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        size, item = e.fresh("n"), e.fresh("o")
        e.line(depth, f"{size} = len({value})")
        self.emit_size(e, depth, size)
        if isinstance(self.item, Fixed) and self.item.fmt != "16s":
            e.names["pack"] = struct.pack
            e.line(depth, f"if {size}: out += pack('>%d{self.item.fmt}' % {size}, *{value})")
            return
        e.line(depth, f"for {item} in {value}:")
        emit_value_write(self.item, e, depth + 1, item)


class Nullable(Wire):
    """A struct that may be null: a byte before it, 1 where it is there, else -1, or 0 in a tagged field."""

    head = "b"

    def __init__(self, item: Message, tagged: bool) -> None:
        super().__init__()
        self.item = item
        self.null = NO_STRUCT if tagged else b"\xff"

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        mark = _take(stream, 1, path)
        absent = mark == NO_STRUCT if self.null == NO_STRUCT else mark[0] > 127
        return None if absent else self.item._parse(stream, context, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
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
    """A field of a message in one version: its name, its type, its default, and whether it may be lost when absent."""

    __slots__ = ("default", "ignorable", "name", "tag", "wire")

    def __init__(self, name: str, wire: Wire | None, default: Any, tag: int | None = None, ignorable: bool = False) -> None:
        self.name = name
        self.wire = wire  # None: the version does not have it
        self.default = default  # a value, or a function that makes one
        self.tag = tag
        self.ignorable = ignorable

    def fresh_default(self) -> Any:
        return self.default() if callable(self.default) else self.default

    def is_default(self, value: Any) -> bool:
        return bool(value == self.fresh_default())


class Message(Wire):
    """A struct in one version: fields in order, and in a flexible version the section of tagged fields behind them."""

    def __init__(self, title: str, cls: type, members: list[Member], flexible: bool) -> None:
        super().__init__()
        self.title = title
        self.cls = cls
        self.flexible = flexible
        self.plain = [m for m in members if m.wire is not None and m.tag is None]
        self.tagged = sorted((m for m in members if m.wire is not None and m.tag is not None), key=lambda m: m.tag or 0)
        self.absent = [m for m in members if m.wire is None]
        self.smallest = sum(m.wire.smallest for m in self.plain if m.wire) + (1 if flexible else 0)

    # the checked form

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
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

    def _parse_tags(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> list[tuple[int, bytes]] | None:
        known = {m.tag: m for m in self.tagged}
        unknown: list[tuple[int, bytes]] = []
        count = read_uvarint(stream, path)
        if count * 2 > _left(stream):
            raise MalformedMessage(path, f"{count} tagged fields in {_left(stream)} bytes")
        for _ in range(count):
            tag, size = read_uvarint(stream, path), read_uvarint(stream, path)
            data = _take(stream, size, path)
            member = known.get(tag)
            if member is None:
                unknown.append((tag, data))
                continue
            inner = io.BytesIO(data)
            name = _join(path, member.name)
            setattr(obj, member.name, self._wire(member)._parse(inner, context, name))
            if _left(inner):
                raise MalformedMessage(name, f"tagged field with {_left(inner)} bytes too many")
        return unknown or None

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if not isinstance(obj, self.cls):
            raise MalformedMessage(path, f"not a {self.title}: {type(obj).__name__}")
        for member in self.absent:
            if not member.ignorable and not member.is_default(getattr(obj, member.name)):
                raise MalformedMessage(_join(path, member.name), "this version has no such field, and its value is not the default")
        for member in self.plain:
            self._wire(member)._build(getattr(obj, member.name), stream, context, _join(path, member.name))
        if self.flexible:
            self._build_tags(obj, stream, context, path)
        elif getattr(obj, "unknown_tags", None):
            raise MalformedMessage(path, "tagged fields in a version that has none")
        return obj

    def _build_tags(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> None:
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
        e.line(depth, f"{obj} = new({e.bind('class', self.cls)})")
        for member in (*self.tagged, *self.absent):
            _emit_default(e, depth, f"{obj}.{member.name}", member.default)
        run: list[tuple[str, str]] = []  # format and target of the fixed fields read together
        for member in self.plain:
            wire = self._wire(member)
            place = f"{obj}.{member.name}"
            if isinstance(wire, Fixed):
                run.append((wire.fmt, place))
                continue
            if not wire.head:
                self._emit_run(e, depth, run)
                wire.emit_read(e, depth, place, "")
                continue
            first = e.fresh("n")
            run.append((wire.head, first))
            self._emit_run(e, depth, run)
            wire.emit_read(e, depth, place, first)
        if self.flexible:
            first = e.fresh("n")
            run.append(("B", first))
            self._emit_run(e, depth, run)
            self._emit_read_tags(e, depth, obj, first)
        else:
            self._emit_run(e, depth, run)
            e.line(depth, f"{obj}.unknown_tags = None")
        e.line(depth, f"{target} = {obj}")

    @staticmethod
    def _emit_run(e: Emitter, depth: int, run: list[tuple[str, str]]) -> None:
        if not run:
            return
        if [fmt for fmt, _ in run] == ["B"]:
            e.line(depth, f"{run[0][1]} = buf[pos]; pos += 1")
        else:
            name, size = e.unpacker("".join(fmt for fmt, _ in run))
            e.line(depth, f"{', '.join(place for _, place in run)}, = {name}(buf, pos); pos += {size}")
        run.clear()

    def _emit_read_tags(self, e: Emitter, depth: int, obj: str, count: str) -> None:
        e.line(depth, f"if not {count}: {obj}.unknown_tags = None")
        e.line(depth, "else:")
        d = depth + 1
        tag, size, stop, unknown, outer = (e.fresh(p) for p in ("t", "z", "q", "u", "m"))
        e.line(d, f"if {count} > 127: {count}, pos = uvarint_at(buf, pos - 1)")
        e.line(d, f"if {count} * 2 > limit - pos: raise Truncated")
        e.line(d, f"{unknown} = None")
        e.line(d, f"for _ in range({count}):")
        e.line(d + 1, f"{tag}, pos = uvarint_at(buf, pos); {size}, pos = uvarint_at(buf, pos); {stop} = pos + {size}")
        e.line(d + 1, f"if {stop} > limit: raise Truncated")
        word = "if"
        for member in self.tagged:
            e.line(d + 1, f"{word} {tag} == {member.tag}:")
            e.line(d + 2, f"{outer} = limit; limit = {stop}")
            emit_value_read(self._wire(member), e, d + 2, f"{obj}.{member.name}")
            e.line(d + 2, f"limit = {outer}")
            e.line(d + 2, f"if pos != {stop}: raise Truncated")
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
                e.line(depth, f"if {self._differs(e, member, value)}: raise Truncated")
        run: list[tuple[str, str]] = []
        for member in self.plain:
            wire = self._wire(member)
            if isinstance(wire, Fixed):
                place = f"{value}.{member.name}"
                run.append((wire.fmt, f"uuid16({place})" if wire.fmt == "16s" else place))
                continue
            self._emit_pack(e, depth, run)
            local = e.fresh("x")
            e.line(depth, f"{local} = {value}.{member.name}")
            wire.emit_write(e, depth, local)
        self._emit_pack(e, depth, run)
        if self.flexible:
            self._emit_write_tags(e, depth, value)
        else:
            e.line(depth, f"if {value}.unknown_tags: raise Truncated")

    @staticmethod
    def _emit_pack(e: Emitter, depth: int, run: list[tuple[str, str]]) -> None:
        if run:
            formats = "".join(fmt for fmt, _ in run)
            if "16s" in formats:
                e.names["uuid16"] = _uuid16
            e.line(depth, f"out += {e.packer(formats)}({', '.join(place for _, place in run)})")
            run.clear()

    @staticmethod
    def _differs(e: Emitter, member: Member, value: str) -> str:
        place = f"{value}.{member.name}"
        if member.default is None:
            return f"{place} is not None"
        if member.default is list:
            return f"{place} is None or len({place})"
        if isinstance(member.default, type):
            return f"({_struct_differs(member.default, place)})"
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

    # the join with construct: `Message.compile()` holds one flat function each way

    def _emitparse(self, code: Any) -> str:
        code.linkedparsers[id(self)] = self.reader()
        return f"linkedparsers[{id(self)}](io.read(), 0)[0]"

    def _emitbuild(self, code: Any) -> str:
        write = self.writer()

        def build(obj: Any, stream: Any) -> Any:
            out = bytearray()
            write(obj, out, [])
            stream.write(bytes(out))
            return obj

        code.linkedbuilders[id(self)] = build
        return f"linkedbuilders[{id(self)}](obj, io)"

    def reader(self) -> Any:
        """`read(buf, pos) -> (message, end)`, compiled."""
        e = Emitter()
        e.line(0, "def read(buf, pos):")
        e.line(1, "limit = len(buf)")
        self.emit_read(e, 1, "obj", "")
        e.line(1, "return obj, pos")
        return compile_function(f"read {self.title}", "read", "\n".join(e.lines), e.names)

    def writer(self) -> Any:
        """`write(message, out, parts)`, compiled; what is no bytes goes to `parts` with its place in `out`."""
        e = Emitter()
        e.line(0, "def write(obj, out, parts):")
        self.emit_write(e, 1, "obj")
        e.line(1, "return out")
        return compile_function(f"write {self.title}", "write", "\n".join(e.lines), e.names)


def emit_value_read(wire: Wire, e: Emitter, depth: int, target: str) -> None:
    """Emits the reading of a value that stands alone, head and all."""
    if isinstance(wire, Fixed):
        Message._emit_run(e, depth, [(wire.fmt, target)])
    elif wire.head:
        first = e.fresh("n")
        Message._emit_run(e, depth, [(wire.head, first)])
        wire.emit_read(e, depth, target, first)
    else:
        wire.emit_read(e, depth, target, "")


def emit_value_write(wire: Wire, e: Emitter, depth: int, value: str) -> None:
    if isinstance(wire, Fixed):
        Message._emit_pack(e, depth, [(wire.fmt, f"uuid16({value})" if wire.fmt == "16s" else value)])
    else:
        wire.emit_write(e, depth, value)


def _emit_default(e: Emitter, depth: int, place: str, default: Any) -> None:
    """Emits the assignment of a default; a struct is made field by field, which is cheaper than its constructor."""
    if not isinstance(default, type) or default is list:
        e.line(depth, f"{place} = {_literal(e, default)}")
        return
    made = e.fresh("d")
    e.line(depth, f"{made} = new({e.bind('class', default)})")
    for field in dataclasses.fields(default):
        inner = field.default if field.default_factory is dataclasses.MISSING else field.default_factory
        _emit_default(e, depth, f"{made}.{field.name}", inner)
    e.line(depth, f"{place} = {made}")


def _struct_differs(cls: type, place: str) -> str:
    """Whether the struct at `place` has anything but defaults, field by field: nothing is made to compare with."""
    tests = []
    for field in dataclasses.fields(cls):
        inner = f"{place}.{field.name}"
        if field.default_factory is list:
            tests.append(f"{inner} is None or len({inner})")
        elif isinstance(field.default_factory, type):
            tests.append(_struct_differs(field.default_factory, inner))
        else:
            tests.append(f"{inner} is not None" if field.default is None else f"{inner} != {field.default!r}")
    return " or ".join(tests)


def write_tags(out: bytearray, tags: list[tuple[int, Any]]) -> None:
    """Appends the section of tagged fields, in ascending order of their tags."""
    tags.sort(key=lambda tag: tag[0])
    _count(out, len(tags))
    last = -1
    for tag, data in tags:
        if tag == last:
            raise ValueError("the same tag twice")
        last = tag
        _count(out, tag)
        _count(out, len(data))
        out += data


def _count(out: bytearray, n: int) -> None:
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


def _uuid16(value: bytes) -> bytes:
    """`struct` would pad a short one and cut a long one."""
    if len(value) != 16:
        raise ValueError("not a uuid of 16 bytes")
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _literal(e: Emitter, default: Any) -> str:
    if default is list:
        return "[]"
    if callable(default):
        return f"{e.bind('default', default)}()"
    return repr(default)
