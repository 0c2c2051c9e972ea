"""Share-partitions on this broker: reads their state, leases what was fetched, writes what was acknowledged (KIP-932).

`coordinator.share.partition` decides; here are its log, its timers, its persister and the fetches that wait for it. Everything happens
within one input event, so that the lock by which Kafka keeps fetches of one share-partition apart is not needed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..coordinator.metadata.configs import reset_duration_ms
from ..coordinator.share.batches import UNSET_OFFSET, StateBatch
from ..coordinator.share.partition import Acknowledgement, Change, SharePartition, State
from ..coordinator.share.state import PartitionKey, PartitionState, Write
from ..protocol.errors import ApiError, Errors, default_message
from .dead_letters import DeadLetters
from .later import Later, drive
from .partition import Partition
from .persister import Persister, as_partition_error, persister
from .share_sessions import SessionKey, ShareSession, ShareSessions

if TYPE_CHECKING:
    from .broker import Broker
    from .share_fetching import ShareFetch

logger = logging.getLogger("ottla")
FEATURE = "share.version"
DLQ_SINCE = 2
FENCING = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_STATE_EPOCH, Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_TOPIC_OR_PARTITION))


class GroupLimits:
    """A share group's configuration (`coordinator.share.partition.Limits`)."""

    def __init__(self, owner: Sharing, group_id: str) -> None:
        self._owner = owner
        self._of = partial(owner.broker.groups.group_config, group_id)

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


class Shared:
    """A share-partition, with what it needs of the broker."""

    def __init__(self, owner: Sharing, key: PartitionKey, partition: Partition) -> None:
        self.owner = owner
        self.key = key
        self.partition = partition
        self.engine = SharePartition(partition.leader_epoch, GroupLimits(owner, key.group_id))
        self.waiting: dict[ShareFetch, None] = {}
        self.loaded_ms = -1
        self._armed: tuple[int, Any] | None = None

    @property
    def now_ms(self) -> int:
        return self.owner.broker.schedule.monotonic_ms()

    # initialisation

    def initialize(self) -> Later[None]:
        """Reads the state where that has not been done. Fails with what the clients are told."""
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
            start = self._first_offset() if found.start_offset == UNSET_OFFSET else found.start_offset
            dead = engine.initialize(start, found.state_epoch, found.batches)
        except ApiError:
            engine.state = State.FAILED
            self.owner.remove(self)
            raise
        self.loaded_ms = self.now_ms - began
        for letter in dead:
            self._send(letter)
        self.wake()

    async def _read(self) -> PartitionState:
        try:
            return await self.owner.persister.read(self.key, self.engine.leader_epoch)
        except ApiError as error:
            raise as_partition_error(error) from None

    def _first_offset(self) -> int:
        """Where a group begins that has not begun yet (`share.auto.offset.reset`). ApiError(OFFSET_NOT_AVAILABLE)."""
        log = self.partition.open_log()
        reset = str(self.owner.broker.groups.group_config(self.key.group_id, "share.auto.offset.reset")).lower()
        if reset == "latest":
            return self.partition.high_watermark
        if reset == "earliest":
            return log.start_offset
        since_ms = self.owner.broker.schedule.now_ms() - reset_duration_ms(reset)
        found = log.offset_for_timestamp(since_ms)
        if found is None or found.offset >= self.partition.high_watermark:
            raise ApiError(Errors.OFFSET_NOT_AVAILABLE)
        return found.offset

    # what members say

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> Later[None]:
        later: Later[None] = Later()
        try:
            changes = self.engine.acknowledge(member_id, acknowledgements, self.now_ms)
        except ApiError as error:
            later.fail(error)
            self.wake()
            return later
        for one in acknowledgements:
            for kind in one.types:
                self.owner.acknowledged[kind] += one.last - one.first + 1 if len(one.types) == 1 else 1
        self.arm()
        self._write(changes, later)
        return later

    def release(self, member_id: str) -> None:
        """A member's session has ended."""
        self._write(self.engine.release(member_id), Later())

    def _write(self, changes: list[Change], later: Later[None]) -> None:
        if not changes:
            later.finish(None)
            return

        def done(written: Later[None]) -> None:
            error = written.error
            for letter in self.engine.complete(changes, commit=error is None):
                self._send(letter)
            if isinstance(error, ApiError):
                error = as_partition_error(error)
                self.owner.failed(self, error)
            later.settle(None, error)
            self.wake()

        self._persist([change.batch for change in changes]).when_done(done)

    def _persist(self, batches: list[StateBatch]) -> Later[None]:
        engine = self.engine
        write = Write(engine.state_epoch, engine.leader_epoch, engine.start_offset, engine.complete_count, batches)
        return self.owner.persister.write(self.key, write, lambda: engine.state is State.FENCED)

    # locks

    def arm(self) -> None:
        """One timer of the loop stands for all locks."""
        deadline = self.engine.next_deadline_ms()
        if deadline is None or (self._armed is not None and self._armed[0] <= deadline):
            return
        if self._armed is not None:
            self._armed[1].cancel()
        broker = self.owner.broker
        self._armed = deadline, broker.schedule.later(max(0, deadline - self.now_ms), lambda: broker.event(self._tick))

    def _tick(self) -> None:
        self._armed = None
        if self.engine.state is not State.ACTIVE:
            return
        expired = self.engine.expire(self.now_ms)
        self.arm()
        if not expired:
            return

        def done(_: Later[None]) -> None:
            self.engine.advance_start()
            for change in expired:
                if change.cause is not None:
                    self._send(change)

        self._persist([change.batch for change in expired]).when_done(done)
        self.wake()

    # dead letters

    def _send(self, letter: Change) -> None:
        """To the dead-letter queue, and then, whether it got there or not, the record is archived."""

        def sent(outcome: Later[None]) -> None:
            if outcome.error is not None:
                logger.warning("%s: %s cannot go to the dead-letter queue: %s", self.key.group_id, letter.batch, outcome.error)
            if self.engine.state is State.ACTIVE:
                self._persist([self.engine.dead_lettered(letter)]).when_done(archived)

        def archived(_: Later[None]) -> None:
            if self.engine.advance_start():
                self.wake()

        self.owner.dead_letters.send(self.key.group_id, self.partition, letter).when_done(sent)

    # who waits

    def wake(self) -> None:
        """There may be something to acquire."""
        for fetch in list(self.waiting):
            fetch.attempt()

    def fence(self) -> None:
        self.engine.state = State.FENCED
        if self._armed is not None:
            self._armed[1].cancel()
        self.wake()


