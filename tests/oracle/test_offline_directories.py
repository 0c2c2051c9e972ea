"""A log directory that cannot be opened at start, or that fails while the broker runs: ottla and Apache Kafka give the
same replies about the partitions in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.ask import batch, create, fetch_message, produce_message
from ..support.wire import Wire
from .kafka import Kafka

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
PARTITIONS = 4
WITHIN_S = 60.0
SETTLED_WITHIN_S = 5.0
STARTS_MAX = 12
SETTINGS: dict[str, object] = {"log.flush.offset.checkpoint.interval.ms": 500, "offsets.topic.num.partitions": 4}
IDS = ("topic_id", "cluster_id", "port")


class Side:
    """One of the two brokers, with two log directories, and a partition of `t` in the second."""

    def __init__(self, make: type[Broker] | type[Kafka], root: Path) -> None:
        self.first, self.second, self.away = root / "a", root / "b", root / "away"
        settings = {**SETTINGS, "log.dirs": f"{self.first},{self.second}"}
        self.has_stopped = False
        self.broker: Any = Kafka(settings, root) if make is Kafka else Broker(settings, directory=root, lab=False)
        self.broker.start()
        with self.wire() as wire:
            create(wire, "t", PARTITIONS)
            found = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            self.until(lambda: self.ask("FindCoordinator", 4, found).coordinators[0].error_code == 0)
            for index in range(PARTITIONS):
                self.until(lambda index=index: self.produced(index) == 0)
        self.index = self.inside("t")[0]
        # Kafka names a coordinator before it has made the directories of its partitions
        self.until(lambda: self.inside("__consumer_offsets"))
        self.key = next(
            key for key in map(str, range(100)) if partition_for(key, 4) in self.inside("__consumer_offsets")
        )

    def inside(self, topic: str) -> list[int]:
        """The partitions of a topic that lie in the second directory."""
        return sorted(int(path.name.rpartition("-")[2]) for path in self.second.glob(f"{topic}-*"))

    def wire(self) -> Wire:
        return Wire(self.broker.bootstrap_servers)

    def ask(self, name: str, version: int, message: Any) -> Any:
        with self.wire() as wire:
            return wire.ask(name, version, message)

    def becomes(self, done: Any, within_seconds: float) -> bool:
        deadline = time.monotonic() + within_seconds
        while not done():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)  # another process can only be asked again
        return True

    def until(self, done: Any) -> None:
        assert self.becomes(done, WITHIN_S)

    def produced(self, index: int) -> int:
        reply = self.ask("Produce", 9, produce_message("t", batch(b"x"), index))
        return int(reply.responses[0].partition_responses[0].error_code)

    def leader(self) -> int:
        request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="t")])
        (topic,) = self.ask("Metadata", 12, request).topics
        return next(int(one.leader_id) for one in topic.partitions if one.partition_index == self.index)

    def fails_at_start(self) -> bool:
        """Starts the broker again on a directory whose `meta.properties` cannot be read. False if Kafka lost a race:
        its controller took the leader away before the broker tried to open the partition, which then is not offline but
        not led (NOT_LEADER_OR_FOLLOWER), for ever. One of five starts ends so. Or its broker stopped before it had told
        the controller in which directory a partition of `__consumer_offsets` is, and makes it again in the other one.
        """
        self.broker.stop()
        (self.second / "meta.properties").rename(self.away)
        (self.second / "meta.properties").mkdir()
        self.broker.start()
        self.until(lambda: self.leader() < 0)
        return self.becomes(self.is_offline, SETTLED_WITHIN_S)

    def stop(self) -> None:
        if not self.has_stopped:
            self.has_stopped = True
            self.broker.stop()

    def heal_and_start(self) -> None:
        self.broker.stop()
        (self.second / "meta.properties").rmdir()
        self.away.rename(self.second / "meta.properties")
        self.broker.start()
        self.until(lambda: self.produced(self.index) == 0)

    def fail_now(self) -> None:
        """Has the next write of a checkpoint fail."""
        self.second.rename(self.away)
        self.second.touch()
        self.until(self.is_offline)

    def is_offline(self) -> bool:
        """Kafka's broker and controller learn of it one after the other; the broker's first error may be another."""
        return (
            self.produced(self.index) == Errors.KAFKA_STORAGE_ERROR
            and self.leader() < 0
            and self.coordinator().coordinators[0].error_code == Errors.COORDINATOR_NOT_AVAILABLE
        )

    def coordinator(self) -> Any:
        """The answer about a group whose partition lies in the second directory."""
        return self.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.key]))

    def said(self) -> dict[str, Any]:
        """The fields of the replies about the partition, by API, version and path."""
        q, f, o, d = m.MetadataRequest, m.FetchRequest, m.ListOffsetsRequest, m.DescribeTopicPartitionsRequest
        metadata = self.ask("Metadata", 12, q(topics=[q.MetadataRequestTopic(name="t")]))
        topic_id = metadata.topics[0].topic_id
        found: dict[str, Any] = {"Metadata 12": self.own(metadata)}
        for version in (1, 4, 8):
            found[f"Metadata {version}"] = self.own(
                self.ask("Metadata", version, q(topics=[q.MetadataRequestTopic(name="t")]))
            )
        described = d(topics=[d.TopicRequest(name="t")], response_partition_limit=100)
        found["DescribeTopicPartitions"] = self.own(self.ask("DescribeTopicPartitions", 0, described))
        for acks in (1, -1):
            found[f"Produce 9, acks={acks}"] = self.ask(
                "Produce", 9, produce_message("t", batch(b"x"), self.index, acks=acks)
            )
        by_id = produce_message("t", batch(b"x"), self.index)
        by_id.topic_data[0].topic_id = topic_id
        found["Produce 13"] = self.ask("Produce", 13, by_id)
        for version in (4, 11, 12):
            found[f"Fetch {version}"] = self.ask("Fetch", version, fetch_message("t", 0, self.index))
        part = f.FetchPartition(partition=self.index, fetch_offset=0, partition_max_bytes=1 << 20)
        request = f(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, session_epoch=-1)
        request.topics = [f.FetchTopic(topic_id=topic_id, partitions=[part])]
        found["Fetch 16"] = self.ask("Fetch", 16, request)
        for timestamp in (-1, -2, -3, -4, 0):
            at = o.ListOffsetsPartition(partition_index=self.index, timestamp=timestamp)
            found[f"ListOffsets {timestamp}"] = self.ask(
                "ListOffsets", 8, o(replica_id=-1, topics=[o.ListOffsetsTopic(name="t", partitions=[at])])
            )
        return {
            path: value
            for name, reply in (found | self.said_of_files()).items()
            for path, value in flat(reply, self.index, name)
        }

    def said_of_files(self) -> dict[str, Any]:
        p, d, e = m.DescribeProducersRequest, m.DeleteRecordsRequest, m.OffsetForLeaderEpochRequest
        found: dict[str, Any] = {}
        directories = self.ask("DescribeLogDirs", 4, m.DescribeLogDirsRequest(topics=None)).results
        found["DescribeLogDirs"] = sorted(
            (Path(one.log_dir).name, one.error_code, one.total_bytes < 0, one.usable_bytes < 0, self.count(one))
            for one in directories
        )
        found["DescribeProducers"] = self.ask(
            "DescribeProducers", 0, p(topics=[p.TopicRequest(name="t", partition_indexes=[self.index])])
        )
        part = d.DeleteRecordsPartition(partition_index=self.index, offset=0)
        found["DeleteRecords"] = self.ask(
            "DeleteRecords", 2, d(timeout_ms=3000, topics=[d.DeleteRecordsTopic(name="t", partitions=[part])])
        )
        epoch = e.OffsetForLeaderPartition(partition=self.index, current_leader_epoch=-1, leader_epoch=0)
        found["OffsetForLeaderEpoch"] = self.ask(
            "OffsetForLeaderEpoch", 4, e(replica_id=-1, topics=[e.OffsetForLeaderTopic(topic="t", partitions=[epoch])])
        )
        coordinator = self.coordinator()
        coordinator.coordinators[0].key = ""
        found["FindCoordinator"] = coordinator
        o = m.OffsetFetchRequest
        wanted = o.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        (group,) = self.ask(
            "OffsetFetch", 8, o(groups=[o.OffsetFetchRequestGroup(group_id=self.key, topics=[wanted])])
        ).groups
        found["OffsetFetch"] = group.error_code
        return found

    @staticmethod
    def count(directory: Any) -> int:
        """How many partitions of `t` a directory has."""
        return sum(len(topic.partitions) for topic in directory.topics if topic.name == "t")

    def own(self, reply: Any) -> Any:
        """The topic of a reply with the one partition that is compared."""
        (topic,) = reply.topics
        topic.partitions = [one for one in topic.partitions if one.partition_index == self.index]
        return topic


def flat(value: Any, index: int, path: str) -> Iterator[tuple[str, Any]]:
    """The fields of a message by their paths, without ids, and with a name in place of the partition's number."""
    if hasattr(value, "unknown_tags"):
        for name in value.__slots__:
            part = getattr(value, name)
            if name in ("index", "partition", "partition_index"):
                yield f"{path}.{name}", "the partition" if part == index else part
            elif name not in IDS:
                yield from flat(part, index, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}[]", len(value)
        for number, one in enumerate(value):
            yield from flat(one, index, f"{path}[{number}]")
    else:
        yield path, bytes(value) if isinstance(value, memoryview) else value


