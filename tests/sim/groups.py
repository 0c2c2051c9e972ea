"""Groups under trouble: members of both protocols, lost, doubled and late requests, crashes, held watermarks, failed
appends, reloads.

    python -m tests.sim groups [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. After every step the coordinator's state is held against
the invariants below; at the end the trouble stops, and everything must settle. A failure prints its seed; `seed=N`
repeats it.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.broker.shards.host import ShardHost
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.group.bridge import removal
from ottla.coordinator.group.classic import sync
from ottla.coordinator.group.classic.group import ClassicGroup, State
from ottla.coordinator.group.consumer import membership, subscription
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.reconciliation import Reconciliation
from ottla.coordinator.group.offsets.of_group import OffsetsOfGroup
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers
from ottla.protocol import messages as m

from ..support.at_once import IN_WORLD
from ..support.bugs import Bug
from ..support.failing_appends import fail_appends
from ..support.world import Answer, World, replayed, told_with
from .group_members import (
    TOPICS,
    ClassicMemberOf,
    ConsumerMember,
    Member,
)

_created: list[Any] = []  # a world with its topics, of which every history begins with a copy


class Sim:
    """One history, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = _world()
        self.trouble = True
        self.members: list[Member] = []
        self.count = 0
        self.epochs: dict[str, tuple[int, int]] = {}  # a consumer group's object and its epoch
        self.member_epochs: dict[tuple[int, str], int] = {}
        self.commits: list[tuple[Answer, str, int]] = []
        self.acknowledged: dict[str, int] = {}
        self.next_offset = 1
        self.held_until_ms = self.failing_until_ms = 0
        self.reloads = 0

    @property
    def now_ms(self) -> int:
        return self.world.schedule.monotonic_ms()

    @property
    def host(self) -> ShardHost[GroupShard]:
        return self.world.broker.groups.hosts[0]

    @property
    def shard(self) -> GroupShard:
        return self.host.shard

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.act()
            self.world.pass_ms(self.chance.choice((1, 20, 200, 1500)))
            for one in list(self.members):
                one.step()
            self.check()
        self.settle()

    def act(self) -> None:
        dice = self.chance.random()
        if dice < 0.10 and len(self.members) < 6:
            self.count += 1
            kind = ConsumerMember if self.chance.random() < 0.6 else ClassicMemberOf
            self.members.append(kind(self, self.count, "new" if kind is ConsumerMember else "old"))
        elif dice < 0.14 and self.members:
            self._drop(self.chance.choice(self.members), politely=True)
        elif dice < 0.16 and self.members:
            self._drop(self.chance.choice(self.members), politely=False)
        elif dice < 0.20 and self.members:
            one = self.chance.choice(self.members)
            if isinstance(one, ConsumerMember):
                one.change_topics()
        elif dice < 0.30 and self.members:
            one = self.chance.choice(self.members)
            assert isinstance(one, ConsumerMember | ClassicMemberOf)
            one.commit()
        elif dice < 0.32:
            self._policy("held")
            self.held_until_ms = self.now_ms + self.chance.randint(100, 9000)
        elif dice < 0.34:
            fail_appends(self.world, self.host.partition)
            self.failing_until_ms = self.now_ms + self.chance.randint(1, 1000)
        elif dice < 0.36:
            self.reloads += 1
            self.world.broker.turn.event(lambda: self.world.broker.groups.reload(self.host.partition))
        elif dice < 0.37:
            self.world.pass_ms(self.chance.randint(10_000, 50_000))
        if self.held_until_ms and self.now_ms >= self.held_until_ms:
            self._policy("immediate")
        if self.failing_until_ms and self.now_ms >= self.failing_until_ms:
            self.appends_succeed()

    def _drop(self, one: Any, politely: bool) -> None:
        if politely:
            one.leave()
        self.members.remove(one)

    def appends_succeed(self) -> None:
        fail_appends(self.world)
        self.failing_until_ms = 0

    def _policy(self, text: str) -> None:
        self.held_until_ms = 0
        self.world.broker.policies.set(TOPIC_NAME, None, parse_policy(text))
        self.world.broker.turn.event(self.world.broker.replicas.configure)

    def commit(self, group: str, member_id: str, epoch: int) -> None:
        """Commits an offset for the first time; commits of one group go up, so the greatest acknowledged one
        must stay.
        """
        r = m.OffsetCommitRequest
        offset, self.next_offset = self.next_offset, self.next_offset + 1
        count = 1 + 2 * (offset % 2)  # for the first one alone, or for all, which are kept together
        parts = [r.OffsetCommitRequestPartition(partition_index=n, committed_offset=offset) for n in range(count)]
        request = r(group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch)
        request.topics = [r.OffsetCommitRequestTopic(name="a", partitions=parts)]
        self.commits.append((self.world.send("OffsetCommit", 9, request), group, offset))

    # what must hold

    def check(self) -> None:
        for group_id, group in self.shard.groups.items():
            if isinstance(group, ConsumerGroup):
                self._check_owners(group)
                self._check_epochs(group_id, group)
            elif isinstance(group, ClassicGroup):
                self._check_classic(group)
        self._check_commits()
        if (
            self.chance.random() < 0.05
            and self.host.runtime.state.value == "active"
            and self.host.runtime.describe(0)["uncommitted_records"] == 0
        ):
            check_replay(self.host)
        assert self.host.runtime.bugs.count == 0, "a handler failed"
        assert self.world.broker.metrics.bugs == 0, "an API failed"

    @staticmethod
    def _check_owners(group: ConsumerGroup) -> None:
        owner: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for part in (member.assigned, member.revoking):
                for topic, partitions in part.items():
                    for partition in partitions:
                        other = owner.setdefault((topic, partition), member.id)
                        assert other == member.id, f"{other} and {member.id} own {topic.hex()[:6]}-{partition}"
        assert set(owner) == set(group.owner_epochs), "the table of owners is not what the members have"
        for instance, member_id in group.static_members.items():
            assert member_id in group.members, f"{instance} is unknown"
        targets = [(t, p) for target in group.targets.values() for t, of in target.items() for p in of]
        assert len(targets) == len(set(targets)), "a target is given twice"

    def _check_epochs(self, group_id: str, group: ConsumerGroup) -> None:
        assert group.assignment_epoch <= group.epoch
        if self.host.runtime.last_written_offset != self.host.runtime.committed_offset:
            return  # what is not committed may be taken back
        known, epoch = self.epochs.get(group_id, (0, 0))
        assert known != id(group) or group.epoch >= epoch, f"epoch {epoch} went back to {group.epoch}"
        self.epochs[group_id] = (id(group), group.epoch)
        for member in group.members.values():
            assert member.epoch <= group.epoch, f"{member.id} is ahead of its group"

    @staticmethod
    def _check_classic(group: ClassicGroup) -> None:
        assert group.joins.keys() | group.syncs.keys() | group.newcomers.keys() <= group.members.keys()
        assert (group.state is State.EMPTY) <= (not group.members), "an empty group with members"
        assert group.leader is None or group.leader in group.members, "the leader is no member"
        assert all(group.members[i].instance_id == n for n, i in group.static_members.items())
        if group.state is not State.COMPLETING_REBALANCE:
            assert not group.syncs, "a SyncGroup that will have no answer"
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            waiting = [one for one in group.joins if group.members[one].instance_id is None]
            assert not waiting, "a JoinGroup that will have no answer"

    def _check_commits(self) -> None:
        """An acknowledged commit is committed: a reader sees it, or a later one."""
        waiting = []
        for answer, group, offset in self.commits:
            if not answer.done:
                waiting.append((answer, group, offset))
            elif answer.reply is not None and answer.reply.topics[0].partitions[0].error_code == 0:
                self.acknowledged[group] = max(self.acknowledged.get(group, 0), offset)
        self.commits = waiting
        runtime = self.host.runtime
        if runtime.state.value == "active":
            for group, offset in self.acknowledged.items():
                found = self.shard.offsets.of(group).get(("a", 0), runtime.committed_offset)
                assert found is not None, f"the commit {offset} of {group} is not committed"
                assert found[1] >= offset, f"the commit {offset} of {group} is not committed, {found[1]} is"

    def settle(self) -> None:
        """The trouble stops: within ten minutes everyone has what is theirs."""
        self.trouble = False
        self._policy("immediate")
        self.appends_succeed()
        for _ in range(600):
            self.world.pass_ms(1000)
            for one in self.members:
                one.step()
            self.check()
            if self._is_settled():
                break
        else:
            raise AssertionError(f"does not settle: {self._situation()}")
        check_replay(self.host)

    def _is_settled(self) -> bool:
        wanted: dict[str, list[Any]] = {
            "new": [o for o in self.members if isinstance(o, ConsumerMember)],
            "old": [o for o in self.members if isinstance(o, ClassicMemberOf)],
        }
        for name, clients in wanted.items():
            group = self.shard.groups.get(name)
            if group is None:
                if clients:
                    return False
                continue
            if isinstance(group, ConsumerGroup):
                if not self._is_settled_consumer(group, clients):
                    return False
            elif not isinstance(group, ClassicGroup) or not _is_settled_classic(group, clients):
                return False
        return True

    def _is_settled_consumer(self, group: ConsumerGroup, clients: list[Any]) -> bool:
        if set(group.members) != {o.id for o in _distinct(clients)} or group.state_name() not in ("Stable", "Empty"):
            return False
        image = self.world.broker.groups.image
        subscribed = {image.topic_id(name) for o in _distinct(clients) for name in o.topics}
        every = {(topic, p) for topic in subscribed if topic for p in range(image.partition_count(topic))}
        believed = [one for o in _distinct(clients) for one in o.owned]
        return len(believed) == len(set(believed)) and set(believed) == every

    def _situation(self) -> str:
        parts = []
        for name, group in self.shard.groups.items():
            assert isinstance(group, ClassicGroup | ConsumerGroup)
            parts.append(f"{name} {group.state_name()} {sorted(group.members)}")
        return (
            f"{parts}; clients "
            f"{[(type(o).__name__, getattr(o, 'id', ''), getattr(o, 'todo', '')) for o in self.members]}"
        )


