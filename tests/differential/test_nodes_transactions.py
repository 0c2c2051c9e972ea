"""Producers whose partitions' leader, or whose transaction's coordinator, moves: as with Apache Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import AtNode, Story, group_at
from ..support.stories import nodes, transactions
from ..support.stories.groups import commit_request
from ..support.stories.offsets import fetch_request
from ..support.stories.transactions import ABORTED, COMMITTED, Writer, added, ended, initialized, produced

pytestmark = pytest.mark.slow
WAYS = ["stop", "kill"]


def coordinator_moves(story: Story, what: str) -> AtNode:
    """Node 1 goes; returns the connection to that which coordinates next."""
    story.happens(what, 1)
    story.knows("__transaction_state", "__consumer_offsets")
    nodes.coordinators_ready(story)
    return story.at(2)


def seen(at: AtNode, name: str, partition: int = 0) -> None:
    """Waits until a reader of committed records sees the same of both, by producers' order."""
    r = m.FetchRequest
    for isolation in (0, 1):
        part = r.FetchPartition(partition=partition, partition_max_bytes=1 << 20)
        request = r(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, isolation_level=isolation)
        request.topics = [r.FetchTopic(topic=name, partitions=[part])]
        at.agree("Fetch", 11, request)
    at.agree("DescribeProducers", 0, nodes.producers(name, partition))


def of_one_life(reply: Any) -> None:
    """Kafka's coordinators have moved in many stories."""
    for topic in reply.topics:
        for part in topic.partitions:
            for one in part.active_producers:
                one.coordinator_epoch = min(one.coordinator_epoch, 0)


def without_producers(reply: Any) -> None:
    """As `values_only`, and of aborted transactions only where they begin."""
    nodes.values_only(reply)
    for topic in reply.responses:
        for part in topic.partitions:
            for one in part.aborted_transactions or ():
                one.producer_id = 0


@pytest.mark.parametrize("what", WAYS)
def test_an_idempotent_producer_goes_on_at_the_next_leader(story: Story, what: str) -> None:
    """The new leader knows its sequence: what comes twice is not written twice, and a gap is refused."""
    story.trims.update(Fetch=without_producers, DescribeProducers=of_one_life)
    name = f"sequence-{what}"
    ids = story.topic(name, [1, 2, 3], [2, 3, 1])
    nodes.coordinators_ready(story)
    writer = initialized(story.at(2), None)
    for sequence in range(3):
        produced(story.at(1), 10, writer, name, b"v", sequence=sequence, transactional=False, transactional_id=None)
    nodes.read(story.at(2), name, ids)
    story.happens(what, 1)
    story.knows(name)
    for sequence in (2, 1, 0, 4, 3, 3, 5, 9, 4):
        produced(story.at(2), 10, writer, name, b"v", sequence=sequence, transactional=False, transactional_id=None)
    older = writer._replace(epoch=-1) if writer.epoch else writer.stranger()
    produced(story.at(2), 10, older, name, b"v", sequence=5, transactional=False, transactional_id=None)
    seen(story.at(2), name)
    story.happens("start", 1)
    story.knows(name)
    story.at(3).ask("ElectLeaders", 2, nodes.elections(0, (name, 0)))
    story.knows(name)
    for sequence in (5, 6, 9):
        produced(story.at(1), 10, writer, name, b"v", sequence=sequence, transactional=False, transactional_id=None)
    seen(story.at(1), name)
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in story.errors("Produce")


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("what", WAYS)
def test_the_coordinator_moves_in_the_middle_of_a_transaction(story: Story, what: str, version: int) -> None:
    """The producer commits at the next coordinator, and what has a new epoch meanwhile is a zombie."""
    story.trims.update(Fetch=without_producers, DescribeProducers=of_one_life)
    name = f"middle-{what}{version}"
    story.topic(name, [2, 3], [3, 2])
    nodes.coordinators_ready(story)
    one = group_at(0, name)
    at = story.at(1)
    writer = initialized(at, one, version=version)
    begin(story, at, version, writer, name)
    transactions.described(at, one)
    at = coordinator_moves(story, what)
    transactions.described(at, one)
    seen(story.at(2), name)
    writer = ended(at, version, writer, COMMITTED)
    seen(story.at(2), name)
    begin(story, at, version, writer, name, sequence=0 if version == 5 else 1)
    zombie = writer
    initialized(at, one, version=version)  # its transaction is aborted first
    transactions.settle(at, one)
    writer = initialized(at, one, version=version)
    ended(story.at(3), version, zombie, COMMITTED)
    ended(at, version, zombie, COMMITTED)
    produced(story.at(2), 11 if version == 5 else 10, zombie, name, b"zombie", sequence=3)
    begin(story, at, version, writer, name)
    ended(at, version, writer, ABORTED)
    seen(story.at(2), name)
    transactions.described(at, one)
    story.happens("start", 1)
    story.knows("__transaction_state", "__consumer_offsets")
    assert "NOT_COORDINATOR" in story.errors("EndTxn")


