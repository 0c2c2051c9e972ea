"""Every version of every API, good and bad, asked of ottla and of Apache Kafka: the replies are the same, field by
field.
"""

from __future__ import annotations

import pytest
from ottla.broker.apis import apis
from ottla.broker.apis.k18_api_versions import TELEMETRY
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.topics import (
    creatable,
    create,
    topic,
    topic_ids,
    versions,
)

pytestmark = pytest.mark.slow


# what is listed


def test_the_listed_versions_are_kafkas(pair: Pair) -> None:
    for version in versions("ApiVersions"):
        request = m.ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
        mine, _ = pair.ask("ApiVersions", version, request)
        listed = {one.api_key for one in mine.api_keys}
        assert listed == set(apis()) - set(TELEMETRY), "without the lab nothing takes the metrics of clients"


def test_api_versions_refuses_what_kafka_refuses(pair: Pair) -> None:
    for name, version in (("", "1"), ("a b", "1"), ("a", ""), ("-a", "1"), ("a", "1-"), ("a.b-c", "1.2-x"), ("é", "1")):
        pair.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name=name, client_software_version=version))
    for node_id in (-1, 1, 2):
        for cluster in (None, "somewhere-else"):
            request = m.ApiVersionsRequest(
                client_software_name="w", client_software_version="1", node_id=node_id, cluster_id=cluster
            )
            pair.ask("ApiVersions", 5, request)
    assert pair.errors("ApiVersions") == {"INVALID_REQUEST", "NONE", "REBOOTSTRAP_REQUIRED"}


# topics


def test_create_and_delete_topics(pair: Pair) -> None:
    for version in versions("CreateTopics"):
        n = f"ct-{version}"
        for validate_only in (True, False, False):
            create(
                pair,
                creatable(n, 2, retention_ms="1000"),
                creatable(f"{n}-b"),
                version=version,
                validate_only=validate_only,
            )
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
            pair.ask(
                "DeleteTopics",
                version,
                r(topics=[r.DeleteTopicState(name=None, topic_id=b"x" * 16)], timeout_ms=10_000),
            )
            pair.ask(
                "DeleteTopics", version, r(topics=[r.DeleteTopicState(name="a", topic_id=b"x" * 16)], timeout_ms=10_000)
            )
            pair.ask("DeleteTopics", version, r(topics=[r.DeleteTopicState(name=None)], timeout_ms=10_000))
            both = r.DeleteTopicState(name="a", topic_id=b"x" * 16)
            for state in (
                r.DeleteTopicState(name=None, topic_id=b"x" * 16),
                r.DeleteTopicState(name="x"),
                r.DeleteTopicState(name=None),
                both,
            ):
                pair.ask(
                    "DeleteTopics", version, r(topics=[state, state, r.DeleteTopicState(name="y")], timeout_ms=10_000)
                )
            mixed = r(
                topics=[both, r.DeleteTopicState(name="a")], timeout_ms=10_000
            )  # not twice the same; Kafka shuffles its answers
            told = [sorted(map(repr, wire.ask("DeleteTopics", version, mixed).responses)) for wire in pair.wires]
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
    assert pair.errors("CreateTopics") == {
        "INVALID_CONFIG",
        "INVALID_PARTITIONS",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "POLICY_VIOLATION",
    }


def test_names_of_one_request_may_collide(pair: Pair) -> None:
    """They are compared with the topics before the request only, however many they are."""
    create(pair, creatable("col.lides"))
    many = [creatable(f"many-{n}") for n in range(140)]
    for validate_only in (True, False):
        twice = [creatable("many-3"), creatable("many-139")]
        colliding = [creatable("a.col_lision"), *many, creatable("a_col.lision"), creatable("col_lides"), *twice]
        create(pair, *colliding, validate_only=validate_only)
    create(pair, creatable("col_lides"), creatable("col.lides"), validate_only=True)
    names = [one.name for one in many if one.name not in ("many-3", "many-139")]
    d = m.DeleteTopicsRequest
    left = ["a.col_lision", "absent", "col.lides"]
    pair.ask(
        "DeleteTopics", 6, d(topics=[d.DeleteTopicState(name=name) for name in [*names, *left]], timeout_ms=10_000)
    )
    create(pair, creatable("a.col.lision"), creatable("col_lides"))
    last = [d.DeleteTopicState(name=name) for name in ("a_col.lision", "col_lides")]
    pair.ask("DeleteTopics", 6, d(topics=last, timeout_ms=10_000))
    assert pair.errors("CreateTopics") == {"NONE", "INVALID_TOPIC_EXCEPTION", "INVALID_REQUEST", "TOPIC_ALREADY_EXISTS"}


