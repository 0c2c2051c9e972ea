"""Dead-letter queues of share groups (KIP-1191): rejected records, and records with too many deliveries, are written to
a topic.

Such a record has headers with its origin and the reason, and the original key and value if the group copies them
(`errors.deadletterqueue.copy.record.enable`). The records that one input event sends to one partition form one batch.
If a queue is not allowed or cannot be written, the record is lost and the share group continues. One that cannot be
read is sent without its key and value.

A record is written at least once, as in Kafka: a share-partition that is loaded writes the records again that were
ARCHIVING, because it is unknown whether they have reached the queue. The queue is not searched for them, because the
same record may have been rejected before. Within one process, records that are still on their way are not sent again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...coordinator.share.changes import Change
from ...protocol import messages, opening, records
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...protocol.records import BatchAt, Record
from ...storage.segment import IndexDamaged
from .. import bugs
from ..config.checks import keeps_nothing
from ..controller.controller import MetadataController
from ..later import Later, finished
from ..replica.appender import Appender
from ..replica.partition import Partition
from ..retrying import retried
from ..settings import Settings
from ..steps import Allowance, TooLong, Work, at_once, opened_in_steps
from ..turn import Turn

LETTERS_AT_ONCE = 500
# of one change: more records cannot have been acquired together, whatever a loaded state contains
LETTERS_MAX = 1 << 20
PRODUCE_TIMEOUT_MS = 30_000
RECORD_OVERHEAD = 40  # the most bytes of a record without its key, value and headers
HEADER_OVERHEAD = 8
FLAG = "errors.deadletterqueue.group.enable"
RETRIABLE_CREATE = frozenset((Errors.TOPIC_ALREADY_EXISTS, Errors.THROTTLING_QUOTA_EXCEEDED))
RETRIABLE_PRODUCE = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.NETWORK_EXCEPTION))


class DeadLetterRefused(Exception):
    """The group's queue must not be written, because of its name, its topic or its configuration."""


class _Letter:
    """Records of one share-partition on their way to the queue. `offset` is the first one that is not written yet."""

    __slots__ = ("copy", "done", "group_id", "letter", "offset", "source")

    Key = tuple[str, bytes, int, int, int]

    def __init__(self, group_id: str, source: Partition, letter: Change, copy: bool) -> None:
        self.group_id = group_id
        self.source = source
        self.letter = letter
        self.copy = copy
        self.offset = letter.first
        self.done: Later[None] = Later()

    @property
    def key(self) -> Key:
        """What is on its way: group, topic id, partition, first and last offset."""
        return self.group_id, self.source.topic_id, self.source.index, self.letter.first, self.letter.last

    def records(self, now_ms: int, originals: dict[int, Record]) -> Iterator[Record]:
        """Yields the records that remain to be written."""
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

    def originals(self, limit: int) -> Work[dict[int, Record]]:
        """Returns the original records that the log still has, as many as fit into one batch of the queue; larger ones
        are left out.
        """
        log, size, found = self.source.log, 0, dict[int, Record]()
        last = min(self.letter.last, self.offset + LETTERS_AT_ONCE - 1)
        if not self.copy or log is None or last < log.start_offset:
            return found
        for segment, info in log.batches_from(max(self.offset, log.start_offset)):
            if info.base_offset > last or size > limit:
                break
            if info.header is None:
                continue
            try:
                for some in opening.contents(segment.read_batch(info), BatchAt(0, info.header)):
                    for record in some:
                        taken = size_of(record)
                        if self.offset <= record.offset <= last and taken <= limit:
                            size += taken
                            found[record.offset] = record
                    if size > limit or (some and some[-1].offset >= last):
                        break
                    yield None
            except MalformedMessage:  # these records are sent without their keys and values
                continue
        return found


def size_of(record: Record) -> int:
    """Returns an upper bound of a record's bytes in a batch."""
    size = RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") + HEADER_OVERHEAD for name, value in record.headers)


