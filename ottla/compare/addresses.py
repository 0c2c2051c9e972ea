"""What the proxy changes in replies: addresses of brokers, and the versions that both brokers have. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..addresses import Address
from ..protocol import messages as m
from ..protocol import schema
from ..protocol.schema import StructSchema
from ..protocol.structs import Struct

NODE_FIELDS = ("node_id", "broker_id")
Ranges = dict[int, tuple[int, int]]
"""By API key, the first and the last version."""


class Node(NamedTuple):
    """A struct of a reply that says where a broker is."""

    struct: Struct
    node_id: int
    address: Address

    def move(self, to: Address) -> None:
        """Writes another address into the reply."""
        self.struct.host, self.struct.port = to  # type: ignore[attr-defined]


def _is_node(struct: StructSchema) -> bool:
    names = {field.name for field in struct.fields}
    return {"host", "port"} <= names and not names.isdisjoint(NODE_FIELDS)


@cache
def has_nodes(response: str) -> bool:
    """Whether replies of a schema can say where brokers are."""
    loaded = schema.load(response)
    return any(_is_node(struct) for struct in (loaded.root, *loaded.structs.values()))


def nodes(message: Struct) -> Iterator[Node]:
    """Yields where a reply says that brokers are; it does not where it says that there is none."""
    names = message.__slots__
    if "host" in names and "port" in names:
        node_id = next((getattr(message, name) for name in NODE_FIELDS if name in names), None)
        address = Address(getattr(message, "host"), getattr(message, "port"))  # noqa: B009
        if node_id is not None and address.host and address.port > 0:
            yield Node(message, node_id, address)
    for name in names:
        value = getattr(message, name)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, Struct):
                yield from nodes(one)


def ranges(reply: m.ApiVersionsResponse) -> Ranges:
    return {one.api_key: (one.min_version, one.max_version) for one in reply.api_keys}


def common(a: Ranges, b: Ranges) -> Ranges:
    """The versions that both have."""
    found = {key: (max(low, b[key][0]), min(high, b[key][1])) for key, (low, high) in a.items() if key in b}
    return {key: (low, high) for key, (low, high) in found.items() if low <= high}


def intersect(reply: m.ApiVersionsResponse, other: m.ApiVersionsResponse) -> None:
    """Leaves in A's reply what B has too: versions, and features with their levels."""
    both = common(ranges(reply), ranges(other))
    reply.api_keys = [one for one in reply.api_keys if one.api_key in both]
    for one in reply.api_keys:
        one.min_version, one.max_version = both[one.api_key]
    supported = {one.name: one for one in other.supported_features}
    reply.supported_features = [one for one in reply.supported_features if one.name in supported]
    for feature in reply.supported_features:
        theirs = supported[feature.name]
        feature.min_version = max(feature.min_version, theirs.min_version)
        feature.max_version = min(feature.max_version, theirs.max_version)
    finalized = {one.name: one for one in other.finalized_features}
    reply.finalized_features = [one for one in reply.finalized_features if one.name in finalized]
    for level in reply.finalized_features:
        level.max_version_level = min(level.max_version_level, finalized[level.name].max_version_level)
        level.min_version_level = min(level.min_version_level, level.max_version_level)


def lacking(a: Ranges, b: Ranges) -> list[str]:
    """What one broker has and the other lacks, in words."""
    found = []
    for key, (low, high) in sorted(a.items()):
        name = schema.index()["apis"].get(str(key), {"request": f"key {key}"})["request"].removesuffix("Request")
        if key not in b:
            found.append(f"{name} v{low}-{high}")
        else:
            other_low, other_high = b[key]
            if low < other_low:
                found.append(f"{name} v{low}-{min(high, other_low - 1)}")
            if high > other_high:
                found.append(f"{name} v{max(low, other_high + 1)}-{high}")
    return found
