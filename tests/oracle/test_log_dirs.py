"""Log directories: answers as those of Apache Kafka, moves by Kafka's tools, and a Kafka that starts afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.ask import fetch, produce
from ..support.dumps import check_directory
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
NAMES = ("a", "b", "c")
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
Side = Broker | Kafka


def settings(folder: Path) -> dict[str, Any]:
    return {"log.dirs": ",".join(str(folder / name) for name in NAMES)}


class Asked:
    """A broker with three log directories, and a connection to it."""

    def __init__(self, side: Side, folder: Path) -> None:
        self.wire = Wire(side.bootstrap_servers, timeout=30)
        self.folder = folder

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def path(self, name: str) -> str:
        return str(self.folder / name) if name in NAMES else name

    def create(
        self, name: str, partitions: int = 1, *placed: int, validate_only: bool = False
    ) -> tuple[str, str | None]:
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name=name, num_partitions=-1 if placed else partitions, replication_factor=-1)
        topic.assignments = [r.CreatableReplicaAssignment(partition_index=0, broker_ids=[one]) for one in placed]
        (answer,) = self.wire.ask(
            "CreateTopics", 7, r(topics=[topic], timeout_ms=10_000, validate_only=validate_only)
        ).topics
        return Errors(answer.error_code).name, answer.error_message

    def may_create(self) -> bool:
        """Whether the controller takes new topics; Kafka's hears of cordoned directories with the next heartbeat."""
        return self.create("probe", validate_only=True)[0] == "NONE"

    def alter(self, version: int, *wanted: tuple[str, str, list[int]]) -> list[tuple[str, int, str]]:
        r = m.AlterReplicaLogDirsRequest
        dirs = [
            r.AlterReplicaLogDir(path=self.path(path), topics=[r.AlterReplicaLogDirTopic(name=topic, partitions=some)])
            for path, topic, some in wanted
        ]
        found = self.wire.ask("AlterReplicaLogDirs", version, r(dirs=dirs)).results
        return sorted((t.topic_name, p.partition_index, Errors(p.error_code).name) for t in found for p in t.partitions)

    def configure(self, node: str, name: str, value: str | None, operation: int = 0) -> tuple[str, str]:
        r = m.IncrementalAlterConfigsRequest
        named = None if value is None else ",".join(map(self.path, value.split(",")))
        change = r.AlterableConfig(name=name, config_operation=operation, value=named)
        resource = r.AlterConfigsResource(resource_type=4, resource_name=node, configs=[change])
        (answer,) = self.wire.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses
        return Errors(answer.error_code).name, (answer.error_message or "").replace(str(self.folder), "")

    def logs(self, *topics: str) -> dict[str, list[tuple[str, int, int, int, bool]]]:
        results = self.wire.ask("DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
        return {
            Path(one.log_dir).name: sorted(
                (t.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
                for t in one.topics
                if t.name in topics
                for p in t.partitions
            )
            for one in results
        }

    def cordoned(self) -> list[str]:
        results = self.wire.ask("DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
        return sorted(Path(one.log_dir).name for one in results if one.is_cordoned)

    def home(self, topic: str, index: int = 0) -> str:
        found = self.logs(topic).items()
        return next(name for name, logs in found if any(one[1] == index and not one[4] for one in logs))


def errors_of(side: Asked) -> Iterator[Any]:
    """What is refused, of partitions that exist and that do not."""
    for version in (1, 2):
        yield side.alter(version, ("/nowhere", "nope", [0]))
        yield side.alter(version, ("relative", "nope", [0]))
        yield side.alter(version, ("", "nope", [0]))
        yield side.alter(version)
        yield side.alter(version, ("b", f"n{version}", [0, 1]))
        yield side.alter(version, ("b", "n" * 215, [0]), ("c", "n" * 213, [0]))
        yield side.alter(version, ("b", f"o{version}", [0]), ("c", f"o{version}", [0]), ("/no", f"o{version}", [0]))
        yield side.alter(version, ("/nowhere", f"p{version}", [0]), ("c", f"p{version}", [0]))
        yield side.alter(version, ("b", f"q{version}", [0, 0, -1]))
        yield side.create(f"n{version}", 2)
        yield side.create(f"p{version}")
        until(lambda v=version: any(side.logs(f"p{v}").values()), "the new topic")  # type: ignore[misc]
        yield [side.home(f"n{version}", index) for index in (0, 1)], side.home(f"p{version}")


def cordons_of(side: Asked) -> Iterator[Any]:
    side.create("x")
    until(lambda: any(side.logs("x").values()), "the topic x")
    yield side.configure("1", "cordoned.log.dirs", "/nowhere")
    yield side.configure("", "cordoned.log.dirs", "b")
    for wanted in ("*", "b", "b,c", "*,b", "b,b"):
        yield side.configure("1", "cordoned.log.dirs", wanted)
    until(lambda: side.cordoned() == ["b", "c"], "two cordoned directories")
    yield side.alter(2, ("b", "x", [0]), ("c", "later", [0]), ("a", "much-later", [0]))
    yield side.create("y", 4)
    until(lambda: sum(map(len, side.logs("y").values())) == 4, "the topic y")
    yield {name: len(logs) for name, logs in side.logs("y").items()}
    yield side.configure("1", "cordoned.log.dirs", "*")
    until(lambda: side.cordoned() == ["a", "b", "c"] and not side.may_create(), "all cordoned", within=30)
    yield side.create("z", 2)
    yield side.create("z", 1, 1)
    yield side.alter(2, ("a", "x", [0]))
    yield side.configure("1", "cordoned.log.dirs", None, 1)
    until(lambda: side.cordoned() == [] and side.may_create(), "none cordoned", within=30)
    yield side.create("z", 2)


def moves_of(side: Asked) -> Iterator[Any]:
    """A move that is held by a throttle, is turned to a third directory and back, and one that is done."""
    side.create("m")
    until(lambda: any(side.logs("m").values()), "the topic m")
    for _ in range(30):
        produce(side.wire, "m", bytes(1000), now=1)
    source = side.home("m")
    target, third = (name for name in NAMES if name != source)
    yield side.configure("1", RATE, "1")

    def futures() -> list[str]:
        return [name for name, logs in side.logs("m").items() if any(one[4] for one in logs)]

    yield side.alter(2, (source, "m", [0])), futures()
    yield side.alter(2, (target, "m", [0])), futures() == [target]
    yield side.alter(1, (target, "m", [0])), futures() == [target]
    yield side.alter(2, (third, "m", [0])), futures() == [third]
    yield side.alter(2, (source, "m", [0])), futures()
    yield side.configure("1", RATE, None, 1)
    yield side.alter(2, (target, "m", [0]))
    until(lambda: side.home("m") == target and not futures(), "the move", within=60)
    yield [one[1:] for one in side.logs("m")[target]], len(fetch(side.wire, "m"))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asked, Asked]]:
    folders = tmp_path_factory.mktemp("ottla"), tmp_path_factory.mktemp("kafka")
    with (
        Broker(settings(folders[0]), directory=folders[0], lab=False) as broker,
        Kafka(settings(folders[1]), folders[1]) as kafka,
        Asked(broker, folders[0]) as ours,
        Asked(kafka, folders[1]) as theirs,
    ):
        yield ours, theirs


@pytest.mark.parametrize("story", [errors_of, cordons_of, moves_of])
def test_the_answers_are_those_of_kafka(story: Any, sides: tuple[Asked, Asked]) -> None:
    ottla, kafka = sides
    for ours, theirs in zip(story(ottla), story(kafka), strict=True):
        assert ours == theirs


def ran(name: str, *arguments: str) -> str:
    done = tool(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_kafkas_tools_move_replicas_and_kafka_starts_on_what_was_moved(tmp_path: Path) -> None:
    with Broker(settings(tmp_path), directory=tmp_path) as broker, Asked(broker, tmp_path) as side:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        side.create("t", 3)
        for number in range(30):
            produce(side.wire, "t", b"%d" % number, partition=number % 3)
        homes = {index: side.home("t", index) for index in range(3)}
        wanted = {index: NAMES[(NAMES.index(name) + 1) % 3] for index, name in homes.items()}
        plan = tmp_path / "plan.json"
        partitions = [
            {"topic": "t", "partition": index, "replicas": [1], "log_dirs": [side.path(name)]}
            for index, name in wanted.items()
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        words = ["--reassignment-json-file", str(plan), "--execute", "--replica-alter-log-dirs-throttle", "10000000"]
        started = ran("reassign.ReassignPartitionsCommand", *at, *words)
        assert started.count("Successfully started moving log directory") == 3
        until(lambda: all(side.home("t", index) == name for index, name in wanted.items()), "the moves", within=60)
        verified = ran("reassign.ReassignPartitionsCommand", *at, *words[:2], "--verify")
        assert verified.count("completed successfully") >= 3
        described = json.loads(ran("LogDirsCommand", *at, "--describe", "--topic-list", "t").splitlines()[-1])
        assert {Path(one["logDir"]).name: len(one["partitions"]) for one in described["brokers"][0]["logDirs"]} == {
            name: list(wanted.values()).count(name) for name in NAMES
        }
        before = [fetch(side.wire, "t", 0, index) for index in range(3)]
    for name in NAMES:
        check_directory(tmp_path / name)
        (tmp_path / name / "ottla.json").unlink()
    with Kafka(settings(tmp_path), tmp_path, formatted=True) as kafka, Asked(kafka, tmp_path) as side:
        until(lambda: side.home("t", 0) == wanted[0], "the logs", within=60)
        assert [side.home("t", index) for index in range(3)] == list(wanted.values())
        assert [fetch(side.wire, "t", 0, index) for index in range(3)] == before
