"""Every version of every API, good and bad, asked of ottla and of Apache Kafka: the replies are the same, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.broker.registry import apis
from ottla.protocol import messages as m
from ottla.protocol import records, schema
from ottla.protocol.records import Record, Template
from ottla.protocol.schema import NO_UUID

from ottla.testing import Broker

from .differential import ALLOWED, Pair, Tally
from .wire import Closed, Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
T = 1_700_000_000_000


@pytest.fixture(scope="module")
def ours() -> Iterator[Broker]:
    with Broker(lab=False) as broker:
        yield broker


def versions(name: str) -> range:
    """The released versions of a request."""
    loaded = schema.load(f"{name}Request")
    return range(loaded.valid.low, loaded.valid.high + (0 if loaded.unstable else 1))


def creatable(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Any:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    topic.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    return topic


def create(pair: Pair, *topics: Any, version: int = 7, validate_only: bool = False) -> None:
    pair.ask("CreateTopics", version, m.CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only))


def topic_ids(pair: Pair, name: str) -> tuple[bytes, bytes]:
    """The topic's id here and there, waiting until both tell it."""
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    for _ in range(5000):
        found = [w.ask("Metadata", 12, request).topics[0] for w in (pair.ours, pair.theirs)]
        if all(f.error_code == 0 and f.partitions for f in found) and all(_leads(w, found[0]) for w in (pair.ours, pair.theirs)):
            return found[0].topic_id, found[1].topic_id
    raise AssertionError(f"{name} does not appear")


def _leads(wire: Any, topic_known: Any) -> bool:
    """Whether the broker serves the topic already, and does not only know of it."""
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=p.partition_index, timestamp=-1) for p in topic_known.partitions]
    topic = r.ListOffsetsTopic(name=topic_known.name, partitions=parts)
    answer = wire.ask("ListOffsets", 5, r(replica_id=-1, topics=[topic]))
    return all(p.error_code == 0 for p in answer.topics[0].partitions)


def batch(*values: str | None, codec: int = 0, keys: list[str] | None = None, **template: Any) -> bytes:
    rows = [Record(keys[i].encode() if keys else None, None if v is None else v.encode(), T + i) for i, v in enumerate(values)]
    return bytes(records.encode(rows, Template(codec=codec, **template)))


def produce_request(version: int, name: str, topic_id: bytes, data: Any, partition: int = 0, acks: int = -1) -> Any:
    r = m.ProduceRequest
    part = r.PartitionProduceData(index=partition, records=data)
    topic = r.TopicProduceData(partition_data=[part])
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.name = name
    return r(acks=acks, timeout_ms=5000, topic_data=[topic])


def produce(pair: Pair, name: str, ids: tuple[bytes, bytes], data: Any, version: int = 9, **more: Any) -> Any:
    theirs = produce_request(version, name, ids[1], data, **more)
    mine = produce_request(version, name, ids[0], data, **more)
    return pair.ask("Produce", version, theirs, mine)[0]


def topic(pair: Pair, name: str, partitions: int = 1, **configs: str) -> tuple[bytes, bytes]:
    create(pair, creatable(name, partitions, 1, **configs))
    return topic_ids(pair, name)


# what is listed


def test_the_listed_versions_are_kafkas(pair: Pair) -> None:
    for version in versions("ApiVersions"):
        request = m.ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
        mine, other = pair.ask("ApiVersions", version, request)
        theirs = {a.api_key: (a.min_version, a.max_version) for a in other.api_keys}
        listed = {a.api_key: (a.min_version, a.max_version) for a in mine.api_keys}
        assert listed == {key: theirs[key] for key in listed}
        assert set(listed) == set(apis())


def test_api_versions_refuses_what_kafka_refuses(pair: Pair) -> None:
    for name, version in (("", "1"), ("a b", "1"), ("a", ""), ("-a", "1"), ("a", "1-"), ("a.b-c", "1.2-x"), ("é", "1")):
        pair.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name=name, client_software_version=version))
    for node_id in (-1, 1, 2):
        for cluster in (None, "somewhere-else"):
            request = m.ApiVersionsRequest(client_software_name="w", client_software_version="1", node_id=node_id, cluster_id=cluster)
            pair.ask("ApiVersions", 5, request)


# topics


def test_create_and_delete_topics(pair: Pair) -> None:
    for version in versions("CreateTopics"):
        n = f"ct-{version}"
        for validate_only in (True, False, False):
            create(pair, creatable(n, 2, retention_ms="1000"), creatable(f"{n}-b"), version=version, validate_only=validate_only)
        create(pair, creatable(f"{n}-d", -1, -1) if version >= 4 else creatable(f"{n}-d"), version=version)
    names = [f"ct-{v}" for v in versions("CreateTopics")]
    for version in versions("DeleteTopics"):
        r = m.DeleteTopicsRequest
        if version < 6:
            pair.ask("DeleteTopics", version, r(topic_names=[names[version], "absent", "absent-2"], timeout_ms=10_000))
            pair.ask("DeleteTopics", version, r(topic_names=[names[version]], timeout_ms=10_000))
            pair.ask("DeleteTopics", version, r(topic_names=["x", "x"], timeout_ms=10_000))
        else:
            states = [r.DeleteTopicState(name=names[5]), r.DeleteTopicState(name="absent")]
            pair.ask("DeleteTopics", version, r(topics=states, timeout_ms=10_000))
            pair.ask("DeleteTopics", version, r(topics=[r.DeleteTopicState(name=None, topic_id=b"x" * 16)], timeout_ms=10_000))
            pair.ask("DeleteTopics", version, r(topics=[r.DeleteTopicState(name="a", topic_id=b"x" * 16)], timeout_ms=10_000))
            pair.ask("DeleteTopics", version, r(topics=[r.DeleteTopicState(name=None)], timeout_ms=10_000))
            both = r.DeleteTopicState(name="a", topic_id=b"x" * 16)
            for state in (r.DeleteTopicState(name=None, topic_id=b"x" * 16), r.DeleteTopicState(name="x"), r.DeleteTopicState(name=None), both):
                pair.ask("DeleteTopics", version, r(topics=[state, state, r.DeleteTopicState(name="y")], timeout_ms=10_000))
            mixed = r(topics=[both, r.DeleteTopicState(name="a")], timeout_ms=10_000)  # not twice the same; Kafka shuffles its answers
            told = [sorted(map(repr, wire.ask("DeleteTopics", version, mixed).responses)) for wire in (pair.ours, pair.theirs)]
            assert told[0] == told[1]


