"""Scenario files: what is refused with file, line and key; conditions; runs on a broker in memory; the schema."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from ottla.broker.config.config import ScenarioError
from ottla.broker.lab.routes import every_route
from ottla.broker.lab.scenario.at_start import AtStart
from ottla.broker.lab.scenario.checks import ABSENT, Check, value_at
from ottla.broker.lab.scenario.file import scenario_of
from ottla.broker.lab.scenario.runner import POLL_MS, Report
from ottla.broker.lab.scenario.schema import schema
from ottla.broker.lab.shapes import example_values
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.lab import LabWorld
from ..support.node_world import cluster
from ..support.world import World

FULL = """\
name: a hold is seen
steps:
  - seed:
      topics:
        - {name: orders, partitions: 2, records: [{value: first, partition: 1}]}
    as: seeded
  - seed: {topics: [{name: orders}]}
  - hold: orders
    as: held
  - wait: 1.5s
  - expect: {get: "topics/${seeded.created[0]}", path: "partitions[0].policy", equals: held}
  - release: {topic: absent}
    refused: 404
  - release: {topic: "${held.partitions[0].topic}", partition: "${held.partitions[1].partition}"}
  - expect: {get: topics, path: "topics[topic=orders].partitions", length: 2}
  - until:
      get: topics/orders
      path: "partitions[partition=1].high_watermark"
      at_least: 1
      within: 5s
  - expect: {get: topics/absent, exists: false}
