"""Fetch sessions and fetches that wait (KIP-227).

An `Entry` is a partition that a client fetches. A session keeps its entries, listens to their partitions, and remembers which of them
may have something to say (`dirty`), so that a poll of a thousand idle partitions costs nothing. A fetch without a session has the
same entries for as long as it waits.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ..protocol import messages
from ..protocol.errors import ApiError, Errors
from ..storage.epochs import UNDEFINED_EPOCH
from .later import Later
from .partition import READ_COMMITTED, Partition

if TYPE_CHECKING:
    from .broker import Broker

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
NO_SESSION = 0
EMPTY = b""


class Entry:
    """A partition as a client fetches it, and what it was last told."""

    __slots__ = (
        "current_leader_epoch", "index", "key", "last_fetched_epoch", "max_bytes", "offset", "partition", "told_high_watermark",
        "told_start_offset", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, key: tuple[Any, int], topic: str, topic_id: bytes) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.index = key[1]
        self.partition: Partition | None = None
        self.told_high_watermark = self.told_start_offset = -1

    def update(self, wanted: Any) -> None:
        self.offset: int = wanted.fetch_offset
        self.max_bytes: int = wanted.partition_max_bytes
        self.current_leader_epoch: int = wanted.current_leader_epoch
        self.last_fetched_epoch: int = wanted.last_fetched_epoch


class Fetch:
    """Entries of one client, what it waits for, and its session where `id` is not 0."""

    def __init__(self, broker: Broker, by_id: bool) -> None:
        self.broker = broker
        self.by_id = by_id
        self.tells_leaders = False  # the version of the reply has a place for it
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.created_ms = self.used_ms = broker.schedule.monotonic_ms()
        self.entries: dict[tuple[Any, int], Entry] = {}
        self.dirty: dict[Entry, None] = {}
        self.listening: dict[Partition, Entry] = {}
        self.parked: Later[None] | None = None
        self.missing_bytes = self.isolation_level = 0

    # entries

    def put(self, topic: Any, wanted: Any) -> Entry:
        """Adds or changes a partition."""
        key = (topic.topic_id if self.by_id else topic.topic, wanted.partition)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(key, topic.topic, topic.topic_id)
        entry.update(wanted)
        self.dirty[entry] = None
        return entry

    def forget(self, key: tuple[Any, int]) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.dirty.pop(entry, None)
            self._unlisten(entry)

    def resolve(self, entry: Entry) -> Partition:
        """The partition of an entry as it is now; ApiError where there is none."""
        partitions = self.broker.partitions
        found = (partitions.by_id if self.by_id else partitions.by_name).get(entry.key)
        if found is not entry.partition:
            self._unlisten(entry)
            entry.partition = found
            if found is not None and self.id != NO_SESSION:
                self._listen(entry)
        if found is None:
            if self.by_id and entry.topic_id not in self.broker.image.topic_names:
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
        """Nobody fetches this any more."""
        for entry in self.entries.values():
            self._unlisten(entry)
        if self.parked is not None:
            self.parked.cancel()

    # waiting, called by partitions

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
        """Finished when so many bytes more can be read, when a partition is disturbed, or after `wait_ms`."""
        later: Later[None] = Later()
        self.parked = later
        self.missing_bytes = missing_bytes
        self.isolation_level = isolation_level
        if self.id == NO_SESSION:
            self.listen_to_all()
        timer = self.broker.schedule.later(wait_ms, lambda: self.broker.event(lambda: later.finish(None)))

        def over(_: Any = None) -> None:
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


class SessionCache:
    """The sessions of a broker, at most `slots`; old ones make room (KIP-227)."""

    def __init__(self, slots: int, eviction_ms: int, seed: int | None = None) -> None:
        self.slots = slots
        self.eviction_ms = eviction_ms
        self.sessions: OrderedDict[int, Fetch] = OrderedDict()  # the one unused for longest first
        self._chance = random.Random(seed)
        self.evictions = 0

    def get(self, session_id: int) -> Fetch | None:
        return self.sessions.get(session_id)

    def touch(self, session: Fetch, now_ms: int) -> None:
        session.used_ms = now_ms
        self.sessions.move_to_end(session.id)

    def add(self, fetch: Fetch, now_ms: int) -> None:
        """Makes a session of a fetch, unless the cache is full of sessions that may stay."""
        if len(self.sessions) >= self.slots and not self._evict(fetch, now_ms):
            return
        fetch.id = self._new_id()
        fetch.epoch = 1
        fetch.created_ms = fetch.used_ms = now_ms
        self.sessions[fetch.id] = fetch
        fetch.listen_to_all()

    def _new_id(self) -> int:
        while True:
            found = self._chance.randint(1, 2**31 - 1)
            if found not in self.sessions:
                return found

    def _evict(self, newcomer: Fetch, now_ms: int) -> bool:
        """Makes room: by what was not used for long, or by the smallest of those that have been in use for long, where it is smaller."""
        if not self.sessions:
            return False
        oldest = next(iter(self.sessions.values()))
        if now_ms - oldest.used_ms > self.eviction_ms:
            self.remove(oldest)
            self.evictions += 1
            return True
        established = [s for s in self.sessions.values() if s.used_ms - s.created_ms > self.eviction_ms]
        smallest = min(established, key=lambda s: len(s.entries), default=newcomer)
        if len(smallest.entries) >= len(newcomer.entries):
            return False
        self.remove(smallest)
        self.evictions += 1
        return True

    def remove(self, session: Fetch) -> None:
        if self.sessions.pop(session.id, None) is not None:
            session.end()
            session.id = NO_SESSION


def read_entry(fetch: Fetch, entry: Entry, budget: int, isolation_level: int, at_least_one: bool, is_replica: bool) -> Any:
    """The reply's part for one entry: its records, or its error."""
    data = messages.FetchResponse.PartitionData(partition_index=entry.index, records=EMPTY)
    try:
        _read(fetch, entry, data, budget, isolation_level, at_least_one, is_replica)
    except ApiError as error:
        data.error_code = error.code
        data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
        partition = entry.partition
        if error.code in (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH) and partition is not None and fetch.tells_leaders:
            data.current_leader.leader_id = fetch.broker.config.node_id
            data.current_leader.leader_epoch = partition.leader_epoch
    return data


def _read(fetch: Fetch, entry: Entry, data: Any, budget: int, isolation_level: int, at_least_one: bool, is_replica: bool) -> None:
    partition = fetch.resolve(entry)
    data.aborted_transactions = None
    if is_replica:
        raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
    partition.check_epoch(entry.current_leader_epoch)
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
            upper = log.offset_behind(data.records)
            data.aborted_transactions = [
                messages.FetchResponse.AbortedTransaction(producer_id=t.producer_id, first_offset=t.first_offset)
                for t in log.aborted_between(entry.offset, upper)
            ]


def _diverges(log: Any, entry: Entry, data: Any) -> bool:
    """Whether the client's log ends where ours says something else (KIP-595); ApiError where ours cannot tell."""
    epoch, end = log.epochs.end_offset_for(entry.last_fetched_epoch, log.end_offset)
    if epoch == UNDEFINED_EPOCH:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    if epoch < entry.last_fetched_epoch or end < entry.offset:
        data.diverging_epoch.epoch = epoch
        data.diverging_epoch.end_offset = end
        return True
    return False