def test_a_topic_with_configs_that_are_null(pair: Pair) -> None:
    for name in ("retention.ms", "no.such"):
        wanted = creatable("null-config")
        wanted.configs = [m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=None)]
        for version in versions("CreateTopics"):
            create(pair, wanted, version=version)
    assert pair.errors("CreateTopics") == {"INVALID_CONFIG", "NONE"}


def test_which_config_of_a_topic_is_refused_first(pair: Pair) -> None:
    """Null values, then unknown names, then wrong values in the order of Kafka's definition."""
    config = m.CreateTopicsRequest.CreatableTopicConfig
    for configs in (
        (("retention.ms", "x"), ("no.such", None)),
        (("retention.ms", None), ("zz", None), ("a.b", None), ("cleanup.policy", None)),
        (("zz", "1"), ("zz", None)),
        (("max.message.bytes", None), ("zz", None), ("zz", "1"), ("zz", None)),
        (("retention.ms", "x"), ("zz", "1"), ("other", "1"), ("a.b", "1"), ("segment.bytes", "q")),
        (("retention.ms", "x"), ("cleanup.policy", "burn"), ("segment.bytes", "q")),
        (("min.insync.replicas", "x"), ("compression.type", "x"), ("preallocate", "x"), ("segment.ms", "-5")),
        (("retention.ms", "5"), ("retention.ms", "x")),
    ):
        wanted = creatable("first-config", 0)
        wanted.configs = [config(name=name, value=value) for name, value in configs]
        create(pair, wanted)
    assert pair.errors("CreateTopics") == {"INVALID_CONFIG", "NONE"}