BAD_NAMES = ["", ".", "..", "a b", "a/b", "ü", "x" * 250, "__cluster_metadata"]


@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_topics_that_cannot_be_created(pair: Pair, version: int) -> None:
    for name in BAD_NAMES:
        create(pair, creatable(name), version=version)
    for partitions, factor in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 3), (20_000, 1)):
        create(pair, creatable("nope", partitions, factor), version=version)
    for configs in (
        {"retention_ms": "soon"},
        {"retention_ms": "-2"},
        {"segment_bytes": "1"},
        {"cleanup_policy": "burn"},
        {"cleanup_policy": "delete,burn"},
        {"compression_type": "zip"},
        {"no_such_key": "1"},
        {"min_insync_replicas": "0"},
        {"min_cleanable_dirty_ratio": "1.5"},
        {"preallocate": "maybe"},
        {"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"},
        {"compression_gzip_level": "0"},
        {"message_timestamp_type": "Now"},
        {"flush_messages": "99999999999999999999"},
        {"remote_storage_enable": "true"},
    ):
        create(pair, creatable("nope", 1, 1, **configs), version=version)
    create(pair, creatable("twice"), creatable("twice"), version=version)
    dotted = f"col.lide{version}"
    create(pair, creatable(dotted), version=version)
    create(pair, creatable(dotted.replace(".", "_")), version=version)


def test_a_topic_with_configs_that_are_null(pair: Pair) -> None:
    for name in ("retention.ms", "no.such"):
        wanted = creatable("null-config")
        wanted.configs = [m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=None)]
        for version in versions("CreateTopics"):
            create(pair, wanted, version=version)


def test_manual_assignments(pair: Pair) -> None:
    r = m.CreateTopicsRequest
    a = r.CreatableReplicaAssignment
    for number, (partitions, factor, assignments) in enumerate(
        [
            (-1, -1, [a(partition_index=0, broker_ids=[1])]),
            (-1, -1, [a(partition_index=1, broker_ids=[1])]),
            (-1, -1, [a(partition_index=0, broker_ids=[])]),
            (-1, -1, [a(partition_index=0, broker_ids=[7])]),
            (-1, -1, [a(partition_index=0, broker_ids=[1, 1])]),
            (-1, -1, [a(partition_index=0, broker_ids=[1]), a(partition_index=0, broker_ids=[1])]),
            (2, -1, [a(partition_index=0, broker_ids=[1])]),
            (-1, 1, [a(partition_index=0, broker_ids=[1])]),
        ]
    ):
        wanted = r.CreatableTopic(name=f"manual-{number}", num_partitions=partitions, replication_factor=factor, assignments=assignments)
        create(pair, wanted)


def test_create_partitions(pair: Pair) -> None:
    topic(pair, "more", 2)
    r = m.CreatePartitionsRequest
    t, a = r.CreatePartitionsTopic, r.CreatePartitionsAssignment
    for version in versions("CreatePartitions"):
        count = 3 + version
        for wanted in (
            t(name="more", count=count, assignments=None),
            t(name="more", count=count, assignments=None),
            t(name="more", count=1, assignments=None),
            t(name="more", count=-1, assignments=None),
            t(name="absent", count=3, assignments=None),
            t(name="more", count=count + 2, assignments=[a(broker_ids=[1])]),
            t(name="more", count=count + 1, assignments=[a(broker_ids=[9])]),
            t(name="more", count=count + 1, assignments=[a(broker_ids=[])]),
        ):
            pair.ask("CreatePartitions", version, r(topics=[wanted], timeout_ms=10_000))
        valid = t(name="more", count=count + 1, assignments=None)
        pair.ask("CreatePartitions", version, r(topics=[valid], timeout_ms=10_000, validate_only=True))
        pair.ask("CreatePartitions", version, r(topics=[valid, valid], timeout_ms=10_000))
    topic_ids(pair, "more")


# metadata


def test_metadata(pair: Pair) -> None:
    ids = topic(pair, "md", 3)
    r = m.MetadataRequest
    t = r.MetadataRequestTopic
    for version in versions("Metadata"):
        for names in (["md"], ["absent"], ["md", "absent"], ["a b"], [""], ["md", "md"]):
            request = r(topics=[t(name=n) for n in names], allow_auto_topic_creation=version < 4)
            if version < 4 and names != ["md"]:
                continue
            pair.ask("Metadata", version, request)
        if version >= 8:
            asked = r(topics=[t(name="md")], include_topic_authorized_operations=True, allow_auto_topic_creation=False)
            asked.include_cluster_authorized_operations = version <= 10
            pair.ask("Metadata", version, asked)
        if version >= 1:
            pair.ask("Metadata", version, r(topics=[]))
        if version >= 12:
            theirs = r(topics=[t(topic_id=ids[1], name=None)], allow_auto_topic_creation=False)
            pair.ask("Metadata", version, theirs, r(topics=[t(topic_id=ids[0], name=None)], allow_auto_topic_creation=False))
            pair.ask("Metadata", version, r(topics=[t(topic_id=b"?" * 16, name=None)], allow_auto_topic_creation=False))
        if version in (10, 11):
            pair.ask("Metadata", version, r(topics=[t(topic_id=b"?" * 16, name=None)], allow_auto_topic_creation=False))
            pair.ask("Metadata", version, r(topics=[t(name=None)], allow_auto_topic_creation=False))


