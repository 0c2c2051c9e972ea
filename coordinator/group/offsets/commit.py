"""OffsetCommit and TxnOffsetCommit."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ....protocol import codec, messages
from ....protocol.encoded import Encoded
from ....protocol.errors import ApiError, Errors
from ....protocol.java import java_length
from ....protocol.records import int64
from ...shard import Decided, Decision, Result, begun
from ..environment import Client
from ..format import NO_EXPIRY, Commits, commit_keys
from ..state import ShardState
from .long_commits import LongCommits

if TYPE_CHECKING:
    Response = TypeVar("Response", messages.OffsetCommitResponse, messages.TxnOffsetCommitResponse)
else:
    Response = TypeVar("Response")

NO_RETENTION = -1
NO_METADATA = {"", None}
GROUP_ID_NOT_FOUND_SINCE, TOPIC_IDS_SINCE = 9, 10  # OffsetCommit
TXN_GROUP_ID_NOT_FOUND_SINCE = TXN_TOPIC_IDS_SINCE = 6  # TxnOffsetCommit
PIECE = 1024  # commits that are decided in one step; those of one topic are replayed and encoded together
TOPIC_WEIGHT = 8  # how many more commits a topic takes the time of
_KEPT_PARTITIONS = 256  # of one answer that is kept, as a thousand larger ones would take much memory
_NO_CODES: Mapping[int, int] = {}
_INT = struct.Struct(">i")
_ANY_INDEX = 0x01020304
Check = Callable[[bytes, int], None]  # raises ApiError for a partition, by topic id, that the sender may not commit


def commit(
    shard: ShardState, client: Client, request: messages.OffsetCommitRequest, check: Check | None
) -> Decided[messages.OffsetCommitResponse]:
    """Commits offsets, very many in steps. A partition whose metadata is too long gets an error of its own. Raises what
    `check` raises.
    """
    r = messages.OffsetCommitResponse
    retention = request.retention_time_ms  # a sum beyond 64 bits wraps, as in Java: it has expired
    expire = NO_EXPIRY if retention == NO_RETENTION else int64(shard.env.now_ms() + retention)
    reply = Answers(r(), r.OffsetCommitResponseTopic, r.OffsetCommitResponsePartition, client.version, TOPIC_IDS_SINCE)
    return _committed(shard, request, check, reply, expire)


def commit_in_transaction(
    shard: ShardState, client: Client, request: messages.TxnOffsetCommitRequest, check: Check | None
) -> Decided[messages.TxnOffsetCommitResponse]:
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

    def add(self, topic: CommittedTopic, indexes: list[int], codes: Mapping[int, int]) -> None:
        """Adds a topic; `codes`: the errors of its partitions by their places in the request."""
        by_id = self.version >= self.ids_since
        named = self.topic(topic_id=topic.topic_id) if by_id else self.topic(name=topic.name)
        if codes:
            named.partitions = answers = list(map(self.partition, indexes))
            for place, code in codes.items():
                answers[place].error_code = code
        else:
            accepted = _accepted if len(indexes) <= _KEPT_PARTITIONS else _accepted.__wrapped__
            named.partitions = accepted(self.partition, type(self.response).__name__, self.version, tuple(indexes))
        self.response.topics.append(named)


@lru_cache(1024)
def _accepted(
    partition: Callable[[int], PartitionAnswer], response: str, version: int, indexes: tuple[int, ...]
) -> Encoded:
    """Returns partitions without errors as they are in a response: the members of a group commit the same ones again
    and again. Nothing may be added to them.
    """
    made = codec.encoded(response, version, "topics.partitions")
    made.append(partition(_ANY_INDEX))
    assert made.data.startswith(_INT.pack(_ANY_INDEX)), "an answer begins with the partition"
    rest = bytes(made.data[_INT.size :])  # the same for all
    made.data[:] = rest.join([*map(_INT.pack, indexes), b""])
    made.count = len(indexes)
    return made


def _committed(
    shard: ShardState,
    request: messages.OffsetCommitRequest | messages.TxnOffsetCommitRequest,
    check: Check | None,
    reply: Answers[Response],
    expire: int = NO_EXPIRY,
) -> Decided[Response]:
    return begun(_decided(shard, request, check, reply, expire))


def _decided(
    shard: ShardState,
    request: messages.OffsetCommitRequest | messages.TxnOffsetCommitRequest,
    check: Check | None,
    reply: Answers[Response],
    expire: int,
) -> Decision[Response]:
    """Decides about `PIECE` partitions in a step."""
    now, left = shard.env.now_ms(), PIECE
    records: list[object] = []
    for topic in request.topics:
        codes = _NO_CODES
        for at in range(0, len(topic.partitions), PIECE):
            if left <= 0:
                left = PIECE
                yield
            some = topic.partitions[at : at + PIECE]
            left -= len(some) + TOPIC_WEIGHT
            made, refused = _commits(shard, request.group_id, topic, some, check, now, expire)
            if made is not None:
                records.append(made)
            if refused:
                codes = {**codes, **{at + place: code for place, code in refused.items()}}
        shard.counts["offset_commits"] += len(topic.partitions) - len(codes)
        reply.add(topic, [p.partition_index for p in topic.partitions], codes)
    if shard.groups.get(request.group_id) is None:
        shard.put_simple(request.group_id, is_seen=bool(records))
    return Result(records, reply.response)


def _commits(
    shard: ShardState,
    group_id: str,
    topic: CommittedTopic,
    partitions: Sequence[CommittedPartition],
    check: Check | None,
    now: int,
    expire: int,
) -> tuple[Commits | None, Mapping[int, int]]:
    """Returns the commits of some partitions of a topic, None if there are none, and the error codes of those that are
    refused, by their places.
    """
    metadatas, codes = None, _NO_CODES
    if not {p.committed_metadata for p in partitions} <= NO_METADATA:
        metadatas = [p.committed_metadata or "" for p in partitions]
        codes = _too_large(shard, metadatas)
        if codes:
            partitions = [p for place, p in enumerate(partitions) if place not in codes]
            metadatas = [metadata for place, metadata in enumerate(metadatas) if place not in codes]
            if not partitions:
                return None, codes
    indexes = [p.partition_index for p in partitions]
    if check is not None:
        for index in indexes:
            check(topic.topic_id, index)
    made = (
        commit_keys(group_id, topic.name, topic.topic_id, indexes),
        now,
        [p.committed_offset for p in partitions],
        [p.committed_leader_epoch for p in partitions],
    )
    if metadatas is None and expire == NO_EXPIRY:
        return Commits(*made), codes
    return LongCommits(*made, metadatas or [""] * len(indexes), expire), codes


def _too_large(shard: ShardState, metadatas: list[str]) -> dict[int, int]:
    """Returns the error codes of commits with too much metadata, by their places in the request."""
    limit, code = shard.env.config("offset.metadata.max.bytes"), int(Errors.OFFSET_METADATA_TOO_LARGE)
    return {place: code for place, text in enumerate(metadatas) if len(text) * 2 > limit and java_length(text) > limit}
