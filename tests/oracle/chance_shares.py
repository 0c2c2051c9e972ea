"""Members of a share group that hold records, while its offsets and configuration change (`chance.py`).

Administrators ask for offsets, alter and delete them, also while members are there, delete records, and change the
group's configuration; a transactional producer writes, commits and aborts beside them.

Left out: locks that run out (`chance_expiring.py`), and topics that go or come (`chance_regrown.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import messages as m

from .chance_clients import CODECS, Asked
from .chance_members import Queue

KEYS: Final = {
    "share.auto.offset.reset": ("earliest", "latest", "by_duration:PT1H", "bogus"),
    "share.isolation.level": ("read_committed", "read_uncommitted", "bogus"),
    "share.record.lock.duration.ms": ("15000", "45000", "1"),
    "share.delivery.count.limit": ("2", "3", "5", "1"),
    "share.partition.max.record.locks": ("100", "2000", "10"),
    "share.renew.acknowledge.enable": ("true", "false"),
    "share.session.timeout.ms": ("45000", "60000"),
    "share.heartbeat.interval.ms": ("5000", "6000"),
}
SET, DELETE = 0, 1
CHANGES: Final = ("AlterShareGroupOffsets", "DeleteShareGroupOffsets", "IncrementalAlterConfigs", "DeleteGroups")
WORKING: Final = 60  # steps of the members, of about 80


class Leased(Queue):
    """`script`: what must come next. `writer`: the id and epoch of the transactional producer."""

    PREFIX = "l"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.script: list[Callable[[], Asked]] = []
        self.writer, self.sequence = (-1, -1), 0
        self.transactional_id = f"x{self.episode}"
        self.bases = [0]  # offsets at which batches begin

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.script:
            return (self.script.pop(0),)
        if self.writer[0] < 0:
            return (self.begin,)
        members = super().steps
        members *= WORKING // len(members)
        transactions = (*[self.write_in_transaction] * 5, *[self.end] * 4, self.begin)
        views = (self.lag, self.lag, self.offsets)
        rare = (self.alter, self.forget, self.delete_records, self.configure_one, self.all_leave)
        return (*members, *transactions, *views, *rare)

    # a transactional producer

    def begin(self) -> Asked:
        request = m.InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        return "InitProducerId", 4, request

    def write_in_transaction(self) -> Asked:
        (one, epoch), codec = self.writer, self.chance.choice(CODECS)
        template = {"producer_id": one, "producer_epoch": epoch, "base_sequence": self.sequence}
        api, _, request = self.produced((self.one, 0), self.batch(transactional=True, codec=codec, **template))
        request.transactional_id, request.acks = self.transactional_id, -1
        request.topic_data[0].name, request.topic_data[0].topic_id = self.one, bytes(16)
        return api, 12, request

    def end(self) -> Asked:
        one, epoch = self.writer
        request = m.EndTxnRequest(transactional_id=self.transactional_id, producer_id=one, producer_epoch=epoch)
        request.committed = self.chance.random() < 0.6
        return "EndTxn", 5, request

    # administrators

    def all_leave(self) -> Asked:
        """The members leave, something is changed, and they come again."""
        for member in self.epochs:
            self.script += [lambda one=member: self.closed(one), lambda one=member: self.left(one)]  # type: ignore[misc]
        changes = (self.alter, self.alter, self.forget, self.remove, self.configure_one, self.delete_records)
        self.script += [self.chance.choice(changes) for _ in range(self.chance.randint(1, 3))]
        self.script.append(self.lag)
        return self.offsets()

    def closed(self, member: str) -> Asked:
        """The last request of a share session, which has one."""
        self.now = member
        request = m.ShareAcknowledgeRequest(group_id=self.group, member_id=self.member_id(member))
        request.share_session_epoch = -1
        return "ShareAcknowledge", 1, request

    def left(self, member: str) -> Asked:
        self.now = member
        r = m.ShareGroupHeartbeatRequest
        return "ShareGroupHeartbeat", 1, r(group_id=self.group, member_id=self.member_id(member), member_epoch=-1)

    def partition(self) -> int:
        return self.chance.choice((0, 0, 0, 0, 1 if self.errs() else 0))

    def topic(self) -> str:
        return self.chance.choice((self.one,) * 8 + (self.two, f"missing{self.episode}"))

    def alter(self) -> Asked:
        r = m.AlterShareGroupOffsetsRequest
        offset = self.chance.choice((0, self.offset((self.one, 0)), self.offset((self.one, 0)), -1, 1000))
        part = r.AlterShareGroupOffsetsRequestPartition(partition_index=self.partition(), start_offset=offset)
        topic = r.AlterShareGroupOffsetsRequestTopic(topic_name=self.topic(), partitions=[part])
        return "AlterShareGroupOffsets", 0, r(group_id=self.named_group(), topics=[topic])

    def forget(self) -> Asked:
        r = m.DeleteShareGroupOffsetsRequest
        topics = [r.DeleteShareGroupOffsetsRequestTopic(topic_name=self.topic())]
        return "DeleteShareGroupOffsets", 0, r(group_id=self.named_group(), topics=topics)

    def named_group(self) -> str:
        return self.chance.choice((f"missing{self.episode}", "")) if self.errs(0.04) else self.group

    def remove(self) -> Asked:
        return "DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[self.group])

    def offsets(self) -> Asked:
        """The offsets of one topic."""
        r = m.DescribeShareGroupOffsetsRequest
        topic = r.DescribeShareGroupOffsetsRequestTopic(topic_name=self.topic(), partitions=[self.partition()])
        group = r.DescribeShareGroupOffsetsRequestGroup(group_id=self.named_group(), topics=[topic])
        return "DescribeShareGroupOffsets", self.chance.randint(0, 1), r(groups=[group])

    def delete_records(self) -> Asked:
        """At the beginning of a batch: of one that is cut, Kafka at times acquires the records before it, too."""
        r = m.DeleteRecordsRequest
        part = r.DeleteRecordsPartition(partition_index=0, offset=self.chance.choice(self.bases[-6:]))
        return "DeleteRecords", 2, r(topics=[r.DeleteRecordsTopic(name=self.one, partitions=[part])], timeout_ms=15_000)

    def configure_one(self) -> Asked:
        r, key = m.IncrementalAlterConfigsRequest, self.chance.choice([*KEYS])
        kind = DELETE if self.errs(0.2) else SET
        change = r.AlterableConfig(name=key, config_operation=kind, value=self.chance.choice(KEYS[key]))
        resource = r.AlterConfigsResource(resource_type=32, resource_name=self.group, configs=[change])
        return "IncrementalAlterConfigs", 1, r(resources=[resource])

    # what they hear

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        super().heard(name, version, request, reply)
        if name in ("InitProducerId", "EndTxn"):
            given = reply.producer_id, reply.producer_epoch
            if reply.error_code == 0 and given[0] >= 0 and given != self.writer:
                self.writer, self.sequence = given, 0
        elif name == "Produce":
            self.hear_produced(version, request, reply)
            part = reply.responses[0].partition_responses[0]
            if part.error_code == 0:
                self.bases.append(part.base_offset)
                if request.transactional_id:
                    self.sequence += self.ends[self.one, 0] - part.base_offset
        elif name in CHANGES or (name == "ShareGroupHeartbeat" and request.member_epoch <= 0):
            self.awaited[self.one] = 1
