"""The pytest plugin in runs of its own: fixtures, what is shown with a test that failed, several workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TESTS = """\
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(4))
def test_with_a_topic(number, ottla_broker, ottla_lab, ottla_topic):
    ottla_lab.seed({"name": ottla_topic, "partitions": 2, "records": [{"value": "first"}]})
    held = ottla_lab.hold(ottla_topic, 1)["partitions"]
    assert [one["policy"] for one in held] == ["held"]
    assert ottla_lab.topic(ottla_topic)["partitions"][0]["log_end_offset"] == 1
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    with Path("brokers").open("a") as found:
        found.write(f"{worker} {ottla_broker.bootstrap_servers} {ottla_broker.lab_url} {ottla_broker.directory}\\n")


def test_changes_end_with_the_test(ottla_lab):
    policies = {p["policy"] for t in ottla_lab.every("topics", "topics") for p in t["partitions"]}
    assert policies <= {"immediate"}


def test_that_fails(ottla_lab, ottla_trace, ottla_broker):
    import socket

    host, port = ottla_broker.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(bytes.fromhex("0000000e 0012 0000 00000007 0004") + b"ping")
        assert connection.recv(1000)
    kinds = [one["event"] for one in ottla_trace.events]
    assert kinds[:3] == ["opened", "request", "reply"]
    raise AssertionError("the trace is shown")


def test_a_cluster(ottla_cluster):
    cluster = ottla_cluster(nodes=2, settings={"default.replication.factor": 2})
    cluster.lab.seed({"name": "orders"})
    leader = cluster.partition("orders").leader
    cluster.node(leader).drain()
    assert cluster.partition("orders").leader not in (leader, -1)
    assert cluster.node(leader).view["drained"]
    cluster.node(leader).unfence()
    assert cluster.node(leader).address in cluster.bootstrap_servers
    cluster.part([1], [2])
    assert [cluster.node(one).view["cut"] for one in (1, 2)] == [False, True]
    cluster.join()
    assert [cluster.node(one).view["side"] for one in (1, 2)] == [0, 0]
    with pytest.raises(LookupError, match="there is no node 9"):
        cluster.node(9).view
    follower = next(one for one in (1, 2) if one != cluster.partition("orders").leader)
    for node in (None, follower):
        assert len(cluster.partition("orders").shrink()["isr"]) == 1
        assert cluster.partition("orders").release(node)["replicas"][0]["policy"] is None
        assert any(len(cluster.partition("orders").view["isr"]) == 2 for _ in range(1000)), "it comes into sync"


def test_what_has_ended_before_ends_without_an_error(ottla_lab, ottla_clock):
    with (
        ottla_lab.fault("close", api="Fetch", duration="1s"),
        ottla_lab.hold_requests(api="Fetch"),
        ottla_lab.trace() as trace,
    ):
        trace.stop()
        ottla_clock.advance("2s")
        assert [one["is_over"] for one in ottla_lab.get("faults")["faults"]] == [True]
        ottla_lab.reset()


@pytest.fixture
def restarted(ottla_broker):
    yield
    ottla_broker.start()


def test_a_broker_that_has_ended(restarted, ottla_broker, ottla_lab, ottla_clock, ottla_trace, ottla_verdict):
    with ottla_lab.fault("close", api="Fetch"), ottla_lab.hold_requests(api="Fetch"), ottla_lab.trace():
        ottla_broker.kill()


@pytest.mark.ottla_examination(name="basic", seed=3)
def test_an_examination(ottla_verdict):
    assert ottla_verdict.view["examination"] == "basic"
    assert ottla_verdict.provoked


@pytest.mark.ottla_examination
def test_an_examination_without_a_name(ottla_verdict):
    pass


def test_that_fails_before_its_fault_ends(ottla_broker, ottla_lab):
    with ottla_lab.fault("close", api="Fetch"):
        ottla_lab.reset()
        raise AssertionError("this error is the one that is told")


def test_a_scenario(ottla_lab, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("steps:\\n  - wait: 1ms\\n  - expect: {get: state, path: node_id, equals: 7}\\n")
    ottla_lab.run(file)
"""


def run(directory: Path, *arguments: str) -> str:
    """Runs the tests; some of them fail."""
    (directory / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd())}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 9 passed, 1 error in" in done.stdout.replace("\n", " "), done.stdout
    return done.stdout


def test_a_failed_test_shows_the_scenario_and_the_log(tmp_path: Path) -> None:
    printed = run(tmp_path, "-p", "no:xdist", "-o", "ottla_settings=num.partitons=3")
    assert "s.yaml:3: node_id is 1, not 7" in printed
    assert re.search(r"ottla broker -*\n(.*\n)?.*unknown configuration key 'num.partitons'", printed)
    assert "LabRefused: examination: must be one of basic, " in printed
    assert "test_that_fails_before_its_fault_ends - AssertionError: " in printed
    assert re.search(r"ottla trace -*\n.* opened on PLAINTEXT\n.* > ApiVersions v0 id=7 client=ping 14B\n", printed)
    assert len({line.split()[1] for line in (tmp_path / "brokers").read_text().splitlines()}) == 1


def test_each_worker_has_its_own_broker(tmp_path: Path) -> None:
    printed = run(tmp_path, "-n", "2")
    assert "2 workers" in printed
    assert "ottla broker" not in printed, "its log is empty"
    rows = {tuple(line.split()) for line in (tmp_path / "brokers").read_text().splitlines()}
    assert {row[0] for row in rows} == {"gw0", "gw1"}
    for column in range(4):
        assert len({row[column] for row in rows}) == 2, rows