def test_auto_creation(pair: Pair) -> None:
    r = m.MetadataRequest
    for version in versions("Metadata"):
        wanted = r(topics=[r.MetadataRequestTopic(name=f"auto-{version}")])
        pair.ask("Metadata", version, wanted)
        topic_ids(pair, f"auto-{version}")
        pair.ask("Metadata", version, wanted)


def test_describe_cluster(pair: Pair) -> None:
    r = m.DescribeClusterRequest
    for version in versions("DescribeCluster"):
        for operations in (False, True):
            pair.ask("DescribeCluster", version, r(include_cluster_authorized_operations=operations))
        if version >= 1:
            for endpoint in (1, 2, 3):
                pair.ask("DescribeCluster", version, r(endpoint_type=endpoint))
        if version >= 2:
            pair.ask("DescribeCluster", version, r(include_fenced_brokers=True))


def test_describe_topic_partitions(pair: Pair) -> None:
    topic(pair, "dtp-a", 3)
    topic(pair, "dtp-b", 2)
    r = m.DescribeTopicPartitionsRequest
    names = [r.TopicRequest(name=n) for n in ("dtp-b", "dtp-a", "absent", "a b")]
    for limit in (1, 2, 3, 4, 5, 2000):
        pair.ask("DescribeTopicPartitions", 0, r(topics=names, response_partition_limit=limit))
    for cursor in (r.Cursor(topic_name="dtp-a", partition_index=1), r.Cursor(topic_name="dtp-b", partition_index=0)):
        pair.ask("DescribeTopicPartitions", 0, r(topics=names, cursor=cursor))
    pair.ask("DescribeTopicPartitions", 0, r(topics=names, cursor=r.Cursor(topic_name="dtp-a", partition_index=-1)))
    pair.ask("DescribeTopicPartitions", 0, r(topics=names, response_partition_limit=0))


# produce


@pytest.mark.parametrize("version", versions("Produce"))
def test_produce(pair: Pair, version: int) -> None:
    name = f"pr-{version}"
    ids = topic(pair, name, 2)
    for acks in (-1, 1):
        produce(pair, name, ids, batch("a", "b"), version, acks=acks)
    for codec in range(5):
        produce(pair, name, ids, batch("a" * 500, "b", codec=codec), version)
    produce(pair, name, ids, batch("a"), version, acks=5)
    produce(pair, name, ids, batch("a"), version, partition=9)
    produce(pair, "absent", (b"?" * 16, b"?" * 16), batch("a"), version)
    good = batch("a")
    for data in (
        b"",
        good[:40],
        good + good,
        good[:-1] + bytes([good[-1] ^ 1]),
        good[:16] + b"\x01" + good[17:],
        good[:16] + b"\x00" + good[17:],
        good[:16] + b"\x03" + good[17:],
        b"\0\0\0\0\0\0\0\x05" + good[8:],
        good[:8] + b"\0\0\0\x05" + good[12:],
        good[:8] + b"\xff\xff\xff\xff" + good[12:],
        good[:8] + b"\0\0\0\x2a" + good[12:],
    ):
        produce(pair, name, ids, data, version)
    produce(pair, name, ids, batch("x" * 1_100_000), version)
    produce(pair, name, ids, batch("c", control=True), version)


@pytest.mark.parametrize("version", versions("Produce"))
def test_internal_topics_are_not_for_producers(pair: Pair, version: int) -> None:
    for wire in (pair.ours, pair.theirs):
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        while wire.ask("FindCoordinator", 4, find).coordinators[0].error_code:
            continue
    produce(pair, "__consumer_offsets", topic_ids(pair, "__consumer_offsets"), batch("x", keys=["k"]), version=version)
    produce(pair, "__transaction_state", (b"x" * 16, b"x" * 16), batch("x", keys=["k"]), version=version)


def crafted(data: bytes, place: int, value: bytes) -> bytes:
    """A batch with other bytes at a place, and a CRC that fits."""
    changed = bytearray(data)
    changed[place : place + len(value)] = value
    changed[17:21] = records.computed_crc(changed, 0, len(changed)).to_bytes(4, "big")
    return bytes(changed)


def test_batches_that_lie(pair: Pair) -> None:
    ids = topic(pair, "lies")
    good = batch("a", "b", "c")
    for place, value in (
        (23, b"\0\0\0\x09"),  # last offset delta
        (23, b"\xff\xff\xff\xff"),
        (57, b"\0\0\0\0"),  # record count
        (57, b"\0\0\0\x09"),
        (57, b"\xff\xff\xff\xff"),
        (21, b"\0\x05"),  # a codec that nobody has
        (21, b"\0\x07"),
        (43, b"\0\0\0\0\0\0\0\x07"),  # a producer id without epoch and sequence
    ):
        produce(pair, "lies", ids, crafted(good, place, value))


