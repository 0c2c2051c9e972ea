"""LZ4 frames of message format version 0, whose header checksum is wrong.

Kafka's clients before 0.10 computed it over the magic number too. Readers of that format do not check it, and clients
of that time refuse frames with the right one (KIP-57).
"""

from __future__ import annotations

from .buffers import Data
from .compression import Undecodable

MAGIC = b"\x04\x22\x4d\x18"
_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK = 0xFFFFFFFF
CONTENT_SIZE_FLAG, CONTENT_CHECKSUM_FLAG = 0x08, 0x04


def with_right_checksum(frame: Data) -> bytes:
    """Returns the frame with the header checksum that the format of LZ4 defines."""
    return _with_checksum(bytes(frame), len(MAGIC))


def with_old_checksum(frame: Data) -> bytes:
    """Returns the frame with the header checksum of message format version 0."""
    return _with_checksum(bytes(frame), 0)


def check_oldest(frame: Data) -> None:
    """Raises Undecodable for a frame that brokers and clients before 0.10 cannot read: one with another checksum
    of its header, or with the size or a checksum of its content.
    """
    frame = bytes(frame)
    has_more = len(frame) > len(MAGIC) and frame[4] & (CONTENT_SIZE_FLAG | CONTENT_CHECKSUM_FLAG)
    if has_more or with_old_checksum(frame) != frame:
        raise Undecodable("records", "an LZ4 frame that no release before 0.10 reads")


def _with_checksum(frame: bytes, start: int) -> bytes:
    """Returns the frame with a checksum of its header from `start` on; unchanged if it has no header."""
    if len(frame) < 7 or not frame.startswith(MAGIC):
        return frame
    end = 14 if frame[4] & CONTENT_SIZE_FLAG else 6
    if len(frame) <= end:
        return frame
    return frame[:end] + bytes([_xxh32(frame[start:end]) >> 8 & 0xFF]) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """Returns the xxHash of less than 16 bytes, with the seed 0."""
    found, at = (_PRIMES[4] + len(data)) & _MASK, 0
    while at + 4 <= len(data):
        found = (found + int.from_bytes(data[at : at + 4], "little") * _PRIMES[2]) & _MASK
        found = _rotated(found, 17) * _PRIMES[3] & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotated((found + byte * _PRIMES[4]) & _MASK, 11) * _PRIMES[0] & _MASK
    found = (found ^ found >> 15) * _PRIMES[1] & _MASK
    found = (found ^ found >> 13) * _PRIMES[2] & _MASK
    return found ^ found >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
