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

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import codec, messages
from ...protocol.errors import Errors
from ...protocol.session_epochs import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from ..error_places import Place, array, codes
from ..later import Later, Steps, after
from ..limits import FETCH_SESSIONS
from ..net.context import Context
from ..replica.fetch_reads import EMPTY, AskingReplica, read_entry, refused_entry
from ..replica.fetch_sessions import NO_SESSION, Entry, Fetch, SessionCache
from ..replica.opening import many_unopened, open_in_steps
from ..replica.partition import Partition
from ..replica.partitions import NO_REPLICA
from ..security.authorization import Check, Refusal
from ..steps import Pace, slices
from ._nodes import node_endpoints

if TYPE_CHECKING:
    Data = messages.FetchResponse.PartitionData
    Outcome = messages.FetchResponse | Later[messages.FetchResponse] | Steps[messages.FetchResponse]

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.topic", Refusal.ELEMENT)
REPLICAS = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
AUTHORIZATION = (TOPICS, REPLICAS)


LENGTH_BYTES = 4  # of the frame, which count as Kafka counts them
LARGE = 1000  # partitions that are read in one step
ABORTED_BYTES = 4096  # that the records of a reply are shorter for each aborted transaction: it takes time, not space
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
    fetch = _context_of(context, request)
    if isinstance(fetch, int):
        return messages.FetchResponse(error_code=fetch)
    fetch.may_follow = context.version >= FOLLOWERS_SINCE
    has_selector = fetch.may_follow and request.rack_id and not _is_replica(request)
    fetch.rack_id = request.rack_id if has_selector and context.broker.config["replica.selector.class"] else ""
    fetch.tells_leaders = context.version >= LEADERS_SINCE
    fetch.tells_endpoints = fetch.tells_leaders and not _is_replica(request)  # brokers know each other
    fetch.tells_storage_errors = context.version >= STORAGE_ERRORS_SINCE
    return _serve(context, request, fetch)