def test_idempotent_producers(pair: Pair) -> None:
    ids = topic(pair, "idem")

    def send(pid: int, epoch: int, sequence: int, *values: str, version: int = 9) -> None:
        data = batch(*values, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        produce(pair, "idem", ids, data, version)

    for version in (3, 8, 13):
        pid = 5000 + version
        send(pid, 0, 0, "a", "b", version=version)
        send(pid, 0, 2, "c", version=version)
        send(pid, 0, 2, "c", version=version)  # once more
        send(pid, 0, 0, "a", "b", version=version)
        send(pid, 0, 5, "too", "far", version=version)
        send(pid, 0, 1, "b", version=version)
        for n in range(3, 10):
            send(pid, 0, n, "x", version=version)
        send(pid, 0, 2, "c", version=version)  # no longer remembered
        send(pid, 1, 4, "new epoch", version=version)
        send(pid, 1, 0, "new epoch", version=version)
        send(pid, 0, 10, "old epoch", version=version)
        send(pid + 100, 0, 77, "anywhere", version=version)
        send(pid + 200, 0, 2**31 - 2, "to", "the", "end", version=version)
        send(pid + 200, 0, 1, "and on", version=version)
    pair.ask("DescribeProducers", 0, describe_producers("idem", 0))
    pair.ask("DescribeProducers", 0, describe_producers("idem", 7))
    pair.ask("DescribeProducers", 0, describe_producers("absent", 0))


def test_timestamps_that_are_out_of_bounds(pair: Pair) -> None:
    """What is said of them holds the bounds, which are of the moment."""
    topic(pair, "bounds", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    for version in (7, 8, 9):
        told = []
        for side, wire in enumerate((pair.ours, pair.theirs)):
            request = produce_request(version, "bounds", topic_ids(pair, "bounds")[side], batch("a", "b"))
            answer = wire.ask("Produce", version, request).responses[0].partition_responses[0]
            text = re.sub(r"\d{10,}", "N", repr(answer))
            told.append(text)
        assert told[0] == told[1]
        assert ("out of range" in told[0]) is (version >= 8)


def describe_producers(name: str, partition: int) -> Any:
    r = m.DescribeProducersRequest
    return r(topics=[r.TopicRequest(name=name, partition_indexes=[partition])])


def test_topic_configs_have_their_effect_on_produce(pair: Pair) -> None:
    ids = topic(pair, "compacted", cleanup_policy="compact")
    for version in (7, 9):
        produce(pair, "compacted", ids, batch("no key"), version)
        produce(pair, "compacted", ids, batch("k", keys=["a"]), version)
        produce(pair, "compacted", ids, batch("1", "2", "3", "4", "5"), version)
    ids = topic(pair, "small-inside", max_decompressed_message_bytes="2000", cleanup_policy="compact")
    for codec in (0, 1, 2, 3, 4):
        produce(pair, "small-inside", ids, batch("x" * 3000, codec=codec, keys=["k"]))
    ids = topic(pair, "appendtime", message_timestamp_type="LogAppendTime")
    produce(pair, "appendtime", ids, batch("a", "b"))
    ids = topic(pair, "small", max_message_bytes="200")
    produce(pair, "small", ids, batch("x" * 300))
    produce(pair, "small", ids, batch("x"))
    ids = topic(pair, "two-of-one", min_insync_replicas="2")
    produce(pair, "two-of-one", ids, batch("x"))
    produce(pair, "two-of-one", ids, batch("x"), acks=1)
    for kind in ("gzip", "uncompressed", "zstd", "lz4", "snappy"):
        ids = topic(pair, f"as-{kind}", compression_type=kind)
        produce(pair, f"as-{kind}", ids, batch("x" * 1000, codec=0))
        produce(pair, f"as-{kind}", ids, batch("x" * 1000, codec=2))
        fetched = [
            next(records.batches(data)).header.codec
            for data in (
                w.ask("Fetch", 4, fetch_request(4, f"as-{kind}", NO_UUID, 0)).responses[0].partitions[0].records for w in (pair.ours, pair.theirs)
            )
        ]
        assert fetched[0] == fetched[1]


def test_producer_ids(pair: Pair) -> None:
    r = m.InitProducerIdRequest
    for version in versions("InitProducerId"):
        pair.ask("InitProducerId", version, r(transactional_id=None, transaction_timeout_ms=60_000))
        pair.ask("InitProducerId", version, r(transactional_id="", transaction_timeout_ms=60_000))


# fetch and offsets


def fetch_request(version: int, name: str, topic_id: bytes, offset: int, **more: Any) -> Any:
    r = m.FetchRequest
    known = {k: more.pop(k) for k in ("partition", "current_leader_epoch", "last_fetched_epoch", "partition_max_bytes") if k in more}
    part = r.FetchPartition(fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **known})
    t = r.FetchTopic(partitions=[part])
    if version >= 13:
        t.topic_id = topic_id
    else:
        t.topic = name
    return r(topics=[t], **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more})


@pytest.mark.parametrize("version", versions("Fetch"))
def test_fetch(pair: Pair, version: int) -> None:
    name = f"fe-{version}"
    ids = topic(pair, name, 2)
    for n in range(4):
        produce(pair, name, ids, batch(*[f"{n}-{i}" for i in range(5)]))

    def fetch(offset: int, wanted: str = name, **more: Any) -> None:
        unknown = b"?" * 16
        theirs = fetch_request(version, wanted, ids[1] if wanted == name else unknown, offset, **more)
        mine = fetch_request(version, wanted, ids[0] if wanted == name else unknown, offset, **more)
        pair.ask("Fetch", version, theirs, mine)

    for offset in (0, 1, 5, 7, 19, 20, 21, -1, 1000):
        fetch(offset)
    for size in (0, 1, 100, 200):
        fetch(3, partition_max_bytes=size)
        fetch(3, max_bytes=size)
    fetch(0, partition=1)
    fetch(0, partition=9)
    fetch(0, wanted="absent")
    fetch(0, isolation_level=1)
    if version >= 9:
        for epoch in (0, 1, 5):
            fetch(0, current_leader_epoch=epoch)
    if version >= 12:
        for epoch in (0, 1, 5):
            fetch(3, last_fetched_epoch=epoch)
            fetch(50, last_fetched_epoch=epoch)
    fetch(20, max_wait_ms=50, min_bytes=10)


