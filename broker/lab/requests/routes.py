"""Held requests: holds single requests and replies, shows them, and lets them go on in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, TypedDict, cast

from ....protocol.codec import as_plain
from ...config.secrets import masked
from ...later import Later, after
from ..lab import Lab
from ..routes import Refused, route
from ..shapes import Millis, Range, Size, example_values
from .holds import At, Held, Hold, HoldAsked, Holds, Then

WITHIN_MS_MAX = 600_000


class HoldView(TypedDict):
    """A hold. `asked`: as it was given. `held`: how many requests it has held; `waiting`: those that wait now."""

    number: int
    asked: dict[str, object]
    held: int
    waiting: int


class HoldsView(TypedDict):
    holds: list[HoldView]


class HeldView(TypedDict):
    """A request that is held, or whose reply is. `number`: by which it is released; `hold`: which holds it.
    `waiting_ms`: how long, in the broker's time. `reply`: decoded, if the reply is held.
    """

    number: int
    hold: int
    at: At
    waiting_ms: int
    connection: int
    client: str
    client_id: str | None
    principal: str
    listener: str
    api: str
    version: int
    correlation_id: int
    request: object
    reply: object


class HeldsView(TypedDict):
    requests: Iterable[HeldView]


class ReleasedView(TypedDict):
    """The numbers of the requests that were let go on, in this order."""

    released: list[int]


@dataclass(frozen=True)
class HoldNumber:
    number: Annotated[int, "The number of the hold.", Range(1)]


@dataclass(frozen=True)
class AllHolds:
    """Nothing more."""


@dataclass(frozen=True)
class HeldAsked:
    """Which held requests are shown, and how many the reply waits for."""

    hold: Annotated[int | None, "Only those of this hold.", Range(1)] = None
    at_least: Annotated[int, "Waits until so many are held.", Range(0, 100_000)] = 0
    within: Annotated[Millis, "How long it waits, in real time.", Range(0, WITHIN_MS_MAX)] = 10_000


@dataclass(frozen=True)
class Release:
    """Which requests go on: those with these numbers, in this order; or the first of a hold, or of all."""

    requests: Annotated[list[int], "Numbers of requests.", Size(0, 10_000)] = field(default_factory=list)
    hold: Annotated[int | None, "Only those of this hold.", Range(1)] = None
    count: Annotated[int | None, "Only so many, the oldest first.", Range(1)] = None
    then: Annotated[Then, "`close` closes their connections instead."] = "go-on"


def _hold_view(holds: Holds, hold: Hold) -> HoldView:
    asked = cast("dict[str, object]", example_values(hold.asked))
    return HoldView(number=hold.number, asked=asked, held=hold.held, waiting=len(holds.held(hold.number)))


def _held_view(one: Held, now_ms: int) -> HeldView:
    context = one.exchange.context
    return HeldView(
        number=one.number,
        hold=one.hold.number,
        at=one.hold.asked.at,
        waiting_ms=now_ms - one.since_ms,
        connection=one.exchange.line.number,
        client=context.client_address,
        client_id=context.client_id,
        principal=context.principal,
        listener=context.listener,
        api=context.api.name,
        version=context.version,
        correlation_id=context.correlation_id,
        request=masked(as_plain(one.exchange.request)),
        reply=None if one.reply is None else masked(as_plain(one.reply)),
    )


def _held_within(lab: Lab, holds: Holds, asked: HeldAsked) -> Later[None]:
    """Completes when enough is held; fails with Refused if that takes too long by the machine's clock: the broker's
    may stand still.
    """
    enough = holds.wait(asked.hold, asked.at_least)
    if enough.done:
        return enough
    outcome: Later[None] = Later()

    def late() -> None:
        enough.cancel()
        count = len(holds.held(asked.hold))
        outcome.fail(Refused(409, f"{count} of {asked.at_least} requests are held after {asked.within} ms"))

    def found(_: Later[None]) -> None:
        timer.cancel()
        outcome.finish(None)

    def cancel() -> None:
        timer.cancel()
        enough.cancel()

    timer = lab.server.machine.after(asked.within, late)
    enough.when_done(found)
    outcome.on_cancel = cancel
    return outcome


@route("POST /v1/requests/holds", example=HoldAsked(api="SyncGroup", group="orders"), errors={409: "too many holds"})
def hold_requests(lab: Lab, asked: HoldAsked) -> HoldView:
    """Holds requests from now on, or their replies."""
    holds = lab.part(Holds)
    try:
        return _hold_view(holds, holds.add(asked))
    except OverflowError as error:
        raise Refused(409, str(error)) from None


@route("GET /v1/requests/holds", example=AllHolds())
def list_request_holds(lab: Lab, asked: AllHolds) -> HoldsView:
    """Lists the holds of requests."""
    holds = lab.part(Holds)
    return {"holds": [_hold_view(holds, one) for one in holds]}


@route("GET /v1/requests", example=HeldAsked(), errors={409: "not so many are held in time"})
def list_requests(lab: Lab, asked: HeldAsked) -> Later[HeldsView]:
    """Shows the requests and replies that are held, oldest first; waits until some are."""
    holds = lab.part(Holds)

    def views() -> Iterator[HeldView]:
        for one in holds.held(asked.hold):
            yield _held_view(one, lab.broker.schedule.monotonic_ms())

    def shown(done: Later[None]) -> HeldsView:
        done.get()
        return {"requests": views()}

    return after(_held_within(lab, holds, asked), shown)


@route("POST /v1/requests/release", example=Release(), errors={404: "a request is not held"})
def release_requests(lab: Lab, asked: Release) -> ReleasedView:
    """Lets held requests and replies go on: all, some, or in another order."""
    holds = lab.part(Holds)
    numbers = asked.requests or [one.number for one in holds.held(asked.hold)][: asked.count]
    holds.release(numbers, asked.then)
    return {"released": list(dict.fromkeys(numbers))}


@route("DELETE /v1/requests/holds/{number}", example=HoldNumber(1), errors={404: "there is no such hold"})
def end_request_hold(lab: Lab, asked: HoldNumber) -> HoldView:
    """Ends a hold, and lets go on what it holds."""
    holds = lab.part(Holds)
    hold = holds.remove(asked.number)
    holds.release([one.number for one in holds.held(hold.number)], "go-on")
    return _hold_view(holds, hold)