class DeadLetters:
    """Writes the dead-letter queues of this broker."""

    def __init__(self, turn: Turn, settings: Settings, appender: Appender, metadata: MetadataController) -> None:
        self.turn = turn
        self.settings = settings
        self.image = settings.image
        self.appender = appender
        self.metadata = metadata
        self.keeps_none = keeps_nothing(settings.config, "group.share.dlq.manager.class.name")
        self._pending: dict[str, list[_Letter]] = {}  # by topic
        self._under_way: dict[_Letter.Key, _Letter] = {}
        self.written: Counter[str] = Counter()  # records by group
        self.produced: Counter[str] = Counter()  # batches by group
        self.failed: Counter[str] = Counter()

    def send(self, group_id: str, source: Partition, letter: Change) -> Later[None]:
        """Completes when the records are in the group's queue; fails with DeadLetterRefused or ApiError.
        With `NoOpShareGroupDLQManager` as `group.share.dlq.manager.class.name`, or no name, nothing is written.
        """
        if self.keeps_none:
            return finished(None)
        topic = str(self.settings.of_group(group_id, "errors.deadletterqueue.topic.name"))
        copy = bool(self.settings.of_group(group_id, "errors.deadletterqueue.copy.record.enable"))
        one = _Letter(group_id, source, letter, copy)
        same = self._under_way.get(one.key)
        if same is not None:  # the share-partition was loaded again meanwhile
            same.done.when_done(lambda sent: one.done.settle(None, sent.error))
            return one.done
        try:
            self._check(topic)
            if letter.last - letter.first >= LETTERS_MAX:
                raise DeadLetterRefused(
                    f"{letter.last - letter.first + 1} records are more than the {LETTERS_MAX} that one write can hold"
                )
        except DeadLetterRefused as refusal:
            one.done.fail(refusal)
            return one.done
        self._under_way[one.key] = one
        one.done.when_done(lambda _: self._ended(one))
        self._pending.setdefault(topic, []).append(one)
        self.turn.wrote(self)
        return one.done

    def _ended(self, one: _Letter) -> None:
        del self._under_way[one.key]

    def _check(self, topic: str) -> None:
        if not topic:
            raise DeadLetterRefused("the group has no dead-letter queue topic (errors.deadletterqueue.topic.name)")
        if topic.startswith("__"):
            raise DeadLetterRefused(f"{topic} is the name of an internal topic")
        if topic in self.image.topics:
            if not self.settings.of_topic(topic)[FLAG]:
                raise DeadLetterRefused(f"{topic} does not set {FLAG}")
        elif not self.settings.value("errors.deadletterqueue.auto.create.topics.enable"):
            raise DeadLetterRefused(f"{topic} does not exist, and automatic creation is disabled")
        prefix = str(self.settings.value("errors.deadletterqueue.topic.name.prefix") or "")
        if not topic.startswith(prefix):
            raise DeadLetterRefused(f"the name {topic} does not begin with {prefix}")

    def flush(self) -> None:
        """Sends the records of this event."""
        pending, self._pending = self._pending, {}
        for topic, letters in pending.items():
            self.turn.background(self._deliver(topic, letters))

    async def _deliver(self, topic: str, letters: list[_Letter]) -> None:
        try:
            await self._make(topic)
        except Exception as error:
            if not isinstance(error, ApiError):
                bugs.report(f"making the dead-letter queue {topic}", error)
            for one in letters:
                one.done.fail(error)
            return
        found = self.image.topics.get(topic)
        count = self.image.partition_counts.get(found.id, 0) if found is not None else 0
        by_way: dict[tuple[int, int | None], list[_Letter]] = {}  # by partition, and the node that writes
        for one in letters:
            by_way.setdefault((one.source.index % max(1, count), one.source.leader), []).append(one)
        for (index, _), some in by_way.items():
            self.turn.background(self._produce(topic, index, some))

    async def _make(self, topic: str) -> None:
        """Creates the topic of a queue if it does not exist. Raises ApiError."""
        from ...coordinator.metadata import topics

        r = messages.CreateTopicsRequest
        configs = [
            r.CreatableTopicConfig(name=FLAG, value="true"),
            r.CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
        ]
        wanted = r.CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, configs=configs)

        async def attempt() -> None:
            if topic in self.image.topics:
                return
            (made,) = await self.metadata.submit(lambda: topics.create_topics(self.metadata.controller, [wanted]))
            if made[1] is not None:
                raise made[1]

        await retried(self.turn, RETRIABLE_CREATE, attempt)

    async def _produce(self, topic: str, index: int, letters: list[_Letter]) -> None:
        """Writes letters to one partition, a batch at a time."""
        while letters:
            ends = dict.fromkeys(letters, 0)
            try:
                limit = int(self.settings.of_topic(topic)["max.message.bytes"])
                try:
                    batch, ends = at_once(self._batch(letters, limit), Allowance())
                except TooLong:
                    batch, ends = await opened_in_steps(self.turn, self._batch(letters, limit))
                await self._append(topic, index, batch, next(iter(ends)).source)
            except Exception as error:
                if not isinstance(error, ApiError):
                    bugs.report(f"the dead-letter queue {topic}", error)
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
            if letters:
                await self.turn.next()

    def _batch(self, letters: list[_Letter], limit: int) -> Work[tuple[list[Record], dict[_Letter, int]]]:
        """Returns the records of the next batch, as many as fit and are made in one step, at least one; and the next
        offset of each letter.
        """
        now = self.turn.schedule.now_ms()
        batch: list[Record] = []
        ends: dict[_Letter, int] = {}
        size = records.HEADER_SIZE
        for one in letters:
            originals = yield from self._originals(one, limit)
            for record in one.records(now, originals):
                size += size_of(record)
                if batch and (size > limit or len(batch) == LETTERS_AT_ONCE):
                    return batch, ends
                batch.append(record)
                ends[one] = ends.get(one, one.offset) + 1
        return batch, ends

    def _originals(self, one: _Letter, limit: int) -> Work[dict[int, Record]]:
        """Returns the original records of a letter; none if the log cannot be read: they are sent without their keys
        and values, beside those of other partitions.
        """
        try:
            return (yield from one.originals(limit))
        except OSError as error:
            self.appender.partitions.storage_error(one.source, error)
        except IndexDamaged:
            pass  # it is being rebuilt, which the log says
        return {}

    async def _append(self, topic: str, index: int, batch: list[Record], source: Partition) -> None:
        """Produces with acks=all, from the node that leads `source`. Raises ApiError."""
        appender, nodes = self.appender, self.metadata.nodes

        async def attempt() -> None:
            partition = appender.partitions.get(topic, index)
            if partition.has_leader and not nodes.reaches(source.leader, partition.leader):
                raise ApiError(Errors.NETWORK_EXCEPTION)
            data = records.encode(batch)
            at = BatchAt(0, records.header_at(data))
            answer = messages.ProduceResponse.PartitionProduceResponse(index=index)
            try:
                end = appender.append(partition, data, at, -1, answer, None, Allowance())
            except TooLong:
                opened = await opened_in_steps(self.turn, appender.open_batch(partition, data, at))
                end = appender.append(partition, data, at, -1, answer, None, Allowance(), opened)
            await self.turn.within(PRODUCE_TIMEOUT_MS, partition.wait_for(end))

        await retried(self.turn, RETRIABLE_PRODUCE, attempt)