def test_fetch_sessions(pair: Pair) -> None:
    names = [f"se-{n}" for n in range(3)]
    ids = {n: topic(pair, n, 2) for n in names}
    r = m.FetchRequest

    def wanted(side: int, offsets: dict[str, int]) -> list[Any]:
        return [
            r.FetchTopic(
                topic_id=ids[n][side],
                partitions=[r.FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20) for p in (0, 1)],
            )
            for n, o in offsets.items()
        ]

    def ask(sessions: tuple[int, int], epoch: int, offsets: dict[str, int], forget: list[str] | None = None) -> tuple[Any, Any]:
        requests = [
            r(
                session_id=sessions[side], session_epoch=epoch, topics=wanted(side, offsets), max_bytes=1 << 20, min_bytes=0,
                forgotten_topics_data=[r.ForgottenTopic(topic_id=ids[n][side], partitions=[0, 1]) for n in forget or ()],
            )
            for side in (0, 1)
        ]  # fmt: skip
        return pair.ask("Fetch", 16, requests[1], requests[0])

    mine, other = ask((0, 0), 0, dict.fromkeys(names, 0))
    sessions = (mine.session_id, other.session_id)
    assert all(sessions)
    ask(sessions, 1, {})
    produce(pair, "se-1", ids["se-1"], batch("hello"))
    ask(sessions, 2, {})
    ask(sessions, 3, {})
    ask(sessions, 4, {"se-1": 1})
    ask(sessions, 5, {})
    ask(sessions, 5, {})  # an epoch that was
    ask(sessions, 6, {}, forget=["se-1"])
    produce(pair, "se-1", ids["se-1"], batch("unheard"))
    ask(sessions, 7, {})
    ask(sessions, 8, {"se-0": 99})
    ask(sessions, 9, {})
    ask((123456, 123456), 3, {})
    ask(sessions, -1, dict.fromkeys(names, 0))
    ask(sessions, 10, {})


def test_a_fetch_session_goes_on_as_it_began(pair: Pair) -> None:
    """With names or with ids."""
    ids = topic(pair, "se-kind")

    def ask(version: int, sessions: tuple[int, int], epoch: int) -> tuple[Any, Any]:
        def make(side: int) -> Any:
            return fetch_request(version, "se-kind", ids[side], 0, session_id=sessions[side], session_epoch=epoch)

        return pair.both("Fetch", version, make)

    for first, then in ((12, 13), (13, 12)):
        mine, other = ask(first, (0, 0), 0)
        sessions = (mine.session_id, other.session_id)
        ask(then, sessions, 1)
        ask(first, sessions, 1)


@pytest.mark.parametrize("version", versions("ListOffsets"))
def test_list_offsets(pair: Pair, version: int) -> None:
    name = f"lo-{version}"
    ids = topic(pair, name)
    r = m.ListOffsetsRequest

    def ask(timestamp: int, wanted: str = name, **more: Any) -> None:
        part = r.ListOffsetsPartition(timestamp=timestamp, **more)
        for isolation in (0, 1) if version >= 2 else (0,):
            pair.ask(
                "ListOffsets",
                version,
                r(replica_id=-1, isolation_level=isolation, topics=[r.ListOffsetsTopic(name=wanted, partitions=[part])]),
            )

    for _ in range(2):
        for timestamp in range(-8, 0):
            ask(timestamp)
        for timestamp in (0, T, T + 1, T + 2, T + 3, T + 100):
            ask(timestamp)
        produce(pair, name, ids, batch("a", "b", "c"))
        produce(pair, name, ids, batch("a", "b", "c", codec=4))
    ask(-1, wanted="absent")
    ask(-1, partition_index=5)
    if version >= 4:
        for epoch in (0, 1, 9):
            ask(-1, current_leader_epoch=epoch)
    part = r.ListOffsetsPartition(timestamp=-1)
    pair.ask("ListOffsets", version, r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[part, part])]))


def test_leader_epochs(pair: Pair) -> None:
    ids = topic(pair, "ep")
    r = m.OffsetForLeaderEpochRequest
    for _ in range(2):
        for version in versions("OffsetForLeaderEpoch"):
            for wanted in ("ep", "absent"):
                for epoch in (-1, 0, 1, 7):
                    for current in (-1, 0, 1):
                        part = r.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
                        pair.ask("OffsetForLeaderEpoch", version, r(topics=[r.OffsetForLeaderTopic(topic=wanted, partitions=[part])]))
        produce(pair, "ep", ids, batch("a", "b"))


def test_delete_records(pair: Pair) -> None:
    ids = topic(pair, "dr")
    topic(pair, "dr-compacted", cleanup_policy="compact")
    r = m.DeleteRecordsRequest

    def ask(version: int, offset: int, name: str = "dr", partition: int = 0) -> None:
        part = r.DeleteRecordsPartition(partition_index=partition, offset=offset)
        pair.ask("DeleteRecords", version, r(topics=[r.DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000))

    for version in versions("DeleteRecords"):
        for _ in range(3):
            produce(pair, "dr", ids, batch("a", "b", "c"))
        base = 9 * version
        for offset in (base + 1, base + 1, base, base + 5, 10_000, -2):
            ask(version, offset)
        fetch = [fetch_request(12, "dr", i, base + 2) for i in ids]
        pair.ask("Fetch", 12, fetch[1], fetch[0])
        list_request = m.ListOffsetsRequest
        part = list_request.ListOffsetsPartition(timestamp=-2)
        pair.ask("ListOffsets", 7, list_request(replica_id=-1, topics=[list_request.ListOffsetsTopic(name="dr", partitions=[part])]))
        ask(version, -1)
        ask(version, 0, name="absent")
        ask(version, 0, partition=4)
        ask(version, 0, name="dr-compacted")


# configs


def describe(name: str, kind: int = 2, keys: list[str] | None = None, **more: Any) -> Any:
    r = m.DescribeConfigsRequest
    return r(resources=[r.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)], **more)


def test_describe_topic_configs(pair: Pair) -> None:
    topic(pair, "cfg", retention_ms="123456", cleanup_policy="compact,delete", segment_bytes="2000000")
    for version in versions("DescribeConfigs"):
        for synonyms in (False, True):
            pair.ask("DescribeConfigs", version, describe("cfg", include_synonyms=synonyms))
        pair.ask("DescribeConfigs", version, describe("cfg", keys=["retention.ms", "no.such.key"]))
        pair.ask("DescribeConfigs", version, describe("cfg", keys=[]))
        pair.ask("DescribeConfigs", version, describe("absent"))
        pair.ask("DescribeConfigs", version, describe("a b"))
        pair.ask("DescribeConfigs", version, describe("", kind=2))
        pair.ask("DescribeConfigs", version, describe("7", kind=4))
        pair.ask("DescribeConfigs", version, describe("x", kind=4))
        if version >= 3:
            pair.ask("DescribeConfigs", version, describe("cfg", include_documentation=True, keys=["retention.ms"]))


