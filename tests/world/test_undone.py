"""An append of a coordinator that fails takes everything back: what the log has, soft state, timers, and what others
were to be told.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..sim import groups as sim_groups
from ..sim import share as sim_share
from ..sim import transactions as sim_transactions
from ..support.seeds import seeds
from ..support.undone import Watch, watched
from ..support.world import World


def check(watch: Watch) -> None:
    assert watch.failed
    assert not watch.found, f"{len(watch.found)} of {watch.failed} failed appends left something: {watch.found[0]}"


@pytest.mark.parametrize("seed", seeds(25, quick=1))
def test_groups_are_as_before_after_every_append_that_fails(seed: int) -> None:
    """Every other append fails: each write of the history, which its client repeats."""
    with watched() as watch:
        watch.plan = lambda number: number % 2 == 0
        sim_groups.run(seed)
    check(watch)


@pytest.mark.parametrize("seed", seeds(10, quick=1))
def test_transactions_are_as_before_after_every_append_that_fails(seed: int) -> None:
    with watched() as watch:
        watch.plan = lambda number: number % 2 == 0
        sim_transactions.run(seed)
    check(watch)


@pytest.mark.parametrize("seed", seeds(5, quick=1))
def test_share_state_is_as_before_after_every_append_that_fails(seed: int) -> None:
    chance = random.Random(seed)
    sim_share.files()  # are made before appends fail
    with watched() as watch:
        watch.plan = lambda number: chance.random() < 0.4
        sim_share.run(seed)
    check(watch)


# requests of all kinds for the same groups, several in a turn

GROUPS = ("a", "b", "c")
TOPICS = ("t", "u", "v")
SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
Request = tuple[str, int, Any]


class Storm:
    """Clients that know who is in which group, and keep to no protocol."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        settings = {"group_consumer_migration_policy": "bidirectional", "group_initial_rebalance_delay_ms": "100"}
        self.w = World(
            None, seed, offsets_topic_num_partitions="1", transaction_state_log_num_partitions="1", **settings
        )
        self.create("t")
        for kind in (0, 1):
            self.w.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]))
        self.w.ask("UpdateFeatures", 1, _share_groups())
        began = self.w.ask(
            "InitProducerId", 4, m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        )
        self.producer = began.producer_id, began.producer_epoch
        self.classic: list[tuple[str, str, int]] = []  # group, member, generation
        self.modern: dict[
            tuple[str, str], tuple[str, int]
        ] = {}  # group and member: the kind of the group, and the member's epoch

    def create(self, name: str) -> None:
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(name=name, num_partitions=self.chance.randint(1, 4), replication_factor=1)
        self.w.ask("CreateTopics", 5, r(topics=[topic], timeout_ms=1000))

    def run(self, steps: int) -> None:
        kinds = [
            self.join,
            self.join,
            self.sync,
            self.sync,
            self.alive,
            self.leave,
            self.consumer,
            self.consumer,
            self.share,
        ]
        kinds += [self.commit, self.commit, self.commit_in_transaction, self.delete_offsets, self.delete_group]
        for _ in range(steps):
            asked = [self.chance.choice(kinds)() for _ in range(self.chance.randint(1, 5))]
            for request, answer in zip(asked, self.w.together(*asked), strict=True):
                self.w.pass_ms(self.chance.choice((0, 0, 1, 120)))
                if answer.done and answer.reply is not None:
                    self.take(*request, answer.reply)
            self.w.pass_ms(self.chance.choice((1, 1, 150, 3000, 20_000)))
            if self.chance.random() < 0.03:
                self.create(self.chance.choice(TOPICS))
            elif self.chance.random() < 0.02:
                self.w.ask(
                    "DeleteTopics",
                    5,
                    m.DeleteTopicsRequest(topic_names=[self.chance.choice(TOPICS[1:])], timeout_ms=1000),
                )
            assert self.w.broker.groups.hosts[0].runtime.bugs.count == 0

    def take(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "JoinGroup" and reply.member_id:
            self.classic.append((request.group_id, reply.member_id, reply.generation_id))
        elif name.endswith("GroupHeartbeat") and reply.error_code == 0:
            self.modern[request.group_id, request.member_id] = name, reply.member_epoch
        elif name.endswith("GroupHeartbeat"):
            self.modern.pop((request.group_id, request.member_id), None)
        del self.classic[:-12]

    def group(self) -> str:
        return self.chance.choice(GROUPS)

    def member(self) -> tuple[str, str, int]:
        return self.chance.choice([*self.classic, (self.group(), "", -1)])

    def join(self) -> Request:
        group, member, _ = self.member()
        r = m.JoinGroupRequest
        request = r(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=member,
            protocol_type="consumer",
        )
        request.protocols = [r.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
        if self.chance.random() < 0.4:
            return "JoinGroup", 3, request
        request.group_instance_id = self.chance.choice((None, "i", "j"))
        return "JoinGroup", 9, request

    def sync(self) -> Request:
        group, member, generation = self.member()
        r = m.SyncGroupRequest
        given = [
            r.SyncGroupRequestAssignment(member_id=one, assignment=b"") for of, one, _ in self.classic if of == group
        ]
        request = r(
            group_id=group,
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        return "SyncGroup", 5, request

    def alive(self) -> Request:
        group, member, generation = self.member()
        return "Heartbeat", 4, m.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)

    def leave(self) -> Request:
        group, member, _ = self.member()
        r = m.LeaveGroupRequest
        return "LeaveGroup", 5, r(group_id=group, members=[r.MemberIdentity(member_id=member)])

    def consumer(self) -> Request:
        request = m.ConsumerGroupHeartbeatRequest(group_id=self.group(), member_id=self.chance.choice("mno"))
        self._at_epoch("ConsumerGroupHeartbeat", request)
        if request.member_epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions = 10_000, []
            if self.chance.random() < 0.4:
                request.subscribed_topic_regex = self.chance.choice(("t|u", "[u-v]"))
            else:
                request.subscribed_topic_names = self.chance.sample(TOPICS, 2)
        return "ConsumerGroupHeartbeat", 1, request

    def share(self) -> Request:
        request = m.ShareGroupHeartbeatRequest(
            group_id=self.chance.choice(("c", "d")), member_id=self.chance.choice("mno")
        )
        self._at_epoch("ShareGroupHeartbeat", request)
        if request.member_epoch == 0:
            request.subscribed_topic_names = self.chance.sample(TOPICS, 2)
        return "ShareGroupHeartbeat", 1, request

    def _at_epoch(self, name: str, request: Any) -> None:
        kind, epoch = self.modern.get((request.group_id, request.member_id), (name, 0))
        request.member_epoch = epoch if kind == name else 0
        if epoch > 0 and self.chance.random() < 0.3:
            request.member_epoch = self.chance.choice((0, -1))

    def commit(self) -> Request:
        r = m.OffsetCommitRequest
        group, member, generation = self.member()
        request = r(group_id=group, member_id=member, generation_id_or_member_epoch=generation)
        if self.chance.random() < 0.5:
            request.member_id, request.generation_id_or_member_epoch = "", -1
        part = r.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self.chance.randint(0, 99), committed_metadata=""
        )
        request.topics = [r.OffsetCommitRequestTopic(name=self.chance.choice(TOPICS), partitions=[part])]
        return "OffsetCommit", 9, request

    def commit_in_transaction(self) -> Request:
        r = m.TxnOffsetCommitRequest
        request = r(
            transactional_id="x", group_id=self.group(), producer_id=self.producer[0], producer_epoch=self.producer[1]
        )
        part = r.TxnOffsetCommitRequestPartition(
            partition_index=1, committed_offset=self.chance.randint(0, 99), committed_metadata=""
        )
        request.topics = [r.TxnOffsetCommitRequestTopic(name="t", partitions=[part])]
        return "TxnOffsetCommit", 5, request

    def delete_offsets(self) -> Request:
        r = m.OffsetDeleteRequest
        parts = [r.OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1)]
        return (
            "OffsetDelete",
            0,
            r(group_id=self.group(), topics=[r.OffsetDeleteRequestTopic(name="t", partitions=parts)]),
        )

    def delete_group(self) -> Request:
        return "DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[self.group()])


def _share_groups() -> Any:
    r = m.UpdateFeaturesRequest
    return r(
        timeout_ms=1000,
        feature_updates=[r.FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)],
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(20, quick=1))
def test_requests_of_all_kinds_that_share_a_batch_are_taken_back_together(seed: int) -> None:
    chance = random.Random(seed)
    storm = Storm(seed)
    with watched() as watch:
        watch.plan = lambda number: chance.random() < 0.5
        storm.run(120)
    check(watch)
    sim_groups.check_replay(storm.w.broker.groups.hosts[0])
