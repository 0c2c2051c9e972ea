"""What a message of a trace says, by its schema: which fields name a topic, a group, an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from ..protocol import headers, schema
from ..protocol.schema import FieldSchema, StructSchema
from ..verdict.trace_lines import Event, number

TOPIC, GROUP, TRANSACTIONAL_ID = "topicName", "groupId", "transactionalId"
NO_ID: Final = "0" * 32
_ERROR_CODE: Final = "error_code"


class Leaf(NamedTuple):
    """A value of a message. `path`: like `topics[0].partitions[1].error_code`. `around`: the object that has it."""

    path: str
    field: FieldSchema
    value: object
    around: dict[str, object]


@cache
def schema_of(key: int, event: str) -> StructSchema | None:
    """The schema of the messages of a kind of event; None for an API that this version does not know."""
    request = headers.request_name(key)
    if request is None:
        return None
    return schema.load(request if event == "request" else headers.response_name(key)).root


@cache
def names_ids(key: int) -> bool:
    """Whether replies of an API have topics with their name and their id."""

    def has_both(struct: StructSchema) -> bool:
        inner = [field.struct for field in struct.fields if field.struct is not None]
        names = {TOPIC if field.entity == TOPIC else field.name for field in struct.fields}
        return {TOPIC, "topic_id"} <= names or any(map(has_both, inner))

    root = schema_of(key, "reply")
    return root is not None and has_both(root)


def leaves(event: Event) -> Iterator[Leaf]:
    """Yields the values of an event's message."""
    message = event.get("message")
    if not isinstance(message, dict):
        return
    root = schema_of(number(event, "key"), str(event["event"]))
    if root is not None:
        yield from _leaves(root, message, "")


def _leaves(struct: StructSchema, found: dict[str, object], path: str) -> Iterator[Leaf]:
    for field in struct.fields:
        if field.name not in found:
            continue
        value, here = found[field.name], f"{path}.{field.name}" if path else field.name
        items = value if isinstance(value, list) and field.is_array else None
        if items is None:
            yield from _leaf(field, value, here, found)
        for place, item in enumerate(items or ()):
            yield from _leaf(field, item, f"{here}[{place}]", found)


def _leaf(field: FieldSchema, value: object, path: str, around: dict[str, object]) -> Iterator[Leaf]:
    if field.struct is not None and isinstance(value, dict):
        yield from _leaves(field.struct, value, path)
    else:
        yield Leaf(path, field, value, around)


def errors(event: Event) -> list[tuple[str, int]]:
    """The paths and codes of the errors in a reply."""
    if event["event"] != "reply":
        return []
    return [
        (leaf.path, leaf.value)
        for leaf in leaves(event)
        if leaf.field.name.endswith(_ERROR_CODE) and isinstance(leaf.value, int) and leaf.value
    ]


class Topics:
    """The names of topic ids, as the messages of a trace tell them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, found: list[Leaf]) -> None:
        for leaf in found:
            topic_id = leaf.around.get("topic_id")
            if leaf.field.entity == TOPIC and isinstance(topic_id, str) and leaf.value and topic_id != NO_ID:
                self._names[topic_id] = str(leaf.value)

    def of(self, found: list[Leaf]) -> list[str]:
        """The topics that a message names, each once."""
        named = []
        for leaf in found:
            if leaf.field.entity == TOPIC and leaf.value:
                named.append(str(leaf.value))
            elif leaf.field.name == "topic_id" and leaf.value != NO_ID and isinstance(leaf.value, str):
                named.append(self._names.get(leaf.value, leaf.value))
        return list(dict.fromkeys(named))


def groups(found: list[Leaf]) -> list[str]:
    """The groups that a message names, each once."""
    return list(dict.fromkeys(str(leaf.value) for leaf in found if leaf.field.entity == GROUP and leaf.value))


def transactional_ids(found: list[Leaf]) -> list[str]:
    return list(
        dict.fromkeys(str(leaf.value) for leaf in found if leaf.field.entity == TRANSACTIONAL_ID and leaf.value)
    )
