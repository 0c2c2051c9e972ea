"""The wire types of Kafka's protocol, each a `construct` subclass.

Every type has two forms of one meaning. The checked form is construct's: `parse_stream` and `build_stream` go field by
field, bound every length by the bytes that are there, and name the field when something is wrong. Its context brings
two parameters: `room`, how many elements a message may have, and `parts`, the list for records that are not bytes.
So the types can be combined with those of construct (see `compose`). The emitted form (`emit_read`, `emit_write`) is
source text for one flat function per message and version, fast because it stops at the first problem. `protocol.codec`
runs the fast form and falls back to the checked one to explain an error; a test proves them equal.

A type that begins with a fixed number of bytes (`head`) lets its parent read them together
with the fixed fields before it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

from construct import Construct, Container

from .emit import BYTESLIKE, Emitter, uuid16
from .encoded import Encoded
from .errors import MalformedMessage, StringTooLong
from .streams import count_elements, left, read_uvarint, take, write_uvarint


class Wire(Construct):  # type: ignore[misc]  # construct has no types
    """A wire type: the checked form, the emitted form, and the smallest size of a value in bytes."""

    head = ""  # struct format of the fixed bytes that begin the encoding and say how it goes on
    smallest = 1

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        raise NotImplementedError

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        raise NotImplementedError

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        """Emits the reading of the bytes after the head, whose value is in the local `head`."""
        raise NotImplementedError

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        """Emits code that appends the local `value` to `out`."""
        raise NotImplementedError


class Fixed(Wire):
    """A number, a boolean or a uuid: a struct format."""

    def __init__(self, fmt: str) -> None:
        super().__init__()
        self.fmt = fmt
        self.packed = struct.Struct(">" + fmt)
        self.smallest = self.packed.size

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        return self.packed.unpack(take(stream, self.smallest, path))[0]

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        if self.fmt == "16s" and (not isinstance(obj, bytes) or len(obj) != 16):
            raise MalformedMessage(path, f"not a uuid of 16 bytes: {obj!r}")
        try:
            stream.write(self.packed.pack(obj))
        except (struct.error, TypeError) as error:
            raise MalformedMessage(path, f"{obj!r} does not fit: {error}") from None
        return obj

    def _sizeof(self, context: Container, path: str) -> int:
        return self.smallest


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

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        n = self._read_length(stream, path)
        return None if n == -1 else self._parse_value(n, stream, context, path)

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        if obj is None:
            self._write_null(stream, path)
        else:
            self._build_value(obj, stream, context, path)
        return obj

    def _parse_value(self, n: int, stream: io.BytesIO, context: Container, path: str) -> object:
        """Reads a value of the length `n`, which was read before."""
        raise NotImplementedError

    def _build_value(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> None:
        """Writes a value that is not null, with its length."""
        raise NotImplementedError

    def _read_length(self, stream: io.BytesIO, path: str) -> int:
        if self.flexible:
            n = read_uvarint(stream, path) - 1
        else:
            n = int(self.packed.unpack(take(stream, self.packed.size, path))[0])
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
        """Makes the local `head` the length plus one if compact, the length if not."""
        if self.flexible:
            e.line(depth, f"if {head} > 127: {head}, pos = uvarint_at(buf, pos - 1)")

    def emit_present(self, e: Emitter, depth: int, target: str, head: str) -> None:
        """Emits the branch for null, and opens the branch for a value."""
        null, bad = (f"not {head}", "False") if self.flexible else (f"{head} == -1", f"{head} < -1")
        if self.nullable:
            e.line(depth, f"if {null}: {target} = None")
            if not self.flexible:
                e.line(depth, f"elif {bad}: raise FastPathFailed")
            e.line(depth, "else:")
        else:
            e.line(depth, f"if {null if self.flexible else head + ' < 0'}: raise FastPathFailed")
            e.line(depth, "else:")

    def emit_size(self, e: Emitter, depth: int, size: str) -> None:
        """Emits the length `size` of a value that is not null."""
        if self.flexible:
            e.line(depth, f"if {size} < 127: out.append({size} + 1)")
            e.line(depth, f"else: uvarint_to(out, {size} + 1)")
        else:
            e.line(depth, f"out += {e.packer(self.head)}({size})")

    def emit_null(self, e: Emitter, depth: int, value: str) -> int:
        """Opens the branch in which `value` is not None; returns the depth of the code in it."""
        if not self.nullable:
            return depth
        e.line(depth, f"if {value} is None: out += {self.null_bytes!r}")
        e.line(depth, "else:")
        return depth + 1

    @property
    def null_bytes(self) -> bytes:
        return b"\0" if self.flexible else b"\xff" * self.packed.size


class String(_Sized):
    """UTF-8 text; invalid bytes become the replacement character, as in Kafka."""

    noun = "string"

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "h")

    def _parse_value(self, n: int, stream: io.BytesIO, context: Container, path: str) -> object:
        if n > 0x7FFF:
            raise MalformedMessage(path, f"string of length {n}")
        return str(take(stream, n, path), "utf-8", "replace")

    def _build_value(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> None:
        if not isinstance(obj, str):
            raise MalformedMessage(path, f"not a string: {obj!r}")
        data = obj.encode("utf-8", "replace")
        if len(data) > 0x7FFF:
            raise StringTooLong(path, f"string of length {len(data)} is too long")
        self._write_length(stream, len(data), path)
        stream.write(data)

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        empty, extra = (1, " - 1") if self.flexible else (0, "")
        e.line(depth + 1, f"if {head} == {empty}: {target} = ''")
        e.line(depth + 1, "else:")
        e.line(depth + 2, f"end = pos + {head}{extra}")
        e.line(depth + 2, f"if end > limit or {head} > {0x8000 if self.flexible else 0x7FFF}: raise FastPathFailed")
        e.line(depth + 2, f"{target} = str(buf[pos:end], 'utf-8', 'replace'); pos = end")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        data, size = e.fresh("b"), e.fresh("n")
        e.line(depth, f"{data} = {value}.encode('utf-8', 'replace'); {size} = len({data})")
        if self.flexible:
            e.line(depth, f"if {size} > 32767: raise FastPathFailed")
        self.emit_size(e, depth, size)
        e.line(depth, f"out += {data}")


class Bytes(_Sized):
    """Bytes, copied out of the message."""

    noun = "bytes"

    def __init__(self, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "i")

    def _parse_value(self, n: int, stream: io.BytesIO, context: Container, path: str) -> object:
        return take(stream, n, path)

    def _build_value(self, obj: Any, stream: io.BytesIO, context: Container, path: str) -> None:
        try:
            data = bytes(memoryview(obj))
        except TypeError:
            raise MalformedMessage(path, f"not bytes: {type(obj).__name__}") from None
        self._write_length(stream, len(data), path)
        stream.write(data)

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        e.line(depth + 1, f"end = pos + {head}{' - 1' if self.flexible else ''}")
        e.line(depth + 1, "if end > limit: raise FastPathFailed")
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

    To be built it may be bytes, or anything with a length that is not bytes (a slice of a file): such a part is noted
    in `parts` with its place, and whoever sends the message puts it there.
    """

    noun = "records"

    def _parse_value(self, n: int, stream: io.BytesIO, context: Container, path: str) -> object:
        return memoryview(take(stream, n, path))

    def _build_value(self, obj: Any, stream: io.BytesIO, context: Container, path: str) -> None:
        if isinstance(obj, bytes | bytearray | memoryview):
            return super()._build_value(obj, stream, context, path)
        self._write_length(stream, len(obj), path)
        parts = context._params.get("parts")
        if parts is None:
            raise MalformedMessage(path, "records that are no bytes need build_parts")
        parts.append((stream.tell(), obj))

    def emit_slice(self) -> str:
        return "buf[pos:end]"

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        depth = self.emit_null(e, depth, value)
        size = e.fresh("n")
        e.line(depth, f"{size} = len({value})")
        self.emit_size(e, depth, size)
        e.line(depth, f"if type({value}) in byteslike: out += {value}")
        e.line(depth, f"else: parts.append((len(out), {value}))")
        e.names["byteslike"] = BYTESLIKE


