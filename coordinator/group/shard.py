"""The group coordinator's shard: groups and offsets of one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer, Timers
from . import classic, heartbeat, joining, offsets, share_heartbeat
from .assignors.registry import Assignors
from .classic import ClassicGroup, State
from .consumer import ConsumerGroup, Resolved
from .environment import Environment
from .format import Commit, Commits
from .members import UNREVOKED_PARTITIONS, Member, with_current, with_metadata
from .share import Initialization, ShareGroup, ShareMember, initialization_of

EXPIRY = ("expiry",)
G = TypeVar("G", ConsumerGroup, ShareGroup)


class GroupShard:
    """Implements `Shard` for `__consumer_offsets`. Handlers are functions of the modules beside this one."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment, assignors: Assignors) -> None:
        self.timeline = timeline
        self.timers = timers
        self.env = env
        self.assignors = assignors
        self.groups: TimelineDict[str, Any] = TimelineDict(timeline)
        self.offsets = offsets.Offsets(timeline)
        self.initializations: TimelineDict[str, Initialization] = TimelineDict(timeline)  # share-partitions by share group
        self.others: TimelineDict[tuple[Any, ...], Any] = TimelineDict(timeline)  # records that later parts give a meaning
        self.groups_by_topic: dict[str, set[str]] = {}  # may hold groups that are not subscribed any more
        self.resolving: set[str] = set()  # groups whose regular expressions are being matched
        self.moved_at_ms: dict[str, int] = {}  # when a consumer or share group's epoch was last raised
        self.counts: Counter[str] = Counter()
        self.write: Callable[[Callable[[], Result]], None] = lambda handler: None  # runs a handler as a write of this shard

    # groups

    def existing(self, group_id: str, as_of: int | None = None) -> Any:
        """ApiError(GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(group_id, None, as_of)
        if group is None:
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def classic_group(self, group_id: str, create: bool) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None and create:
            group = ClassicGroup(group_id)
            self.groups.put_untracked(group_id, group)
        if not isinstance(group, ClassicGroup):
            raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """The consumer group that records are replayed to, made where it is not there."""
        return self._made(group_id, ConsumerGroup)

    def _made(self, group_id: str, kind: type[G]) -> G:
        group = self.groups.get(group_id)
        if not isinstance(group, kind):
            group = self.groups[group_id] = kind(group_id, self.timeline)
        return group

    def end_group(self, group: Any) -> list[CoordinatorRecord]:
        """The records that end a group; its timers end at once."""
        if isinstance(group, ClassicGroup):
            for member_id in (*group.members, *group.pending):
                self.cancel(("heartbeat", group.id, member_id))
            self.cancel(("join", group.id))
            self.cancel(("sync", group.id))
            return [group.tombstone()]
        self.moved_at_ms.pop(group.id, None)
        records: list[CoordinatorRecord] = group.tombstones()
        return records

    def delete_groups(self, group_ids: list[str]) -> Result:
        """DeleteGroups, each for itself."""
        r = messages.DeleteGroupsResponse
        results, records = [], []
        for group_id in group_ids:
            out = r.DeletableGroupResult(group_id=group_id)
            try:
                group = self.existing(group_id)
                if isinstance(group, ClassicGroup) and group.state is State.DEAD:
                    raise ApiError(Errors.GROUP_ID_NOT_FOUND)
                if not group.is_empty:
                    raise ApiError(Errors.NON_EMPTY_GROUP)
                records += offsets.all_tombstones(self, group_id)
                records += self.end_group(group)
            except ApiError as error:
                out.error_code = error.code
            results.append(out)
        return Result(records, results)

    # timers

    def schedule(self, key: tuple[Any, ...], delay_ms: int, operation: Callable[[], Result], retry: bool = True) -> None:
        """Timers of classic groups are not retried: what they change in memory has been changed, whatever became of their records."""
        self.timers.set(Timer(key, self.env.monotonic_ms() + max(0, delay_ms), lambda now: operation(), retry))

    def cancel(self, key: tuple[Any, ...]) -> None:
        self.timers.set(Timer(key, None))

    def await_session(self, group_id: str, member_id: str, kind: str = "consumer", timeout_ms: int | None = None) -> None:
        """A member of a consumer or share group must be heard of again in time."""
        if timeout_ms is None:
            timeout_ms = self.env.group_config(group_id, f"{kind}.session.timeout.ms")
        self.fence_later(("session", group_id, member_id), timeout_ms)

    def await_revocation(self, group_id: str, member: Member) -> None:
        """A member that owes partitions must have given them back in time, or have left the epoch at which it owed them."""
        member_id, epoch = member.id, member.epoch

        def fence() -> Result:
            group = self.groups.get(group_id)
            found = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            return heartbeat.fence(self, group, [found], None) if found is not None and found.epoch == epoch else Result()

        self.schedule(("rebalance", group_id, member_id), member.rebalance_timeout_ms, fence)

    def fence_later(self, key: tuple[str, str, str], timeout_ms: int, keep: bool = False) -> None:
        """Takes a member out at the end of a time-out. `keep`: a timer that runs already is left as it is.

        The timers of a member that goes run on: its records may yet fail to be appended, and what is gone cannot be taken out again.
        """
        if keep and key in self.timers:
            return
        kind, group_id, member_id = key

        def fence() -> Result:
            group = self.groups.get(group_id)
            if isinstance(group, ShareGroup):
                leaver = group.members.get(member_id)
                return share_heartbeat.fence(self, group, leaver) if leaver is not None else Result()
            found = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            if found is None or (kind != "session" and not found.is_classic):
                return Result()
            return heartbeat.fence(self, group, [found], None)

        self.schedule(key, timeout_ms, fence)

    # the shard

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        kind = type(value)
        if kind is Commit or kind is Commits:
            if value.group not in self.groups:
                self.groups.put_untracked(value.group, ClassicGroup(value.group))
            put = self.offsets.put if kind is Commit else self.offsets.put_all
            return put(offset, producer_id, value)
        replay = _REPLAYS.get(type(key).__name__)
        if replay is not None:
            replay(self, offset, producer_id, key, value)
            return
        kept = (type(key).__name__, *(getattr(key, name) for name in key.__slots__ if name != "unknown_tags"))
        if value is None:
            self.others.pop(kept)
        else:
            self.others[kept] = value

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        self.offsets.replay_marker(producer_id, committed)

    def replay_offset(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        if value is not None and key.group not in self.groups:
            self.groups.put_untracked(key.group, ClassicGroup(key.group))
        self.offsets.replay(offset, producer_id, key, value)

    def replay_legacy_offset(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        """A commit from before the type had its number."""
        k = messages.OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        v = value and messages.OffsetCommitValue(offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp)
        self.replay_offset(offset, producer_id, k, v)

    def replay_classic(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        if value is None:
            self.groups.pop(key.group)
        else:
            self.groups[key.group] = classic.from_record(key.group, value)

    def replay_epoch(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        if value is not None:
            self._made(key.group_id, _kind_of(key)).set_epoch(value.epoch, value.metadata_hash)
        elif isinstance(self.groups.get(key.group_id), _kind_of(key)):
            self.groups.pop(key.group_id)

    def replay_partition_metadata(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, ConsumerGroup)
        if group is not None:
            group.set_partition_metadata(value is not None)

    def replay_member(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, _kind_of(key))
        if group is None:
            return
        if value is None:
            group.remove_member(key.member_id)
            return
        before = group.members.get(key.member_id)
        if isinstance(group, ShareGroup):
            group.set_member((before or ShareMember(key.member_id)).with_metadata(value))
        else:
            group.set_member(with_metadata(before or Member(key.member_id), value))
        for name in value.subscribed_topic_names:
            self.groups_by_topic.setdefault(name, set()).add(key.group_id)

    def replay_assignment(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, _kind_of(key))
        if group is not None:
            group.set_assignment(*((-1, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp)))

    def replay_target(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, _kind_of(key))
        if group is None:
            return
        if value is None:
            group.targets.pop(key.member_id)
        else:
            group.targets[key.member_id] = {t.topic_id: frozenset(t.partitions) for t in value.topic_partitions if t.partitions}

    def replay_current(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, ConsumerGroup)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.set_member(with_current(member or Member(key.member_id), value))
        elif member is not None:
            nothing = messages.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=-1, previous_member_epoch=-1, state=member.state)
            group.set_member(with_current(member, nothing))

    def replay_share_current(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, ShareGroup)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.set_member((member or ShareMember(key.member_id)).with_current(value))
        elif member is not None:
            group.set_member(replace(member, epoch=-1, previous_epoch=-1, assigned={}))

    def replay_initialization(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        if value is None:
            self.initializations.pop(key.group_id)
        else:
            self._made(key.group_id, ShareGroup)
            self.initializations[key.group_id] = initialization_of(value, self.env.now_ms())

    def replay_regex(self, offset: int, producer_id: int, key: Any, value: Any) -> None:
        group = self._replayed(key, value, ConsumerGroup)
        if group is None:
            return
        resolved = None if value is None else Resolved(frozenset(value.topics), value.version, value.timestamp)
        group.set_regex(key.regular_expression, resolved)
        for name in resolved.topics if resolved else ():
            self.groups_by_topic.setdefault(name, set()).add(key.group_id)

    def _replayed(self, key: Any, value: Any, kind: type[G]) -> G | None:
        """The group of a record, which is of this kind; None for the tombstone of one that is not there."""
        if value is None:
            group = self.groups.get(key.group_id)
            return group if isinstance(group, kind) else None
        return self._made(key.group_id, kind)

    def on_loaded(self, now_ms: int) -> list[Timer]:
        for group_id, group in list(self.groups.items()):
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self.await_session(group_id, member.id)
                    if member.state == UNREVOKED_PARTITIONS:
                        self.await_revocation(group_id, member)
            elif isinstance(group, ShareGroup):
                for sharer in group.members.values():
                    self.await_session(group_id, sharer.id, "share")
            elif isinstance(group, ClassicGroup):
                for one in group.members.values():
                    joining.renew_session(self, group, one)
                if len(group.members) > self.env.config("group.max.size"):
                    joining.prepare_rebalance(self, group)
        self._await_expiry()
        return []

    def on_unloaded(self) -> None:
        """Whoever waits for a rebalance or an assignment must look for another coordinator."""
        gone = int(Errors.NOT_COORDINATOR)
        for group in list(self.groups.values()):
            if isinstance(group, ClassicGroup):
                for member in list(group.members.values()):
                    error = messages.JoinGroupResponse(error_code=gone, member_id=member.id, protocol_type=None, protocol_name=None)
                    group.answer_join(member, error)
                    group.answer_sync(member, messages.SyncGroupResponse(error_code=gone, assignment=b""))
                group.become(State.DEAD, self.env.now_ms())

    # what happens by itself

    def _await_expiry(self) -> None:
        self.schedule(EXPIRY, self.env.config("offsets.retention.check.interval.ms"), self.expire)

    def expire(self) -> Result:
        """Takes out offsets that have had their time, and groups of which nothing is left."""
        records: list[CoordinatorRecord] = []
        for group_id, group in list(self.groups.items()):
            if isinstance(group, ClassicGroup | ConsumerGroup) and offsets.expired(self, group_id, records) and group.is_empty:
                records += self.end_group(group)
        self._await_expiry()
        for group_id in [g for g, found in self.offsets.by_group.items() if not len(found) and g not in self.groups]:
            del self.offsets.by_group[group_id]
        return Result(records, atomic=False)

    def topic_changed(self, name: str) -> None:
        """A topic was made, grew or went: the groups that are subscribed to it look at their metadata again."""
        for group_id in list(self.groups_by_topic.get(name, ())):
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup | ShareGroup):
                if name in group.topics:
                    group.refresh_at_ms = (0, 0)
            else:
                self.groups_by_topic[name].discard(group_id)

    def resolved(self, group_id: str, found: dict[str, Resolved] | None, error: BaseException | None) -> None:
        """The regular expressions of a group have been matched elsewhere."""
        self.resolving.discard(group_id)
        if error is None and found is not None:
            self.write(lambda: heartbeat.regexes_resolved(self, group_id, found))


def _kind_of(key: Any) -> type[Any]:
    """The kind of group that a record of a KIP-848 or KIP-932 group is about."""
    return ShareGroup if type(key).__name__.startswith("Share") else ConsumerGroup


_REPLAYS: dict[str, Callable[[GroupShard, int, int, Any, Any], None]] = {
    "OffsetCommitKey": GroupShard.replay_offset,
    "LegacyOffsetCommitKey": GroupShard.replay_legacy_offset,
    "GroupMetadataKey": GroupShard.replay_classic,
    "ConsumerGroupMetadataKey": GroupShard.replay_epoch,
    "ConsumerGroupPartitionMetadataKey": GroupShard.replay_partition_metadata,
    "ConsumerGroupMemberMetadataKey": GroupShard.replay_member,
    "ConsumerGroupTargetAssignmentMetadataKey": GroupShard.replay_assignment,
    "ConsumerGroupTargetAssignmentMemberKey": GroupShard.replay_target,
    "ConsumerGroupCurrentMemberAssignmentKey": GroupShard.replay_current,
    "ConsumerGroupRegularExpressionKey": GroupShard.replay_regex,
    "ShareGroupMetadataKey": GroupShard.replay_epoch,
    "ShareGroupMemberMetadataKey": GroupShard.replay_member,
    "ShareGroupTargetAssignmentMetadataKey": GroupShard.replay_assignment,
    "ShareGroupTargetAssignmentMemberKey": GroupShard.replay_target,
    "ShareGroupCurrentMemberAssignmentKey": GroupShard.replay_share_current,
    "ShareGroupStatePartitionMetadataKey": GroupShard.replay_initialization,
}
