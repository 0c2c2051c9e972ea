"""When a client asks for metadata, and what it does with leader epochs."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Reply, Request
from ..replies import partition_errors
from ..rule import Needs, Recent, Rule, rule

STALE: Final = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_ID,
    }
)
ERRORS_MAX: Final = 5
WITHIN_US: Final = 2_000_000
EPOCH_SENT_SINCE: Final = 9  # version of Fetch
SETTLE_US: Final = 5_000_000  # in which a client may learn of a leader
OLD_CONNECTION_MAX: Final = 3  # requests for metadata on a connection after REBOOTSTRAP_REQUIRED


@rule(
    "KIP-320.metadata-refreshed",
    "basic",
    apis=("Metadata", "DescribeTopicPartitions", "Produce", "Fetch", "ListOffsets"),
    needs=Needs(errors=True, asks=("Metadata", "DescribeTopicPartitions")),
    source="KIP-320",
    why="Otherwise it stays with a broker that does not lead the partition any more.",
)
class MetadataRefreshed(Rule):
    """After NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_TOPIC_OR_PARTITION, a client asks for metadata,
    unless the reply says where the leader is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._count = 0  # errors since the last request for metadata
        self._first: tuple[Request, Reply] | None = None

    def asked(self, request: Request) -> None:
        if request.api in ("Metadata", "DescribeTopicPartitions") and self._first is not None:
            self.kept()
            self._count, self._first = 0, None

    def answered(self, request: Request, reply: Reply) -> None:
        code = next((one.code for one in partition_errors(reply) if one.code in STALE and not one.has_leader), 0)
        if not code:
            return
        self._count += 1
        if self._first is None:
            self._first = request, reply
        elif self._count >= ERRORS_MAX and reply.mono_us - self._first[1].mono_us >= WITHIN_US:
            name = Errors(code).name
            self.fail(f"{self._count} replies with {name}, and no Metadata", *self._first, request, reply)
            self._count, self._first = 0, None


@rule(
    "KIP-320.leader-epoch-sent",
    "basic",
    apis=("Metadata", "Fetch"),
    needs=Needs(answers=("Metadata",), asks=("Fetch",)),
    source="KIP-320",
    why="A consumer with old metadata could read from a leader that has lost records which it has read already.",
)
class LeaderEpochSent(Rule):
    """A consumer sends the leader epoch that metadata told it with each partition that it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self._epochs: Recent[tuple[str | bytes, int], int] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.MetadataResponse)
        for topic in found.topics if found is not None else ():
            for one in topic.partitions:
                for name in (topic.name, topic.topic_id):
                    if name:
                        self._epochs[name, one.partition_index] = one.leader_epoch

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        if found is None or request.version < EPOCH_SENT_SINCE:
            return
        for topic in found.topics:
            for one in topic.partitions:
                known = self._epochs.get((topic.topic or topic.topic_id, one.partition), -1)
                if known < 0:
                    continue
                if one.current_leader_epoch >= 0:
                    self.kept()
                else:
                    name = topic.topic or topic.topic_id.hex()
                    self.fail(f"{name}-{one.partition} without the leader epoch, which is {known}", request)


@rule(
    "KIP-516.topic-id-known",
    "basic",
    apis=("Metadata", "DescribeTopicPartitions", "Fetch", "Produce"),
    needs=Needs(asks=("Fetch", "Produce"), answers=("Metadata", "DescribeTopicPartitions")),
    source="KIP-516",
    why="A topic that was created again under its name has another id; only metadata has the right one.",
)
class TopicIdKnown(Rule):
    """A client produces and fetches with topic ids that metadata gave it."""

    def __init__(self) -> None:
        super().__init__()
        self._ids: Recent[bytes, None] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.message
        if isinstance(found, m.MetadataResponse | m.DescribeTopicPartitionsResponse):
            for topic in found.topics:
                self._ids[bytes(topic.topic_id)] = None

    def asked(self, request: Request) -> None:
        found = request.message
        if not request.client_is_whole or self._ids.has_forgotten:
            return
        topics: list[bytes]
        if isinstance(found, m.FetchRequest):
            topics = [one.topic_id for one in found.topics if not one.topic]
        elif isinstance(found, m.ProduceRequest):
            topics = [one.topic_id for one in found.topic_data if not one.name]
        else:
            return
        for topic_id in topics:
            if bytes(topic_id) in self._ids:
                self.kept()
            else:
                self.fail(f"{request.api} of topic {bytes(topic_id).hex()}, which no metadata had", request)


@rule(
    "KIP-951.leader-taken",
    "basic",
    apis=("Fetch",),
    needs=Needs(errors=True),
    source="KIP-951",
    why="The reply says where the leader is, which spares a request for metadata and a refused one.",
    severity="warning",
)
class LeaderTaken(Rule):
    """After a reply that names a new leader, a client fetches with the leader epoch of that reply, or a later one."""

    def __init__(self) -> None:
        super().__init__()
        self._told: Recent[tuple[str | bytes, int], tuple[int, Request, Reply]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.FetchResponse)
        if found is None or not any(one.code in STALE for one in partition_errors(reply)):
            return
        for topic in found.responses:
            for one in topic.partitions:
                if one.error_code in STALE and one.current_leader.leader_epoch >= 0:
                    at = topic.topic or bytes(topic.topic_id), one.partition_index
                    self._told[at] = one.current_leader.leader_epoch, request, reply

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest) if self._told else None
        for topic in found.topics if found is not None else ():
            for one in topic.partitions:
                at = topic.topic or bytes(topic.topic_id), one.partition
                told = self._told.get(at)
                if told is None or one.current_leader_epoch < 0:
                    continue
                if one.current_leader_epoch >= told[0]:
                    self.kept()
                    del self._told[at]
                elif request.mono_us - told[2].mono_us > SETTLE_US:
                    words = f"leader epoch {one.current_leader_epoch}, and a reply had {told[0]}"
                    self.fail(words, told[1], told[2], request)
                    del self._told[at]


@rule(
    "KIP-1102.bootstraps-again",
    "network",
    apis=("Metadata",),
    needs=Needs(errors=True),
    source="KIP-1102",
    why="The broker says that what the client knows of the cluster leads nowhere any more.",
)
class BootstrapsAgain(Rule):
    """After REBOOTSTRAP_REQUIRED, a client connects again to the servers that it was given at first."""

    def __init__(self) -> None:
        super().__init__()
        self._required: tuple[Request, Reply] | None = None
        self._repeats = 0

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.MetadataResponse)
        if found is not None and found.error_code == Errors.REBOOTSTRAP_REQUIRED and self._required is None:
            self._required, self._repeats = (request, reply), 0

    def asked(self, request: Request) -> None:
        required = self._required
        if required is None:
            return
        if request.is_elsewhere(required[0]):
            self.kept()
            self._required = None
            return
        self._repeats += 1
        if self._repeats >= OLD_CONNECTION_MAX:
            self.fail(f"Metadata {self._repeats} times on the same connection", *required, request)
            self._required = None
