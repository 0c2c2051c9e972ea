"""The lab's routes on a broker in memory: how requests find them, what is refused, and answers that come later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

import pytest
from ottla.broker.lab import routes
from ottla.broker.lab.encode import Turns
from ottla.broker.lab.http import Request, Response
from ottla.broker.lab.lab import Lab
from ottla.broker.lab.routes import PARTS, Nothing, Refused, Route, every_route, route, routes_of
from ottla.broker.lab.shapes import hints
from ottla.broker.later import Later, failed

from ..support.lab import LabWorld
from ..support.topic_world import create
from ..support.world import World


@pytest.fixture(scope="module")
def site() -> LabWorld:
    world = World()
    for name in ("a", "b", "c", "d"):
        create(world, name, 2)
    return LabWorld(world)


@pytest.mark.parametrize(
    ("at", "body", "query", "status", "words"),
    [
        ("GET /v1/nothing", None, "", 404, "no such resource: GET /v1/nothing"),
        ("GET /", None, "", 404, "no such resource"),
        ("GET /v1", None, "", 404, "no such resource"),
        ("GET /v1/topics/", None, "", 404, "no such resource"),
        ("GET /v1/topics/absent", None, "", 404, "topic absent does not exist"),
        ("GET /v1/hold", None, "", 405, "/v1/hold takes POST, not GET"),
        ("DELETE /v1/topics", None, "", 405, "/v1/topics takes GET, not DELETE"),
        ("GET /v1/topics", None, "limit=0", 400, "limit: must be at least 1, found 0"),
        ("GET /v1/topics", None, "limit=x", 400, "limit: must be a number, found 'x'"),
        ("GET /v1/topics", None, "limit=1&limit=2", 400, "limit: is given twice"),
        ("GET /v1/topics", None, "limits=1", 400, "limits: unknown key (did you mean 'limit'?)"),
        ("GET /v1/topics/a", None, "topic=b", 400, "topic: is in the path already"),
        ("GET /v1/share/g/t/x", None, "", 400, "partition: must be a number, found 'x'"),
        ("POST /v1/hold", [], "", 400, "the body of the request must be a JSON object"),
        ("POST /v1/hold", b"{", "", 400, "the body of the request is no JSON: Expecting property name"),
        ("POST /v1/hold", b"[" * 60_000, "", 400, "the body of the request is no JSON: "),  # 3.14 reads it to its end
        ("POST /v1/hold", {"topic": 1}, "", 400, "topic: must be a string, found 1"),
        ("POST /v1/hold", {"topik": "a"}, "", 400, "topik: unknown key (did you mean 'topic'?)"),
        ("POST /v1/hold", {"topic": "a", "partition": 7}, "", 404, "partition a-7 does not exist"),
        ("POST /v1/policy", {"topic": "a"}, "", 400, "policy: is missing"),
        ("POST /v1/step", {"batches": -1}, "", 400, "batches: must be at least 0, found -1"),
    ],
)
def test_what_is_refused_says_why(site: LabWorld, at: str, body: object, query: str, status: int, words: str) -> None:
    found, text = site.refused(at, body, query)
    assert (found, text[: len(words)]) == (status, words)


def test_an_error_of_a_body_has_the_place_of_its_key_beside_the_words(site: LabWorld) -> None:
    assert site.reply("POST /v1/hold", {"topic": 1})[1]["key"] == "topic"
    assert "key" not in site.reply("GET /v1/topics/absent")[1]


def test_a_route_that_takes_another_method_says_which(site: LabWorld) -> None:
    found = site.send("PUT /v1/hold", {})
    assert isinstance(found, Response)
    assert found.headers == (("Allow", "POST"),)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PATCH", "/v1/hold", 405), ("POST", "/v1/nothing", 404), ("POST", "/v1/hold", 415), ("GET", "/v1/topics", 200)],
)
def test_a_content_type_is_asked_for_where_there_is_a_route(
    site: LabWorld, method: str, path: str, status: int
) -> None:
    found = site.server.answer(Request(method, path, b"", "127.0.0.1", {"host": "localhost"}))
    assert isinstance(found, Response)
    assert found.status == status


def test_topics_come_in_pages(site: LabWorld) -> None:
    def page(query: str) -> tuple[list[str], str | None]:
        status, found = site.reply("GET /v1/topics", query=query)
        assert status == 200
        return [one["topic"] for one in found["topics"] if not one["topic"].startswith("__")], found["next"]

    assert page("") == (["a", "b", "c", "d"], None)
    assert page("after=a&limit=2") == (["b", "c"], "c")
    assert page("after=c&limit=1") == (["d"], None)
    assert page("after=d") == ([], None)


def test_partitions_are_held_and_released(site: LabWorld) -> None:
    held = site.ask("POST /v1/hold", topic="a", partition=1)["partitions"]
    assert [(one["topic"], one["partition"], one["policy"]) for one in held] == [("a", 1, "held")]
    assert [one["policy"] for one in site.ask("GET /v1/topics/a")["partitions"]] == ["immediate", "held"]
    (released,) = site.ask("POST /v1/release", topic="a", partition=1)["partitions"]
    assert released["policy"] == "immediate"
    site.ask("POST /v1/hold", topic="a", partition=1)
    assert [one["policy"] for one in site.ask("POST /v1/release", topic="a")["partitions"]] == ["immediate"] * 2
    site.ask("POST /v1/hold", topic="a")
    released = {one["topic"]: one["policy"] for one in site.ask("POST /v1/release")["partitions"]}
    assert released["a"] == "immediate"


def test_every_route_is_found_by_its_path_and_has_a_name_of_its_own() -> None:
    names: dict[str, Route] = {}
    for module in dict.fromkeys(PARTS.values()):
        assert routes_of(module), f"{module} has no routes"
        for one in routes_of(module):
            found, _ = routes.find(one.method, one.path)
            assert found is one
            assert one.words, f"{one.name} has no docstring"
            assert names.setdefault(one.name, one) is one, f"two routes are named {one.name}"
            assert set(one.in_path) <= set(hints(one.asked)), f"{one.path}: {one.asked} lacks a field"
    assert len(every_route()) == len(names)


# answers of routes that are there for the tests only


@dataclass(frozen=True)
class Wait:
    ms: int


class Waited(TypedDict):
    at: int
    rows: Iterator[int]


@route("POST /v1/state/wait/{ms}", example=Wait(5))
def wait(lab: Lab, asked: Wait) -> Later[Waited]:
    """Answers after some time."""
    if asked.ms > 1000:
        return failed(Refused(409, "too long"))
    later: Later[Waited] = Later()
    schedule = lab.broker.schedule
    schedule.later(asked.ms, lambda: later.finish({"at": schedule.monotonic_ms(), "rows": iter(range(3))}))
    return later


@route("GET /v1/state/bug", example=Nothing())
def bug(lab: Lab, asked: Nothing) -> Waited:
    """Fails."""
    raise KeyError("secret")


@route("POST /v1/state/turns/{ms}", example=Wait(5))
def turns(lab: Lab, asked: Wait) -> Turns[Waited]:
    """Takes some turns."""
    if asked.ms > 1000:
        raise Refused(409, "too long")
    for _ in range(asked.ms):
        yield
    return {"at": asked.ms, "rows": iter(range(2))}


@pytest.fixture
def with_test_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "routes_of", lambda module: (wait, bug, turns))


@pytest.mark.usefixtures("with_test_routes")
def test_an_answer_may_take_several_turns(site: LabWorld) -> None:
    for ms in (0, 1, 5):
        assert site.ask(f"POST /v1/state/turns/{ms}") == {"at": ms, "rows": [0, 1]}
    assert site.refused("POST /v1/state/turns/5000") == (409, "too long")
    found = site.send("POST /v1/state/turns/5")
    assert isinstance(found, Response)
    assert [bool(piece) for piece in found.body] == [False] * 5 + [True]


@pytest.mark.usefixtures("with_test_routes")
def test_an_answer_may_come_later(site: LabWorld) -> None:
    began = site.world.schedule.monotonic_ms()
    assert site.ask("POST /v1/state/wait/50") == {"at": began + 50, "rows": [0, 1, 2]}
    assert site.refused("POST /v1/state/wait/5000") == (409, "too long")
    assert (wait.asked, wait.reply) == (Wait, Waited)


@pytest.mark.usefixtures("with_test_routes")
def test_a_bug_is_logged_and_its_words_stay_here(site: LabWorld, caplog: pytest.LogCaptureFixture) -> None:
    assert site.refused("GET /v1/state/bug") == (500, "internal error; see the broker's log")
    assert "secret" in caplog.text


def test_a_reply_is_made_in_pieces(site: LabWorld) -> None:
    world = World()
    create(world, "many", 2000)
    found = LabWorld(world).send("GET /v1/topics/many")
    assert isinstance(found, Response)
    pieces = list(found.body)
    assert len(pieces) > 20
    assert len(json.loads(b"".join(pieces))["partitions"]) == 2000  # type: ignore[arg-type]


def test_a_reset_ends_what_the_lab_changed() -> None:
    world = World(ottla_high_watermark="a:lag=5ms")
    for name in ("a", "b"):
        create(world, name)
    site = LabWorld(world)
    site.ask("POST /v1/policy", policy="held")
    site.ask("POST /v1/policy", topic="a", partition=0, policy="bytes=5")
    site.ask("POST /v1/faults", api="Fetch", action={"kind": "close"})
    site.ask("POST /v1/requests/holds", api="Produce")
    site.ask("POST /v1/reset")
    assert [site.ask(f"GET /v1/topics/{name}")["partitions"][0]["policy"] for name in ("a", "b")] == [
        "lag=5ms",
        "immediate",
    ]
    assert site.ask("GET /v1/faults")["faults"] == []
    assert site.ask("GET /v1/requests/holds")["holds"] == []
