"""Ids that each broker chooses by itself: which of broker A stands for which of broker B.

A pair is learned where two replies to the same request have ids at the same place. Requests of a client of A are
translated with what was learned, and B's replies are compared by it. Most ids stand for one other for ever; of epochs
the latest pair counts, because each broker counts in its own steps.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ..protocol import records
from ..protocol.buffers import Data
from ..protocol.structs import Struct

PAIRS_MAX: Final = 200_000  # of one kind; the oldest are forgotten
Context = Mapping[str, object]
"""Plain fields by name: those of a struct and of what it lies in."""
Fields = list[tuple[str, object]]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Kind:
    """A kind of ids. `scope`: what an epoch belongs to, in words of `SCOPES`."""

    name: str
    scope: tuple[str, ...] = ()
    none: tuple[object, ...] = ()  # values that name nothing, next to those of `NOTHING`

    @property
    def is_epoch(self) -> bool:
        """Whether the latest pair counts, instead of the only one."""
        return bool(self.scope)


NOTHING: Final = (None, "", -1, -2, bytes(16), "0" * 32, "A" * 22, "00000000-0000-0000-0000-000000000000")
SCOPES: Final[
    dict[str, tuple[str, ...]]
] = {  # the fields that name it; the first that is there counts for all but topics
    "group": ("group_id",),
    "member": ("member_id",),
    "producer": ("producer_id", "v3_and_below_producer_id"),
    "topic": ("topic_id", "topic", "topic_name", "name"),
    "partition": ("partition", "partition_index", "index"),
}
NODE = Kind("node")
MEMBER = Kind("member")
TOPIC = Kind("topic")
PRODUCER = Kind("producer")
MEMBER_EPOCH = Kind("member epoch", ("group", "member"), (0,))
GROUP_EPOCH = Kind("group epoch", ("group",), (0,))
PRODUCER_EPOCH = Kind("producer epoch", ("producer",))
LEADER_EPOCH = Kind("leader epoch", ("topic", "partition"))
KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("node_id", "broker_id", "broker_ids", "leader_id", "controller_id"), NODE),
    **dict.fromkeys(("replica_nodes", "isr_nodes", "offline_replicas", "eligible_leader_replicas"), NODE),
    **dict.fromkeys(("last_known_elr", "replicas", "adding_replicas", "removing_replicas"), NODE),
    **dict.fromkeys(("preferred_read_replica", "replica_id"), NODE),
    **dict.fromkeys(("member_id", "leader"), MEMBER),
    "topic_id": TOPIC,
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id", "producer_id_filters"), PRODUCER),
    "ongoing_txn_producer_id": PRODUCER,
    "session_id": Kind("fetch session", none=(0,)),
    "cluster_id": Kind("cluster"),
    "client_instance_id": Kind("client instance"),
    "subscription_id": Kind("telemetry subscription", none=(0,)),
    **dict.fromkeys(("generation_id", "member_epoch", "generation_id_or_member_epoch"), MEMBER_EPOCH),
    **dict.fromkeys(("group_epoch", "assignment_epoch"), GROUP_EPOCH),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), PRODUCER_EPOCH),
    **dict.fromkeys(("leader_epoch", "current_leader_epoch", "committed_leader_epoch"), LEADER_EPOCH),
    **dict.fromkeys(("last_fetched_epoch", "partition_leader_epoch"), LEADER_EPOCH),
}
"""By the name of a field, in requests and replies of every API."""

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}$")
_PRODUCER_AT = 43  # where a batch has producer id and epoch
_PRODUCER = struct.Struct(">qh")
_CRC = struct.Struct(">I")


def shape(value: object) -> object:
    """An id without what is random in it."""
    return _RANDOM.sub("*", value) if isinstance(value, str) else value


def fields_of(message: object) -> Fields | None:
    """The fields of a message or of a struct, or of one that was read from JSON; None for any other value."""
    if isinstance(message, Struct):
        return [(name, getattr(message, name)) for name in message.__slots__ if name != "unknown_tags"]
    if isinstance(message, Mapping):
        return [(str(name), value) for name, value in message.items()]
    return None


def within(context: Context, fields: Fields) -> Context:
    """The context of what lies in a struct."""
    return {**context, **{name: value for name, value in fields if isinstance(value, str | int | bytes)}}


class Identities:
    """The ids of broker A and those of broker B that stand for each other."""

    def __init__(self) -> None:
        self._to_b: dict[Hashable, object] = {}
        self._to_a: dict[Hashable, object] = {}
        self.learned: Counter[str] = Counter()  # by kind, the pairs whose ids differ

    def of_b(self, kind: Kind, context: Context, value: Value) -> Value | object:
        """B's id for one of A's; the same value if none was learned."""
        return self._found(self._to_b, kind, context, value)

    def of_a(self, kind: Kind, context: Context, value: Value) -> Value | object:
        """A's id for one of B's; the same value if none was learned. `context`: in ids of A."""
        return self._found(self._to_a, kind, context, value)

    def knows_a(self, kind: Kind, value: object) -> bool:
        return (kind.name, value) in self._to_b

    def knows_b(self, kind: Kind, value: object) -> bool:
        return (kind.name, value) in self._to_a

    def match(self, kind: Kind, context: Context, a: object, b: object) -> bool:
        """Whether two ids at the same place stand for each other; learns the pair."""
        if is_nothing(kind, a) or is_nothing(kind, b):
            return a == b
        if kind.is_epoch:
            for scope in _scopes(kind, context):
                self._learn(kind, (kind.name, *scope), a, b)
            return True
        known = self._to_b.get((kind.name, a)), self._to_a.get((kind.name, b))
        is_known = known != (None, None)
        if is_known and kind in (NODE, MEMBER):  # it stays what it is, whoever leads or coordinates what
            return known == (b, a) and (kind is NODE or shape(a) == shape(b))
        matches = known == (b, a) or (not is_known and (kind is not MEMBER or shape(a) == shape(b)))
        self._learn(kind, (kind.name,), a, b)
        return matches

    def _learn(self, kind: Kind, key: tuple[Hashable, ...], a: object, b: object) -> None:
        if self._to_b.get((*key, a), a) != b:
            self.learned[kind.name] += 1
        for known, one, other in ((self._to_b, a, b), (self._to_a, b, a)):
            known[(*key, one)] = other
            if len(known) > PAIRS_MAX:
                del known[next(iter(known))]

    @staticmethod
    def _found(known: Mapping[Hashable, object], kind: Kind, context: Context, value: object) -> object:
        if is_nothing(kind, value):
            return value
        for scope in _scopes(kind, context):
            found = known.get((kind.name, *scope, value))
            if found is not None:
                return found
        return value


def is_nothing(kind: Kind, value: object) -> bool:
    """Whether a value names nothing. (False and 0.0 are no ids.)"""
    return value in NOTHING or value in kind.none


def _scopes(kind: Kind, context: Context) -> Iterator[tuple[Hashable, ...]]:
    """The keys of what an epoch belongs to: a topic may be known by its id and by its name."""
    if not kind.scope:
        yield ()
        return
    named = [
        [value for name in SCOPES[one] if (value := context.get(name)) not in NOTHING and isinstance(value, Hashable)]
        for one in kind.scope
    ]
    if all(named):
        for first in named[0]:
            yield (first, *(values[0] for values in named[1:]))


def translate(message: Struct, identities: Identities, context: Context | None = None) -> bool:
    """Replaces A's ids in a request by those of B, in its records too; returns whether any changed."""
    return _translate(message, context or {}, identities.of_b)


