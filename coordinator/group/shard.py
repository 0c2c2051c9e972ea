"""The group coordinator's shard: what the runtime does with the groups
and offsets of one partition of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ...protocol.control import Marker
from ...protocol.structs import Struct
from ..shard import Result
from ..timers import Round, Timer
from . import deletion
from .classic import records as classic_records
from .consumer import records as consumer_records
from .consumer.leaving import MembersGone
from .format import Commit, Commits
from .modern import ModernGroup
from .modern_replay import Replay
from .offsets import replay as offset_replay
from .offsets.long_commits import LongCommits
from .routes import LOADED, TIMERS, UNLOADED
from .share import records as share_records
from .state import ShardState, TimerKey
from .streams import records as streams_records

EXPIRY = ("expiry",)
STEP_GROUPS = 256  # whose members get their timers before other events are handled
REPLAYS: dict[str, Replay] = {
    **classic_records.REPLAYS,
    **consumer_records.REPLAYS,
    **share_records.REPLAYS,
    **streams_records.REPLAYS,
}
"""By the class of the key."""


class GroupShard(ShardState):
    """Implements `Shard` for `__consumer_offsets`."""

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Struct, value: Any) -> None:
        kind = type(value)
        if kind is Commit or kind is Commits or kind is LongCommits:
            if value.group not in self.groups:
                self.put_simple(value.group)
            put = self.offsets.put if kind is Commit else self.offsets.put_all
            return put(offset, producer_id, value)
        if kind is MembersGone:
            return consumer_records.replay_gone(self, value.group, value.member_ids)
        name = type(key).__name__
        if name in REPLAYS:
            REPLAYS[name](self, key, value)
        else:
            offset_replay.REPLAYS[name](self, offset, producer_id, key, value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> Iterator[None]:
        return self.offsets.replay_marker(producer_id, marker.committed)

    def on_loaded(self, now_ms: int) -> Iterator[Timer | None]:
        for number, group in enumerate(list(self.groups.values()), 1):
            LOADED[type(group)](self, group)
            if number % STEP_GROUPS == 0:
                yield None
        interval_ms = self.env.config("offsets.retention.check.interval.ms")
        self.timers.begin_rounds(
            self.env.monotonic_ms,
            Round(EXPIRY, interval_ms, now_ms, lambda now: self.expire(), self._has_groups),
        )

    def on_unloaded(self) -> None:
        self.assigning.clear()
        for group in list(self.groups.values()):
            unloaded = UNLOADED.get(type(group))
            if unloaded is not None:
                unloaded(self, group)

    def on_timer(self, key: TimerKey, arguments: tuple[object, ...], now_ms: int) -> Result:
        name, group_id, *rest = key
        group = self.groups.get(group_id)
        ended = TIMERS.get((name, type(group)))
        return Result() if ended is None else ended(self, group, *rest, *arguments)

    def expire(self) -> Result:
        """Takes out offsets that have expired, and groups that have neither members nor offsets then."""
        return deletion.expire(self)

    def _has_groups(self) -> bool:
        """Whether something may expire: groups, or what is left of their offsets."""
        return bool(self.groups or self.offsets.by_group)

    def topics_changed(self, names: Iterable[str], settled: Callable[[Callable[[], None]], None]) -> Iterator[None]:
        """Topics were created, grew or were deleted: the groups that are subscribed to them compute their metadata hash
        again. `settled`: runs a change of soft state that no append takes back.
        """
        for name in names:
            found = list(self.groups_by_topic.get(name, ()))
            for at in range(0, len(found), STEP_GROUPS):
                settled(partial(self._refresh, name, found[at : at + STEP_GROUPS]))
                yield

    def _refresh(self, name: str, group_ids: list[str]) -> None:
        for group_id in group_ids:
            group = self.groups.get(group_id)
            if not isinstance(group, ModernGroup):
                self.groups_by_topic[name].pop(group_id, None)
            elif group.needs(name):
                group.refresh_at_ms = (0, 0)
