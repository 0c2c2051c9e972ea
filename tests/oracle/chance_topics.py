"""Topics that change beside their producers and readers (`chance.py`).

Partitions are added, topics go and come again under their names, records are deleted, and configurations change, while
producers write with their old sequences and transactions, and readers go on with old topic ids, epochs, sessions and
positions.

Left out: timestamps between the first and the last record of a log whose time is that of the append, because both
brokers append at moments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import messages as m

from .chance_clients import IDS_SINCE, Asked, Producers, Readers

PARTITIONS_MAX: Final = 4
SPECIAL: Final = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}  # timestamps, and the version of ListOffsets they are in
KEYS: Final = {
    "max.message.bytes": ("90", "120", "1000", "1048588", "-1"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "LogAppendTime", "bogus"),
    "compression.type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "cleanup.policy": ("delete", "compact", "compact,delete", ""),
    "retention.ms": ("-1", "3600000", "86400000"),
    "retention.bytes": ("-1", "1048576"),
    "message.timestamp.before.max.ms": ("3600000", "86400000", "-1"),
    "message.timestamp.after.max.ms": ("3600000", "86400000"),
    "min.insync.replicas": ("1", "1", "2"),
    "segment.bytes": ("1048576", "14"),
}
LISTS: Final = ("cleanup.policy",)
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
HOUR_MS: Final = 3_600_000


class Changed(Producers, Readers):
    """`counts`: partitions by topic, 0 where it is gone; `old_ids`: of topics that are gone."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts = {self.two: 2, self.one: 1}
        self.old_ids: dict[str, list[bytes]] = {self.two: [], self.one: []}

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        producing = Producers.steps.__get__(self)
        if self.begin in producing and len(producing) == 1:
            return tuple(producing)
        reading = (*[self.poll] * 8, *[self.list_offsets] * 3, self.delete, self.epochs, self.epochs)
        changing = (self.grow, self.remove, self.remove, *[self.alter] * 3)
        views = (self.metadata, self.partitions, self.configs, self.read)
        gone = [name for name, count in self.counts.items() if not count]
        return (*producing, *reading, *changing, *views, *[self.create] * (6 * len(gone)))

    def place(self) -> tuple[str, int]:
        name = self.chance.choice((self.two, self.two, self.one))
        return name, self.chance.randint(0, max(self.counts[name] - 1 + self.errs(0.05), 0))

    def named(self, version: int, name: str, field: str) -> dict[str, Any]:
        before = self.old_ids[name]
        if version >= IDS_SINCE and before and self.errs(0.3):
            return {"topic_id": self.chance.choice(before)}
        return super().named(version, name, field)

    def name_of(self, topic: Any, version: int, field: str) -> str:
        if version < IDS_SINCE:
            return super().name_of(topic, version, field)
        ids = {name: [self.topics[name], *before] for name, before in self.old_ids.items()}
        return next(name for name, known in ids.items() if topic.topic_id in known)

    # readers

    def list_offsets(self) -> Asked:
        r, (name, partition) = m.ListOffsetsRequest, self.place()
        others = (self.at_ms - self.chance.randint(0, 2500), self.at_ms + HOUR_MS, -7)
        timestamp = self.chance.choice((*SPECIAL, *SPECIAL, *others))
        version = self.chance.randint(SPECIAL.get(timestamp, 1), 11)
        part = r.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        if version >= 4 and self.errs(0.3):
            part.current_leader_epoch = self.chance.choice((0, 0, 1, 5))
        request = r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[part])], timeout_ms=15_000)
        request.isolation_level = self.chance.choice((0, 1)) if version >= 2 else 0
        return "ListOffsets", version, request

    def epochs(self) -> Asked:
        api, version, request = super().epochs()
        request.topics[0].partitions[0].current_leader_epoch = self.chance.choice((-1, -1, 0, 1))
        return api, version, request

    # administrators

    def grow(self) -> Asked:
        r, name = m.CreatePartitionsRequest, self.chance.choice([*self.counts])
        count = self.counts[name]
        wanted = count if count == PARTITIONS_MAX or self.errs() else count + 1
        topic = r.CreatePartitionsTopic(name=name, count=wanted, assignments=None)
        return "CreatePartitions", self.chance.randint(0, 3), r(topics=[topic], timeout_ms=30_000)

    def remove(self) -> Asked:
        r, name, version = m.DeleteTopicsRequest, self.chance.choice([*self.counts]), self.chance.randint(1, 6)
        if version < 6:
            return "DeleteTopics", version, r(topic_names=[name], timeout_ms=30_000)
        known = [self.topics[name], *self.old_ids[name]]
        by_id = r.DeleteTopicState(name=None, topic_id=self.chance.choice([known[0], *known]))
        topic = by_id if self.chance.random() < 0.5 else r.DeleteTopicState(name=name)
        return "DeleteTopics", version, r(topics=[topic], timeout_ms=30_000)

    def create(self) -> Asked:
        r, name = m.CreateTopicsRequest, self.chance.choice([*self.counts])
        topic = r.CreatableTopic(name=name, num_partitions=self.chance.choice((1, 1, 2)), replication_factor=1)
        if self.errs(0.4):
            key = self.chance.choice([*KEYS])
            topic.configs = [r.CreatableTopicConfig(name=key, value=self.chance.choice(KEYS[key]))]
        return "CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)

    def alter(self) -> Asked:
        r = m.IncrementalAlterConfigsRequest
        changes = []
        for key in dict.fromkeys(self.chance.choice([*KEYS]) for _ in range(self.chance.choice((1, 1, 2)))):
            kinds = (SET, SET, SET, DELETE, *((APPEND, SUBTRACT) if key in LISTS or self.errs(0.1) else ()))
            value = self.chance.choice(KEYS[key])
            changes.append(r.AlterableConfig(name=key, config_operation=self.chance.choice(kinds), value=value))
        name = self.chance.choice([*self.counts])
        resource = r.AlterConfigsResource(resource_type=2, resource_name=name, configs=changes)
        return "IncrementalAlterConfigs", self.chance.randint(0, 1), r(resources=[resource])

    def configs(self) -> Asked:
        r, name = m.DescribeConfigsRequest, self.chance.choice([*self.counts])
        resource = r.DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=[*KEYS])
        return "DescribeConfigs", self.chance.randint(1, 4), r(resources=[resource], include_synonyms=True)

    def metadata(self) -> Asked:
        r, version = m.MetadataRequest, self.chance.randint(4, 13)
        topics = [r.MetadataRequestTopic(name=name) for name in self.counts]
        if version >= 12 and self.errs(0.6):
            ids = [self.topics[self.one], *self.old_ids[self.one], *self.old_ids[self.two]]
            topics = [r.MetadataRequestTopic(name=None, topic_id=one) for one in ids]
        return "Metadata", version, r(topics=topics, allow_auto_topic_creation=False)

    def partitions(self) -> Asked:
        r = m.DescribeTopicPartitionsRequest
        cursor = None
        if self.errs(0.3):
            cursor = r.Cursor(topic_name=self.two, partition_index=self.chance.choice((0, 1, 3)))
        topics = [r.TopicRequest(name=name) for name in sorted(self.counts)]
        request = r(topics=topics, response_partition_limit=self.chance.choice((1, 2, 100)), cursor=cursor)
        return "DescribeTopicPartitions", 0, request

    # what they hear

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        super().heard(name, version, request, reply)
        if name == "Fetch" and version == self.version and request.session_epoch >= 0:
            self.hear_session(request, reply)
        elif name == "CreatePartitions" and reply.results[0].error_code == 0:
            self.resized(request.topics[0].name, request.topics[0].count)
        elif name == "DeleteTopics" and reply.responses[0].error_code == 0:
            self.resized(reply.responses[0].name, 0)
        elif name == "CreateTopics" and reply.topics[0].error_code == 0:
            made = reply.topics[0]
            self.old_ids[made.name].append(self.topics[made.name])
            self.topics[made.name] = made.topic_id
            self.resized(made.name, made.num_partitions)
        elif name == "IncrementalAlterConfigs" and reply.responses[0].error_code == 0:
            changed = reply.responses[0].resource_name
            self.awaited[changed] = self.counts[changed]

    def resized(self, name: str, count: int) -> None:
        self.counts[name] = self.awaited[name] = count
        if not count:
            self.ends = {place: end for place, end in self.ends.items() if place[0] != name}
