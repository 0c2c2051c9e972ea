"""Nodes that coordinate a group, a transaction or a share-partition, and those that do not: as Apache Kafka's."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import Story, group_at
from ..support.stories import nodes
from ..support.stories.coordinators import KINDS, of_share_states
from ..support.stories.groups import commit_request

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_each_node_says_whether_it_is_the_coordinator(story: Story, kind: str) -> None:
    """Before and after the coordinator's node stops; that which takes over answers as its predecessor."""
    group = group_at(0, kind.replace(" ", "-"))
    story.topic(group, [1])
    nodes.coordinators_ready(story)
    heard: dict[str, set[str]] = {}
    for what, node in (("", 0), ("stop", 1), ("start", 1)):
        if what:
            story.happens(what, node)
            story.knows("__consumer_offsets", "__transaction_state", "__share_group_state")
            nodes.coordinators_ready(story)
        story.heard.clear()
        for at in sorted(story.running):
            for name, version, message in KINDS[kind](group):
                story.at(at).ask(name, version, message)
        heard = {name: heard.get(name, set()) | found for name, found in story.heard.items()}
    for name, found in heard.items():
        assert "NOT_COORDINATOR" in found, name


def test_groups_and_transactions_are_listed_where_they_are_coordinated(story: Story) -> None:
    nodes.coordinators_ready(story)
    named = [group_at(partition, "listed") for partition in range(3)]

    def own_only(reply: Any) -> None:
        reply.groups = [one for one in reply.groups if one.group_id in named]

    def own_transactions_only(reply: Any) -> None:
        reply.transaction_states = [one for one in reply.transaction_states if one.transactional_id in named]

    story.trims.update(ListGroups=own_only, ListTransactions=own_transactions_only)
    story.topic("listed", [1])
    for node, group in enumerate(named, start=1):
        at = story.at(node)
        at.ask("OffsetCommit", 9, commit_request(9, group, [("listed", b"", [(0, 5, "")])]))
        at.ask("InitProducerId", 5, m.InitProducerIdRequest(transactional_id=group, transaction_timeout_ms=60_000))
    for what, gone in (("", 0), ("stop", 2), ("start", 2)):
        if what:
            story.happens(what, gone)
            nodes.coordinators_ready(story)
        for node in sorted(story.running):
            story.at(node).agree("ListGroups", 5, m.ListGroupsRequest())
            story.at(node).agree("ListTransactions", 1, m.ListTransactionsRequest())


def test_coordinators_that_cannot_write(story: Story) -> None:
    """Too few replicas are in sync for min.insync.replicas=2: transactions and states of share groups are read, and
    not written.
    """
    nodes.coordinators_ready(story)
    story.topic("written", [1])
    story.happens("stop", 3)
    story.knows("__transaction_state", "__share_group_state")
    story.happens("stop", 2)
    story.knows("__transaction_state", "__share_group_state", "__consumer_offsets")
    nodes.coordinators_ready(story)
    at = story.at(1)
    for partition in range(3):
        name = group_at(partition, "written")
        for version in (1, 5):
            ids = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            at.ask("InitProducerId", version, ids)
        at.ask("OffsetCommit", 9, commit_request(9, name, [("written", b"", [(0, 5, "")])]))
    for name, version, message in of_share_states("written"):
        at.ask(name, version, message)
    story.happens("start", 2)
    story.knows("__transaction_state", "__share_group_state", "__consumer_offsets")
    nodes.coordinators_ready(story)
    name = group_at(0, "written")
    ids = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    at.until("InitProducerId", 5, ids, lambda reply: reply.error_code == 0)
    assert "COORDINATOR_NOT_AVAILABLE" in story.errors("InitProducerId")
