"""Scenarios of real brokers: at start, with and without the lab's port, and by `ottla lab run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from ottla.cli import main
from ottla.testing import Broker, BrokerFailed

from ..support.ask import fetch, lab
from ..support.poll import until
from ..support.wire import Wire

pytestmark = pytest.mark.slow
AT_START = """\
name: seeded
steps:
  - seed: {topics: [{name: orders, records: [{value: first}, {value: second}]}]}
  - policy: {topic: orders, policy: held}
  - until: {get: topics/later, exists: true}
  - release: orders
"""


def run(broker: Broker, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", *arguments], env={"OTTLA_LAB": broker.lab_url})


def test_a_scenario_at_start_is_under_way_when_the_broker_announces_itself(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(AT_START)
    with Broker({"ottla.lab.scenario": file}) as broker, Wire(broker.bootstrap_servers) as wire:
        assert lab(broker, "/v1/topics/orders")["partitions"][0]["policy"] == "held"
        assert fetch(wire, "orders") == [b"first", b"second"]
        lab(broker, "/v1/seed", {"topics": [{"name": "later"}]})
        shown = until(lambda: lab(broker, "/v1/topics/orders")["partitions"][0]["policy"] == "immediate", "it goes on")
        assert shown


def test_a_scenario_needs_no_port_of_the_lab_and_its_failure_is_logged(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("steps:\n  - seed: {topics: [{name: orders}]}\n  - hold: absent\n")
    with Broker({"ottla.lab.scenario": file}, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        assert fetch(wire, "orders") == []
        assert f'step 2, hold {{"topic": "absent"}}: {file}:3: hold was refused' in broker.log


def test_a_broker_does_not_start_with_an_invalid_scenario(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("steps:\n  - holt: orders\n")
    with pytest.raises(BrokerFailed, match=rf"exit code 2.*\n.*{file}:2: steps\[0\].holt: there is no such step"):
        Broker({"ottla.lab.scenario": file}).start()


def test_scenarios_run_on_a_running_broker(tmp_path: Path) -> None:
    good, bad, invalid = (tmp_path / f"{name}.yaml" for name in ("good", "bad", "invalid"))
    good.write_text("steps:\n  - seed: {topics: [{name: orders}]}\n  - wait: 10ms\n  - hold: orders\n")
    bad.write_text(
        "steps:\n  - expect: {get: topics/orders, path: 'partitions[0].policy', equals: lag}\n  - retention:\n"
    )
    invalid.write_text("steps:\n  - wait: soon\n")
    with Broker() as broker:
        passed = run(broker, "run", str(good))
        assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "good: 3 passed, 0 failed, 0 not run")
        assert [line[:6] for line in passed.stdout.splitlines()[:-1]] == ["ok    "] * 3
        failed = run(broker, "run", str(good), str(bad))
        assert failed.exit_code == 1
        assert failed.stdout.splitlines()[-2:] == [
            f"       {bad}:2: partitions[0].policy is 'held', not 'lag'",
            "bad: 0 passed, 1 failed, 1 not run",
        ]
        report = json.loads(run(broker, "run", "--json", str(bad)).stdout)
        assert (report["passed"], report["not_run"], len(report["steps"])) == (False, 1, 1)
        refused = run(broker, "run", str(good), str(invalid))
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"ottla: {invalid}:2: steps[0].wait.duration: must be a duration" in refused.stderr
    assert run(broker, "run", str(good)).exit_code == 3


def test_the_schema_is_printed() -> None:
    printed = CliRunner().invoke(main, ["lab", "schema"])
    Draft202012Validator.check_schema(json.loads(printed.stdout))
