"""Requests of stories over nodes, each for one partition of a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records

from ..node_stories import AtNode, Story, group_at
from . import offsets
from .core import fetch_request
from .topics import batch, produce_request

Ids = tuple[bytes, bytes]
Make = Callable[[int], Any]


def values_only(reply: Any) -> None:
    """Takes out of a reply to Fetch or ShareFetch what batches bear besides their records: times and producers' ids. A
    reply that is compared several times stays as it is.
    """
    for topic in reply.responses:
        for part in topic.partitions:
            if isinstance(part.records, str):
                continue
            data = bytes(part.records or b"")
            found = [
                (r.offset, r.key, r.value, at.header.is_control)
                for at in records.batches(data)
                for r in records.decode(data, at)
            ]
            part.records = repr(found)


def produce(name: str, ids: Ids, version: int, value: str = "v", partition: int = 0, acks: int = -1) -> Make:
    return lambda side: produce_request(version, name, ids[side], batch(value), partition, acks)


def fetch(name: str, ids: Ids, version: int, offset: int = 0, **more: Any) -> Make:
    return lambda side: fetch_request(version, name, ids[side], offset, **more)


def end_of_epoch(name: str, epoch: int, current: int = -1, partition: int = 0) -> Any:
    r = m.OffsetForLeaderEpochRequest
    part = r.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    return r(replica_id=-1, topics=[r.OffsetForLeaderTopic(topic=name, partitions=[part])])


def deletion(name: str, offset: int, partition: int = 0) -> Any:
    r = m.DeleteRecordsRequest
    part = r.DeleteRecordsPartition(partition_index=partition, offset=offset)
    return r(topics=[r.DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000)


def producers(name: str, *partitions: int) -> Any:
    r = m.DescribeProducersRequest
    return r(topics=[r.TopicRequest(name=name, partition_indexes=list(partitions))])


def elections(kind: int, *named: tuple[str, int]) -> Any:
    """An election of preferred leaders (0), or an unclean one (1), for some partitions."""
    e = m.ElectLeadersRequest
    topics = [e.TopicPartitions(topic=name, partitions=[index]) for name, index in named]
    return e(election_type=kind, topic_partitions=topics, timeout_ms=10_000)


def written(at: AtNode, name: str, ids: Ids, *values: str, partition: int = 0, acks: int = -1) -> Any:
    """Writes a batch for each value, by Produce v10. Returns ours of the last."""
    mine: Any = None
    for value in values:
        mine, _ = at.both("Produce", 10, produce(name, ids, 10, value, partition, acks))
    return mine


def read(at: AtNode, name: str, ids: Ids, offset: int = 0, **more: Any) -> None:
    """Waits until a node gives the same records, from an offset on."""
    at.agree("Fetch", 12, fetch(name, ids, 12, offset, **more))


def coordinator_ready(at: AtNode, group: str) -> None:
    """Waits until a node has loaded a group."""
    at.agree("OffsetFetch", 7, offsets.fetch_request(7, group, None))


def coordinators_ready(story: Story) -> None:
    """Waits until each node that runs has loaded what it coordinates."""
    ids = [group_at(partition, "ready") for partition in range(3)]
    s = m.ReadShareGroupStateSummaryRequest
    state = s.ReadStateSummaryData(topic_id=b"\7" * 16, partitions=[s.PartitionData(partition=0)])
    for node in sorted(story.running):
        at = story.at(node)
        producer = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        at.until("InitProducerId", 4, producer, lambda reply: reply.error_code == 0)
        for one in ids:
            at.agree("OffsetFetch", 7, offsets.fetch_request(7, one, None))
        at.agree("DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=ids))
        at.agree("ReadShareGroupStateSummary", 0, s(group_id="ready", topics=[state]))