def _is_settled_classic(group: ClassicGroup, clients: list[Any]) -> bool:
    if len(group.members) != len(_distinct(clients)) or (clients and group.state is not State.STABLE):
        return False
    return not clients or {o.generation for o in clients if o.id in group.members} == {group.generation}


def _distinct(clients: list[Any]) -> list[Any]:
    """Of static members with one name only one can be in."""
    seen: dict[Any, Any] = {}
    for one in clients:
        seen[one.instance or one] = one
    return list(seen.values())


def _world() -> World:
    """A world with its topics: made once, then begun again from its files."""
    if not _created:
        world = World(offsets_topic_num_partitions="1", **IN_WORLD)
        r = m.CreateTopicsRequest
        topics = [r.CreatableTopic(name=n, num_partitions=c, replication_factor=1) for n, c in TOPICS.items()]
        world.ask("CreateTopics", 5, r(topics=topics, timeout_ms=1000))
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        world.broker.stop()
        _created.append(world.files)
    world = World(copy.deepcopy(_created[0]), offsets_topic_num_partitions="1", **IN_WORLD)
    world.pass_ms(100)
    return world


def check_replay(host: ShardHost[GroupShard]) -> None:
    """What lives in memory is what the log would give."""
    fresh = replayed(GroupShard(Timeline(), Timers(), host.shard.env, host.shard.assignors), host)
    live = host.shard
    for group_id, group in live.groups.items():
        other = fresh.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            assert isinstance(other, ConsumerGroup), f"{group_id} is not in the log"
            for name in (
                "members",
                "static_members",
                "targets",
                "owner_epochs",
                "topics",
                "regexes",
                "regex_counts",
                "assignor_votes",
            ):
                mine, theirs = dict(getattr(group, name).items()), dict(getattr(other, name).items())
                assert mine == theirs, f"{group_id}.{name}: {mine} lives, the log has {theirs}"
            assert (group.epoch, group.assignment_epoch, group.metadata_hash) == (
                other.epoch,
                other.assignment_epoch,
                other.metadata_hash,
            )
        elif isinstance(group, ClassicGroup) and group.state is State.STABLE:
            assert isinstance(other, ClassicGroup)
            assert (group.generation, group.protocol, group.leader) == (other.generation, other.protocol, other.leader)
            given, known = ({i: one.assignments.get(i, b"") for i in one.members} for one in (group, other))
            assert given == known, f"{group_id}: other assignments than in the log"
    for group_id, committed in live.offsets.by_group.items():
        assert committed.at() == fresh.offsets.of(group_id).at(), f"{group_id}: other offsets than in the log"


