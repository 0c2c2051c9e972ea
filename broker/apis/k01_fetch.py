"""Fetch, versions 4 to 18: returns records of partitions, at once or when there are enough.

**Behaviour**
- A broker that asks as a follower gets records up to the end of the log, and moves nothing: where the replicas are is
  simulated. One that is no replica gets NOT_LEADER_OR_FOLLOWER, or UNKNOWN_LEADER_EPOCH if it knows the epoch.
- With `replica.selector.class` a client with a rack is sent to a replica in this rack, if one is in sync. From version
  11 on clients may read from any replica, up to its high watermark; earlier versions from the leader only.

**State**
- Fetch sessions belong to the broker, not to the connection (KIP-227).

**Versions**
- 4 isolation level (KIP-98)
- 5 log start offset
- 6 KAFKA_STORAGE_ERROR; earlier versions get NOT_LEADER_OR_FOLLOWER (KIP-112)
- 7 sessions (KIP-227)
- 9 check of the leader epoch (KIP-320)
- 10 zstd (KIP-110)
- 11 closest replica (KIP-392)
- 12 flexible, diverging epochs (KIP-595)
- 13 topic ids (KIP-516)
- 15 replica state in a tag (KIP-903)
- 16 endpoints of new leaders (KIP-951)
- 17 directory ids (KIP-853)
- 18 high watermark of followers (KIP-1166)
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import codec, messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ...protocol.session_epochs import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from ..error_places import Place, array, codes
from ..later import Later, after, large_reply
from ..limits import FETCH_SESSIONS
from ..net.context import Context
from ..replica.fetch_sessions import NO_SESSION, Entry, Fetch, SessionCache
from ..replica.opening import many_unopened, open_many_in_steps
from ..replica.partition import ISOLATION_LEVELS
from ..replica.partitions import NO_REPLICA
from ..security.authorization import Check, Refusal
from ..steps import Pace, slices
from ._fetch_reading import Reading, read_in_steps, replica_of
from ._nodes import node_endpoints
from ._repeated_fetches import note
from ._reply_size import reply_size

if TYPE_CHECKING:
    Data = messages.FetchResponse.PartitionData
    Outcome = messages.FetchResponse | Later[messages.FetchResponse]
    _Told = tuple[Entry, int, int, int]  # with the high watermark, the start offset and the order
    _Topics = list[messages.FetchResponse.FetchableTopicResponse]  # of a reply

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.topic", Refusal.ELEMENT)
REPLICAS = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
AUTHORIZATION = (TOPICS, REPLICAS)


LARGE = 1000  # partitions that are read in one step
TOPIC_IDS_SINCE = 13
SWEEP_MS = 60_000  # between two checks for unused sessions
FOLLOWERS_SINCE = 11
LEADERS_SINCE = 16
STORAGE_ERRORS_SINCE = 6
PARTITIONS = Place(
    "each partition",
    codes(
        "OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER "
        "REPLICA_NOT_AVAILABLE TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION "
        "KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNSUPPORTED_COMPRESSION_TYPE "
        "UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID OFFSET_MOVED_TO_TIERED_STORAGE"
    ),
    (
        array("responses", "topics", topic="topic", topic_id="topic_id"),
        array("partitions", "partitions", partition=("partition_index", "partition")),
    ),
    others=(("high_watermark", -1), ("records", b"")),
)
ERRORS = (
    Place(
        "the whole",
        codes("FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR"),
        since=7,
        copied=("session_id",),
    ),
    replace(PARTITIONS, until=TOPIC_IDS_SINCE - 1),
    replace(PARTITIONS, since=TOPIC_IDS_SINCE, of_whole=False),
)


def cache(context: Context) -> SessionCache:
    broker = context.broker
    found = broker.extensions.get("fetch_sessions")
    if found is None:
        config = broker.config
        found = SessionCache(config["max.incremental.fetch.session.cache.slots"], 120_000, broker.chance)
        broker.extensions["fetch_sessions"] = made = found
        broker.turn.every(
            lambda: SWEEP_MS, lambda: made.end_idle(broker.schedule.monotonic_ms()), due_ms=made.first_idle_ms
        )
    sessions: SessionCache = found
    return sessions


def handle(context: Context, request: messages.FetchRequest) -> Outcome:
    note(context, request)
    fetch = _context_of(context, request)
    if isinstance(fetch, int):
        return messages.FetchResponse(error_code=fetch)
    if request.topics:
        if _is_large(request):
            return large_reply(_put_and_serve(context, request, fetch))
        for topic in request.topics:
            for wanted in topic.partitions:
                fetch.put(topic, wanted)
    return _changed_and_served(context, request, fetch)


def _is_large(request: messages.FetchRequest) -> bool:
    topics = request.topics
    return len(topics) > LARGE or sum([len(topic.partitions) for topic in topics]) > LARGE


async def _put_and_serve(context: Context, request: messages.FetchRequest, fetch: Fetch) -> messages.FetchResponse:
    """Serves a request with very many partitions, which are put into the session in steps."""
    session_id, pace = fetch.id, Pace(fetch.turn, LARGE)
    try:
        for topic in request.topics:
            for some in slices(topic.partitions, LARGE):
                for wanted in some:
                    fetch.put(topic, wanted)
                if pace.is_over(len(some)):
                    await pace.rest()
    except BaseException:  # the connection is closed; the session stays, with what it has
        if fetch.id != NO_SESSION:
            cache(context).changed(fetch)
        raise
    if fetch.id != session_id:  # it was evicted meanwhile
        return messages.FetchResponse(error_code=int(Errors.FETCH_SESSION_ID_NOT_FOUND))
    outcome = _changed_and_served(context, request, fetch)
    return outcome if isinstance(outcome, messages.FetchResponse) else await outcome


def _changed_and_served(context: Context, request: messages.FetchRequest, fetch: Fetch) -> Outcome:
    """Serves a request whose partitions have been put into the session."""
    _note_change(context, request, fetch)
    fetch.may_follow = context.version >= FOLLOWERS_SINCE
    has_selector = fetch.may_follow and request.rack_id and not _is_replica(request)
    fetch.rack_id = request.rack_id if has_selector and context.broker.config["replica.selector.class"] else ""
    fetch.tells_leaders = context.version >= LEADERS_SINCE
    fetch.tells_endpoints = fetch.tells_leaders and not _is_replica(request)  # brokers know each other
    fetch.tells_storage_errors = context.version >= STORAGE_ERRORS_SINCE
    return _serve(context, request, fetch)


def _context_of(context: Context, request: messages.FetchRequest) -> Fetch | int:
    """Returns the fetch context: the session of this request, or a new one; an error code if the session id or epoch is
    wrong.
    """
    sessions, broker = cache(context), context.broker
    by_id = context.version >= TOPIC_IDS_SINCE
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        old = sessions.get(request.session_id)
        if old is not None:
            sessions.remove(old)
        return Fetch(broker.turn, broker.partitions, by_id)
    session = sessions.get(request.session_id)
    if session is None:
        return int(Errors.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        return int(Errors.INVALID_FETCH_SESSION_EPOCH)
    if session.by_id != by_id:
        return int(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
    sessions.touch(session, broker.schedule.monotonic_ms())
    session.epoch = next_epoch(session.epoch)
    return session


def _note_change(context: Context, request: messages.FetchRequest, fetch: Fetch) -> None:
    """Takes forgotten partitions out of a session, and makes a session of a new context."""
    sessions = cache(context)
    if fetch.id != NO_SESSION:
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                fetch.forget((topic.topic_id if fetch.by_id else topic.topic, index))
        return sessions.changed(fetch)
    if request.session_epoch == INITIAL_EPOCH:
        broker = context.broker
        sessions.add(fetch, broker.schedule.monotonic_ms())
        if fetch.id == NO_SESSION:
            broker.limits.reached(FETCH_SESSIONS, context.client_address)


def _serve(context: Context, request: messages.FetchRequest, fetch: Fetch) -> Outcome:
    incremental = request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
    if context.broker.replicas.opening:
        wanted = list(fetch.dirty if incremental else fetch.entries.values())
        if len(wanted) > LARGE or many_unopened(map(fetch.find, wanted)):
            return large_reply(_serve_when_open(context, request, fetch, incremental, wanted))
    if len(fetch.entries) > LARGE and context.authorizer is not None:
        return large_reply(_serve_in_steps(context, request, fetch, incremental))
    refused = _refused_at_once(context, request, fetch)
    _check_isolation(request, fetch, refused)
    reading = Reading(context, request, fetch, incremental, refused)
    if len(reading.entries) > LARGE:
        return large_reply(_serve_in_steps(context, request, fetch, incremental, reading))
    reading.read(reading.entries)
    if reading.is_enough():
        return _answer(context, request, reading)
    reading.release()

    def go_on(_: Later[None]) -> messages.FetchResponse:
        if context.usage is not None:
            context.usage.resume()
        if _is_overtaken(request, reading):
            return _overtaken(reading)
        refused = _refused_at_once(context, request, fetch)
        again = Reading(context, request, fetch, incremental, refused, reading.session_id)
        again.read(again.entries)
        return _answer(context, request, again)

    return after(fetch.park(reading.min_bytes - reading.size, request.max_wait_ms, request.isolation_level), go_on)


def _check_isolation(request: messages.FetchRequest, fetch: Fetch, refused: Container[Entry]) -> None:
    """Raises ApiError for an unknown isolation level, where a partition is to be read, as in Kafka."""
    if request.isolation_level in ISOLATION_LEVELS:
        return
    if any(fetch.find(entry) for entry in fetch.entries.values() if entry not in refused):
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)


async def _serve_when_open(
    context: Context, request: messages.FetchRequest, fetch: Fetch, incremental: bool, wanted: list[Entry]
) -> messages.FetchResponse:
    await open_many_in_steps(fetch.turn, wanted, fetch.find)
    return await _serve_in_steps(context, request, fetch, incremental)


async def _serve_in_steps(
    context: Context,
    request: messages.FetchRequest,
    fetch: Fetch,
    incremental: bool,
    reading: Reading | None = None,
) -> messages.FetchResponse:
    """Like `_serve`, but some partitions per step."""
    if reading is None:
        refused = await _refused(context, request, fetch)
        _check_isolation(request, fetch, refused)
        reading = Reading(context, request, fetch, incremental, refused)
    fetch.advanced = {}
    try:
        await read_in_steps(context, reading)
        if not reading.is_enough() and not reading.is_outdated(fetch.advanced):
            reading.release()
            parked = fetch.park(reading.min_bytes - reading.size, request.max_wait_ms, request.isolation_level)
            await context.paused(parked)
            fetch.advanced = None
            if _is_overtaken(request, reading):
                return _overtaken(reading)
            refused = await _refused(context, request, fetch)
            reading = Reading(context, request, fetch, incremental, refused, reading.session_id)
            await read_in_steps(context, reading)
    finally:
        fetch.advanced = None
        fetch.stop_listening()
    return await _answer_in_steps(context, request, reading)


def _is_overtaken(request: messages.FetchRequest, reading: Reading) -> bool:
    """Whether another fetch of the session came while this one waited."""
    return reading.incremental and reading.fetch.epoch != next_epoch(request.session_epoch)


def _overtaken(reading: Reading) -> messages.FetchResponse:
    code = int(Errors.INVALID_FETCH_SESSION_EPOCH)
    return messages.FetchResponse(error_code=code, session_id=reading.session_id)


async def _refused(context: Context, request: messages.FetchRequest, fetch: Fetch) -> dict[Entry, int]:
    """Like `_refused_at_once`, in steps."""
    if context.authorizer is None or _is_replica(request):
        return _refused_at_once(context, request, fetch)
    _, refused = await TOPICS.parted(context, list(fetch.entries.values()), partial(_topic_of, fetch))
    return dict.fromkeys(refused, TOPICS.code)


def _refused_at_once(context: Context, request: messages.FetchRequest, fetch: Fetch) -> dict[Entry, int]:
    """Returns the entries that the principal may not read, with their error: a follower needs the cluster, a consumer
    the topic.
    """
    if context.authorizer is None:
        return {}
    if _is_replica(request):
        return {} if REPLICAS.allows(context) else dict.fromkeys(fetch.entries.values(), TOPICS.code)
    named = [(entry, _topic_of(fetch, entry)) for entry in fetch.entries.values()]
    return {entry: TOPICS.code for entry, name in named if name is not None and not TOPICS.allows(context, name)}


def _is_replica(request: messages.FetchRequest) -> bool:
    return replica_of(request) is not None


def _topic_of(fetch: Fetch, entry: Entry) -> str | None:
    return fetch.partitions.image.topic_names.get(bytes(entry.topic_id)) if fetch.by_id else entry.topic


def _answer(context: Context, request: messages.FetchRequest, reading: Reading) -> messages.FetchResponse:
    """Returns the reply; one without partitions if the client is throttled, as in Kafka."""
    fetch, found, usage = reading.fetch, reading.results(), context.usage
    if usage is not None and _is_replica(request):
        usage.exempt()
        usage = None
    told = [] if usage is None else list(map(_told, found))
    topics: _Topics = []
    _tell(fetch, topics, found.items(), reading.incremental)
    response = _response(context, reading, topics, found)
    if _cannot_be_told(context, response):
        reading.release()
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    if usage is None:
        return response
    throttled = usage.fetched(reply_size(context, response))
    return _throttled(context, reading, told) if throttled else response


def _cannot_be_told(context: Context, response: messages.FetchResponse) -> bool:
    """Whether a partition comes behind one whose topic has neither an id nor a name: Kafka fails where it compares
    their names.
    """
    topics = response.responses
    if context.version < TOPIC_IDS_SINCE or all(topic.topic_id != NO_UUID for topic in topics):
        return False
    return NO_UUID in [topic.topic_id for topic in topics for _ in topic.partitions][:-1]


def _told(entry: Entry) -> _Told:
    """What the client was told of a partition."""
    return entry, entry.told_high_watermark, entry.told_start_offset, entry.order


def _throttled(context: Context, reading: Reading, told: list[_Told]) -> messages.FetchResponse:
    """Returns the reply of a client that is throttled, which was told nothing else than before."""
    reading.release()
    fetch = reading.fetch
    for entry, high_watermark, start_offset, order in told:
        entry.told_high_watermark, entry.told_start_offset, entry.order = high_watermark, start_offset, order
        fetch.dirty[entry] = None
    if not reading.incremental and fetch.id != NO_SESSION:
        cache(context).remove(fetch)
    return messages.FetchResponse(session_id=_told_session(reading))


def _told_session(reading: Reading) -> int:
    """The session that a reply names; one that has ended while its fetch waited, too, as in Kafka."""
    return reading.session_id if reading.incremental else reading.fetch.id


async def _answer_in_steps(
    context: Context, request: messages.FetchRequest, reading: Reading
) -> messages.FetchResponse:
    """Like `_answer`, for very many partitions."""
    fetch, found, usage, pace = reading.fetch, reading.results(), context.usage, Pace(reading.fetch.turn, LARGE)
    if usage is not None and _is_replica(request):
        usage.exempt()
        usage = None
    topics: _Topics = []
    told: list[_Told] = []
    try:
        for some in slices(list(found.items()), LARGE):
            if usage is not None:
                told += [_told(entry) for entry, _ in some]
            _tell(fetch, topics, some, reading.incremental)
            if pace.is_over(len(some)):
                await context.paused(pace.rest())
        response = _response(context, reading, topics, found)
        if _cannot_be_told(context, response):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        size = 0 if usage is None else await _size_in_steps(context, response)
    except BaseException:  # the connection is closed: nothing will send the records
        reading.release()
        raise
    return _throttled(context, reading, told) if usage is not None and usage.fetched(size) else response


async def _size_in_steps(context: Context, response: messages.FetchResponse) -> int:
    """Like `reply_size`. What is encoded for that is dropped: it is not known yet whether it is sent."""
    name, version, pace = "FetchResponse", context.version, Pace(context.turn)
    topics = codec.encoded(name, version, "responses")
    for topic in response.responses:
        partitions = codec.encoded(name, version, "responses.partitions")
        for some in slices(topic.partitions):
            for one in some:
                partitions.append(one)
            if pace.is_over(len(some)):
                await context.paused(pace.rest())
        shown = messages.FetchResponse.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        shown.partitions = partitions  # type: ignore[assignment]
        topics.append(shown)
    whole = messages.FetchResponse(session_id=response.session_id, node_endpoints=response.node_endpoints)
    whole.responses = topics  # type: ignore[assignment]
    return reply_size(context, whole)


def _tell(fetch: Fetch, topics: _Topics, found: Iterable[tuple[Entry, Data]], incremental: bool) -> None:
    """Adds what was found to the topics of a reply, in its order: a topic is named again after another one."""
    for entry, data in found:
        if incremental and not _is_news(entry, data):
            continue
        entry.told_high_watermark = -1 if data.error_code else data.high_watermark
        entry.told_start_offset = data.log_start_offset
        last = topics[-1] if topics else None
        if last is None or (last.topic, last.topic_id) != (entry.topic, entry.topic_id):
            last = messages.FetchResponse.FetchableTopicResponse(topic=entry.topic, topic_id=entry.topic_id)
            topics.append(last)
        last.partitions.append(data)
        if fetch.id != NO_SESSION and (not incremental or len(data.records)):
            entry.order = fetch.next_order()  # partitions that returned records go to the end of the order


def _response(context: Context, reading: Reading, topics: _Topics, found: dict[Entry, Data]) -> messages.FetchResponse:
    response = messages.FetchResponse(session_id=_told_session(reading), responses=topics)
    leaders = [d.current_leader.leader_id for d in found.values() if d.current_leader.leader_id >= 0]
    if leaders and reading.fetch.tells_endpoints:
        response.node_endpoints = node_endpoints(context, messages.FetchResponse.NodeEndpoint, leaders)
    return response


def _is_news(entry: Entry, data: Data) -> bool:
    return bool(
        len(data.records)
        or data.error_code
        or data.diverging_epoch.epoch >= 0
        or data.preferred_read_replica != NO_REPLICA
        or data.high_watermark != entry.told_high_watermark
        or data.log_start_offset != entry.told_start_offset
    )
