"""Conditions on the JSON of a reply: a path to a value, and what the value must be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from ..shapes import Invalid, Millis, Range, shown

_PART = re.compile(r"""\.?([A-Za-z_][\w-]*)|\[(-?\d{1,9})\]|\["([^"]*)"\]|\[(\w+)=([^\]]*)\]""")
ABSENT = object()
NUMBER = int | float | None


@dataclass(frozen=True)
class Check:
    """A condition on the reply to a GET. Every comparison that is given must hold."""

    get: Annotated[str, "The path of a route, such as `topics/orders`."]
    path: Annotated[str, 'The value: `partitions[0].policy`, `topics[topic=orders].topic_id`, `labels["a.b"]`.'] = ""
    equals: Annotated[object, "The value is this."] = None
    differs: Annotated[object, "The value is not this."] = None
    at_least: Annotated[NUMBER, "The value is this number or more."] = None
    at_most: Annotated[NUMBER, "The value is this number or less."] = None
    contains: Annotated[object, "A list has this element, an object this key, a text this part."] = None
    length: Annotated[int | None, "The list, the object or the text has this length.", Range(0)] = None
    exists: Annotated[bool | None, "Whether there is a value that is not null; a refused GET has none."] = None

    def __post_init__(self) -> None:
        parts(self.path)
        if all(getattr(self, name) is None for name in COMPARISONS):
            raise Invalid("", f"needs a comparison, one of {', '.join(COMPARISONS)}")

    @property
    def target(self) -> str:
        """The path of what is asked for."""
        return self.get if self.get.startswith("/") else f"/v1/{self.get}"

    def problem(self, reply: object) -> str | None:
        """What does not hold; None if all does."""
        value = value_at(reply, self.path)
        here = self.path or "the reply"
        if self.exists is not None and (value not in (ABSENT, None)) != self.exists:
            return f"{here} is there: {shown(value)}" if not self.exists else f"{here} is not there"
        if value is ABSENT:
            return None if self.exists is False else f"{here} is not there"
        if self.equals is not None and not same(value, self.equals):
            return f"{here} is {shown(value)}, not {shown(self.equals)}"
        if self.differs is not None and same(value, self.differs):
            return f"{here} is {shown(value)}"
        if self.at_least is not None and not (_is_number(value) and value >= self.at_least):  # type: ignore[operator]
            return f"{here} is {shown(value)}, not {self.at_least} or more"
        if self.at_most is not None and not (_is_number(value) and value <= self.at_most):  # type: ignore[operator]
            return f"{here} is {shown(value)}, not {self.at_most} or less"
        if self.contains is not None and not _contains(value, self.contains):
            return f"{here} is {shown(value)}, which does not contain {shown(self.contains)}"
        if self.length is not None and not (isinstance(value, list | dict | str) and len(value) == self.length):
            found = len(value) if isinstance(value, list | dict | str) else "none"
            return f"{here} has the length {found}, not {self.length}"
        return None


@dataclass(frozen=True)
class Until(Check):
    """A condition to wait for: the GET is repeated until it holds."""

    within: Annotated[Millis, "How long to wait, in the time of whoever runs the scenario."] = 30_000


COMPARISONS = ("equals", "differs", "at_least", "at_most", "contains", "length", "exists")


def same(value: object, other: object) -> bool:
    """Whether two values of JSON are equal; true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _contains(value: object, wanted: object) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return any(same(one, wanted) for one in value) if isinstance(value, list | dict) else False


def parts(path: str) -> list[tuple[str, str]]:
    """Splits a path into (kind, key): `key`, `index`, or a field's name with the value that it has. Raises Invalid."""
    found, at = [], 0
    while at < len(path):
        part = _PART.match(path, at)
        if part is None:
            raise Invalid("path", f"is no path of keys, [indexes] and [key=value] from {shown(path[at:])} on")
        name, index, quoted, field, value = part.groups()
        if index is not None:
            found.append(("index", index))
        elif field is not None:
            found.append((f"={field}", value))
        else:
            found.append(("key", name if name is not None else quoted))
        at = part.end()
    return found


def value_at(value: object, path: str) -> object:
    """The value that a path leads to; ABSENT if there is none."""
    for kind, key in parts(path):
        if kind == "key":
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        elif not isinstance(value, list):
            return ABSENT
        elif kind == "index":
            value = value[int(key)] if -len(value) <= int(key) < len(value) else ABSENT
        else:
            chosen = (one for one in value if isinstance(one, dict) and str(one.get(kind[1:])) == key)
            value = next(chosen, ABSENT)
    return value