def run(seed: int, steps: int = 60) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)


# Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
# with each of them.
BUGS: tuple[Bug, ...] = (
    (
        Reconciliation,
        "_towards_target",
        "free = [p for p in pending if p in mine or self.owner_epoch(topic, p) == -1]",
        "free = pending",
    ),
    (ConsumerGroup, "_own", "for key in _owned(before) - owned:", "for key in ():"),
    (removal, "remove", "epoch = epochs.after(group.epoch)", "epoch = group.epoch"),
    (subscription, "subscribe", "bump = names_changed or (", "bump = ("),
    (sync, "_store", "group.become(State.STABLE, shard.env.now_ms())", "shard.counts"),
    (ClassicGroup, "remove", "if self.leader in member_ids:", "if self.leader is None:"),
    (ConsumerGroup, "remove_member", "self._drop_static(before)", "self.members"),
    (membership, "loaded", "shard.await_session(group, member.id)", "shard.timers"),
    (Runtime, "_revert_batch", "self.timeline.revert(self.last_written_offset)", "self.timeline.offsets"),
    (Runtime, "_appended", "self._parked.park(parked, end)", "[self._parked.finish(one, None) for one in parked]"),
    (
        OffsetsOfGroup,
        "put_all",
        "self._together[known] = (offset, commits)",
        "self._together._now[known] = (offset, commits)",
    ),
)
