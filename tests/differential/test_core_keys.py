"""Configurations, told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.config_def import topic_synonyms

from ..support.differential import WITHOUT_RETENTION, Pair
from ..support.stories.core import (
    describe,
)
from ..support.stories.topics import (
    creatable,
    topic,
    versions,
)

pytestmark = pytest.mark.slow


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
    assert pair.errors("DescribeConfigs") == {
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_every_topic_key_is_described(pair: Pair) -> None:
    topic(pair, "every")
    mine, other = pair.ask("DescribeConfigs", 4, describe("every", include_synonyms=True, include_documentation=True))
    assert len(mine.results[0].configs) == len(other.results[0].configs) > 30
    assert all(c.documentation for c in mine.results[0].configs)


def test_defaults_of_topics_are_documented(pair: Pair) -> None:
    """Kafka documents all keys of brokers; ottla documents those that are defaults of topics."""
    names = sorted(first for first, *_ in topic_synonyms().values())
    mine, other = pair.ask("DescribeConfigs", 4, describe("1", kind=4, include_documentation=True, keys=names))
    for found in (mine, other):
        documented = {c.name: c.documentation for c in found.results[0].configs}
        assert len(documented) > 30
        assert all(documented.values())


def test_values_are_described_in_one_form(pair: Pair) -> None:
    """However they were written: without spaces and duplicates, and as Java writes numbers."""
    values = {
        "cleanup_policy": " compact , delete,compact",
        "compression_type": " lz4 ",
        "flush_messages": "+7",
        "follower_replication_throttled_replicas": " 1:1 ",
        "min_cleanable_dirty_ratio": " 0.00010 ",
        "preallocate": " TRUE ",
        "retention_ms": " 0005000",
    }
    topic(pair, "forms", 1, **values)
    pair.ask("DescribeConfigs", 4, describe("forms", include_synonyms=True))


# of which each broker has its own
OWN_VALUES = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "group.consumer.assignment.interval.ms",
    "group.initial.rebalance.delay.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
    "group.streams.initial.rebalance.delay.ms",
    "listeners",
    "log.dirs",
    "node.id",
}


def test_brokers_are_described(pair: Pair) -> None:
    """Every key that Kafka has, with the value in force. Values that a local node has instead of Kafka's defaults are
    described as if a user had set them.
    """
    for name in ("", "2", "x", "-1"):
        for version in versions("DescribeConfigs"):
            pair.ask("DescribeConfigs", version, describe(name, 4))
    mine, other = (wire.ask("DescribeConfigs", 4, describe("1", 4)).results[0].configs for wire in pair.wires)
    found = {c.name: c for c in mine}
    other = [c for c in other if c.name not in WITHOUT_RETENTION]
    assert {name for name in found if not name.startswith("ottla.")} == {c.name for c in other}
    for theirs in other:
        ours = found[theirs.name]
        assert (ours.read_only, ours.is_sensitive, ours.config_type) == (
            theirs.read_only,
            theirs.is_sensitive,
            theirs.config_type,
        ), ours
        if theirs.name not in OWN_VALUES:
            assert (ours.value, ours.config_source, ours.synonyms) == (
                theirs.value,
                theirs.config_source,
                theirs.synonyms,
            ), ours
    assert found["node.id"].value == "1"
    for name in ("listeners", "advertised.listeners"):
        assert found[name].value.startswith(f"PLAINTEXT://127.0.0.1:{pair.addresses[0].rpartition(':')[2]}"), (
            "with the port that was bound"
        )


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
                pair.ask(
                    "DeleteTopics", version, d(topic_names=["hurried", "absent", "hurried"], timeout_ms=timeout_ms)
                )
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
    pair.ask(
        "Metadata",
        9,
        m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=n) for n in ("hurried", "too-late")]),
    )
    assert pair.errors("AlterPartitionReassignments") == {"NONE", "REQUEST_TIMED_OUT"}
    assert pair.errors("ElectLeaders") == {"NONE", "REQUEST_TIMED_OUT"}
    assert pair.errors("Metadata") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}
    assert pair.errors("CreatePartitions") == {"REQUEST_TIMED_OUT"}
