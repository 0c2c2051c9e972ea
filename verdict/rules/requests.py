"""What the requests of any client say: tags, sizes, batches, and what a client begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ...protocol import messages as m
from ...protocol.structs import Struct
from ..events import BatchHead, Closed, Request
from ..rule import Rule, rule

FORMAT_2_SINCE: Final = 3  # version of Produce
ZSTD: Final = 4
ZSTD_SINCE: Final = 7  # version of Produce
CODEC: Final = 0x07  # of the attributes of a batch
ACKS: Final = (-1, 0, 1)
DATA: Final = ("Produce", "Fetch", "ListOffsets")


Batch = tuple[m.ProduceRequest.TopicProduceData, int, BatchHead]


def heads(produced: m.ProduceRequest) -> list[Batch]:
    """The partitions of a Produce request that have records, with the heads of their batches."""
    return [
        (topic, one.index, one.records)
        for topic in produced.topic_data
        for one in topic.partition_data
        if isinstance(one.records, BatchHead)
    ]


def name_of(topic: m.ProduceRequest.TopicProduceData, partition: int) -> str:
    return f"{topic.name or topic.topic_id.hex()}-{partition}"


@rule(
    "KIP-482.known-tags",
    "basic",
    apis=(
        *("ApiVersions", "Metadata", "FindCoordinator", "InitProducerId", "JoinGroup", "OffsetFetch"),
        *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat"),
    ),
    source="KIP-482",
    why="Tags are given out by Kafka's schemas; a later version may give another meaning to one that a client made up.",
)
class KnownTags(Rule):
    """A client sends only tagged fields that the schema of its version has."""

    def asked(self, request: Request) -> None:
        if request.message is None:
            return
        tags = sorted(_unknown_tags(request.message))
        if tags:
            self.fail(f"{request.api} v{request.version} with tags {tags}, which its schema does not have", request)
        else:
            self.kept()


def _unknown_tags(message: Struct) -> Iterator[int]:
    yield from (tag for tag, _ in message.unknown_tags or ())
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            for one in value:
                yield from _unknown_tags(one)


@rule(
    "protocol.metadata-first",
    "basic",
    apis=("ApiVersions", "Metadata", "DescribeTopicPartitions", *DATA),
    source="Kafka protocol",
    why="The address that a client was given to begin with need not be that of the partition's leader.",
)
class MetadataFirst(Rule):
    """A client asks for metadata before it produces or fetches."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[int] = set()  # connections that were seen from their first request on
        self._has_metadata = False

    def asked(self, request: Request) -> None:
        if request.is_first:
            self._begun.add(request.connection)
        if request.api in ("Metadata", "DescribeTopicPartitions"):
            self._has_metadata = True
        elif request.connection in self._begun and request.api in DATA:
            self._begun.discard(request.connection)
            if self._has_metadata:
                self.kept()
            elif request.client_is_whole:
                self.fail(f"{request.api} and no Metadata before", request)

    def closed(self, closed: Closed) -> None:
        self._begun.discard(closed.connection)


@rule(
    "protocol.no-replica",
    "basic",
    apis=("Fetch", "ListOffsets", "OffsetForLeaderEpoch"),
    source="Kafka protocol",
    why="A broker takes who sends a replica id for a follower, which reads records that are not replicated yet.",
)
class NoReplica(Rule):
    """A client sends -1 as the id of its replica."""

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.FetchRequest):
            replica = max(found.replica_id, found.replica_state.replica_id)
        elif isinstance(found, m.ListOffsetsRequest | m.OffsetForLeaderEpochRequest):
            replica = found.replica_id
        else:
            return
        if replica < 0:
            self.kept()
        else:
            self.fail(f"{request.api} with the replica id {replica}", request)


@rule(
    "KIP-74.fetch-bounds",
    "basic",
    apis=("Fetch",),
    source="KIP-74",
    why="With less a broker returns one batch for each request, or waits for what can never be there.",
)
class FetchBounds(Rule):
    """A Fetch may return something: its limits are positive, and min_bytes is not above max_bytes."""

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        if found is None:
            return
        smallest = min((one.partition_max_bytes for topic in found.topics for one in topic.partitions), default=1)
        if found.max_bytes > 0 and smallest > 0 and found.max_wait_ms >= 0 and found.min_bytes <= found.max_bytes:
            self.kept()
            return
        words = f"min_bytes {found.min_bytes}, max_bytes {found.max_bytes}, partition_max_bytes {smallest}"
        self.fail(f"a Fetch with {words}, max_wait_ms {found.max_wait_ms}", request)


@rule(
    "protocol.acks-valid",
    "basic",
    apis=("Produce",),
    source="Kafka protocol",
    why="The broker refuses other values (INVALID_REQUIRED_ACKS).",
)
class AcksValid(Rule):
    """A producer asks for the acknowledgement of all replicas (-1), of none (0) or of the leader (1)."""

    def asked(self, request: Request) -> None:
        found = request.of(m.ProduceRequest)
        if found is None:
            return
        if found.acks in ACKS:
            self.kept()
        else:
            self.fail(f"a Produce with acks {found.acks}", request)


@rule(
    "KIP-98.batch-format",
    "basic",
    apis=("Produce",),
    source="KIP-98",
    why="The broker refuses older formats in these versions, and batches without records (INVALID_RECORD).",
)
class BatchFormat(Rule):
    """The batches of a Produce request since version 3 have format 2, and records."""

    def asked(self, request: Request) -> None:
        found = request.of(m.ProduceRequest)
        if found is None or request.version < FORMAT_2_SINCE:
            return
        for topic, partition, head in heads(found):
            if head.records > 0:
                self.kept()
            else:
                name = name_of(topic, partition)
                self.fail(f"{head.size} bytes for {name} that are no batch of format 2", request)


@rule(
    "KIP-110.zstd-version",
    "basic",
    apis=("Produce",),
    source="KIP-110",
    why="The broker refuses them (UNSUPPORTED_COMPRESSION_TYPE), because older brokers cannot read them.",
)
class ZstdVersion(Rule):
    """Batches that are compressed with zstd come in Produce since version 7."""

    def asked(self, request: Request) -> None:
        found = request.of(m.ProduceRequest)
        if found is None:
            return
        for topic, partition, head in heads(found):
            if head.attributes & CODEC != ZSTD:
                continue
            if request.version >= ZSTD_SINCE:
                self.kept()
            else:
                name = name_of(topic, partition)
                self.fail(f"a batch for {name} with zstd in Produce v{request.version}", request)


@rule(
    "protocol.partitions-once",
    "basic",
    apis=("Produce", "Fetch"),
    source="Kafka protocol",
    why="The reply has one place for each partition: of two batches, the client cannot tell which was written.",
)
class PartitionsOnce(Rule):
    """A Produce or Fetch request names each partition once."""

    def asked(self, request: Request) -> None:
        found = request.message
        named: list[tuple[str | bytes, int]]
        if isinstance(found, m.ProduceRequest):
            named = [(one.name or one.topic_id, part.index) for one in found.topic_data for part in one.partition_data]
        elif isinstance(found, m.FetchRequest):
            named = [(one.topic or one.topic_id, part.partition) for one in found.topics for part in one.partitions]
        else:
            return
        if len(named) < 2 or len(set(named)) == len(named):
            self.kept()
        else:
            twice = Counter(named).most_common(1)[0][0][1]
            self.fail(f"{request.api} with partition {twice} of a topic twice", request)
