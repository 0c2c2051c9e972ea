"""The brokers of the stories: our broker for those that run against a Kafka with its defaults, and three nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing import Broker

from ..oracle.cluster import KafkaCluster
from ..support import node_stories, transcripts
from ..support.differential import Tally, told
from ..support.node_stories import Story
from ..support.transcripts import Transcript


@pytest.fixture(scope="session")
def ours() -> Iterator[Broker]:
    with Broker(lab=False) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_nodes() -> Iterator[KafkaCluster | None]:
    """Three brokers of Kafka; None where transcripts are played."""
    if transcripts.mode() == "recorded":
        yield None
        return
    with KafkaCluster(node_stories.SETTINGS, racks=node_stories.RACKS) as kafka:
        node_stories.prepare(kafka)
        yield kafka


@pytest.fixture
def story(kafka_nodes: KafkaCluster | None, tally: Tally, request: pytest.FixtureRequest) -> Iterator[Story]:
    """Three nodes of each, all running, with the coordinators' topics."""
    if kafka_nodes is not None:
        node_stories.restore(kafka_nodes)
    with told(tally, Transcript(request.node.nodeid, playing=kafka_nodes is None), transcripts.mode()) as transcript:
        found = Story(kafka_nodes, tally, transcript)
        yield found
        found.close()
