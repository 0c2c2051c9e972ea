"""Clients that do their work as a client should, and at times not: what two brokers are asked in turn (`chance.py`).

Requests that are made up at random seldom get far into a transaction, a share session or a fetch session. These know
where they are: most of what they ask is right, and the rest is a request of another moment (an old epoch, a sequence
that was there before, records that another has). Each broker has a client of its own, which makes the same choices.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

Asked = tuple[str, int, Any]
IDS_SINCE: Final = 13  # versions of Produce and of Fetch
CODECS: Final = (0, 0, 0, 1, 2, 3, 4)


def configured(group: str, pairs: dict[str, str]) -> Asked:
    """A group gets its configuration."""
    r = m.IncrementalAlterConfigsRequest
    changes = [r.AlterableConfig(name=k, config_operation=0, value=v) for k, v in pairs.items()]
    resource = r.AlterConfigsResource(resource_type=32, resource_name=group, configs=changes)
    return "IncrementalAlterConfigs", 1, r(resources=[resource])


class Client(ABC):
    """`topics`: the ids of the episode's topics, `t…` with two partitions and `u…` with one; `at_ms`: of records."""

    def __init__(self, chance: random.Random, episode: str, topics: dict[str, bytes], at_ms: int) -> None:
        self.chance, self.episode, self.topics, self.at_ms = chance, episode, topics, at_ms
        self.two, self.one = f"t{episode}", f"u{episode}"
        self.ends: dict[tuple[str, int], int] = {}  # where this client takes the logs to end
        self.awaited: dict[str, int] = {}  # topics that change, and how many partitions they will have; -1: any number
        self.expiring = ""  # the transactional id whose transaction runs out before the next request
        self.pause_s = 0.0  # which pass before the next request
        self.burst_s = 0.0  # in which it must have asked all between two pauses, if there is such a time

    @property
    @abstractmethod
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        """What it may ask next; what is named more often is asked more often."""

    @abstractmethod
    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        """A request was answered."""

    @abstractmethod
    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """Asks the broker until it knows what the client begins with."""

    def next(self) -> Asked:
        return self.chance.choice(self.steps)()

    def errs(self, share: float = 0.08) -> bool:
        return self.chance.random() < share

    def place(self) -> tuple[str, int]:
        return self.chance.choice(((self.two, 0), (self.two, 0), (self.two, 1), (self.one, 0)))

    def named(self, version: int, name: str, field: str) -> dict[str, Any]:
        """A topic of a Produce or a Fetch, by its name or by its id."""
        return {"topic_id": self.topics[name]} if version >= IDS_SINCE else {field: name}

    def name_of(self, topic: Any, version: int, field: str) -> str:
        """The name of a topic in a Produce or a Fetch."""
        if version < IDS_SINCE:
            return str(getattr(topic, field))
        return next(name for name, topic_id in self.topics.items() if topic_id == topic.topic_id)

    def offset(self, place: tuple[str, int]) -> int:
        end = self.ends.get(place, 0)
        return self.chance.choice((0, end, max(end - 1, 0), self.chance.randint(0, end + 1)))

    # what several of them ask

    def batch(self, **template: Any) -> bytes:
        chance = self.chance
        count = chance.choice((1, 1, 2, 3, 10))
        times = [self.at_ms + chance.randint(-2000, 2000) for _ in range(count)]
        rows = [
            Record(chance.choice((None, b"k%d" % n)), chance.choice((b"v" * n, b"v", None)), at)
            for n, at in enumerate(times)
        ]
        return bytes(records.encode(rows, Template(**template)))

    def produced(self, place: tuple[str, int], data: bytes, transactional_id: str | None = None) -> Asked:
        version = self.chance.choice((3, 7, 8, 9, 11, 12, 13))
        name, partition = place
        r = m.ProduceRequest
        row = r.PartitionProduceData(index=partition, records=data)
        topic = r.TopicProduceData(partition_data=[row], **self.named(version, name, "name"))
        acks = -1 if transactional_id or self.chance.random() < 0.5 else 1
        request = r(acks=acks, timeout_ms=15_000, topic_data=[topic], transactional_id=transactional_id)
        return "Produce", version, request

    def list_offsets(self) -> Asked:
        r, version = m.ListOffsetsRequest, self.chance.randint(1, 11)
        times = (-1, -2, -3, self.at_ms, self.at_ms + self.chance.randint(-2500, 2500), -1)
        found = [
            r.ListOffsetsTopic(
                name=name, partitions=[r.ListOffsetsPartition(partition_index=p, timestamp=self.chance.choice(times))]
            )
            for name, p in [self.place()]
        ]
        if version < 7 and found[0].partitions[0].timestamp == -3:
            version = 7
        level = self.chance.choice((0, 1)) if version >= 2 else 0
        return "ListOffsets", version, r(replica_id=-1, isolation_level=level, topics=found, timeout_ms=15_000)

    def read(self) -> Asked:
        """A Fetch without a session."""
        version, place = self.chance.randint(4, 18), self.place()
        return self.fetch_of(version, [self.fetched(place, version)], max_wait_ms=0)

    def fetched(self, place: tuple[str, int], version: int) -> tuple[str, Any]:
        size = self.chance.choice((1 << 20, 1 << 20, 1, 150, 400))
        part = m.FetchRequest.FetchPartition(
            partition=place[1], fetch_offset=self.offset(place), partition_max_bytes=size
        )
        if version >= 9 and self.errs(0.2):
            part.current_leader_epoch = self.chance.choice((0, 0, 1))
        return place[0], part

    def fetch_of(self, version: int, parts: list[tuple[str, Any]], **more: Any) -> Asked:
        r = m.FetchRequest
        topics = []
        for name in dict.fromkeys(name for name, _ in parts):
            wanted = [part for one, part in parts if one == name]
            topics.append(r.FetchTopic(partitions=wanted, **self.named(version, name, "topic")))
        level = self.chance.choice((0, 1))
        request = r(min_bytes=0, max_bytes=self.chance.choice((1 << 24, 1 << 24, 300)), isolation_level=level)
        request.topics = topics
        for field, value in more.items():
            setattr(request, field, value)
        return "Fetch", version, request

    def hear_produced(self, version: int, request: Any, reply: Any) -> None:
        for row in reply.responses:
            for part in row.partition_responses:
                if part.error_code == 0 and part.base_offset >= 0:
                    name = self.name_of(row, version, "name")
                    data = request.topic_data[0].partition_data[0].records
                    count = sum(at.header.last_offset_delta + 1 for at in records.batches(data))
                    self.ends[name, part.index] = part.base_offset + count


