"""Configurations that are altered, unknown keys, and what is named twice, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.differential import Pair
from ..support.secured import alter_broker
from ..support.stories.core import (
    describe,
)
from ..support.stories.topics import (
    creatable,
    create,
    topic,
    topic_ids,
    versions,
)

pytestmark = pytest.mark.slow


def incremental(name: str, *operations: tuple[str, int, str | None], kind: int = 2, validate_only: bool = False) -> Any:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=k, config_operation=op, value=v) for k, op, v in operations]
    return r(
        resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)],
        validate_only=validate_only,
    )


def test_min_insync_replicas_of_brokers(pair: Pair) -> None:
    """While leader replicas are eligible (KIP-966), all brokers have one value, which is not removed."""
    a, u, d = m.AlterConfigsRequest, m.UpdateFeaturesRequest, m.DescribeConfigsRequest
    key, elr = "min.insync.replicas", "eligible.leader.replicas.version"

    def alter(name: str, *changes: tuple[str, int, str | None]) -> None:
        pair.ask("IncrementalAlterConfigs", 1, incremental(name, *changes, kind=4))

    def replace(name: str, **values: str) -> None:
        configs = [a.AlterableConfig(name=one.replace("_", "."), value=value) for one, value in values.items()]
        resource = a.AlterConfigsResource(resource_type=4, resource_name=name, configs=configs)
        pair.ask("AlterConfigs", 2, a(resources=[resource]))

    def finalize(level: int) -> None:
        update = u.FeatureUpdateKey(feature=elr, max_version_level=level, upgrade_type=1 if level else 2)
        pair.ask("UpdateFeatures", 2, u(timeout_ms=10_000, feature_updates=[update]))
        for name in ("", "1"):
            wanted = d.DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=[key])
            pair.agree("DescribeConfigs", 4, d(resources=[wanted]))

    for name in ("", "1"):
        for how, value in ((SET, "2"), (DELETE, None), (APPEND, "1"), (SUBTRACT, "1")):
            alter(name, (key, how, value))
        alter(name, ("no.such", APPEND, "1"))
        alter(name, ("no.such", DELETE, None), (key, DELETE, None))
    replace("", message_max_bytes="2000000")
    replace("1")
    replace("", min_insync_replicas="2")
    finalize(0)
    alter("", (key, DELETE, None))
    alter("1", (key, SET, "2"))
    finalize(1)
    alter("1", (key, DELETE, None))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}
    assert pair.errors("AlterConfigs") == {"NONE", "INVALID_CONFIG"}


def test_negative_retention_of_a_broker(pair: Pair) -> None:
    """Topics show -1, which is the only negative time that they take themselves."""
    topic(pair, "kept")
    for value in ("-5", " -1 ", "-9223372036854775808", "7", "0", None):
        alter_broker(pair, {"log.retention.ms": value})
        pair.agree("DescribeConfigs", 4, describe("kept", keys=["retention.ms"], include_synonyms=True))
        pair.ask("DescribeConfigs", 4, describe("kept", keys=["retention.ms"], include_synonyms=True))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_keys_that_a_broker_does_not_know(pair: Pair) -> None:
    """They are kept, and shown without their values, which may be secrets."""
    key = "no.such.key"
    for name, how in (("1", SET), ("", SET), ("1", DELETE), ("", DELETE)):
        pair.ask("IncrementalAlterConfigs", 1, incremental(name, (key, how, "2" if how == SET else None), kind=4))
        for asked in ("", "1"):
            pair.agree("DescribeConfigs", 4, describe(asked, 4, keys=[key], include_synonyms=True))
            for version in versions("DescribeConfigs"):
                pair.ask("DescribeConfigs", version, describe(asked, 4, keys=[key], include_synonyms=True))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE"}


UNNAMED = ("x", "PLAINTEXT://h:1,x", "x,SASL_SSL://h:1", " x ", "SSL", "x:y", "x:y,PLAINTEXT://h:1", ":")
SECURED = ("SASL_SSL://h:1,x", "ssl://h:1,x", " SSL://h:1,x", "ssl:,x")
CONTROLLERS = tuple(
    f"{one},CONTROLLER://h:2" for one in ("SASL_SSL://h:1", "PLAINTEXT://h:1,SASL_SSL://h:3", "A://h:3")
)


def test_listeners_without_a_map(pair: Pair) -> None:
    """Controllers' listeners have a security protocol where no listener is named after SSL or SASL."""
    for value in (*UNNAMED, *SECURED, *CONTROLLERS):
        pair.ask("IncrementalAlterConfigs", 1, incremental("1", ("listeners", SET, value), kind=4))
    assert pair.errors("IncrementalAlterConfigs") == {"INVALID_REQUEST"}


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
        pair.agree("DescribeConfigs", 4, describe(name, include_synonyms=True))
        pair.ask("DescribeConfigs", 4, describe(name, include_synonyms=True))
    assert pair.errors("IncrementalAlterConfigs") == {
        "INVALID_CONFIG",
        "INVALID_REQUEST",
        "NONE",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_rates_of_replication_are_described_once_they_are_set(pair: Pair) -> None:
    rates = {
        "leader.replication.throttled.rate": "123",
        "follower.replication.throttled.rate": "456",
        "replica.alter.log.dirs.io.max.bytes.per.second": "789",
    }

    def described(name: str) -> None:
        for rate in rates:
            asked = describe(name, kind=4, keys=[rate], include_synonyms=True)
            pair.agree("DescribeConfigs", 4, asked)
            pair.ask("DescribeConfigs", 4, asked)

    for name in ("1", ""):
        alter_broker(pair, dict(rates), name)
        described(name)
    described("1")
    for name in ("1", ""):
        alter_broker(pair, dict.fromkeys(rates), name)
        described(name)


def test_alter_configs(pair: Pair) -> None:
    r = m.AlterConfigsRequest

    def request(name: str, validate_only: bool = False, kind: int = 2, **configs: str | None) -> Any:
        entries = [r.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        return r(
            resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)],
            validate_only=validate_only,
        )

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
            pair.agree("DescribeConfigs", 2, describe(name))
            pair.ask("DescribeConfigs", 2, describe(name))
    assert pair.errors("AlterConfigs") == {"INVALID_CONFIG", "INVALID_REQUEST", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


ONE = ("retention.ms", SET, "1")
RESOURCES: tuple[tuple[tuple[int, str, tuple[tuple[str, int, str | None], ...]], ...], ...] = (
    ((3, "a", (("cleanup.policy", 9, "x"),)), (2, "", (ONE,))),
    ((0, "a", (ONE,)), (2, "", (ONE,))),
    ((2, "a/b", (("retention.ms", SET, "x"),)), (2, "absent", (("retention.ms", SET, "x"),)), (2, "b", (ONE,))),
    ((2, "", (("no.such", SET, "x"),)), (32, "", (("no.such", SET, "x"),)), (16, "", (("interval.ms", SET, "1"),))),
    ((2, "", (("retention.ms", APPEND, "1"),)), (32, "", (("consumer.session.timeout.ms", APPEND, "1"),))),
    ((2, "told", (("retention.ms", APPEND, "1"), ("cleanup.policy", APPEND, "x"), ("no.such", SUBTRACT, "1"))),),
    ((2, "told", (("retention.ms", SET, "x"), ("no.such", SET, "1"), ("b.c", SET, "1"), ("segment.bytes", SET, "q"))),),
    ((2, "told", (("retention.ms", SET, None), ("no.such", SET, None), ("a", SET, None))),),
    # an operation that nobody knows fails whatever the controller was to decide
    ((2, "told", (ONE,)), (2, "absent", (("retention.ms", 9, "1"),)), (3, "", (ONE,)), (4, "7", (ONE,))),
    ((4, "1", (("log.retention.ms", 9, "1"),)), (2, "told", (ONE,)), (4, "x", (("log.retention.ms", 9, "1"),))),
    ((4, "1", tuple((name, SET, "x") for name in ("log.retention.ms", "log.segment.bytes", "background.threads"))),),
)


@pytest.mark.parametrize("number", range(len(RESOURCES)))
def test_what_is_refused_first(pair: Pair, number: int) -> None:
    r, legacy = m.IncrementalAlterConfigsRequest, m.AlterConfigsRequest
    topic(pair, "told")
    kinds = [
        r.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[r.AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes],
        )
        for kind, name, changes in RESOURCES[number]
    ]
    pair.ask("IncrementalAlterConfigs", 1, r(resources=kinds, validate_only=True))
    replaced = [
        legacy.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[legacy.AlterableConfig(name=key, value=value) for key, _, value in changes],
        )
        for kind, name, changes in RESOURCES[number]
    ]
    pair.ask("AlterConfigs", 2, legacy(resources=replaced, validate_only=True))
    assert pair.errors("IncrementalAlterConfigs") - {"NONE"}


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
def test_a_type_that_is_no_resource_fails_the_whole_request(pair: Pair, version: int) -> None:
    topic(pair, "typed")
    r = m.DescribeConfigsRequest
    for kinds in ((0,), (1,), (3,), (99,), (2, 3), (4, 1), (3, 2, 32)):
        names = {2: "typed", 4: "1"}
        wanted = [r.DescribeConfigsResource(resource_type=kind, resource_name=names.get(kind, "x")) for kind in kinds]
        pair.ask("DescribeConfigs", version, r(resources=wanted))
    assert pair.errors("DescribeConfigs") == {"INVALID_REQUEST"}