def test_every_topic_key_is_described(pair: Pair) -> None:
    topic(pair, "every")
    mine, other = pair.ask("DescribeConfigs", 4, describe("every", include_synonyms=True, include_documentation=True))
    assert len(mine.results[0].configs) == len(other.results[0].configs) > 30
    assert all(c.documentation for c in mine.results[0].configs)


# of which each broker has its own
OWN_VALUES = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "listeners",
    "log.dirs",
    "node.id",
}


def test_brokers_are_described(pair: Pair) -> None:
    """Every key that Kafka has, and what is in force: values that a local node has instead of Kafka's defaults are told as if they were given."""
    for name in ("", "2", "x", "-1"):
        for version in versions("DescribeConfigs"):
            pair.ask("DescribeConfigs", version, describe(name, 4))
    mine, other = (wire.ask("DescribeConfigs", 4, describe("1", 4)).results[0].configs for wire in (pair.ours, pair.theirs))
    found = {c.name: c for c in mine}
    assert {name for name in found if not name.startswith("ottla.")} == {c.name for c in other}
    for theirs in other:
        ours = found[theirs.name]
        assert (ours.read_only, ours.is_sensitive, ours.config_type) == (theirs.read_only, theirs.is_sensitive, theirs.config_type), ours
        if theirs.name not in OWN_VALUES:
            assert (ours.value, ours.config_source, ours.synonyms) == (theirs.value, theirs.config_source, theirs.synonyms), ours
    assert (found["node.id"].value, found["group.share.assignment.interval.ms"].value) == ("1", "0")
    for name in ("listeners", "advertised.listeners"):
        assert found[name].value.startswith(f"PLAINTEXT://127.0.0.1:{pair.addresses[0].rpartition(':')[2]}"), "with the port that was bound"


def test_the_controller_needs_time(pair: Pair) -> None:
    """Requests that leave it none are not carried out."""
    topic(pair, "hurried", 1)
    c, d, p = m.CreateTopicsRequest, m.DeleteTopicsRequest, m.CreatePartitionsRequest
    e, a = m.ElectLeadersRequest, m.AlterPartitionReassignmentsRequest
    parts = [a.ReassignablePartition(partition_index=0, replicas=[1])]
    for timeout_ms in (0, -1):
        for version in versions("CreateTopics"):
            wanted = [creatable("too-late"), creatable("hurried"), creatable("bad name")]
            pair.ask("CreateTopics", version, c(topics=wanted, timeout_ms=timeout_ms))
        for version in versions("DeleteTopics"):
            if version < 6:
                pair.ask("DeleteTopics", version, d(topic_names=["hurried", "absent", "hurried"], timeout_ms=timeout_ms))
            else:
                states = [d.DeleteTopicState(name="hurried"), d.DeleteTopicState(name=None, topic_id=b"x" * 16)]
                pair.ask("DeleteTopics", version, d(topics=states, timeout_ms=timeout_ms))
        for version in versions("CreatePartitions"):
            more = [p.CreatePartitionsTopic(name=name, count=5, assignments=None) for name in ("hurried", "absent")]
            pair.ask("CreatePartitions", version, p(topics=more, timeout_ms=timeout_ms))
        for version in versions("ElectLeaders"):
            for some in ([e.TopicPartitions(topic="hurried", partitions=[0, 9])], [], None):
                pair.ask("ElectLeaders", version, e(topic_partitions=some, timeout_ms=timeout_ms))
        for version in versions("AlterPartitionReassignments"):
            for topics in ([a.ReassignableTopic(name="hurried", partitions=parts)], []):
                pair.ask("AlterPartitionReassignments", version, a(topics=topics, timeout_ms=timeout_ms))
    pair.ask("Metadata", 9, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=n) for n in ("hurried", "too-late")]))


# what one node without an authorizer has to say of these


def test_acls_without_an_authorizer(pair: Pair) -> None:
    d, c, x = m.DescribeAclsRequest, m.CreateAclsRequest, m.DeleteAclsRequest
    creation = c.AclCreation(resource_type=2, resource_name="x", resource_pattern_type=3, principal="User:a", host="*")
    creation.operation = creation.permission_type = 3
    filter_ = x.DeleteAclsFilter(resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1)
    for version in versions("DescribeAcls"):
        pair.ask("DescribeAcls", version, d(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1))
        pair.ask("CreateAcls", version, c(creations=[creation, creation]))
        pair.ask("DeleteAcls", version, x(filters=[filter_, filter_]))
        pair.ask("DeleteAcls", version, x(filters=[]))


def test_a_listener_without_sasl(pair: Pair) -> None:
    """Each is refused, and the connection goes on."""
    for version in versions("SaslHandshake"):
        pair.ask("SaslHandshake", version, m.SaslHandshakeRequest(mechanism="PLAIN"))
    for version in versions("SaslAuthenticate"):
        pair.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=b"x"))


def test_delegation_tokens_are_for_those_who_logged_in(pair: Pair) -> None:
    c, d = m.CreateDelegationTokenRequest, m.DescribeDelegationTokenRequest
    renewers = [c.CreatableRenewers(principal_type="User", principal_name="a")]
    for version in versions("CreateDelegationToken"):
        pair.ask("CreateDelegationToken", version, c(renewers=renewers, max_lifetime_ms=1000))
    pair.ask("CreateDelegationToken", 3, c(owner_principal_type="User", owner_principal_name="b", max_lifetime_ms=-1))
    for version in versions("RenewDelegationToken"):
        pair.ask("RenewDelegationToken", version, m.RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1))
        pair.ask("ExpireDelegationToken", version, m.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1))
    for version in versions("DescribeDelegationToken"):
        for owners in (None, [], [d.DescribeDelegationTokenOwner(principal_type="User", principal_name="a")]):
            pair.ask("DescribeDelegationToken", version, d(owners=owners))


