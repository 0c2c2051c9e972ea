"""Data directories go both ways: Kafka's tools read what ottla wrote, Kafka starts on it, and ottla opens and extends Kafka's."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from .ask import create, fetch, produce
from .dumps import check_directory
from .oracle.kafka import Kafka, tool
from .wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
NOW = int(time.time() * 1000)


def fill(broker: Broker) -> None:
    chance = random.Random(5)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "plain", 2, segment_bytes="1048576", index_interval_bytes="100")
        create(wire, "small", segment_bytes="1048576", segment_index_bytes="100", index_interval_bytes="10")
        for n in range(60):
            produce(wire, "plain", *[b"%d" % n * chance.randrange(40) for _ in range(3)], partition=n % 2, codec=n % 5, now=1000 + n)
            produce(wire, "small", b"%d" % n, producer_id=3, producer_epoch=0, base_sequence=n, now=NOW - n)


def test_kafkas_tools_read_every_file(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        fill(broker)
    assert check_directory(tmp_path / "data") > 10
    log = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
    dumped = tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log)).stdout
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"plain"' in dumped
    assert "LeaderChange" in dumped


def test_kafka_starts_on_ottlas_directory(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        fill(broker)
        with Wire(broker.bootstrap_servers) as wire:
            before = fetch(wire, "plain"), fetch(wire, "small")
    (tmp_path / "data" / "ottla.json").unlink()
    kafka = Kafka(directory=tmp_path, formatted=True)
    with kafka, Wire(kafka.bootstrap_servers) as wire:
        assert (fetch(wire, "plain"), fetch(wire, "small")) == before
        assert produce(wire, "plain", b"by Kafka").error_code == 0
        again = produce(wire, "small", b"59", producer_id=3, producer_epoch=0, base_sequence=59, now=NOW - 59)
        assert again.base_offset == 59, "Kafka knows the producer from our snapshot"


def test_ottla_opens_and_extends_kafkas_directory(tmp_path: Path) -> None:
    with Kafka(directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        topic_id = create(wire, "theirs", 2, retention_ms="900000000")
        while produce(wire, "theirs", b"0").error_code:
            continue
        for n in range(1, 40):
            produce(wire, "theirs", b"%d" % n, codec=n % 5)
    broker = Broker({"node.id": 1}, directory=tmp_path)
    with broker, Wire(broker.bootstrap_servers) as wire:
        (topic,) = [t for t in wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics if t.name == "theirs"]
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
        while produce(wire, "theirs", b"40", acks=1).error_code:
            continue
        assert fetch(wire, "theirs") == [b"%d" % n for n in range(41)]
    assert check_directory(tmp_path / "data") > 3
    with Kafka(directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert fetch(wire, "theirs") == [b"%d" % n for n in range(41)]


def heartbeat(wire: Wire, group: str, member: str, epoch: int, *topics: str) -> Any:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 10_000, list(topics), []
    return wire.ask("ConsumerGroupHeartbeat", 1, request)


def commit(wire: Wire, group: str, topic: str, offset: int, metadata: str = "", **more: Any) -> int:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    request = r(group_id=group, generation_id_or_member_epoch=more.pop("epoch", -1), **more)
    request.topics = [r.OffsetCommitRequestTopic(name=topic, partitions=[part])]
    code: int = wire.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code
    return code


def committed(wire: Wire, group: str, topic: str) -> int:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(group_id=group, topics=[r.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])])
    found = wire.ask("OffsetFetch", 8, r(groups=[asked])).groups[0]
    return int(found.topics[0].partitions[0].committed_offset) if found.error_code == 0 else -found.error_code


def described(wire: Wire, group: str) -> Any:
    """The group without what a restart may change."""
    (found,) = wire.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[group])).groups
    (member,) = found.members
    return found.error_code, found.group_state, found.group_epoch, found.assignment_epoch, member


def make_groups(wire: Wire) -> Any:
    """A consumer group, a classic group and a simple one, with offsets."""
    create(wire, "grouped", 3)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    while wire.ask("FindCoordinator", 4, find).coordinators[0].error_code:
        continue
    while (first := heartbeat(wire, "new", "m1", 0, "grouped")).error_code or not first.assignment.topic_partitions:
        heartbeat(wire, "new", "m1", -1)
    j = m.JoinGroupRequest
    join = j(group_id="old", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer")
    join.protocols = [j.JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + b"\0\0\0\1\0\x07grouped\xff\xff\xff\xff\0\0\0\0")]
    joined = wire.ask("JoinGroup", 3, join)
    s = m.SyncGroupRequest
    sync = s(group_id="old", generation_id=1, member_id=joined.member_id)
    sync.assignments = [s.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")]
    assert wire.ask("SyncGroup", 3, sync).assignment == b"mine"
    assert commit(wire, "old", "grouped", 7, member_id=joined.member_id, epoch=1) == 0
    assert commit(wire, "simple", "grouped", 9, "with metadata") == 0
    assert commit(wire, "simple", "grouped", 10, "with metadata") == 0
    return joined.member_id, first.member_epoch, described(wire, "new")


def loaded(wire: Wire) -> None:
    """Returns when the shards of all three groups are."""
    while committed(wire, "simple", "grouped") < 0 or committed(wire, "old", "grouped") < 0:
        continue
    while wire.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["new"])).groups[0].error_code:
        continue


def test_kafka_knows_the_groups_that_ottla_wrote(tmp_path: Path) -> None:
    with Broker({"ottla.group.settle": False}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        member, epoch, before = make_groups(wire)
    logs = [str(p) for p in sorted((tmp_path / "data").glob("__consumer_offsets-*/*.log")) if p.stat().st_size]
    dumped = tool("DumpLogSegments", "--offsets-decoder", "--files", ",".join(logs)).stdout
    for part in ('"group":"simple","topic":"grouped","partition":0', '"offset":10', '"metadata":"with metadata"', '"memberId":"m1"'):
        assert part in dumped, part
    (tmp_path / "data" / "ottla.json").unlink()
    with Kafka(directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        loaded(wire)
        assert (committed(wire, "old", "grouped"), committed(wire, "simple", "grouped")) == (7, 10)
        h = m.HeartbeatRequest(group_id="old", generation_id=1, member_id=member)
        assert wire.ask("Heartbeat", 2, h).error_code == 0
        again = heartbeat(wire, "new", "m1", epoch)
        assert (again.error_code, again.member_epoch) == (0, epoch), "Kafka computes the same metadata hash: no new epoch"
        assert described(wire, "new") == before


def test_ottla_knows_the_groups_that_kafka_wrote(tmp_path: Path) -> None:
    with Kafka(directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        member, epoch, before = make_groups(wire)
    with Broker({"node.id": 1}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        loaded(wire)
        assert (committed(wire, "old", "grouped"), committed(wire, "simple", "grouped")) == (7, 10)
        h = m.HeartbeatRequest(group_id="old", generation_id=1, member_id=member)
        assert wire.ask("Heartbeat", 2, h).error_code == 0
        again = heartbeat(wire, "new", "m1", epoch)
        assert (again.error_code, again.member_epoch) == (0, epoch), "the same metadata hash as Kafka's: no new epoch"
        assert described(wire, "new") == before
    assert check_directory(tmp_path / "data") > 3
