"""The order of Scala's hash tables, in which Kafka lists what it answers from them (Scala 2.13)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

from .hashing import TABLE_SIZE, name_hash

K = TypeVar("K", bound=Hashable)
BITS = 5  # of a hash, by which a node of a trie has its children
MASK = 0xFFFFFFFF


def partition_hash(topic: str, index: int) -> int:
    """`TopicPartition.hashCode`, before it is cut to 32 bits."""
    return 31 * (31 + index) + name_hash(topic)


def buckets_for(count: int) -> int:
    """Returns the buckets of a `mutable.HashMap` that has got so many entries."""
    size = TABLE_SIZE
    while count >= size * 3 // 4:
        size *= 2
    return size


def place_in_table(hash_code: int, size: int) -> int:
    """Returns a number that grows with the place of an entry in a `mutable.HashMap` of so many buckets."""
    spread = hash_code & MASK ^ (hash_code & MASK) >> 16
    return (spread & size - 1) << 32 | spread ^ 1 << 31


def hash_in_trie(name: str) -> int:
    return in_trie(name_hash(name))


def in_trie(hash_code: int) -> int:
    """Returns the bits of a hash code by which a trie has its entries, from the lowest."""
    value = hash_code & MASK
    value = value + ~(value << 9) & MASK
    value ^= value >> 14
    value = value + (value << 4) & MASK
    return value ^ value >> 10


def trie_order(hashes: dict[K, int], shift: int = 0) -> Iterator[K]:
    """Yields keys in the iteration order of an `immutable.HashMap`: in each node first those that are alone with their
    bits, then the children. `hashes`: `in_trie` by key; `shift`: how many bits lead to the node.
    """
    if len(hashes) < 2 or shift > 32:
        yield from hashes
        return
    children: dict[int, dict[K, int]] = {}
    for key, value in hashes.items():
        children.setdefault(value >> shift & (1 << BITS) - 1, {})[key] = value
    in_order = [children[bits] for bits in sorted(children)]
    for child in in_order:
        if len(child) == 1:
            yield from child
    for child in in_order:
        if len(child) > 1:
            yield from trie_order(child, shift + BITS)
