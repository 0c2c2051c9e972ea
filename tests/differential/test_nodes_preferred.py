"""Leaders that go back to their preferred replicas, as in Apache Kafka (`auto.leader.rebalance.enable`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ..oracle.cluster import KafkaCluster
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import NODES, Story
from ..support.stories import nodes
from ..support.transcripts import Transcript

pytestmark = pytest.mark.slow
INTERVAL = "leader.imbalance.check.interval.seconds"
OWN = {"auto.leader.rebalance.enable": "true", INTERVAL: "2"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster | None]:
    if transcripts.mode() == "recorded":
        yield None
        return
    with KafkaCluster({**node_stories.SETTINGS, **OWN}, racks=node_stories.RACKS) as found:
        node_stories.prepare(found)
        yield found


@pytest.fixture
def story(kafka: KafkaCluster | None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[Story]:
    if kafka is not None:
        node_stories.restore(kafka)
    with told(tally, Transcript(request.node.nodeid, playing=kafka is None), transcripts.mode()) as transcript:
        found = Story(kafka, tally, transcript, **OWN)
        yield found
        found.close()


@pytest.mark.parametrize("what", ["stop", "kill"])
def test_a_node_that_starts_again_leads_again(story: Story, what: str) -> None:
    """No one asks for an election, and one partition that is led elsewhere is enough."""
    name = f"preferred-{what}"
    ids = story.topic(name, [1, 2, 3], [2, 3, 1], [1, 3, 2])
    nodes.written(story.at(1), name, ids, "a")
    story.happens(what, 1)
    story.knows(name)
    nodes.written(story.at(2), name, ids, "b")
    assert [story.state(name, index)[0] for index in (0, 1, 2)] == [2, 2, 3]
    story.happens("start", 1)
    story.knows(name)
    assert [story.state(name, index)[0] for index in (0, 1, 2)] == [1, 2, 1]
    assert [story.state(name, index)[1] for index in (0, 1, 2)] == [2, 0, 2]
    nodes.written(story.at(1), name, ids, "c")
    for kind in (0, 1):
        story.at(2).ask("ElectLeaders", 2, nodes.elections(kind, (name, 0), (name, 1)))
    assert story.errors("ElectLeaders") == {"NONE", "ELECTION_NOT_NEEDED"}


def test_a_replica_that_is_gone_does_not_lead_however_often_it_is_asked(story: Story) -> None:
    """A move makes a node the preferred one that has not started yet; it leads as soon as it is in sync."""
    ids = story.topic("awaited", [2, 3])
    nodes.written(story.at(2), "awaited", ids, "a")
    story.happens("stop", 3)
    story.knows("awaited")
    r = m.AlterPartitionReassignmentsRequest
    part = r.ReassignablePartition(partition_index=0, replicas=[3, 2])
    topic = r.ReassignableTopic(name="awaited", partitions=[part])
    story.at(1).ask("AlterPartitionReassignments", 1, r(topics=[topic], timeout_ms=10_000))
    story.knows("awaited")
    assert story.state("awaited")[0] == 2
    story.happens("start", 3)
    story.knows("awaited")
    assert story.state("awaited")[0] == 3
    assert story.errors("AlterPartitionReassignments") == {"NONE"}


def test_the_keys_cannot_be_changed_while_brokers_run(story: Story) -> None:
    i, d = m.IncrementalAlterConfigsRequest, m.DescribeConfigsRequest
    for node in NODES:
        for name in ("", str(node)):
            asked = d.DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=list(OWN))
            story.at(node).ask("DescribeConfigs", 4, d(resources=[asked], include_synonyms=True))
            for key in OWN:
                value = "false" if key.endswith("enable") else "7"
                config = i.AlterableConfig(name=key, config_operation=0, value=value)
                resource = i.AlterConfigsResource(resource_type=4, resource_name=name, configs=[config])
                story.at(node).ask("IncrementalAlterConfigs", 1, i(resources=[resource]))
    assert story.errors("IncrementalAlterConfigs") == {"INVALID_REQUEST"}