def test_scram_credentials(pair: Pair) -> None:
    """Of one mechanism for each user: in which order Kafka tells several is chance."""
    a, d = m.AlterUserScramCredentialsRequest, m.DescribeUserScramCredentialsRequest

    def put(name: str, mechanism: int, iterations: int = 4096, password: bytes = b"pw") -> Any:
        return a.ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password)

    def delete(name: str, mechanism: int) -> Any:
        return a.ScramCredentialDeletion(name=name, mechanism=mechanism)

    steps: list[tuple[list[Any], list[Any]]] = [
        ([], []),
        ([delete("a", 1)], []),
        ([], [put("a", 1), put("b", 2, 8192), put("carol", 1, 16384)]),
        ([], [put("a", 1, 5000)]),
        ([], [put("c", 1, 4095), put("d", 1, 16385), put("e", 0), put("f", 3), put("", 1), put("g", -1, 1)]),
        ([delete("", 1), delete("a", 0), delete("a", 2), delete("zz", 1), delete("zz", 1)], []),
        ([delete("a", 1)], [put("a", 1), put("h", 1)]),
        ([delete("a", 1), delete("a", 1)], [put("i", 1), put("i", 2), put("j", 2)]),
        ([delete("a", 1), delete("b", 1)], [put("k", 2), put("l", 2), put("l", 7)]),
        ([delete("b", 2)], [put("n", 1), put("m", 1, password=b"")]),
        ([delete("carol", 1), delete("b", 2)], [put("Ödön", 1), put("x" * 300, 2)]),
    ]

    def both() -> list[list[dict[str, dict[int, int]]]]:
        """What each broker tells of all users. Kafka answers an alteration before its broker has heard of it."""
        for _ in range(2000):
            told = [wire.ask("DescribeUserScramCredentials", 0, d(users=None)).results for wire in (pair.ours, pair.theirs)]
            found = [[{one.user: {i.mechanism: i.iterations for i in one.credential_infos}} for one in results] for results in told]
            if found[0] == found[1]:
                break
        return found

    for deletions, upsertions in steps:
        pair.ask("AlterUserScramCredentials", 0, a(deletions=deletions, upsertions=upsertions))
        both()
        some = [d.UserName(name=name) for name in ("a", "zz", "b", "b", "", "carol")]
        for users in (None, [], some):
            pair.ask("DescribeUserScramCredentials", 0, d(users=users))
    pair.ask("AlterUserScramCredentials", 0, a(upsertions=[put("k", 1)]))
    ours, theirs = both()
    assert {"k": {1: 4096, 2: 4096}} in ours
    assert ours == theirs


def test_elections(pair: Pair) -> None:
    topic(pair, "elected", 2)
    r = m.ElectLeadersRequest
    some = [r.TopicPartitions(topic="elected", partitions=[0, 1, 7, -1]), r.TopicPartitions(topic="nope", partitions=[0])]
    for version in versions("ElectLeaders"):
        for kind in (0, 1, 5) if version else (0,):
            for asked in (some, [], [r.TopicPartitions(topic="elected", partitions=[])]):
                pair.ask("ElectLeaders", version, r(election_type=kind, topic_partitions=asked, timeout_ms=10_000))
        of_all = r(topic_partitions=None, timeout_ms=10_000)
        every = [wire.ask("ElectLeaders", version, of_all).replica_election_results for wire in (pair.ours, pair.theirs)]
        assert all("elected" in {one.topic for one in results} for results in every)
        assert not any(one.partition_result for results in every for one in results)


def test_reassignments(pair: Pair) -> None:
    topic(pair, "reassigned", 2)
    a, ls = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest
    listed = [ls.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9]) for name in ("reassigned", "nope")]
    for version in versions("AlterPartitionReassignments"):
        for wanted in (
            [(0, [1]), (1, None), (5, [1]), (-1, None)],
            [(0, [2]), (1, [])],
            [(0, [1, 1]), (1, [2, 1])],
            [(0, [-1])],
            [],
        ):
            parts = [a.ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in wanted]
            topics = [a.ReassignableTopic(name=name, partitions=parts) for name in ("reassigned", "nope")]
            pair.ask("AlterPartitionReassignments", version, a(topics=topics, timeout_ms=10_000))
            if version:
                pair.ask("AlterPartitionReassignments", version, a(topics=topics, timeout_ms=10_000, allow_replication_factor_change=False))
        pair.ask("AlterPartitionReassignments", version, a(topics=[], timeout_ms=10_000))
    for asked in (None, [], listed):
        pair.ask("ListPartitionReassignments", 0, ls(topics=asked, timeout_ms=10_000))


@pytest.mark.parametrize("version", versions("DescribeLogDirs"))
def test_log_directories(pair: Pair, version: int) -> None:
    """The same but for where they are, and what is left there when each is asked."""
    name = f"dirs-{version}"
    ids = topic(pair, name, 2)
    produce(pair, name, ids, batch("a" * 100, "b"))
    produce(pair, name, ids, batch("c"))
    r = m.DescribeLogDirsRequest
    one, other = r.DescribableLogDirTopic(topic=name, partitions=[0, 5]), r.DescribableLogDirTopic(topic="nope", partitions=[0])
    for asked in ([one, other], [other], [], [r.DescribableLogDirTopic(topic=name, partitions=[])]):
        told = []
        for wire in (pair.ours, pair.theirs):
            answer = wire.ask("DescribeLogDirs", version, r(topics=asked))
            (found,) = answer.results
            assert Path(found.log_dir).is_absolute()
            assert (0 < found.usable_bytes <= found.total_bytes) if version >= 4 else (found.usable_bytes, found.total_bytes) == (-1, -1)
            found.log_dir, found.usable_bytes, found.total_bytes = "", 0, 0
            told.append(answer)
        assert told[0] == told[1]
    every = [wire.ask("DescribeLogDirs", version, r(topics=None)).results[0].topics for wire in (pair.ours, pair.theirs)]
    mine, theirs = ({p.partition_index: p.partition_size for t in topics if t.name == name for p in t.partitions} for topics in every)
    assert mine == theirs
    assert mine[0] > mine[1] == 0


