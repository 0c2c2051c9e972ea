"""What requests of share groups have in common: their checks, and the acknowledgements of ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..coordinator.share.partition import Acknowledgement
from ..coordinator.share.state import PartitionKey
from ..protocol.errors import ApiError, Errors
from .context import Context
from .later import Later
from .share_sessions import TopicPartition

MEMBER_ID_CHARS_MAX = 36
RENEW = 4
RENEW_SINCE = 2
Outcomes = dict[TopicPartition, "ApiError | None"]


def check_ids(context: Context, request: Any) -> None:
    """ApiError(UNSUPPORTED_VERSION, INVALID_REQUEST)."""
    context.broker.sharing.check_enabled()
    if request.group_id is None or not request.member_id or len(request.member_id) > MEMBER_ID_CHARS_MAX:
        raise ApiError(Errors.INVALID_REQUEST)


def check_group(context: Context, group_id: str) -> None:
    """Before a group is looked at or changed as a whole. ApiError(UNSUPPORTED_VERSION, INVALID_GROUP_ID)."""
    context.broker.sharing.check_enabled()
    if not group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)


async def acknowledge(context: Context, request: Any) -> Outcomes:
    """Carries out a request's acknowledgements; what became of each partition's. Kafka gives reasons for records, not for partitions."""
    broker = context.broker
    found: Outcomes = {}
    empty: list[TopicPartition] = []
    waiting: dict[TopicPartition, Later[None]] = {}
    for topic in request.topics:
        topic_id = bytes(topic.topic_id)
        known = topic_id in broker.image.topic_names
        for partition in topic.partitions:
            key = topic_id, partition.partition_index
            batches = [Acknowledgement(b.first_offset, b.last_offset, b.acknowledge_types) for b in partition.acknowledgement_batches]
            if not known:
                found[key] = ApiError(Errors.UNKNOWN_TOPIC_ID)
            elif not _is_valid(batches, context.version, request.is_renew_ack):
                found[key] = ApiError(Errors.INVALID_REQUEST)
            elif not 0 <= partition.partition_index < broker.image.partition_counts.get(topic_id, 0):
                found[key] = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            elif not batches:
                empty.append(key)
            else:
                waiting[key] = broker.sharing.acknowledge(PartitionKey(request.group_id, *key), request.member_id, batches)
    for key, later in waiting.items():
        try:
            await later
            found[key] = None
        except ApiError as error:
            found[key] = error
    return found | dict.fromkeys(empty) if waiting else found


def _is_valid(batches: Sequence[Acknowledgement], version: int, renews: bool) -> bool:
    """Batches ascend, and have one type or one for each offset, of types that the version knows; RENEW only where the request says so."""
    previous = -1
    most = RENEW if version >= RENEW_SINCE else RENEW - 1
    for one in batches:
        if one.first > one.last or one.first < previous or not one.types:
            return False
        if len(one.types) > 1 and one.last - one.first != len(one.types) - 1:
            return False
        if any(not 0 <= kind <= most or (kind == RENEW and not renews) for kind in one.types):
            return False
        previous = one.last
    return True


def lock_duration_ms(context: Context, group_id: str) -> int:
    return int(context.broker.groups.group_config(group_id, "share.record.lock.duration.ms"))
