"""Two brokers on which a crowd does the same (`chance_classic.py`), each with the ids that it has given.

A request that may wait goes over the connection of its member. Then two commits of another group, of the same
coordinator, are answered over one more connection: the broker has taken the request, and all replies that follow from
it are there. So each request comes after those before it, although some of them wait.
"""

from __future__ import annotations

import re
import select
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.coordinator.group import consumer_protocol
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import MalformedMessage

from ..support.differential import differences
from ..support.wire import Closed, Wire
from .chance_classic import HASTY_MS, Act, Crowd, topic_named

STEPS: Final = 150
REPLY_SECONDS: Final = 8.0
LATE: Final = 60  # times that one broker may not have answered yet what the other has
LATE_SECONDS: Final = 0.05
PAUSES: Final = 8
COMMITS: Final = 2
_RANDOM: Final = re.compile(r"(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}")
_UNORDERED: Final = ("JoinGroup", "DescribeGroups", "ConsumerGroupDescribe")


class Door(ABC):
    """The connections of a crowd to one broker."""

    @abstractmethod
    def say(self, of: str, api: str, version: int, message: Any) -> None:
        """Sends a request over the connection of a member, which has its name as client id."""

    @abstractmethod
    def reply(self, of: str, api: str, version: int) -> Any:
        """Returns the reply if it is there."""

    @abstractmethod
    def ask(self, api: str, version: int, message: Any) -> Any:
        """Asks over a connection on which nothing waits."""

    @abstractmethod
    def lose(self, of: str) -> None:
        """The connection of a member ends."""

    @abstractmethod
    def close(self) -> None:
        """All connections end."""


class Sockets(Door):
    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.own = Wire(servers, timeout=REPLY_SECONDS)
        self.wires: dict[str, Wire] = {}

    def say(self, of: str, api: str, version: int, message: Any) -> None:
        if of not in self.wires:
            self.wires[of] = Wire(self.servers, timeout=REPLY_SECONDS, client_id=of)
            self.wires[of].ask("ApiVersions", 0, m.ApiVersionsRequest())  # the broker has accepted the connection
        self.wires[of].say(api, version, message)

    def reply(self, of: str, api: str, version: int) -> Any:
        wire = self.wires[of]
        if not select.select([wire.socket], [], [], 0)[0]:
            return None
        try:
            return wire.reply(api, version)
        except Closed:
            self.lose(of)
            return "closed"

    def ask(self, api: str, version: int, message: Any) -> Any:
        try:
            return self.own.ask(api, version, message)
        except (Closed, TimeoutError) as error:
            self.own.close()
            self.own = Wire(self.servers, timeout=REPLY_SECONDS)
            return type(error).__name__

    def lose(self, of: str) -> None:
        self.wires.pop(of).close()

    def close(self) -> None:
        self.own.close()
        for of in [*self.wires]:
            self.lose(of)


class Names:
    """What the ids of one broker are called."""

    def __init__(self, topics: dict[str, bytes]) -> None:
        self.named: dict[Any, Any] = {topic_id: topic_named(name) for name, topic_id in topics.items()}
        self.ids: dict[Any, Any] = {name: topic_id for topic_id, name in self.named.items()}
        self.counts: dict[str, int] = {}

    def learn(self, of: str, member_id: str) -> None:
        """A member got an id. Its name begins with `?` where the id does not tell whose it is."""
        found = _RANDOM.fullmatch(member_id)
        if member_id not in self.named and found is not None:
            self.counts[of] = self.counts.get(of, 0) + 1
            self._add(member_id, f"{'' if found[1] else '?'}{of}.{self.counts[of]}")

    def _add(self, member_id: str, name: str) -> None:
        self.named[member_id], self.ids[name] = name, member_id

    def name(self, value: Any, field: str) -> Any:
        """The name of a value in a reply."""
        if isinstance(value, bytes | memoryview):
            return self.named.get(bytes(value), bytes(value)) if field == "topic_id" else bytes(value)
        if not isinstance(value, str):
            return value
        if field == "error_message":
            for member_id, name in self.named.items():
                value = value.replace(member_id, name) if isinstance(member_id, str) else value
            return value
        if value not in self.named and field in ("member_id", "leader"):
            found = _RANDOM.fullmatch(value)
            if found is not None:  # the id of a member that has never heard of it
                self._add(value, f"{found[1] or '?'}.lost")
        return self.named.get(value, value)

    def id(self, value: Any, field: str) -> Any:
        """What a value in a request is for this broker."""
        return self.ids.get(value, value) if isinstance(value, str | bytes) else value


