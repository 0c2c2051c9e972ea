"""Where two replies to the same request differ: by path, with the names of things instead of their places in lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct
from . import batches
from .identities import KINDS, NOTHING, Context, Identities, Kind, fields_of, is_nothing, shape, within

KEYS = (
    ("api_key",),
    ("token_requester_principal_name", "principal_name", "token_id"),
    ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
    ("resource_type", "resource_name", "pattern_type"),
    ("resource_type", "resource_name"),
    ("principal", "host", "operation", "permission_type"),
    ("name", "partition_index"),
    ("name", "topic_id"),
    ("topic", "topic_id"),
    ("topic_name", "topic_id"),
    ("topic_id",),
    ("name",),
    ("topic",),
    ("topic_name",),
    ("group_id",),
    ("transactional_id",),
    ("group_instance_id", "member_id"),
    ("client_id", "member_id"),
    ("member_id",),
    ("partition_index",),
    ("partition",),
    ("index",),
    ("producer_id",),
    ("node_id",),
    ("broker_id",),
    ("user",),
    ("mechanism",),
    ("entity_type", "entity_name"),
    ("entity_type",),
    ("entity",),
    ("key",),
    ("log_dir",),
)
"""Fields that name an element of a list, the most telling first: brokers order lists as their tables are ordered."""
ABSENT = "<absent>"


@dataclass(frozen=True)
class Difference:
    """`path`: such as `topics[orders].partitions[0].error_code`. A value is `ABSENT` where an element is missing."""

    path: str
    a: object
    b: object


def differences(a: object, b: object, identities: Identities, context: Context | None = None) -> list[Difference]:
    """The places where two messages differ; learns which ids stand for each other.

    `context`: plain fields of the request, which say what the epochs in the replies belong to.
    """
    return list(_Walk(identities).of("", a, b, context or {}))


def request_context(request: object) -> Context:
    """What a request says about its reply."""
    return within({}, fields_of(request) or [])


class _Walk:
    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    def of(self, path: str, a: object, b: object, context: Context) -> Iterator[Difference]:
        mine, other = fields_of(a), fields_of(b)
        if mine is not None and other is not None:
            yield from self._fields(path, a, b, context)
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            yield from self._elements(path, a, b, context)
        elif a != b:
            yield Difference(path, a, b)

    def _fields(self, path: str, a: object, b: object, outer: Context) -> Iterator[Difference]:
        mine, other = fields_of(a) or [], dict(fields_of(b) or [])
        context = within(outer, mine)
        for name, value in mine:
            there = other.pop(name, ABSENT)
            inner = f"{path}.{name}" if path else name
            kind = KINDS.get(name)
            if name in ("records", "record_set") and (is_data(value) or is_data(there)):
                yield from self._records(inner, value, there, context)
            elif kind is not None and not isinstance(value, list) and not isinstance(there, list):
                if not self._identities.match(kind, context, value, there):
                    yield Difference(inner, value, there)
            elif kind is not None and isinstance(value, list) and isinstance(there, list):
                yield from self._ids(inner, kind, value, there, context)
            else:
                yield from self.of(inner, value, there, context)
        for name, there in other.items():
            yield Difference(f"{path}.{name}" if path else name, ABSENT, there)
        tags = getattr(a, "unknown_tags", None), getattr(b, "unknown_tags", None)
        if tags[0] != tags[1]:
            yield Difference(f"{path}.unknown_tags" if path else "unknown_tags", *tags)

    def _ids(self, path: str, kind: Kind, a: list[object], b: list[object], context: Context) -> Iterator[Difference]:
        """Lists of ids are sets."""
        mine = sorted(a, key=str)
        other = sorted(b, key=lambda one: str(self._identities.of_a(kind, context, one)))
        if len(mine) != len(other):
            yield Difference(path, a, b)
            return
        matched = [self._identities.match(kind, context, *both) for both in zip(mine, other, strict=True)]
        if not all(matched):
            yield Difference(path, a, b)

    def _records(self, path: str, a: object, b: object, context: Context) -> Iterator[Difference]:
        try:
            mine, other = (batches.opened(one) for one in (a, b))
        except MalformedMessage:
            if bytes_of(a) != bytes_of(b):
                yield Difference(path, bytes_of(a), bytes_of(b))
            return
        for offset in sorted({*mine, *other}):
            where = f"{path}[{offset}]"
            if offset in mine and offset in other:
                yield from self.of(where, mine[offset], other[offset], context)
            else:
                yield Difference(where, mine.get(offset, ABSENT), other.get(offset, ABSENT))

    def _elements(self, path: str, a: Sequence[object], b: Sequence[object], context: Context) -> Iterator[Difference]:
        if all(isinstance(one, int | str) for one in (*a, *b)):
            if sorted(a, key=repr) != sorted(b, key=repr):
                yield Difference(path, list(a), list(b))
            return
        names = key_of((*a, *b)[0])
        if not names:
            yield from self._in_order(path, a, b, context)
            return
        for one, other in self._paired(names, a, b, context):
            there = one if one is not ABSENT else other
            where = f"{path}[{_shown(there, names)}]"
            if one is ABSENT or other is ABSENT:
                yield Difference(where, one, other)
            else:
                yield from self.of(where, one, other, context)

    def _in_order(self, path: str, a: Sequence[object], b: Sequence[object], context: Context) -> Iterator[Difference]:
        for index in range(max(len(a), len(b))):
            one, other = (side[index] if index < len(side) else ABSENT for side in (a, b))
            yield from self.of(f"{path}[{index}]", one, other, context)

    def _paired(
        self, names: tuple[str, ...], a: Sequence[object], b: Sequence[object], context: Context
    ) -> Iterator[tuple[object, object]]:
        """Elements of the same name. An id that is known must be the same; unknown ones match each other in order."""
        left: dict[object, list[object]] = {}
        for other in b:
            left.setdefault(self._name(other, names, context, is_b=True), []).append(other)
        alone = []
        for one in a:
            found = left.get(self._name(one, names, context, is_b=False))
            if found:
                yield one, found.pop(0)
            else:
                alone.append(one)
        rest: dict[object, list[object]] = {}
        for other in (other for found in left.values() for other in found):
            rest.setdefault(_shape(other, names), []).append(other)
        for one in alone:
            found = rest.get(_shape(one, names))
            yield one, found.pop(0) if found else ABSENT
        yield from ((ABSENT, other) for found in rest.values() for other in found)

    def _name(self, element: object, names: tuple[str, ...], context: Context, *, is_b: bool) -> tuple[object, ...]:
        """What an element is called, in ids of A; ids that the identities do not have are all the same."""
        identities, found = self._identities, []
        for name, value in _key(element, names):
            kind = KINDS.get(name)
            if kind is None or is_nothing(kind, value):
                found.append(_text(value))
            elif is_b:
                known = identities.knows_b(kind, value)
                found.append(str(identities.of_a(kind, context, value)) if known else f"? {shape(value)}")
            else:
                known = identities.knows_a(kind, value)
                found.append(str(value) if known else f"? {shape(value)}")
        return tuple(found)


def key_of(element: object) -> tuple[str, ...]:
    """The names of the fields that name an element; empty if it has none."""
    names = {name for name, _ in fields_of(element) or ()}
    return next((keys for keys in KEYS if names.issuperset(keys)), ())


def _key(element: object, names: tuple[str, ...]) -> list[tuple[str, object]]:
    found = dict(fields_of(element) or ())
    return [(name, found.get(name)) for name in names]


def _shape(element: object, names: tuple[str, ...]) -> tuple[object, ...]:
    """What an element is called without the ids that a broker chooses."""
    return tuple(
        None if name in KINDS and not isinstance(value, str) else shape(_text(value))
        for name, value in _key(element, names)
    )


def _shown(element: object, names: tuple[str, ...]) -> str:
    """What an element is called in a path: its name, and its id only if it has no name."""
    found = [(name, value) for name, value in _key(element, names) if value not in NOTHING]
    named = [value for name, value in found if name not in KINDS] or [value for _, value in found]
    return ",".join(map(_text, named))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return repr(value) if isinstance(value, list | Struct) else str(value)


def is_data(value: object) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def bytes_of(value: object) -> object:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value
