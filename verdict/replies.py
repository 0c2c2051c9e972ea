"""What replies have in common, whatever their API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..protocol import messages as m
from ..protocol.structs import Struct
from .events import Reply


class PartitionError(NamedTuple):
    """`topic`: its name, or its id."""

    topic: str | bytes
    partition: int
    code: int


def errors_of(reply: Reply) -> list[int]:
    """The error codes of a reply, wherever they are; none for success."""
    if reply.errors is None:
        reply.errors = [code for code in _codes(reply.message) if code] if reply.message is not None else []
    return reply.errors


def _codes(message: Struct) -> Iterable[int]:
    """The codes of a reply; those that come most often have a short way."""
    if isinstance(message, m.ProduceResponse):
        return [one.error_code for topic in message.responses for one in topic.partition_responses]
    if isinstance(message, m.FetchResponse):
        codes = [one.error_code for topic in message.responses for one in topic.partitions]
        return [message.error_code, *codes]
    return _all_codes(message)


def _all_codes(message: Struct) -> Iterator[int]:
    kind: type = type(message)
    codes, lists = _places(kind)
    for name in codes:
        yield getattr(message, name)
    for name in lists:
        value = getattr(message, name)
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            for one in value:
                yield from _all_codes(one)


@cache
def _places(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that are error codes, and those that may be arrays of structs: not those whose default is a value."""
    assert issubclass(kind, Struct)
    codes = tuple(name for name in kind.__slots__ if name.endswith("error_code"))
    may_be_lists = (name for name in kind.__slots__ if kind.defaults[name] in (list, None))
    return codes, tuple(name for name in may_be_lists if name != "unknown_tags")


def partition_errors(reply: Reply) -> Iterable[PartitionError]:
    """The partitions of a reply to Produce, Fetch or ListOffsets that have errors."""
    return [one for one in _partitions(reply) if one.code] if errors_of(reply) else ()


def _partitions(reply: Reply) -> Iterator[PartitionError]:
    produced, fetched, listed = (
        reply.of(m.ProduceResponse),
        reply.of(m.FetchResponse),
        reply.of(m.ListOffsetsResponse),
    )
    if produced is not None:
        for made in produced.responses:
            for one in made.partition_responses:
                yield PartitionError(made.name or made.topic_id, one.index, one.error_code)
    elif fetched is not None:
        for got in fetched.responses:
            for part in got.partitions:
                yield PartitionError(got.topic or got.topic_id, part.partition_index, part.error_code)
    elif listed is not None:
        for topic in listed.topics:
            for found in topic.partitions:
                yield PartitionError(topic.name, found.partition_index, found.error_code)
