"""What clients hear while a coordinator loads at the node that leads its partition now: as from Apache Kafka's."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from ottla.broker.shards.host import ShardHost
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ..support.differential import errors_in
from ..support.node_stories import INTERNAL, Story, group_at
from ..support.stories import coordinators as c
from ..support.stories import nodes
from ..support.stories.coordinators import Asked, Kind
from ..support.stories.topics import produce_request

pytestmark = pytest.mark.slow
ADMIN = "__admin_client"  # the client that Kafka lets write to coordinators' topics
BATCHES, RECORDS = 10, 60_000
GZIP = 1
TOPIC_IDS_SINCE = 10  # of OffsetCommit and OffsetFetch
LOADING = "COORDINATOR_LOAD_IN_PROGRESS"
# A heartbeat is well; offsets in transactions are verified at the transaction's coordinator before.
OTHERS = {"Heartbeat": "NONE", "TxnOffsetCommit": "INVALID_PRODUCER_ID_MAPPING"}


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class Family(NamedTuple):
    """The coordinators of a topic. `key`: of a record of it, which deletes what does not exist. `probe`: what is asked
    until a coordinator loads.
    """

    topic: str
    kinds: tuple[Kind, ...]
    key: bytes
    probe: str


GROUPS = (
    c.of_classic_groups,
    c.of_offsets,
    c.of_offsets_in_transactions,
    c.of_consumer_groups,
    c.of_share_groups,
    c.of_streams_groups,
)
FAMILIES = (
    Family("__consumer_offsets", GROUPS, b"\0\1" + text("nobody") + text("nothing") + bytes(4), "OffsetFetch"),
    Family("__transaction_state", (c.of_transactional_ids,), b"\0\0" + text("nobody"), "DescribeTransactions"),
    Family("__share_group_state", (c.of_share_states,), b"\0\0" + text("nobody") + bytes(20), "ReadShareGroupState"),
)


def lengthen(story: Story, topic: str, key: bytes) -> None:
    """Lets Kafka's coordinator load for about a second; ours waits where the story says so."""
    data = records.encode([Record(key, None, 1)] * RECORDS, Template(codec=GZIP))
    leader = story.state(topic)[0]
    voice = story.transcript.dial(story.kafka.address(leader) if story.kafka else "", ADMIN)
    for _ in range(BATCHES):
        reply = voice.ask("Produce", 10, produce_request(10, topic, b"", bytes(data), 0, -1))
        assert reply.responses[0].partition_responses[0].error_code == 0
    voice.close()


@contextmanager
def loading(story: Story, topic: str) -> Iterator[None]:
    """Coordinators of ours do not begin to load until the end."""
    family, waiting = story.world.broker.coordinators[topic], list[ShardHost[Any]]()
    family.begin = waiting.append
    yield
    family.begin = ShardHost.begin
    for host in waiting:
        story.world.broker.turn.event(host.begin)


def requests(kinds: tuple[Kind, ...], group: str) -> Iterator[Asked]:
    """The last version of each request to coordinators, of those that name topics."""
    last = {}
    for kind in kinds:
        for name, version, message in kind(group):
            if version < TOPIC_IDS_SINCE:
                last[name] = name, version, message
    yield from last.values()


def is_loading(reply: Any) -> bool:
    return LOADING in errors_in(reply)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.topic)
def test_a_coordinator_loads(story: Story, family: Family) -> None:
    topic = family.topic
    node = INTERNAL[topic][0][0][0]
    other = node % 3 + 1
    group = group_at(0, f"loading-{family.probe}")
    story.topic(group, [other])
    nodes.coordinators_ready(story)
    story.happens("stop", node)
    story.knows(topic)
    lengthen(story, topic, family.key)
    story.happens("start", node)
    story.knows(topic)
    nodes.coordinators_ready(story)
    asked = list(requests(family.kinds, group))
    with loading(story, topic):
        story.at(other).ask("ElectLeaders", 2, nodes.elections(0, (topic, 0)))
        (probe,) = (one for one in asked if one[0] == family.probe)
        story.at(node).until(*probe, is_loading)
        for name, version, message in asked:
            story.at(node).ask(name, version, message)
            story.at(other).ask(name, version, message)
    nodes.coordinators_ready(story)
    for name, _, _ in asked:
        assert OTHERS.get(name, LOADING) in story.errors(name), name
