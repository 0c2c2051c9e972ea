"""Data directories go both ways: Kafka's tools read what ottla wrote, Kafka starts on it, and ottla opens and extends
Kafka's.
"""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.at_once import AT_ONCE
from ..support.dumps import check_directory
from ..support.poll import until
from ..support.wire import Wire
from .kafka import FEW_PARTITIONS, Kafka
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
NOW = int(time.time() * 1000)
LOADING = 14


def fill(broker: Broker) -> None:
    chance = random.Random(5)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "plain", 2, segment_bytes="1048576", index_interval_bytes="100")
        create(wire, "small", segment_bytes="1048576", segment_index_bytes="100", index_interval_bytes="10")
        for n in range(60):
            produce(
                wire,
                "plain",
                *[b"%d" % n * chance.randrange(40) for _ in range(3)],
                partition=n % 2,
                codec=n % 5,
                now=1000 + n,
            )
            produce(wire, "small", b"%d" % n, producer_id=3, producer_epoch=0, base_sequence=n, now=NOW - n)


def create_crowd(wire: Wire) -> dict[str, bytes]:
    """Creates topics with one request, whose records are one batch; returns their ids by name."""
    r = m.CreateTopicsRequest
    setting = r.CreatableTopicConfig(name="retention.ms", value="86400000")
    topics = [
        r.CreatableTopic(name=f"crowd-{n}", num_partitions=1, replication_factor=1, configs=[setting])
        for n in range(140)
    ]
    made = wire.ask("CreateTopics", 7, r(topics=topics, timeout_ms=30_000)).topics
    assert not any(one.error_code for one in made)
    return {one.name: one.topic_id for one in made}


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
            crowd = create_crowd(wire)
            before = fetch(wire, "plain"), fetch(wire, "small")
    kafka = Kafka(FEW_PARTITIONS, tmp_path, formatted=True, own_process=True)  # which has a log
    with kafka, Wire(kafka.bootstrap_servers) as wire:
        assert (fetch(wire, "plain"), fetch(wire, "small")) == before
        found = wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics
        assert {one.name: one.topic_id for one in found}.items() >= crowd.items()
        until(lambda: produce(wire, "plain", b"by Kafka").error_code == 0, "a produce after Kafka's own elections")
        again = produce(wire, "small", b"59", producer_id=3, producer_epoch=0, base_sequence=59, now=NOW - 59)
        assert again.base_offset == 59, "Kafka knows the producer from our snapshot"
        said = (tmp_path / "kafka.log").read_text()
        assert "DUPLICATE_BROKER_REGISTRATION" not in said, "it has not to wait until ottla's session has timed out"


