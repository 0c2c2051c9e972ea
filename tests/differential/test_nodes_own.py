"""What each node has as its own, as three brokers of Apache Kafka: defaults of topics, and quotas of clients."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import NODES, Story, creation
from ..support.stories import nodes

pytestmark = pytest.mark.slow
ALTER, D, Q = m.IncrementalAlterConfigsRequest, m.DescribeConfigsRequest, m.AlterClientQuotasRequest
TOPIC, BROKER = 2, 4


def alter(story: Story, node: int, name: str, **configs: str | None) -> None:
    """Sets dynamic configurations of a broker, or of all where `name` is empty, or deletes those that are None."""
    changes = [
        ALTER.AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in configs.items()
    ]
    resource = ALTER.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=changes)
    story.at(node).ask("IncrementalAlterConfigs", 1, ALTER(resources=[resource]))


def described(story: Story, node: int, name: str, *keys: str) -> None:
    resource = D.DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=list(keys))
    story.at(node).agree("DescribeConfigs", 4, D(resources=[resource], include_synonyms=True))


OWN = {
    "log_retention_ms": ("retention.ms", "123456"),
    "log_retention_bytes": ("retention.bytes", "987654"),
    "log_segment_bytes": ("segment.bytes", "1048576"),
    "log_cleanup_policy": ("cleanup.policy", "compact"),
    "log_message_timestamp_type": ("message.timestamp.type", "LogAppendTime"),
    "message_max_bytes": ("max.message.bytes", "2000"),
    "compression_type": ("compression.type", "gzip"),
    "unclean_leader_election_enable": ("unclean.leader.election.enable", "true"),
    "min_insync_replicas": ("min.insync.replicas", "2"),
}


def test_each_node_shows_its_own_defaults_of_topics(story: Story) -> None:
    """And those of all, which are below; a topic's own value is above."""
    story.topic("shown", [1, 2, 3])
    story.topic("own", [1, 2, 3], retention_ms="777", max_message_bytes="3000")
    keys = [key for key, _ in OWN.values()]
    for name, (_, value) in OWN.items():
        alter(story, 2, "2", **{name: value})
    alter(story, 3, "", log_retention_ms="999", message_max_bytes="4000")
    for node in NODES:
        for topic in ("shown", "own"):
            described(story, node, topic, *keys)
    for name in OWN:
        alter(story, 2, "2", **{name: None})
    for node in NODES:
        described(story, node, "shown", *keys)
    alter(story, 1, "", log_retention_ms=None, message_max_bytes=None)
    for node in NODES:
        described(story, node, "shown", *keys)


def test_a_leader_obeys_the_defaults_of_its_own_node(story: Story) -> None:
    """Whoever leads: the largest batch, and whose time it is."""
    ids = story.topic("obeyed", [1, 2], [2, 3], [3, 1])
    story.topic("moving", [2, 3])
    alter(story, 2, "2", message_max_bytes="2000", log_message_timestamp_type="LogAppendTime")
    described(story, 2, "obeyed", "max.message.bytes", "message.timestamp.type")
    for partition, leader in enumerate(NODES):
        for value in ("v", "v" * 3000):
            story.at(leader).both("Produce", 10, nodes.produce("obeyed", ids, 10, value, partition))
    assert story.errors("Produce") == {"NONE", "MESSAGE_TOO_LARGE"}
    story.happens("stop", 2)
    story.knows("obeyed")
    story.at(3).both("Produce", 10, nodes.produce("obeyed", ids, 10, "v" * 3000, 1))
    story.happens("start", 2)
    story.knows("obeyed")
    alter(story, 2, "2", message_max_bytes=None, log_message_timestamp_type=None)
    described(story, 2, "obeyed", "max.message.bytes", "message.timestamp.type")


def limit(story: Story, **limits: float | None) -> None:
    """Sets limits of all clients, or removes those that are None."""
    operations = [Q.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()]
    entity = [Q.EntityData(entity_type="client-id", entity_name=None)]
    story.at(1).ask("AlterClientQuotas", 1, Q(entries=[Q.EntryData(entity=entity, ops=operations)]))
    wanted = m.DescribeClientQuotasRequest.ComponentData(entity_type="client-id", match_type=2, match=None)
    for node in NODES:
        story.at(node).agree("DescribeClientQuotas", 1, m.DescribeClientQuotasRequest(components=[wanted]))


def throttled_or_not(reply: Any) -> None:
    """For how long depends on the moments of the requests."""
    reply.throttle_time_ms = int(reply.throttle_time_ms > 0)


def produced(story: Story, node: int, make: nodes.Make) -> None:
    """Over a connection of its own: one that is throttled is muted."""
    with closing(story.beside(node)) as beside:
        beside.both("Produce", 10, make)


def test_a_client_has_its_quota_at_each_node(story: Story) -> None:
    ids = story.topic("rates", [1], [2], [3])
    story.trims["Produce"] = throttled_or_not
    limit(story, producer_byte_rate=2000.0)
    for value in ("v" * 100_000, "v"):
        for partition, node in ((0, 1), (1, 2)):
            produced(story, node, nodes.produce("rates", ids, 10, value, partition))
    produced(story, 3, nodes.produce("rates", ids, 10, "v", 2))
    limit(story, producer_byte_rate=None)


def test_mutations_count_for_all_nodes(story: Story) -> None:
    """The controller measures them, whichever node was asked."""
    story.trims["CreateTopics"] = throttled_or_not
    limit(story, controller_mutation_rate=1.0)
    for node, name in ((1, "first"), (2, "second"), (3, "third")):
        request = creation(name, *([[1]] * 30 if node == 1 else [[1]]))
        with closing(story.beside(node)) as beside:
            beside.ask("CreateTopics", 7, request)
    limit(story, controller_mutation_rate=None)
    assert story.errors("CreateTopics") == {"NONE", "THROTTLING_QUOTA_EXCEEDED"}
