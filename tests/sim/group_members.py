"""Members of groups as the simulator plays them: each asks, waits for its answer, and believes what it says."""

from __future__ import annotations

import random
from typing import Any, Protocol

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.world import Answer, World

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


class History(Protocol):
    """What members know of the history that they are part of."""

    chance: random.Random
    world: World
    trouble: bool
    reloads: int

    @property
    def now_ms(self) -> int: ...

    def commit(self, group: str, member_id: str, epoch: int) -> None: ...


class Member:
    """A client as the simulator plays it: it asks, waits for its reply, and believes the reply."""

    def __init__(self, sim: History, number: int) -> None:
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
    """KIP-848: revokes at once the partitions that it has to give back, and reports those that it owns then."""

    def __init__(self, sim: History, number: int, group: str) -> None:
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
        if code in (
            Errors.UNKNOWN_MEMBER_ID,
            Errors.FENCED_MEMBER_EPOCH,
            Errors.GROUP_ID_NOT_FOUND,
            Errors.FENCED_INSTANCE_ID,
        ):
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
        self.ask(
            "ConsumerGroupHeartbeat",
            1,
            r(group_id=self.group, member_id=self.id, member_epoch=epoch, instance_id=self.instance),
        )

    def commit(self) -> None:
        self.sim.commit(self.group, self.id, self.epoch)


class ClassicMemberOf(Member):
    """The classic protocol: join, sync, heartbeat; a leader deals partitions out in turn."""

    def __init__(self, sim: History, number: int, group: str) -> None:
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
            request = r(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=20_000,
                member_id=self.id,
                protocol_type="consumer",
            )
            request.group_instance_id = self.instance
            request.protocols = [r.JoinGroupRequestProtocol(name="turn", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")]
            self.ask("JoinGroup", 9, request)
        elif self.todo == "sync":
            s = m.SyncGroupRequest
            sync = s(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.id,
                protocol_type="consumer",
                protocol_name="turn",
            )
            sync.group_instance_id = self.instance
            sync.assignments = [
                s.SyncGroupRequestAssignment(member_id=one, assignment=b"%d of %d" % (n, self.generation))
                for n, one in enumerate(self.members)
            ]
            self.ask("SyncGroup", 5, sync)
        else:
            beat = m.HeartbeatRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance
            )
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
            # a coordinator that was loaded again knows the generations that were completed, and no others
            known = self.sim.reloads == self.reloads and self.id == reply.member_id
            assert reply.generation_id >= self.generation or not known, "a generation went back"
            self.reloads = self.asked_reloads
            self.id, self.generation = reply.member_id, reply.generation_id
            self.members = [one.member_id for one in reply.members] if not reply.skip_assignment else []
            self.todo = "sync"
        elif code == 0 and self.asked == "sync":
            self.assignment = bytes(reply.assignment)
            if self.assignment:
                assert self.assignment.endswith(b" of %d" % self.generation) or self.instance, (
                    f"{self.assignment!r} in generation {self.generation}"
                )
            self.todo = "beat"
        elif code:
            assert code in RETRIABLE, f"{self.id} was told {code}"

    def leave(self) -> None:
        r = m.LeaveGroupRequest
        if self.id:
            self.ask(
                "LeaveGroup",
                5,
                r(group_id=self.group, members=[r.MemberIdentity(member_id=self.id, group_instance_id=self.instance)]),
            )

    def commit(self) -> None:
        self.sim.commit(self.group, self.id, self.generation)