def test_features_that_are_refused(pair: Pair) -> None:
    """The kind of the update first, then a level below 0, then what the controller supports."""
    r = m.UpdateFeaturesRequest

    def update(*wanted: tuple[str, int, int], version: int = 2) -> None:
        updates = [
            r.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind if version else 1)
            for name, level, kind in wanted
        ]
        pair.ask("UpdateFeatures", version, r(timeout_ms=10_000, feature_updates=updates, validate_only=version > 0))

    for name in ("no.such", "", "group.version", "metadata.version", "kraft.version", "share.version"):
        for level in (-1, 0, 1, 100):
            for kind in (0, 1, 2, 3, 9):
                update((name, level, kind))
    for version in versions("UpdateFeatures"):
        update(("share.version", 9, 1), ("no.such", -1, 1), ("transaction.version", -2, 1), version=version)
        update(("no.such", 0, 1), ("group.version", 9, 1), ("x", 5, 1), version=version)
    features = "group.version", "share.version", "streams.version", "eligible.leader.replicas.version"
    for metadata in (3, 7, 22, 23, 33):  # which the levels of other features need
        for name in features:
            for level in (0, 1):
                update((name, level, 1), ("metadata.version", metadata, 1))
    assert pair.errors("UpdateFeatures") == {"INVALID_UPDATE_VERSION", "NONE"}


