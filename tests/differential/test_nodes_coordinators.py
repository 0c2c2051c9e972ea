"""Nodes that coordinate a group, a transaction or a share-partition, and those that do not: as Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.node_stories import Story, group_at
from ..support.stories import nodes
from ..support.stories.groups import beat_request, commit_request, join_request, sync_request
from ..support.stories.offsets import fetch_request
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
Asked = tuple[str, int, Any]
TIMEOUT_MS = 1000


def of_classic_groups(group: str) -> Iterable[Asked]:
    for version in (0, 5, 9):
        yield "JoinGroup", version, join_request(version, group, "nobody")
    for version in (0, 4):
        yield "Heartbeat", version, m.HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
        yield "SyncGroup", version, sync_request(version, group, "nobody", 1)
    yield "LeaveGroup", 0, m.LeaveGroupRequest(group_id=group, member_id="nobody")
    yield (
        "LeaveGroup",
        5,
        m.LeaveGroupRequest(group_id=group, members=[m.LeaveGroupRequest.MemberIdentity(member_id="x")]),
    )
    for version in versions("DescribeGroups"):
        yield "DescribeGroups", version, m.DescribeGroupsRequest(groups=[group, ""])
    for version in versions("DeleteGroups"):
        yield "DeleteGroups", version, m.DeleteGroupsRequest(groups_names=[group, ""])


def of_offsets(group: str) -> Iterable[Asked]:
    named = [(group, b"\7" * 16, [(0, 5, "")])]
    for version in (2, 7, 8, 9, 10):
        yield "OffsetCommit", version, commit_request(version, group, named)
    for version in (1, 5, 7, 8, 9, 10):
        yield "OffsetFetch", version, fetch_request(version, group, [(group, b"\7" * 16, [0, 1])])
    for version in (2, 8, 10):
        yield "OffsetFetch", version, fetch_request(version, group, None)
    d = m.OffsetDeleteRequest
    topic = d.OffsetDeleteRequestTopic(name=group, partitions=[d.OffsetDeleteRequestPartition(partition_index=0)])
    yield "OffsetDelete", 0, d(group_id=group, topics=[topic])


def of_consumer_groups(group: str) -> Iterable[Asked]:
    for version in (0, 1):
        yield "ConsumerGroupHeartbeat", version, beat_request(version, group, "nobody", 3)
        yield "ConsumerGroupDescribe", version, m.ConsumerGroupDescribeRequest(group_ids=[group, ""])


def of_share_groups(group: str) -> Iterable[Asked]:
    d, a, x = m.DescribeShareGroupOffsetsRequest, m.AlterShareGroupOffsetsRequest, m.DeleteShareGroupOffsetsRequest
    yield "ShareGroupHeartbeat", 1, m.ShareGroupHeartbeatRequest(group_id=group, member_id="nobody", member_epoch=3)
    yield "ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[group, ""])
    for version in (0, 1):
        asked = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
        yield "DescribeShareGroupOffsets", version, asked
    topic = a.AlterShareGroupOffsetsRequestTopic(
        topic_name=group, partitions=[a.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=1)]
    )
    yield "AlterShareGroupOffsets", 0, a(group_id=group, topics=[topic])
    named = [x.DeleteShareGroupOffsetsRequestTopic(topic_name=group)]
    yield "DeleteShareGroupOffsets", 0, x(group_id=group, topics=named)


def of_streams_groups(group: str) -> Iterable[Asked]:
    r = m.StreamsGroupHeartbeatRequest
    for version in versions("StreamsGroupHeartbeat"):
        yield "StreamsGroupHeartbeat", version, r(group_id=group, member_id="nobody", member_epoch=3)
    for version in versions("StreamsGroupDescribe"):
        yield "StreamsGroupDescribe", version, m.StreamsGroupDescribeRequest(group_ids=[group, ""])


def of_transactions(name: str) -> Iterable[Asked]:
    who: dict[str, Any] = {"producer_id": 7777, "producer_epoch": 0}
    a, t = m.AddPartitionsToTxnRequest, m.TxnOffsetCommitRequest
    topics = [a.AddPartitionsToTxnTopic(name=name, partitions=[0])]
    added = a(v3_and_below_transactional_id=name, v3_and_below_producer_id=7777, v3_and_below_topics=topics)
    yield "AddPartitionsToTxn", 3, added
    for verify in (True, False):
        one = a.AddPartitionsToTxnTransaction(transactional_id=name, topics=topics, verify_only=verify, **who)
        for version in (4, 5):
            yield "AddPartitionsToTxn", version, a(transactions=[one])
    for version in (0, 4):
        yield "AddOffsetsToTxn", version, m.AddOffsetsToTxnRequest(transactional_id=name, group_id="g", **who)
    for version in (0, 4, 5):
        yield "EndTxn", version, m.EndTxnRequest(transactional_id=name, committed=True, **who)
        ids = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
        if version >= 3:
            ids.producer_id, ids.producer_epoch = 7777, 0
        yield "InitProducerId", version, ids
    yield "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=[name, ""])
    committed = t.TxnOffsetCommitRequestTopic(
        name=name, partitions=[t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    )
    for version in (0, 3, 5):
        yield "TxnOffsetCommit", version, t(transactional_id="t", group_id=name, topics=[committed], **who)


def of_share_states(group: str) -> Iterable[Asked]:
    kinds: list[tuple[str, str, dict[str, int]]] = [
        ("InitializeShareGroupState", "InitializeStateData", {"state_epoch": 1, "start_offset": 0}),
        ("ReadShareGroupState", "ReadStateData", {"leader_epoch": 0}),
        ("WriteShareGroupState", "WriteStateData", {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0}),
        ("ReadShareGroupStateSummary", "ReadStateSummaryData", {"leader_epoch": 0}),
        ("DeleteShareGroupState", "DeleteStateData", {}),
    ]
    for name, data, fields in kinds:
        r = getattr(m, f"{name}Request")
        topic = getattr(r, data)(topic_id=b"\5" * 16, partitions=[r.PartitionData(partition=0, **fields)])
        for version in versions(name):
            yield name, version, r(group_id=group, topics=[topic])


KINDS = {
    "classic groups": of_classic_groups,
    "offsets": of_offsets,
    "consumer groups": of_consumer_groups,
    "share groups": of_share_groups,
    "streams groups": of_streams_groups,
    "transactions": of_transactions,
    "share states": of_share_states,
}


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
