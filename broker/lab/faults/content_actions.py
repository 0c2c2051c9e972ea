"""Actions on what replies say: damaged record batches, topics that vanish from metadata, stale leaders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, cast

from ....protocol import messages
from ....protocol.buffers import Data, LateRecords
from ....protocol.checksum import crc32c
from ....protocol.errors import Errors
from ....protocol.schema import NO_UUID
from ....protocol.structs import Struct
from ...replies import Silence
from ..damage import Patched
from ..seam import Exchange, Outcome, decoded
from ..shapes import Range
from .action import Action, Hit
from .matching import FETCH, Matcher, Where

METADATA: Final = 3
DESCRIBE_TOPIC_PARTITIONS: Final = 75
SHARE_FETCH: Final = 78
BASE_OFFSET_AT, LENGTH_AT, CRC_AT, ATTRIBUTES_AT, BATCH_MIN = 0, 8, 17, 21, 61  # bytes of a batch
UNKNOWN_CODEC: Final = 7
CHECKED_BYTES_MAX: Final = 16 << 20
INT32_MAX: Final = 0x7FFFFFFF


Topics = messages.MetadataResponse | messages.DescribeTopicPartitionsResponse
Topic = (
    messages.MetadataResponse.MetadataResponseTopic
    | messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
)
Fetched = messages.FetchResponse.PartitionData | messages.ShareFetchResponse.PartitionData


def fetched(message: object) -> Iterator[tuple[dict[str, object], Fetched]]:
    """Yields the partitions of a reply of Fetch or ShareFetch that have records, with their roles."""
    if isinstance(message, messages.FetchResponse | messages.ShareFetchResponse):
        for topic in message.responses:
            roles: dict[str, object] = {"topic_id": topic.topic_id}
            if isinstance(topic, messages.FetchResponse.FetchableTopicResponse) and topic.topic:
                roles["topic"] = topic.topic
            for partition in topic.partitions:
                if partition.records:
                    yield {**roles, "partition": partition.partition_index}, partition


def _named(topic: Topic) -> dict[str, object]:
    return {"topic": topic.name} if topic.name else {"topic_id": topic.topic_id}


def topics_of(message: object) -> Sequence[Topic]:
    """Returns the topics of a reply of Metadata or DescribeTopicPartitions."""
    return decoded(message).topics if isinstance(message, Topics) else ()


def _unknown(topic: Topic, is_by_id: bool) -> Topic:
    """Returns the answer for a topic that does not exist."""
    if is_by_id:
        return type(topic)(error_code=Errors.UNKNOWN_TOPIC_ID, topic_id=topic.topic_id, name=None)
    return type(topic)(error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION, name=topic.name)


class InMemory:
    """Records that are bytes already, as a reply has them that are not."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __bytes__(self) -> bytes:
        return self._data

    def read(self, start: int, length: int) -> bytes:
        return self._data[start : start + length]

    def release(self) -> None: ...