"""


STEP = "steps:\n  - {retention: , as: it}\n  - add_fault:\n"


def run(text: str, world: World | None = None, within_ms: int = 120_000) -> Report:
    site = LabWorld(world or World())
    running = AtStart(site.server, scenario_of("s.yaml", text))
    running.start()
    for _ in range(within_ms):
        if running.ended.done:
            return running.ended.get()
        site.world.pass_ms(1)
    raise AssertionError("the scenario does not end")


def test_a_scenario_takes_its_steps_in_order() -> None:
    report = run(FULL)
    assert [one["problem"] for one in report["steps"]] == [None] * 10
    assert (report["name"], report["passed"], report["not_run"]) == ("a hold is seen", True, 0)
    assert report["steps"][3]["ms"] >= 1500
    assert [one["line"] for one in report["steps"][:3]] == [3, 7, 8]


@pytest.mark.parametrize(
    ("steps", "problem", "not_run"),
    [
        ("- hold: absent\n- retention:", "s.yaml:2: hold was refused: topic absent does not exist", 1),
        (
            "- expect: {get: state, path: node_id, equals: 77}",
            "s.yaml:2: node_id is 1, not 77",
            0,
        ),
        (
            "- until: {get: state, path: node_id, equals: 77, within: 200ms}",
            "s.yaml:2: not within 200 ms: node_id is 1, not 77",
            0,
        ),
        ("- retention:\n  refused: 409", "s.yaml:2: retention was answered with 200, not refused with 409", 0),
        (
            "- retention:\n  as: it\n- hold: '${it.topic}'",
            "s.yaml:4: the reply of it has no topic",
            0,
        ),
        (
            "- retention:\n  as: it\n- hold: '${it.done}'",
            "s.yaml:4: steps[1].hold.topic: must be a string, found True",
            0,
        ),
        ("- expect: {get: topics/absent, equals: 1}", "s.yaml:2: GET /v1/topics/absent was refused: topic absent", 0),
    ],
)
def test_a_step_that_fails_ends_the_scenario_and_says_where(steps: str, problem: str, not_run: int) -> None:
    report = run(f"steps:\n{steps}\n")
    assert not report["passed"]
    assert str(report["steps"][-1]["problem"])[: len(problem)] == problem
    assert report["not_run"] == not_run


def test_a_condition_is_asked_again_until_its_time_is_over() -> None:
    report = run("steps:\n  - until: {get: state, path: node_id, equals: 2, within: 1s}\n")
    assert 1000 <= report["steps"][0]["ms"] <= 1000 + 2 * POLL_MS


def test_what_comes_before_the_first_wait_is_done_at_once() -> None:
    site = LabWorld(World())
    text = "steps:\n  - policy: {policy: held}\n  - wait: 5s\n  - policy: {policy: immediate}\n"
    running = AtStart(site.server, scenario_of("s.yaml", text))
    running.start()
    site.world.pass_ms(10)
    assert (running.begun.done, running.ended.done) == (True, False)
    site.world.pass_ms(5000)
    assert running.ended.get()["passed"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps:\n  - hold: [\n", "s.yaml:3: expected"),
        ("- hold: a\n", "s.yaml:1: a scenario is a mapping with the key 'steps'"),
        ("", "s.yaml:1: a scenario is a mapping with the key 'steps'"),
        ("name: x\nstep: []\n", "s.yaml:2: step: unknown key (known: name, steps)"),
        ("steps: {}\n", "s.yaml:1: steps: must be a list of steps"),
        ("steps:\n  - hold\n", "s.yaml:2: steps[0]: must be a step such as 'hold: orders', found 'hold'"),
        ("steps:\n  - hold: a\n    step: a\n", "s.yaml:2: steps[0]: must have one action, has hold, step"),
        ("steps:\n  - holt: a\n", "s.yaml:2: steps[0].holt: there is no such step (did you mean 'hold'?)"),
        ("steps:\n  - hold:\n      topik: a\n", "s.yaml:3: steps[0].hold.topik: unknown key (did you mean 'topic'?)"),
        ("steps:\n  - hold:\n      topic: 5\n", "s.yaml:3: steps[0].hold.topic: must be a string, found 5"),
        ("steps:\n  - wait: soon\n", "s.yaml:2: steps[0].wait.duration: must be a duration such as 250ms"),
        ("steps:\n  - wait:\n", "s.yaml:2: steps[0].wait.duration: is missing"),
        ("steps:\n  - retention: now\n", "s.yaml:2: steps[0].retention: takes nothing, found 'now'"),
        ("steps:\n  - hold: a\n    refused: yes\n", "s.yaml:3: steps[0].refused: must be a number, found True"),
        ("steps:\n  - hold: a\n\n  - hold: '${it.x}'\n", "s.yaml:4: steps[1].hold: no step before has 'as: it'"),
        (
            "steps:\n  - retention:\n    as: it\n  - hold: {topik: '${it.x}'}\n",
            "s.yaml:4: steps[1].hold.topik: unknown key (known: topic, partition, node)",
        ),
        ("steps:\n  - expect: {get: state}\n", "s.yaml:2: steps[0].expect: needs a comparison, one of equals"),
        (
            "steps:\n  - expect:\n      get: state\n      path: a..b\n      equals: 1\n",
            "s.yaml:4: steps[0].expect.path: is no path of keys",
        ),
        ("steps:\n  - hold: a\n    hold: b\n", "s.yaml:3: steps[0].hold: is there twice"),
        ("steps:\n  - hold: !!binary aGk=\n", "s.yaml:2: steps[0].hold: a scenario has no values of the type"),
        ("steps:\n  - on: 1\n", "s.yaml:2: steps[0]: the key 'on' must be a string; write it in quotes"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
            "steps: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
            "s.yaml: the file has more than 100000 values",
        ),
        ("steps: " + "[" * 1000, "s.yaml"),
        (
            f"{STEP}      api: Prodce\n      action: {{kind: close}}\n",
            "s.yaml:4: steps[1].add_fault.api: no API 'Prodce' (did you mean Produce?)",
        ),
        (
            f"{STEP}      action: {{kind: close}}\n      group: '${{it.x}}'\n      api: Nothing\n",
            "s.yaml:6: steps[1].add_fault.api: no API 'Nothing'",
        ),
        (
            f"{STEP}      action: {{kind: error, error: NOT_LEADR}}\n      group: '${{it.x}}'\n",
            "s.yaml:4: steps[1].add_fault.action.error: unknown error NOT_LEADR",
        ),
        (
            f"{STEP}      api: Heartbeat\n      action: {{kind: close}}\n      topic: a\n",
            "s.yaml:6: steps[1].add_fault.topic: Heartbeat names no topic",
        ),
        (
            f"{STEP}      api: Fetch\n      action: {{kind: loading, coordinator: group, ms: 5}}\n",
            "s.yaml:4: steps[1].add_fault.api: loading happens within the broker, whatever the requests are",
        ),
        (
            "steps:\n  - hold_requests:\n      api: Heartbeat\n      partition: 1\n",
            "s.yaml:4: steps[0].hold_requests.partition: Heartbeat names no partition",
        ),
        ("steps:\n  - start_trace:\n      api: X\n", "s.yaml:3: steps[0].start_trace.api: no API 'X'"),
        (
            "steps:\n  - expect:\n      equals: 1\n      get: topicz/a\n",
            "s.yaml:4: steps[0].expect.get: no such resource: GET /v1/topicz/a",
        ),
        (
            "steps:\n  - expect:\n      equals: 1\n      get: traces/x/events\n",
            "s.yaml:4: steps[0].expect.get: number: must be a number, found 'x'",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_file_line_and_key(text: str, words: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario_of("s.yaml", text)
    assert str(raised.value)[: len(words)] == words


def test_a_step_that_must_be_refused_may_name_what_does_not_exist() -> None:
    assert run(f"{STEP}      api: Prodce\n      action: {{kind: close}}\n    refused: 400\n")["passed"]


def test_dates_are_texts_and_a_file_that_is_not_there_is_named() -> None:
    (step,) = scenario_of("s.yaml", "steps:\n  - hold: 2026-01-01\n").steps
    assert step.values == {"topic": "2026-01-01"}


REPLY: Any = {"a": [{"b": 1, "c": "x"}, {"b": 2, "c": None}], "d.e": True, "n": 5, "s": "text"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", REPLY),
        ("a[0].b", 1),
        ("a[-1].b", 2),
        ("a[b=2].c", None),
        ("a[c=x].b", 1),
        ('["d.e"]', True),
        ("a[2]", ABSENT),
        ("a.b", ABSENT),
        ("n.x", ABSENT),
        ("n[0]", ABSENT),
        ("a[b=3]", ABSENT),
    ],
)
def test_paths_lead_to_values(path: str, value: object) -> None:
    assert value_at(REPLY, path) == value


@pytest.mark.parametrize(
    ("comparison", "path", "problem"),
    [
        ({"equals": 5}, "n", None),
        ({"equals": 6}, "n", "n is 5, not 6"),
        ({"equals": 1}, '["d.e"]', '["d.e"] is True, not 1'),
        ({"differs": 5}, "n", "n is 5"),
        ({"differs": 6}, "n", None),
        ({"at_least": 5, "at_most": 5}, "n", None),
        ({"at_least": 6}, "n", "n is 5, not 6 or more"),
        ({"at_most": 4.5}, "n", "n is 5, not 4.5 or less"),
        ({"at_least": 1}, "s", "s is 'text', not 1 or more"),
        ({"contains": "ex"}, "s", None),
        ({"contains": "n"}, "", None),
        ({"contains": {"b": 1, "c": "x"}}, "a", None),
        ({"contains": 1}, "n", "n is 5, which does not contain 1"),
        ({"length": 2}, "a", None),
        ({"length": 3}, "a", "a has the length 2, not 3"),
        ({"length": 3}, "n", "n has the length none, not 3"),
        ({"exists": True}, "a[1].c", "a[1].c is not there"),
        ({"exists": False}, "a[1].c", None),
        ({"exists": False}, "n", "n is there: 5"),
        ({"exists": True}, "n", None),
        ({"equals": 1}, "x", "x is not there"),
    ],
)
def test_comparisons(comparison: dict[str, Any], path: str, problem: str | None) -> None:
    assert Check("state", path, **comparison).problem(REPLY) == problem


@cache
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


@pytest.mark.long
def test_the_schema_takes_every_route_and_what_the_loader_takes() -> None:
    found = validator()
    found.validate(yaml.safe_load(FULL))
    for one in every_route():
        if not one.takes_request and one.path.startswith("/v1/"):
            document = {"steps": [{one.name: example_values(one.example) or None}]}
            found.validate(document)
            scenario_of("s.yaml", yaml.safe_dump(document))


@pytest.mark.parametrize(
    "steps",
    [
        [{"holt": "a"}],
        [{"hold": {"topik": "a"}}],
        [{"hold": {"topic": 5}}],
        [{"hold": "a", "release": "a"}],
        [{"wait": "soon"}],
        [{"expect": {"path": "a", "equals": 1}}],
        ["hold"],
        [{"retention": 1}],
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(steps: list[Any]) -> None:
    assert not validator().is_valid({"steps": steps})
    with pytest.raises(ScenarioError):
        scenario_of("s.yaml", yaml.safe_dump({"steps": steps}))


def test_every_part_of_the_lab_has_its_steps() -> None:
    """A fault, requests that are held, and the clock, with nothing but their routes."""
    world = World()
    site = LabWorld(world)
    text = """