def test_a_downgrade_to_a_newer_level_is_refused(pair: Pair) -> None:
    r, elr = m.UpdateFeaturesRequest, "eligible.leader.replicas.version"
    for version in (1, 2):
        for level, kind in ((0, 2), (1, 2), (1, 3), (0, 3), (1, 1), (1, 2)):
            update = r.FeatureUpdateKey(feature=elr, max_version_level=level, upgrade_type=kind)
            pair.ask("UpdateFeatures", version, r(timeout_ms=10_000, feature_updates=[update]))
    assert pair.errors("UpdateFeatures") == {"INVALID_UPDATE_VERSION", "NONE"}


def test_unknown_keys_and_versions_end_the_connection(pair: Pair) -> None:
    for frame in (
        b"\0\x03\0\x63\0\0\0\x01\xff\xff",  # Metadata 99
        b"\x03\xe7\0\0\0\0\0\x01\xff\xff",  # a key that no API has
        b"\0\x00\0\x02\0\0\0\x01\xff\xff",  # Produce 2
        b"\0\x12\0\x63\0\0\0\x01\xff\xff\0",  # ApiVersions 99: answered
        b"\0\x12\0\x63\0\0\0\x01\xff\xff",  # without the header's tags
        b"\0\x03\0\x01",
        b"",
        b"\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",  # an impossible count
    ):
        mine, other = pair.raw(frame)
        assert mine[:6] == other[:6], frame


