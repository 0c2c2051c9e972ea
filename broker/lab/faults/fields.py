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
from ..seam import Test

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


OF_CONTEXT = {
    "versions": "context.version",
    "client_id": '(context.client_id or "")',
    "principal": "context.peer.principal",
    "listener": "context.peer.listener",
    "node": 'context.broker.config.values["node.id"]',
}
"""What a context has of a name."""
FOUND = "return then(context, r0)"


class Sought(NamedTuple):
    """What a finder looks for: a value of one of these roles, or of these names of OF_CONTEXT. `plain`: those with one
    value, which is given in place of a test. `is_pair`: a partition, of a topic. `with_sessions`: fetch sessions may
    have it, too.
    """

    names: tuple[str, ...]
    plain: frozenset[str]
    is_pair: bool
    with_sessions: bool

    def test(self, name: str, value: str) -> str:
        return f"{value} == {name}_wanted" if name in self.plain else f"{name}_wanted({value})"


@cache
def finder_of(message: str, sought: Sought) -> Callable[..., Test]:
    """Returns what makes the test whether a request has what is sought, anywhere.

    It takes what finds topics; `then`, which is asked about a request that has it; `has`, which tells the same of its
    fetch session, if it may have one; and for each name the test of its values, or the value. A request is looked
    through once, whatever the number of names.
    """
    names = sought.names
    lines = [f"def make(topics, then, has, {', '.join(f'{name}_wanted' for name in names)}):"]
    lines += ["    def find(context, r0):"]
    lines += [f"        if {sought.test(name, OF_CONTEXT[name])}: {FOUND}" for name in names if name in OF_CONTEXT]
    roles = tuple(name for name in names if name not in OF_CONTEXT)
    if roles:
        _find(fields_of(message), sought, roles, 0, " " * 8, lines)
    if sought.with_sessions:
        lines += [f"        if r0.session_id and has(context, r0): {FOUND}"]
    lines += ["        return False", "    return find"]
    known: dict[str, object] = {"NO_UUID": NO_UUID, "named": named, "TOPIC": TOPIC}
    return compile_function(f"{' '.join(names)} of {message}", "make", "\n".join(lines), known)


def _find(fields: Fields, sought: Sought, roles: tuple[str, ...], depth: int, indent: str, lines: list[str]) -> None:
    """Adds the lines that look into a struct, which is in a variable."""
    here, inside = f"r{depth}", f"r{depth + 1}"
    tests = []
    for role, name in (one for one in fields.own if one[0] in roles):
        if name == TOPIC_ID:
            of_id = sought.test(role, f"topics(bytes({here}.{name}))")
            tests.append(f"{here}.{name} != NO_UUID and {of_id}")
        else:
            tests.append(sought.test(role, f"{here}.{name}"))
    if tests and sought.is_pair and TOPIC in roles:
        lines.append(f"{indent}if {' or '.join(tests)}:")
        _find(fields, sought, (PARTITION,), depth, f"{indent}    ", lines)
        return
    lines += [f"{indent}if {test}: {FOUND}" for test in tests]
    for role, name in (one for one in fields.lists if one[0] in roles):
        value = "named(value, TOPIC, topics)" if role == TOPIC else "value"
        lines.append(f"{indent}for value in {here}.{name} or ():")
        lines.append(f"{indent}    if {sought.test(role, value)}: {FOUND}")
    for name, is_array, inner in fields.inner:
        if not inner.roles.intersection(roles):
            continue
        if is_array:
            lines.append(f"{indent}for {inside} in {here}.{name} or ():")
        else:
            lines.append(f"{indent}{inside} = {here}.{name}")
            lines.append(f"{indent}if {inside} is not None:")
        _find(inner, sought, roles, depth + 1, f"{indent}    ", lines)


def names_partitions_of_topics(fields: Fields) -> bool:
    """Whether each topic of a request stands in a struct with its partitions, and each partition in one of a topic."""
    here = {role for role, _ in fields.own}
    if TOPIC in here:
        return PARTITION in fields.roles and TOPIC not in {role for role, _ in fields.lists}
    of_both = [inner for _, _, inner in fields.inner if not inner.roles.isdisjoint((TOPIC, PARTITION))]
    apart = here | {role for role, _ in fields.lists}
    return bool(of_both) and apart.isdisjoint((TOPIC, PARTITION)) and all(map(names_partitions_of_topics, of_both))


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
