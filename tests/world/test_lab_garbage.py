"""Every route of the lab with values that make no sense: each is refused in words, and the broker goes on."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.lab.encode import dumps
from ottla.broker.lab.routes import Route, every_route
from ottla.broker.later import Later

from ..support.lab import LabWorld
from ..support.topic_world import create
from ..support.world import World

pytestmark = pytest.mark.long

GARBAGE: list[object] = [
    *(None, True, 0, -1, 1 << 62, 1 << 64, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "\0", "\ud800", "é" * 300, "9" * 5000, "a/../b", "-1", "1e9", "NaN", "*", "${x}"),
    *([], [[]], [None], [0] * 1000, ["x"] * 1000, {}, {"": ""}, {"kind": "x"}, {"kind": []}, [{}]),
]
MISSING = object()
ROUTES = [one for one in every_route() if not one.takes_request]


@pytest.fixture(scope="module")
def site() -> LabWorld:
    world = World()
    create(world, "orders", 2)
    return LabWorld(world)


Path = tuple[str | int, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The places within a value, at every depth."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def changed(value: Any, path: Path, garbage: object) -> Any:
    """A copy with garbage at a place; without the place for MISSING."""
    out = copy.deepcopy(value)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    if garbage is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = garbage
    return out


def variants(route: Route) -> Iterator[dict[str, object]]:
    """The example, with all its keys, where each value in turn is something else, missing, or one too many."""
    values = json.loads(dumps(route.example))
    for path in places(values):
        for garbage in (*GARBAGE, MISSING):
            yield changed(values, path, garbage)
        yield changed(values, (*path[:-1], "unknown"), 1) if isinstance(path[-1], str) else values
    yield {**values, "unknown": 1}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_garbage_is_refused_in_words(site: LabWorld, route: Route, caplog: pytest.LogCaptureFixture) -> None:
    for values in variants(route):
        try:
            target, body = route.target(values)
        except UnicodeEncodeError:  # no URL has that
            continue
        path, _, query = target.partition("?")
        found = site.send(f"{route.method} {path}", body, query)
        if isinstance(found, Later):
            site.world.pass_ms(1)
            if not found.done:
                found.cancel()
                continue
            found = found.get()
        data = found.body if isinstance(found.body, bytes) else b"".join(found.body)
        assert found.status < 500, f"{values}: {data[:500]!r}"
    assert not [one for one in caplog.records if one.exc_info], caplog.text
    assert site.ask("GET /v1/topics/orders")["topic"] == "orders"
    site.ask("POST /v1/reset")