def test_ottla_opens_and_extends_kafkas_directory(tmp_path: Path) -> None:
    with Kafka(FEW_PARTITIONS, tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
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
    with Kafka(FEW_PARTITIONS, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert fetch(wire, "theirs") == [b"%d" % n for n in range(41)]


def heartbeat(wire: Wire, group: str, member: str, epoch: int, *topics: str) -> Any:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = (
            10_000,
            list(topics),
            [],
        )
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
    asked = r.OffsetFetchRequestGroup(
        group_id=group, topics=[r.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
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
    until(lambda: not wire.ask("FindCoordinator", 4, find).coordinators[0].error_code, "a coordinator")
    while (first := heartbeat(wire, "new", "m1", 0, "grouped")).error_code or not first.assignment.topic_partitions:
        heartbeat(wire, "new", "m1", -1)
    j = m.JoinGroupRequest
    join = j(group_id="old", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer")
    join.protocols = [
        j.JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + b"\0\0\0\1\0\x07grouped\xff\xff\xff\xff\0\0\0\0")
    ]
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
    with Broker({**AT_ONCE, **FEW_PARTITIONS}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        member, epoch, before = make_groups(wire)
    logs = [str(p) for p in sorted((tmp_path / "data").glob("__consumer_offsets-*/*.log")) if p.stat().st_size]
    dumped = tool("DumpLogSegments", "--offsets-decoder", "--files", ",".join(logs)).stdout
    for part in (
        '"group":"simple","topic":"grouped","partition":0',
        '"offset":10',
        '"metadata":"with metadata"',
        '"memberId":"m1"',
    ):
        assert part in dumped, part
    with Kafka(FEW_PARTITIONS, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        loaded(wire)
        assert (committed(wire, "old", "grouped"), committed(wire, "simple", "grouped")) == (7, 10)
        h = m.HeartbeatRequest(group_id="old", generation_id=1, member_id=member)
        assert wire.ask("Heartbeat", 2, h).error_code == 0
        again = heartbeat(wire, "new", "m1", epoch)
        assert (again.error_code, again.member_epoch) == (0, epoch), (
            "Kafka computes the same metadata hash: no new epoch"
        )
        assert described(wire, "new") == before


def test_ottla_knows_the_groups_that_kafka_wrote(tmp_path: Path) -> None:
    with Kafka(FEW_PARTITIONS, tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        member, epoch, before = make_groups(wire)
    with Broker({"node.id": 1, **FEW_PARTITIONS}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        loaded(wire)
        assert (committed(wire, "old", "grouped"), committed(wire, "simple", "grouped")) == (7, 10)
        h = m.HeartbeatRequest(group_id="old", generation_id=1, member_id=member)
        assert wire.ask("Heartbeat", 2, h).error_code == 0
        again = heartbeat(wire, "new", "m1", epoch)
        assert (again.error_code, again.member_epoch) == (0, epoch), "the same metadata hash as Kafka's: no new epoch"
        assert described(wire, "new") == before
    assert check_directory(tmp_path / "data") > 3


def share_heartbeat(wire: Wire, epoch: int) -> Any:
    names = ["shared"] if epoch == 0 else None
    request = m.ShareGroupHeartbeatRequest(
        group_id="q", member_id="m1", member_epoch=epoch, subscribed_topic_names=names
    )
    return wire.ask("ShareGroupHeartbeat", 1, request)


def share_fetch(wire: Wire, topic_id: bytes, epoch: int, *acks: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """What one request acquires, until it acquires something."""
    r = m.ShareFetchRequest
    rows = [
        r.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        for first, last, kind in acks
    ]
    part = r.FetchPartition(partition_index=0, acknowledgement_batches=rows)
    request = r(
        group_id="q",
        member_id="m1",
        share_session_epoch=epoch,
        max_wait_ms=3000,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=100,
    )
    request.batch_size, request.topics = 100, [r.FetchTopic(topic_id=topic_id, partitions=[part])]
    reply = wire.ask("ShareFetch", 2, request)
    assert reply.error_code == 0, reply
    found = [p for t in reply.responses for p in t.partitions]
    assert [p.acknowledge_error_code for p in found if p.acknowledge_error_code] == []
    return [(one.first_offset, one.last_offset, one.delivery_count) for p in found for one in p.acquired_records]


def make_queue(wire: Wire) -> bytes:
    """Ten records: 0 to 2 and 6 accepted, 3 given back, 7 rejected, the others held by a member that never leaves."""
    topic_id = create(wire, "shared")
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["q"])
    until(lambda: not wire.ask("FindCoordinator", 4, find).coordinators[0].error_code, "a coordinator")
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    wire.ask(
        "IncrementalAlterConfigs",
        1,
        r(resources=[r.AlterConfigsResource(resource_type=32, resource_name="q", configs=[change])]),
    )
    produce(wire, "shared", *[b"%d" % n for n in range(10)], now=NOW)
    until(lambda: not share_heartbeat(wire, 0).error_code, "the group is loaded")
    d = m.DescribeShareGroupOffsetsRequest
    asked = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id="q", topics=None)])
    until(lambda: wire.ask("DescribeShareGroupOffsets", 1, asked).groups[0].topics, "an initialised share-partition")
    epochs = itertools.count()
    assert until(lambda: share_fetch(wire, topic_id, next(epochs)), "records are acquired") == [(0, 9, 1)]
    epoch = next(epochs) - 1
    share_fetch(wire, topic_id, epoch + 1, (0, 2, 1), (3, 3, 2), (6, 6, 1), (7, 7, 3))
    return topic_id


def continue_queue(wire: Wire, topic_id: bytes) -> None:
    got: list[tuple[int, int, int]] = []
    for epoch in range(200):
        found = share_fetch(wire, topic_id, epoch) if epoch else _first_share_fetch(wire, topic_id)
        got += found
        if sum(last - first + 1 for first, last, _ in got) >= 5:
            break
    counts = {offset: count for first, last, count in got for offset in range(first, last + 1)}
    assert sorted(counts) == [3, 4, 5, 8, 9]
    assert counts[3] in (2, 3), "delivered once more before the end, given back again, and that written or not"
    assert {counts[offset] for offset in (4, 5, 8, 9)} <= {1, 2}
    request = m.ShareGroupDescribeRequest(group_ids=["q"])

    def loaded() -> Any:
        found = wire.ask("ShareGroupDescribe", 1, request).groups[0]
        return None if found.error_code == LOADING else found

    described = until(loaded, "the group is loaded")
    assert (described.error_code, [one.member_id for one in described.members]) == (0, ["m1"])


def _first_share_fetch(wire: Wire, topic_id: bytes) -> list[tuple[int, int, int]]:
    """The broker may still load its share coordinators."""

    def fetched() -> list[list[tuple[int, int, int]]]:
        try:
            return [share_fetch(wire, topic_id, 0)]
        except AssertionError:
            return []

    return until(fetched, "the share coordinators load", every=0.1)[0]


def test_kafka_knows_the_share_groups_that_ottla_wrote(tmp_path: Path) -> None:
    with Broker(FEW_PARTITIONS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        topic_id = make_queue(wire)
    logs = [str(p) for p in sorted((tmp_path / "data").glob("__share_group_state-*/*.log")) if p.stat().st_size]
    dumped = tool("DumpLogSegments", "--share-group-state-decoder", "--files", ",".join(logs)).stdout
    for part in (
        '"groupId":"q"',
        '"firstOffset":0,"lastOffset":2,"deliveryState":2,"deliveryCount":1',
        '"firstOffset":3,"lastOffset":3,"deliveryState":0',
    ):
        assert part in dumped, dumped[-3000:]
    with Kafka(FEW_PARTITIONS, tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        continue_queue(wire, topic_id)


def test_ottla_knows_the_share_groups_that_kafka_wrote(tmp_path: Path) -> None:
    with Kafka(FEW_PARTITIONS, tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        topic_id = make_queue(wire)
    with Broker({"node.id": 1, **FEW_PARTITIONS}, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        continue_queue(wire, topic_id)
    assert check_directory(tmp_path / "data") > 3
