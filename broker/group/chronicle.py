"""The timelines of groups, for the lab: what the records of the coordinators tell, and what only lives in memory.

There is none unless the lab is on. What the log tells is told again when a broker starts, from the log. Old events are
dropped: beyond `ottla.lab.group.events` of a group, and beyond WEIGHT_MAX of all groups those of the groups in which
nothing happened for longest.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ...coordinator.group.events import Event, GroupEventView, shown
from ...coordinator.group.story import Stories
from ...coordinator.packing import Packed
from ...protocol import opening
from ...protocol.errors import MalformedMessage
from ...protocol.records import BatchAt
from ...storage.file_slice import read_whole
from ...storage.segment import IndexDamaged
from ..later import Later

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ...coordinator.packing import Encoded
    from ...storage.log import Log
    from ..shards.host import ShardHost
    from ..turn import Turn
    from .topic_image import CommittedTopics

WEIGHT_MAX = 1_000_000  # events of all groups, each with as many more as it has partitions and members
logger = logging.getLogger("ottla.lab.groups")


class Coordinators(Protocol):
    """The group coordinators, as far as timelines need them."""

    image: CommittedTopics
    turn: Turn

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def in_steps(self, steps: Iterator[None]) -> None: ...


class Noted(NamedTuple):
    """An event, and when it happened."""

    number: int
    at_ms: int
    monotonic_ms: int | None
    source: Literal["log", "memory"]
    event: Event


@dataclass
class Ring:
    """The last events of a group. `dropped`: the number of the last one before."""

    events: deque[Noted] = field(default_factory=deque)
    dropped: int = 0


@dataclass
class Followed:
    """A partition. `next_offset`: up to which it has been told. `waiting`: what happened while its log is being read;
    None when it has been.
    """

    stories: Stories
    topic_id: bytes | None
    next_offset: int = 0
    waiting: list[Callable[[], None]] | None = field(default_factory=list)


class Chronicle:
    """The timelines of all groups of a broker."""

    def __init__(self, groups: Coordinators, events_max: int) -> None:
        self._groups = groups
        self._events_max = events_max
        self.weight_max = WEIGHT_MAX
        self._rings: dict[str, Ring] = {}  # the group in which something happened last comes last
        self._weight = 0
        self._last = 0
        self._partitions: dict[int, Followed] = {}
        self._waiters: dict[str, dict[Later[None], None]] = {}
        self._to_wake: dict[str, None] = {}

    # what happens

    def follow(self, host: ShardHost[GroupShard]) -> None:
        """Adds what happens in a shard that was opened, after what its log has."""
        log, index = host.partition.open_log(), host.partition.index
        followed = self._partitions.get(index)
        if followed is None or followed.topic_id != log.topic_id or followed.next_offset > log.end_offset:
            followed = Followed(Stories(self._groups.image.topic_name), log.topic_id)
        followed = self._partitions[index] = replace(followed, waiting=[])  # ends a reader of the shard before
        host.runtime.on_appended = partial(self._appended, followed)
        host.shard.on_event = partial(self._in_memory, followed)
        self._groups.in_steps(self._read(index, followed, log))

    def _read(self, index: int, followed: Followed, log: Log) -> Iterator[None]:
        """Adds what is in the log, and then what has happened meanwhile."""
        end_offset = log.end_offset
        try:
            for _ in self._read_batches(followed, log, end_offset):
                yield
                if self._partitions.get(index) is not followed:
                    return
        except (OSError, IndexDamaged) as error:
            logger.warning("the timelines of groups lack what cannot be read of %s: %s", log.name, error)
        waiting, followed.waiting = followed.waiting, None
        for tell in waiting or ():
            tell()

    def _read_batches(self, followed: Followed, log: Log, end_offset: int) -> Iterator[None]:
        for segment, batch in log.batches_from(followed.next_offset):
            if batch.base_offset >= end_offset:
                return
            if batch.header is not None and not batch.header.is_control:
                try:
                    chunks = opening.contents(read_whole(segment, batch), BatchAt(0, batch.header))
                    records = [record for some in chunks for record in some]
                except MalformedMessage:
                    records = []
                self._tell(followed, records, batch.max_timestamp, None)
            followed.next_offset = batch.last_offset + 1
            yield

    def _appended(self, followed: Followed, end_offset: int, batch: Sequence[Encoded], at_ms: int) -> None:
        """A batch was appended by the shard of a partition."""
        monotonic_ms = self._groups.monotonic_ms()
        told = list(chain.from_iterable(one.told() if isinstance(one, Packed) else (one,) for one in batch))

        def tell() -> None:
            self._tell(followed, told, at_ms, monotonic_ms)
            followed.next_offset = end_offset

        if followed.waiting is None:
            tell()
        else:
            followed.waiting.append(tell)

    def _tell(self, followed: Followed, batch: Sequence[Encoded], at_ms: int, monotonic_ms: int | None) -> None:
        for group_id, event in followed.stories.feed(batch):
            self._note(group_id, event, at_ms, monotonic_ms, "log")

    def _in_memory(self, followed: Followed, group_id: str, event: Event) -> None:
        """Something happened that is not in the log."""
        tell = partial(self._note, group_id, event, self._groups.now_ms(), self._groups.monotonic_ms(), "memory")
        if followed.waiting is None:
            tell()
        else:
            followed.waiting.append(tell)

    def _note(
        self, group_id: str, event: Event, at_ms: int, monotonic_ms: int | None, source: Literal["log", "memory"]
    ) -> None:
        self._last += 1
        ring = self._rings[group_id] = self._rings.pop(group_id, Ring())
        ring.events.append(Noted(self._last, at_ms, monotonic_ms, source, event))
        self._weight += event.weight
        if len(ring.events) > self._events_max:
            self._drop_oldest(ring)
        while self._weight > self.weight_max:
            oldest = next(iter(self._rings))
            self._drop_oldest(self._rings[oldest])
            if not self._rings[oldest].events:
                del self._rings[oldest]
        if group_id in self._waiters and group_id not in self._to_wake:
            self._to_wake[group_id] = None
            self._groups.turn.schedule.soon(partial(self._wake, group_id))

    def _drop_oldest(self, ring: Ring) -> None:
        oldest = ring.events.popleft()
        ring.dropped = oldest.number
        self._weight -= oldest.event.weight

    def _wake(self, group_id: str) -> None:
        """What waits for events of a group gets all of this turn at once."""
        del self._to_wake[group_id]
        for later in self._waiters.pop(group_id, {}):
            later.finish(None)

    # what is asked

    def events(self, group_id: str, after: int, limit: int) -> list[GroupEventView]:
        """Returns the first events of a group with higher numbers than `after`."""
        ring = self._rings.get(group_id, Ring())
        found = [one for one in ring.events if one.number > after]
        return [shown(one.event, one.number, one.at_ms, one.monotonic_ms, one.source) for one in found[:limit]]

    @property
    def newest(self) -> int:
        """The number of the last event of any group. Numbers begin again when the broker starts."""
        return self._last

    @property
    def waiting(self) -> int:
        """How many wait for events."""
        return sum(map(len, self._waiters.values()))

    def has_dropped(self, group_id: str, after: int) -> bool:
        """Whether events of a group with higher numbers than `after` are not kept any more."""
        return self._rings.get(group_id, Ring()).dropped > after

    def next_event(self, group_id: str) -> Later[None]:
        """Completes when something happens in a group. Cancelling it ends the wait."""
        later: Later[None] = Later()
        waiters = self._waiters.setdefault(group_id, {})
        waiters[later] = None

        def forget() -> None:
            waiters.pop(later, None)
            if not waiters and self._waiters.get(group_id) is waiters:
                del self._waiters[group_id]

        later.on_cancel = forget
        return later
