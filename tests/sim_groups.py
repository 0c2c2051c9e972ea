"""Groups under trouble: members of both protocols, lost, doubled and late requests, crashes, held watermarks, failed appends, reloads.

    python -m tests.sim groups [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. After every step the coordinator's state is held against the invariants
below; at the end the trouble stops, and everything must settle. A failure prints its seed; `seed=N` repeats it.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from ottla.broker.coordinators import TOPIC_NAME
from ottla.broker.hosting import Host
from ottla.broker.replication import parse_policy
from ottla.coordinator.group import heartbeat, joining, members, offsets
from ottla.coordinator.group.classic import ClassicGroup, State
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.runtime import Runtime
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from .bugs import Bug
from .world import Answer, World, replayed, told_with

TOPICS = {"a": 3, "b": 2, "c": 5}
RETRIABLE = {
    int(e)
    for e in (
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.UNKNOWN_SERVER_ERROR,
    )
}
SESSION_MS = 45_000
_created: list[Any] = []  # a world with its topics, of which every history begins with a copy


class Member:
    """A client as the simulator plays it: it asks, waits for its answer, and believes what it is told."""

    def __init__(self, sim: Sim, number: int) -> None:
        self.sim = sim
        self.number = number
        self.waiting: Answer | None = None
        self.gone = False
        self.next_ms = 0

    def ask(self, name: str, version: int, message: Any) -> None:
        """Sends a request; trouble may lose it, double it, or lose its answer."""
        chance, world = self.sim.chance, self.sim.world
        self.waiting = None
        if self.sim.trouble and chance.random() < 0.05:
            return
        self.waiting = world.send(name, version, message)
        if self.sim.trouble and chance.random() < 0.05:
            world.send(name, version, message)
        if self.sim.trouble and chance.random() < 0.05:
            self.waiting = None

    def step(self) -> None:
        answer = self.waiting
        if answer is not None and answer.done:
            self.waiting = None
            if answer.reply is not None:
                self.take(answer.reply)
        elif answer is not None and self.sim.now_ms < self.next_ms + 8000:
            return
        if self.sim.now_ms >= self.next_ms:
            self.next_ms = self.sim.now_ms + self.sim.chance.randint(100, 3000)
            self.beat()

    def take(self, reply: Any) -> None:
        raise NotImplementedError

    def beat(self) -> None:
        raise NotImplementedError


class ConsumerMember(Member):
    """KIP-848: revokes at once what it is told to give back, and tells what it owns then."""

    def __init__(self, sim: Sim, number: int, group: str) -> None:
        super().__init__(sim, number)
        self.group = group
        self.id = f"m{number}"
        self.instance = f"i{number % 3}" if number % 4 == 0 else None
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.topics = sorted(sim.chance.sample(sorted(TOPICS), sim.chance.randint(1, 3)))
        self.tell_topics = True

    def beat(self) -> None:
        r = m.ConsumerGroupHeartbeatRequest
        request = r(group_id=self.group, member_id=self.id, member_epoch=self.epoch, instance_id=self.instance)
        owned: dict[bytes, list[int]] = {}
        for topic, partition in sorted(self.owned):
            owned.setdefault(topic, []).append(partition)
        if self.epoch == 0:
            self.owned = set()
            owned = {}
        if self.epoch == 0 or self.tell_topics or self.sim.chance.random() < 0.1:
            request.subscribed_topic_names = self.topics
            request.rebalance_timeout_ms = 20_000
        request.topic_partitions = [r.TopicPartitions(topic_id=t, partitions=p) for t, p in owned.items()]
        self.ask("ConsumerGroupHeartbeat", 1, request)

    def take(self, reply: Any) -> None:
        code = reply.error_code
        if code in (Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH, Errors.GROUP_ID_NOT_FOUND, Errors.FENCED_INSTANCE_ID):
            self.epoch, self.owned = 0, set()
        elif code == Errors.UNRELEASED_INSTANCE_ID:
            self.owned = set()
        elif code == 0:
            self.tell_topics = False
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.owned = {(t.topic_id, p) for t in reply.assignment.topic_partitions for p in t.partitions}
        else:
            assert code in RETRIABLE, f"{self.id} was told {code} {reply.error_message}"

    def change_topics(self) -> None:
        self.topics = sorted(self.sim.chance.sample(sorted(TOPICS), self.sim.chance.randint(1, 3)))
        self.tell_topics = True

    def leave(self) -> None:
        r = m.ConsumerGroupHeartbeatRequest
        epoch = -2 if self.instance is not None and self.sim.chance.random() < 0.5 else -1
        self.ask("ConsumerGroupHeartbeat", 1, r(group_id=self.group, member_id=self.id, member_epoch=epoch, instance_id=self.instance))

    def commit(self) -> None:
        self.sim.commit(self.group, self.id, self.epoch)


class ClassicMemberOf(Member):
    """The classic protocol: join, sync, heartbeat; a leader deals partitions out in turn."""

    def __init__(self, sim: Sim, number: int, group: str) -> None:
        super().__init__(sim, number)
        self.group = group
        self.id = ""
        self.instance = f"i{number}" if number % 4 == 0 else None
        self.generation = -1
        self.todo = "join"
        self.members: list[str] = []
        self.asked = ""
        self.assignment = b""
        self.reloads = self.asked_reloads = sim.reloads

    def beat(self) -> None:
        self.asked, self.asked_reloads = self.todo, self.sim.reloads
        if self.todo == "join":
            r = m.JoinGroupRequest
            request = r(group_id=self.group, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=20_000, member_id=self.id, protocol_type="consumer")
            request.group_instance_id = self.instance
            request.protocols = [r.JoinGroupRequestProtocol(name="turn", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")]
            self.ask("JoinGroup", 9, request)
        elif self.todo == "sync":
            s = m.SyncGroupRequest
            sync = s(group_id=self.group, generation_id=self.generation, member_id=self.id, protocol_type="consumer", protocol_name="turn")
            sync.group_instance_id = self.instance
            sync.assignments = [
                s.SyncGroupRequestAssignment(member_id=one, assignment=b"%d of %d" % (n, self.generation)) for n, one in enumerate(self.members)
            ]
            self.ask("SyncGroup", 5, sync)
        else:
            beat = m.HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance)
            self.ask("Heartbeat", 4, beat)

    def take(self, reply: Any) -> None:
        code = reply.error_code
        if code == Errors.MEMBER_ID_REQUIRED:
            self.id = reply.member_id
        elif code in (Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_INSTANCE_ID):
            self.id, self.todo, self.generation = "", "join", -1
        elif code in (Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION):
            self.todo = "join"
        elif code == 0 and self.asked == "join":
            # a coordinator that was loaded anew knows the generations that were completed, and no others
            known = self.sim.reloads == self.reloads and self.id == reply.member_id
            assert reply.generation_id >= self.generation or not known, "a generation went back"
            self.reloads = self.asked_reloads
            self.id, self.generation = reply.member_id, reply.generation_id
            self.members = [one.member_id for one in reply.members] if not reply.skip_assignment else []
            self.todo = "sync"
        elif code == 0 and self.asked == "sync":
            self.assignment = bytes(reply.assignment)
            if self.assignment:
                assert self.assignment.endswith(b" of %d" % self.generation) or self.instance, f"{self.assignment!r} in generation {self.generation}"
            self.todo = "beat"
        elif code:
            assert code in RETRIABLE, f"{self.id} was told {code}"

    def leave(self) -> None:
        r = m.LeaveGroupRequest
        if self.id:
            self.ask("LeaveGroup", 5, r(group_id=self.group, members=[r.MemberIdentity(member_id=self.id, group_instance_id=self.instance)]))

    def commit(self) -> None:
        self.sim.commit(self.group, self.id, self.generation)


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
    def host(self) -> Host[GroupShard]:
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
            self.host.partition.isr_size = 0
            self.failing_until_ms = self.now_ms + self.chance.randint(1, 1000)
        elif dice < 0.36:
            self.reloads += 1
            self.world.broker.event(lambda: self.world.broker.groups.reload(self.host.partition))
        elif dice < 0.37:
            self.world.pass_ms(self.chance.randint(10_000, 50_000))
        if self.held_until_ms and self.now_ms >= self.held_until_ms:
            self._policy("immediate")
        if self.failing_until_ms and self.now_ms >= self.failing_until_ms:
            self.host.partition.isr_size, self.failing_until_ms = 1, 0

    def _drop(self, one: Any, politely: bool) -> None:
        if politely:
            one.leave()
        self.members.remove(one)

    def _policy(self, text: str) -> None:
        self.held_until_ms = 0
        self.world.broker.policies.set(TOPIC_NAME, None, parse_policy(text))
        self.world.broker.event(self.world.broker.partitions.configure)

    def commit(self, group: str, member_id: str, epoch: int) -> None:
        """Commits an offset that nobody committed before; commits of one group go up, so the greatest acknowledged one must stay."""
        r = m.OffsetCommitRequest
        offset, self.next_offset = self.next_offset, self.next_offset + 1
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = r(group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch)
        request.topics = [r.OffsetCommitRequestTopic(name="a", partitions=[part])]
        self.commits.append((self.world.send("OffsetCommit", 9, request), group, offset))

    # what must hold

    def check(self) -> None:
        for group_id, group in self.shard.groups.items():
            if isinstance(group, ConsumerGroup):
                self._check_owners(group)
                self._check_epochs(group_id, group)
            else:
                self._check_classic(group)
        self._check_commits()
        if self.chance.random() < 0.05 and self.host.runtime.state.value == "active" and self.host.runtime.describe(0)["uncommitted_records"] == 0:
            check_replay(self.host)
        assert self.host.runtime.bugs == 0, "a handler failed"
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
            assert member_id in group.members, f"{instance} is nobody"
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
        assert group.awaiting_join == sum(1 for one in group.members.values() if one.join is not None)
        assert (group.state is State.EMPTY) <= (not group.members), "an empty group with members"
        assert group.leader is None or group.leader in group.members, "the leader is no member"
        assert all(group.members[i].instance_id == n for n, i in group.static_members.items())
        if group.state is not State.COMPLETING_REBALANCE:
            assert all(one.sync is None for one in group.members.values()), "a SyncGroup that nobody will answer"
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            assert all(one.join is None for one in group.members.values() if one.instance_id is None), "a JoinGroup that nobody will answer"

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
                found = self.shard.offsets.of(group).get(("a", 0), None, runtime.committed_offset)
                assert found is not None, f"the commit {offset} of {group} is not committed"
                assert found[1] >= offset, f"the commit {offset} of {group} is not committed, {found[1]} is"

    def settle(self) -> None:
        """The trouble stops: within ten minutes everyone has what is theirs."""
        self.trouble = False
        self._policy("immediate")
        self.host.partition.isr_size, self.failing_until_ms = 1, 0
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
            elif not _is_settled_classic(group, clients):
                return False
        return True

    def _is_settled_consumer(self, group: ConsumerGroup, clients: list[Any]) -> bool:
        if set(group.members) != {o.id for o in _distinct(clients)} or group.state() not in ("Stable", "Empty"):
            return False
        image = self.world.broker.groups.image
        subscribed = {image.topic_id(name) for o in _distinct(clients) for name in o.topics}
        every = {(topic, p) for topic in subscribed if topic for p in range(image.partition_count(topic))}
        believed = [one for o in _distinct(clients) for one in o.owned]
        return len(believed) == len(set(believed)) and set(believed) == every

    def _situation(self) -> str:
        parts = []
        for name, group in self.shard.groups.items():
            state = group.state() if isinstance(group, ConsumerGroup) else group.state.value
            parts.append(f"{name} {state} {sorted(group.members)}")
        return f"{parts}; clients {[(type(o).__name__, getattr(o, 'id', ''), getattr(o, 'todo', '')) for o in self.members]}"


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
    """A world with its topics: made once, then begun anew from its files."""
    if not _created:
        world = World(offsets_topic_num_partitions="1", ottla_group_settle="false")
        r = m.CreateTopicsRequest
        topics = [r.CreatableTopic(name=n, num_partitions=c, replication_factor=1) for n, c in TOPICS.items()]
        world.ask("CreateTopics", 5, r(topics=topics, timeout_ms=1000))
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        world.broker.stop()
        _created.append(world.files)
    world = World(copy.deepcopy(_created[0]), offsets_topic_num_partitions="1", ottla_group_settle="false")
    world.pass_ms(100)
    return world


def check_replay(host: Host[GroupShard]) -> None:
    """What lives in memory is what the log would give."""
    fresh = replayed(GroupShard(Timeline(), Timers(), host.shard.env, host.shard.assignors), host)
    live = host.shard
    for group_id, group in live.groups.items():
        other = fresh.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            assert isinstance(other, ConsumerGroup), f"{group_id} is not in the log"
            for name in ("members", "static_members", "targets", "owner_epochs", "topics", "regexes", "regex_counts", "assignor_votes"):
                mine, theirs = dict(getattr(group, name).items()), dict(getattr(other, name).items())
                assert mine == theirs, f"{group_id}.{name}: {mine} lives, the log has {theirs}"
            assert (group.epoch, group.assignment_epoch, group.metadata_hash) == (other.epoch, other.assignment_epoch, other.metadata_hash)
        elif group.state is State.STABLE:
            assert isinstance(other, ClassicGroup)
            assert (group.generation, group.protocol, group.leader) == (other.generation, other.protocol, other.leader)
            assert group.assignments() == other.assignments(), f"{group_id}: other assignments than in the log"
    for group_id, committed in live.offsets.by_group.items():
        assert dict(committed.items()) == dict(fresh.offsets.of(group_id).items()), f"{group_id}: other offsets than in the log"


def run(seed: int, steps: int = 60) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)


# Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code with each of them.
BUGS: tuple[Bug, ...] = (
    (members.Reconciliation, "_towards_target", "free = [p for p in pending if p in mine or self.owner_epoch(topic, p) == -1]", "free = pending"),
    (ConsumerGroup, "_own", "for key in _owned(before) - owned:", "for key in ():"),
    (heartbeat, "fence", "epoch = group.epoch + 1", "epoch = group.epoch"),
    (heartbeat, "subscribe", "bump = names_changed or (", "bump = ("),
    (joining, "_store", "group.become(State.STABLE, shard.env.now_ms())", "shard.counts"),
    (ClassicGroup, "remove", "if self.leader == member_id:", "if self.leader is None:"),
    (ConsumerGroup, "remove_member", "self._drop_static(before)", "self.members"),
    (GroupShard, "on_loaded", "self.await_session(group_id, member.id)", "self.timers"),
    (Runtime, "_revert_batch", "self.timeline.revert(self.last_written_offset)", "self.timeline.offsets"),
    (Runtime, "flush", "self._parked.append(parked)", "parked.finish(None)"),
    (offsets.Offsets, "put_all", "return self.of(commits.group).update(stored)", "return self.of(commits.group)._now.update(stored)"),
)
