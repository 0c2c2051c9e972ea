"""Fetch sessions and waiting fetches (KIP-227).

An `Entry` is a partition that a client fetches. A session keeps its entries, listens to their partitions, and remembers
which of them may have news (`dirty`), so that a poll of a thousand idle partitions costs nothing. A fetch without a
session has such entries while it waits.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.session_epochs import FIRST_EPOCH, INITIAL_EPOCH
from ..later import Later
from ..turn import Turn
from .partition import READ_COMMITTED, Partition
from .partitions import Partitions

NO_SESSION = 0
ENTRY_BYTES = 500  # of memory, without its topic's name
CACHES = 8  # of Kafka, each with its own range of ids
IDS_OF_CACHE = (2**31 - 1) // CACHES
SESSIONS_BYTES_MAX = 256 << 20  # memory of all sessions
# of a session; twice Kafka's connections.max.idle.ms, after which the connection that opened it is closed
IDLE_MS_MAX = 1_200_000

Key = tuple[str | bytes, int]  # a topic name or id, and a partition


class Entry:
    """A partition that a client fetches, and the offsets that the client last got."""

    __slots__ = (
        "current_leader_epoch", "index", "key", "known_name", "lags", "last_fetched_epoch", "max_bytes", "offset",
        "order", "partition", "told_high_watermark", "told_start_offset", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, key: Key, topic: str, topic_id: bytes, order: int) -> None:
        """`order`: entries are read in the ascending order of these numbers."""
        self.key = key
        self.order = order
        self.topic = topic
        self.topic_id = topic_id
        self.index = key[1]
        self.partition: Partition | None = None
        self.known_name: str | None = None  # of the topic with this id: a session knows it when the topic is gone
        self.told_high_watermark = self.told_start_offset = -1
        self.lags = False  # it was read from a follower that does not have the high watermark

    @property
    def bytes(self) -> int:
        """The approximate memory of the entry; the topic name counts too, because any name is kept."""
        return ENTRY_BYTES + len(self.topic)

    def update(self, wanted: messages.FetchRequest.FetchPartition) -> None:
        self.offset: int = wanted.fetch_offset
        self.max_bytes: int = wanted.partition_max_bytes
        self.current_leader_epoch: int = max(wanted.current_leader_epoch, -1)  # any negative one is none
        self.last_fetched_epoch: int = wanted.last_fetched_epoch


class Fetch:
    """The entries of a client, what it waits for, and its session if `id` is not 0."""

    def __init__(self, turn: Turn, partitions: Partitions, by_id: bool) -> None:
        self.turn = turn
        self.partitions = partitions
        self.by_id = by_id
        self.may_follow = False  # clients of this version may read from followers
        self.rack_id = ""  # of the client, if it is to read from the closest replica
        self.tells_leaders = False  # the version of the reply has fields for new leaders
        self.tells_endpoints = False  # the client hears where they are, too
        self.tells_storage_errors = True  # clients of this version know KAFKA_STORAGE_ERROR
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.created_ms = self.used_ms = turn.schedule.monotonic_ms()
        self.entries: dict[Key, Entry] = {}
        self.dirty: dict[Entry, None] = {}
        self.listening: dict[Partition, Entry] = {}
        self.advanced: dict[Entry, None] | None = None  # what changes while the partitions are read in steps
        self.parked: Later[None] | None = None
        self.missing_bytes = self.isolation_level = 0
        self.bytes = 0  # approximate memory
        self.changes = 0  # how often a partition came or went
        self._last = 0  # the highest order of an entry

    # entries

    def put(self, topic: messages.FetchRequest.FetchTopic, wanted: messages.FetchRequest.FetchPartition) -> Entry:
        """Adds or changes a partition."""
        key: Key = (topic.topic_id, wanted.partition) if self.by_id else (topic.topic, wanted.partition)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(key, topic.topic, topic.topic_id, self.next_order())
            self.bytes += entry.bytes
            self.changes += 1
        entry.update(wanted)
        self.dirty[entry] = None
        return entry

    def next_order(self) -> int:
        self._last += 1
        return self._last

    def forget(self, key: Key) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.bytes
            self.changes += 1
            self.dirty.pop(entry, None)
            self._unlisten(entry)

    def find(self, entry: Entry) -> Partition | None:
        """Returns the current partition of an entry."""
        by_key: Mapping[Any, Partition] = self.partitions.by_id if self.by_id else self.partitions.by_name
        return by_key.get(entry.key)

    def resolve(self, entry: Entry) -> Partition:
        """Returns the current partition of an entry. Raises ApiError if it does not exist."""
        found = self.find(entry)
        if found is not entry.partition:
            self._unlisten(entry)
            entry.partition = found
            if found is not None and (self.id != NO_SESSION or self.advanced is not None):
                self._listen(entry)
            self._learn_name(entry)
        if found is None:
            raise ApiError(self._code_of_absent(entry))
        return found

    def _learn_name(self, entry: Entry) -> None:
        """Remembers what the topic with an entry's id is called, while there is one."""
        if self.by_id:
            entry.known_name = self.partitions.image.topic_names.get(entry.topic_id, entry.known_name)

    def _code_of_absent(self, entry: Entry) -> int:
        self._learn_name(entry)
        if self.by_id:
            if entry.known_name is None:
                return int(Errors.UNKNOWN_TOPIC_ID)
            if (entry.known_name, entry.index) in self.partitions.by_name:  # it was made again
                return int(Errors.INCONSISTENT_TOPIC_ID)
        return int(Errors.UNKNOWN_TOPIC_OR_PARTITION)

    def _listen(self, entry: Entry) -> None:
        if entry.partition is not None:
            entry.partition.waiters[self] = None
            self.listening[entry.partition] = entry

    def _unlisten(self, entry: Entry) -> None:
        partition, entry.partition = entry.partition, None
        if partition is not None:
            partition.waiters.pop(self, None)
            self.listening.pop(partition, None)

    def end(self) -> None:
        """The session has ended. What waits in it goes on waiting, as a fetch without one."""
        self.id = NO_SESSION
        if self.parked is None:
            for entry in self.entries.values():
                self._unlisten(entry)

    def stop_listening(self) -> None:
        """Stops listening to partitions, unless the session goes on."""
        if self.id == NO_SESSION:
            for partition in self.listening:
                partition.waiters.pop(self, None)
            self.listening.clear()

    # waiting; called by partitions

    def progressed(self, partition: Partition, readable_bytes: int, stable_bytes: int) -> None:
        entry = self.listening.get(partition)
        if entry is None:
            return
        self.dirty[entry] = None
        if self.parked is None:
            if self.advanced is not None:
                self.advanced[entry] = None
            return
        if entry.lags:
            if self.partitions.known_high_watermark(partition) > entry.offset:
                self.parked.finish(None)
        else:
            self.missing_bytes -= stable_bytes if self.isolation_level == READ_COMMITTED else readable_bytes
            if self.missing_bytes <= 0:
                self.parked.finish(None)

    def disturbed(self, partition: Partition) -> None:
        entry = self.listening.get(partition)
        if entry is not None:
            self.dirty[entry] = None
            if self.advanced is not None:
                self.advanced[entry] = None
        if self.parked is not None:
            self.parked.finish(None)

    def park(self, missing_bytes: int, wait_ms: int, isolation_level: int) -> Later[None]:
        """Completes when `missing_bytes` more bytes can be read, when a partition changes otherwise,
        or after `wait_ms`.
        """
        later: Later[None] = Later()
        self.parked = later
        self.missing_bytes = missing_bytes
        self.isolation_level = isolation_level
        if self.id == NO_SESSION and not self.listening:
            for entry in self.entries.values():
                self._listen(entry)
        timer = self.turn.later(wait_ms, lambda: later.finish(None))

        def over(_: object = None) -> None:
            timer.cancel()
            if self.parked is later:  # else the client has asked again, over another connection, and that waits now
                self.parked = None
                self.stop_listening()

        later.when_done(over)
        later.on_cancel = over
        return later


