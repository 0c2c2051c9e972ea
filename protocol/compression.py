"""The five codecs of record batches, with every decompression bounded by a number of bytes.

Snappy is written in the xerial framing of Java's clients and read with or without it. The library of a codec is imported when
the codec is first used. All calls release the interpreter lock on large data.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from .errors import MalformedMessage

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 * 1024
ZSTD_STEP_BYTES = 1024
LZ4_RATIO, LZ4_STEP_BYTES_MIN = 4, 1 << 16  # what the first step makes of a frame is all of most frames
DECOMPRESSED_BYTES_MAX = 2147483639  # Kafka's default of max.decompressed.message.bytes


class DecompressedTooLarge(MalformedMessage):
    """The data holds more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__("records", f"more than {limit} bytes when decompressed")


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """The compressed form of `data`; `level` as in the topic's `compression.*.level`, None for the codec's default."""
    if codec == NONE:
        return data
    if codec == GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        import lz4.frame

        packed: bytes = lz4.frame.compress(
            data, compression_level=level or 0, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
        )
        return packed
    if codec == ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)
    raise MalformedMessage("records", f"no codec {codec}")


def decompress(codec: int, data: Any, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """What `data` (bytes or a memoryview) was made from.

    Raises MalformedMessage for bytes that are not of this codec, DecompressedTooLarge beyond `limit` bytes, before they are made.
    """
    if codec == NONE:
        return bytes(data)
    unpack = _DECOMPRESSORS.get(codec)
    if unpack is None:
        raise MalformedMessage("records", f"no codec {codec}")
    try:
        return unpack(data, limit)
    except MalformedMessage:
        raise
    except Exception as error:  # each library has its own
        raise MalformedMessage("records", f"not {NAMES[codec]}: {error}") from None


def _gunzip(data: Any, limit: int) -> bytes:
    out = b""
    rest = bytes(data)
    while rest:  # a stream may have several members
        unpacker = zlib.decompressobj(31)
        out += unpacker.decompress(rest, limit + 1 - len(out))
        if len(out) > limit:
            raise DecompressedTooLarge(limit)
        if not unpacker.eof:
            raise MalformedMessage("records", "gzip data ends early")
        rest = unpacker.unused_data
    return out


def _compress_xerial(data: bytes) -> bytes:
    import snappy

    out = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = snappy.compress(data[start : start + XERIAL_BLOCK_BYTES])
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def _unsnap(data: Any, limit: int) -> bytes:
    data = bytes(data)
    if not data.startswith(XERIAL_MAGIC):
        return _unsnap_block(data, limit)
    out, pos = bytearray(), len(XERIAL_HEADER)
    while pos < len(data):
        size = int.from_bytes(data[pos : pos + 4], "big")
        block = data[pos + 4 : pos + 4 + size]
        if len(block) < size or size == 0:
            raise MalformedMessage("records", "snappy block ends early")
        out += _unsnap_block(block, limit - len(out))
        pos += 4 + size
    return bytes(out)


def _unsnap_block(block: bytes, limit: int) -> bytes:
    import snappy

    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:
        raise DecompressedTooLarge(limit)
    plain: bytes = snappy.uncompress(block)
    return bytes(plain)


def _unlz4(data: Any, limit: int) -> bytes:
    import lz4.frame

    unpacker, data = lz4.frame.LZ4FrameDecompressor(), bytes(data)
    parts: list[bytes] = []
    held, step = 0, LZ4_RATIO * len(data) + LZ4_STEP_BYTES_MIN  # it reserves what it may make: all of `limit` at once is slow
    while not unpacker.eof:
        parts.append(unpacker.decompress(data, min(step, limit + 1 - held)))
        held += len(parts[-1])
        if held > limit:
            raise DecompressedTooLarge(limit)
        if not unpacker.eof and unpacker.needs_input:
            raise MalformedMessage("records", "lz4 frame ends early")
        data, step = b"", 2 * step
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unzstd(data: Any, limit: int) -> bytes:
    import zstandard

    out, rest = bytearray(), bytes(data)
    while rest:  # there may be several frames
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        for start in range(0, len(rest), ZSTD_STEP_BYTES):  # a step cannot make more than some megabytes
            out += unpacker.decompress(rest[start : start + ZSTD_STEP_BYTES])
            if len(out) > limit:
                raise DecompressedTooLarge(limit)
            if unpacker.eof:
                rest = unpacker.unused_data + rest[start + ZSTD_STEP_BYTES :]
                break
        else:
            raise MalformedMessage("records", "zstd frame ends early")
    return bytes(out)


_DECOMPRESSORS: dict[int, Callable[[Any, int], bytes]] = {GZIP: _gunzip, SNAPPY: _unsnap, LZ4: _unlz4, ZSTD: _unzstd}
