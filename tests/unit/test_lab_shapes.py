"""Values from outside as classes: what is taken, and what the error says of what is not."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from ottla.broker.lab.shapes import Duration, Invalid, Millis, Range, Size, json_of, parse


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Close:
    kind: Literal["close"] = "close"
    when: Literal["before", "after"] = "before"


@dataclass(frozen=True)
class Delay:
    by: Millis
    kind: Literal["delay"] = "delay"


@dataclass(frozen=True)
class Rule:
    api: Annotated[str, "The name of an API.", Size(1, 20)]
    share: Annotated[float, Range(0, 1)] = 1.0
    times: Annotated[int | None, Range(1)] = None
    on: bool = True
    colour: Colour = Colour.RED
    nodes: Annotated[list[int], Size(high=3)] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    action: Close | Delay = field(default_factory=Close)
    error: str | int = "NONE"
    more: object = None
    other: Close | Delay | None = None
    mixed: str | int | None = None
    short: Annotated[str | int | None, Size(1, 3)] = None


@dataclass(frozen=True)
class Rules:
    rules: list[Rule]

    def __post_init__(self) -> None:
        names = [one.api for one in self.rules]
        if len(set(names)) < len(names):
            raise Invalid(f"rules[{len(names) - 1}].api", "is there twice")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"api": "Fetch"}, Rule("Fetch")),
        ({"api": "Fetch", "times": None, "share": 1}, Rule("Fetch", share=1.0)),
        ({"api": "Fetch", "times": 3.0}, Rule("Fetch", times=3)),
        ({"api": "Fetch", "colour": "blue", "nodes": [1, 2]}, Rule("Fetch", colour=Colour.BLUE, nodes=[1, 2])),
        ({"api": "Fetch", "action": {"kind": "delay", "by": "1.5s"}}, Rule("Fetch", action=Delay(1500))),
        ({"api": "Fetch", "action": {"kind": "delay", "by": 20}}, Rule("Fetch", action=Delay(20))),
        ({"api": "Fetch", "action": {"kind": "close", "when": "after"}}, Rule("Fetch", action=Close(when="after"))),
        ({"api": "Fetch", "error": 5, "labels": {"a": "b"}}, Rule("Fetch", error=5, labels={"a": "b"})),
        ({"api": "Fetch", "other": None, "mixed": None}, Rule("Fetch")),
        ({"api": "Fetch", "other": {"kind": "close"}, "mixed": 5}, Rule("Fetch", other=Close(), mixed=5)),
        ({"api": "Fetch", "more": {"any": [1]}}, Rule("Fetch", more={"any": [1]})),
        ({"api": "Fetch", "short": 1000}, Rule("Fetch", short=1000)),
        ({"api": "Fetch", "short": 4.0}, Rule("Fetch", short=4)),
    ],
)
def test_a_value_becomes_an_object(value: object, expected: Rule) -> None:
    assert parse(Rule, value) == expected


@pytest.mark.parametrize(
    ("value", "place", "problem"),
    [
        ({}, "api", "is missing"),
        ([], "", "must be an object, found []"),
        ({"api": "Fetch", "shares": 1}, "shares", "unknown key (did you mean 'share'?)"),
        ({"api": "Fetch", "qqq": 1}, "qqq", "unknown key (known: api, share, "),
        ({"api": 1}, "api", "must be a string, found 1"),
        ({"api": ""}, "api", "must have at least 1 characters, has 0"),
        ({"api": "x" * 21}, "api", "must have at most 20 characters, has 21"),
        ({"api": "\ud800"}, "api", "must be valid Unicode"),
        ({"api": "F", "on": 1}, "on", "must be true or false, found 1"),
        ({"api": "F", "share": 2}, "share", "must be at most 1, found 2.0"),
        ({"api": "F", "share": float("nan")}, "share", "must be a finite number, found nan"),
        ({"api": "F", "share": 10**400}, "share", "must be a finite number, found inf"),
        ({"api": "F", "share": "1"}, "share", "must be a number, found '1'"),
        ({"api": "F", "times": True}, "times", "must be a number, found True"),
        ({"api": "F", "times": 0}, "times", "must be at least 1, found 0"),
        ({"api": "F", "times": 1 << 63}, "times", "must be a number of 64 bits"),
        ({"api": "F", "colour": "green"}, "colour", "must be one of red, blue, found 'green'"),
        ({"api": "F", "nodes": [1, "2"]}, "nodes[1]", "must be a number, found '2'"),
        ({"api": "F", "nodes": [1, 2, 3, 4]}, "nodes", "must have at most 3 elements, has 4"),
        ({"api": "F", "nodes": {}}, "nodes", "must be a list, found {}"),
        ({"api": "F", "labels": {"a": 1}}, "labels.a", "must be a string, found 1"),
        ({"api": "F", "action": {}}, "action", "needs the key 'kind', one of close, delay"),
        ({"api": "F", "action": {"kind": "open"}}, "action.kind", "must be one of close, delay, found 'open'"),
        ({"api": "F", "action": {"kind": "delay"}}, "action.by", "is missing"),
        ({"api": "F", "action": {"kind": "delay", "by": "1 day"}}, "action.by", "must be a duration such as 250ms"),
        ({"api": "F", "action": {"kind": "delay", "by": []}}, "action.by", "must be a duration such as 250ms"),
        ({"api": "F", "action": {"kind": "delay", "by": -1}}, "action.by", "must be at least 0 ms, found -1 ms"),
        ({"api": "F", "other": 5}, "other", "must be an object, found 5"),
        ({"api": "F", "other": {}}, "other", "needs the key 'kind', one of close, delay"),
        ({"api": "F", "mixed": []}, "mixed", "must be a string or a number, found []"),
        ({"api": "F", "error": []}, "error", "must be a string or a number, found []"),
        ({"api": "F", "short": 2.5}, "short", "must be a string or a number, found 2.5"),
        ({"api": "F", "short": ""}, "short", "must have at least 1 characters, has 0"),
    ],
)
def test_an_error_names_the_place(value: object, place: str, problem: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse(Rule, value)
    assert raised.value.place == place
    assert raised.value.problem.startswith(problem)


def test_places_are_paths_from_the_top() -> None:
    with pytest.raises(Invalid, match=r"^rules\[1\]\.action\.by: must be a duration"):
        parse(Rules, {"rules": [{"api": "A"}, {"api": "B", "action": {"kind": "delay", "by": "x"}}]})
    with pytest.raises(Invalid, match=r"^rules\[1\]\.api: is there twice$"):
        parse(Rules, {"rules": [{"api": "A"}, {"api": "A"}]})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "12", 12),
        (int, "-3", -3),
        (int, "x", "x"),
        (int, "9" * 5000, "9" * 5000),
        (float, "0.5", 0.5),
        (float, "2", 2),
        (bool, "true", True),
        (bool, "yes", "yes"),
        (str, "12", "12"),
        (Annotated[int | None, Duration()], "5s", "5s"),
        (Millis, "20", 20),
    ],
)
def test_texts_of_paths_and_queries_become_what_json_would_have(kind: object, text: str, value: object) -> None:
    found = json_of(kind, text)
    assert (found, type(found)) == (value, type(value))
