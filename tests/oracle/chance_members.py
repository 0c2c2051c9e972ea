"""Members of share groups and of consumer groups that do their work as they should, and at times not (`chance.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from ottla.protocol import messages as m

from ..support.poll import until
from .chance_clients import CODECS, Asked, Client, configured

FETCH_WAIT_MS: Final = 200
K = TypeVar("K")
Owned = list[tuple[bytes, tuple[int, ...]]]
"""Partitions by the id of their topic."""


class GroupClient(Client):
    """Members of one group, whose name begins with `PREFIX`. One of them asks next: `now`."""

    PREFIX: ClassVar[str]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.group = f"{self.PREFIX}{self.episode}"
        self.epochs: dict[str, int] = {}  # of the members that have joined
        self.now = "m1"

    def member_id(self, member: str) -> str:
        return f"{member}{self.episode}".ljust(22, "A")[:22]


class Queue(GroupClient):
    """Two members of a share group, which share one partition: who gets which of several follows from random ids."""

    PREFIX = "s"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sessions: dict[str, int] = {}
        self.held: dict[str, dict[int, None]] = {"m1": {}, "m2": {}}  # offsets

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """The group has its configuration, and its share-partition is initialized."""
        ask(*self.configure())
        beat = m.ShareGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id("first"))
        beat.subscribed_topic_names = [self.one]
        until(lambda: _is_assigned(ask("ShareGroupHeartbeat", 1, beat)), "the share-partition is assigned")
        beat.member_epoch, beat.subscribed_topic_names = -1, None
        ask("ShareGroupHeartbeat", 1, beat)

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.chance.random() < 0.3:
            self.now = self.chance.choice(("m1", "m2"))
        if self.now not in self.epochs:
            return (self.beat,)
        return (self.beat, *[self.write] * 4, *[self.fetch] * 7, *[self.acknowledge] * 5, self.describe, self.lag)

    def configure(self) -> Asked:
        pairs = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "2"}
        if self.chance.random() < 0.3:
            pairs["share.isolation.level"] = "read_committed"
        return configured(self.group, pairs)

    def beat(self) -> Asked:
        epoch = self.epochs.get(self.now, 0)
        if epoch and self.errs(0.15):
            epoch = self.chance.choice((-1, -1, epoch + 1, 0))
        names = [self.one] if epoch == 0 else None
        request = m.ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id(self.now), member_epoch=epoch, subscribed_topic_names=names
        )
        return "ShareGroupHeartbeat", 1, request

    def write(self) -> Asked:
        return self.produced((self.one, 0), self.batch(codec=self.chance.choice(CODECS)))

    def batches(self, row: Any) -> list[Any]:
        """What the member says of records that it holds; at times of others."""
        chance = self.chance
        offsets = sorted(self.held[self.now])
        if self.errs(0.07):
            offsets = sorted({*offsets, chance.randint(0, 30)})
        chosen = [o for o in offsets if chance.random() < 0.7]
        runs: list[list[int]] = []
        for o in chosen:
            if runs and runs[-1][-1] + 1 == o and chance.random() < 0.8:
                runs[-1].append(o)
            else:
                runs.append([o])
        made = []
        for run in runs:
            kinds = [chance.choice((1, 1, 1, 2, 2, 3, 0)) for _ in run]
            if chance.random() < 0.5:
                kinds = kinds[:1]
            if self.errs(0.03):
                kinds = chance.choice(([], [4], [9], kinds * 2))
            made.append(row(first_offset=run[0], last_offset=run[-1], acknowledge_types=kinds))
        if self.errs(0.04):
            made.reverse()
        return made

    def session_epoch(self) -> int:
        epoch = self.sessions.get(self.now, 0)
        return self.chance.choice((epoch + 1, 0, -1, max(epoch - 1, 1))) if self.errs(0.06) else epoch

    def fetch(self) -> Asked:
        r, version, epoch = m.ShareFetchRequest, self.chance.randint(1, 2), self.session_epoch()
        acks = self.batches(r.AcknowledgementBatch) if epoch > 0 and self.chance.random() < 0.5 else []
        parts = [r.FetchPartition(acknowledgement_batches=acks)] if acks or epoch == 0 or self.errs(0.1) else []
        request = r(group_id=self.group, member_id=self.member_id(self.now), share_session_epoch=epoch)
        request.max_wait_ms, request.min_bytes, request.max_bytes = FETCH_WAIT_MS, 1, 1 << 20
        request.max_records = self.chance.choice((1, 3, 500, 500))
        request.batch_size = self.chance.choice((1, 2, 500))
        request.topics = [r.FetchTopic(topic_id=self.topics[self.one], partitions=parts)] if parts else []
        if version >= 2 and self.errs(0.2):
            request.share_acquire_mode = 1
        if epoch > 0 and self.errs(0.05):
            request.forgotten_topics_data = [r.ForgottenTopic(topic_id=self.topics[self.one], partitions=[0])]
        return "ShareFetch", version, request

    def acknowledge(self) -> Asked:
        r, version = m.ShareAcknowledgeRequest, self.chance.randint(1, 2)
        request = r(group_id=self.group, member_id=self.member_id(self.now), share_session_epoch=self.session_epoch())
        acks = self.batches(r.AcknowledgementBatch)
        parts = [r.AcknowledgePartition(acknowledgement_batches=acks)] if acks else []
        if version >= 2 and self.errs(0.15):
            request.is_renew_ack = True
            for part in parts:
                for one in part.acknowledgement_batches:
                    one.acknowledge_types = [4]
        request.topics = [r.AcknowledgeTopic(topic_id=self.topics[self.one], partitions=parts)] if parts else []
        return "ShareAcknowledge", version, request

    def describe(self) -> Asked:
        return "ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[self.group])

    def lag(self) -> Asked:
        r = m.DescribeShareGroupOffsetsRequest
        group = r.DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=None)
        return "DescribeShareGroupOffsets", 1, r(groups=[group])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "ShareGroupHeartbeat":
            if reply.error_code or reply.member_epoch < 0:
                self.epochs.pop(self.now, None)
            else:
                self.epochs[self.now] = reply.member_epoch
        elif name in ("ShareFetch", "ShareAcknowledge"):
            self.hear_session(name, request, reply)

    def hear_session(self, name: str, request: Any, reply: Any) -> None:
        if reply.error_code:
            self.sessions[self.now] = 0
            return
        epoch = request.share_session_epoch
        self.sessions[self.now] = 0 if epoch < 0 else epoch + 1
        held = self.held[self.now]
        for topic in request.topics:
            for part in topic.partitions:
                for one in part.acknowledgement_batches:
                    if one.acknowledge_types != [4]:
                        for offset in range(one.first_offset, one.last_offset + 1):
                            held.pop(offset, None)
        if name == "ShareFetch":
            for topic in reply.responses:
                for part in topic.partitions:
                    for got in part.acquired_records:
                        held.update(dict.fromkeys(range(got.first_offset, got.last_offset + 1)))
        if epoch < 0:
            held.clear()


class Members(GroupClient):
    """Three members of a consumer group, which give up what they have to and take what they get.

    Either of one partition, or of two that the range assignor shares out: what others do follows from random ids.
    """

    PREFIX = "c"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.has_two = self.chance.random() < 0.5
        self.owned: dict[str, Owned] = {}

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """The coordinator has heard of the topics."""
        r = m.ConsumerGroupHeartbeatRequest
        beat = r(group_id=f"first{self.episode}", member_id="first", rebalance_timeout_ms=60_000, topic_partitions=[])
        beat.subscribed_topic_names = [self.two]
        until(lambda: _is_assigned(ask("ConsumerGroupHeartbeat", 1, beat)), "the topic is assigned")

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.chance.random() < 0.5:
            self.now = self.chance.choice(("m1", "m2", "m3", "m3"))
        if self.now not in self.epochs:  # a static one that was refused may be there still
            return (self.join, self.leave) if self.now == "m3" else (self.join,)
        return (*[self.beat] * 10, self.change, self.leave, self.commit, self.describe, self.offsets, self.join)

    def request(self, epoch: int, **more: Any) -> Asked:
        r = m.ConsumerGroupHeartbeatRequest
        request = r(group_id=self.group, member_id=self.member_id(self.now), member_epoch=epoch)
        if self.now == "m3":
            request.instance_id = f"i{self.episode}"
        for name, value in more.items():
            setattr(request, name, value)
        return "ConsumerGroupHeartbeat", 1, request

    def subscription(self) -> dict[str, Any]:
        """Topics of which one exists."""
        topic = self.two if self.has_two else self.one
        return {"subscribed_topic_names": [topic, f"missing{self.episode}"][: 1 + self.errs(0.3)]}

    def join(self) -> Asked:
        assignor = "range" if self.has_two else self.chance.choice((None, "range", "uniform"))
        return self.request(
            0, rebalance_timeout_ms=60_000, topic_partitions=[], server_assignor=assignor, **self.subscription()
        )

    def beat(self) -> Asked:
        r, epoch = m.ConsumerGroupHeartbeatRequest, self.epochs[self.now]
        owned = None
        if self.chance.random() < 0.5:
            has = self.owned.get(self.now, [])
            owned = [r.TopicPartitions(topic_id=topic, partitions=list(parts)) for topic, parts in has]
        if self.errs(0.06):
            epoch = self.chance.choice((epoch + 1, epoch - 1, epoch - 1))
        return self.request(epoch, topic_partitions=owned)

    def change(self) -> Asked:
        return self.request(self.epochs[self.now], **self.subscription())

    def leave(self) -> Asked:
        return self.request(-2 if self.now == "m3" and self.errs(0.6) else -1)

    def commit(self) -> Asked:
        r, (name, partition) = m.OffsetCommitRequest, self.place()
        part = r.OffsetCommitRequestPartition(partition_index=partition, committed_offset=self.chance.randint(0, 9))
        epoch = self.epochs[self.now] - self.errs(0.2)
        request = r(group_id=self.group, member_id=self.member_id(self.now), generation_id_or_member_epoch=epoch)
        request.topics = [r.OffsetCommitRequestTopic(name=name, partitions=[part])]
        return "OffsetCommit", 9, request

    def describe(self) -> Asked:
        return "ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[self.group])

    def offsets(self) -> Asked:
        r = m.OffsetFetchRequest
        group = r.OffsetFetchRequestGroup(group_id=self.group, topics=None)
        group.member_id, group.member_epoch = self.member_id(self.now), self.epochs[self.now]
        return "OffsetFetch", 9, r(groups=[group])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "ConsumerGroupHeartbeat":
            hear_beat(self.epochs, self.owned, self.now, reply)


def hear_beat(epochs: dict[K, int], owned: dict[K, Owned], now: K, reply: Any) -> None:
    """Notes what a member of a consumer group is told, by which its client knows it."""
    if reply.error_code or reply.member_epoch < 0:
        epochs.pop(now, None)
        owned.pop(now, None)
        return
    epochs[now] = reply.member_epoch
    if reply.assignment is not None:
        owned[now] = [(one.topic_id, tuple(one.partitions)) for one in reply.assignment.topic_partitions]


def _is_assigned(reply: Any) -> bool:
    return reply.error_code == 0 and reply.assignment is not None and bool(reply.assignment.topic_partitions)
