"""The wire types of Kafka's protocol, each a `construct` subclass.

Every type has two forms of one meaning. The checked form is construct's own `_parse` and `_build`: it goes field by field,
bounds every length by the bytes that are there, and names the field when something is wrong. The emitted form
(`emit_read`, `emit_write`) is source text for one flat function per message and version, fast because it leaves at the first
surprise. `protocol.codec` runs the fast form and falls back to the checked one to explain an error; a test proves them equal.

A type that begins with a fixed number of bytes (`head`) lets its parent read them together with the fixed fields before it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

from construct import Construct

from .emit import Emitter
from .errors import MalformedMessage


def take(stream: io.BytesIO, length: int, path: str) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise MalformedMessage(path, f"needs {length} bytes where {len(data)} are left")
    return data


def left(stream: io.BytesIO) -> int:
    return stream.getbuffer().nbytes - stream.tell()


def read_uvarint(stream: io.BytesIO, path: str) -> int:
    """An unsigned varint of at most 32 bits."""
    n = shift = 0
    while True:
        b = take(stream, 1, path)[0]
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
        return self.packed.unpack(take(stream, self.smallest, path))[0]

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
        return None if n == -1 else str(take(stream, n, path), "utf-8", "replace")

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
        empty, extra = (1, " - 1") if self.flexible else (0, "")
        e.line(depth + 1, f"if {head} == {empty}: {target} = ''")
        e.line(depth + 1, "else:")
        e.line(depth + 2, f"end = pos + {head}{extra}")
        e.line(depth + 2, f"if end > limit or {head} > {0x8000 if self.flexible else 0x7FFF}: raise Truncated")
        e.line(depth + 2, f"{target} = str(buf[pos:end], 'utf-8', 'replace'); pos = end")

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
        return None if n == -1 else take(stream, n, path)

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
        return None if n == -1 else memoryview(take(stream, n, path))

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
        if n * self.item.smallest > left(stream):
            raise MalformedMessage(path, f"array of {n} elements in {left(stream)} bytes")
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
    """The bytes of fixed fields, by format and value."""
    formats = "".join(fmt for fmt, _ in run)
    if "16s" in formats:
        e.names["uuid16"] = _uuid16
    return f"{e.packer(formats)}({', '.join(place for _, place in run)})"


def emit_value_read(wire: Wire, e: Emitter, depth: int, target: str) -> None:
    """Emits the reading of a value that stands alone, head and all."""
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


def _uuid16(value: bytes) -> bytes:
    """`struct` would pad a short one and cut a long one."""
    if len(value) != 16:
        raise ValueError("not a uuid of 16 bytes")
    return value
