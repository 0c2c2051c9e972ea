"""Requests of stories about the states of share partitions and the offsets of share groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.protocol import messages as m

from ..differential import Pair
from .leases import offsets


def summary(group: str, ids: tuple[bytes, bytes], side: int, partitions: int) -> Any:
    r = m.ReadShareGroupStateSummaryRequest
    parts = [r.PartitionData(partition=p) for p in range(partitions)]
    return r(group_id=group, topics=[r.ReadStateSummaryData(topic_id=ids[side], partitions=parts)])


@dataclass
class States:
    """What a share coordinator is asked about partition 0, or another, of a group's topic. `ids`: the topic's ids."""

    pair: Pair
    group: str
    ids: tuple[bytes, bytes]
    start_offset: int

    def initialize(
        self, epoch: int, partition: int = 0, start_offset: int | None = None, topic_id: bytes | None = None
    ) -> None:
        r = m.InitializeShareGroupStateRequest
        start = self.start_offset if start_offset is None else start_offset
        part = r.PartitionData(partition=partition, state_epoch=epoch, start_offset=start)

        def topic(side: int) -> Any:
            return r.InitializeStateData(topic_id=topic_id or self.ids[side], partitions=[part])

        self._ask("InitializeShareGroupState", 0, r, topic)

    def read(self, epoch: int, partition: int = 0) -> None:
        r = m.ReadShareGroupStateRequest
        part = r.PartitionData(partition=partition, leader_epoch=epoch)
        self._ask("ReadShareGroupState", 0, r, lambda side: r.ReadStateData(topic_id=self.ids[side], partitions=[part]))

    def write(
        self,
        state: int,
        leader: int,
        offset: int,
        found: list[tuple[int, int, int, int]],
        version: int = 1,
        partition: int = 0,
        done: int = 0,
    ) -> None:
        """Batches as (first, last, state, delivery count). `done`: the count of deliveries that are complete."""
        r = m.WriteShareGroupStateRequest
        rows = [r.StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d) for a, b, c, d in found]
        part = r.PartitionData(
            partition=partition, state_epoch=state, leader_epoch=leader, start_offset=offset, state_batches=rows
        )
        if version:
            part.delivery_complete_count = done
        self._ask(
            "WriteShareGroupState",
            version,
            r,
            lambda side: r.WriteStateData(topic_id=self.ids[side], partitions=[part]),
        )

    def summarize(self, version: int = 1) -> None:
        self.pair.both("ReadShareGroupStateSummary", version, lambda side: summary(self.group, self.ids, side, 3))

    def delete(self, partition: int) -> None:
        r = m.DeleteShareGroupStateRequest
        part = r.PartitionData(partition=partition)
        self._ask(
            "DeleteShareGroupState", 0, r, lambda side: r.DeleteStateData(topic_id=self.ids[side], partitions=[part])
        )

    def _ask(self, name: str, version: int, request: Any, topic: Callable[[int], Any]) -> None:
        self.pair.both(name, version, lambda side: request(group_id=self.group, topics=[topic(side)]))


def offsets_described(pair: Pair, group: str) -> None:
    """Asks for the offsets of all topics, of some, of one that does not exist, and of none."""
    d = m.DescribeShareGroupOffsetsRequest
    for version in (0, 1):
        offsets(pair, group, version)
        wanted: list[list[tuple[str, list[int]]]] = [[("so", [0, 1])], [("none", [0])], [("so", [])], []]
        for asked in wanted:
            topics = [d.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=p) for name, p in asked]
            groups = [d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
            pair.ask("DescribeShareGroupOffsets", version, d(groups=groups))
        offsets(pair, "nobody", version)


def offsets_altered(pair: Pair, group: str, *wanted: tuple[str, int, int]) -> None:
    """Sets start offsets: (topic, partition, offset)."""
    a = m.AlterShareGroupOffsetsRequest
    topics = [
        a.AlterShareGroupOffsetsRequestTopic(
            topic_name=name, partitions=[a.AlterShareGroupOffsetsRequestPartition(partition_index=p, start_offset=o)]
        )
        for name, p, o in wanted
    ]
    pair.ask("AlterShareGroupOffsets", 0, a(group_id=group, topics=topics))


def offsets_deleted(pair: Pair, group: str, *names: str) -> None:
    x = m.DeleteShareGroupOffsetsRequest
    topics = [x.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    pair.ask("DeleteShareGroupOffsets", 0, x(group_id=group, topics=topics))
