"""Runs a scenario: a generator that yields what to ask and takes the answers, so that a command can run it over HTTP, a
broker within itself, and a test without either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from ..shapes import Invalid, parse
from .checks import ABSENT, Check, Until, value_at
from .file import CHECKS, REFERENCE, Scenario, Step, routes_by_name

POLL_MS = 50.0


class Ask(NamedTuple):
    """A request to make."""

    method: str
    target: str
    body: Mapping[str, object] | None


class Pause(NamedTuple):
    """A time to wait before the next request, of whoever runs the scenario."""

    ms: float


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    value: object


class StepReport(TypedDict):
    """What became of a step. `problem` is null if it passed."""

    number: int
    line: int
    step: str
    ms: float
    problem: str | None


class Report(TypedDict):
    """What became of a scenario; it ends with the first step that fails."""

    name: str
    file: str
    passed: bool
    steps: list[StepReport]
    not_run: int


Run = Generator[Ask | Pause, Answer | None, Report]


class StepFailed(Exception):
    pass


@dataclass
class _Running:
    scenario: Scenario
    now_ms: Callable[[], float]
    replies: dict[str, object]


def run(scenario: Scenario, now_ms: Callable[[], float], report: Callable[[StepReport], object]) -> Run:
    """Runs a scenario. `now_ms`: monotonic time. `report` is called after each step. Answers are sent to the generator
    for each Ask, None for each Pause.
    """
    running, done = _Running(scenario, now_ms, {}), list[StepReport]()
    for number, step in enumerate(scenario.steps, 1):
        began_ms, problem = now_ms(), None
        try:
            yield from _step(running, step)
        except StepFailed as error:
            problem = f"{scenario.where(step.place)}: {error}"
        except Invalid as error:
            problem = f"{scenario.where(error.place)}: {error}"
        taken = round(now_ms() - began_ms, 3)
        done.append(StepReport(number=number, line=step.line, step=_words(step), ms=taken, problem=problem))
        report(done[-1])
        if problem is not None:
            break
    passed = not done or done[-1]["problem"] is None
    left = len(scenario.steps) - len(done)
    return Report(name=scenario.name, file=scenario.file, passed=passed, steps=done, not_run=left)


def _words(step: Step) -> str:
    return f"{step.name} {json.dumps(step.values, ensure_ascii=False)}" if step.values else step.name


def _step(running: _Running, step: Step) -> Generator[Ask | Pause, Answer | None, None]:
    place = f"{step.place}.{step.name}"
    values = _filled(step.values, running.replies)
    assert isinstance(values, dict)
    if step.is_check:
        yield from _check(running, parse(CHECKS[step.name], values, place))
        return
    route = routes_by_name()[step.name]
    parse(route.asked, values, place)
    answer = yield Ask(route.method, *route.target(values))
    assert answer is not None
    if step.refused is not None and answer.status != step.refused:
        raise StepFailed(f"{step.name} was answered with {answer.status}, not refused with {step.refused}")
    if step.refused is None and answer.status >= 400:
        raise StepFailed(f"{step.name} was refused: {_error(answer)}")
    if step.known_as is not None:
        running.replies[step.known_as] = answer.value


def _check(running: _Running, check: Check) -> Generator[Ask | Pause, Answer | None, None]:
    until_ms = running.now_ms() + (check.within if isinstance(check, Until) else 0)
    target = check.target
    while True:
        answer = yield Ask("GET", target, None)
        assert answer is not None
        problem = check.problem(answer.value if answer.status < 400 else ABSENT)
        if problem is None:
            return
        if answer.status >= 400:
            problem = f"GET {target} was refused: {_error(answer)}"
        if running.now_ms() >= until_ms:
            raise StepFailed(f"not within {check.within} ms: {problem}" if isinstance(check, Until) else problem)
        yield Pause(POLL_MS)


def _error(answer: Answer) -> str:
    return str(answer.value.get("error", answer.status)) if isinstance(answer.value, dict) else str(answer.status)


def _filled(value: object, replies: Mapping[str, object]) -> object:
    """A value with what `${name.path}` refers to. Raises StepFailed."""
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole is not None:
            return _referred(whole[1], whole[2], replies)
        return REFERENCE.sub(lambda found: str(_referred(found[1], found[2], replies)), value)
    if isinstance(value, Mapping):
        return {key: _filled(one, replies) for key, one in value.items()}
    return [_filled(one, replies) for one in value] if isinstance(value, list) else value


def _referred(name: str, path: str | None, replies: Mapping[str, object]) -> object:
    found = value_at(replies.get(name, ABSENT), path or "")
    if found is ABSENT:
        raise StepFailed(f"the reply of {name} has no {path or 'value'}")
    return found
