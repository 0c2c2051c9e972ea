"""Helpers of the share group APIs: checks of requests, and the acknowledgements of ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.share.acknowledge_types import GAP, RENEW
from ...coordinator.share.partition import Acknowledgement, acknowledgement
from ...coordinator.share.state import PartitionKey
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..later import Later
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share.sessions import SessionKey, TopicPartition, Wanted

if TYPE_CHECKING:
    Request = messages.ShareFetchRequest | messages.ShareAcknowledgeRequest

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.topic_id", Refusal.ELEMENT)
MEMBER_ID_CHARS_MAX = 36
RENEW_SINCE = 2
Outcomes = dict[TopicPartition, "ApiError | None"]


def check_ids(context: Context, request: Request) -> SessionKey:
    """Returns whose session it is. Raises ApiError(UNSUPPORTED_VERSION,
    INVALID_REQUEST or GROUP_AUTHORIZATION_FAILED).
    """
    context.broker.share_partitions.check_enabled()
    if request.group_id is None:
        raise ApiError(Errors.INVALID_REQUEST)
    GROUPS.require(context, request.group_id)
    if not request.member_id or len(request.member_id) > MEMBER_ID_CHARS_MAX:
        raise ApiError(Errors.INVALID_REQUEST)
    return SessionKey(request.group_id, request.member_id)


async def denied_topics(context: Context, request: Request, entries: Iterable[Wanted] = ()) -> Collection[str]:
    """Returns the names of the topics of a request, and of `entries`, that the principal may not read; in steps if they
    are many.
    """
    if context.authorizer is None:
        return ()
    names = context.broker.image.topic_names
    asked = [*(names.get(bytes(topic.topic_id)) for topic in request.topics), *(one.topic for one in entries)]
    return await TOPICS.denied(context, filter(None, asked))


def check_group(context: Context, group_id: str) -> None:
    """Checks made before a group is read or changed as a whole.
    Raises ApiError(UNSUPPORTED_VERSION) or ApiError(INVALID_GROUP_ID).
    """
    context.broker.share_partitions.check_enabled()
    if not group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)


async def acknowledge(context: Context, request: Request, member: SessionKey, denied: Collection[str]) -> Outcomes:
    """Carries out the acknowledgements of a request; returns the outcome of each partition. Kafka gives messages for
    records, not for partitions.

    `denied`: the topics that the principal may not read.
    """
    broker = context.broker
    found: Outcomes = {}
    empty: list[TopicPartition] = []
    waiting: dict[TopicPartition, Later[None]] = {}
    # of a partition that is named again the last counts, as in Kafka
    named = {(bytes(t.topic_id), part.partition_index): part for t in request.topics for part in t.partitions}
    for key, part in named.items():
        name = broker.image.topic_names.get(key[0])
        given = part.acknowledgement_batches
        batches = [acknowledgement(b.first_offset, b.last_offset, b.acknowledge_types) for b in given]
        if name is None:
            found[key] = ApiError(Errors.UNKNOWN_TOPIC_ID)
        elif not _is_valid(batches, context.version, request.is_renew_ack):
            found[key] = ApiError(Errors.INVALID_REQUEST)
        elif name in denied:
            found[key] = ApiError(TOPICS.code)
        elif not 0 <= key[1] < broker.image.partition_counts.get(key[0], 0):
            found[key] = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        elif not batches:
            empty.append(key)
        else:
            waiting[key] = broker.share_partitions.acknowledge(
                PartitionKey(member.group_id, *key), member.member_id, batches
            )
    carried_out = Later.all(waiting.values())
    found |= zip(waiting, await carried_out, strict=True)
    return found | dict.fromkeys(empty) if waiting else found


def leader_of(context: Context, topic_id: bytes, index: int, error_code: int) -> tuple[int, int] | None:
    """Returns the leader of a partition and its epoch, if an error says that it is another one, or one of another state
    (then it may be this broker).
    """
    partition = context.broker.partitions.by_id.get((topic_id, index))
    if partition is None or partition.leader is None:
        return None
    if error_code not in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH):
        return None
    return context.broker.partitions.known_leader(partition)


def _is_valid(batches: Sequence[Acknowledgement], version: int, renews: bool) -> bool:
    """Whether the batches ascend and have one type, or one per offset, that the version supports. RENEW needs the
    request's `is_renew_ack`.
    """
    previous = -1
    allowed = frozenset(range(GAP, RENEW + (version >= RENEW_SINCE and renews)))
    for one in batches:
        if one.first > one.last or one.first < previous or not one.types:
            return False
        if len(one.types) > 1 and one.last - one.first != len(one.types) - 1:
            return False
        if not allowed.issuperset(one.types):
            return False
        previous = one.last
    return True


def lock_duration_ms(context: Context, group_id: str) -> int:
    return int(context.broker.settings.of_group(group_id, "share.record.lock.duration.ms"))
