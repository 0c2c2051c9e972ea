"""The hash of the metadata of the topics that a group is subscribed to, on which Kafka and ottla must agree."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    from .environment import TopicImage

MAGIC = 0
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")


def _string(text: str) -> bytes:
    """As hash4j streams it: the code units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def topic_hash(topic_id: bytes, name: str, racks: Sequence[frozenset[str]]) -> int:
    """The hash of a topic: its id, its name, and for each partition the racks
    of its replicas (`Utils.computeTopicHash`).
    """
    most, least = struct.unpack(">qq", topic_id)
    start = bytes([MAGIC]) + _LONG.pack(most) + _LONG.pack(least) + _string(name) + _INT.pack(len(racks))
    # of ten thousand partitions most have the same racks
    packed = {of: b"".join(_INT.pack(len(rack)) + _string(rack) for rack in sorted(of)) for of in dict.fromkeys(racks)}
    partitions = chain.from_iterable(zip(map(_INT.pack, count()), map(packed.__getitem__, racks), strict=False))
    return _signed(xxhash.xxh3_64_intdigest(b"".join((start, *partitions))))


def group_hash(topic_hashes: dict[str, int]) -> int:
    """The hash of a group: those of its topics in the order of their names; 0 for none (`Utils.computeGroupHash`)."""
    if not topic_hashes:
        return 0
    data = b"".join(_LONG.pack(value) for _, value in sorted(topic_hashes.items()))
    return _signed(xxhash.xxh3_64_intdigest(data))


def metadata_hash(names: Iterable[str], image: TopicImage) -> int:
    """Returns the metadata hash of a group that is subscribed to `names`; topics that do not exist are left out."""
    found = {}
    for name in names:
        value = image.topic_hash(name)
        if value != 0:
            found[name] = value
    return group_hash(found)
