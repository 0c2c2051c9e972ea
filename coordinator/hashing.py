"""Java's hashes of strings and the order of its hash tables, by which Kafka chooses partitions and orders names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from typing import TypeVar

from ..protocol.java import java_abs, java_hash
from .remembered import remembered

NAMES_PER_STEP = 64
TABLE_SIZE = 16  # of a hash table of Java and of Scala, if nothing is said
T = TypeVar("T")
name_hash = remembered(1024)(java_hash)
_SPREAD = 0x9E3779B97F4A7C15  # by which Kafka's timeline tables multiply hash codes, in 64 bits


def partition_for(group_id: str, count: int) -> int:
    """Returns the partition of `__consumer_offsets` for a group."""
    return java_abs(name_hash(group_id)) % count


def table_order(items: Iterable[T], hash_of: Callable[[T], int], capacity: int = TABLE_SIZE) -> list[T]:
    """Returns distinct items in the iteration order of a Java HashMap or HashSet that is made for `capacity` entries
    and filled by `put`. `hash_of`: returns the hash code of an item.
    """
    listed = list(items)
    size = table_size(len(listed), capacity)
    return sorted(listed, key=lambda one: bucket(hash_of(one), size))


def java_order(names: Iterable[str]) -> list[str]:
    """Returns `names` in the iteration order of a Java HashMap, which Kafka's assignors use."""
    return table_order(names, name_hash)


def put_order(names: Iterable[str], capacity: int) -> list[str]:
    """Returns the distinct names in the iteration order of a Java HashMap that is made for `capacity` entries and
    filled by `put`.
    """
    return table_order(dict.fromkeys(names), name_hash, capacity)


def table_size(count: int, capacity: int) -> int:
    """Returns the buckets of a Java HashMap that is made for `capacity` entries and has got `count` by `put`."""
    size = 1
    while size < capacity or count > size * 3 // 4:
        size *= 2
    return size


def computed_order(items: Iterable[T], capacity: int, hash_of: Callable[[T], int]) -> list[T]:
    """Returns the distinct items in the iteration order of a Java HashMap that is made for `capacity` entries and
    filled by `computeIfAbsent`, which grows the map later than `put`, and puts a new key before those of its bucket.
    """
    size = table_size(0, capacity)
    full = int(size * 0.75)
    found: dict[T, None] = {}
    for item in items:
        if len(found) > full:
            size *= 2
            full = int(size * 0.75)
        found[item] = None
    order = list(found)[::-1]
    return sorted(order, key=lambda item: bucket(hash_of(item), size))


def computed_order_steps(
    items: Collection[T], capacity: int, hash_of: Callable[[T], int]
) -> Generator[None, None, list[T]]:
    """Like `computed_order`, of distinct items, with a pause after some of them."""
    size = table_size(0, capacity)
    while len(items) - 1 > int(size * 0.75):
        size *= 2
    buckets = yield from _buckets(items, size, hash_of)
    order = list(buckets)[::-1]
    return sorted(order, key=buckets.__getitem__)


def table_order_steps(
    items: Collection[T], hash_of: Callable[[T], int], capacity: int = TABLE_SIZE
) -> Generator[None, None, list[T]]:
    """Like `table_order`, with a pause after some of the items."""
    buckets = yield from _buckets(items, table_size(len(items), capacity), hash_of)
    return sorted(buckets, key=buckets.__getitem__)


def _buckets(items: Iterable[T], size: int, hash_of: Callable[[T], int]) -> Generator[None, None, dict[T, int]]:
    buckets: dict[T, int] = {}
    for item in items:
        buckets[item] = bucket(hash_of(item), size)
        if len(buckets) % NAMES_PER_STEP == 0:
            yield
    return buckets


def concurrent_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Returns distinct items in the iteration order of a Java ConcurrentHashMap, which grows earlier than a HashMap."""
    listed = list(items)
    return table_order(listed, hash_of, table_size(len(listed) + 1, TABLE_SIZE))


def uuid_hash(value: bytes) -> int:
    """Returns the hash code of Kafka's Uuid, in 32 bits without a sign."""
    bits = int.from_bytes(value, "big")
    halves = bits >> 64 ^ bits
    return (halves >> 32 ^ halves) & 0xFFFFFFFF


def id_partition_hash(partition: tuple[bytes, int]) -> int:
    """Returns the hash code of Kafka's TopicIdPartition, in more bits than Java's."""
    return 31 * uuid_hash(partition[0]) + partition[1]


def partition_hash(topic: str, index: int) -> int:
    """Returns the hash code of Kafka's TopicPartition."""
    return 31 * (31 + index) + name_hash(topic)


def number_order(numbers: Iterable[int]) -> list[int]:
    """Returns the distinct numbers in the iteration order of a Java HashSet of Integers: sorted, while they are less
    than its buckets.
    """
    return table_order(dict.fromkeys(numbers), int)


def number_set_order(numbers: Collection[int]) -> list[int]:
    """Returns distinct numbers in the iteration order of a Java HashSet that is made of a list of them, sorted."""
    listed, capacity = sorted(numbers), set_capacity(len(numbers))
    if not listed or listed[-1] < capacity:  # each has a bucket of its own
        return listed
    return table_order(listed, int, capacity)


def set_order(names: Collection[str]) -> list[str]:
    """Returns distinct names in the iteration order of a Java HashSet that is made of a list of them, sorted."""
    return put_order(sorted(names), set_capacity(len(names)))


def set_order_steps(names: Collection[str]) -> Generator[None, None, list[str]]:
    """Returns distinct names in the iteration order of a Java HashSet that is made of a collection, with a pause after
    some names.
    """
    return java_order_steps(names, set_capacity(len(names)))


def java_order_steps(names: Collection[str], capacity: int = TABLE_SIZE) -> Generator[None, None, list[str]]:
    """Like `java_order`, for a map that is made for `capacity` entries, with a pause after some names."""
    return table_order_steps(names, name_hash, capacity)


def set_capacity(count: int) -> int:
    """Returns for how many entries a Java HashSet is made that takes over a collection of `count`."""
    return max(int(count / 0.75) + 1, TABLE_SIZE)


def bucket(hash_code: int, capacity: int) -> int:
    """Returns the bucket of a Java HashMap into which a hash code of 32 bits leads."""
    value = hash_code & 0xFFFFFFFF
    return (value ^ value >> 16) & (capacity - 1)


def timeline_size(most: int) -> int:
    """Returns the slots of a TimelineHashMap of Kafka that has had so many entries: it never shrinks."""
    size = 2
    while most * 3 > size * 4:
        size *= 2
    return size


def timeline_slot(hash_code: int, size: int) -> int:
    """Returns the slot of a TimelineHashMap into which a hash code leads. It is iterated slot by slot, and each slot
    from its last entry on.
    """
    return (hash_code * _SPREAD & 0xFFFFFFFFFFFFFFFF) >> 65 - size.bit_length()


def timeline_order(names: Iterable[str], most: int) -> list[str]:
    """Returns distinct names in the iteration order of a TimelineHashMap that got them in this order, and has had
    `most` entries.
    """
    size, listed = timeline_size(most), list(names)
    listed.reverse()
    listed.sort(key=lambda name: timeline_slot(name_hash(name), size))
    return listed