steps:
  - seed: {topics: [{name: orders}]}
  - add_fault: {api: Metadata, times: 1, action: {kind: error, error: LEADER_NOT_AVAILABLE}}
    as: fault
  - until: {get: "faults/${fault.number}", path: applied, equals: 1, within: 1h}
  - remove_fault: "${fault.number}"
  - hold_requests: {api: Metadata}
    as: holding
  - until: {get: requests, path: requests, length: 1, within: 1h}
  - release_requests: {hold: "${holding.number}"}
  - end_request_hold: "${holding.number}"
  - expect: {get: requests/holds, path: holds, length: 0}
  - set_clock: frozen
  - advance_clock: 45s
  - set_clock: system
  - reset:
"""
    running = AtStart(site.server, scenario_of("s.yaml", text))
    running.start()
    site.world.pass_ms(100)
    asked = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")])
    assert site.world.ask("Metadata", 9, asked).topics[0].error_code == Errors.LEADER_NOT_AVAILABLE
    site.world.pass_ms(1000)
    assert site.world.ask("Metadata", 9, asked).topics[0].error_code == 0
    for _ in range(10_000):
        if running.ended.done:
            break
        world.pass_ms(1)
    report = running.ended.get()
    assert report["passed"], report["steps"][-1]


def test_a_reply_that_is_no_json_is_a_text() -> None:
    report = run(
        """\