@dataclass(frozen=True)
class DamageRecords(Action):
    """The first record batch of each chosen partition in a reply of Fetch or ShareFetch is damaged: a wrong CRC, a
    wrong base offset, or a compression codec that does not exist (with a CRC that is right).
    """

    kind: Literal["records"] = "records"
    damage: Literal["crc", "offsets", "codec"] = "crc"
    by: Annotated[int, "What is added to the base offset with `offsets`."] = 1000

    @property
    def apis(self) -> tuple[int, ...]:
        return FETCH, SHARE_FETCH

    def by_reply(self, key: int) -> bool:
        return True

    def elements(self, matcher: Matcher, exchange: Exchange, message: Struct) -> int:
        return sum(matcher.where(roles) for roles, _ in fetched(message))

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        for roles, partition in fetched(outcome):
            if hit.matcher.where(roles) and partition.records is not None:
                partition.records = self._damaged(partition.records)
        return None

    def _damaged(self, records: Data | LateRecords) -> LateRecords:
        late = InMemory(bytes(records)) if isinstance(records, bytes | bytearray | memoryview) else records
        head = late.read(0, BATCH_MIN)
        if len(head) < BATCH_MIN:
            return late
        if self.damage == "crc":
            return Patched(late, ((CRC_AT, head[CRC_AT] ^ 1),))
        if self.damage == "offsets":
            offset = int.from_bytes(head[:8], "big") + self.by
            wrong = (offset & (1 << 64) - 1).to_bytes(8, "big")
            return Patched(late, tuple(enumerate(wrong, BASE_OFFSET_AT)))
        codec = head[ATTRIBUTES_AT + 1] | UNKNOWN_CODEC
        size = LENGTH_AT + 4 + int.from_bytes(head[LENGTH_AT : LENGTH_AT + 4], "big")
        changes = [(ATTRIBUTES_AT + 1, codec)]
        if size <= min(len(late), CHECKED_BYTES_MAX):
            batch = bytearray(late.read(0, size))
            batch[ATTRIBUTES_AT + 1] = codec
            right = crc32c(bytes(batch[ATTRIBUTES_AT:])).to_bytes(4, "big")
            changes += enumerate(right, CRC_AT)
        return Patched(late, tuple(changes))

    @property
    def text(self) -> str:
        return f"damage records: {self.damage}"


class _OnTopics(Action):
    """Changes the topics of replies of Metadata and DescribeTopicPartitions."""

    @property
    def apis(self) -> tuple[int, ...]:
        return METADATA, DESCRIBE_TOPIC_PARTITIONS

    def by_reply(self, key: int) -> bool:
        return True

    def chosen(self, where: Where, topic: Topic) -> bool:
        raise NotImplementedError

    def elements(self, matcher: Matcher, exchange: Exchange, message: Struct) -> int:
        return sum(self.chosen(matcher.where, topic) for topic in topics_of(message))


@dataclass(frozen=True)
class Vanish(_OnTopics):
    """Topics are missing in Metadata and DescribeTopicPartitions: not listed, and unknown to who asks for them."""

    kind: Literal["vanish"] = "vanish"

    def keeps(self, key: int) -> bool:
        return True

    def chosen(self, where: Where, topic: Topic) -> bool:
        return where(_named(topic))

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        if not isinstance(outcome, Topics):
            return None
        request = hit.exchange.request
        assert isinstance(request, messages.MetadataRequest | messages.DescribeTopicPartitionsRequest)
        asked_by_id = {getattr(topic, "topic_id", NO_UUID) for topic in request.topics or () if not topic.name}
        left: list[Topic] = []
        for topic in topics_of(outcome):
            if not self.chosen(hit.matcher.where, topic):
                left.append(topic)
            elif request.topics:
                left.append(_unknown(topic, topic.topic_id in asked_by_id))
        topics = cast(list[Topic], outcome.topics)
        topics[:] = left
        return None

    @property
    def text(self) -> str:
        return "hide topics"


@dataclass(frozen=True)
class StaleLeader(_OnTopics):
    """Metadata and DescribeTopicPartitions name another leader, or an older leader epoch."""

    kind: Literal["stale-leader"] = "stale-leader"
    leader: Annotated[
        int | None, "The id of the leader, -1 for none; the right one if it is not given.", Range(-1, INT32_MAX)
    ] = None
    epoch_by: Annotated[int, "What is added to the leader epoch.", Range(-INT32_MAX, INT32_MAX)] = 0

    def chosen(self, where: Where, topic: Topic) -> bool:
        return any(where({**_named(topic), "partition": partition.partition_index}) for partition in topic.partitions)

    def answered(self, hit: Hit, outcome: Struct | Silence) -> Outcome | None:
        for topic in topics_of(outcome):
            for partition in topic.partitions:
                if not hit.matcher.where({**_named(topic), "partition": partition.partition_index}):
                    continue
                if self.leader is not None:
                    partition.leader_id = self.leader
                partition.leader_epoch = min(max(-1, partition.leader_epoch + self.epoch_by), INT32_MAX)
        return None

    @property
    def text(self) -> str:
        return "show stale leaders"
