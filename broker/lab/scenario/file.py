"""Reads a scenario file.

name: a producer waits for a follower
steps:
  - seed: {topics: [{name: orders, partitions: 2}]}
  - hold: orders                                   # a route by its name; a value alone is its first key
  - until: {get: topics/orders, path: "partitions[0].log_end_offset", at_least: 1, within: 10s}
  - expect: {get: topics/orders, path: "partitions[0].high_watermark", equals: 0}
  - release: {topic: absent}
    refused: 404                                   # the step must be refused
  - add_fault: {api: Produce, error: NOT_LEADER_OR_FOLLOWER}
    as: fault                                      # ${fault.number} below is a value of the reply
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import cast

from ...config.config import ScenarioError
from ..faults import known
from ..faults.matching import Match
from ..http import Request
from ..routes import Refused, Route, every_route, find
from ..shapes import Invalid, hints, inside, parse, required, shown
from .checks import Check, Until
from .places import Lines, NotYaml, load

REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)(?:[.]?([^}]*))?\}")
CHECKS: Mapping[str, type[Check]] = {"expect": Check, "until": Until}
BESIDE = ("as", "refused")  # keys of a step beside its action
STEPS_MAX = 10_000


@dataclass(frozen=True)
class Step:
    """A step: `name` is that of a route, `expect` or `until`. `place` and `line`: where it is in the file. `known_as`:
    the name for its reply. `refused`: the status with which it must be refused.
    """

    name: str
    values: Mapping[str, object]
    place: str
    line: int
    known_as: str | None = None
    refused: int | None = None

    @property
    def is_check(self) -> bool:
        return self.name in CHECKS


@dataclass(frozen=True)
class Scenario:
    """The steps of a file."""

    file: str
    name: str
    steps: list[Step]
    lines: Lines = field(repr=False, default_factory=Lines)

    def where(self, place: str) -> str:
        """File and line of a place."""
        return f"{self.file}:{self.lines.of(place)}"


def routes_by_name() -> dict[str, Route]:
    """The routes that steps may name: those that take values and answer in JSON."""
    return {one.name: one for one in every_route() if not one.takes_request and one.path.startswith("/v1/")}


def read(path: str) -> Scenario:
    """Reads and checks a file. Raises ScenarioError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: the file is not UTF-8") from None
    return scenario_of(path, text)


def scenario_of(path: str, text: str) -> Scenario:
    """Raises ScenarioError."""
    try:
        found, lines = load(text)
    except NotYaml as error:
        raise ScenarioError(f"{path}:{error.line}: {error}" if error.line else f"{path}: {error}") from None
    try:
        return _scenario(path, found, lines)
    except Invalid as error:
        raise ScenarioError(f"{path}:{lines.of(error.place)}: {error}") from None


def _scenario(path: str, found: object, lines: Lines) -> Scenario:
    if not isinstance(found, dict):
        raise Invalid("", "a scenario is a mapping with the key 'steps'")
    for key in found:
        if key not in ("name", "steps"):
            raise Invalid(str(key), "unknown key (known: name, steps)")
    if not isinstance(found.get("steps"), list):
        raise Invalid("steps", "must be a list of steps")
    name = parse(str, found.get("name", Path(path).stem), "name")
    if len(found["steps"]) > STEPS_MAX:
        raise Invalid("steps", f"must have at most {STEPS_MAX} elements")
    routes, known, steps = routes_by_name(), set[str](), []
    for number, one in enumerate(found["steps"]):
        step = _step(one, f"steps[{number}]", routes, known, lines)
        steps.append(step)
        if step.known_as is not None:
            known.add(step.known_as)
    return Scenario(path, name, steps, lines)


def _step(found: object, place: str, routes: Mapping[str, Route], known: set[str], lines: Lines) -> Step:
    if not isinstance(found, dict):
        raise Invalid(place, f"must be a step such as 'hold: orders', found {shown(found)}")
    actions = [key for key in found if key not in BESIDE]
    if len(actions) != 1:
        raise Invalid(place, f"must have one action, has {', '.join(actions) or 'none'}")
    (name,) = actions
    if name not in routes and name not in CHECKS:
        raise Invalid(inside(place, name), f"there is no such step{_meant(name, [*CHECKS, *routes])}")
    kind = CHECKS[name] if name in CHECKS else routes[name].asked
    values = _values(kind, found[name], inside(place, name))
    known_as = parse(str, found["as"], inside(place, "as")) if "as" in found else None
    refused = parse(int, found["refused"], inside(place, "refused")) if "refused" in found else None
    used = references(values)
    if lacking := [one for one in used if one not in known]:
        raise Invalid(inside(place, name), f"no step before has 'as: {lacking[0]}'")
    if used:
        _check_keys(kind, values, inside(place, name))  # the other values are known when it runs
        values_now = {key: value for key, value in values.items() if not references(value)}
        is_enough = required(kind) <= values_now.keys()
        asked = parse(kind, values_now) if is_enough and issubclass(kind, Match) else None
    else:
        asked = parse(kind, values, inside(place, name))
    if refused is None:
        _check(asked, inside(place, name))
    return Step(name, values, place, lines.of(place), known_as, refused)


def _values(kind: type, found: object, place: str) -> dict[str, object]:
    """The values of a step; one that is no mapping is that of the first key."""
    if isinstance(found, dict):
        return found
    if found is None:
        return {}
    names = [one.name for one in fields(kind)]
    if not names:
        raise Invalid(place, f"takes nothing, found {shown(found)}")
    return {names[0]: found}


def _check_keys(kind: type, values: Mapping[str, object], place: str) -> None:
    names, types_of = [one.name for one in fields(kind)], hints(kind)
    for key, value in values.items():
        if key not in names:
            raise Invalid(inside(place, key), f"unknown key (known: {', '.join(names)})")
        if not references(value):
            parse(cast(type, types_of[key]), value, inside(place, key))


def _check(asked: object, place: str) -> None:
    """What every broker would refuse is refused before the first step. Raises Invalid."""
    try:
        if isinstance(asked, Match):
            known.check(asked)
        elif isinstance(asked, Check):
            _check_target(asked)
    except Invalid as error:
        raise Invalid(inside(place, error.place), error.problem) from None


def _check_target(check: Check) -> None:
    """Whether there is such a resource. Raises Invalid."""
    path, _, query = check.target.partition("?")
    try:
        route, in_path = find("GET", path)
    except Refused as error:
        raise Invalid("get", error.problem) from None
    if not route.takes_request:
        try:
            route.read(in_path, Request("GET", path, b"", "", {}, query))
        except Invalid as error:
            raise Invalid("get", str(error)) from None


def _meant(given: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(given, names, 1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def references(value: object) -> list[str]:
    """The names of replies that `${name.path}` in a value refers to."""
    if isinstance(value, str):
        return [one[1] for one in REFERENCE.finditer(value)]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [name for one in inner for name in references(one)]
