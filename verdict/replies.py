"""What replies have in common, whatever their API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..protocol import messages as m
from ..protocol import schema
from ..protocol.emit import compile_function
from ..protocol.schema import StructSchema
from ..protocol.structs import Struct
from .events import Reply


class PartitionError(NamedTuple):
    """`topic`: its name, or its id. `has_leader`: whether the reply says where the leader is (KIP-951)."""

    topic: str | bytes
    partition: int
    code: int
    has_leader: bool = False


def errors_of(reply: Reply) -> list[int]:
    """The error codes of a reply, wherever they are; none for success."""
    if reply.errors is None:
        message = reply.message
        reply.errors = [] if message is None else _codes_of(type(message).__name__)(message)
    return reply.errors


@cache
def _codes_of(name: str) -> Callable[[Struct], list[int]]:
    """Returns the function that collects the error codes of a reply that are not 0, compiled by its schema: it looks
    only into arrays whose elements may have some.
    """
    lines = ["def codes(r0):", "    found = []"]
    _collect(schema.load(name).root, 0, "    ", lines)
    lines.append("    return found")
    return compile_function(f"codes of {name}", "codes", "\n".join(lines), {})


def _collect(struct: StructSchema, depth: int, indent: str, lines: list[str]) -> bool:
    """Adds the lines that look into a struct, which is in a variable; returns whether it may have codes."""
    here, has_codes = f"r{depth}", False
    for one in struct.fields:
        if one.name.endswith("error_code"):
            has_codes = True
            lines.append(f"{indent}if {here}.{one.name}: found.append({here}.{one.name})")
        elif one.struct is not None and one.is_array:
            inner = [f"{indent}for r{depth + 1} in {here}.{one.name} or ():"]
            if _collect(one.struct, depth + 1, f"{indent}    ", inner):
                has_codes = True
                lines += inner
    return has_codes


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
                has_leader = one.error_code != 0 and one.current_leader.leader_epoch >= 0
                yield PartitionError(made.name or made.topic_id, one.index, one.error_code, has_leader)
    elif fetched is not None:
        for got in fetched.responses:
            for part in got.partitions:
                has_leader = part.error_code != 0 and part.current_leader.leader_epoch >= 0
                yield PartitionError(got.topic or got.topic_id, part.partition_index, part.error_code, has_leader)
    elif listed is not None:
        for topic in listed.topics:
            for found in topic.partitions:
                yield PartitionError(topic.name, found.partition_index, found.error_code)