def _context_of(context: Context, request: messages.FetchRequest) -> Fetch | int:
    """Returns the fetch context: the session after the changes of this request, or the named partitions; an error code
    if the session id or epoch is wrong.
    """
    sessions, broker = cache(context), context.broker
    by_id = context.version >= TOPIC_IDS_SINCE
    now = broker.schedule.monotonic_ms()
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        old = sessions.get(request.session_id)
        if old is not None:
            sessions.remove(old)
        fetch = Fetch(broker.turn, broker.partitions, by_id)
        _put_all(fetch, request)
        if request.session_epoch == INITIAL_EPOCH and fetch.entries:
            sessions.add(fetch, now)
            if fetch.id == NO_SESSION:
                broker.limits.reached(FETCH_SESSIONS, context.client_address)
        return fetch
    session = sessions.get(request.session_id)
    if session is None:
        return int(Errors.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        return int(Errors.INVALID_FETCH_SESSION_EPOCH)
    if session.by_id != by_id:
        return int(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
    sessions.touch(session, now)
    session.epoch = next_epoch(session.epoch)
    _put_all(session, request)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.forget((topic.topic_id if by_id else topic.topic, index))
    sessions.changed(session)
    return session


def _put_all(fetch: Fetch, request: messages.FetchRequest) -> None:
    for topic in request.topics:
        for wanted in topic.partitions:
            fetch.put(topic, wanted)


def _serve(context: Context, request: messages.FetchRequest, fetch: Fetch) -> Outcome:
    incremental = request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
    if context.broker.replicas.opening:
        unopened = many_unopened(map(fetch.find, fetch.dirty if incremental else fetch.entries.values()))
        if unopened:
            return _serve_when_open(context, request, fetch, incremental, unopened)
    if len(fetch.entries) > LARGE and context.authorizer is not None:
        return _serve_in_steps(context, request, fetch, incremental)
    reading = _Reading(context, request, fetch, incremental, _refused_at_once(context, request, fetch))
    if len(reading.entries) > LARGE:
        return _serve_in_steps(context, request, fetch, incremental, reading)
    reading.read(reading.entries)
    if reading.is_enough():
        return _answer(context, request, reading)
    reading.release()

    def go_on(_: Later[None]) -> messages.FetchResponse:
        if context.usage is not None:
            context.usage.resume()
        again = _Reading(context, request, fetch, incremental, _refused_at_once(context, request, fetch))
        again.read(again.entries)
        return _answer(context, request, again)

    return after(fetch.park(reading.min_bytes - reading.size, request.max_wait_ms, request.isolation_level), go_on)


async def _serve_when_open(
    context: Context, request: messages.FetchRequest, fetch: Fetch, incremental: bool, unopened: list[Partition]
) -> messages.FetchResponse:
    await open_in_steps(fetch.turn, unopened)
    return await _serve_in_steps(context, request, fetch, incremental)


async def _serve_in_steps(
    context: Context,
    request: messages.FetchRequest,
    fetch: Fetch,
    incremental: bool,
    reading: _Reading | None = None,
) -> messages.FetchResponse:
    """Like `_serve`, but some partitions per step."""
    reading = reading or _Reading(context, request, fetch, incremental, await _refused(context, request, fetch))
    await _read_in_steps(reading)
    if not reading.is_enough() and not reading.is_outdated():
        reading.release()
        await fetch.park(reading.min_bytes - reading.size, request.max_wait_ms, request.isolation_level)
        reading = _Reading(context, request, fetch, incremental, await _refused(context, request, fetch))
        await _read_in_steps(reading)
    return _answer(context, request, reading)


async def _read_in_steps(reading: _Reading) -> None:
    pace = Pace(reading.fetch.turn)
    try:
        for step in slices(reading.entries):
            reading.read(step)
            if pace.is_over(len(step)):
                await pace.rest()
    except BaseException:  # the connection is closed: nothing will send the records
        reading.release()
        raise


class _Reading:
    """Reads partitions that may have news: `size` is the bytes of records so far; `hurry` means that something must be
    sent at once.
    """

    __slots__ = (
        "_budget",
        "_replica",
        "_request",
        "entries",
        "fetch",
        "found",
        "hurry",
        "incremental",
        "min_bytes",
        "refused",
        "size",
    )

    def __init__(
        self,
        context: Context,
        request: messages.FetchRequest,
        fetch: Fetch,
        incremental: bool,
        refused: dict[Entry, None],
    ) -> None:
        self.fetch = fetch
        self.incremental = incremental
        self.found: dict[Entry, Data] = {}
        self.size, self.hurry = 0, False
        self.refused = refused
        if refused:
            fetch.dirty |= dict.fromkeys(self.refused)
        self.entries = list(fetch.dirty) if incremental else list(fetch.entries.values())
        fetch.dirty.clear()
        self._request = request
        self._budget: int = min(request.max_bytes, context.broker.config["fetch.max.bytes"])
        self._replica = _replica_of(request)
        quota_max = None if context.usage is None or self._replica is not None else context.usage.fetch_bytes_max()
        if quota_max is not None:  # a reply that is larger would be throttled, again and again
            self._budget = int(min(self._budget, quota_max))
        self.min_bytes = min(request.min_bytes, self._budget)

    def read(self, entries: Sequence[Entry]) -> None:
        fetch, found, isolation_level, size = self.fetch, self.found, self._request.isolation_level, self.size
        for entry in entries:
            if self.refused and entry in self.refused:
                found[entry] = refused_entry(fetch, entry, TOPICS.code)
                fetch.dirty[entry] = None  # it is read as soon as it may be
                continue
            data = read_entry(fetch, entry, self._budget - size, isolation_level, size == 0, self._replica)
            length = len(data.records)
            size += length
            self._budget -= ABORTED_BYTES * len(data.aborted_transactions or ())
            if data.error_code:
                self.hurry = True
            is_sent_away = data.preferred_read_replica != NO_REPLICA
            if data.diverging_epoch.epoch >= 0 or is_sent_away:
                self.hurry = True
            more = data.error_code or length or data.high_watermark > entry.offset or entry.lags or is_sent_away
            if more or self._replica is not None:  # nobody tells what is above the high watermark
                fetch.dirty[entry] = None  # the partition may have more news at the next fetch
            found[entry] = data
        self.size = size

    def is_enough(self) -> bool:
        """Whether the reply is sent without a wait for more records."""
        return bool(
            self.hurry
            or self._request.max_wait_ms <= 0
            or len(self.fetch.entries) == len(self.refused)
            or self.size >= self.min_bytes
        )

    def is_outdated(self) -> bool:
        """Whether a partition has advanced since it was read; nothing would wake a waiting fetch for that."""
        return any(
            entry.partition is not None
            and not entry.lags
            and (entry.partition.high_watermark, entry.partition.last_stable_offset)
            != (data.high_watermark, data.last_stable_offset)
            for entry, data in self.found.items()
        )

    def release(self) -> None:
        for data in self.found.values():
            if data.records is not EMPTY:
                data.records.release()


async def _refused(context: Context, request: messages.FetchRequest, fetch: Fetch) -> dict[Entry, None]:
    """Like `_refused_at_once`, in steps."""
    if context.authorizer is None or _is_replica(request):
        return _refused_at_once(context, request, fetch)
    _, refused = await TOPICS.parted(context, list(fetch.entries.values()), partial(_topic_of, fetch))
    return dict.fromkeys(refused)


def _refused_at_once(context: Context, request: messages.FetchRequest, fetch: Fetch) -> dict[Entry, None]:
    """Returns the entries that the principal may not read: a follower needs the cluster, a consumer the topic."""
    if context.authorizer is None:
        return {}
    if _is_replica(request):
        return {} if REPLICAS.allows(context) else dict.fromkeys(fetch.entries.values())
    named = [(entry, _topic_of(fetch, entry)) for entry in fetch.entries.values()]
    return {entry: None for entry, name in named if name is not None and not TOPICS.allows(context, name)}


def _replica_of(request: messages.FetchRequest) -> AskingReplica | None:
    state = request.replica_state
    node = max(request.replica_id, state.replica_id)
    return AskingReplica(node, state.replica_epoch) if node >= 0 else None


def _is_replica(request: messages.FetchRequest) -> bool:
    return _replica_of(request) is not None


def _topic_of(fetch: Fetch, entry: Entry) -> str | None:
    return fetch.partitions.image.topic_names.get(bytes(entry.topic_id)) if fetch.by_id else entry.topic


def _answer(context: Context, request: messages.FetchRequest, reading: _Reading) -> messages.FetchResponse:
    """Returns the reply; one without partitions if the client is throttled, as in Kafka."""
    fetch, found, usage = reading.fetch, reading.found, context.usage
    if usage is None:
        return _reply(context, fetch, found, reading.incremental)
    if _is_replica(request):
        usage.exempt()
        return _reply(context, fetch, found, reading.incremental)
    told = [(entry, entry.told_high_watermark, entry.told_start_offset) for entry in found]
    response = _reply(context, fetch, found, reading.incremental)
    head = bytearray()
    parts = codec.build_parts("FetchResponse", context.version, response, head)
    if not usage.fetched(LENGTH_BYTES + len(head) + sum(len(part) for _, part in parts)):
        return response
    reading.release()
    for entry, high_watermark, start_offset in told:
        entry.told_high_watermark, entry.told_start_offset = high_watermark, start_offset
        fetch.dirty[entry] = None
    if not reading.incremental and fetch.id != NO_SESSION:
        cache(context).remove(fetch)
    return messages.FetchResponse(session_id=fetch.id)


def _reply(context: Context, fetch: Fetch, found: dict[Entry, Data], incremental: bool) -> messages.FetchResponse:
    topics: dict[str | bytes, messages.FetchResponse.FetchableTopicResponse] = {}
    for entry, data in found.items():
        if incremental and not _is_news(entry, data):
            continue
        entry.told_high_watermark = -1 if data.error_code else data.high_watermark
        entry.told_start_offset = data.log_start_offset
        topic = topics.get(entry.key[0])
        if topic is None:
            topic = topics[entry.key[0]] = messages.FetchResponse.FetchableTopicResponse(
                topic=entry.topic, topic_id=entry.topic_id
            )
        topic.partitions.append(data)
        if len(data.records) and fetch.id != NO_SESSION:  # partitions that returned records go to the end of the order
            fetch.dirty.pop(entry, None)
            fetch.dirty[entry] = None
    response = messages.FetchResponse(session_id=fetch.id, responses=list(topics.values()))
    leaders = [d.current_leader.leader_id for d in found.values() if d.current_leader.leader_id >= 0]
    if leaders and fetch.tells_endpoints:
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
