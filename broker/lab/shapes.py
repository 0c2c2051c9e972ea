"""Values from outside, read into classes: JSON bodies, parts of paths, query parameters and steps of scenario files.

A class says by its annotations what it takes:

    @dataclass(frozen=True)
    class Rule:
        api: Annotated[str, "The name of the API."]
        error: str | None = None
        delay_ms: Millis = 0
        share: Annotated[float, "The share of requests that match.", Range(0, 1)] = 1.0
        nodes: Annotated[list[int], Size(0, 100)] = field(default_factory=list)
        action: Close | Delay = Close()          # told apart by their field `kind: Literal["close"]`

Types: bool, int, float, str, enumerations, Literal, list, dict with text as keys, dataclasses, `object` for any JSON,
`| None`, and unions of dataclasses. Texts in Annotated are for the documentation. Every value is checked; the error
names the place of the first value that is wrong, such as `rules[2].share`.
"""

from __future__ import annotations

import enum
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
INT64 = (1 << 63) - 1
SHOWN_MAX = 100  # characters of a wrong value in a message
LISTS = (list, tuple, Sequence, Iterable, Iterator)


@dataclass(frozen=True)
class Range:
    """Bounds of a number, both included."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Size:
    """Bounds of the length of a text, a list or a mapping, both included."""

    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class Duration:
    """A number of milliseconds that may be written as a text: 250, "250ms", "1.5s", "2m", "1h" or "7d"."""

    PATTERN = r"\d{1,12}(\.\d{1,3})?(ms|s|m|h|d)"


DURATION_MS_MAX = 100 * 366 * 24 * 3_600_000  # a hundred years: timers take no more
Millis = Annotated[int, Duration(), Range(0, DURATION_MS_MAX)]
"""A duration: milliseconds, or a text with its unit."""

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Invalid(ValueError):
    """A value that is not what its place takes. `place`: the path of its key, empty for the whole."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place
        self.problem = problem


def parse(kind: type[T], value: object, place: str = "") -> T:
    """Returns `value`, which is what a JSON or YAML parser returns, as `kind`. Raises Invalid."""
    return cast(T, _parse(kind, value, place))


def json_of(kind: object, text: str) -> object:
    """Returns what a part of a path or a query parameter would be in JSON; a text that has another form stays one."""
    base = plain(kind)[0]
    if base is bool:
        return {"true": True, "false": False}.get(text, text)
    if base in (int, float) and re.fullmatch(r"-?\d{1,20}", text):
        return int(text)
    if base is float and re.fullmatch(r"-?\d{1,20}\.\d{1,20}", text):
        return float(text)
    return text


def plain(kind: object) -> tuple[object, tuple[object, ...]]:
    """Returns a type without Annotated and `| None`, and what Annotated says of it."""
    marks: tuple[object, ...] = ()
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            marks = (*more, *marks)
        elif is_union(kind) and len(left := [one for one in get_args(kind) if one is not types.NoneType]) == 1:
            kind = left[0]
        else:
            return kind, marks


def is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def takes_none(kind: object) -> bool:
    """Whether None is a value of a type."""
    if get_origin(kind) is Annotated:
        return takes_none(get_args(kind)[0])
    return is_union(kind) and types.NoneType in get_args(kind)


@cache
def hints(kind: type) -> Mapping[str, object]:
    """The types of a class's fields, with what Annotated says of them."""
    return get_type_hints(kind, include_extras=True)


@cache
def required(kind: type) -> frozenset[str]:
    """The fields of a dataclass without a default."""
    assert is_dataclass(kind)
    return frozenset(
        one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING and one.init
    )


def kind_of(member: object) -> str:
    """What a member of a union has in its field `kind`."""
    (name,) = get_args(plain(hints(cast(type, member))["kind"])[0])
    return str(name)


def _parse(kind: object, value: object, place: str) -> object:
    if value is None and takes_none(kind):
        return None
    base, marks = plain(kind)
    found = _value(base, marks, value, place)
    for mark in marks:
        if isinstance(mark, Range):
            _check_range(mark, cast(float, found), place, " ms" if _has_duration(marks) else "")
        elif isinstance(mark, Size) and not isinstance(found, int):  # a number in place of a text has no length
            _check_size(mark, cast(Sequence[object], found), place)
    return found


