"""The state of a shard: what handlers read, and change by records, timers and soft state.

The handlers of all kinds of groups are functions of a `ShardState`. `GroupShard` adds what the runtime needs: replay,
timers that end, loading, periodic work. It knows all handlers, and they do not know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..journaled import Journaled, JournaledDict
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer, Timers
from .assignment_work import Failure
from .assignors.registry import Assignors
from .classic.group import ClassicGroup
from .environment import Environment
from .events import Event
from .group import Group
from .modern import AnyModernGroup
from .offsets.store import Offsets
from .share.group import Initialization

TimerKey = tuple[str, ...]
"""The name of a timer, then what it is for: nothing, a group, or a group and a member."""
G = TypeVar("G", bound=Group)
M = TypeVar("M", bound=AnyModernGroup)
V = TypeVar("V")


@dataclass(slots=True, kw_only=True, eq=False)
class GivenOut(Journaled):
    """The ids that were given to new members of classic groups, by group and member id, and the memory for them."""

    ids: dict[tuple[str, str], None] = field(init=False)
    size_bytes: int = 0  # about

    def __post_init__(self) -> None:
        self.ids = JournaledDict(self.journal)


class ShardState:
    """Groups and offsets of one partition of `__consumer_offsets`, and the work that is under way for them."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment, assignors: Assignors) -> None:
        journal = self.journal = timeline.journal
        self.timeline = timeline
        self.timers = timers
        self.env = env
        self.assignors = assignors
        self.groups: TimelineDict[str, Group] = TimelineDict(timeline)
        self.groups_most = 0  # that there were at once, by which Kafka orders them
        self.offsets = Offsets(timeline)
        # the share-partitions that are initialized, by share group
        self.initializations: TimelineDict[str, Initialization] = TimelineDict(timeline)
        self.groups_by_topic: dict[str, dict[str, None]] = {}  # may hold groups that are no longer subscribed
        # groups whose regular expressions are being matched, which ends in no write
        self.resolving: dict[str, None] = {}
        # the monotonic time at which the epoch of a modern group was last raised
        self.moved_at_ms: dict[str, int] = JournaledDict(journal)
        self.assigning: dict[str, object] = {}  # assignments that are being computed, by group
        # why the last assignment could not be computed, until a heartbeat is answered with the reason
        self.assignor_failures: dict[str, Failure] = {}
        self.given_out = GivenOut(journal=journal)
        self.counts: Counter[str] = Counter()
        # runs a handler as a write of this shard
        self.write: Callable[[str, Callable[[], Result]], None] = lambda name, handler: None

        # is called with what happens to groups and is not in the log; None if nothing asks for it
        self.on_event: Callable[[str, Event], None] | None = None

    # groups

    def tell(self, group: Group, what: str, member: str | None = None, why: str = "", epoch: int = -1) -> None:
        """Something happens to a group that is not in the log; it is told when the records of this write are
        appended.
        """
        if self.on_event is not None:
            event = Event(what, group.kind, epoch, member, why)
            self.journal.after(partial(self.on_event, group.id, event))

    def existing(self, group_id: str, as_of: int | None = None) -> Group:
        """Raises ApiError(GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(group_id, None, as_of)
        if group is None:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def existing_of(self, kind: type[G], group_id: str, as_of: int | None = None) -> G:
        """Raises ApiError(GROUP_ID_NOT_FOUND): also for a group of another kind."""
        group = self.existing(group_id, as_of)
        if not isinstance(group, kind):
            raise other_kind(group_id, kind.kind)
        return group

    def put_simple(self, group_id: str, is_seen: bool = True) -> ClassicGroup:
        """Creates a group of which the log has at most offsets. `is_seen`: by all readers at once, and not only by
        those who write, and by others after the next write.
        """
        group = ClassicGroup(group_id, journal=self.journal)
        put = self.groups.put_untracked if is_seen else self.groups.decide
        put(group_id, group)
        self.note_group()
        return group

    def note_group(self) -> None:
        """A group was created."""
        self.groups_most = max(self.groups_most, len(self.groups))

    def made(self, kind: type[M], group_id: str) -> M:
        """Returns the modern group of a replayed record; creates it if it does not exist or is of another kind."""
        group = self.groups.get(group_id)
        if not isinstance(group, kind):
            group = kind(group_id, self.timeline)
            self.groups[group_id] = group
            self.note_group()
        return group

    def end_group(self, group: Group) -> list[CoordinatorRecord]:
        """Returns the records that end a group, and forgets its soft state."""
        self.moved_at_ms.pop(group.id, None)
        self.assignor_failures.pop(group.id, None)
        return group.tombstones()

    def note_topics(self, group_id: str, names: Iterable[str]) -> None:
        """Notes the topics of a group, whose metadata hash is computed again when they change."""
        for name in names:
            self.groups_by_topic.setdefault(name, {})[group_id] = None

    def named(self, partitions: Mapping[bytes, V]) -> Iterator[tuple[bytes, str, V]]:
        """Yields the id, the name and the partitions of each topic; topics that do not exist are left out."""
        for topic_id, of in partitions.items():
            name = self.env.image.topic_name(topic_id)
            if name is not None:
                yield topic_id, name, of

    # timers

    def schedule(self, key: TimerKey, delay_ms: int, *arguments: object) -> None:
        """Sets a timer. When it ends, `on_timer` runs with these arguments."""
        self.timers.set(Timer(key, self.env.monotonic_ms() + max(0, delay_ms), partial(self.on_timer, key, arguments)))

    def renew(self, key: TimerKey, delay_ms: int) -> None:
        """Like `schedule`, for a timer that never has arguments and is set again by each request of a member."""
        if not self.timers.move(key, self.env.monotonic_ms() + max(0, delay_ms)):
            self.schedule(key, delay_ms)

    def renew_each(self, delays_ms: Iterable[tuple[TimerKey, int]]) -> None:
        """Like `renew` for each of many timers."""
        for key, delay_ms in self.timers.move_each(self.env.monotonic_ms(), delays_ms):
            self.schedule(key, delay_ms)

    def cancel(self, key: TimerKey) -> None:
        self.timers.cancel(key)

    def on_timer(self, key: TimerKey, arguments: tuple[object, ...], now_ms: int) -> Result:
        """Decides what follows when a timer ends. `GroupShard` looks that up in a table."""
        raise NotImplementedError

    def await_session(self, group: AnyModernGroup, member_id: str, timeout_ms: int | None = None) -> None:
        """A member of a modern group must send another request in time."""
        if timeout_ms is None:
            timeout_ms = self.env.group_config(group.id, f"{group.kind}.session.timeout.ms")
        self.renew(("session", group.id, member_id), timeout_ms)


def other_kind(group_id: str, kind: str) -> ApiError:
    """The error for a group that is not of the requested kind."""
    return ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")