@pytest.mark.parametrize("version", versions("DescribeQuorum"))
def test_the_quorum(pair: Pair, version: int) -> None:
    r = m.DescribeQuorumRequest

    def asked(*topics: tuple[str, list[int]]) -> Any:
        return r(topics=[r.TopicData(topic_name=name, partitions=[r.PartitionData(partition_index=i) for i in indexes]) for name, indexes in topics])

    log = "__cluster_metadata"
    none: list[int] = []
    for topics in ([("t", [0])], [(log, [1])], [(log, [0, 1])], [(log, [0]), ("t", [0])], [(log, none)], []):
        pair.ask("DescribeQuorum", version, asked(*topics))
    told = []
    for wire in (pair.ours, pair.theirs):
        answer = wire.ask("DescribeQuorum", version, asked((log, [0])))
        (partition,) = answer.topics[0].partitions
        (voter,) = partition.current_voters
        assert 0 < partition.high_watermark <= voter.log_end_offset
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp
        assert (voter.last_fetch_timestamp > T) is (version >= 1)
        assert (voter.replica_directory_id != NO_UUID) is (version >= 2)
        controllers = [(listener.name, listener.host) for node in answer.nodes for listener in node.listeners]
        assert controllers == ([("CONTROLLER", "127.0.0.1")] if version >= 2 else [])
        partition.high_watermark = voter.log_end_offset = voter.last_fetch_timestamp = voter.last_caught_up_timestamp = partition.leader_epoch = 0
        voter.replica_directory_id, answer.nodes = NO_UUID, []
        told.append(answer)
    assert told[0] == told[1]


def incremental(name: str, *operations: tuple[str, int, str | None], kind: int = 2, validate_only: bool = False) -> Any:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=k, config_operation=op, value=v) for k, op, v in operations]
    return r(resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)], validate_only=validate_only)


def test_incremental_alter_configs(pair: Pair) -> None:
    for version in versions("IncrementalAlterConfigs"):
        name = f"inc-{version}"
        topic(pair, name)
        for request in (
            incremental(name, ("retention.ms", 0, "5000")),
            incremental(name, ("retention.ms", 0, "7000"), validate_only=True),
            incremental(name, ("retention.ms", 0, "-7")),
            incremental(name, ("retention.ms", 0, None)),
            incremental(name, ("no.such", 0, "1")),
            incremental(name, ("no.such", 1, None)),
            incremental(name, ("cleanup.policy", 2, "compact")),
            incremental(name, ("cleanup.policy", 2, "compact")),
            incremental(name, ("cleanup.policy", 3, "delete")),
            incremental(name, ("cleanup.policy", 2, "burn")),
            incremental(name, ("retention.ms", 2, "1")),
            incremental(name, ("retention.ms", 3, "1")),
            incremental(name, ("retention.ms", 9, "1")),
            incremental(name, ("retention.ms", 0, "1"), ("retention.ms", 0, "2")),
            incremental(name, ("retention.ms", 1, None)),
            incremental("absent", ("retention.ms", 0, "1")),
            incremental("1", ("log.dirs", 0, "x"), kind=4),
            incremental("9", ("log.retention.ms", 0, "1"), kind=4),
            incremental("x", ("log.retention.ms", 0, "1"), kind=4),
            incremental("1", ("log.cleaner.threads", 0, "many"), kind=4),
            incremental("x", ("a", 0, "b"), kind=77),
        ):
            pair.ask("IncrementalAlterConfigs", version, request)
            topic_ids(pair, name)
        twice = incremental(name, ("retention.ms", 0, "1"))
        twice.resources *= 2
        pair.ask("IncrementalAlterConfigs", version, twice)
        pair.ask("DescribeConfigs", 4, describe(name, include_synonyms=True))


def test_alter_configs(pair: Pair) -> None:
    r = m.AlterConfigsRequest

    def request(name: str, validate_only: bool = False, kind: int = 2, **configs: str | None) -> Any:
        entries = [r.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        return r(resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)], validate_only=validate_only)

    for version in versions("AlterConfigs"):
        name = f"alt-{version}"
        topic(pair, name, segment_ms="1000")
        for one in (
            request(name, retention_ms="5"),
            request(name, retention_ms="6", validate_only=True),
            request(name, retention_ms="-6"),
            request(name, retention_ms=None),
            request(name, no_such="1"),
            request("absent", retention_ms="1"),
            request("x", kind=77, a="b"),
            request(name),
        ):
            pair.ask("AlterConfigs", version, one)
            pair.ask("DescribeConfigs", 2, describe(name))


def test_unknown_keys_and_versions_end_the_connection(pair: Pair) -> None:
    for frame in (
        b"\0\x03\0\x63\0\0\0\x01\xff\xff",  # Metadata 99
        b"\x03\xe7\0\0\0\0\0\x01\xff\xff",  # a key that nobody has
        b"\0\x00\0\x02\0\0\0\x01\xff\xff",  # Produce 2
        b"\0\x12\0\x63\0\0\0\x01\xff\xff\0",  # ApiVersions 99: answered
        b"\0\x12\0\x63\0\0\0\x01\xff\xff",  # without the header's tags
        b"\0\x03\0\x01",
        b"",
        b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",  # an impossible count
    ):
        outcomes = []
        for address in pair.addresses:
            pair.tally.replies += 1
            outcomes.append(_outcome(address, frame))
        assert outcomes[0] == outcomes[1], frame


def _outcome(address: str, frame: bytes) -> bytes | str:
    with Wire(address, timeout=5) as wire:
        wire.send(len(frame).to_bytes(4, "big") + frame)
        try:
            return wire.read_frame()[:6]
        except Closed:
            return "closed"


def test_the_list_of_what_may_differ_is_short_and_used(tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(ALLOWED) <= 30
    with capsys.disabled():
        print(f"\n{tally.replies} replies compared, {len(tally.differences)} differences, {len(tally.used)} of {len(ALLOWED)} allowances used")
    assert tally.replies > 500
