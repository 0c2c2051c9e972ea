"""What a client says in the tests of the clock and of seeds: members of groups, transactions, and what they find."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.clock import Clock

from .stories.groups import assignment, beat_request, join_request, sync_request
from .wire import Wire

GATHERING_MS = 500
DYNAMIC = 79  # MEMBER_ID_REQUIRED


class NotedWire(Wire):
    """A connection that keeps every reply."""

    replies: list[bytes]

    def read_frame(self) -> bytes:
        frame = super().read_frame()
        if not hasattr(self, "replies"):
            self.replies = []
        self.replies.append(frame)
        return frame


def assert_silent(wire: Wire) -> None:
    """Nothing comes, although the machine's time passes."""
    wire.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    wire.socket.settimeout(120)


def find(wire: Wire, key: str, kind: int = 0) -> None:
    """Has the topic of a coordinator made."""
    wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))


def join(wire: Wire, clock: Clock, group: str, topic: str, session_ms: int = 45_000) -> str:
    """A member of a classic group that leads it and has its assignment; its id. The first rebalance waits a moment for
    other members, which must pass.
    """
    reply = wire.ask("JoinGroup", 5, join_request(5, group, session=session_ms))
    if reply.error_code == DYNAMIC:
        wire.say("JoinGroup", 5, join_request(5, group, reply.member_id, session=session_ms))
        clock.advance(GATHERING_MS)
        reply = wire.reply("JoinGroup", 5)
    assert reply.error_code == 0, reply
    member_id = str(reply.member_id)
    sync = sync_request(3, group, member_id, reply.generation_id, {member_id: assignment(topic, 0)})
    assert wire.ask("SyncGroup", 3, sync).error_code == 0
    return member_id


def commit(wire: Wire, group: str, topic: str, offset: int, member_id: str = "", generation: int = -1) -> int:
    """Commits an offset of partition 0; returns the error code."""
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [r.OffsetCommitRequestTopic(name=topic, partitions=[part])]
    request = r(group_id=group, generation_id_or_member_epoch=generation, member_id=member_id, topics=topics)
    return int(wire.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code)


def committed(wire: Wire, group: str, topic: str) -> int:
    """The committed offset of partition 0."""
    r = m.OffsetFetchRequest
    request = r(group_id=group, topics=[r.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])
    return int(wire.ask("OffsetFetch", 7, request).topics[0].partitions[0].committed_offset)


def classic_state(wire: Wire, group: str) -> str:
    (found,) = wire.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=[group])).groups
    return str(found.group_state)


def beat(wire: Wire, group: str, member_id: str, epoch: int, **more: Any) -> Any:
    """A heartbeat of a consumer group's member."""
    return wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, member_id, epoch, **more))


def consumer_members(wire: Wire, group: str) -> list[str]:
    (found,) = wire.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[group])).groups
    return [str(one.member_id) for one in found.members]


class Transaction:
    """A transactional producer on partition 0 of a topic."""

    def __init__(self, wire: Wire, name: str, topic: str, timeout_ms: int = 60_000) -> None:
        self.wire = wire
        self.name = name
        self.topic = topic
        find(wire, name, 1)
        request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        reply = wire.ask("InitProducerId", 5, request)
        assert reply.error_code == 0, reply
        self.id, self.epoch = reply.producer_id, reply.producer_epoch
        self.sequence = 0

    def write(self, *values: bytes) -> int:
        """Returns the error code."""
        template = Template(
            producer_id=self.id, producer_epoch=self.epoch, base_sequence=self.sequence, transactional=True
        )
        data = bytes(records.encode([Record(None, value, 1) for value in values], template))
        r = m.ProduceRequest
        topic = r.TopicProduceData(name=self.topic, partition_data=[r.PartitionProduceData(index=0, records=data)])
        request = r(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=[topic])
        code = int(self.wire.ask("Produce", 12, request).responses[0].partition_responses[0].error_code)
        self.sequence += len(values) if code == 0 else 0
        return code

    def end(self, is_committed: bool) -> int:
        request = m.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=is_committed
        )
        reply = self.wire.ask("EndTxn", 5, request)
        self.id, self.epoch, self.sequence = reply.producer_id, reply.producer_epoch, 0
        return int(reply.error_code)

    def state(self) -> str:
        request = m.DescribeTransactionsRequest(transactional_ids=[self.name])
        return str(self.wire.ask("DescribeTransactions", 0, request).transaction_states[0].transaction_state)


def offsets(wire: Wire, topic: str, isolation: int = 0) -> tuple[int, int]:
    """The first and the last offset of partition 0 that a consumer can read; the last stable one for isolation 1."""
    r = m.ListOffsetsRequest
    found = []
    for timestamp in (-2, -1):
        part = r.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = r(
            replica_id=-1, isolation_level=isolation, topics=[r.ListOffsetsTopic(name=topic, partitions=[part])]
        )
        found.append(wire.ask("ListOffsets", 7, request).topics[0].partitions[0].offset)
    return found[0], found[1]
