"""A share session by hand: what is fetched and how it is acknowledged is the test's to say."""

from __future__ import annotations

from ottla.protocol import messages as m

from .poll import until
from .wire import Wire


def configure(wire: Wire, group: str, name: str, value: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=name, config_operation=0, value=value)
    wire.ask(
        "IncrementalAlterConfigs",
        1,
        r(resources=[r.AlterConfigsResource(resource_type=32, resource_name=group, configs=[change])]),
    )


class ShareSession:
    """A share session on all partitions of a topic. `is_member`: the member has joined, and the group knows them."""

    def __init__(self, wire: Wire, group: str, topic_id: bytes, partitions: int, is_member: bool = False) -> None:
        self.wire = wire
        self.group = group
        self.topic_id = topic_id
        self.partitions = range(partitions)
        self.epoch = 0
        if is_member:
            return
        configure(wire, group, "share.auto.offset.reset", "earliest")
        h = m.ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=[group])
        d = m.DescribeShareGroupOffsetsRequest
        asked = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])

        def are_initialized() -> bool:
            wire.ask("ShareGroupHeartbeat", 1, h)
            topics = wire.ask("DescribeShareGroupOffsets", 1, asked).groups[0].topics
            return sum(len(t.partitions) for t in topics) >= partitions

        until(are_initialized, "the share-partitions are initialised")

    def acquired(self) -> int:
        """How many records a fetch acquires."""
        return sum(last - first + 1 for _, first, last, _ in self.fetch())

    def fetch(self) -> list[tuple[int, int, int, int]]:
        """What a fetch acquires: partition, first and last offset, delivery count."""
        r = m.ShareFetchRequest
        request = r(
            group_id=self.group,
            member_id="m",
            share_session_epoch=self.epoch,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 28,
        )
        request.max_records, request.batch_size = 1 << 20, 500
        if self.epoch == 0:
            request.topics = [
                r.FetchTopic(
                    topic_id=self.topic_id, partitions=[r.FetchPartition(partition_index=p) for p in self.partitions]
                )
            ]
        self.epoch += 1
        reply = self.wire.ask("ShareFetch", 2, request)
        assert reply.error_code == 0, reply.error_code
        return [
            (p.partition_index, a.first_offset, a.last_offset, a.delivery_count)
            for t in reply.responses
            for p in t.partitions
            for a in p.acquired_records
        ]

    def acknowledge(self, partition: int, first: int, last: int, types: list[int]) -> None:
        r = m.ShareAcknowledgeRequest
        row = r.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        topics = [
            r.AcknowledgeTopic(
                topic_id=self.topic_id,
                partitions=[r.AcknowledgePartition(partition_index=partition, acknowledgement_batches=[row])],
            )
        ]
        request = r(group_id=self.group, member_id="m", share_session_epoch=self.epoch, topics=topics)
        self.epoch += 1
        reply = self.wire.ask("ShareAcknowledge", 2, request)
        assert [p.error_code for t in reply.responses for p in t.partitions] == [0]

    def leave(self) -> None:
        """The member ends its session, if it has one, and leaves the group."""
        if self.epoch:
            self.epoch = -1
            self.fetch()
        leaving = m.ShareGroupHeartbeatRequest(group_id=self.group, member_id="m", member_epoch=-1)
        assert self.wire.ask("ShareGroupHeartbeat", 1, leaving).error_code == 0
