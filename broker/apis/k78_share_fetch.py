"""ShareFetch, versions 1 and 2: a member of a share group gets records under a lease, and says what became of earlier ones (KIP-932).

1 the greatest number of records, the size of batches, the lease's duration; 2 acquiring by record (KIP-1206), renewing leases (KIP-1222).
A session belongs to the member and its connection. Acknowledgements come first; the reply waits for both, and for records at most `MaxWaitMs`.
A request that renews leases fetches nothing, and all its limits must be zero.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..fetching import EMPTY
from ..later import drive
from ..share_fetching import Found, ShareFetch, Terms
from ..share_requests import RENEW_SINCE, acknowledge, check_ids, lock_duration_ms
from ..share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession, TopicPartition, Wanted

LIMITS = {"maxBytes": "max_bytes", "minBytes": "min_bytes", "maxRecords": "max_records", "maxWaitMs": "max_wait_ms"}
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}


async def handle(context: Context, request: Any) -> Any:
    r = messages.ShareFetchResponse
    renews = context.version >= RENEW_SINCE and request.is_renew_ack
    acknowledges = any(p.acknowledgement_batches for t in request.topics for p in t.partitions)
    try:
        check_ids(context, request)
        _check_renewal(request, renews)
        entries, session = _session(context, request, acknowledges)
    except ApiError as error:
        if error.code == Errors.SHARE_SESSION_LIMIT_REACHED:
            await context.broker.pause(max(0, request.max_wait_ms))
        return r(error_code=error.code)
    outcomes = drive(acknowledge(context, request)) if acknowledges else None
    fetched: Found = {}
    if not renews and request.share_session_epoch != FINAL_EPOCH:
        fetched = await _fetch(context, request, entries)
    response = r(acquisition_lock_timeout_ms=lock_duration_ms(context, request.group_id))
    topics = _told(session, fetched)
    for key, outcome in (await outcomes).items() if outcomes is not None else ():
        data = topics.setdefault(key, r.PartitionData(partition_index=key[1], records=EMPTY))
        if outcome is not None:
            data.acknowledge_error_code, data.acknowledge_error_message = outcome.code, outcome.message
    response.responses = _by_topic(topics)
    if request.share_session_epoch == FINAL_EPOCH:
        context.broker.sharing.end_session(SessionKey(request.group_id, request.member_id))
    return response


def _check_renewal(request: Any, renews: bool) -> None:
    """ApiError(INVALID_REQUEST)."""
    wrong = [f"{name} must be set to 0, " for name, field in LIMITS.items() if getattr(request, field)]
    if renews and wrong:
        raise ApiError(Errors.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _session(context: Context, request: Any, acknowledges: bool) -> tuple[list[Wanted], ShareSession | None]:
    """What is fetched, and the session where it went on and was not begun. ApiError."""
    names, sessions = context.broker.image.topic_names, context.broker.sharing.sessions
    wanted = [Wanted(bytes(t.topic_id), p.partition_index, names.get(bytes(t.topic_id))) for t in request.topics for p in t.partitions]
    key, epoch = SessionKey(request.group_id, request.member_id), request.share_session_epoch
    if epoch == FINAL_EPOCH:
        sessions.get(key)
        return [], None
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise ApiError(Errors.INVALID_REQUEST)
        sessions.begin(key, context.peer, wanted)
        return wanted, None
    session = sessions.take(key, epoch)
    session.update(wanted, [(bytes(t.topic_id), index) for t in request.forgotten_topics_data for index in t.partitions])
    entries = list(session.entries.values())
    turn = epoch % len(entries) if entries else 0
    return entries[turn:] + entries[:turn], session


async def _fetch(context: Context, request: Any, entries: list[Wanted]) -> Found:
    broker = context.broker
    found: Found = {}
    wanted: list[TopicPartition] = []
    for one in entries:
        error = None
        if one.topic is None:
            error = ApiError(Errors.UNKNOWN_TOPIC_ID)
        elif (one.topic, one.partition) not in broker.partitions.by_name:
            error = ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        key = one.topic_id, one.partition
        if error is None:
            wanted.append(key)
        else:
            found[key] = messages.ShareFetchResponse.PartitionData(partition_index=one.partition, error_code=error.code, records=EMPTY)
    max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
    if not wanted or not request.max_records or not max_bytes:
        return found
    level = str(broker.groups.group_config(request.group_id, "share.isolation.level")).lower()
    terms = Terms(
        request.group_id,
        request.member_id,
        request.share_acquire_mode,
        request.batch_size,
        request.max_records,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.max_wait_ms,
        ISOLATION_LEVELS[level],
    )
    return found | await ShareFetch(broker.sharing, terms, wanted).begin()


def _told(session: ShareSession | None, fetched: Found) -> Found:
    """What the member has not been told: everything at the beginning of a session, then what is news."""
    if session is None:
        return fetched
    return {key: data for key, data in fetched.items() if session.is_news(key, len(data.records) > 0, data.error_code)}


def _by_topic(found: Found) -> list[Any]:
    topics: dict[bytes, Any] = {}
    for (topic_id, _), data in found.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = messages.ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_id)
        topic.partitions.append(data)
    return list(topics.values())
