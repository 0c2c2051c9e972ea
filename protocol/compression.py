"""The five codecs of record batches. Data is decompressed in chunks,
and every decompression is limited to a number of bytes.

Snappy is written in the xerial framing of Java's clients and read with or without it. The library of a codec is
imported when the codec is first used. All calls release the interpreter lock on large data.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from .buffers import Data
from .errors import MalformedMessage

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 * 1024
CHUNK_BYTES = 16 * 1024
WHOLE_STEP_BYTES = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # as Java writes it
GZIP_HEADER_BYTES, GZIP_TRAILER_BYTES = 10, 8
LZ4_LEVEL = 9  # Kafka's default, for which it takes the fast compressor
ZSTD_MAGIC, ZSTD_SKIPPABLE_MAGIC = 0xFD2FB528, 0x184D2A50
ZSTD_RLE_BLOCK = 1
ZSTD_WINDOW_BYTES_MAX = 1 << 27  # as in Java
SNAPPY_RATIO_MAX = 22
DECOMPRESSED_BYTES_MAX = 2147483639  # Kafka's default of max.decompressed.message.bytes
OPENED_BYTES_MIN, OPENED_RATIO = 32 << 20, 32


def openable_bytes(size: int) -> int:
    """Returns how many bytes a batch of `size` bytes may hold after decompression, whatever a topic's
    `max.decompressed.message.bytes` allows.
    """
    return min(DECOMPRESSED_BYTES_MAX, max(OPENED_BYTES_MIN, OPENED_RATIO * size))


class Undecodable(MalformedMessage):
    """The data is not valid for its codec."""


class EndsEarly(Undecodable):
    """The data is valid as far as it goes."""


class DecompressedTooLarge(MalformedMessage):
    """The data decompresses to more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__("records", f"more than {limit} bytes when decompressed")


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """Compresses `data` into the bytes that Kafka makes of it. `level`: the topic's `compression.*.level`; None is the
    codec's default.
    """
    if codec == NONE:
        return data
    if codec == GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        return GZIP_HEADER + (packer.compress(data) + packer.flush())[GZIP_HEADER_BYTES:]
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        import lz4.frame

        packed: bytes = lz4.frame.compress(
            data,
            compression_level=0 if level in (None, LZ4_LEVEL) else level,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return packed
    if codec == ZSTD:
        return _compress_zstd(data, 3 if level is None else level)
    raise Undecodable("records", f"no codec {codec}")


def _compress_zstd(data: bytes, level: int) -> bytes:
    """Ends the data's last block, and then the frame with an empty one, as a stream of Java's does."""
    import zstandard

    packer = zstandard.ZstdCompressor(level=level).compressobj()
    packed: bytes = packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + packer.flush()
    return packed


def decompress(codec: int, data: Data, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompresses `data` (bytes or a memoryview).

    Raises Undecodable for bytes that are not of this codec, DecompressedTooLarge beyond `limit` bytes.
    """
    if codec == NONE:
        return bytes(data)
    parts = list(chunks(codec, data, limit, WHOLE_STEP_BYTES))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def chunks(
    codec: int, data: Data, limit: int = DECOMPRESSED_BYTES_MAX, step_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """Decompresses `data` in pieces of at most `step_bytes`. Some pieces are empty, so that work without output can be
    interrupted too.

    A step makes a piece, or a block of snappy or zstd. The sizes in frame headers are not trusted.

    Raises Undecodable for bytes that are not of this codec, DecompressedTooLarge beyond `limit` bytes.
    """
    unpack = _DECOMPRESSORS.get(codec)
    if unpack is None:
        raise Undecodable("records", f"no codec {codec}")
    made, pieces = 0, unpack(data, step_bytes)
    while True:
        try:
            piece = next(pieces, None)
        except (MalformedMessage, MemoryError):
            raise
        except Exception as error:  # each library has its own exceptions
            raise Undecodable("records", f"not {NAMES[codec]}: {error}") from None
        if piece is None:
            return
        made += len(piece)
        if made > limit:
            raise DecompressedTooLarge(limit)
        if len(piece) <= step_bytes:
            yield piece
        else:
            for start in range(0, len(piece), step_bytes):
                yield piece[start : start + step_bytes]


def _plain(data: Data, step_bytes: int) -> Iterator[bytes]:
    for start in range(0, len(data), step_bytes):
        yield bytes(data[start : start + step_bytes])


def _gunzip(data: Data, step_bytes: int) -> Iterator[bytes]:
    data, pos = bytes(data), 0
    while True:  # a stream may have several members
        unpacker = zlib.decompressobj(31)
        while not unpacker.eof:
            if pos >= len(data):
                kind = Undecodable if pos < GZIP_HEADER_BYTES else EndsEarly
                raise kind("records", "gzip data ends early")
            taken = data[pos : pos + step_bytes]  # the unread rest is copied with each piece
            pos += len(taken)
            yield unpacker.decompress(taken, step_bytes)
            while unpacker.unconsumed_tail and not unpacker.eof:
                yield unpacker.decompress(unpacker.unconsumed_tail, step_bytes)
        pos -= len(unpacker.unused_data)
        # Java ignores bytes after the last member, and what is too short to be one
        if len(data) - pos <= GZIP_HEADER_BYTES + GZIP_TRAILER_BYTES or data[pos : pos + 2] != GZIP_MAGIC:
            return


def _compress_xerial(data: bytes) -> bytes:
    import snappy

    out = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = snappy.compress(data[start : start + XERIAL_BLOCK_BYTES])
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def _unsnap(data: Data, step_bytes: int) -> Iterator[bytes]:
    data = bytes(data)
    if not data.startswith(XERIAL_MAGIC):
        yield _unsnap_block(data)
        return
    for start, end in _snappy_blocks(data):
        if start < end:
            yield _unsnap_block(data[start:end])


def _snappy_blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yields where the blocks of streams begin and end; a header is an empty block."""
    pos = 0
    while pos + 4 <= len(data):  # Java ignores fewer bytes after the last block
        if data.startswith(XERIAL_MAGIC, pos):  # streams may follow each other
            start = pos + len(XERIAL_HEADER)
            end = start
        else:
            start = pos + 4
            end = start + int.from_bytes(data[pos:start], "big")
        if end > len(data) or end == pos + 4:
            raise Undecodable("records", "snappy data ends early")
        yield start, end
        pos = end


def one_stream(data: Data) -> Iterator[None]:
    """Yields for each block. Raises Undecodable if streams of snappy follow each other, which the library of Kafka
    before 0.10 does not read.
    """
    data = bytes(data)
    for start, end in _snappy_blocks(data) if data.startswith(XERIAL_MAGIC) else ():
        if start == end > len(XERIAL_HEADER):
            raise Undecodable("records", "several streams of snappy")
        yield


def _unsnap_block(block: bytes) -> bytes:
    """Decompresses a whole block; no element of it produces more than `SNAPPY_RATIO_MAX` times its own bytes."""
    import snappy

    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > SNAPPY_RATIO_MAX * len(block):
        raise Undecodable("records", f"a snappy block of {len(block)} bytes claims to hold {size}")
    plain: bytes = snappy.uncompress(block)
    return bytes(plain)


def _unlz4(data: Data, step_bytes: int) -> Iterator[bytes]:
    """Decompresses the first frame only, as Kafka does."""
    import lz4.frame

    unpacker, data, pos = lz4.frame.LZ4FrameDecompressor(), bytes(data), 0
    while not unpacker.eof:
        taken = b""
        if unpacker.needs_input:
            if pos >= len(data):
                raise Undecodable("records", "lz4 frame ends early")
            taken = data[pos : pos + step_bytes]
            pos += len(taken)
        yield unpacker.decompress(taken, step_bytes)  # it allocates the maximal output


def _unzstd(data: Data, step_bytes: int) -> Iterator[bytes]:
    """Decompresses block by block: a block produces at most 128 KiB, but one byte of input may contain many blocks."""
    import zstandard

    data, pos, maker = bytes(data), 0, zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    while pos < len(data):  # there may be several frames
        magic = int.from_bytes(data[pos : pos + 4], "little")
        if magic & ~0xF == ZSTD_SKIPPABLE_MAGIC:
            pos += 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
            yield b""
            continue
        if magic != ZSTD_MAGIC or pos + 5 > len(data):
            raise Undecodable("records", "no zstd frame")
        unpacker, start = maker.decompressobj(), pos
        flags = data[pos + 4]
        is_single, has_checksum = flags >> 5 & 1, flags >> 2 & 1
        pos += 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        is_last = 0
        while not is_last:
            block = int.from_bytes(data[pos : pos + 3], "little")
            is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
            pos += 3 + (1 if kind == ZSTD_RLE_BLOCK else size) + (4 if is_last and has_checksum else 0)
            if pos > len(data):
                raise Undecodable("records", "zstd frame ends early")
            yield unpacker.decompress(data[start:pos])
            start = pos
        if not unpacker.eof:
            raise Undecodable("records", "zstd frame ends early")
    if pos > len(data):
        raise Undecodable("records", "zstd frame ends early")


_DECOMPRESSORS: dict[int, Callable[[Data, int], Iterator[bytes]]] = {
    NONE: _plain,
    GZIP: _gunzip,
    SNAPPY: _unsnap,
    LZ4: _unlz4,
    ZSTD: _unzstd,
}
