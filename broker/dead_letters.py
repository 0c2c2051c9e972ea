"""Dead-letter queues of share groups (KIP-1191): records that were rejected or delivered too often go to a topic of their own.

A record there has headers that say where it came from and why, and the original's key and value where the group wants them copied
(`errors.deadletterqueue.copy.record.enable`). What one input event sends to one partition goes into one batch. A queue that may not be
written, or cannot be, loses the record; its share group goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..coordinator.share.partition import Change
from ..protocol import messages, records
from ..protocol.errors import ApiError, Errors, MalformedMessage
from ..protocol.records import BatchAt, Record
from .appending import append
from .later import Later
from .partition import Partition
from .retrying import retried

if TYPE_CHECKING:
    from .broker import Broker

PRODUCE_TIMEOUT_MS = 30_000
RECORD_OVERHEAD = 40  # the most bytes of a record besides its key, value and headers
HEADER_OVERHEAD = 8
FLAG = "errors.deadletterqueue.group.enable"
RETRIABLE_CREATE = frozenset((Errors.TOPIC_ALREADY_EXISTS, Errors.THROTTLING_QUOTA_EXCEEDED))
RETRIABLE_PRODUCE = frozenset((Errors.NOT_LEADER_OR_FOLLOWER,))


class DeadLetterRefused(Exception):
    """The group's queue may not be written: its name, its topic or its configuration says so."""


class _Letter:
    """Records of one share-partition on their way. `offset` is the first that has not been written yet."""

    __slots__ = ("copy", "done", "group_id", "letter", "offset", "source")

    def __init__(self, group_id: str, source: Partition, letter: Change, copy: bool) -> None:
        self.group_id = group_id
        self.source = source
        self.letter = letter
        self.copy = copy
        self.offset = letter.first
        self.done: Later[None] = Later()

    def records(self, now_ms: int, limit: int) -> Iterator[Record]:
        """What is left of it, record by record."""
        originals = dict(self._originals(limit)) if self.copy else {}
        for offset in range(self.offset, self.letter.last + 1):
            original = originals.get(offset)
            key, value = (original.key, original.value) if original is not None else (None, None)
            yield Record(key, value, now_ms, headers=self._headers(offset))

    def _headers(self, offset: int) -> list[tuple[str, bytes | None]]:
        pairs = (
            ("topic", self.source.topic),
            ("partition", self.source.index),
            ("offset", offset),
            ("group", self.group_id),
            ("delivery.count", self.letter.delivery_count),
            ("message", self.letter.cause),
        )
        return [(f"__dlq.errors.{name}", str(value).encode()) for name, value in pairs]

    def _originals(self, limit: int) -> Iterator[tuple[int, Record]]:
        """The records as the log still has them, as many as go into one batch of the queue; larger ones are left out."""
        log, size = self.source.log, 0
        if log is None or self.letter.last < log.start_offset:
            return
        for segment, info in log.batches_from(max(self.offset, log.start_offset)):
            if info.base_offset > self.letter.last or size > limit:
                return
            if info.header is None:
                continue
            try:
                found = records.decode(segment.read_batch(info), BatchAt(0, info.header), limit)
            except MalformedMessage:
                continue
            for record in found:
                taken = size_of(record)
                if self.offset <= record.offset <= self.letter.last and taken <= limit:
                    size += taken
                    yield record.offset, record


def size_of(record: Record) -> int:
    """At most how many bytes a record takes in a batch."""
    size = RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") + HEADER_OVERHEAD for name, value in record.headers)