class Sharing:
    """All share-partitions of this broker, and its share sessions."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.partitions: dict[PartitionKey, Shared] = {}
        self.sessions = ShareSessions(lambda: broker.groups.config("group.share.max.share.sessions"), self.release, self._emptied)
        self.dead_letters = DeadLetters(broker)
        self.acknowledged: Counter[int] = Counter()  # records by the type of their acknowledgement
        self.load_ms: list[int] = [0, 0]  # how many were loaded, and how long that took together
        self._persister: Persister | None = None

    @property
    def persister(self) -> Persister:
        if self._persister is None:
            self._persister = persister(self.broker)
        return self._persister

    @property
    def version(self) -> int:
        """The finalized `share.version`: 0 no share groups, 1 share groups, 2 dead-letter queues too."""
        return int(self.broker.image.features.get(FEATURE, 0))

    def check_enabled(self) -> None:
        """ApiError(UNSUPPORTED_VERSION)."""
        if self.version < 1:
            raise ApiError(Errors.UNSUPPORTED_VERSION)

    def shared(self, key: PartitionKey) -> Shared:
        """The share-partition, made where it is not there. ApiError where the partition is not on this broker."""
        found = self.partitions.get(key)
        if found is None:
            partition = self.broker.partitions.by_id.get((key.topic_id, key.partition))
            if partition is None:
                raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            partition.open_log()
            found = self.partitions[key] = Shared(self, key, partition)
        return found

    def acknowledge(self, key: PartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> Later[None]:
        """Finished when what a member says is written. Fails with ApiError."""
        found = self.partitions.get(key)
        if found is None:
            later: Later[None] = Later()
            later.fail(ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, default_message(Errors.UNKNOWN_TOPIC_OR_PARTITION)))
            return later
        return found.acknowledge(member_id, acknowledgements)

    def failed(self, shared: Shared, error: ApiError) -> None:
        """A write failed: where another leader or another state is in force, the share-partition is read anew."""
        if error.code in FENCING:
            self.remove(shared)

    def remove(self, shared: Shared) -> None:
        if self.partitions.get(shared.key) is shared:
            del self.partitions[shared.key]
        if shared.engine.state is not State.FAILED:
            shared.fence()

    def reload(self, partition: Partition) -> list[str]:
        """Forgets a partition's share-partitions, so that they are read anew, as when the leader moves away and back; their groups."""
        found = [s for s in self.partitions.values() if s.partition is partition]
        for shared in found:
            self.remove(shared)
        return [f"{shared.key.group_id}:{partition.name}" for shared in found]

    # sessions

    def release(self, session: ShareSession) -> None:
        """Gives back what a member holds."""
        group_id, member_id = session.key
        for topic_id, index in session.entries:
            shared = self.partitions.get(PartitionKey(group_id, topic_id, index))
            if shared is not None:
                shared.release(member_id)

    def end_session(self, key: SessionKey) -> None:
        session = self.sessions.end(key)
        if session is not None:
            self.release(session)

    def _emptied(self, group_id: str) -> None:
        for shared in [s for s in self.partitions.values() if s.key.group_id == group_id]:
            self.remove(shared)

    def features_changed(self) -> None:
        """Without share groups there are no sessions and no share-partitions."""
        if self.version < 1:
            self.sessions.clear()
            for shared in list(self.partitions.values()):
                self.remove(shared)
