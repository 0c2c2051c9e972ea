"""Share groups, told the same stories by ottla and by Apache Kafka: states and administration."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT
from ottla.protocol import messages as m
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair, own_brokers
from ..support.stories.leases import (
    SETTINGS,
    acknowledged,
    fetched,
    offsets,
)
from ..support.stories.share import began, heartbeat
from ..support.stories.share_states import States, offsets_altered, offsets_deleted, offsets_described
from ..support.stories.topics import batch, produce, topic

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


# requests


# states and administration


@pytest.mark.parametrize("start", [-(1 << 63), -(1 << 63) + 5, (1 << 63) - 1, 1 << 40])
def test_the_lag_behind_a_start_offset_that_no_log_has(pair: Pair, start: int) -> None:
    """Java's numbers go round."""
    name = f"lag{start}"
    ids = began(pair, name)
    r, w, d = m.InitializeShareGroupStateRequest, m.WriteShareGroupStateRequest, m.DescribeShareGroupOffsetsRequest
    part = r.PartitionData(partition=0, state_epoch=9, start_offset=start)
    pair.both(
        "InitializeShareGroupState",
        0,
        lambda s: r(group_id=name, topics=[r.InitializeStateData(topic_id=ids[s], partitions=[part])]),
    )
    written = w.PartitionData(partition=0, state_epoch=9, leader_epoch=0, start_offset=start, delivery_complete_count=2)
    pair.both(
        "WriteShareGroupState",
        1,
        lambda s: w(group_id=name, topics=[w.WriteStateData(topic_id=ids[s], partitions=[written])]),
    )
    asked = d.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
    for topics in (None, [asked]):
        pair.ask(
            "DescribeShareGroupOffsets",
            1,
            d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=topics)]),
        )
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE"}
    assert pair.errors("InitializeShareGroupState") == {"NONE"}
    assert pair.errors("ShareGroupHeartbeat") == {"NONE"}