def test_what_is_named_twice(pair: Pair) -> None:
    """Some APIs answer for each time, some once: both the same, so that a flood is bounded by its budget and not by
    other rules than Kafka's.
    """
    create(pair, creatable("twice"))
    topic_ids(pair, "twice")
    for kind in (0, 1):
        coordinators = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["twice", "twice"])
        pair.until("FindCoordinator", 4, coordinators, lambda answer: answer.coordinators[0].error_code == 0)
        pair.ask("FindCoordinator", 4, coordinators)
    groups = m.DescribeGroupsRequest(groups=["twice"])
    pair.until("DescribeGroups", 6, groups, lambda answer: answer.groups[0].error_code == Errors.GROUP_ID_NOT_FOUND)
    transactions = m.DescribeTransactionsRequest(transactional_ids=["twice"])
    absent = Errors.TRANSACTIONAL_ID_NOT_FOUND
    pair.until(
        "DescribeTransactions", 0, transactions, lambda answer: answer.transaction_states[0].error_code == absent
    )
    q, d, p = m.OffsetFetchRequest, m.DescribeConfigsRequest, m.DescribeProducersRequest
    e, o, r = m.OffsetForLeaderEpochRequest, m.ListOffsetsRequest, m.DeleteRecordsRequest
    topics = [q.OffsetFetchRequestTopics(name="twice", partition_indexes=[0, 0])] * 2
    pair.ask(
        "OffsetFetch", 8, q(groups=[q.OffsetFetchRequestGroup(group_id="twice", member_id=None, topics=topics)] * 2)
    )
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=["twice", "twice"]))
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["twice", "twice"]))
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["twice", "twice"]))
    pair.ask("DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=["twice", "twice"]))
    resource = d.DescribeConfigsResource(resource_type=2, resource_name="twice", configuration_keys=["retention.ms"])
    pair.ask("DescribeConfigs", 4, d(resources=[resource, resource]))
    pair.ask("DescribeProducers", 0, p(topics=[p.TopicRequest(name="twice", partition_indexes=[0, 0])] * 2))
    epochs = [e.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)] * 2
    pair.ask(
        "OffsetForLeaderEpoch",
        4,
        e(replica_id=-2, topics=[e.OffsetForLeaderTopic(topic="twice", partitions=epochs)] * 2),
    )
    offsets = [o.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)] * 2
    pair.ask("ListOffsets", 7, o(replica_id=-1, topics=[o.ListOffsetsTopic(name="twice", partitions=offsets)]))
    deleted = [r.DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (7, 0)]
    pair.ask(
        "DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name="twice", partitions=deleted)] * 2)
    )
    pair.ask(
        "DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name="twice", partitions=deleted[::-1])])
    )
    pair.ask("Metadata", 12, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="twice")] * 2))
    t = m.DescribeTopicPartitionsRequest
    pair.ask("DescribeTopicPartitions", 0, t(topics=[t.TopicRequest(name="twice")] * 2, response_partition_limit=2000))
    assert pair.errors("DeleteRecords") == {"NONE", "OFFSET_OUT_OF_RANGE"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND"}
    assert pair.errors("DescribeTransactions") == {"TRANSACTIONAL_ID_NOT_FOUND"}
