"""Traces: starts and ends traces of requests and replies, and shows their last events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypedDict, cast

from ...later import Later
from ..lab import Lab
from ..routes import Nothing, Refused, route
from ..shapes import Range, example_values
from .events import FORMAT
from .tracer import TraceAsked
from .traces import Trace, Traces

EVENTS_AT_ONCE = 10_000


class TraceView(TypedDict):
    """A trace. `file`: its path, null without one. `events`: how many there were; `bytes`: what was recorded of them
    for the file; `dropped`: events that the file does not have, because it was written too slowly.
    """

    number: int
    asked: dict[str, object]
    file: str | None
    events: int
    bytes: int
    dropped: int


class TracesView(TypedDict):
    """`directory`: where files of traces go, empty if there is none."""

    directory: str
    traces: list[TraceView]


class TraceEventsView(TypedDict):
    """Events in the form of the lines of a trace's file, oldest first. `head`: the first line of such a file. `next`:
    what to give as `after` to get those that follow; `missed`: how many after `after` are not kept any more.
    """

    format: int
    head: dict[str, object]
    events: Iterable[dict[str, object]]
    next: int
    missed: int


@dataclass(frozen=True)
class TraceNumber:
    number: Annotated[int, "The number of the trace.", Range(1)]


@dataclass(frozen=True)
class TraceEventsAsked:
    """Which events."""

    number: Annotated[int, "The number of the trace.", Range(1)]
    last: Annotated[int | None, "Only so many, the latest.", Range(1)] = None
    after: Annotated[int, "Only those after this one.", Range(0)] = 0
    limit: Annotated[int, "At most so many.", Range(1, EVENTS_AT_ONCE)] = 1000


def _view(trace: Trace) -> TraceView:
    tracer = trace.tracer
    tracer.flush()
    return TraceView(
        number=trace.number,
        asked=cast("dict[str, object]", example_values(tracer.given)),
        file=trace.path or None,
        events=tracer.ring.last,
        bytes=tracer.bytes,
        dropped=tracer.dropped,
    )


@route(
    "POST /v1/traces",
    example=TraceAsked(client_id="shop-*"),
    errors={409: "too many traces, no directory for files, or the file cannot be written"},
)
def start_trace(lab: Lab, asked: TraceAsked) -> TraceView:
    """Traces requests and replies from now on."""
    try:
        return _view(lab.part(Traces).start(asked))
    except (OverflowError, OSError) as error:
        raise Refused(409, str(error)) from None


@route("GET /v1/traces", example=Nothing())
def list_traces(lab: Lab, asked: Nothing) -> TracesView:
    """Lists the traces that are being written."""
    return TracesView(
        directory=lab.server.config["ottla.trace.directory"], traces=[_view(one) for one in lab.part(Traces)]
    )


@route("GET /v1/traces/{number}/events", example=TraceEventsAsked(1), errors={404: "there is no such trace"})
def trace_events(lab: Lab, asked: TraceEventsAsked) -> TraceEventsView:
    """Shows the last events of a trace."""
    tracer = lab.part(Traces).get(asked.number).tracer
    tracer.flush()
    given = asked.after if asked.last is None else max(asked.after, tracer.ring.last - asked.last)
    first, count, lines = tracer.ring.after(given, asked.limit, tracer.given.raw)
    head: dict[str, object] = json.loads(tracer.head())
    events = map(json.loads, lines)
    return TraceEventsView(format=FORMAT, head=head, events=events, next=first - 1 + count, missed=first - 1 - given)


@route("DELETE /v1/traces/{number}", example=TraceNumber(1), errors={404: "there is no such trace"})
def stop_trace(lab: Lab, asked: TraceNumber) -> Later[TraceView]:
    """Ends a trace. Answers when its file has everything."""
    trace = lab.part(Traces).stop(asked.number)
    later: Later[TraceView] = Later()
    trace.tracer.when_ended(lambda: later.finish(_view(trace)))
    return later
