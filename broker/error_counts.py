"""Which errors a reply carries, wherever it carries them: its `error_code`s, found by a plan made once per response."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from ..protocol import schema
from ..protocol.schema import StructSchema


class Plan(NamedTuple):
    """Whether a struct has a code, and which of its lists hold structs that have one."""

    has_code: bool
    lists: tuple[tuple[str, Plan], ...]


@cache
def plan_of(response: str) -> Plan:
    return _plan(schema.load(response).root)


def _plan(struct: StructSchema) -> Plan:
    lists = []
    for f in struct.fields:
        if f.struct is not None and f.is_array:
            inner = _plan(f.struct)
            if inner.has_code or inner.lists:
                lists.append((f.name, inner))
    return Plan(any(f.name == "error_code" for f in struct.fields), tuple(lists))


def count(message: Any, plan: Plan, api_key: int, errors: Counter[tuple[int, int]]) -> None:
    """Adds the errors of a reply."""
    if plan.has_code and message.error_code:
        errors[api_key, int(message.error_code)] += 1
    for name, inner in plan.lists:
        items = getattr(message, name)
        if not items:
            continue
        if inner.lists:
            for item in items:
                count(item, inner, api_key, errors)
            continue
        for item in items:  # most of a reply are such: no call for each
            if item.error_code:
                errors[api_key, int(item.error_code)] += 1
