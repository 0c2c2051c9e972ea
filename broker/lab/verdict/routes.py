"""The verdict on clients: examines the clients of the broker, by the rules of the reference."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, TypedDict, cast

from ....verdict.badge import badge
from ....verdict.html_report import POLICY, html
from ....verdict.report import ClientReport
from ....verdict.rule import Examination
from ...later import Later, after
from ..faults.rules import Faults
from ..faults.rules import Rule as FaultRule
from ..lab import Lab
from ..routes import Nothing, Page, Refused, route
from ..shapes import Invalid
from .live import Answer, Live
from .provocations import METRICS, Provocation, provocations, why_absent

SUBSCRIPTION: Final = "ottla.verdict"


class Verdicts:
    """The verdict of a server, while one is asked for."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._live: Live | None = None
        self._begun: list[Live] | None = None  # whose programs may work still
        self.provoked: list[tuple[str, FaultRule]] = []
        """What the examination provokes, with the rule of faults."""
        self.not_provoked: list[tuple[Provocation, str]] = []
        """What it cannot provoke, with the reason."""

    def start(self, examination: Examination | None, seed: int | None) -> Live:
        """Begins a verdict. `seed`: of what the examination provokes; None provokes nothing. Raises OverflowError if
        there is one, or if there are too many faults; OSError if its program cannot be started.
        """
        if self._live is not None:
            raise OverflowError("the broker examines its clients already")
        self._live = Live(examination, self._lab.broker, self._lab.server.machine)
        self._note_begun(self._live)
        self._lab.server.intercept(self._live)
        self.provoked, self.not_provoked = [], []
        try:
            if examination is not None and seed is not None:
                faults = self._lab.part(Faults)
                for one in provocations(examination, seed):
                    why = why_absent(one.fault, self._lab.server)
                    if why is None:
                        self.provoked.append((one.what, faults.add(one.fault)))
                    else:
                        self.not_provoked.append((one, why))
                self._lab.broker.client_metrics.subscribe(SUBSCRIPTION, METRICS.get(examination, {}))
        except (OverflowError, Invalid):
            self.stop()
            raise
        return self._live

    def _note_begun(self, live: Live) -> None:
        if self._begun is None:
            self._begun = []
            self._lab.server.at_end(self._close)
        self._begun = [one for one in self._begun if not one.has_ended]
        self._begun.append(live)

    def _close(self) -> None:
        for live in self._begun or ():
            live.close()

    def get(self) -> Live:
        """Raises LookupError if there is none."""
        if self._live is None:
            raise LookupError(
                "the broker does not examine its clients: POST /v1/verdict (`ottla lab call start_verdict`) begins it"
            )
        return self._live

    def stop(self) -> Live:
        """Ends it; what was asked is answered still. Raises LookupError."""
        live = self.get()
        self._lab.server.release(live)
        live.end()
        for _, rule in self.provoked:
            with suppress(LookupError):  # a request has removed the rule meanwhile
                self._lab.part(Faults).remove(rule.number)
        self._lab.broker.client_metrics.subscribe(SUBSCRIPTION, {})
        self._live = None
        return live

    def reset(self) -> None:
        if self._live is not None:
            self.stop()


@dataclass(frozen=True)
class VerdictAsked:
    """Which rules."""

    examination: Annotated[Examination | None, "Only the rules of this examination; all without it."] = None
    provokes: Annotated[bool, "Whether the faults of the examination provoke what does not occur by itself."] = False
    seed: Annotated[int, "Moves the occasions of these faults by a few requests; 0 leaves them."] = 0

    def __post_init__(self) -> None:
        if self.provokes and self.examination is None:
            raise Invalid("provokes", "needs an examination, whose faults it means")


@dataclass(frozen=True)
class VerdictWanted:
    """Which report."""

    client_id: Annotated[str | None, "Only the clients with this client id."] = None
    format: Annotated[
        Literal["json", "html", "svg"] | None,
        "`html`: a page. `svg`: a badge. Without it the header Accept chooses; JSON if it names none of the three.",
    ] = None


