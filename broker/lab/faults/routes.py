"""Faults: adds, lists and removes rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict, cast

from ..lab import Lab
from ..routes import Refused, route
from ..shapes import Range, example_values
from .request_actions import Delay
from .rules import Fault, Faults, Rule


class AppliedView(TypedDict):
    """One application of a rule. `match`: the number of the match. `what`: the request."""

    at_ms: int
    match: int
    what: str


class FaultView(TypedDict):
    """A rule. `fault`: as it was given. `matched`: the requests that it was for; `applied`: to how many of them it was
    applied; `left`: how often it still can be; `ends_in_ms`: after which time its duration is over; `is_over`: it is
    applied no more, because `times` or `duration` is used up; `latest`: its latest applications, only of a single rule.
    """

    number: int
    fault: dict[str, object]
    text: str
    matched: int
    applied: int
    left: int | None
    ends_in_ms: int | None
    is_over: bool
    latest: NotRequired[list[AppliedView]]


class FaultsView(TypedDict):
    faults: Iterable[FaultView]


@dataclass(frozen=True)
class FaultNumber:
    number: Annotated[int, "The number of the rule.", Range(1)]


@dataclass(frozen=True)
class AllFaults:
    """Nothing more."""


def view(lab: Lab, rule: Rule, is_single: bool = True) -> FaultView:
    left = None if rule.fault.times is None else rule.fault.times - rule.applied
    until_ms = rule.until_ms
    found = FaultView(
        number=rule.number,
        fault=cast("dict[str, object]", example_values(rule.fault)),
        text=rule.action.text,
        matched=rule.matched,
        applied=rule.applied,
        left=left,
        ends_in_ms=None if until_ms is None else max(0, until_ms - lab.broker.schedule.monotonic_ms()),
        is_over=rule.is_over,
    )
    if is_single:
        found["latest"] = [AppliedView(at_ms=one.at_ms, match=one.match, what=one.what) for one in rule.events]
    return found


@route("POST /v1/faults", example=Fault(api="Heartbeat", times=1, action=Delay(50)), errors={409: "too many rules"})
def add_fault(lab: Lab, asked: Fault) -> FaultView:
    """Adds a rule: what happens to which requests, how often and until when."""
    try:
        return view(lab, lab.part(Faults).add(asked))
    except OverflowError as error:
        raise Refused(409, str(error)) from None


@route("GET /v1/faults", example=AllFaults())
def list_faults(lab: Lab, asked: AllFaults) -> FaultsView:
    """Lists the rules, and how often each matched and was applied."""

    def views() -> Iterator[FaultView]:
        for rule in list(lab.part(Faults)):
            yield view(lab, rule, is_single=False)

    return {"faults": views()}


@route("GET /v1/faults/{number}", example=FaultNumber(1), errors={404: "there is no such rule"})
def show_fault(lab: Lab, asked: FaultNumber) -> FaultView:
    """Shows a rule and its latest applications."""
    return view(lab, lab.part(Faults).get(asked.number))


@route("DELETE /v1/faults/{number}", example=FaultNumber(1), errors={404: "there is no such rule"})
def remove_fault(lab: Lab, asked: FaultNumber) -> FaultView:
    """Removes a rule; returns its counts."""
    return view(lab, lab.part(Faults).remove(asked.number))


@route("DELETE /v1/faults", example=AllFaults())
def remove_faults(lab: Lab, asked: AllFaults) -> FaultsView:
    """Removes all rules; returns their counts."""
    return {"faults": [view(lab, rule, is_single=False) for rule in lab.part(Faults).clear()]}