def _by_topic(assignment: bytes) -> bytes:
    """An assignment of the embedded protocol with its topics by name: where a broker makes it, they are by id."""
    try:
        found = consumer_protocol.assignment(assignment)
        version = consumer_protocol.version_of(assignment)
    except MalformedMessage:
        return assignment
    found.assigned_partitions.sort(key=lambda one: one.topic)
    return bytes(codec.build("ConsumerProtocolAssignment", version, found, bytearray(version.to_bytes(2, "big"))))


def translated(value: Any, one: Callable[[Any, str], Any], name: str = "") -> Any:
    """Returns a copy of a message with other ids."""
    if isinstance(value, list):
        return [translated(each, one, name) for each in value]
    if not hasattr(value, "unknown_tags"):
        return one(value, name)
    made = type(value)()
    for slot in value.__slots__:
        setattr(made, slot, translated(getattr(value, slot), one, slot))
    return made


class Stage:
    """One broker."""

    def __init__(self, door: Door, crowd: Crowd, topics: dict[str, bytes]) -> None:
        self.door, self.names, self.crowd = door, Names(topics), crowd
        self.waiting: dict[str, Act] = {}

    def do(self, act: Act) -> Any:
        """Does something; returns the reply, if it is one that cannot wait."""
        if not act.api:
            self.waiting.pop(act.of, None)
            self.door.lose(act.of)
            return None
        message = translated(act.message, self.names.id)
        if act.waits:
            self.waiting[act.of] = act
            self.door.say(act.of, act.api, act.version, message)
            return None
        return self.told(act, self.door.ask(act.api, act.version, message))

    def told(self, act: Act, reply: Any) -> Any:
        """A reply in names, with unordered lists in order."""
        made = translated(reply, self.names.name)
        if act.api == "ListGroups":
            made.groups = [group for group in made.groups if group.group_id == self.crowd.group]
        if act.api in _UNORDERED:
            for group in getattr(made, "groups", [made]):
                group.members.sort(key=lambda one: one.member_id)
                for one in group.members if act.api == "DescribeGroups" else ():
                    one.member_assignment = _by_topic(one.member_assignment)
        elif act.api == "SyncGroup":
            made.assignment = _by_topic(made.assignment)
        elif act.api == "ConsumerGroupHeartbeat" and made.assignment is not None:
            made.assignment.topic_partitions.sort(key=lambda one: one.topic_id)
        return made

    def awaits_members(self) -> bool:
        """Whether the group is in a rebalance, and has no members."""
        asked = m.DescribeGroupsRequest(groups=[self.crowd.group])
        (group,) = self.door.ask("DescribeGroups", 5, asked).groups
        return group.group_state == "PreparingRebalance" and not group.members

    def replies(self) -> dict[str, Any]:
        """The replies to requests that waited and that are there, by member."""
        r = m.OffsetCommitRequest
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [r.OffsetCommitRequestTopic(name=next(iter(self.crowd.topics)), partitions=[part])]
        for _ in range(COMMITS):
            self.door.ask("OffsetCommit", 8, r(group_id=self.crowd.beside, topics=topics))
        waiting = self.waiting.items()
        found = {of: (act, reply) for of, act in waiting if (reply := self.door.reply(of, act.api, act.version))}
        for of, (act, reply) in found.items():
            del self.waiting[of]
            if act.api == "JoinGroup" and not isinstance(reply, str):
                self.names.learn(of, reply.member_id)
        return {of: self.told(act, reply) for of, (act, reply) in found.items()}


