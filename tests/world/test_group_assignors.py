"""Assignors, the way between the protocols, histories, and time lines to the millisecond."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from ottla.coordinator.group.assignors import Assignment, AssignorFailed, MemberSpec, Spec, simple, uniform
from ottla.coordinator.group.assignors import range as range_assignor
from ottla.coordinator.group.assignors.registry import Assignors
from ottla.coordinator.group.consumer.group import ConsumerGroup, Resolved
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.format import Commit
from ottla.coordinator.group.offsets.store import Offsets
from ottla.coordinator.timeline import Timeline
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..sim import groups as sim_groups
from ..support.group_world import (
    alive,
    beat,
    code,
    commit,
    given,
    join,
    owned,
    stable,
    sync,
    world,
    written,
)
from ..support.seeds import in_turn, spans

T, U = b"t" * 16, b"u" * 16


# assignors


def spec(members: dict[str, Any], counts: dict[bytes, int], homogeneous: bool = True) -> Spec:
    made = {i: MemberSpec(None, None, frozenset(topics), target) for i, (topics, target) in members.items()}
    return Spec(made, counts, homogeneous)


def test_range_gives_the_same_ranges_of_every_topic() -> None:
    found = range_assignor.assign(spec({"b": ([T, U], {}), "a": ([T, U], {})}, {T: 3, U: 3}))
    assert found == {"a": {T: frozenset((0, 1)), U: frozenset((0, 1))}, "b": {T: frozenset((2,)), U: frozenset((2,))}}


ASSIGNORS: dict[str, Callable[[Spec], Assignment]] = {
    "range": range_assignor.assign,
    "uniform": uniform.assign,
    "simple": lambda spec: simple.assign(spec, {T: frozenset(range(4))}),
}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_where_all_are_taken_to_be_alike_the_first_member_tells_what_they_are_subscribed_to(name: str) -> None:
    """As in Kafka, also where that is wrong."""

    def counts(**members: list[bytes]) -> dict[str, int]:
        found = ASSIGNORS[name](spec({member: (topics, {}) for member, topics in members.items()}, {T: 4}))
        return {member: len(found.get(member, {}).get(T, ())) for member in members}

    assert counts(a=[T], b=[]) == {"a": 2, "b": 2}
    assert counts(a=[], b=[T]) == {"a": 0, "b": 0}


ALIKE = [  # names and expression of each member
    ([(["t"], ""), (["t"], "")], True),
    ([(["t"], ""), (["t", "u"], "")], False),
    ([(["t"], ""), ([], "")], False),
    ([([], ""), ([], "")], True),
    ([([], "t.*"), ([], "t.*")], True),
    ([([], "t.*"), ([], "[t].*")], False),  # though they match the same
    ([([], "t.*"), (["t"], "")], False),
    ([(["t"], "t.*"), (["t"], "t.*")], False),
]


@pytest.mark.parametrize(("members", "alike"), ALIKE)
def test_a_group_tells_from_counts_whether_members_are_subscribed_to_the_same(
    members: list[tuple[list[str], str]], alike: bool
) -> None:
    group = ConsumerGroup("g", Timeline())
    for regex in {regex for _, regex in members if regex}:
        group.set_regex(regex, Resolved(frozenset({"t"}), 1, 0))
    made = [Member(f"m{n}", topic_names=frozenset(of), topic_regex=regex) for n, (of, regex) in enumerate(members)]
    *before, last = made
    for one in before:
        group.set_member(one)
    nobody = Member(last.id)
    assert group.are_alike_after(nobody, last, group.topics_after([nobody], [last])) is alike
    group.set_member(last)
    assert group.are_alike() is alike


@pytest.mark.parametrize("seed", range(60))
def test_uniform_is_even_complete_and_sticky(seed: int) -> None:
    chance = random.Random(seed)
    topics = [bytes([n]) * 16 for n in range(chance.randint(1, 4))]
    counts = {t: chance.randint(1, 9) for t in topics}
    homogeneous = chance.random() < 0.5
    names = [f"m{n}" for n in range(chance.randint(1, 6))]
    subscribed = {i: topics if homogeneous else chance.sample(topics, chance.randint(1, len(topics))) for i in names}
    first = uniform.assign(spec({i: (subscribed[i], {}) for i in names}, counts, homogeneous))
    every = {(t, p) for t in {t for of in subscribed.values() for t in of} for p in range(counts[t])}
    assert sorted((t, p) for target in first.values() for t, of in target.items() for p in of) == sorted(every)
    if homogeneous:
        sizes = [sum(map(len, target.values())) for target in first.values()]
        assert max(sizes) - min(sizes) <= 1
    again = uniform.assign(spec({i: (subscribed[i], first[i]) for i in names}, counts, homogeneous))
    assert again == first, "nothing changed, nothing moves"
    if len(names) > 1:
        rest = names[1:]
        fewer = uniform.assign(spec({i: (subscribed[i], first[i]) for i in rest}, counts, homogeneous))
        for i in rest:
            if homogeneous:
                assert all(of <= fewer[i].get(t, frozenset()) for t, of in first[i].items()), (
                    "who stays keeps what it had"
                )


def test_a_users_assignor_is_asked_and_its_mistakes_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_assignors")

    def all_to_first(given_spec: Spec) -> Any:
        first = min(given_spec.members)
        return {first: {t: set(range(n)) for t, n in given_spec.partition_counts.items()}}

    def wrong(given_spec: Spec) -> Any:
        return {member: {t: {0} for t in given_spec.partition_counts} for member in given_spec.members}

    module.all_to_first, module.wrong = all_to_first, wrong  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_assignors", module)
    w = world(group_consumer_assignors="uniform,my_assignors:all_to_first,my_assignors:wrong")
    assert given(beat(w, "m1", 0, "t", server_assignor="my_assignors:all_to_first")) == [0, 1, 2, 3]
    assert given(beat(w, "m2", 0, "t", server_assignor="my_assignors:all_to_first")) == []
    assert beat(w, "m1", 2, topic_partitions=owned(w, 0, 1, 2, 3)).reply.member_epoch == 3
    before = written(w)
    broken = beat(w, "w1", 0, "t", group="g2", server_assignor="my_assignors:wrong")
    beat(w, "w1", 2, group="g2")
    refused = beat(w, "w2", 0, "t", group="g2", server_assignor="my_assignors:wrong")
    assert (broken.reply.error_code, refused.reply.error_code) == (0, Errors.UNKNOWN_SERVER_ERROR)
    assert "given twice" in refused.reply.error_message
    assert written(w) == before, "the other group is as it was"
    assert beat(w, "m1", 3, server_assignor="nobody:knows").reply.error_code == Errors.UNSUPPORTED_ASSIGNOR
    with pytest.raises(ValueError, match="neither"):
        Assignors(["nonsense"])
    with pytest.raises(AssignorFailed):
        Assignors(["my_assignors:wrong"]).by_name("my_assignors:wrong")(spec({"a": ([T], {}), "b": ([T], {})}, {T: 1}))


# the way between the protocols


@pytest.mark.parametrize(
    ("way", "works"), [("bidirectional", True), ("upgrade", True), ("downgrade", False), ("disabled", False)]
)
def test_a_classic_group_is_upgraded_where_that_is_allowed(way: str, works: bool) -> None:
    w = world(group_consumer_migration_policy=way)
    member = stable(w, b"")
    answer = beat(w, "m1", 0, "t")
    assert (answer.reply.error_code == 0) is works
    assert type(w.broker.groups.host("g").shard.groups["g"]).__name__ == ("ConsumerGroup" if works else "ClassicGroup")
    assert alive(w, member, 1) in (0, Errors.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize(("way", "works"), [("bidirectional", True), ("downgrade", True), ("upgrade", False)])
def test_a_consumer_group_is_downgraded_where_that_is_allowed(way: str, works: bool) -> None:
    w = world(group_consumer_migration_policy=way)
    beat(w, "m1", 0, "t")
    asked = join(w)
    member = asked.reply.member_id
    joined = join(w, member)
    assert joined.reply.error_code == 0
    beat(w, "m1", -1)
    assert type(w.broker.groups.host("g").shard.groups["g"]).__name__ == ("ClassicGroup" if works else "ConsumerGroup")


@pytest.mark.parametrize("seeds", in_turn(spans(20_000, 100, quick=5, each=25)))
def test_histories_under_trouble_hold(seeds: range) -> None:
    """More of them, and deliberate bugs, in `test_sims`."""
    for seed in seeds:
        sim_groups.run(seed)


# time lines, to the millisecond


def test_a_zombies_commit_is_refused() -> None:
    """The text says ILLEGAL_GENERATION: so it is while the zombie is a member; once it was removed it is unknown."""
    w = world()
    zombie = stable(w)
    second = join(w, version=3)
    alive(w, zombie, 1)
    again = join(w, zombie)
    assert second.reply.generation_id == again.reply.generation_id == 2
    assert code(commit(w, 1, "g", zombie, 1)) == Errors.ILLEGAL_GENERATION
    w.pass_ms(10_001)
    assert code(commit(w, 1, "g", zombie, 2)) == Errors.UNKNOWN_MEMBER_ID


def test_a_crash_is_noticed_one_session_after_the_last_heartbeat() -> None:
    """Heartbeats at 0 and 3 s, a crash at 5 s: with a session of 10 s the member is out at 13 s, and the others begin
    again.
    """
    w = world()
    crashing = stable(w)
    other = join(w, version=3)
    assert alive(w, crashing, 1) == Errors.REBALANCE_IN_PROGRESS
    join(w, crashing)
    leader, member = (other.reply.leader, other.reply.member_id)
    assert leader == crashing
    sync(w, crashing, 2, **{crashing: b"1", member: b"2"})
    sync(w, member, 2)
    assert alive(w, crashing, 2) == 0
    w.pass_ms(3000)
    assert alive(w, crashing, 2) == alive(w, member, 2) == 0
    for _ in range(3):
        w.pass_ms(3300)
        assert alive(w, member, 2) == 0, "12.9 s: still there"
    w.pass_ms(101)
    assert alive(w, member, 2) == Errors.REBALANCE_IN_PROGRESS
    rejoined = join(w, member)
    assert (rejoined.reply.generation_id, rejoined.reply.leader) == (3, member)


def test_what_is_pending_is_found_by_producer_and_by_group() -> None:
    """Several producers on one partition of one group, several groups of one producer: an end, a deletion and a revert
    concern their own.
    """
    timeline = Timeline()
    offsets = Offsets(timeline)

    def put(producer_id: int, group: str, offset: int) -> None:
        offsets.put(offset, producer_id, Commit(group, "t", 0, offset, -1, "", 0, bytes(16)))

    def pending(group: str) -> list[int]:
        return sorted(stored[1] for _, stored in offsets.pending_of(group))

    for producer_id, group, offset in ((1, "a", 10), (2, "a", 20), (2, "b", 30), (2, "a", 21)):
        put(producer_id, group, offset)
    assert (pending("a"), pending("b")) == ([10, 21], [30])
    timeline.snapshot(100)
    list(offsets.replay_marker(2, committed=True))
    assert (pending("a"), pending("b")) == ([10], [])
    assert offsets.has_pending("a")
    assert not offsets.has_pending("b")
    assert offsets.of("a")["t", 0][1] == 21
    timeline.revert(100)
    assert (pending("a"), pending("b"), len(offsets.of("a"))) == ([10, 21], [30], 0)
    key = m.OffsetCommitKey(group="a", topic="t", partition=0)
    offsets.replay(101, -1, key, None)
    assert (pending("a"), pending("b")) == ([], [30])
    assert not offsets.is_pending("a", ("t", 0))
    put(1, "a", 11)
    list(offsets.replay_marker(2, committed=False))
    assert (pending("a"), pending("b")) == ([11], [])
    list(offsets.replay_marker(1, committed=False))
    assert not len(offsets.pending)
    assert not len(offsets.pending_producers)
