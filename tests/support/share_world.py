"""A broker with a share group, and a consumer of it, for the tests of share groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.broker.peer import Peer
from ottla.broker.replica.partition import Partition
from ottla.broker.shards.loader import log_entries
from ottla.broker.share.coordinators import TOPIC_NAME
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.format import share_format
from ottla.coordinator.share.partition import SharePartition
from ottla.coordinator.share.state import PartitionKey
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import BatchAt, Record

from .memory_files import MemFiles
from .world import Answer, World

EARLIEST = {"share.auto.offset.reset": "earliest"}


def world(
    partitions: int = 1, group: dict[str, str] | None = EARLIEST, files: MemFiles | None = None, **settings: Any
) -> World:
    """A broker with a topic `t`, and the group `q` with its configuration and a member."""
    small = {"offsets_topic_num_partitions": "1", "share_coordinator_state_topic_num_partitions": "1"}
    w = World(files, 0, **{**small, **settings})
    create(w, "t", partitions)
    w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["q"]))
    if group:
        configure(w, 32, "q", group)
    beat(w, "m")
    w.pass_ms(1000)
    return w


def create(w: World, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    r = m.CreateTopicsRequest
    pairs = [r.CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
    reply = w.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=pairs)]),
    )
    assert reply.topics[0].error_code == 0


def configure(w: World, resource_type: int, name: str, configs: dict[str, str]) -> int:
    """Sets configs of a group (32) or a topic (2); returns the error code."""
    r = m.IncrementalAlterConfigsRequest
    changes = [r.AlterableConfig(name=k, config_operation=0, value=v) for k, v in configs.items()]
    reply = w.ask(
        "IncrementalAlterConfigs",
        1,
        r(resources=[r.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)]),
    )
    return int(reply.responses[0].error_code)


def beat(w: World, member: str, epoch: int = 0, *topics: str, group: str = "q") -> Any:
    names = list(topics or ("t",)) if epoch == 0 else None
    return w.ask(
        "ShareGroupHeartbeat",
        1,
        m.ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=names
        ),
    )


def produce(w: World, *values: bytes, topic: str = "t", partition: int = 0) -> None:
    """One batch."""
    produce_records(w, [(b"k" + value, value) for value in values], topic, partition)


def produce_records(w: World, pairs: Sequence[tuple[bytes, bytes]], topic: str, partition: int = 0) -> None:
    r = m.ProduceRequest
    rows = [Record(key=key, value=value, timestamp=w.schedule.now_ms()) for key, value in pairs]
    data = r.PartitionProduceData(index=partition, records=bytes(records.encode(rows)))
    found = w.broker.topic(topic)
    assert found is not None
    w.send(
        "Produce",
        13,
        r(acks=1, timeout_ms=1000, topic_data=[r.TopicProduceData(topic_id=found.id, partition_data=[data])]),
    )


def hold(w: World, topic: str = TOPIC_NAME, text: str = "held") -> None:
    """What is written to a topic is not readable until its policy is `immediate` again."""
    w.broker.policies.set(topic, None, parse_policy(text))
    w.broker.turn.event(w.broker.replicas.configure)


def topic_id(w: World, topic: str = "t") -> bytes:
    found = w.broker.topic(topic)
    assert found is not None
    return found.id


def engine(w: World, group: str = "q", partition: int = 0) -> SharePartition:
    return w.broker.share_partitions.partitions[PartitionKey(group, topic_id(w), partition)].engine


def state(w: World, group: str = "q", partition: int = 0) -> Any:
    """What the share coordinator has, by its records in memory."""
    return w.broker.share_states.hosts[0].shard.states.get(PartitionKey(group, topic_id(w), partition))


def written(w: World, topic: str = TOPIC_NAME) -> list[tuple[str, Any]]:
    """Types and values of the share coordinator's records, in order."""
    found = []
    for entry in log_entries(w.broker.partitions.get(topic, 0).open_log()):
        decoded = share_format().decode(entry.record) if entry.record is not None else None
        assert decoded is not None
        found.append((type(decoded[0]).__name__.removesuffix("Key"), decoded[1]))
    return found


def records_of(partition: Partition) -> list[Record]:
    """All records of a partition's log."""
    log = partition.open_log()
    found = []
    for segment, info in log.batches_from(log.start_offset):
        assert info.header is not None
        found += records.decode(segment.read_batch(info), BatchAt(0, info.header))
    return found


