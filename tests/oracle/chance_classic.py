"""Several members of one group at once, which do their work as they should, and at times not (`chance.py`).

They use the classic protocol, and in some groups KIP-848's, too. What they ask is made once for both brokers, in which
member ids and topic ids are names (`m1.2`: the second id of the member m1); `chance_stage.py` puts in the ids that each
broker has given. In a hasty group sessions and rebalances run out: all that is asked between two of its pauses takes
less time than they last.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from .chance_clients import configured

LONG_MS: Final = 60_000
HASTY_MS: Final = 2000  # of a rebalance
SESSION_MS: Final = 1500  # which is not over at the same time
KNOWN_ID_SINCE: Final = 4  # versions of JoinGroup
STATIC_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}
HIGHEST: Final = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "OffsetCommit": 10}
PAUSES: Final = (8, 25)  # steps between two pauses of a hasty group
GONE: Final = frozenset((Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_INSTANCE_ID))
ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Act(NamedTuple):
    """What a member asks. `waits`: on its own connection, because the reply may come later. Without an `api` its
    connection is lost, or, without a member, time passes.
    """

    of: str
    api: str = ""
    version: int = 0
    message: Any = None
    waits: bool = False


@dataclass
class One:
    """A member. `place`: out of the group, given an id, to join again, joined, or in. `asked`: the API of the request
    that waits. `others`: the members that a leader assigns to.
    """

    name: str
    instance: str | None
    is_modern: bool
    timeout_ms: int
    protocols: list[str]
    topics: list[str]
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    place: str = "out"
    asked: str = ""
    others: list[str] | None = None
    owned: dict[str, list[int]] = field(default_factory=dict)


def topic_named(name: str) -> bytes:
    """What stands for the id of a topic."""
    return name.encode().ljust(16, b"\0")


class Crowd:
    """The members of the group `cAa…`, whose coordinator is that of `cBB…`: Java's hash of both is the same."""

    def __init__(self, chance: random.Random, episode: str) -> None:
        self.chance, self.episode = chance, episode
        self.group, self.beside = f"cAa{episode}", f"cBB{episode}"
        self.topics = {f"t{episode}": 2, f"u{episode}": 1}
        self.kind = chance.choice(("consumer", "consumer", "consumer", "connect"))
        self.is_mixed = self.kind == "consumer" and chance.random() < 0.5
        self.is_hasty = chance.random() < 0.25
        self.is_configured = not (self.is_mixed and self.is_hasty)
        self.until_pause = chance.randint(*PAUSES)
        count = chance.randint(2, 4)
        self.ones = {name: self.made(name) for name in [f"m{n}" for n in range(1, count + 1)]}
        if self.is_mixed:
            self.ones |= {name: self.made(name, is_modern=True) for name in ("k1", "k2")[: chance.randint(1, 2)]}
        self.leader = ""  # of the last generation that anyone heard of

    def made(self, name: str, is_modern: bool = False) -> One:
        chance = self.chance
        is_static = name in ("m2", "k2") or (name == "m3" and chance.random() < 0.5)
        names = ["range", *chance.sample(ASSIGNORS[1:], chance.randint(0, 2))]
        chance.shuffle(names)
        short = self.is_hasty and not is_modern and chance.random() < 0.5
        # of a member of the other protocol, if it is there, or of none
        number = "8" if is_modern and chance.random() < 0.5 else name[1:]
        instance = f"i{number}{self.episode}" if is_static else None
        one = One(name, instance, is_modern, SESSION_MS if short else LONG_MS, names, self.subscription())
        if is_modern:
            one.id = f"{name}-own{self.episode}"
        return one

    def subscription(self) -> list[str]:
        return self.chance.choice(([*self.topics], [*self.topics], [next(iter(self.topics))], [f"u{self.episode}"]))

    def errs(self, share: float = 0.06) -> bool:
        return self.chance.random() < share

    # who asks what

    def next(self) -> Act:
        if not self.is_configured:
            self.is_configured, self.until_pause = True, 1
            return self.configure()
        if self.is_hasty:
            self.until_pause -= 1
            if self.until_pause == 0:
                self.until_pause = self.chance.randint(*PAUSES)
                return Act("")
        if self.errs(0.18):
            views = (
                *[self.describe] * 4,
                self.list,
                self.offsets,
                self.offsets,
                self.delete_offsets,
                self.commit_alone,
            )
            return self.chance.choice((*views, self.delete_group) if self.errs(0.3) else views)()
        free = [one for one in self.ones.values() if not one.asked]
        one = self.chance.choice(free if free and not self.errs(0.1) else list(self.ones.values()))
        return self.chance.choice(self.steps(one))(one)

    def steps(self, one: One) -> tuple[Callable[[One], Act], ...]:
        if one.asked:
            return (self.heartbeat, self.lose, self.leave, self.commit) if one.id else (self.describe_for, self.lose)
        if one.is_modern:
            if one.place == "out":
                return (*[self.modern_join] * 6, self.modern_leave)
            rare = (self.modern_change, self.modern_leave, self.modern_leave, self.modern_join)
            return (*[self.modern_beat] * 12, *[self.commit] * 2, *rare)
        join, sync, beat, commit, leave = self.join, self.sync, self.heartbeat, self.commit, self.leave
        afresh = self.join_afresh if self.is_hasty or one.instance else join  # the old id stays until its session ends
        return {
            "out": (*[join] * 8, sync, leave),
            "given": (*[join] * 10, beat, leave, afresh),
            "again": (*[join] * 12, afresh, beat, commit, sync, leave),
            "joined": (*[sync] * 12, join, beat, commit, leave),
            "in": (*[beat] * 6, *[commit] * 3, join, join, self.change, afresh, sync, leave),
        }[one.place]

    def version(self, api: str, one: One) -> int:
        """A version that can say what the member has to say."""
        low = STATIC_SINCE[api] if one.instance else {"OffsetCommit": 2}.get(api, 0)
        if api == "JoinGroup" and self.is_mixed:  # ids that a consumer group gives have a random order
            low = max(low, KNOWN_ID_SINCE)
        if api == "JoinGroup" and self.is_hasty:  # before, a rebalance takes as long as a session
            low = max(low, 1)
        return self.chance.randint(low, HIGHEST[api])

    def asks(self, one: One, api: str, version: int, message: Any) -> Act:
        if api in ("JoinGroup", "SyncGroup"):
            one.asked = api
            return Act(one.name, api, version, message, waits=True)
        return Act(one.name, api, version, message)

    # the classic protocol

    def join(self, one: One) -> Act:
        r, chance, version = m.JoinGroupRequest, self.chance, self.version("JoinGroup", one)
        if one.id.startswith("?") and one.place == "given":  # of a consumer group, in whose order members are assigned
            one.id = f"{one.name}-own{self.episode}"
        names = ["bogus"] if self.leader and self.errs(0.03) else one.protocols
        rows = [r.JoinGroupRequestProtocol(name=name, metadata=self.metadata(one)) for name in names]
        kind = "odd" if self.leader and self.errs(0.02) else self.kind
        request = r(group_id=self.group, member_id=one.id, protocol_type=kind, protocols=rows)
        request.session_timeout_ms = one.timeout_ms
        request.rebalance_timeout_ms = HASTY_MS if self.is_hasty else LONG_MS
        if one.instance is not None:
            request.group_instance_id = f"i9{self.episode}" if one.id and self.errs(0.03) else one.instance
        if version >= 8:
            request.reason = chance.choice((None, "because"))
        return self.asks(one, "JoinGroup", version, request)

    def join_afresh(self, one: One) -> Act:
        """Without the id that it was given; a static member is found by its instance id."""
        one.id, one.owned = "", {}
        return self.join(one)

    def change(self, one: One) -> Act:
        one.topics = self.subscription()
        if self.errs(0.3):
            one.protocols = one.protocols[::-1]
        return self.join(one)

    def metadata(self, one: One) -> bytes:
        if self.kind != "consumer":
            return one.topics[0].encode()
        s, version = m.ConsumerProtocolSubscription, (3 if self.is_mixed else len(one.name + one.topics[0]) % 4)
        said = s(topics=one.topics)
        if version >= 1:
            said.owned_partitions = [s.TopicPartition(topic=t, partitions=of) for t, of in sorted(one.owned.items())]
        return bytes(codec.build("ConsumerProtocolSubscription", version, said, bytearray(version.to_bytes(2, "big"))))

    def sync(self, one: One) -> Act:
        r, chance, version = m.SyncGroupRequest, self.chance, self.version("SyncGroup", one)
        request = r(group_id=self.group, member_id=one.id, generation_id=self.generation(one))
        if version >= 3:
            request.group_instance_id = one.instance
        if version >= 5:
            request.protocol_type, request.protocol_name = self.kind, one.protocol
            if self.errs(0.04):
                request.protocol_name = "bogus"
        else:
            request.protocol_type = request.protocol_name = None
        if one.others is not None:
            told = one.others[self.errs(0.05) :]
            given = self.shares(told)
            request.assignments = [r.SyncGroupRequestAssignment(member_id=n, assignment=given[n]) for n in told]
        elif chance.random() < 0.05:
            request.assignments = [r.SyncGroupRequestAssignment(member_id=one.id, assignment=b"mine")]
        return self.asks(one, "SyncGroup", version, request)

    def shares(self, members: list[str]) -> dict[str, bytes]:
        """What a leader gives to members: each partition to another one."""
        if self.kind != "consumer":
            return {name: name.partition(".")[0].encode() for name in members}
        a = m.ConsumerProtocolAssignment
        places = [(topic, p) for topic, count in self.topics.items() for p in range(count)]
        shift, made = self.chance.randint(0, 2), {}
        for number, name in enumerate(members):
            mine = [one for at, one in enumerate(places) if (at + shift) % len(members) == number]
            rows = [
                a.TopicPartition(topic=topic, partitions=[p for t, p in mine if t == topic])
                for topic in dict.fromkeys(t for t, _ in mine)
            ]
            said = a(assigned_partitions=rows, user_data=b"mine" if self.errs(0.02) else None)
            made[name] = bytes(codec.build("ConsumerProtocolAssignment", 1, said, bytearray(b"\0\1")))
        return made

    def generation(self, one: One) -> int:
        return one.generation + self.chance.choice((-1, 1)) if self.errs() else one.generation

    def heartbeat(self, one: One) -> Act:
        version = self.version("Heartbeat", one)
        request = m.HeartbeatRequest(group_id=self.group, member_id=one.id, generation_id=self.generation(one))
        if version >= 3 and not self.errs():
            request.group_instance_id = one.instance
        return self.asks(one, "Heartbeat", version, request)

    def leave(self, one: One) -> Act:
        r, version = m.LeaveGroupRequest, self.version("LeaveGroup", one)
        if version < 3:
            return self.asks(one, "LeaveGroup", version, r(group_id=self.group, member_id=one.id))
        also = [other for other in self.ones.values() if other is not one and self.errs(0.12)]
        rows = [r.MemberIdentity(member_id=each.id, group_instance_id=each.instance) for each in (one, *also)]
        if one.instance and self.errs(0.4):
            rows[0].member_id = ""
        if version >= 5:
            rows[0].reason = self.chance.choice((None, "because"))
        return self.asks(one, "LeaveGroup", version, r(group_id=self.group, members=rows))

    def lose(self, one: One) -> Act:
        """The connection is lost on which a request waits; the member will join again."""
        if not one.id:
            return self.describe()
        one.asked, one.place = "", "again"
        return Act(one.name)

    # KIP-848

    def modern(self, one: One, epoch: int, **more: Any) -> Act:
        r = m.ConsumerGroupHeartbeatRequest
        request = r(group_id=self.group, member_id=one.id, member_epoch=epoch, instance_id=one.instance)
        for name, value in more.items():
            setattr(request, name, value)
        return self.asks(one, "ConsumerGroupHeartbeat", 1, request)

    def configure(self) -> Act:
        """The sessions of KIP-848's members are as short as those of others."""
        pairs = {"consumer.session.timeout.ms": str(SESSION_MS), "consumer.heartbeat.interval.ms": "500"}
        return Act("", *configured(self.group, pairs))

    def modern_join(self, one: One) -> Act:
        timeout_ms = HASTY_MS if self.is_hasty else LONG_MS
        more = {"rebalance_timeout_ms": timeout_ms, "topic_partitions": [], "server_assignor": "range"}
        return self.modern(one, 0, subscribed_topic_names=one.topics, **more)

    def modern_beat(self, one: One) -> Act:
        r, epoch = m.ConsumerGroupHeartbeatRequest, self.generation(one)
        owned = [r.TopicPartitions(topic_id=topic_named(t), partitions=of) for t, of in one.owned.items()]
        return self.modern(one, epoch, topic_partitions=owned if self.chance.random() < 0.7 else None)

    def modern_change(self, one: One) -> Act:
        one.topics = self.subscription()
        return self.modern(one, one.generation, subscribed_topic_names=one.topics)

    def modern_leave(self, one: One) -> Act:
        return self.modern(one, -2 if one.instance and self.errs(0.5) else -1)

    # beside

    def commit(self, one: One) -> Act:
        version = self.version("OffsetCommit", one)
        if one.is_modern:
            version = max(version, 9)
        request = self.committed(version)
        request.member_id, request.generation_id_or_member_epoch = one.id, self.generation(one)
        if version >= 7 and not one.is_modern:
            request.group_instance_id = one.instance
        return self.asks(one, "OffsetCommit", version, request)

    def commit_alone(self) -> Act:
        version = self.chance.randint(2, 9)
        return Act("", "OffsetCommit", version, self.committed(version))

    def committed(self, version: int) -> m.OffsetCommitRequest:
        r, name = m.OffsetCommitRequest, self.chance.choice([*self.topics])
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=self.chance.randint(0, 9))
        named: dict[str, Any] = {"topic_id": topic_named(name)} if version >= 10 else {"name": name}
        return r(group_id=self.group, topics=[r.OffsetCommitRequestTopic(partitions=[part], **named)])

    def offsets(self) -> Act:
        r, version = m.OffsetFetchRequest, self.chance.randint(8, 9)
        group = r.OffsetFetchRequestGroup(group_id=self.group, topics=None)
        one = self.chance.choice([*self.ones.values()])
        if version >= 9 and one.id and self.chance.random() < 0.6:
            group.member_id, group.member_epoch = one.id, self.generation(one)
        return Act("", "OffsetFetch", version, r(groups=[group], require_stable=self.chance.random() < 0.3))

    def describe(self) -> Act:
        if self.is_mixed and self.errs(0.5):
            return Act("", "ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[self.group]))
        return Act("", "DescribeGroups", self.chance.randint(0, 6), m.DescribeGroupsRequest(groups=[self.group]))

    def describe_for(self, one: One) -> Act:
        return self.describe()

    def list(self) -> Act:
        return Act("", "ListGroups", self.chance.randint(0, 5), m.ListGroupsRequest())

    def delete_offsets(self) -> Act:
        r = m.OffsetDeleteRequest
        parts = [r.OffsetDeleteRequestPartition(partition_index=0)]
        topics = [r.OffsetDeleteRequestTopic(name=self.chance.choice([*self.topics]), partitions=parts)]
        return Act("", "OffsetDelete", 0, r(group_id=self.group, topics=topics))

    def delete_group(self) -> Act:
        return Act("", "DeleteGroups", self.chance.randint(0, 2), m.DeleteGroupsRequest(groups_names=[self.group]))

    # what they hear

    def heard(self, act: Act, reply: Any) -> None:
        one = self.ones.get(act.of)
        hear: dict[str, Callable[[One, Any, Any], None]] = {
            "JoinGroup": self.hear_join,
            "SyncGroup": self.hear_sync,
            "Heartbeat": partial(self.hear_error, after_rebalance="again"),
            "LeaveGroup": self.hear_leave,
            "ConsumerGroupHeartbeat": self.hear_beat,
        }
        if one is not None and act.api in hear:
            if act.waits:
                one.asked = ""
            hear[act.api](one, act.message, reply)

    def hear_error(self, one: One, request: Any, reply: Any, after_rebalance: str) -> None:
        error = Errors(reply.error_code)
        if one.place == "given":
            return  # the group waits until it joins
        if error in GONE and request.member_id == one.id:
            one.id, one.place, one.owned = "", "out", {}
        elif error in (Errors.REBALANCE_IN_PROGRESS, Errors.ILLEGAL_GENERATION) and one.place in ("in", "joined"):
            one.place = after_rebalance

    def hear_join(self, one: One, request: Any, reply: Any) -> None:
        if reply.error_code == Errors.MEMBER_ID_REQUIRED:
            one.id, one.place = reply.member_id, "given"
        elif reply.error_code:
            is_forgotten = one.place == "given" and reply.error_code in GONE
            if is_forgotten or reply.error_code == Errors.REBALANCE_IN_PROGRESS:
                one.place = "again"
            self.hear_error(one, request, reply, "again")
        else:
            one.id, one.generation, one.place = reply.member_id, reply.generation_id, "joined"
            one.protocol = reply.protocol_name
            self.leader = reply.leader
            leads = reply.leader == reply.member_id and not reply.skip_assignment
            one.others = sorted(each.member_id for each in reply.members) if leads else None

    def hear_sync(self, one: One, request: Any, reply: Any) -> None:
        if reply.error_code:
            self.hear_error(one, request, reply, "again")
            return
        one.place, one.owned = "in", {}
        if self.kind == "consumer" and len(reply.assignment) > 2:
            version = int.from_bytes(reply.assignment[:2], "big")
            found = codec.parse("ConsumerProtocolAssignment", version, bytes(reply.assignment), 2)
            one.owned = {each.topic: list(each.partitions) for each in found.assigned_partitions}

    def hear_leave(self, one: One, request: Any, reply: Any) -> None:
        rows = zip(request.members, reply.members, strict=False) if request.members else ((request, reply),)
        for row, said in rows:
            for each in self.ones.values():
                if said.error_code == 0 and row.member_id in (each.id, "") and not each.is_modern:
                    if row.member_id or row.group_instance_id == each.instance:
                        each.id, each.place, each.owned = "", "out", {}

    def hear_beat(self, one: One, request: Any, reply: Any) -> None:
        if reply.error_code or reply.member_epoch < 0:
            if reply.error_code != Errors.UNRELEASED_INSTANCE_ID and request.member_epoch in (
                one.generation,
                0,
                -1,
                -2,
            ):
                one.place, one.generation, one.owned = "out", -1, {}
            return
        one.place, one.generation = "in", reply.member_epoch
        self.leader = ""  # of the classic group that this one may become again
        if reply.assignment is not None:
            given = reply.assignment.topic_partitions
            one.owned = {bytes(t.topic_id).rstrip(b"\0").decode(): list(t.partitions) for t in given}