class Array(_Sized):
    """A list of values of one type; the count is held against the bytes left before anything is allocated."""

    noun = "array"

    def __init__(self, item: Wire, flexible: bool, nullable: bool) -> None:
        super().__init__(flexible, nullable, "i")
        self.item = item

    def _parse_value(self, n: int, stream: io.BytesIO, context: Container, path: str) -> object:
        if n * self.item.smallest > left(stream):
            raise MalformedMessage(path, f"array of {n} elements in {left(stream)} bytes")
        count_elements(context, n, path)
        return [self.item._parse(stream, context, f"{path}[{i}]") for i in range(n)]

    def _build_value(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> None:
        if isinstance(obj, Encoded):
            self._write_length(stream, obj.count, path)
            if obj.parts:
                context._params["parts"] += obj.parts_at(stream.tell())
            stream.write(obj.data)
            return
        if not isinstance(obj, Sequence):
            raise MalformedMessage(path, f"not a list: {type(obj).__name__}")
        self._write_length(stream, len(obj), path)
        for i, item in enumerate(obj):
            self.item._build(item, stream, context, f"{path}[{i}]")

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        self.emit_length(e, depth, head)
        self.emit_present(e, depth, target, head)
        depth += 1
        count = head
        if self.flexible:
            e.line(depth, f"{head} -= 1")
        smallest = f" * {self.item.smallest}" if self.item.smallest > 1 else ""
        e.line(depth, f"if {count} and {count}{smallest} > limit - pos: raise FastPathFailed")
        e.count_elements(depth, count)
        if isinstance(self.item, Fixed):
            self._emit_read_fixed(e, depth, target, count)
            return
        items, item = e.fresh("l"), e.fresh("o")
        e.line(depth, f"{items} = []")
        e.line(depth, f"for _ in range({count}):")
        emit_value_read(self.item, e, depth + 1, item)
        e.line(depth + 1, f"{items}.append({item})")
        e.pause(depth + 1)
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
        if not isinstance(self.item, _Sized | Fixed):
            e.names["Encoded"] = Encoded
            e.line(depth, f"if type({value}) is Encoded:")
            e.line(depth + 1, f"if {value}.parts: parts += {value}.parts_at(len(out))")
            e.line(depth + 1, f"out += {value}.data")
            e.line(depth, "else:")
            depth += 1
        e.line(depth, f"for {item} in {value}:")
        emit_value_write(self.item, e, depth + 1, item)


def emit_run(e: Emitter, depth: int, run: list[tuple[str, str]]) -> None:
    if not run:
        return
    if [fmt for fmt, _ in run] == ["B"]:
        e.line(depth, f"{run[0][1]} = buf[pos]; pos += 1")
    else:
        name, size = e.unpacker("".join(fmt for fmt, _ in run))
        e.line(depth, f"{', '.join(place for _, place in run)}, = {name}(buf, pos); pos += {size}")
    run.clear()


def emit_pack(e: Emitter, depth: int, run: list[tuple[str, str]]) -> None:
    if run:
        e.line(depth, f"out += {emit_packed(e, run)}")
        run.clear()


def emit_packed(e: Emitter, run: list[tuple[str, str]]) -> str:
    """Returns an expression for the bytes of fixed fields, given by format and value."""
    formats = "".join(fmt for fmt, _ in run)
    if "16s" in formats:
        e.names["uuid16"] = uuid16
    return f"{e.packer(formats)}({', '.join(place for _, place in run)})"


def emit_value_read(wire: Wire, e: Emitter, depth: int, target: str) -> None:
    """Emits the reading of a single value, including its head."""
    if isinstance(wire, Fixed):
        emit_run(e, depth, [(wire.fmt, target)])
    elif wire.head:
        first = e.fresh("n")
        emit_run(e, depth, [(wire.head, first)])
        wire.emit_read(e, depth, target, first)
    else:
        wire.emit_read(e, depth, target, "")


def emit_value_write(wire: Wire, e: Emitter, depth: int, value: str) -> None:
    if isinstance(wire, Fixed):
        emit_pack(e, depth, [(wire.fmt, f"uuid16({value})" if wire.fmt == "16s" else value)])
    else:
        wire.emit_write(e, depth, value)
