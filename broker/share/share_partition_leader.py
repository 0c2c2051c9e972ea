"""A share-partition on its partition's leader: its log, its timers, its persister,
and the fetches that wait for it (KIP-932).

`coordinator.share.partition` makes the decisions. Everything happens within one input event, so the lock with which
Kafka separates fetches of a share-partition is not needed.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, Protocol

from ...coordinator.metadata.configs import reset_duration_ms
from ...coordinator.share.acquiring import Acquired
from ...coordinator.share.batches import UNSET_OFFSET, StateBatch
from ...coordinator.share.changes import Change
from ...coordinator.share.partition import Acknowledgement, SharePartition, State
from ...coordinator.share.state import PartitionKey, PartitionState, Write
from ...protocol.errors import ApiError, Errors
from ...storage import timestamps
from .. import bugs
from ..alarm import Alarm
from ..later import Later, drive
from ..metrics import Summary
from ..replica.partition import Partition
from ..settings import Settings
from ..steps import opened_in_steps
from ..turn import Turn
from .dead_letters import DeadLetters
from .persister import Persister, as_partition_error

logger = logging.getLogger("ottla.kafka.server.share.SharePartition")
DLQ_SINCE = 2
HISTORY_LENGTH = 32
NS_PER_MS = 1e6
ACQUIRED_WORD = "acquired"
WORDS = ("gap", "accepted", "released", "rejected", "renewed")  # by acknowledge type


class Owner(Protocol):
    """The part of the manager that share-partitions use."""

    turn: Turn
    settings: Settings
    acknowledged: Counter[int]  # records by the type of their acknowledgement
    load_ms: Summary

    @property
    def version(self) -> int: ...

    @property
    def persister(self) -> Persister: ...

    @property
    def dead_letters(self) -> DeadLetters: ...

    def failed(self, shared: SharePartitionLeader, error: ApiError) -> None: ...

    def remove(self, shared: SharePartitionLeader) -> None: ...


class Waiting(Protocol):
    """A fetch of a member that waits for records of a share-partition."""

    @property
    def member_id(self) -> str: ...

    def attempt(self) -> object: ...

    def end_soon(self) -> object: ...


class GroupLimits:
    """A share group's configuration (`coordinator.share.partition.Limits`)."""

    def __init__(self, owner: Owner, group_id: str) -> None:
        self._owner = owner
        self._of = partial(owner.settings.of_group, group_id)

    @property
    def max_in_flight(self) -> int:
        return int(self._of("share.partition.max.record.locks"))

    @property
    def max_delivery_count(self) -> int:
        return int(self._of("share.delivery.count.limit"))

    @property
    def lock_duration_ms(self) -> int:
        return int(self._of("share.record.lock.duration.ms"))

    @property
    def may_renew(self) -> bool:
        return bool(self._of("share.renew.acknowledge.enable"))

    @property
    def has_dlq(self) -> bool:
        return self._owner.version >= DLQ_SINCE and bool(self._of("errors.deadletterqueue.topic.name"))


class Transition(NamedTuple):
    """A transition of records of a share-partition, for the lab."""

    at_ms: int  # of the wall clock
    what: str
    first: int
    last: int
    member_id: str


