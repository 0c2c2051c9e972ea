"""Fetch sessions and waiting fetches (KIP-227).

An `Entry` is a partition that a client fetches. A session keeps its entries, listens to their partitions, and remembers
which of them may have news (`dirty`), so that a poll of a thousand idle partitions costs nothing. A fetch without a
session has such entries while it waits.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from ...coordinator.metadata.state import NO_LEADER
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.session_epochs import FIRST_EPOCH, INITIAL_EPOCH
from ...storage.aborted import some_aborted
from ...storage.epochs import UNDEFINED_EPOCH
from ...storage.file_slice import FileSlice
from ...storage.log import Log
from ..later import Later
from ..turn import Turn
from .partition import READ_COMMITTED, Partition
from .partitions import Partitions

NO_SESSION = 0
ENTRY_BYTES = 500  # of memory, without its topic's name
SESSIONS_BYTES_MAX = 256 << 20  # memory of all sessions
# of a session; twice Kafka's connections.max.idle.ms, after which the connection that opened it is closed
IDLE_MS_MAX = 1_200_000
EMPTY = b""
ABORTED_MAX = 1000  # transactions that end in the records of one partition in a reply

Key = tuple[str | bytes, int]  # a topic name or id, and a partition


class Entry:
    """A partition that a client fetches, and the offsets that the client last got."""

    __slots__ = (
        "current_leader_epoch", "index", "key", "last_fetched_epoch", "max_bytes", "offset", "partition",
        "told_high_watermark",
        "told_start_offset", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, key: Key, topic: str, topic_id: bytes) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.index = key[1]
        self.partition: Partition | None = None
        self.told_high_watermark = self.told_start_offset = -1

    @property
    def bytes(self) -> int:
        """The approximate memory of the entry; the topic name counts too, because any name is kept."""
        return ENTRY_BYTES + len(self.topic)

    def update(self, wanted: messages.FetchRequest.FetchPartition) -> None:
        self.offset: int = wanted.fetch_offset
        self.max_bytes: int = wanted.partition_max_bytes
        self.current_leader_epoch: int = wanted.current_leader_epoch
        self.last_fetched_epoch: int = wanted.last_fetched_epoch


class Fetch:
    """The entries of a client, what it waits for, and its session if `id` is not 0."""

    def __init__(self, turn: Turn, partitions: Partitions, by_id: bool) -> None:
        self.turn = turn
        self.partitions = partitions
        self.by_id = by_id
        self.tells_leaders = False  # the version of the reply has fields for new leaders
        self.tells_storage_errors = True  # clients of this version know KAFKA_STORAGE_ERROR
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.created_ms = self.used_ms = turn.schedule.monotonic_ms()
        self.entries: dict[Key, Entry] = {}
        self.dirty: dict[Entry, None] = {}
        self.listening: dict[Partition, Entry] = {}
        self.parked: Later[None] | None = None
        self.missing_bytes = self.isolation_level = 0
        self.bytes = 0  # approximate memory
        self.changes = 0  # how often a partition came or went

    # entries

    def put(self, topic: messages.FetchRequest.FetchTopic, wanted: messages.FetchRequest.FetchPartition) -> Entry:
        """Adds or changes a partition."""
        key: Key = (topic.topic_id, wanted.partition) if self.by_id else (topic.topic, wanted.partition)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(key, topic.topic, topic.topic_id)
            self.bytes += entry.bytes
            self.changes += 1
        entry.update(wanted)
        self.dirty[entry] = None
        return entry

    def forget(self, key: Key) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.bytes
            self.changes += 1
            self.dirty.pop(entry, None)
            self._unlisten(entry)

    def resolve(self, entry: Entry) -> Partition:
        """Returns the current partition of an entry. Raises ApiError if it does not exist."""
        partitions = self.partitions
        by_key: Mapping[Any, Partition] = partitions.by_id if self.by_id else partitions.by_name
        found = by_key.get(entry.key)
        if found is not entry.partition:
            self._unlisten(entry)
            entry.partition = found
            if found is not None and self.id != NO_SESSION:
                self._listen(entry)
        if found is None:
            if self.by_id and entry.topic_id not in partitions.image.topic_names:
                raise ApiError(Errors.UNKNOWN_TOPIC_ID)
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def _listen(self, entry: Entry) -> None:
        if entry.partition is not None:
            entry.partition.waiters[self] = None
            self.listening[entry.partition] = entry

    def _unlisten(self, entry: Entry) -> None:
        partition, entry.partition = entry.partition, None
        if partition is not None:
            partition.waiters.pop(self, None)
            self.listening.pop(partition, None)

    def listen_to_all(self) -> None:
        for entry in self.entries.values():
            self._listen(entry)

    def end(self) -> None:
        """The fetch has ended: stops listening to partitions."""
        for entry in self.entries.values():
            self._unlisten(entry)
        if self.parked is not None:
            self.parked.cancel()

    # waiting; called by partitions

    def progressed(self, partition: Partition, readable_bytes: int, stable_bytes: int) -> None:
        entry = self.listening.get(partition)
        if entry is None:
            return
        self.dirty[entry] = None
        if self.parked is not None:
            self.missing_bytes -= stable_bytes if self.isolation_level == READ_COMMITTED else readable_bytes
            if self.missing_bytes <= 0:
                self.parked.finish(None)

    def disturbed(self, partition: Partition) -> None:
        entry = self.listening.get(partition)
        if entry is not None:
            self.dirty[entry] = None
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
        if self.id == NO_SESSION:
            self.listen_to_all()
        timer = self.turn.later(wait_ms, lambda: later.finish(None))

        def over(_: object = None) -> None:
            self.parked = None
            timer.cancel()
            if self.id == NO_SESSION:
                for entry in self.entries.values():
                    if entry.partition is not None:
                        entry.partition.waiters.pop(self, None)
                self.listening.clear()

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
        fetch.listen_to_all()

    def _new_id(self) -> int:
        while True:
            found = self._chance.randint(1, 2**31 - 1)
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
            session.id = NO_SESSION


def read_entry(
    fetch: Fetch, entry: Entry, budget: int, isolation_level: int, at_least_one: bool, is_replica: bool
) -> messages.FetchResponse.PartitionData:
    """Returns the response for one entry: its records, or its error."""
    data = messages.FetchResponse.PartitionData(partition_index=entry.index, records=EMPTY)
    try:
        _read(fetch, entry, data, budget, isolation_level, at_least_one, is_replica)
    except ApiError as error:
        _without_records(data)
        _tell(fetch, entry, data, error.code)
    except OSError as error:
        _without_records(data)
        assert entry.partition is not None  # the entry has been read
        home = fetch.partitions.directory_of.get(entry.partition)
        _tell(fetch, entry, data, fetch.partitions.log_directories.storage_error(error, home).code)
    return data


def _without_records(data: messages.FetchResponse.PartitionData) -> None:
    """Takes the records out: what belongs to them cannot be read."""
    if data.records is not EMPTY:
        data.records.release()
        data.records, data.aborted_transactions = EMPTY, None


def refused_entry(fetch: Fetch, entry: Entry, code: int) -> messages.FetchResponse.PartitionData:
    """Returns the response for an entry that is not read because of an error."""
    data = messages.FetchResponse.PartitionData(partition_index=entry.index, records=EMPTY)
    _tell(fetch, entry, data, code)
    return data


def _tell(fetch: Fetch, entry: Entry, data: messages.FetchResponse.PartitionData, code: int) -> None:
    if code == Errors.KAFKA_STORAGE_ERROR and not fetch.tells_storage_errors:
        code = int(Errors.NOT_LEADER_OR_FOLLOWER)
    data.error_code = code
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
    partition = entry.partition
    if (
        code in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH)
        and partition is not None
        and fetch.tells_leaders
    ):
        data.current_leader.leader_id = NO_LEADER if partition.leader is None else partition.leader
        data.current_leader.leader_epoch = partition.leader_epoch


def _read(
    fetch: Fetch,
    entry: Entry,
    data: messages.FetchResponse.PartitionData,
    budget: int,
    isolation_level: int,
    at_least_one: bool,
    is_replica: bool,
) -> None:
    partition = fetch.resolve(entry)
    data.aborted_transactions = None
    if is_replica:
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
    fetch.partitions.check_led(partition, entry.current_leader_epoch)
    log = partition.open_log()
    diverging = entry.last_fetched_epoch >= 0 and _diverges(log, entry, data)
    if not diverging:
        piece = partition.read(entry.offset, min(entry.max_bytes, budget), isolation_level, at_least_one)
        if piece is not None:
            data.records = piece
    data.high_watermark = partition.high_watermark
    data.last_stable_offset = partition.last_stable_offset
    data.log_start_offset = log.start_offset
    if isolation_level == READ_COMMITTED:
        data.aborted_transactions = []
        if data.records is not EMPTY:
            data.aborted_transactions = _aborted(log, entry.offset, data.records)


def _aborted(log: Log, offset: int, piece: FileSlice) -> list[messages.FetchResponse.AbortedTransaction]:
    """Returns the aborted transactions of a piece of the log, which ends earlier if they are many."""
    upper = log.offset_after(piece)
    found, bound = some_aborted(log, offset, upper, ABORTED_MAX)
    if bound < upper:
        segment, position = log.position_of(bound)
        if segment is piece.segment:
            piece.end_at(position)
    r = messages.FetchResponse.AbortedTransaction
    return [r(producer_id=t.producer_id, first_offset=t.first_offset) for t in found]


def _diverges(log: Log, entry: Entry, data: messages.FetchResponse.PartitionData) -> bool:
    """Whether the client's log diverges from ours (KIP-595). Raises ApiError if our log does not know the epoch."""
    epoch, end = log.epochs.end_offset_for(entry.last_fetched_epoch, log.end_offset)
    if epoch == UNDEFINED_EPOCH:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    if epoch < entry.last_fetched_epoch or end < entry.offset:
        data.diverging_epoch.epoch = epoch
        data.diverging_epoch.end_offset = end
        return True
    return False