Make = Callable[[type[Broker] | type[Kafka]], Side]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes sides, and stops their brokers at the end."""
    made: list[Side] = []

    def one(kind: type[Broker] | type[Kafka]) -> Side:
        made.append(Side(kind, tmp_path / str(len(made))))
        return made[-1]

    yield one
    for side in made:
        side.stop()


def failed_at_start(make: Make, kind: type[Broker] | type[Kafka]) -> Side:
    for _ in range(STARTS_MAX):
        side = make(kind)
        if side.fails_at_start():
            return side
        side.stop()
    raise AssertionError(f"no partition went offline in {STARTS_MAX} starts")


def check(sides: tuple[Side, Side]) -> None:
    ottla, kafka = (side.said() for side in sides)
    assert len(ottla) > 200
    different = [(path, ottla.get(path), kafka.get(path)) for path in sorted({*ottla, *kafka})]
    assert [one for one in different if one[1] != one[2]] == []


def test_a_directory_that_cannot_be_opened_at_start(make: Make) -> None:
    sides = failed_at_start(make, Broker), failed_at_start(make, Kafka)
    check(sides)
    for side in sides:
        side.heal_and_start()
        assert side.leader() == 1


def test_a_directory_that_fails_at_run_time(make: Make) -> None:
    sides = make(Broker), make(Kafka)
    for side in sides:
        side.fail_now()
    check(sides)