class DeadLetters:
    """The dead-letter queues that this broker writes."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._pending: dict[str, list[_Letter]] = {}  # by topic
        self.written: Counter[str] = Counter()  # records by group
        self.produced: Counter[str] = Counter()  # batches by group
        self.failed: Counter[str] = Counter()

    def send(self, group_id: str, source: Partition, letter: Change) -> Later[None]:
        """Finished when the records are in the group's queue; fails with DeadLetterRefused or ApiError."""
        topic = str(self.broker.groups.group_config(group_id, "errors.deadletterqueue.topic.name"))
        copy = bool(self.broker.groups.group_config(group_id, "errors.deadletterqueue.copy.record.enable"))
        one = _Letter(group_id, source, letter, copy)
        try:
            self._check(topic)
        except DeadLetterRefused as refusal:
            one.done.fail(refusal)
            return one.done
        self._pending.setdefault(topic, []).append(one)
        self.broker.wrote(self)
        return one.done

    def _check(self, topic: str) -> None:
        if not topic:
            raise DeadLetterRefused("the group has no dead-letter topic")
        if topic.startswith("__"):
            raise DeadLetterRefused(f"{topic} is an internal name")
        if self.broker.topic(topic) is not None:
            if not self.broker.topic_config(topic)[FLAG]:
                raise DeadLetterRefused(f"{topic} has no {FLAG}")
        elif not self.broker.value("errors.deadletterqueue.auto.create.topics.enable"):
            raise DeadLetterRefused(f"{topic} is not there, and is not made by itself")
        prefix = str(self.broker.value("errors.deadletterqueue.topic.name.prefix") or "")
        if not topic.startswith(prefix):
            raise DeadLetterRefused(f"{topic} does not begin with {prefix}")

    def flush(self) -> None:
        """Sends what this event brought."""
        pending, self._pending = self._pending, {}
        for topic, letters in pending.items():
            self.broker.background(self._deliver(topic, letters))

    async def _deliver(self, topic: str, letters: list[_Letter]) -> None:
        try:
            await self._make(topic)
        except ApiError as error:
            for one in letters:
                one.done.fail(error)
            return
        found = self.broker.topic(topic)
        count = self.broker.image.partition_counts.get(found.id, 0) if found is not None else 0
        by_partition: dict[int, list[_Letter]] = {}
        for one in letters:
            by_partition.setdefault(one.source.index % max(1, count), []).append(one)
        for index, some in by_partition.items():
            self.broker.background(self._produce(topic, index, some))

    async def _make(self, topic: str) -> None:
        """Makes the topic of a queue where it is not there. ApiError."""
        from ..coordinator.metadata import topics

        broker = self.broker
        r = messages.CreateTopicsRequest
        configs = [
            r.CreatableTopicConfig(name=FLAG, value="true"),
            r.CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
        ]
        wanted = r.CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, configs=configs)

        async def attempt() -> None:
            if broker.topic(topic) is not None:
                return
            (made,) = await broker.metadata.submit(lambda: topics.create_topics(broker.metadata.controller, r(topics=[wanted])))
            if made[1] is not None:
                raise made[1]

        await retried(broker, RETRIABLE_CREATE, attempt)

    async def _produce(self, topic: str, index: int, letters: list[_Letter]) -> None:
        """Writes letters into one partition, a batch at a time."""
        limit = int(self.broker.topic_config(topic)["max.message.bytes"])
        while letters:
            batch, ends = self._batch(letters, limit)
            try:
                await self._append(topic, index, batch)
            except ApiError as error:
                for one in ends:
                    self.failed[one.group_id] += 1
                    one.done.fail(error)
                letters = [one for one in letters if one not in ends]
                continue
            for one, end in ends.items():
                self.produced[one.group_id] += 1
                self.written[one.group_id] += end - one.offset
                one.offset = end
                if end > one.letter.last:
                    one.done.finish(None)
            letters = [one for one in letters if not one.done.done]

    def _batch(self, letters: list[_Letter], limit: int) -> tuple[list[Record], dict[_Letter, int]]:
        """As many records as fit into one batch, at least one; and how far each letter is with them."""
        now = self.broker.schedule.now_ms()
        batch: list[Record] = []
        ends: dict[_Letter, int] = {}
        size = records.HEADER_SIZE
        for one in letters:
            for record in one.records(now, limit):
                size += size_of(record)
                if batch and size > limit:
                    return batch, ends
                batch.append(record)
                ends[one] = ends.get(one, one.offset) + 1
        return batch, ends

    async def _append(self, topic: str, index: int, batch: list[Record]) -> None:
        """Produces with acks=all. ApiError."""
        broker = self.broker

        async def attempt() -> None:
            partition = broker.partition(topic, index)
            data = records.encode(batch)
            answer = messages.ProduceResponse.PartitionProduceResponse(index=index)
            end = append(broker, partition, data, BatchAt(0, records.header_at(data)), -1, answer)
            await broker.within(PRODUCE_TIMEOUT_MS, partition.wait_for(end))

        await retried(broker, RETRIABLE_PRODUCE, attempt)
