"""Groups whose coordinator finds fewer replicas in sync than `min.insync.replicas`: as Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import Story, group_at
from ..support.stories import groups, nodes
from ..support.stories.offsets import fetch_request

pytestmark = pytest.mark.slow
COORDINATORS = "__consumer_offsets"


@contextmanager
def two_in_sync(story: Story) -> Iterator[None]:
    """Groups' coordinators need two replicas in sync. The topic outlives the story."""
    r = m.IncrementalAlterConfigsRequest
    for operation in (0, 1):
        config = r.AlterableConfig(name="min.insync.replicas", config_operation=operation, value="2")
        asked = r(resources=[r.AlterConfigsResource(resource_type=2, resource_name=COORDINATORS, configs=[config])])
        story.at(1).ask("IncrementalAlterConfigs", 1, asked)
        story.knows(COORDINATORS)
        if operation == 0:
            yield


def test_what_a_group_writes_counts_when_a_replica_is_back(story: Story) -> None:
    """The coordinator appends as with acks=1, and its replies wait for the high watermark: they are
    COORDINATOR_NOT_AVAILABLE after `offsets.commit.timeout.ms`. Readers see what was committed before.
    """
    name = "unwritten"
    story.topic(name, [1])
    nodes.coordinators_ready(story)
    group, members = group_at(0, name), group_at(0, "members")
    at = story.at(1)

    def commit(offset: int) -> None:
        at.ask("OffsetCommit", 9, groups.commit_request(9, group, [(name, b"", [(0, offset, "")])]))

    def joins() -> None:
        first = groups.beat_request(1, members, "m1", 0, subscribed_topic_names=[name], rebalance_timeout_ms=300_000)
        first.topic_partitions = []
        at.ask("ConsumerGroupHeartbeat", 1, first)

    def shows() -> None:
        at.ask("OffsetFetch", 8, fetch_request(8, group, None))
        at.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[members]))

    with two_in_sync(story):
        commit(5)
        for node in (3, 2):
            story.happens("stop", node)
            story.knows(COORDINATORS)
        commit(6)
        joins()
        shows()
        at.ask("OffsetFetch", 8, fetch_request(8, group, None, require_stable=True))
        at.ask("ConsumerGroupHeartbeat", 1, groups.beat_request(1, members, "m1", 2))
        shows()
        story.happens("start", 2)
        story.knows(COORDINATORS)
        nodes.coordinators_ready(story)
        shows()
        commit(7)
        shows()
    assert story.errors("OffsetCommit") == {"NONE", "COORDINATOR_NOT_AVAILABLE"}