class SharePartitionLeader:
    """A share-partition with its log, timers and persister."""

    def __init__(self, owner: Owner, key: PartitionKey, partition: Partition) -> None:
        self.owner = owner
        self.key = key
        self.partition = partition
        self.engine = SharePartition(partition.leader_epoch, GroupLimits(owner, key.group_id))
        self.waiting: dict[Waiting, None] = {}
        self.waiting_members: dict[str, int] = {}  # and how many of their fetches wait
        self.history: deque[Transition] = deque(maxlen=HISTORY_LENGTH)
        self.batch_messages = Summary()  # sizes of acquired batches
        self.fetch_ms = Summary()  # how long fetches worked on the share-partition
        self.fetch_ratio = Summary()  # the percentage of the time in which a fetch worked on it
        self._fetched_ns = 0
        self._alarm = Alarm(owner.turn.schedule, partial(owner.turn.event, self._tick))  # for all locks

    @property
    def now_ms(self) -> int:
        return self.owner.turn.schedule.monotonic_ms()

    # figures

    def note(self, what: str, first: int, last: int, member_id: str = "") -> None:
        now_ms = self.owner.turn.schedule.now_ms()
        self.history.append(tuple.__new__(Transition, (now_ms, what, first, last, member_id)))  # as `state_batch`

    def acquired(self, member_id: str, taken: Iterable[Acquired]) -> None:
        for one in taken:
            self.batch_messages.add(one.size)
            self.note(ACQUIRED_WORD, one.first, one.last, member_id)

    def fetched(self, began_ns: int, ended_ns: int) -> None:
        """Records that a fetch worked on the share-partition."""
        self.fetch_ms.add((ended_ns - began_ns) / NS_PER_MS)
        if self._fetched_ns:
            self.fetch_ratio.add(100 * (ended_ns - began_ns) / (ended_ns - self._fetched_ns))
        self._fetched_ns = ended_ns

    # initialisation

    def initialize(self) -> Later[None]:
        """Loads the state unless that is done. Fails with the error for clients."""
        return drive(self._initialize())

    async def _initialize(self) -> None:
        engine = self.engine
        if engine.check_active():
            return
        engine.state = State.INITIALIZING
        began = self.now_ms
        try:
            found = await self._read()
            if engine.state is not State.INITIALIZING:
                return  # fenced meanwhile
            start = await self._first_offset() if found.start_offset == UNSET_OFFSET else found.start_offset
            dead = engine.initialize(start, found.state_epoch, found.batches)
        except Exception:
            engine.state = State.FAILED
            self.owner.remove(self)
            raise
        self.owner.load_ms.add(self.now_ms - began)
        self.note("loaded", engine.window.start_offset, engine.window.end_offset)
        for letter in dead:
            self._send(letter)
        self.wake()

    async def _read(self) -> PartitionState:
        try:
            return await self.owner.persister.read(self.key, self.engine.leader_epoch)
        except ApiError as error:
            raise as_partition_error(error, "read") from None

    async def _first_offset(self) -> int:
        """Returns the start offset of a group without a state
        (`share.auto.offset.reset`). Raises ApiError(OFFSET_NOT_AVAILABLE).
        """
        log = self.partition.open_log()
        reset = str(self.owner.settings.of_group(self.key.group_id, "share.auto.offset.reset")).lower()
        if reset == "latest":
            return self.partition.high_watermark
        if reset == "earliest":
            return log.start_offset
        since_ms = self.owner.turn.schedule.now_ms() - reset_duration_ms(reset)
        found = await opened_in_steps(self.owner.turn, timestamps.first_from(log, since_ms))
        if found is None or found.offset >= self.partition.high_watermark:
            raise ApiError(Errors.OFFSET_NOT_AVAILABLE)
        return found.offset

    # acknowledgements of members

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> Later[None]:
        later: Later[None] = Later()
        try:
            changes = self.engine.acknowledge(member_id, acknowledgements, self.now_ms)
            self._count(member_id, acknowledgements)
            self.arm()
            self._write(changes, later)
        except ApiError as error:
            later.fail(error)
            self.wake()
        except Exception as error:
            self.distrust(error)
            later.fail(ApiError(Errors.UNKNOWN_SERVER_ERROR))
        return later

    def distrust(self, error: BaseException) -> None:
        """After an unexpected exception: drops the state in memory; the next fetch loads it again."""
        bugs.report(f"{self.key.group_id} on {self.partition.name}", error)
        self.owner.remove(self)

    def _count(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """Counts acknowledged records, and notes the transitions that the history keeps: one or more for each."""
        counts = self.owner.acknowledged
        for one in acknowledgements:
            if len(one.types) == 1:
                counts[one.types[0]] += one.last - one.first + 1
            else:
                counts.update(one.types)
        for one in acknowledgements[-HISTORY_LENGTH:]:
            if len(one.types) == 1:
                self.note(WORDS[one.types[0]], one.first, one.last, member_id)
                continue
            first = one.first
            for kind, run in groupby(one.types):
                last = first + len(list(run)) - 1
                self.note(WORDS[kind], first, last, member_id)
                first = last + 1

    def release(self, member_id: str) -> None:
        """Releases the records of a member whose session was closed."""
        changes = self.engine.release(member_id)
        for change in changes:
            self.note("session ended", change.first, change.last, member_id)
        self._write(changes, Later())

    def _write(self, changes: list[Change], later: Later[None]) -> None:
        if not changes:
            later.finish(None)
            return

        self._persist([change.batch for change in changes]).when_done(partial(self._written, changes, later))

    def _written(self, changes: list[Change], later: Later[None], written: Later[None]) -> None:
        error = written.error
        try:
            for letter in self.engine.complete(changes, commit=error is None):
                self._send(letter)
        except Exception as bug:
            self.distrust(bug)
            error = bug
        if isinstance(error, ApiError):
            error = as_partition_error(error, "write")
            self.owner.failed(self, error)
        elif error is not None:
            error = ApiError(Errors.UNKNOWN_SERVER_ERROR)
        later.settle(None, error)
        self.wake()

    def _persist(self, batches: list[StateBatch]) -> Later[None]:
        engine = self.engine
        write = Write(
            engine.state_epoch, engine.leader_epoch, engine.window.start_offset, engine.window.complete_count, batches
        )
        return self.owner.persister.write(self.key, write, lambda: engine.state is State.FENCED)

    # locks

    def arm(self) -> None:
        """Sets the alarm for the next lock timeout."""
        self._alarm.set(self.engine.window.next_deadline_ms())

    def _tick(self) -> None:
        if self.engine.state is not State.ACTIVE:
            return
        try:
            expired = self.engine.expire(self.now_ms)
        except Exception as error:
            return self.distrust(error)
        self.arm()
        if not expired:
            return
        for change in expired:
            self.note("lock timed out", change.first, change.last)

        self._persist([change.batch for change in expired]).when_done(partial(self._expired, expired))
        self.wake()

    def _expired(self, expired: list[Change], _: Later[None]) -> None:
        self.engine.window.advance_start()
        for change in expired:
            if change.cause is not None:
                self._send(change)

    # dead letters

    def _send(self, letter: Change) -> None:
        """Sends records to the dead-letter queue; archives them afterwards, whether that succeeded or not."""
        self.owner.dead_letters.send(self.key.group_id, self.partition, letter).when_done(partial(self._sent, letter))

    def _sent(self, letter: Change, outcome: Later[None]) -> None:
        if outcome.error is not None:
            logger.warning(
                "share group %s: %s cannot be written to the dead-letter queue: %s",
                self.key.group_id,
                letter.batch,
                outcome.error,
            )
        self.note("dead letter" if outcome.error is None else "dead letter lost", letter.first, letter.last)
        if self.engine.state is State.ACTIVE:
            self._persist([self.engine.dead_lettered(letter)]).when_done(self._archived)

    def _archived(self, _: Later[None]) -> None:
        if self.engine.window.advance_start():
            self.wake()

    # waiting fetches

    def join(self, fetch: Waiting) -> None:
        self.waiting[fetch] = None
        self.waiting_members[fetch.member_id] = self.waiting_members.get(fetch.member_id, 0) + 1

    def leave(self, fetch: Waiting) -> None:
        del self.waiting[fetch]
        left = self.waiting_members[fetch.member_id] - 1
        if left:
            self.waiting_members[fetch.member_id] = left
        else:
            del self.waiting_members[fetch.member_id]

    def wake(self) -> None:
        """Wakes waiting fetches: records may be available."""
        for fetch in list(self.waiting):
            fetch.attempt()

    def fence(self) -> None:
        """Gives up the share-partition, unless it has failed already."""
        if self.engine.state is State.FAILED:
            return
        self.engine.state = State.FENCED
        self._alarm.end()
        self.wake()