@pytest.mark.parametrize("start", [-1, 0, 5])
def test_the_states_of_share_partitions(pair: Pair, start: int) -> None:
    states = States(pair, f"sp{start}", topic(pair, f"sp{start}", 2), start)
    states.read(0)
    states.write(0, 0, 0, [])
    states.summarize()
    states.initialize(3)
    states.initialize(2)
    states.initialize(-1)
    states.initialize(3, partition=-1)
    states.initialize(3, partition=7)
    states.initialize(3, topic_id=NO_UUID)
    states.initialize(3, topic_id=b"\x05" * 16)
    states.summarize(0)
    states.read(4)
    states.read(3)
    states.read(-1)
    states.read(0, partition=-1)
    states.write(3, 4, 0, [(0, 9, 0, 1), (10, 19, 2, 1), (20, 29, 4, 5)], done=20)
    states.write(3, 4, 5, [(5, 6, 2, 2), (8, 12, 0, 2), (30, 30, 0, 1)], done=3)
    states.write(3, 4, 4, [(7, 7, 2, 1)], version=0)
    states.write(2, 4, 5, [])
    states.write(3, 3, 5, [])
    states.write(-1, 4, 5, [])
    states.write(3, -1, 5, [])
    states.write(3, 4, 5, [], partition=7)
    states.write(4, 5, 6, [(6, 6, 2, 3)], done=2)
    states.read(4)
    states.read(5)
    states.summarize()
    for offset in range(7, 20):
        states.write(4, 5, offset, [(offset, offset + 3, offset % 2 * 2, 3)], done=1)
    states.read(5)
    states.summarize()
    states.initialize(9, start_offset=2)
    states.read(9)
    states.delete(0)
    states.delete(1)
    states.delete(-1)
    states.delete(7)
    states.summarize()
    states.group = ""
    states.initialize(1)
    states.read(1)
    states.write(1, 1, 1, [])
    states.delete(0)
    assert pair.errors("InitializeShareGroupState") == {
        "FENCED_STATE_EPOCH",
        "INVALID_REQUEST",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("WriteShareGroupState") == {
        "FENCED_LEADER_EPOCH",
        "FENCED_STATE_EPOCH",
        "INVALID_REQUEST",
        "NONE",
    }
    assert pair.errors("DeleteShareGroupState") == {"INVALID_REQUEST", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"}
    assert pair.errors("ReadShareGroupState") == {"FENCED_LEADER_EPOCH", "INVALID_REQUEST", "NONE"}


def test_a_share_partition_that_a_request_names_several_times_has_one_result(pair: Pair) -> None:
    """Each naming is carried out, and the last one's result is in the reply."""
    ids = topic(pair, "twice", 4)
    named = (2, 0, 2, 1, 0, -1, 2, -1)

    def both(name: str, topic_of: Any, parts: list[Any]) -> None:
        def request(side: int) -> Any:
            halves = [parts[:3], parts[3:]]
            topics = [topic_of(topic_id=ids[side], partitions=half) for half in halves]
            return getattr(m, f"{name}Request")(group_id="twice", topics=topics)

        pair.both(name, 0, request)

    i, w, r = m.InitializeShareGroupStateRequest, m.WriteShareGroupStateRequest, m.ReadShareGroupStateRequest
    s, d = m.ReadShareGroupStateSummaryRequest, m.DeleteShareGroupStateRequest
    both(
        "InitializeShareGroupState",
        i.InitializeStateData,
        [i.PartitionData(partition=p, state_epoch=n % 4, start_offset=n) for n, p in enumerate(named)],
    )
    both("ReadShareGroupStateSummary", s.ReadStateSummaryData, [s.PartitionData(partition=p) for p in named])
    written = [
        w.PartitionData(
            partition=p,
            state_epoch=3,
            leader_epoch=n % 5,
            start_offset=n,
            state_batches=[w.StateBatch(first_offset=n, last_offset=n + 3, delivery_state=2, delivery_count=n)],
        )
        for n, p in enumerate(named)
    ]
    both("WriteShareGroupState", w.WriteStateData, written)
    read = [r.PartitionData(partition=p, leader_epoch=9 - n % 6) for n, p in enumerate(named)]
    both("ReadShareGroupState", r.ReadStateData, read)
    both("DeleteShareGroupState", d.DeleteStateData, [d.PartitionData(partition=p) for p in named])
    both("ReadShareGroupStateSummary", s.ReadStateSummaryData, [s.PartitionData(partition=p) for p in named])


def test_a_topic_without_partitions(pair: Pair) -> None:
    """Only an initialization is carried out for the other topics."""
    ids = topic(pair, "some", 2)

    def both(name: str, topic_of: Any, part: Any) -> None:
        request_of = getattr(m, f"{name}Request")

        def request(side: int) -> Any:
            rows = [topic_of(topic_id=b"e" * 16), topic_of(topic_id=ids[side], partitions=[part])]
            return request_of(group_id="some", topics=rows)

        pair.both(name, 0, request)
        pair.both(name, 0, lambda side: request_of(group_id="some", topics=[topic_of(topic_id=ids[side])]))
        pair.ask(name, 0, request_of(group_id="some", topics=[]))

    i, w, r = m.InitializeShareGroupStateRequest, m.WriteShareGroupStateRequest, m.ReadShareGroupStateRequest
    s, d = m.ReadShareGroupStateSummaryRequest, m.DeleteShareGroupStateRequest
    both(
        "InitializeShareGroupState", i.InitializeStateData, i.PartitionData(partition=1, state_epoch=2, start_offset=4)
    )
    both("ReadShareGroupState", r.ReadStateData, r.PartitionData(partition=1))
    both("WriteShareGroupState", w.WriteStateData, w.PartitionData(partition=1, state_epoch=2, start_offset=5))
    both("DeleteShareGroupState", d.DeleteStateData, d.PartitionData(partition=1))
    both("ReadShareGroupStateSummary", s.ReadStateSummaryData, s.PartitionData(partition=1))
    States(pair, "some", ids, 0).read(0, partition=1)
    assert pair.errors("InitializeShareGroupState") == {"NONE"}


def test_offsets_are_described_altered_and_deleted(pair: Pair) -> None:
    ids = began(pair, "so", 2)
    produce(pair, "so", ids, batch(*"abcdef"))
    fetched(pair, "so", ids, 0)
    acknowledged(pair, "so", ids, 1, [(0, 1, [ACCEPT]), (4, 4, [ACCEPT])])
    offsets_described(pair, "so")
    offsets_altered(pair, "so", ("so", 0, 3))
    offsets_deleted(pair, "so", "so")
    fetched(pair, "so", ids, -1)
    heartbeat(pair, "so", -1)
    offsets_altered(pair, "so", ("so", 0, 3), ("none", 0, 1))
    offsets_altered(pair, "so", ("so", 9, 3))
    offsets_altered(pair, "so")
    offsets_altered(pair, "", ("so", 0, 3))
    offsets_described(pair, "so")
    fetched(pair, "so", ids, 0)
    fetched(pair, "so", ids, -1)
    offsets_deleted(pair, "", "so")
    offsets_deleted(pair, "nobody", "so")
    offsets_deleted(pair, "so", "none")
    offsets_deleted(pair, "so", "so", "none")
    offsets_deleted(pair, "so", "so")
    offsets_described(pair, "so")
    offsets_altered(pair, "so2", ("so", 0, 2))
    offsets(pair, "so2")
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["so", "so2"]))
    offsets_described(pair, "so")
    assert pair.errors("DeleteShareGroupOffsets") == {
        "GROUP_ID_NOT_FOUND",
        "INVALID_GROUP_ID",
        "NONE",
        "NON_EMPTY_GROUP",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("AlterShareGroupOffsets") == {
        "INVALID_GROUP_ID",
        "NONE",
        "NON_EMPTY_GROUP",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_a_group_with_a_partition_below_zero_cannot_be_deleted(pair: Pair) -> None:
    """Altering offsets of such a partition fails and leaves the partition in the group."""
    began(pair, "below", 1)

    def without_ids(reply: Any) -> None:
        reply.error_message = re.sub(r" \S{22} ", " id ", reply.error_message or "")

    pair.trims["AlterShareGroupOffsets"] = without_ids
    offsets_altered(pair, "belowAa", ("below", 0, 0))
    offsets_altered(pair, "belowBB", ("below", -1, 3))
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["belowAa", "belowBB"]))
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["belowBB"]))
    offsets_deleted(pair, "belowBB", "below")
    assert pair.errors("DeleteGroups") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_a_group_keeps_a_topic_of_which_no_partition_could_be_altered(pair: Pair) -> None:
    """It cannot be deleted, unless it has no other topics."""
    topic(pair, "bare")
    topic(pair, "filled")
    r = m.AlterShareGroupOffsetsRequest

    def alter(group: str, name: str, partition: int) -> None:
        wanted = r.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=0)
        named = r.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[wanted])
        pair.ask("AlterShareGroupOffsets", 0, r(group_id=group, topics=[named]))

    alter("bare-alone", "bare", 7)
    alter("bare-beside", "bare", 7)
    alter("bare-beside", "filled", 0)
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["bare-alone"]))
    for _ in range(2):
        pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["bare-beside"]))
    assert pair.errors("DeleteGroups") == {"NONE", "UNKNOWN_SERVER_ERROR"}


@pytest.mark.parametrize("version", range(1, 7))
def test_coordinators_of_share_partitions_are_found(pair: Pair, version: int) -> None:
    uuid = "A" * 21 + "Q"
    for key in (
        "g",
        f"g:{uuid}:0",
        f"a:b:{uuid}:3",
        f":{uuid}:0",
        f"g:{uuid}",
        f"g:{uuid}:x",
        f"g:{uuid}:-1",
        "g:short:0",
        f" :{uuid}:0",
    ):
        request = m.FindCoordinatorRequest(key_type=2)
        if version >= 4:
            request.coordinator_keys = [key]
        else:
            request.key = key
        pair.ask("FindCoordinator", version, request)
    assert pair.errors("FindCoordinator") >= {"INVALID_REQUEST"}
