"""A member of a share group beside topics that grow, go and come again (`chance.py`).

It is alone: who gets which of several share-partitions follows from random ids. After each change, and each heartbeat,
Kafka has time to initialize share-partitions, which it does at a moment of its own. Left out: acknowledgements in a
fetch of several share-partitions, which Kafka may answer before they are written; and sessions with a topic whose name
another one has by now, of which Kafka looks for a state in vain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import messages as m

from .chance_clients import CODECS, Asked
from .chance_members import Queue
from .chance_topics import PARTITIONS_MAX

INITIALIZED_S: Final = 0.15
FIRST_WAIT_MS: Final = 600
Place = tuple[bytes, int]
"""A topic id and a partition."""


class Regrown(Queue):
    """`counts`: partitions by topic, 0 where it is gone; `ids`: of topics that were; `given`: the share-partitions of
    the member, `begun`: those that were fetched; `locked`: offsets by share-partition; `in_session`: those that its
    session has.
    """

    PREFIX = "w"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counts = {self.two: 2, self.one: 1}
        self.ids = {name: [topic_id] for name, topic_id in self.topics.items()}
        self.given: list[Place] = []
        self.locked: dict[Place, dict[int, None]] = {}
        self.in_session: dict[Place, None] = {}
        self.begun: dict[Place, None] = {}
        self.wanted = [self.one, self.two]

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.now not in self.epochs:
            return (self.beat,)
        if any(place not in self.begun for place in self.given):
            return (self.first_fetch,)
        members = (*[self.beat] * 3, *[self.write] * 6, *[self.fetch] * 9, *[self.acknowledge] * 4, self.subscribe)
        views = (self.describe, self.lag, self.lag, self.offsets)
        gone = [name for name, count in self.counts.items() if not count]
        return (*members, *views, self.grow, self.remove, *[self.create] * (4 * len(gone)), self.forget, self.leave)

    def place(self) -> tuple[str, int]:
        name = self.chance.choice((self.one, self.two))
        return name, self.chance.randint(0, max(self.counts[name] - 1, 0))

    def name_with(self, topic_id: bytes) -> str:
        """Returns the name of a topic; an empty one if an odd request made it, of which the member has not heard."""
        return next((name for name, ids in self.ids.items() if topic_id in ids), "")

    # the member

    def beat(self) -> Asked:
        epoch = self.epochs.get(self.now, 0)
        request = m.ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id(self.now),
            member_epoch=epoch - (epoch > 0 and self.errs(0.04)),
        )
        if not epoch:
            request.subscribed_topic_names = self.wanted
        return "ShareGroupHeartbeat", 1, request

    def subscribe(self) -> Asked:
        api, version, request = self.beat()
        self.wanted = self.chance.choice(([self.one], [self.two], [self.one, self.two], [self.one, self.two]))
        request.subscribed_topic_names = self.wanted
        return api, version, request

    def leave(self) -> Asked:
        api, version, request = self.beat()
        request.member_epoch = -1
        return api, version, request

    def write(self) -> Asked:
        return self.produced(self.place(), self.batch(codec=self.chance.choice(CODECS)))

    def named_places(self) -> list[Place]:
        """The share-partitions that a request names: those of the member, and at times one that was or never is."""
        found = [place for place in self.given if self.chance.random() < 0.8]
        if self.errs(0.12):
            name = self.chance.choice((self.one, self.two))
            found.append((self.chance.choice(self.ids[name]), self.chance.choice((self.counts[name], 9))))
        return list(dict.fromkeys(found))

    def batches_of(self, row: Any, place: Place) -> list[Any]:
        self.held[self.now] = self.locked.setdefault(place, {})
        return self.batches(row)

    def topics_of(self, request: Any, parts: list[tuple[Place, Any]], topic: str) -> list[Any]:
        named = dict.fromkeys(place[0] for place, _ in parts)
        made = getattr(request, topic)
        return [made(topic_id=one, partitions=[part for place, part in parts if place[0] == one]) for one in named]

    def fetch(self) -> Asked:
        r, version, epoch = m.ShareFetchRequest, self.chance.randint(1, 2), self.session_epoch()
        request = r(group_id=self.group, member_id=self.member_id(self.now), share_session_epoch=epoch)
        request.max_wait_ms, request.min_bytes, request.max_bytes = 100, 1, 1 << 20
        request.max_records = request.batch_size = 500
        parts, places = [], self.named_places()
        for place in places:
            may_acknowledge = epoch > 0 and {*self.in_session, *places} == {place} and self.errs(0.4)
            acks = self.batches_of(r.AcknowledgementBatch, place) if may_acknowledge else []
            parts.append((place, r.FetchPartition(partition_index=place[1], acknowledgement_batches=acks)))
        request.topics = self.topics_of(r, parts, "FetchTopic")
        named = [place for place, _ in parts]
        forgotten = [place for place in self.in_session if place not in named and self.errs(0.1)] if epoch > 0 else []
        request.forgotten_topics_data = [
            r.ForgottenTopic(topic_id=topic, partitions=[partition]) for topic, partition in forgotten
        ]
        return "ShareFetch", version, request

    def first_fetch(self) -> Asked:
        """Of one share-partition: Kafka reads its state first, and does not wait for that where others are read."""
        r, place = m.ShareFetchRequest, next(place for place in self.given if place not in self.begun)
        self.begun[place] = None
        request = r(group_id=self.group, member_id=self.member_id(self.now), share_session_epoch=0)
        request.max_wait_ms, request.min_bytes, request.max_bytes = FIRST_WAIT_MS, 1, 1 << 20
        request.max_records = request.batch_size = 500
        request.topics = self.topics_of(r, [(place, r.FetchPartition(partition_index=place[1]))], "FetchTopic")
        return "ShareFetch", 2, request

    def acknowledge(self) -> Asked:
        r = m.ShareAcknowledgeRequest
        request = r(group_id=self.group, member_id=self.member_id(self.now), share_session_epoch=self.session_epoch())
        parts = []
        for place in self.named_places():
            acks = self.batches_of(r.AcknowledgementBatch, place)
            if acks:
                parts.append((place, r.AcknowledgePartition(partition_index=place[1], acknowledgement_batches=acks)))
        request.topics = self.topics_of(r, parts, "AcknowledgeTopic")
        return "ShareAcknowledge", self.chance.randint(1, 2), request

    # administrators

    def grow(self) -> Asked:
        r, name = m.CreatePartitionsRequest, self.chance.choice([*self.counts])
        topic = r.CreatePartitionsTopic(name=name, count=min(self.counts[name] + 1, PARTITIONS_MAX), assignments=None)
        return "CreatePartitions", 3, r(topics=[topic], timeout_ms=30_000)

    def remove(self) -> Asked:
        name = self.chance.choice([*self.counts])
        return "DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)

    def create(self) -> Asked:
        r, name = m.CreateTopicsRequest, self.chance.choice([*self.counts])
        topic = r.CreatableTopic(name=name, num_partitions=self.chance.choice((1, 1, 2)), replication_factor=1)
        return "CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)

    def offsets(self) -> Asked:
        """Of one topic, which may be gone."""
        r, (name, partition) = m.DescribeShareGroupOffsetsRequest, self.place()
        topic = r.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[partition])
        group = r.DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=[topic])
        return "DescribeShareGroupOffsets", self.chance.randint(0, 1), r(groups=[group])

    def forget(self) -> Asked:
        r, (name, _) = m.DeleteShareGroupOffsetsRequest, self.place()
        topics = [r.DeleteShareGroupOffsetsRequestTopic(topic_name=name)]
        return "DeleteShareGroupOffsets", 0, r(group_id=self.group, topics=topics)

    # what it hears

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "ShareGroupHeartbeat":
            self.pause_s = INITIALIZED_S
            super().heard(name, version, request, reply)
            if self.now not in self.epochs:
                self.given = []
            elif reply.assignment is not None:
                given = reply.assignment.topic_partitions
                found = [(topic.topic_id, p) for topic in given for p in topic.partitions]
                self.given = sorted(found, key=lambda place: (self.name_with(place[0]), place[1]))
        elif name in ("ShareFetch", "ShareAcknowledge"):
            self.hear_session(name, request, reply)
        elif name == "CreatePartitions" and reply.results[0].error_code == 0:
            self.resized(request.topics[0].name, request.topics[0].count)
        elif name == "DeleteTopics" and reply.responses[0].error_code == 0:
            self.resized(request.topic_names[0], 0)
        elif name == "CreateTopics" and reply.topics[0].error_code == 0:
            made = reply.topics[0]
            self.topics[made.name] = made.topic_id
            self.ids[made.name].append(made.topic_id)
            self.sessions[self.now], self.in_session = 0, {}
            self.locked.clear()
            self.resized(made.name, made.num_partitions)

    def hear_session(self, name: str, request: Any, reply: Any) -> None:
        epoch = request.share_session_epoch
        if reply.error_code or epoch < 0:
            self.sessions[self.now], self.in_session = 0, {}
            self.locked.clear()
            return
        self.sessions[self.now] = epoch + 1
        if epoch == 0:
            self.in_session.clear()
        for topic in request.topics:
            for part in topic.partitions:
                place = topic.topic_id, part.partition_index
                if name == "ShareFetch":
                    self.in_session[place] = None
                for one in part.acknowledgement_batches:
                    if one.acknowledge_types != [4]:
                        for offset in range(one.first_offset, one.last_offset + 1):
                            self.locked.get(place, {}).pop(offset, None)
        for topic in getattr(request, "forgotten_topics_data", ()):
            for partition in topic.partitions:
                self.in_session.pop((topic.topic_id, partition), None)
        for topic in getattr(reply, "responses", ()) if name == "ShareFetch" else ():
            for part in topic.partitions:
                place = topic.topic_id, part.partition_index
                for got in part.acquired_records:
                    offsets = range(got.first_offset, got.last_offset + 1)
                    self.locked.setdefault(place, {}).update(dict.fromkeys(offsets))

    def resized(self, name: str, count: int) -> None:
        self.counts[name] = self.awaited[name] = count
        self.ends = {place: end for place, end in self.ends.items() if count or place[0] != name}
