"""What coordinators are asked, by what they coordinate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.protocol import messages as m

from .groups import beat_request, commit_request, join_request, sync_request
from .offsets import fetch_request
from .topics import versions

Asked = tuple[str, int, Any]
Kind = Callable[[str], Iterable[Asked]]  # what is asked about a group, or a transactional id
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


def of_transactional_ids(name: str) -> Iterable[Asked]:
    who: dict[str, Any] = {"producer_id": 7777, "producer_epoch": 0}
    a = m.AddPartitionsToTxnRequest
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


def of_offsets_in_transactions(group: str) -> Iterable[Asked]:
    t = m.TxnOffsetCommitRequest
    committed = t.TxnOffsetCommitRequestTopic(
        name=group, partitions=[t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    )
    for version in (0, 3, 5):
        yield (
            "TxnOffsetCommit",
            version,
            t(transactional_id="t", group_id=group, producer_id=7777, producer_epoch=0, topics=[committed]),
        )


def of_transactions(name: str) -> Iterable[Asked]:
    yield from of_transactional_ids(name)
    yield from of_offsets_in_transactions(name)


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


KINDS: dict[str, Kind] = {
    "classic groups": of_classic_groups,
    "offsets": of_offsets,
    "consumer groups": of_consumer_groups,
    "share groups": of_share_groups,
    "streams groups": of_streams_groups,
    "transactions": of_transactions,
    "share states": of_share_states,
}