def _translate(message: Struct, outer: Context, of: Callable[[Kind, Context, object], object]) -> bool:
    fields = fields_of(message) or []
    context, changed = within(outer, fields), False
    for name, value in fields:
        made = value
        kind = KINDS.get(name)
        if isinstance(value, Struct):
            changed |= _translate(value, context, of)
        elif isinstance(value, list):
            if kind is not None:
                made = [of(kind, context, one) for one in value]
            else:
                for one in value:
                    changed |= isinstance(one, Struct) and _translate(one, context, of)
        elif name == "records" and isinstance(value, bytes | bytearray | memoryview):
            made = _records(value, of)
        elif kind is not None:
            made = of(kind, context, value)
        if made is not value and made != value:
            setattr(message, name, made)
            changed = True
    return changed


def _records(data: Data, of: Callable[[Kind, Context, object], object]) -> Data:
    """Batches with other producers; the same object if none changes. Data that are no batches stay as they are."""
    changed: bytearray | None = None
    for at in records.batches(data):
        header = at.header
        if header.magic != records.MAGIC or header.producer_id < 0:
            continue
        context = {"producer_id": header.producer_id}
        producer = of(PRODUCER, context, header.producer_id), of(PRODUCER_EPOCH, context, header.producer_epoch)
        if producer == (header.producer_id, header.producer_epoch):
            continue
        changed = bytearray(data) if changed is None else changed
        is_right = header.crc == records.computed_crc(data, at.position, header.size)
        _PRODUCER.pack_into(changed, at.position + _PRODUCER_AT, *producer)
        if is_right:
            crc = records.computed_crc(changed, at.position, header.size)
            _CRC.pack_into(changed, at.position + records.CRC_START - _CRC.size, crc)
    return data if changed is None else changed