class Producers(Client):
    """Two transactional ids and a producer without one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ids: tuple[str | None, ...] = (f"x{self.episode}", f"y{self.episode}", None)
        self.given: dict[str | None, tuple[int, int]] = {}
        self.before: dict[str | None, tuple[int, int]] = {}
        self.sequences: dict[tuple[str | None, str, int], int] = {}
        self.batches: dict[tuple[str | None, str, int], list[bytes]] = {}
        self.now: str | None = self.ids[0]

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """Nothing is needed."""

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.chance.random() < 0.25:
            self.now = self.chance.choice(self.ids)
        if self.now not in self.given:
            return (self.begin,)
        shared = (*[self.write] * 6, self.again, self.list_offsets, self.read, self.describe_producers)
        if self.now is None:
            return (*shared, self.begin)
        return (
            *shared, *shared, self.begin, *[self.add] * 3, *[self.end] * 3, self.add_offsets, *[self.commit] * 3,
            self.describe, self.list, self.offsets,
        )  # fmt: skip

    def producer(self) -> tuple[int, int]:
        """The id and epoch, which are at times not those of now."""
        one, epoch = self.given[self.now]
        if self.errs():
            return self.before.get(self.now, (one, max(epoch - 1, 0)))
        if self.errs(0.04):
            return self.chance.choice(((one, epoch + 1), self.chance.choice(list(self.given.values())), (one + 77, 0)))
        return one, epoch

    def begin(self) -> Asked:
        version = self.chance.randint(0, 5)
        request = m.InitProducerIdRequest(transactional_id=self.now, transaction_timeout_ms=60_000)
        if version >= 3 and self.now in self.given and self.errs(0.5):
            request.producer_id, request.producer_epoch = self.producer()
        return "InitProducerId", version, request

    def write(self) -> Asked:
        place, (one, epoch) = self.place(), self.producer()
        key = (self.now, *place)
        sequence = self.sequences.get(key, 0)
        if self.errs():
            sequence = self.chance.choice((sequence + 1, max(sequence - 1, 0), 0, 1 << 30))
        is_transactional = self.now is not None and not self.errs(0.04)
        data = self.batch(
            producer_id=one, producer_epoch=epoch, base_sequence=sequence, transactional=is_transactional,
            codec=self.chance.choice(CODECS),
        )  # fmt: skip
        return self.produced(place, data, self.now if is_transactional else None)

    def again(self) -> Asked:
        """A batch of the last ones once more."""
        place = self.place()
        sent = self.batches.get((self.now, *place), [])
        return self.produced(place, self.chance.choice(sent), self.now) if sent else self.write()

    def add(self) -> Asked:
        (name, partition), (one, epoch), version = self.place(), self.producer(), self.chance.randint(0, 3)
        r = m.AddPartitionsToTxnRequest
        topics = [r.AddPartitionsToTxnTopic(name=name, partitions=[partition])]
        if self.errs(0.04):
            topics.append(r.AddPartitionsToTxnTopic(name=f"missing{self.episode}", partitions=[0]))
        return (
            "AddPartitionsToTxn",
            version,
            r(
                v3_and_below_transactional_id=str(self.now),
                v3_and_below_producer_id=one,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            ),
        )

    def add_offsets(self) -> Asked:
        one, epoch = self.producer()
        request = m.AddOffsetsToTxnRequest(
            transactional_id=str(self.now), producer_id=one, producer_epoch=epoch, group_id=f"g{self.episode}"
        )
        return "AddOffsetsToTxn", self.chance.randint(0, 4), request

    def commit(self) -> Asked:
        r, (one, epoch), (name, partition) = m.TxnOffsetCommitRequest, self.producer(), self.place()
        version = self.chance.choice((0, 2, 3, 4, 5, 5))
        part = r.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=self.chance.randint(0, 9))
        request = r(transactional_id=str(self.now), group_id=f"g{self.episode}", producer_id=one, producer_epoch=epoch)
        request.topics = [r.TxnOffsetCommitRequestTopic(name=name, partitions=[part])]
        if version >= 3 and self.errs():
            request.generation_id_or_member_epoch, request.member_id = 1, "nobody"
        return "TxnOffsetCommit", version, request

    def end(self) -> Asked:
        one, epoch = self.producer()
        request = m.EndTxnRequest(
            transactional_id=str(self.now), producer_id=one, producer_epoch=epoch, committed=self.chance.random() < 0.5
        )
        return "EndTxn", self.chance.choice((0, 3, 4, 5, 5)), request

    def describe(self) -> Asked:
        return "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=list(filter(None, self.ids)))

    def list(self) -> Asked:
        request = m.ListTransactionsRequest(
            state_filters=self.chance.choice(([], ["Ongoing"], ["CompleteCommit", "CompleteAbort"])),
            transactional_id_pattern=f".{self.episode}",
        )
        return "ListTransactions", 2, request

    def describe_producers(self) -> Asked:
        r, (name, partition) = m.DescribeProducersRequest, self.place()
        return "DescribeProducers", 0, r(topics=[r.TopicRequest(name=name, partition_indexes=[partition])])

    def offsets(self) -> Asked:
        r = m.OffsetFetchRequest
        group = r.OffsetFetchRequestGroup(group_id=f"g{self.episode}", topics=None)
        return "OffsetFetch", 8, r(groups=[group], require_stable=self.chance.random() < 0.3)

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name in ("InitProducerId", "EndTxn") and reply.error_code == 0 and reply.producer_id >= 0:
            now = request.transactional_id
            self.before[now] = self.given.get(now, (reply.producer_id, reply.producer_epoch))
            self.given[now] = reply.producer_id, reply.producer_epoch
            if self.before[now] != self.given[now]:
                for key in [key for key in self.sequences if key[0] == now]:
                    self.sequences.pop(key)
                    self.batches.pop(key)
        if name == "Produce":
            self.hear_produced(version, request, reply)
            (part,) = reply.responses[0].partition_responses
            data = request.topic_data[0].partition_data[0].records
            (at,) = records.batches(data)
            topic = self.name_of(request.topic_data[0], version, "name")
            if part.error_code == 0:
                key = (self.now, topic, part.index)
                self.sequences[key] = at.header.base_sequence + at.header.last_offset_delta + 1
                self.batches[key] = [*self.batches.get(key, [])[-6:], data]


class Readers(Client):
    """Writes, and reads by fetch sessions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.session, self.epoch, self.version = 0, 0, 12
        self.places: dict[tuple[str, int], None] = {}

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """Nothing is needed."""

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        return (*[self.write] * 4, *[self.poll] * 8, self.read, self.list_offsets, self.delete, self.epochs)

    def write(self) -> Asked:
        place = self.place()
        data = self.batch(codec=self.chance.choice(CODECS))
        if self.errs():
            data += self.batch()
        return self.produced(place, data)

    def poll(self) -> Asked:
        if self.session == 0 or self.errs(0.05):
            self.epoch, self.version = 0, self.chance.randint(7, 18)
            self.places = dict.fromkeys(self.place() for _ in range(self.chance.randint(0, 3)))
            asked = [self.fetched(place, self.version) for place in self.places]
            return self.fetch_of(self.version, asked, max_wait_ms=0, session_id=0, session_epoch=0)
        changed = dict.fromkeys(self.place() for _ in range(self.chance.randint(0, 2)))
        forgotten = [one for one in self.places if one not in changed and self.errs(0.15)]
        asked = [self.fetched(place, self.version) for place in changed]
        session, epoch = self.session, self.epoch
        if self.errs(0.06):
            session, epoch = self.chance.choice(
                ((session, epoch + 1), (session + 1, epoch), (session, -1), (session, 1))
            )
        request = self.fetch_of(self.version, asked, max_wait_ms=0, session_id=session, session_epoch=epoch)
        r = m.FetchRequest
        for name, partition in forgotten:
            topic = r.ForgottenTopic(partitions=[partition], **self.named(self.version, name, "topic"))
            request[2].forgotten_topics_data.append(topic)
        return request

    def delete(self) -> Asked:
        r, (name, partition) = m.DeleteRecordsRequest, self.place()
        part = r.DeleteRecordsPartition(partition_index=partition, offset=self.offset((name, partition)))
        topic = r.DeleteRecordsTopic(name=name, partitions=[part])
        return "DeleteRecords", self.chance.randint(0, 2), r(topics=[topic], timeout_ms=15_000)

    def epochs(self) -> Asked:
        r, (name, partition) = m.OffsetForLeaderEpochRequest, self.place()
        part = r.OffsetForLeaderPartition(partition=partition, leader_epoch=self.chance.choice((0, 0, 1, -1)))
        topic = r.OffsetForLeaderTopic(topic=name, partitions=[part])
        return "OffsetForLeaderEpoch", self.chance.randint(2, 4), r(replica_id=-1, topics=[topic])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "Produce":
            self.hear_produced(version, request, reply)
        elif name == "Fetch" and version == self.version and request.session_epoch >= 0:
            self.hear_session(request, reply)

    def hear_session(self, request: Any, reply: Any) -> None:
        if request.session_id == 0 and request.session_epoch == 0:
            self.session, self.epoch = reply.session_id, 1
        elif request.session_id == self.session and reply.error_code:
            self.session = 0
        elif request.session_id == self.session and request.session_epoch == self.epoch:
            self.epoch += 1
            for topic in request.topics:
                for part in topic.partitions:
                    self.places[self.name_of(topic, self.version, "topic"), part.partition] = None
