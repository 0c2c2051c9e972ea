"""ShareFetch, versions 1 and 2: acquires records for a member of a share group, and takes acknowledgements of earlier
ones (KIP-932).

**Behaviour**
- Acknowledgements are carried out first. The reply waits for them, and for records at most `MaxWaitMs`.
- Where all share-partitions are full of records whose holders all wait, the member among them, only acknowledgements of
  these make room, and they come over the connections that the waits block. Such fetches are answered after 2 ms, and
  after twice as long each time while the member acknowledges nothing (Kafka: after `MaxWaitMs`; `ottla.group.settle`).
- Negative `MaxBytes` fail each partition, and an unknown acquire mode the whole request, with UNKNOWN_SERVER_ERROR.
- A session that begins with a partition twice fails with UNKNOWN_SERVER_ERROR, after the session before it has ended.
- A client beyond its `consumer_byte_rate` gets no records; what was acquired stays so until its locks end.
- A request that renews locks fetches nothing; all its limits must be zero.

**State**
- A share session belongs to the member and its connection.

**Versions**
- 1 the number of records and the batch size, the duration of the acquisition lock
- 2 acquiring by record (KIP-1206), renewing locks (KIP-1222)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ..error_places import COORDINATOR, Place, Text, array, codes
from ..later import Later, drive
from ..limits import SHARE_SESSIONS
from ..net.context import Context
from ..replica.fetch_reads import EMPTY
from ..share.sessions import SessionKey, ShareSession, TopicPartition, Wanted
from ..share.share_fetch import ShareFetch, Terms
from ._nodes import node_endpoints
from ._reply_size import reply_size
from ._share_requests import (
    GROUPS,
    RENEW_SINCE,
    TOPICS,
    Outcomes,
    acknowledge,
    check_ids,
    denied_topics,
    leader_of,
    lock_duration_ms,
)

if TYPE_CHECKING:
    from ..share.share_fetch import Found

AUTHORIZATION = (GROUPS, TOPICS)
LIMITS = {"maxBytes": "max_bytes", "minBytes": "min_bytes", "maxRecords": "max_records", "maxWaitMs": "max_wait_ms"}
ACQUIRE_MODES = (0, 1)  # whole batches, or so many records
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
_PARTITIONS = (
    array("responses", "topics", topic_id="topic_id"),
    array("partitions", "partitions", partition="partition_index"),
)
ERRORS = (
    Place(
        "the whole",
        codes(
            "GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST SHARE_SESSION_NOT_FOUND "
            "INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_LIMIT_REACHED"
        ),
    ),
    Place(
        "each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER LEADER_NOT_AVAILABLE TOPIC_AUTHORIZATION_FAILED "
            "CORRUPT_MESSAGE OFFSET_OUT_OF_RANGE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH GROUP_ID_NOT_FOUND "
            "OFFSET_NOT_AVAILABLE UNKNOWN_TOPIC_ID FENCED_STATE_EPOCH"
        ),
        _PARTITIONS,
        others=(("records", b""), ("acquired_records", ())),
        text=Text.NOTHING,
        of_whole=False,
        is_kept=True,
    ),
    Place(
        "the acknowledgements of each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST "
            "KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH GROUP_ID_NOT_FOUND UNKNOWN_TOPIC_ID INVALID_RECORD_STATE "
            "FENCED_STATE_EPOCH"
        ),
        _PARTITIONS,
        text=Text.OWN,
        of_whole=False,
        is_kept=True,
        code="acknowledge_error_code",
        message="acknowledge_error_message",
    ),
)


async def handle(context: Context, request: messages.ShareFetchRequest) -> messages.ShareFetchResponse:
    r = messages.ShareFetchResponse
    renews = context.version >= RENEW_SINCE and request.is_renew_ack
    acknowledges = any(p.acknowledgement_batches for t in request.topics for p in t.partitions)
    try:
        member = check_ids(context, request)
        _check_renewal(request, renews)
        entries, session = _session(context, request, member, acknowledges)
    except ApiError as error:
        if error.code == Errors.SHARE_SESSION_LIMIT_REACHED:
            context.broker.limits.reached(SHARE_SESSIONS, context.client_address)
            await context.broker.turn.pause(max(0, request.max_wait_ms))
        return r(error_code=error.code)
    denied = await denied_topics(context, request, entries)
    outcomes = drive(acknowledge(context, request, member, denied)) if acknowledges else None
    fetched: Found = {}
    if not renews and request.share_session_epoch != FINAL_EPOCH:
        fetched = await _fetch(context, request, session, member, entries, denied)
    settled = {} if outcomes is None else await _settled(outcomes, fetched)
    response = r(acquisition_lock_timeout_ms=lock_duration_ms(context, member.group_id))
    topics = {} if _is_throttled(context, session, fetched) else _told(session, fetched)
    for key, outcome in settled.items():
        data = topics.setdefault(key, r.PartitionData(partition_index=key[1], records=EMPTY))
        if outcome is not None:
            data.acknowledge_error_code, data.acknowledge_error_message = outcome.code, outcome.own_message
    response.responses = _by_topic(topics)
    _name_leaders(context, response)
    if request.share_session_epoch == FINAL_EPOCH:
        context.broker.share_partitions.end_session(member)
    return response


def _check_renewal(request: messages.ShareFetchRequest, renews: bool) -> None:
    """Raises ApiError(INVALID_REQUEST)."""
    if not renews:
        return
    wrong = [f"{name} must be set to 0, " for name, field in LIMITS.items() if getattr(request, field)]
    if wrong:
        raise ApiError(Errors.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _session(
    context: Context,
    request: messages.ShareFetchRequest,
    key: SessionKey,
    acknowledges: bool,
) -> tuple[list[Wanted], ShareSession | None]:
    """Returns the partitions to fetch, and the session if it already existed. Raises ApiError."""
    names, sessions = context.broker.image.topic_names, context.broker.share_partitions.sessions
    wanted = [
        Wanted(bytes(t.topic_id), p.partition_index, names.get(bytes(t.topic_id)))
        for t in request.topics
        for p in t.partitions
    ]
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        sessions.get(key)
        return [], None
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise ApiError(Errors.INVALID_REQUEST)
        sessions.begin(key, context.peer, wanted)
        return wanted, None
    session = sessions.take(key, epoch)
    if acknowledges:
        session.own_waits = 0
    sessions.change(
        session, wanted, [(bytes(t.topic_id), index) for t in request.forgotten_topics_data for index in t.partitions]
    )
    entries = list(session.entries.values())
    turn = epoch % len(entries) if entries else 0
    return entries[turn:] + entries[:turn], session


async def _fetch(
    context: Context,
    request: messages.ShareFetchRequest,
    session: ShareSession | None,
    member: SessionKey,
    entries: list[Wanted],
    denied: Collection[str],
) -> Found:
    broker = context.broker
    found: Found = {}
    wanted: list[TopicPartition] = []
    for one in entries:
        error = None
        if one.topic is None:
            error = ApiError(Errors.UNKNOWN_TOPIC_ID)
        elif one.topic in denied:
            error = ApiError(TOPICS.code)
        elif (one.topic, one.partition) not in broker.partitions.by_name:
            error = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        key = one.topic_id, one.partition
        if error is None:
            wanted.append(key)
        else:
            found[key] = messages.ShareFetchResponse.PartitionData(
                partition_index=one.partition, error_code=error.code, records=EMPTY
            )
    if wanted and request.share_acquire_mode not in ACQUIRE_MODES:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
    quota_max = None if context.usage is None else context.usage.fetch_bytes_max()
    if quota_max is not None:
        max_bytes = int(min(max_bytes, quota_max))
    if not wanted or not request.max_records or not max_bytes:
        return found
    level = str(broker.settings.of_group(member.group_id, "share.isolation.level")).lower()
    terms = Terms(
        member.group_id,
        member.member_id,
        request.share_acquire_mode,
        request.batch_size,
        request.max_records,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.max_wait_ms,
        ISOLATION_LEVELS[level],
    )
    return found | await ShareFetch(broker.share_partitions, terms, wanted, session).begin()


async def _settled(outcomes: Later[Outcomes], fetched: Found) -> Outcomes:
    """Returns the error of each acknowledgement, None if it is written."""
    try:
        return await outcomes
    except BaseException:  # the connection is closed: nothing will send the records
        _release(fetched)
        raise


def _release(fetched: Found) -> None:
    for data in fetched.values():
        if data.records is not EMPTY:
            data.records.release()


def _name_leaders(context: Context, response: messages.ShareFetchResponse) -> None:
    """Names the leaders of partitions that this node does not lead, and their endpoints."""
    leaders: list[int] = []
    for topic in response.responses:
        for data in topic.partitions:
            leader = leader_of(context, bytes(topic.topic_id), data.partition_index, data.error_code)
            if leader is not None:
                data.current_leader.leader_id, data.current_leader.leader_epoch = leader
                leaders.append(leader[0])
    response.node_endpoints = node_endpoints(context, messages.ShareFetchResponse.NodeEndpoint, leaders)


def _told(session: ShareSession | None, fetched: Found) -> Found:
    """Returns the partitions to report: all of them at the beginning of a session, then only those with news."""
    if session is None:
        return fetched
    return {key: data for key, data in fetched.items() if session.is_news(key, len(data.records) > 0, data.error_code)}


def _is_throttled(context: Context, session: ShareSession | None, fetched: Found) -> bool:
    """Counts the reply for quotas. A client that is throttled gets nothing of what was fetched, which stays acquired,
    as in Kafka.
    """
    usage = context.usage
    if usage is None:
        return False
    usage.resume()
    news = {
        key: data
        for key, data in fetched.items()
        if session is None or session.has_news(key, len(data.records) > 0, data.error_code)
    }
    if not usage.fetched(reply_size(context, messages.ShareFetchResponse(responses=_by_topic(news)))):
        return False
    _release(fetched)
    return True


def _by_topic(found: Found) -> list[messages.ShareFetchResponse.ShareFetchableTopicResponse]:
    topics: dict[bytes, messages.ShareFetchResponse.ShareFetchableTopicResponse] = {}
    for (topic_id, _), data in found.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = messages.ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_id)
        topic.partitions.append(data)
    return list(topics.values())