class ProvokedView(TypedDict):
    """A fault of the examination. `fault`: its number; `nth`: which of the requests of the API meets it; `applied`:
    whether it did.
    """

    what: str
    fault: int
    api: str
    nth: int
    does: str
    matched: int
    applied: bool


class NotProvokedView(TypedDict):
    """A fault of the examination that there cannot be with the release that the broker emulates. `why`: what that does
    not have.
    """

    what: str
    api: str
    why: str


class VerdictView(TypedDict):
    """What is known of each client so far. `provoked`: the faults of the examination; `not_provoked`: those that there
    cannot be; `events`: requests, replies and
    others that were recorded; `dropped`: those that the program beside the broker did not take fast enough, from which
    nothing is concluded; `unexamined`: requests of clients beyond the first 1,000.
    """

    examination: Examination | None
    provoked: list[ProvokedView]
    not_provoked: list[NotProvokedView]
    events: int
    dropped: int
    unexamined: int
    clients: Iterable[ClientReport]


class _Provoked(NamedTuple):
    """The faults of an examination, as they are shown."""

    provoked: list[ProvokedView]
    not_provoked: list[NotProvokedView]


def _view(live: Live, faults: _Provoked, answer: Answer) -> VerdictView:
    return VerdictView(
        examination=live.examination,
        provoked=faults.provoked,
        not_provoked=faults.not_provoked,
        events=live.events,
        dropped=live.dropped,
        unexamined=answer.unexamined,
        clients=(json.loads(one) for one in answer.clients),
    )


def _asked(lab: Lab, live: Live, client_id: str | None = None) -> Later[VerdictView]:
    faults = _faults(lab)
    return after(live.ask(client_id), lambda found: _view(live, faults, found.get()))


def _faults(lab: Lab) -> _Provoked:
    verdicts = lab.part(Verdicts)
    return _Provoked(
        [_provoked(what, rule) for what, rule in verdicts.provoked],
        [NotProvokedView(what=one.what, api=str(one.fault.api), why=why) for one, why in verdicts.not_provoked],
    )


def _provoked(what: str, rule: FaultRule) -> ProvokedView:
    return ProvokedView(
        what=what,
        fault=rule.number,
        api=str(rule.fault.api or ""),
        nth=rule.fault.nth or 0,
        does=rule.action.text,
        matched=rule.matched,
        applied=bool(rule.applied),
    )


def _html(reply: object) -> Iterator[str]:
    return html(cast(VerdictView, reply)["clients"])


def _badge(reply: object) -> Iterator[str]:
    return badge(cast(VerdictView, reply)["clients"])


@route(
    "POST /v1/verdict",
    example=VerdictAsked("basic", provokes=True, seed=1),
    errors={409: "the broker examines its clients already, or the program that examines them cannot be started"},
)
def start_verdict(lab: Lab, asked: VerdictAsked) -> VerdictView:
    """Examines the clients from now on. One that is connected already is judged by what it does from now on. With
    `provokes` faults bring about what does not occur by itself.
    """
    try:
        live = lab.part(Verdicts).start(asked.examination, asked.seed if asked.provokes else None)
    except (OverflowError, OSError) as error:
        raise Refused(409, str(error)) from None
    return _view(live, _faults(lab), Answer(0, ()))


ERRORS: Final = {404: "the broker does not examine its clients", 503: "the program that examines them has ended"}


@route(
    "GET /v1/verdict",
    example=VerdictWanted(),
    errors=ERRORS,
    pages={
        "html": Page("text/html; charset=utf-8", _html, POLICY),
        "svg": Page("image/svg+xml; charset=utf-8", _badge, POLICY),
    },
)
def verdict(lab: Lab, asked: VerdictWanted) -> Later[VerdictView]:
    """Shows which rules each client has passed, failed, and not exercised. The reply includes all that clients did
    before the request.
    """
    return _asked(lab, lab.part(Verdicts).get(), asked.client_id)


@route("DELETE /v1/verdict", example=Nothing(), errors=ERRORS)
def stop_verdict(lab: Lab, asked: Nothing) -> Later[VerdictView]:
    """Ends the examination, and shows its report."""
    verdicts = lab.part(Verdicts)
    found = _asked(lab, verdicts.get())
    verdicts.stop()
    return found