def begin(story: Story, at: AtNode, version: int, writer: Writer, name: str, sequence: int = 0) -> None:
    """A record in a transaction; from version 5 of EndTxn on, Produce adds the partition by itself (KIP-890)."""
    if version < 5:
        added(at, 3, writer, name, 0)
    produced(story.at(2), 12 if version >= 5 else 10, writer, name, b"v", sequence=sequence)


@pytest.mark.parametrize("what", WAYS)
def test_the_leader_moves_in_the_middle_of_a_transaction(story: Story, what: str) -> None:
    """The markers go to the next leader."""
    story.trims.update(Fetch=without_producers, DescribeProducers=of_one_life)
    name = f"leader-{what}"
    ids = story.topic(name, [3, 2], [2, 3])
    nodes.coordinators_ready(story)
    one = group_at(0, name)
    at = story.at(1)
    writer = initialized(at, one)
    added(at, 3, writer, name, 0, 1)
    produced(story.at(3), 10, writer, name, b"a")
    produced(story.at(2), 10, writer, name, b"b", partition=1)
    nodes.read(story.at(2), name, ids)
    story.happens(what, 3)
    story.knows(name, "__transaction_state")
    nodes.coordinators_ready(story)
    produced(story.at(2), 10, writer, name, b"c", sequence=1)
    ended(at, 4, writer, COMMITTED)
    for partition in (0, 1):
        seen(story.at(2), name, partition)
    story.happens("start", 3)
    story.knows(name)


def test_offsets_in_a_transaction_whose_group_moves(story: Story) -> None:
    """The group's coordinator, which has the offsets, goes, and the next one has them when they are committed."""
    story.topic("offsets-moved", [2, 3])
    nodes.coordinators_ready(story)
    one, group = group_at(1, "offsets-moved"), group_at(0, "offsets-moved")
    at = story.at(2)
    writer = initialized(at, one)
    transactions.offsets_added(at, 4, writer, group)
    t = m.TxnOffsetCommitRequest

    def offset(side: int) -> Any:
        part = t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topics = [t.TxnOffsetCommitRequestTopic(name="offsets-moved", partitions=[part])]
        request = t(transactional_id=one, group_id=group, producer_id=writer.ids[side], topics=topics)
        request.producer_epoch = writer.epoch
        return request

    story.at(1).both("TxnOffsetCommit", 3, offset)
    story.at(3).both("TxnOffsetCommit", 3, offset)
    for stable in (False, True):
        story.at(1).ask("OffsetFetch", 7, fetch_request(7, group, None, require_stable=stable))
    story.happens("stop", 1)
    story.knows("__consumer_offsets", "__transaction_state")
    nodes.coordinators_ready(story)
    for stable in (False, True):
        at.ask("OffsetFetch", 7, fetch_request(7, group, [("offsets-moved", b"", [0])], require_stable=stable))
    at.ask("OffsetCommit", 8, commit_request(8, group, [("offsets-moved", b"", [(0, 3, "")])]))
    ended(at, 4, writer, COMMITTED)
    request = fetch_request(7, group, [("offsets-moved", b"", [0])], require_stable=True)
    at.until("OffsetFetch", 7, request, lambda said: said.topics[0].partitions[0].error_code == 0)
    assert "UNSTABLE_OFFSET_COMMIT" in story.errors("OffsetFetch")