Stages = tuple[Stage, Stage]
LetPass = Callable[[float], None]
"""Lets seconds pass."""


class Heard(NamedTuple):
    act: Act
    mine: Any
    other: Any


def heard_by(stages: Stages, let_pass: LetPass) -> list[Heard]:
    """The replies that have come to both; a reply that only one has given is compared with a word."""
    acts = {**stages[0].waiting, **stages[1].waiting}
    mine, other = stages[0].replies(), stages[1].replies()
    for _ in range(LATE):
        if mine.keys() == other.keys():
            break
        let_pass(LATE_SECONDS)
        mine |= stages[0].replies()
        other |= stages[1].replies()
    return [Heard(acts[of], mine.get(of, "waits"), other.get(of, "waits")) for of in sorted({*mine, *other})]


def pause(stages: Stages, let_pass: LetPass) -> list[Heard]:
    """Lets time pass until nothing happens any more by itself."""
    heard: list[Heard] = []
    before: list[str] = []
    described = Act("", "DescribeGroups", 5, m.DescribeGroupsRequest(groups=[stages[0].crowd.group]))
    for _ in range(PAUSES):
        let_pass(HASTY_MS / 1000 * 1.2)
        fresh = heard_by(stages, let_pass)
        heard += fresh
        seen = [repr(stage.do(described)) for stage in stages]
        if not fresh and seen == before:
            break
        before = seen
    return heard


def await_end_of_rebalances(stages: Stages, let_pass: LetPass) -> None:
    """Lets time pass until no group without members is in a rebalance: Kafka ends such a one by a timer."""
    for _ in range(LATE):
        if not any(stage.awaits_members() for stage in stages):
            return
        let_pass(LATE_SECONDS)


def unlike(one: Heard) -> list[tuple[str, Any, Any]]:
    """Where two replies differ."""
    if isinstance(one.mine, str) or isinstance(one.other, str):
        return [] if one.mine == one.other else [("", one.mine, one.other)]
    found = differences(one.act.api, one.mine, one.other)
    return [each for each in found if each[0] != ".throttle_time_ms"]


def have_other_leaders(heard: list[Heard], stages: Stages, before: str) -> bool:
    """Whether both brokers have found a leader in a table whose order follows from random ids."""
    chosen = dict.fromkeys(one.id for one in stages[0].crowd.ones.values())  # by a member itself
    ids, others = ({**stage.names.ids, **chosen} for stage in stages)
    for one in heard:
        if one.act.api == "JoinGroup" and not isinstance(one.mine, str) and not isinstance(one.other, str):
            a, b = one.mine.leader, one.other.leader
            if a != b and before not in (a, b) and a in ids and b in others:
                return True
    return False


Tell = Callable[[str, Heard, list[tuple[str, Any, Any]]], None]


def play(crowd: Crowd, stages: Stages, let_pass: LetPass, tell: Tell, note: Callable[[str], None]) -> str:
    """Lets the crowd do its work; `note` gets each step, `tell` what was heard in it, and where it differs. Returns
    what ended it.
    """
    for step in range(STEPS):
        act = crowd.next()
        note(f"{step} {act.of}: {act.api or 'lost' if act.of else 'pause'} v{act.version} {act.message}")
        heard = pause(stages, let_pass) if act == Act("") else _done(act, stages, let_pass)
        if have_other_leaders(heard, stages, crowd.leader):
            return "other leaders"
        found = [unlike(one) for one in heard]
        for one, where in zip(heard, found, strict=True):
            tell(str(step), one, where)
        if any(found):
            return "differs"
        for one in heard:
            crowd.heard(one.act, one.other)
    return "all done"


def _done(act: Act, stages: Stages, let_pass: LetPass) -> list[Heard]:
    mine, other = [stage.do(act) for stage in stages]
    if act.api == "LeaveGroup":
        await_end_of_rebalances(stages, let_pass)
    at_once = [Heard(act, mine, other)] if mine is not None else []
    return at_once + heard_by(stages, let_pass)
