"""Counts the errors in a reply: all its `error_code` fields, found by a plan that is made once per response."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from ...protocol import schema
from ...protocol.encoded import Encoded
from ...protocol.schema import StructSchema


class Plan(NamedTuple):
    """Whether a struct has an error code, and which of its arrays contain structs that have one."""

    has_code: bool
    lists: tuple[tuple[str, Plan], ...]


@cache
def plan_of(response: str) -> Plan:
    return _plan(schema.load(response).root)


@cache
def plan_of_element(response: str, array: str) -> Plan:
    """Returns the plan of an element of an array of a response, such as `topics.partitions`."""
    plan = plan_of(response)
    for field in array.split("."):
        plan = dict(plan.lists).get(field, Plan(False, ()))
    return plan


def _plan(struct: StructSchema) -> Plan:
    lists = []
    for f in struct.fields:
        if f.struct is not None and f.is_array:
            inner = _plan(f.struct)
            if inner.has_code or inner.lists:
                lists.append((f.name, inner))
    return Plan(any(f.name == "error_code" for f in struct.fields), tuple(lists))


def count(message: Any, plan: Plan, api_key: int, errors: Counter[tuple[int, int]]) -> None:
    """Adds the errors of a reply to the counters."""
    if plan.has_code and message.error_code:
        errors[api_key, int(message.error_code)] += 1
    for name, inner in plan.lists:
        items = getattr(message, name)
        if not items or type(items) is Encoded:  # encoded elements were counted when they were encoded
            continue
        if inner.lists:
            for item in items:
                count(item, inner, api_key, errors)
            continue
        for item in items:  # most elements of a reply are without nested arrays: avoid a call for each
            if item.error_code:
                errors[api_key, int(item.error_code)] += 1
