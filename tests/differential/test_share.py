"""Share groups, told the same stories by ottla and by Apache Kafka: members and sessions, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.leases import (
    SETTINGS,
    F,
    acknowledged,
    acquired,
    batches,
    fetched,
)
from ..support.stories.share import began, configure, heartbeat, initialized
from ..support.stories.topics import batch, produce, topic

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def limit(pair: Pair, rate: float | None) -> None:
    """Sets the `consumer_byte_rate` of all clients; None removes it."""
    a = m.AlterClientQuotasRequest
    op = a.OpData(key="consumer_byte_rate", value=rate or 0.0, remove=rate is None)
    entry = a.EntryData(entity=[a.EntityData(entity_type="client-id", entity_name=None)], ops=[op])
    pair.ask("AlterClientQuotas", 1, a(entries=[entry]))


# membership


def test_members_come_stay_and_go(pair: Pair) -> None:
    ids = topic(pair, "sm")
    heartbeat(pair, "sm", 0, ["sm"])
    initialized(pair, "sm", ids)
    epoch = heartbeat(pair, "sm", 2).member_epoch
    for wrong in (epoch + 5, epoch - 2, 1):
        heartbeat(pair, "sm", wrong)
    heartbeat(pair, "sm", epoch)
    for member in ("m2", "m3", "m4"):
        heartbeat(pair, "sm", 0, ["sm", "nothing"], member=member)
    heartbeat(pair, "sm", epoch, [])
    heartbeat(pair, "sm", epoch + 1, ["sm"], rack_id="r1")
    describe = m.ShareGroupDescribeRequest(group_ids=["sm", "none", ""], include_authorized_operations=True)
    pair.ask("ShareGroupDescribe", 1, describe)
    for filters in ([], ["Stable"], ["Empty"]):
        pair.ask("ListGroups", 5, m.ListGroupsRequest(states_filter=filters, types_filter=["share"]))
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["sm"]))
    for member in ("m2", "m1", "m1", "m9"):
        heartbeat(pair, "sm", -1, member=member)
    pair.ask("ShareGroupDescribe", 1, describe)
    heartbeat(pair, "sm", -1, member="m3")
    pair.ask("ShareGroupDescribe", 1, describe)
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["sm", "none"]))
    pair.ask("ShareGroupDescribe", 1, describe)
    assert pair.errors("ShareGroupHeartbeat") == {
        "FENCED_MEMBER_EPOCH",
        "GROUP_MAX_SIZE_REACHED",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    }
    assert pair.errors("DeleteGroups") == {"GROUP_ID_NOT_FOUND", "NONE", "NON_EMPTY_GROUP"}
    assert pair.errors("ShareGroupDescribe") == {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NONE"}


def test_heartbeats_that_no_group_takes(pair: Pair) -> None:
    heartbeat(pair, "sx", 0, None)
    heartbeat(pair, "sx", 0, [])
    heartbeat(pair, "", 0, ["t"])
    heartbeat(pair, " ", 0, ["t"])
    heartbeat(pair, "sx", 0, ["t"], member="")
    heartbeat(pair, "sx", 0, ["t"], member=" ")
    heartbeat(pair, "sx", 0, ["t"], member="m" * 37)
    heartbeat(pair, "sx", 0, ["t"], rack_id=" ")
    heartbeat(pair, "sx", -2)
    heartbeat(pair, "sx", -1)
    heartbeat(pair, "sx", 5)
    assert pair.errors("ShareGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "INVALID_REQUEST"}


def consumer_heartbeat(pair: Pair, group: str) -> None:
    """The first heartbeat of a member of a consumer group."""
    request = m.ConsumerGroupHeartbeatRequest(group_id=group, member_id="c", member_epoch=0, rebalance_timeout_ms=1000)
    request.topic_partitions, request.subscribed_topic_names = [], ["sk"]
    pair.ask("ConsumerGroupHeartbeat", 1, request)


def test_groups_of_one_kind_are_not_of_another(pair: Pair) -> None:
    began(pair, "sk")
    consumer_heartbeat(pair, "sk")
    j = m.JoinGroupRequest
    joining = j(group_id="sk", session_timeout_ms=10000, rebalance_timeout_ms=1000, protocol_type="consumer")
    joining.protocols = [j.JoinGroupRequestProtocol(name="range")]
    pair.ask("JoinGroup", 9, joining)
    pair.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="sk", member_id="c", generation_id=1))
    pair.ask("SyncGroup", 5, m.SyncGroupRequest(group_id="sk", member_id="c", generation_id=1))
    pair.ask(
        "LeaveGroup", 5, m.LeaveGroupRequest(group_id="sk", members=[m.LeaveGroupRequest.MemberIdentity(member_id="c")])
    )
    c = m.OffsetCommitRequest
    parts = [c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    pair.ask("OffsetCommit", 9, c(group_id="sk", topics=[c.OffsetCommitRequestTopic(name="sk", partitions=parts)]))
    f = m.OffsetFetchRequest
    for topics in (None, [f.OffsetFetchRequestTopics(name="sk", partition_indexes=[0])]):
        pair.ask("OffsetFetch", 9, f(groups=[f.OffsetFetchRequestGroup(group_id="sk", topics=topics)]))
    d = m.OffsetDeleteRequest
    deleted = d.OffsetDeleteRequestTopic(name="sk", partitions=[d.OffsetDeleteRequestPartition(partition_index=0)])
    pair.ask("OffsetDelete", 0, d(group_id="sk", topics=[deleted]))
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=["sk"]))
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["sk"]))
    consumer_heartbeat(pair, "sc")
    heartbeat(pair, "sc", 0, ["sk"])
    heartbeat(pair, "sc", -1)
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["sc"]))
    assert pair.errors("ConsumerGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("LeaveGroup") == {"NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("ShareGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


# sessions


def test_sessions(pair: Pair) -> None:
    ids = began(pair, "ss", 2)
    fetched(pair, "ss", ids, 1)
    fetched(pair, "ss", ids, -1)
    acknowledged(pair, "ss", ids, 0, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, 1, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, -1, [(0, 0, [ACCEPT])])
    fetched(pair, "ss", ids, 0, [(0, 0, [ACCEPT])])
    fetched(pair, "ss", ids, 0, partitions=(0, 1, 7))
    fetched(pair, "ss", ids, 2)
    fetched(pair, "ss", ids, 1)
    produce(pair, "ss", ids, batch("a", "b", "c"))
    fetched(pair, "ss", ids, 2, named=False)
    fetched(pair, "ss", ids, 2, named=False)
    fetched(pair, "ss", ids, 3, named=False, forgotten=(1,))
    acknowledged(pair, "ss", ids, 3, [(0, 2, [ACCEPT])])
    acknowledged(pair, "ss", ids, 4, [(0, 2, [ACCEPT])])
    fetched(pair, "ss", ids, 5, partitions=(1,))
    fetched(pair, "ss", ids, 0)
    fetched(pair, "ss", ids, 0)
    unknown = (b"\x01" * 16, b"\x01" * 16)
    fetched(pair, "ss", unknown, 1)
    fetched(pair, "ss", unknown, 2, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", unknown, 3, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, 4, [(0, 0, [ACCEPT])], index=9)
    acknowledged(pair, "ss", ids, -1, [])
    fetched(pair, "ss", ids, 5)
    for member in (None, "", "m" * 37):
        fetched(pair, "ss", ids, 0, member=member) if member is not None else None
        acknowledged(pair, "ss", ids, 0, [], member=member) if member is not None else None
    pair.both("ShareFetch", 2, lambda side: F(group_id=None, member_id="m", share_session_epoch=0))
    pair.ask("ShareAcknowledge", 2, m.ShareAcknowledgeRequest(group_id=None, member_id="m", share_session_epoch=0))
    assert pair.errors("ShareAcknowledge") == {
        "INVALID_REQUEST",
        "INVALID_SHARE_SESSION_EPOCH",
        "NONE",
        "SHARE_SESSION_NOT_FOUND",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("ShareFetch") == {
        "INVALID_REQUEST",
        "INVALID_SHARE_SESSION_EPOCH",
        "NONE",
        "SHARE_SESSION_NOT_FOUND",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_a_session_cannot_begin_with_a_partition_twice(pair: Pair) -> None:
    """It ends the session before it; later a partition may be named again."""
    ids = began(pair, "named-twice")
    fetched(pair, "named-twice", ids, 0)
    produce(pair, "named-twice", ids, batch("a", "b", "c"))
    assert acquired(fetched(pair, "named-twice", ids, 1, max_wait_ms=5000)) == [(0, 2, 1)]
    fetched(pair, "named-twice", ids, 0, partitions=(0, 0))
    fetched(pair, "named-twice", ids, 2)
    fetched(pair, "named-twice", ids, 0)  # nothing: the session that was ended has not given its records back
    fetched(pair, "named-twice", ids, 1, partitions=(7, 7, 0))
    fetched(pair, "named-twice", ids, 2, [(0, 0, [ACCEPT])], partitions=(0, 0))
    fetched(pair, "named-twice", ids, 0, version=1, partitions=(0, 7, 0), member="m2")
    assert pair.errors("ShareFetch") == {
        "NONE",
        "SHARE_SESSION_NOT_FOUND",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_of_acknowledgements_of_one_partition_the_last_count(pair: Pair, api: str) -> None:
    name = f"last-{api}"
    ids = began(pair, name)
    fetched(pair, name, ids, 0)
    produce(pair, name, ids, batch("a", "b", "c"))
    assert acquired(fetched(pair, name, ids, 1, max_wait_ms=5000)) == [(0, 2, 1)]
    r = getattr(m, f"{api}Request")
    word = "Fetch" if api == "ShareFetch" else "Acknowledge"
    topic_of, part_of = getattr(r, f"{word}Topic"), getattr(r, f"{word}Partition")

    def make(side: int, epoch: int, rows: tuple[list[Any], ...]) -> Any:
        parts = [part_of(partition_index=0, acknowledgement_batches=batches(r, acks)) for acks in rows]
        request = r(group_id=name, member_id="m1", share_session_epoch=epoch)
        request.topics = [topic_of(topic_id=ids[side], partitions=[part]) for part in parts]
        return request

    def ask(epoch: int, *rows: list[Any]) -> None:
        pair.both(api, 2, lambda side: make(side, epoch, rows))

    one, two = [(1, 1, [ACCEPT])], [(2, 2, [ACCEPT])]
    ask(2, one, two)
    ask(3, two, one)
    ask(4, [(5, 1, [ACCEPT])], [(0, 0, [ACCEPT])])
    assert pair.errors(api) == {"NONE"}


def test_there_are_only_so_many_sessions(pair: Pair) -> None:
    ids = began(pair, "sl")
    for number in range(10):
        fetched(pair, "sl", ids, 0, member=f"m{number}", max_wait_ms=20)
    for number in range(10):
        fetched(pair, "sl", ids, -1, member=f"m{number}")
    assert pair.errors("ShareFetch") == {"NONE", "SHARE_SESSION_LIMIT_REACHED", "SHARE_SESSION_NOT_FOUND"}


def test_a_lost_connection_gives_back_what_was_held(pair: Pair) -> None:
    ids = began(pair, "sd")
    produce(pair, "sd", ids, batch("a", "b"))
    other = pair.beside("other")
    fetched(other, "sd", ids, 0, member="m2", max_wait_ms=5000)
    other.close()
    reply = fetched(pair, "sd", ids, 0, max_wait_ms=5000)
    assert acquired(reply) == [(0, 1, 2)]
    fetched(pair, "sd", ids, -1)


def test_a_throttled_fetch_has_no_records_which_stay_acquired(pair: Pair) -> None:
    """The throttle times of the two depend on the time since their windows began."""
    ids = began(pair, "throttled")
    fetched(pair, "throttled", ids, 0)
    produce(pair, "throttled", ids, batch("a" * 1100))
    limit(pair, 100.0)
    parts = [F.FetchPartition(partition_index=0)]
    replies = []
    for side, wire in enumerate(pair.wires):
        request = F(group_id="throttled", member_id="m1", share_session_epoch=1, max_wait_ms=500, min_bytes=1)
        request.max_bytes, request.max_records, request.batch_size = 1 << 20, 500, 500
        request.topics = [F.FetchTopic(topic_id=ids[side], partitions=parts)]
        reply = wire.ask("ShareFetch", 2, request)
        assert reply.throttle_time_ms > 0
        replies.append((reply.error_code, reply.responses, reply.acquisition_lock_timeout_ms, reply.node_endpoints))
    limit(pair, None)
    assert replies == [(0, [], 30_000, [])] * 2
    assert acquired(fetched(pair, "throttled", ids, 2)) == []


def test_a_new_member_takes_its_place_in_the_table_before_partitions_are_shared(pair: Pair) -> None:
    """Both ids fall into one bucket of the assignor's table, which has the new member before the other one."""
    first, second = "..", "m1820302regAAAAAAAAAAA"
    ids = topic(pair, "placed", 3)
    configure(pair, "placed", share_auto_offset_reset="earliest")
    heartbeat(pair, "placed", 0, ["placed"], member=first)
    initialized(pair, "placed", ids, 3)
    request = m.ShareGroupHeartbeatRequest(
        group_id="placed", member_id=second, member_epoch=0, subscribed_topic_names=["placed"]
    )
    for wire in (pair.ours, pair.theirs):  # which partitions follows from the topic's random id
        given = wire.ask("ShareGroupHeartbeat", 1, request).assignment.topic_partitions
        assert len(given[0].partitions) == 2
    assert pair.errors("ShareGroupHeartbeat") == {"NONE"}
