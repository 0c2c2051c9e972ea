"""`ottla replay` with traces of share groups and of streams groups: those of real clients, on ottla and on Kafka."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m

from ottla.cli import main
from ottla.testing import Broker

from ..oracle.kafka import Kafka, program
from ..support.compared_work import take_parcels
from ..support.share_session import configure
from ..support.wire import Wire

pytestmark = pytest.mark.slow
RECORDS = 40


@contextmanager
def traced(path: Path, **settings: object) -> Iterator[Broker]:
    """A broker whose coordinators are ready, and which writes a trace."""
    with Broker({"ottla.trace": path, "ottla.trace.raw": "frames", **settings}) as broker:
        yield broker


def filled(servers: str, topic: str, partitions: int) -> None:
    """Makes a topic with records, ten in a batch, and a share group of its name that begins at the first one."""
    common: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = Producer({**common, "batch.num.messages": 10, "linger.ms": 5000})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(60) == 0
    with Wire(servers) as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[topic]))
        configure(wire, topic, "share.auto.offset.reset", "earliest")


def replay(trace: Path, to: str, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["replay", "--to", to, *options, "--json", str(trace)])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_same(found: dict[str, Any]) -> None:
    wrong = [one for one in found["differences"] if one["allowed"] is None]
    assert (wrong, found["problems"], found["left_out"]) == ([], [], [])
    assert found["same"]


def asked(trace: Path) -> Counter[str]:
    return Counter(json.loads(line).get("api", "") for line in trace.read_text().splitlines())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "shared.jsonl"
    with traced(path) as broker:
        filled(broker.bootstrap_servers, "parcels", 2)
        take_parcels(broker.bootstrap_servers, RECORDS)
    assert asked(path).keys() >= {"ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"}
    return path


def test_members_of_a_share_group_get_the_same_from_a_fresh_broker(shared: Path) -> None:
    with Broker() as broker:
        assert_same(replay(shared, broker.bootstrap_servers))


@pytest.mark.oracle
def test_members_of_a_share_group_get_the_same_from_kafka(shared: Path) -> None:
    with Kafka() as kafka:
        assert_same(replay(shared, kafka.bootstrap_servers))


def test_another_duration_of_locks_is_told(shared: Path) -> None:
    with Broker({"group.share.record.lock.duration.ms": 20_000}) as broker:
        found = replay(shared, broker.bootstrap_servers)
    wrong = {(one["api"], one["path"], one["trace"], one["now"]) for one in found["differences"] if not one["allowed"]}
    assert wrong >= {("ShareFetch", "acquisition_lock_timeout_ms", 30_000, 20_000)}
    assert {path for _, path, _, _ in wrong} == {"acquisition_lock_timeout_ms"}


@pytest.fixture(scope="module", params=["share", "streams"])
def of_java(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A trace of Kafka's share consumer, or of Kafka Streams."""
    folder = tmp_path_factory.mktemp(request.param)
    command = program("streams", "ReplayedClients", folder)
    path = folder / "trace.jsonl"
    with traced(path) as broker:
        arguments = [*command, broker.bootstrap_servers, request.param, str(folder / "state")]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
    heartbeats = {"share": "ShareGroupHeartbeat", "streams": "StreamsGroupHeartbeat"}[request.param]
    assert asked(path)[heartbeats] > 2
    return path


def moments(trace: Path) -> tuple[str, str]:
    """A rule for fetches that wait while others write: what they get depends on the moment."""
    rules = trace.with_name("rules.yaml")
    rules.write_text('- {api: Fetch, path: "responses*", reason: it waited while others wrote}\n')
    return "--rules", str(rules)


@pytest.mark.oracle
def test_java_members_get_the_same_from_a_fresh_broker(of_java: Path) -> None:
    with Broker() as broker:
        assert_same(replay(of_java, broker.bootstrap_servers, *moments(of_java)))


@pytest.mark.oracle
def test_java_members_get_the_same_from_kafka(of_java: Path) -> None:
    with Kafka() as kafka:
        assert_same(replay(of_java, kafka.bootstrap_servers, *moments(of_java)))