class Consumer:
    """A member's share session on the partitions of `t`."""

    def __init__(
        self, w: World, member: str = "m", group: str = "q", partitions: Sequence[int] = (0,), topic: str = "t"
    ) -> None:
        self.world = w
        self.member = member
        self.group = group
        self.partitions = partitions
        self.topic_id = topic_id(w, topic)
        self.epoch = 0
        self.peer = Peer("PLAINTEXT", "127.0.0.1:1")

    def send_fetch(
        self, *acks: tuple[int, ...], wait_ms: int = 0, version: int = 2, epoch: int | None = None, **more: Any
    ) -> Answer:
        """`acks`: first and last offset and types, for the first partition."""
        r = m.ShareFetchRequest
        rows = [
            r.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, *types in acks
        ]
        parts = [
            r.FetchPartition(partition_index=p, acknowledgement_batches=rows if p == self.partitions[0] else [])
            for p in self.partitions
        ]
        request = r(
            group_id=self.group, member_id=self.member, share_session_epoch=self.epoch if epoch is None else epoch
        )
        request.topics = [r.FetchTopic(topic_id=self.topic_id, partitions=parts)]
        request.max_wait_ms, request.min_bytes, request.max_bytes = wait_ms, 1, 1 << 20
        request.max_records, request.batch_size = 500, 500
        for name, value in more.items():
            setattr(request, name, value)
        if epoch is None:
            self.epoch += 1
        return self.world.send("ShareFetch", version, request, self.peer)

    def fetch(self, *acks: tuple[int, ...], **more: Any) -> Any:
        """The reply, with `got`: what was acquired of the first partition."""
        answer = self.send_fetch(*acks, **more)
        for _ in range(20_000):
            if answer.done:
                return answer.reply
            self.world.pass_ms(1)
        raise AssertionError("not answered")

    def got(self, *acks: tuple[int, ...], **more: Any) -> list[tuple[int, int, int]]:
        """What a fetch acquires of all partitions: first and last offset and delivery count."""
        reply = self.fetch(*acks, **more)
        assert reply.error_code == 0
        assert [p.error_code for t in reply.responses for p in t.partitions if p.error_code] == []
        return acquired(reply)

    def send_acknowledge(
        self, *acks: tuple[int, ...], version: int = 2, renews: bool = False, epoch: int | None = None
    ) -> Answer:
        r = m.ShareAcknowledgeRequest
        rows = [
            r.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, *types in acks
        ]
        parts = [r.AcknowledgePartition(partition_index=self.partitions[0], acknowledgement_batches=rows)]
        request = r(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=renews,
        )
        request.topics = [r.AcknowledgeTopic(topic_id=self.topic_id, partitions=parts)] if acks else []
        if epoch is None:
            self.epoch += 1
        return self.world.send("ShareAcknowledge", version, request, self.peer)

    def acknowledge(self, *acks: tuple[int, ...], **more: Any) -> int:
        """The error code of the partition, or the request's."""
        answer = self.send_acknowledge(*acks, **more)
        for _ in range(20_000):
            if answer.done:
                break
            self.world.pass_ms(1)
        reply = answer.reply
        codes = [p.error_code for t in reply.responses for p in t.partitions]
        return int(reply.error_code or (codes[0] if codes else 0))

    def lose_connection(self) -> None:
        self.world.broker.turn.event(self.peer.lost)


def acquired(reply: Any) -> list[tuple[int, int, int]]:
    parts = [p for t in reply.responses for p in t.partitions]
    return [(one.first_offset, one.last_offset, one.delivery_count) for p in parts for one in p.acquired_records]


def update_feature(w: World, level: int) -> int:
    r, newest = m.UpdateFeaturesRequest, 2
    kind = 1 if level == newest else 2  # an upgrade, or a safe downgrade
    key = r.FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=kind)
    reply = w.ask("UpdateFeatures", 1, r(timeout_ms=1000, feature_updates=[key]))
    return int(reply.error_code or reply.results[0].error_code)


def ready(count: int = 3, group: dict[str, str] | None = EARLIEST, **settings: Any) -> tuple[World, Consumer]:
    """A group that has begun, with so many records in one batch."""
    w = world(group=group, **settings)
    one = Consumer(w)
    assert one.got() == []
    if count:
        produce(w, *(b"%d" % n for n in range(count)))
    return w, one
