"""OffsetCommit and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ....protocol import codec, messages
from ....protocol.errors import ApiError, Errors
from ....protocol.records import int64
from ....protocol.wire import Encoded
from ...shard import Result
from ..environment import Client
from ..format import NO_EXPIRY, Commit, Commits
from ..state import ShardState

if TYPE_CHECKING:
    Response = TypeVar("Response", messages.OffsetCommitResponse, messages.TxnOffsetCommitResponse)
else:
    Response = TypeVar("Response")

NO_RETENTION = -1
NO_METADATA = {"", None}
GROUP_ID_NOT_FOUND_SINCE, TOPIC_IDS_SINCE = 9, 10  # OffsetCommit
TXN_GROUP_ID_NOT_FOUND_SINCE = TXN_TOPIC_IDS_SINCE = 6  # TxnOffsetCommit
_KEPT_PARTITIONS = 256  # of one answer that is kept, as a thousand larger ones would take much memory
Check = Callable[[bytes, int], None]  # raises ApiError for a partition, by topic id, that the sender may not commit


def commit(
    shard: ShardState, client: Client, request: messages.OffsetCommitRequest, check: Check | None
) -> Result[messages.OffsetCommitResponse]:
    """Commits offsets. A partition whose metadata is too long gets an error of its own. Raises what `check` raises."""
    r = messages.OffsetCommitResponse
    retention = request.retention_time_ms  # a sum beyond 64 bits wraps, as in Java: it has expired
    expire = NO_EXPIRY if retention == NO_RETENTION else int64(shard.env.now_ms() + retention)
    reply = Answers(r(), r.OffsetCommitResponseTopic, r.OffsetCommitResponsePartition, client.version, TOPIC_IDS_SINCE)
    return _committed(shard, request, check, reply, expire)


def commit_in_transaction(
    shard: ShardState, client: Client, request: messages.TxnOffsetCommitRequest, check: Check | None
) -> Result[messages.TxnOffsetCommitResponse]:
    """Like `commit`, for offsets that are pending until the transaction ends. Raises what `check` raises."""
    r = messages.TxnOffsetCommitResponse
    topic, partition = r.TxnOffsetCommitResponseTopic, r.TxnOffsetCommitResponsePartition
    return _committed(shard, request, check, Answers(r(), topic, partition, client.version, TXN_TOPIC_IDS_SINCE))


def is_anonymous(request: messages.TxnOffsetCommitRequest) -> bool:
    """Whether a transaction commits offsets without naming a member of the group (KIP-447)."""
    return request.generation_id_or_member_epoch < 0 and not request.member_id and request.group_instance_id is None


# groups that do not exist


def check_new(shard: ShardState, group: None, version: int, request: messages.OffsetCommitRequest) -> None:
    """Raises ApiError(GROUP_ID_NOT_FOUND or ILLEGAL_GENERATION): for a member of a group that does not exist."""
    _check_no_member(request, version >= GROUP_ID_NOT_FOUND_SINCE)


def check_new_in_transaction(
    shard: ShardState, group: None, version: int, request: messages.TxnOffsetCommitRequest
) -> None:
    """Like `check_new`, for a commit in a transaction."""
    _check_no_member(request, version >= TXN_GROUP_ID_NOT_FOUND_SINCE)


def _check_no_member(
    request: messages.OffsetCommitRequest | messages.TxnOffsetCommitRequest, knows_not_found: bool
) -> None:
    if request.generation_id_or_member_epoch >= 0:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND if knows_not_found else Errors.ILLEGAL_GENERATION)


# the records and the reply


class CommittedPartition(Protocol):
    """A partition as both requests have it."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class CommittedTopic(Protocol):
    """A topic as both requests have it."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[CommittedPartition]: ...


class PartitionAnswer(Protocol):
    """A partition as both responses have it."""

    error_code: int


@dataclass(slots=True)
class Answers(Generic[Response]):
    """The response to a request, its classes for topics and partitions, its version, and the first version that
    identifies topics by ids instead of names.
    """

    response: Response
    topic: Callable[..., Any]
    partition: Callable[[int], PartitionAnswer]
    version: int
    ids_since: int

    def add(self, topic: CommittedTopic, indexes: list[int], codes: dict[int, int]) -> None:
        """Adds a topic; `codes`: the errors of its partitions by their places in the request."""
        by_id = self.version >= self.ids_since
        named = self.topic(topic_id=topic.topic_id) if by_id else self.topic(name=topic.name)
        if codes or len(indexes) > _KEPT_PARTITIONS:
            named.partitions = answers = list(map(self.partition, indexes))
            for place, code in codes.items():
                answers[place].error_code = code
        else:
            named.partitions = _accepted(self.partition, type(self.response).__name__, self.version, tuple(indexes))
        self.response.topics.append(named)


@lru_cache(1024)
def _accepted(
    partition: Callable[[int], PartitionAnswer], response: str, version: int, indexes: tuple[int, ...]
) -> Encoded:
    """Returns partitions without errors as they are in a response: the members of a group commit the same ones again
    and again. Nothing may be added to them.
    """
    made = codec.encoded(response, version, "topics.partitions")
    for index in indexes:
        made.append(partition(index))
    return made


def _committed(
    shard: ShardState,
    request: messages.OffsetCommitRequest | messages.TxnOffsetCommitRequest,
    check: Check | None,
    reply: Answers[Response],
    expire: int = NO_EXPIRY,
) -> Result[Response]:
    now = shard.env.now_ms()
    records: list[object] = []
    for topic in request.topics:
        partitions = topic.partitions
        indexes = [p.partition_index for p in partitions]
        codes: dict[int, int] = {}
        if expire == NO_EXPIRY and {p.committed_metadata for p in partitions} <= NO_METADATA:
            records.append(_all_of(request.group_id, topic, indexes, check, now))
        else:
            codes = _each_of(shard, request.group_id, topic, check, now, expire, records)
        shard.counts["offset_commits"] += len(indexes) - len(codes)
        reply.add(topic, indexes, codes)
    if records and shard.groups.get(request.group_id) is None:  # a commit that is refused as a whole leaves nothing
        shard.put_simple(request.group_id)
    return Result(records, reply.response)


def _all_of(group_id: str, topic: CommittedTopic, indexes: list[int], check: Check | None, now: int) -> Commits:
    """The commits of a topic that have neither metadata nor an expiry."""
    partitions = topic.partitions
    if check is not None:
        for index in indexes:
            check(topic.topic_id, index)
    return Commits(
        group_id,
        topic.name,
        topic.topic_id,
        now,
        indexes,
        [p.committed_offset for p in partitions],
        [p.committed_leader_epoch for p in partitions],
    )


def _each_of(
    shard: ShardState,
    group_id: str,
    topic: CommittedTopic,
    check: Check | None,
    now: int,
    expire: int,
    records: list[object],
) -> dict[int, int]:
    """Adds the commits of a topic; returns the error codes of refused commits by their places in the request."""
    limit = shard.env.config("offset.metadata.max.bytes")
    codes = {}
    for place, p in enumerate(topic.partitions):
        metadata = p.committed_metadata or ""
        if len(metadata) * 2 > limit and _java_length(metadata) > limit:
            codes[place] = int(Errors.OFFSET_METADATA_TOO_LARGE)
            continue
        if check is not None:
            check(topic.topic_id, p.partition_index)
        commit = Commit(
            group_id,
            topic.name,
            p.partition_index,
            p.committed_offset,
            p.committed_leader_epoch,
            metadata,
            now,
            topic.topic_id,
            expire,
        )
        records.append(commit)
    return codes


def _java_length(text: str) -> int:
    """UTF-16 code units, which Kafka counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
