"""Fetch, versions 4 to 18: records of partitions, now or when there are enough.

4 isolation level (KIP-98); 5 log start offset; 7 sessions (KIP-227); 9 leader epoch check (KIP-320); 10 zstd; 11 closest replica;
12 flexible, diverging epochs (KIP-595); 13 topic ids (KIP-516); 15 replica state in a tag; 16 endpoints of new leaders (KIP-951);
17 directory ids; 18 high watermark of followers (KIP-1166).
Consumers only: a request of a follower is answered NOT_LEADER_OR_FOLLOWER, as nothing replicates from here.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context
from ..fetching import EMPTY, FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Entry, Fetch, SessionCache, read_entry
from ..later import Later

TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 12


def cache(context: Context) -> SessionCache:
    broker = context.broker
    found = broker.extensions.get("fetch_sessions")
    if found is None:
        config = broker.config
        found = SessionCache(config["max.incremental.fetch.session.cache.slots"], 120_000)
        broker.extensions["fetch_sessions"] = found
    sessions: SessionCache = found
    return sessions


def handle(context: Context, request: Any) -> Any:
    fetch = _context_of(context, request)
    if isinstance(fetch, int):
        return messages.FetchResponse(error_code=fetch)
    fetch.tells_leaders = context.version >= LEADERS_SINCE
    return _serve(context, request, fetch)


def _context_of(context: Context, request: Any) -> Fetch | int:
    """What is fetched: a session as this request changes it, or everything named here. An error code where the session is not so."""
    sessions, broker = cache(context), context.broker
    by_id = context.version >= TOPIC_IDS_SINCE
    now = broker.schedule.monotonic_ms()
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        old = sessions.get(request.session_id)
        if old is not None:
            sessions.remove(old)
        fetch = Fetch(broker, by_id)
        _put_all(fetch, request)
        if request.session_epoch == INITIAL_EPOCH and fetch.entries:
            sessions.add(fetch, now)
        return fetch
    session = sessions.get(request.session_id)
    if session is None:
        return int(Errors.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        return int(Errors.INVALID_FETCH_SESSION_EPOCH)
    if session.by_id != by_id:
        return int(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
    sessions.touch(session, now)
    session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
    _put_all(session, request)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.forget((topic.topic_id if by_id else topic.topic, index))
    if not session.entries:
        sessions.remove(session)
    return session


def _put_all(fetch: Fetch, request: Any) -> None:
    for topic in request.topics:
        for wanted in topic.partitions:
            fetch.put(topic, wanted)


def _serve(context: Context, request: Any, fetch: Fetch) -> Any:
    incremental = request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
    found, size, hurry = _read_all(context, request, fetch, incremental)
    if hurry or request.max_wait_ms <= 0 or not fetch.entries or size >= request.min_bytes:
        return _reply(context, fetch, found, incremental)
    for data in found.values():
        _release(data)
    outcome: Later[Any] = Later()

    def go_on(_: Any) -> None:
        again, _, _ = _read_all(context, request, fetch, incremental)
        outcome.finish(_reply(context, fetch, again, incremental))

    parked = fetch.park(request.min_bytes - size, request.max_wait_ms, request.isolation_level)
    outcome.on_cancel = parked.cancel
    parked.when_done(go_on)
    return outcome


def _release(data: Any) -> None:
    if data.records is not EMPTY:
        data.records.release()


def _read_all(context: Context, request: Any, fetch: Fetch, incremental: bool) -> tuple[dict[Entry, Any], int, bool]:
    """What every entry that may have news has to say; how many bytes of records; whether it cannot wait."""
    budget = min(request.max_bytes, context.broker.config["fetch.max.bytes"])
    replica_id = max(request.replica_id, request.replica_state.replica_id)
    found: dict[Entry, Any] = {}
    size, hurry = 0, False
    entries = list(fetch.dirty) if incremental else list(fetch.entries.values())
    fetch.dirty.clear()
    for entry in entries:
        data = read_entry(fetch, entry, budget - size, request.isolation_level, size == 0, replica_id >= 0)
        length = len(data.records)
        size += length
        if data.error_code:
            hurry = True
        if data.diverging_epoch.epoch >= 0:
            hurry = True
        if data.error_code or length or data.high_watermark > entry.offset:
            fetch.dirty[entry] = None  # there may be more to say next time
        found[entry] = data
    return found, size, hurry


def _reply(context: Context, fetch: Fetch, found: dict[Entry, Any], incremental: bool) -> Any:
    topics: dict[Any, Any] = {}
    for entry, data in found.items():
        if incremental and not _is_news(entry, data):
            continue
        entry.told_high_watermark = -1 if data.error_code else data.high_watermark
        entry.told_start_offset = data.log_start_offset
        topic = topics.get(entry.key[0])
        if topic is None:
            topic = topics[entry.key[0]] = messages.FetchResponse.FetchableTopicResponse(topic=entry.topic, topic_id=entry.topic_id)
        topic.partitions.append(data)
        if len(data.records) and fetch.id != NO_SESSION:  # who got something goes to the end of the line
            fetch.dirty.pop(entry, None)
            fetch.dirty[entry] = None
    response = messages.FetchResponse(session_id=fetch.id, responses=list(topics.values()))
    if any(d.current_leader.leader_id >= 0 for d in found.values()) and context.version >= 16:
        response.node_endpoints = node_endpoints(context, messages.FetchResponse.NodeEndpoint)
    return response


def _is_news(entry: Entry, data: Any) -> bool:
    return bool(
        len(data.records)
        or data.error_code
        or data.diverging_epoch.epoch >= 0
        or data.high_watermark != entry.told_high_watermark
        or data.log_start_offset != entry.told_start_offset
    )


def node_endpoints(context: Context, endpoint: Any) -> list[Any]:
    """Where the leaders named in a reply are, as the client's listener reaches them."""
    config = context.broker.config
    at = config.advertised[context.listener]
    return [endpoint(node_id=config.node_id, host=at.host, port=at.port, rack=config["broker.rack"])]
