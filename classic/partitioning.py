"""Encoders, and which partition a key belongs to."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..protocol.java import INT_MIN, java_abs, java_hash
from .message import Message

T_contra = TypeVar("T_contra", contravariant=True)


class Encoder(Protocol[T_contra]):
    def to_message(self, data: T_contra) -> Message: ...


class Partitioner(Protocol[T_contra]):
    def partition(self, key: T_contra, num_partitions: int) -> int:
        """Returns an index into the sorted partitions of a topic."""


class DefaultEncoder:
    """Takes bytes, None and messages as they are."""

    def to_message(self, data: bytes | Message | None) -> Message:
        return data if isinstance(data, Message) else Message(data)


class StringEncoder:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def to_message(self, data: str) -> Message:
        return Message(data.encode(self._encoding))


def hash_code(key: str | bytes | int) -> int:
    """Returns what Java's `hashCode` returns: of a String, of an Integer or Long, of an array's bytes
    (`Arrays.hashCode`). Raises TypeError for other keys.
    """
    if isinstance(key, int):
        return _int32(key if INT_MIN <= key < -INT_MIN else key ^ (key & (1 << 64) - 1) >> 32)
    if isinstance(key, str):
        return java_hash(key)
    if isinstance(key, bytes):
        found = 1
        for byte in key:
            found = 31 * found + (byte if byte < 128 else byte - 256) & 0xFFFFFFFF
        return _int32(found)
    raise TypeError(f"a key of type {type(key).__name__} needs a partitioner of its own")


def _int32(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


class DefaultPartitioner:
    """`hash(key) % numPartitions`, with the hash of Java and its absolute value, which is 0 for the smallest."""

    def partition(self, key: str | bytes | int, num_partitions: int) -> int:
        return java_abs(hash_code(key)) % num_partitions