name: a badge
steps:
  - start_verdict: {}
  - expect: {get: "verdict?format=svg", contains: "Kafka protocol: not examined"}
"""
    )
    assert report["passed"], report


NODES = """\
name: a leader fails and moves
steps:
  - change_node: {node: 1, do: stop}
  - expect: {get: partitions/t/0, path: leader, equals: 2}
  - move_leader: {topic: t, partition: 0, node: 3}
    as: moved
  - expect: {get: partitions/t/0, path: leader, equals: "${moved.leader}"}
  - change_node: {node: 1, do: stop}
    refused: 409
  - change_node: {node: 1, do: start}
  - elect_leader: {topic: t, partition: 0}
  - shrink_isr: {topic: t, partition: 0, node: 2}
  - expect: {get: partitions/t/0, path: isr, length: 2}
  - part_network: {sides: [[1, 2], [3]]}
  - expect: {get: nodes/3, path: cut, equals: true}
  - part_network: {sides: [[1, 2], [2, 3]]}
    refused: 409
  - join_network: {}
  - expect: {get: nodes/3, path: side, equals: 0}
"""


def test_a_scenario_lets_nodes_fail_and_leaders_move() -> None:
    assert not list(validator().iter_errors(yaml.safe_load(NODES)))
    report = run(NODES, cluster())
    assert [one["problem"] for one in report["steps"]] == [None] * 14