def test_the_topic_of_the_metadata_is_refused_last(pair: Pair) -> None:
    metadata, twice = creatable("__cluster_metadata"), creatable("twice")
    create(pair, metadata, creatable("before"), twice, twice, creatable("bad name"), validate_only=True)
    create(pair, metadata, twice, creatable("zwice"), metadata, twice, creatable("zwice"), validate_only=True)
    create(pair, creatable("before"), creatable("__cluster_metadata", 10_001), validate_only=True)
    assert pair.errors("CreateTopics") == {"INVALID_REQUEST", "INVALID_TOPIC_EXCEPTION", "NONE"}


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
        wanted = r.CreatableTopic(
            name=f"manual-{number}", num_partitions=partitions, replication_factor=factor, assignments=assignments
        )
        create(pair, wanted)
    assert pair.errors("CreateTopics") == {"INVALID_REPLICA_ASSIGNMENT", "INVALID_REQUEST", "NONE"}


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
    assert pair.errors("CreatePartitions") == {
        "INVALID_PARTITIONS",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REQUEST",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_partitions_are_counted_for_the_whole_request(pair: Pair) -> None:
    for name in ("counted-a", "counted-b"):
        topic(pair, name)
    for counts in ((10_001,), (10_000,), (6000, 6000), (9_999, -1, -1), (2**31 - 1, 1), (5000, 4_998)):
        create(
            pair,
            *(creatable(f"counted-{n}", count, -1) for n, count in enumerate(counts)),
            version=7,
            validate_only=True,
        )
    create(pair, creatable("twice", 6000), creatable("twice", 6000), creatable("once"), version=7, validate_only=True)
    create(pair, creatable("bad name", 10_001), creatable("good"), version=7, validate_only=True)
    r = m.CreatePartitionsRequest
    for more in ((10_001, 2), (10_001, 1), (5001, 5001), (5001, 5002), (-20_000, 15_000), (2**31 - 1, 2**31 - 1)):
        wanted = [
            r.CreatePartitionsTopic(name=f"counted-{x}", count=count, assignments=None)
            for x, count in zip("ab", more, strict=True)
        ]
        pair.ask("CreatePartitions", 3, r(topics=wanted, timeout_ms=10_000, validate_only=True))
    assert pair.errors("CreatePartitions") == {"INVALID_PARTITIONS", "NONE", "POLICY_VIOLATION"}
    assert pair.errors("CreateTopics") == {"INVALID_REQUEST", "NONE", "POLICY_VIOLATION"}


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
            pair.ask(
                "Metadata", version, theirs, r(topics=[t(topic_id=ids[0], name=None)], allow_auto_topic_creation=False)
            )
            pair.ask("Metadata", version, r(topics=[t(topic_id=b"?" * 16, name=None)], allow_auto_topic_creation=False))
        if version in (10, 11):
            pair.ask("Metadata", version, r(topics=[t(topic_id=b"?" * 16, name=None)], allow_auto_topic_creation=False))
            pair.ask("Metadata", version, r(topics=[t(name=None)], allow_auto_topic_creation=False))
    assert pair.errors("Metadata") == {
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_topics_by_name_and_by_id(pair: Pair) -> None:
    """Where one is asked for by its id, those without are left out; ids that nobody knows come first."""
    first, second = topic(pair, "by-id"), topic(pair, "by-name")
    r = m.MetadataRequest
    t = r.MetadataRequestTopic
    unknown, nothing = b"?" * 16, t(name=None)

    def asked(at: int) -> list[list[m.MetadataRequest.MetadataRequestTopic]]:
        by_id, other = t(topic_id=first[at], name=None), t(topic_id=second[at], name=None)
        return [
            [by_id, by_id],
            [t(topic_id=first[at], name="by-name"), by_id],
            [t(name="by-id"), by_id],
            [t(name="by-name"), t(name="absent"), by_id],
            [by_id, t(topic_id=unknown, name=None), other, t(topic_id=unknown, name=None)],
            [nothing],
            [nothing, t(name="by-id"), nothing],
            [nothing, by_id],
        ]

    for version in (12, 13):
        for ours, theirs in zip(asked(0), asked(1), strict=True):
            pair.ask("Metadata", version, r(topics=theirs), r(topics=ours))
    assert pair.errors("Metadata") == {"NONE", "UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_ID"}


def test_auto_creation(pair: Pair) -> None:
    r = m.MetadataRequest
    for version in versions("Metadata"):
        wanted = r(topics=[r.MetadataRequestTopic(name=f"auto-{version}")])
        pair.ask("Metadata", version, wanted)
        topic_ids(pair, f"auto-{version}")
        pair.ask("Metadata", version, wanted)
    assert pair.errors("Metadata") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


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
    assert pair.errors("DescribeCluster") == {"MISMATCHED_ENDPOINT_TYPE", "NONE", "UNSUPPORTED_ENDPOINT_TYPE"}


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
    assert pair.errors("DescribeTopicPartitions") == {
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_the_cursor_is_at_a_topic_of_the_request(pair: Pair) -> None:
    topic(pair, "cur-a", 3)
    topic(pair, "cur-b", 2)
    r = m.DescribeTopicPartitionsRequest
    for names, cursor, limit in (
        (("cur-b", "a b", "absent"), ("cur-a", 0), 2000),
        (("cur-a",), ("", 0), 2000),
        (("cur-a", "cur-a"), ("cur-c", -1), 2000),
        (("cur-a", "absent", "a b"), ("absent", 2), 2000),
        (("cur-a", "cur-b"), ("cur-a", 3), 1),
        (("cur-a", "cur-b"), ("cur-a", 7), 1),
        (("cur-a", "zabsent"), ("cur-a", 0), 0),
        (("cur-a", "zabsent"), ("cur-a", 0), -5),
        (("a b", "cur-a"), ("a b", 2), 1),
        ((), ("cur-a", -1), 2000),
        (("", "cur-a"), ("", 0), 2000),
        (("cur-a", "", "absent"), None, 2000),
    ):
        request = r(topics=[r.TopicRequest(name=name) for name in names], response_partition_limit=limit)
        if cursor is not None:
            request.cursor = r.Cursor(topic_name=cursor[0], partition_index=cursor[1])
        pair.ask("DescribeTopicPartitions", 0, request)
    assert pair.errors("DescribeTopicPartitions") == {
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
