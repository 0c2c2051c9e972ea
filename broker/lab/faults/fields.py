"""What a request names: its topics, partitions, groups, members and transactional ids, found by the schema.

A field has a role if the schema says which entity it names, or by its name where the schema does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from ....protocol import schema
from ....protocol.emit import compile_function
from ....protocol.schema import NO_UUID, FieldSchema, StructSchema

TOPIC, PARTITION, GROUP, MEMBER, TRANSACTIONAL_ID = "topic", "partition", "group", "member", "transactional_id"
TOPIC_ID = "topic_id"
_OF_ENTITY = {"topicName": TOPIC, "groupId": GROUP, "transactionalId": TRANSACTIONAL_ID}
_OF_NAME = {
    "topic_id": TOPIC_ID,
    "partition": PARTITION,
    "partition_id": PARTITION,
    "partition_index": PARTITION,
    "partition_indexes": PARTITION,
    "index": PARTITION,
    "group_id": GROUP,
    "member_id": MEMBER,
}
_KEYS = ("key", "coordinator_keys")  # of FindCoordinator: a group or a transactional id
TopicNames = Callable[[bytes], str]
"""Returns the name of the topic with an id, or an empty text."""
Wanted = Mapping[str, Callable[[object], bool]]
"""By role, whether a value is one that is looked for."""


Check = Callable[[object], bool]
Probe = Callable[[object], "bool | None"]


class Fields(NamedTuple):
    """The fields of a struct that have a role. `own`: single values; `lists`: lists of values; `inner`: fields with
    structs that have such fields.
    """

    own: tuple[tuple[str, str], ...]
    lists: tuple[tuple[str, str], ...]
    inner: tuple[tuple[str, bool, Fields], ...]

    @property
    def roles(self) -> frozenset[str]:
        """The roles that occur, at any depth; a path need not have all of them."""
        found = {role for role, _ in (*self.own, *self.lists)}
        return frozenset(found.union(*(inner.roles for _, _, inner in self.inner)))


@cache
def fields_of(message: str) -> Fields:
    """Returns the fields of a request."""
    return _fields(schema.load(message).root)


def _fields(struct: StructSchema) -> Fields:
    own: list[tuple[str, str]] = []
    lists: list[tuple[str, str]] = []
    inner: list[tuple[str, bool, Fields]] = []
    for one in struct.fields:
        if one.struct is not None:
            found = _fields(one.struct)
            if found.own or found.lists or found.inner:
                inner.append((one.name, one.is_array, found))
            continue
        for role in _roles(one):
            (lists if one.is_array else own).append((role, one.name))
    return Fields(tuple(own), tuple(lists), tuple(inner))


def _roles(one: FieldSchema) -> tuple[str, ...]:
    if one.name in _KEYS and one.element_type == "string":
        return GROUP, TRANSACTIONAL_ID
    if one.name == "partitions" and one.type == "[]int32":
        return (PARTITION,)
    role = _OF_ENTITY.get(one.entity) or _OF_NAME.get(one.name)
    return () if role is None else (TOPIC if role == TOPIC_ID else role,)


Finder = Callable[[object, object], bool]
"""Whether the context of a request, or the request, has a value that is wanted, anywhere."""
OF_CONTEXT = {
    "client_id": 'context.client_id or ""',
    "principal": "context.peer.principal",
    "listener": "context.peer.listener",
    "node": "context.broker.config.node_id",
}
"""What a context has of a name."""


@cache
def finder_of(message: str, roles: tuple[str, ...]) -> Callable[..., Finder]:
    """Returns what makes the function that looks for values of roles, or of names of OF_CONTEXT: it takes what finds
    topics, and for each role the test of its values. A request is looked through once, whatever the number of roles.
    """
    lines = [f"def make(topics, {', '.join(f'{role}_wanted' for role in roles)}):", "    def find(context, r0):"]
    lines += [f"        if {name}_wanted({OF_CONTEXT[name]}): return True" for name in roles if name in OF_CONTEXT]
    asked = tuple(role for role in roles if role not in OF_CONTEXT)
    if asked:
        _find(fields_of(message), asked, 0, " " * 8, lines)
    lines += ["        return False", "    return find"]
    names: dict[str, object] = {"NO_UUID": NO_UUID, "named": named, "TOPIC": TOPIC}
    return compile_function(f"{' '.join(roles)} of {message}", "make", "\n".join(lines), names)


def _find(fields: Fields, roles: tuple[str, ...], depth: int, indent: str, lines: list[str]) -> None:
    """Adds the lines that look into a struct, which is in a variable."""
    here, inside = f"r{depth}", f"r{depth + 1}"
    for role, name in (one for one in fields.own if one[0] in roles):
        if name == TOPIC_ID:
            test = f"{here}.{name} != NO_UUID and {role}_wanted(topics(bytes({here}.{name})))"
        else:
            test = f"{role}_wanted({here}.{name})"
        lines.append(f"{indent}if {test}: return True")
    for role, name in (one for one in fields.lists if one[0] in roles):
        value = "named(value, TOPIC, topics)" if role == TOPIC else "value"
        lines.append(f"{indent}for value in {here}.{name} or ():")
        lines.append(f"{indent}    if {role}_wanted({value}): return True")
    for name, is_array, inner in fields.inner:
        if not inner.roles.intersection(roles):
            continue
        if is_array:
            lines.append(f"{indent}for {inside} in {here}.{name} or ():")
        else:
            lines.append(f"{indent}{inside} = {here}.{name}")
            lines.append(f"{indent}if {inside} is not None:")
        _find(inner, roles, depth + 1, f"{indent}    ", lines)


def check_of(message: str, wanted: Wanted, topics: TopicNames) -> Check | None:
    """Returns whether a request names everything that is wanted: in one element, where the fields are those of an
    element. None if requests of this kind cannot.
    """
    return _check(fields_of(message), wanted, topics)


def _check(fields: Fields, wanted: Wanted, topics: TopicNames) -> Check | None:
    if not fields.roles >= wanted.keys():
        return None
    own = [_probe(name, role, wanted[role], topics) for role, name in fields.own if role in wanted]
    inner: dict[frozenset[str], Check | None] = {}

    def below(left: frozenset[str]) -> Check | None:
        """The check of what is inside of the struct, for what its own fields do not say."""
        if left not in inner:
            inner[left] = _inside(fields, {role: wanted[role] for role in wanted if role in left}, topics)
        return inner[left]

    usual = frozenset(wanted) - {role for role, _ in own}
    check_inside = below(usual) if usual else None
    if usual and check_inside is None:
        return None

    if not own:
        return check_inside

    def check(part: object) -> bool:
        for _, probe in own:
            is_right = probe(part)
            if is_right is False:
                return False
            if is_right is None:
                return check_rest(part)
        return check_inside is None or check_inside(part)

    def check_rest(part: object) -> bool:
        """A field is empty: another one of the struct, or one inside of it, may say the same."""
        found: set[str] = set()
        for role, probe in own:
            is_right = probe(part)
            if is_right is False:
                return False
            if is_right:
                found.add(role)
        left = frozenset(wanted) - found
        rest = below(left) if left else None
        return not left or (rest is not None and rest(part))

    return check


def _inside(fields: Fields, wanted: Wanted, topics: TopicNames) -> Check | None:
    """Returns the check of the arrays and structs in a struct; None if they cannot name all that is wanted."""
    lists = [(role, name) for role, name in fields.lists if role in wanted]
    parts = [
        (name, is_array, check)
        for name, is_array, one in fields.inner
        if (check := _check(one, wanted, topics)) is not None
    ]
    if not parts and not {role for role, _ in lists} >= wanted.keys():
        return None

    def check_inside(part: object) -> bool:
        if lists:
            found = {
                role
                for role, name in lists
                if any(wanted[role](named(value, role, topics)) for value in getattr(part, name) or ())
            }
            if len(found) == len(wanted):
                return True
        for name, is_array, check in parts:
            value = getattr(part, name)
            if is_array:
                for element in value or ():
                    if check(element):
                        return True
            elif value is not None and check(value):
                return True
        return False

    return check_inside


def _probe(name: str, role: str, test: Callable[[object], bool], topics: TopicNames) -> tuple[str, Probe]:
    """Returns the test of a field of a struct; the result is None if the field is empty."""

    def probe(part: object) -> bool | None:
        value = getattr(part, name)
        if value is None or value == "":
            return None
        return test(value)

    def probe_id(part: object) -> bool | None:
        value = getattr(part, name)
        return None if value == NO_UUID else test(topics(bytes(value)))

    def probe_number(part: object) -> bool:
        return test(getattr(part, name))

    return role, probe_id if name == TOPIC_ID else probe_number if role == PARTITION else probe


def named(value: object, role: str, topics: TopicNames) -> object:
    """A value; the name of a topic in place of its id."""
    if role == TOPIC and isinstance(value, bytes | bytearray | memoryview):
        return topics(bytes(value))
    return value
