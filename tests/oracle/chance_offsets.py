"""Transactional consumers: offsets of groups that are committed in transactions, beside their members (`chance.py`).

Each of three groups has members of one kind: none, one of the classic protocol, or two of KIP-848's. What a
transaction has committed waits until it ends, is aborted, is fenced or runs out; meanwhile others ask for stable
offsets, commit too, and delete offsets, groups and topics.

Left out: a classic group of several members, whose requests wait (`chance_classic.py` has these).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from .chance_clients import Asked, Producers

LONG_MS: Final = 60_000
BRIEF_MS: Final = 2000  # of a transaction that runs out
KNOWN_ID_SINCE: Final = 4  # versions of JoinGroup
TOPIC_IDS_SINCE: Final = {"OffsetCommit": 10, "OffsetFetch": 10, "TxnOffsetCommit": 6}
GONE: Final = frozenset((Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH, Errors.FENCED_INSTANCE_ID))
KINDS: Final = ("none", "classic", "modern")
STALE: Final = 0.12


class Consumed(Producers):
    """`places`: the id and generation or epoch of each member that is in a group; `script`: what must come next."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.group_of = {kind: f"{kind[0]}{self.episode}" for kind in KINDS}
        self.kind = "none"
        self.member = "m1"  # of those of KIP-848
        self.places: dict[str, tuple[str, int]] = {}
        self.classic_id, self.is_synced, self.instance = "", False, None
        if self.chance.random() < 0.4:
            self.instance = f"i{self.episode}"
        self.script: list[Callable[[], Asked]] = []
        self.brief = f"b{self.episode}"
        self.has_brief = self.chance.random() < 0.3
        self.exists = True  # the topic with one partition

    @property
    def group(self) -> str:
        return self.group_of[self.kind]

    @property
    def who(self) -> str:
        return "classic" if self.kind == "classic" else self.member

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.script:
            return (self.script.pop(0),)
        if self.chance.random() < 0.2:
            self.now = self.chance.choice(self.ids[:2])
        if self.chance.random() < 0.3:
            self.kind, self.member = self.chance.choice(KINDS), self.chance.choice(("m1", "m1", "m2"))
        if self.now not in self.given:
            return (self.begin,)
        rare = (self.begin, self.write, self.add, self.delete_offsets, self.remove_group, self.recreate, self.groups)
        return (
            *[self.commit] * 9, *[self.add_offsets] * 3, *[self.end] * 5, *[self.offsets] * 7, *[self.alone] * 4,
            *self.member_steps(), *rare, self.describe, *[self.run_out] * self.has_brief,
        )  # fmt: skip

    def member_steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.kind == "none":
            return ()
        if self.kind == "modern":
            return (*[self.beat] * 4, self.leave) if self.who in self.places else (self.beat,) * 8
        if self.who not in self.places:
            return (self.join,) * 8
        return (self.join, self.sync, self.leave) if self.is_synced else (self.sync,) * 12

    # who commits

    def claim(self) -> tuple[int, str, str | None]:
        """The generation or epoch, the member id and the instance id that a request names; mostly those of now."""
        member_id, generation = self.places.get(self.who, ("", -1))
        instance = self.instance if self.kind == "classic" and member_id else None
        if not self.errs(STALE):
            return generation, member_id, instance
        other = self.places.get("m2" if self.who == "m1" else "m1", ("nobody", 1))
        return self.chance.choice(
            (
                (generation - 1, member_id, instance), (generation + 1, member_id, instance), (-1, member_id, None),
                (generation, "", None), (generation, "nobody", None), (*other[::-1], None), (-1, "", None),
                (generation, member_id, f"j{self.episode}"), (-1, "nobody", None), (0, member_id, None),
            )
        )  # fmt: skip

    def partitions_of(self, row: Any) -> list[Any]:
        numbers = self.chance.choice(((0,), (0,), (0, 1), (1,), (7,) if self.errs(0.3) else (0,)))
        made = [row(partition_index=n, committed_offset=self.chance.randint(0, 9)) for n in numbers]
        for one in made:
            one.committed_metadata = self.chance.choice(("", "", "said", None))
            one.committed_leader_epoch = self.chance.choice((-1, -1, 0, 3))
        return made

    def topic_named(self, api: str, version: int) -> dict[str, Any]:
        name = self.chance.choice((self.two, self.two, self.one, f"missing{self.episode}" if self.errs() else self.two))
        by_id = version >= TOPIC_IDS_SINCE[api]
        return {"topic_id": self.topics.get(name, b"q" * 16)} if by_id else {"name": name}

    # transactions

    def commit(self) -> Asked:
        r, (one, epoch) = m.TxnOffsetCommitRequest, self.producer()
        version = self.chance.choice((0, 2, 3, 3, 4, 4, 5, 5, 5, 5))
        request = r(transactional_id=str(self.now), group_id=self.group, producer_id=one, producer_epoch=epoch)
        parts = self.partitions_of(r.TxnOffsetCommitRequestPartition)
        request.topics = [r.TxnOffsetCommitRequestTopic(partitions=parts, **self.topic_named("TxnOffsetCommit", 0))]
        if version >= 3:
            claim = self.claim()
            request.generation_id_or_member_epoch, request.member_id, request.group_instance_id = claim
        return "TxnOffsetCommit", version, request

    def add_offsets(self) -> Asked:
        api, version, request = super().add_offsets()
        request.group_id = self.group if not self.errs(0.04) else ""
        return api, version, request

    def run_out(self) -> Asked:
        """A transaction of another producer that no one ends; it runs out while nothing else is asked."""
        self.has_brief = False
        before, self.now = self.now, self.brief
        steps = [self.end, self.commit, self.begin] if self.errs(0.5) else [self.begin, self.end]
        self.script = [self.opened, self.commit_opened, self.offsets_stable, self.expired, self.offsets_stable, *steps]
        self.script.append(lambda: self.returned(before))
        request = m.InitProducerIdRequest(transactional_id=self.brief, transaction_timeout_ms=BRIEF_MS)
        return "InitProducerId", 4, request

    def opened(self) -> Asked:
        one, epoch = self.given[self.brief]
        request = m.AddOffsetsToTxnRequest(
            transactional_id=self.brief, producer_id=one, producer_epoch=epoch, group_id=self.group
        )
        return "AddOffsetsToTxn", 3, request

    def commit_opened(self) -> Asked:
        r, (one, epoch) = m.TxnOffsetCommitRequest, self.given[self.brief]
        request = r(transactional_id=self.brief, group_id=self.group, producer_id=one, producer_epoch=epoch)
        parts = [r.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=self.chance.randint(0, 9))]
        request.topics = [r.TxnOffsetCommitRequestTopic(partitions=parts, name=self.two)]
        return "TxnOffsetCommit", 2, request

    def expired(self) -> Asked:
        """Asked when the transaction has run out."""
        self.expiring = self.brief
        return "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=[self.brief])

    def returned(self, before: str | None) -> Asked:
        self.now = before
        return self.describe()

    # members

    def join(self) -> Asked:
        r, version = m.JoinGroupRequest, self.chance.randint(5 if self.instance else 2, 9)
        rows = [r.JoinGroupRequestProtocol(name="range", metadata=self.subscription())]
        request = r(group_id=self.group_of["classic"], member_id=self.classic_id, protocols=rows)
        request.protocol_type, request.session_timeout_ms = "consumer", LONG_MS
        request.rebalance_timeout_ms, request.group_instance_id = LONG_MS, self.instance
        return "JoinGroup", version, request

    def subscription(self) -> bytes:
        """Topics of which one is not committed by others."""
        topics = [self.two] if self.chance.random() < 0.5 else [self.two, self.one]
        said = m.ConsumerProtocolSubscription(topics=topics)
        return bytes(codec.build("ConsumerProtocolSubscription", 1, said, bytearray(b"\0\1")))

    def sync(self) -> Asked:
        r, (member_id, generation) = m.SyncGroupRequest, self.places["classic"]
        rows = [r.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")]
        request = r(group_id=self.group_of["classic"], member_id=member_id, generation_id=generation, assignments=rows)
        request.protocol_type = request.protocol_name = None
        request.group_instance_id = self.instance
        return "SyncGroup", self.chance.randint(3, 4), request

    def beat(self) -> Asked:
        member_id, epoch = self.places.get(self.who, (self.member_id(self.who), 0))
        if epoch and self.errs(0.1):
            epoch = self.chance.choice((epoch - 1, epoch + 1, 0))
        r = m.ConsumerGroupHeartbeatRequest
        request = r(group_id=self.group_of["modern"], member_id=member_id, member_epoch=epoch)
        if epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions, request.server_assignor = LONG_MS, [], "range"
        if epoch == 0 or self.errs(0.3):
            request.subscribed_topic_names = self.chance.choice(([self.two], [self.two, self.one]))
        return "ConsumerGroupHeartbeat", 1, request

    def member_id(self, member: str) -> str:
        return f"{member}{self.episode}".ljust(22, "A")[:22]

    def leave(self) -> Asked:
        member_id, _ = self.places[self.who]
        if self.kind == "modern":
            r = m.ConsumerGroupHeartbeatRequest
            return "ConsumerGroupHeartbeat", 1, r(group_id=self.group, member_id=member_id, member_epoch=-1)
        member = m.LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=self.instance)
        return "LeaveGroup", self.chance.randint(3, 5), m.LeaveGroupRequest(group_id=self.group, members=[member])

    # beside

    def alone(self) -> Asked:
        """An OffsetCommit without a transaction."""
        r, version = m.OffsetCommitRequest, self.chance.choice((2, 7, 8, 9, 9, 10, 10))
        request = r(group_id=self.group)
        parts = self.partitions_of(r.OffsetCommitRequestPartition)
        topic = r.OffsetCommitRequestTopic(partitions=parts, **self.topic_named("OffsetCommit", version))
        request.topics = [topic]
        request.generation_id_or_member_epoch, request.member_id, instance = self.claim()
        if version >= 7:
            request.group_instance_id = instance
        return "OffsetCommit", version, request

    def offsets(self) -> Asked:
        version = self.chance.choice((1, 2, 5, 6, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 10))
        is_stable = version >= 7 and self.chance.random() < 0.6
        return self.fetched_offsets(version, is_stable)

    def offsets_stable(self) -> Asked:
        return self.fetched_offsets(8, True)

    def fetched_offsets(self, version: int, is_stable: bool) -> Asked:
        r = m.OffsetFetchRequest
        if version < 8:
            topics = [r.OffsetFetchRequestTopic(name=n, partition_indexes=[0, 1]) for n in (self.two, self.one)]
            is_all = version >= 2 and self.chance.random() < 0.4
            request = r(group_id=self.group, topics=None if is_all else topics)
        else:
            group = r.OffsetFetchRequestGroup(group_id=self.group, topics=None)
            if self.chance.random() < 0.6:
                named = self.topic_named("OffsetFetch", version)
                group.topics = [r.OffsetFetchRequestTopics(partition_indexes=[0, 1, 7][: 2 + self.errs()], **named)]
            if version >= 9 and self.kind == "modern" and self.chance.random() < 0.7:
                group.member_epoch, group.member_id, _ = self.claim()
            request = r(groups=[group])
        request.require_stable = is_stable
        return "OffsetFetch", version, request

    def delete_offsets(self) -> Asked:
        r, name = m.OffsetDeleteRequest, self.chance.choice((self.two, self.one))
        parts = [r.OffsetDeleteRequestPartition(partition_index=n) for n in (0, 1)[: self.chance.randint(1, 2)]]
        request = r(group_id=self.group, topics=[r.OffsetDeleteRequestTopic(name=name, partitions=parts)])
        return "OffsetDelete", 0, request

    def remove_group(self) -> Asked:
        return "DeleteGroups", self.chance.randint(0, 2), m.DeleteGroupsRequest(groups_names=[self.group])

    def recreate(self) -> Asked:
        """The topic with one partition goes, or comes again."""
        if self.exists:
            return "DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[self.one], timeout_ms=30_000)
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name=self.one, num_partitions=1, replication_factor=1)
        return "CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)

    def groups(self) -> Asked:
        version = self.chance.randint(0, 6)
        return "DescribeGroups", version, m.DescribeGroupsRequest(groups=[*self.group_of.values()])

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        super().heard(name, version, request, reply)
        if name == "ConsumerGroupHeartbeat":
            self.hear_beat(request, reply)
        elif name == "JoinGroup":
            self.hear_join(reply)
        elif name == "SyncGroup":
            self.is_synced = reply.error_code == 0
            if reply.error_code:
                self.forget(reply.error_code)
        elif name == "LeaveGroup":
            self.places.pop("classic", None)
            self.classic_id = ""
        elif name == "DeleteTopics" and reply.responses[0].error_code == 0:
            self.exists, self.awaited[self.one] = False, 0
        elif name == "CreateTopics" and reply.topics[0].error_code == 0:
            self.exists, self.awaited[self.one] = True, 1
            self.topics[self.one] = reply.topics[0].topic_id

    def hear_beat(self, request: Any, reply: Any) -> None:
        who = "m2" if request.member_id == self.member_id("m2") else "m1"
        if reply.error_code or reply.member_epoch < 0:
            if reply.error_code in GONE or reply.member_epoch < 0:
                self.places.pop(who, None)
        else:
            self.places[who] = request.member_id, reply.member_epoch

    def hear_join(self, reply: Any) -> None:
        if reply.error_code == Errors.MEMBER_ID_REQUIRED:
            self.classic_id = reply.member_id
        elif reply.error_code:
            self.forget(reply.error_code)
        else:
            self.classic_id, self.is_synced = reply.member_id, False
            self.places["classic"] = reply.member_id, reply.generation_id

    def forget(self, error: int) -> None:
        if error in GONE:
            self.places.pop("classic", None)
            self.classic_id = ""