class _Established:
    """The sessions that may be evicted for larger ones, by the number of their partitions."""

    __slots__ = ("_by_size", "_size_of", "_sizes")

    def __init__(self) -> None:
        self._by_size: dict[int, OrderedDict[int, Fetch]] = {}
        self._size_of: dict[int, int] = {}
        self._sizes: list[int] = []  # a heap of the keys of `_by_size`

    def put(self, session: Fetch) -> None:
        """Adds a session, or notes how many partitions it has now."""
        size, before = len(session.entries), self._size_of.get(session.id)
        if before == size:
            return
        if before is not None:
            del self._by_size[before][session.id]
        if size not in self._by_size:
            self._by_size[size] = OrderedDict()
            heappush(self._sizes, size)
        self._by_size[size][session.id] = session
        self._size_of[session.id] = size

    def discard(self, session: Fetch) -> None:
        size = self._size_of.pop(session.id, None)
        if size is not None:
            del self._by_size[size][session.id]

    def smallest(self) -> Fetch | None:
        while self._sizes:
            found = self._by_size[self._sizes[0]]
            if found:
                return next(iter(found.values()))
            del self._by_size[heappop(self._sizes)]
        return None


class SessionCache:
    """The fetch sessions of a broker, at most `slots`; old ones are evicted (KIP-227).

    Kafka counts only sessions, although one may hold 40 MiB of partitions; here the memory of all sessions is bounded
    too (`bytes_max`). A client without a session names all its partitions in each fetch. Sessions that are unused for
    IDLE_MS_MAX are closed.
    """

    def __init__(
        self,
        slots: int,
        eviction_ms: int,
        chance: random.Random,
        bytes_max: int = SESSIONS_BYTES_MAX,
    ) -> None:
        self.slots = slots
        self.bytes_max = bytes_max
        self.bytes = 0
        self._sizes: dict[int, int] = {}  # the memory of each session that is counted in `bytes`
        self.eviction_ms = eviction_ms
        self.sessions: OrderedDict[int, Fetch] = OrderedDict()  # the least recently used one first
        self._established = _Established()
        self._chance = chance  # generates the ids
        self.evictions = 0

    def get(self, session_id: int) -> Fetch | None:
        """Returns a session. Raises ApiError(UNKNOWN_SERVER_ERROR): none of Kafka's caches has this id in its range; a
        quotient is rounded towards zero.
        """
        if not -IDS_OF_CACHE < session_id < CACHES * IDS_OF_CACHE:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return self.sessions.get(session_id)

    def touch(self, session: Fetch, now_ms: int) -> None:
        """Notes that a session is used. The caller calls `changed` too."""
        session.used_ms = now_ms
        self.sessions.move_to_end(session.id)

    def changed(self, session: Fetch) -> None:
        """Updates the memory of a session whose partitions changed. Closes the session if it has no partitions, or if
        there is not enough memory.
        """
        if not session.entries:
            return self.remove(session)
        self.bytes += session.bytes - self._sizes[session.id]
        self._sizes[session.id] = session.bytes
        if self.bytes > self.bytes_max:
            self.remove(session)
            self.evictions += 1
        elif session.used_ms - session.created_ms > self.eviction_ms:
            self._established.put(session)

    def first_idle_ms(self) -> float:
        """Returns when a session may be unused for too long."""
        return next(iter(self.sessions.values())).used_ms + IDLE_MS_MAX + 1 if self.sessions else math.inf

    def end_idle(self, now_ms: int) -> None:
        """Closes sessions that are unused for long."""
        while self.sessions and now_ms - (oldest := next(iter(self.sessions.values()))).used_ms > IDLE_MS_MAX:
            self.remove(oldest)
            self.evictions += 1

    def add(self, fetch: Fetch, now_ms: int) -> None:
        """Makes a session of a fetch, unless the cache is full of sessions that may stay."""
        while self.bytes + fetch.bytes > self.bytes_max:
            oldest = next(iter(self.sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms <= self.eviction_ms:
                return
            self.remove(oldest)
            self.evictions += 1
        if len(self.sessions) >= self.slots and not self._evict(fetch, now_ms):
            return
        fetch.id = self._new_id()
        fetch.epoch = FIRST_EPOCH
        fetch.created_ms = fetch.used_ms = now_ms
        self.sessions[fetch.id] = fetch
        self._sizes[fetch.id] = fetch.bytes
        self.bytes += fetch.bytes

    def _new_id(self) -> int:
        while True:
            found = self._chance.randint(1, CACHES * IDS_OF_CACHE - 1)
            if found not in self.sessions:
                return found

    def _evict(self, newcomer: Fetch, now_ms: int) -> bool:
        """Evicts a session that is unused for long, or the smallest of the old ones,
        if it is smaller than the new one.
        """
        if not self.sessions:
            return False
        oldest = next(iter(self.sessions.values()))
        if now_ms - oldest.used_ms > self.eviction_ms:
            self.remove(oldest)
            self.evictions += 1
            return True
        smallest = self._established.smallest()
        if smallest is None or len(smallest.entries) >= len(newcomer.entries):
            return False
        self.remove(smallest)
        self.evictions += 1
        return True

    def remove(self, session: Fetch) -> None:
        if self.sessions.pop(session.id, None) is not None:
            self.bytes -= self._sizes.pop(session.id)
            self._established.discard(session)
            session.end()