def _value(base: object, marks: tuple[object, ...], value: object, place: str) -> object:
    """A value of a type that is neither Annotated nor takes None."""
    origin = get_origin(base)
    if base is object:
        return value
    if base in _SCALARS:
        return _scalar(cast(type, base), marks, value, place)
    if is_union(base):
        return _member([one for one in get_args(base) if one is not types.NoneType], value, place)
    if origin is Literal:
        return _one_of(get_args(base), value, place)
    if origin in LISTS:
        if not isinstance(value, list):
            raise Invalid(place, f"must be a list, found {shown(value)}")
        kind = get_args(base)[0]
        items = [_parse(kind, one, f"{place}[{index}]") for index, one in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin in (dict, Mapping):
        keys, values = get_args(base)
        found = _mapping(value, place)
        return {_parse(keys, key, place): _parse(values, one, inside(place, key)) for key, one in found.items()}
    if isinstance(base, type) and issubclass(base, enum.Enum):
        return base(_one_of([one.value for one in base], value, place))
    assert isinstance(base, type), base
    assert is_dataclass(base), base
    return _record(base, value, place)


_SCALARS: Mapping[object, str] = {bool: "true or false", int: "a number", float: "a number", str: "a string"}


def _scalar(base: type, marks: tuple[object, ...], value: object, place: str) -> object:
    if isinstance(value, str) and any(isinstance(one, Duration) for one in marks):
        return _duration(value, place)
    is_right = isinstance(value, bool) if base is bool else isinstance(value, base) and not isinstance(value, bool)
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        is_right, value = True, float(value) if abs(value) <= INT64 else math.inf
    if base is int and isinstance(value, float) and value.is_integer() and abs(value) <= INT64:
        is_right, value = True, int(value)
    if not is_right:
        words = "must be a duration such as 250ms or 2s" if _has_duration(marks) else f"must be {_SCALARS[base]}"
        raise Invalid(place, f"{words}, found {shown(value)}")
    if isinstance(value, int) and abs(value) > INT64:
        raise Invalid(place, "must be a number of 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(place, f"must be a finite number, found {value}")
    if isinstance(value, str) and not _is_text(value):
        raise Invalid(place, "must be valid Unicode")
    return value


def _has_duration(marks: tuple[object, ...]) -> bool:
    return any(isinstance(one, Duration) for one in marks)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _duration(text: str, place: str) -> int:
    found = re.fullmatch(Duration.PATTERN, text.strip())
    if found is None:
        raise Invalid(place, f"must be a duration such as 250ms or 2s, found {shown(text)}")
    unit = found[2]
    return round(float(text.strip().removesuffix(unit)) * UNITS_MS[unit])


def _one_of(values: Sequence[object], value: object, place: str) -> object:
    if not any(one == value and type(one) is type(value) for one in values):
        raise Invalid(place, f"must be one of {', '.join(map(str, values))}, found {shown(value)}")
    return value


def _member(members: Sequence[object], value: object, place: str) -> object:
    """A value of a union of dataclasses, which differ by their field `kind`, or of other types."""
    records = {kind_of(one): one for one in members if is_dataclass(one)}
    if records and (isinstance(value, Mapping) or len(records) == len(members)):
        name = _mapping(value, place).get("kind")
        if name is None:
            raise Invalid(place, f"needs the key 'kind', one of {', '.join(records)}")
        _one_of(list(records), name, inside(place, "kind"))
        return _parse(records[str(name)], value, place)
    problem: Invalid | None = None
    for one in members:
        if is_dataclass(one):
            continue
        try:
            return _parse(one, value, place)
        except Invalid as error:
            problem = problem if problem is not None and len(problem.place) >= len(error.place) else error
    assert problem is not None
    if problem.place == place and all(one in _SCALARS for one in members) and not isinstance(value, str):
        raise Invalid(place, f"must be {' or '.join(_SCALARS[one] for one in members)}, found {shown(value)}")
    raise problem


def _record(base: type, value: object, place: str) -> object:
    """A dataclass."""
    given, types_of = _mapping(value, place), hints(base)
    names = [one.name for one in fields(base) if one.init]
    for key in given:
        if key not in names:
            raise Invalid(inside(place, key), f"unknown key{_meant(str(key), names)}")
    missing = [name for name in names if name in required(base) and name not in given]
    if missing:
        raise Invalid(inside(place, missing[0]), "is missing")
    values = {name: _parse(types_of[name], given[name], inside(place, name)) for name in names if name in given}
    try:
        return base(**values)
    except Invalid as error:  # of its __post_init__, which names a place within it
        raise Invalid(inside(place, error.place) if error.place else place, error.problem) from None


def _mapping(value: object, place: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise Invalid(place, f"must be an object, found {shown(value)}")
    return value


def _check_range(mark: Range, value: float, place: str, unit: str) -> None:
    if mark.low is not None and value < mark.low:
        raise Invalid(place, f"must be at least {mark.low}{unit}, found {value}{unit}")
    if mark.high is not None and value > mark.high:
        raise Invalid(place, f"must be at most {mark.high}{unit}, found {value}{unit}")


def _check_size(mark: Size, value: Sequence[object], place: str) -> None:
    what = "characters" if isinstance(value, str) else "elements"
    if len(value) < mark.low:
        raise Invalid(place, f"must have at least {mark.low} {what}, has {len(value)}")
    if mark.high is not None and len(value) > mark.high:
        raise Invalid(place, f"must have at most {mark.high} {what}, has {len(value)}")


def inside(place: str, key: object) -> str:
    """The path of a key of the value at `place`."""
    name = str(key)[:SHOWN_MAX]
    return f"{place}.{name}" if place else name


def _meant(given: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(given[:SHOWN_MAX], names, 1)
    return f" (did you mean '{close[0]}'?)" if close else f" (known: {', '.join(names) or 'none'})"


def shown(value: object) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def example_values(value: object) -> object:
    """An example as JSON has it, without the fields that have their default; `kind` stays."""
    if is_dataclass(value):
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        usual = {one.name: one.default_factory() for one in fields(value) if one.default_factory is not MISSING}
        usual |= {one.name: one.default for one in fields(value) if one.default is not MISSING}
        usual.pop("kind", None)
        return {name: example_values(one) for name, one in found.items() if name not in usual or usual[name] != one}
    if isinstance(value, Mapping):
        return {name: example_values(one) for name, one in value.items()}
    if isinstance(value, enum.Enum):
        return value.value
    return [example_values(one) for one in value] if isinstance(value, list | tuple) else value
