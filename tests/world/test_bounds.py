"""What clients leave behind is bounded: fetch sessions, share sessions, member ids that no client comes back with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import re2
from ottla.broker.peer import Peer
from ottla.broker.share.sessions import SessionKey, Wanted
from ottla.coordinator.group import regex
from ottla.coordinator.group.classic import join as join_group
from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.regex import compiled
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors

from ..support.group_world import world as group_world
from ..support.share_world import Consumer, topic_id
from ..support.share_world import world as share_world
from ..support.topic_world import create
from ..support.world import World


def fetch(world: World, names: list[str], session_id: int = 0, epoch: int = 0) -> Any:
    r = m.FetchRequest
    topics = [
        r.FetchTopic(topic=name, partitions=[r.FetchPartition(partition=0, partition_max_bytes=100)]) for name in names
    ]
    return world.ask("Fetch", 11, r(session_id=session_id, session_epoch=epoch, topics=topics, max_bytes=100))


def test_fetch_sessions_are_bounded_in_memory_and_old_ones_make_room() -> None:
    world = World()
    create(world, "t")
    first = fetch(world, ["t"]).session_id
    sessions = world.broker.extensions["fetch_sessions"]
    sessions.bytes_max = 100_000
    large = [f"{n}-" + "x" * 800 for n in range(40)]
    second = fetch(world, large).session_id
    assert second
    assert sessions.bytes < 100_000
    assert fetch(world, large).session_id == 0, "there is no room for it, and it names its partitions each time"
    world.pass_ms(130_000)
    third = fetch(world, large).session_id
    assert third, "what was not used for two minutes went"
    assert fetch(world, [], first, 1).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(world, [], second, 1).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert set(sessions.sessions) == {third}


def test_a_fetch_session_that_grows_beyond_the_bound_ends() -> None:
    world = World()
    create(world, "t")
    session = fetch(world, ["t"]).session_id
    sessions = world.broker.extensions["fetch_sessions"]
    sessions.bytes_max = 10_000
    answer = fetch(world, [f"more-{n}" for n in range(50)], session, 1)
    assert answer.session_id == 0
    assert sum(len(topic.partitions) for topic in answer.responses) == 51 - 1, "the reply has what is new of it"
    assert fetch(world, [], session, 2).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.bytes == 0


def test_fetch_sessions_that_are_not_used_end_by_themselves() -> None:
    world = World()
    create(world, "t")
    used, left = fetch(world, ["t"]).session_id, fetch(world, ["t"]).session_id
    for epoch in range(1, 4):
        world.pass_ms(500_000)
        assert fetch(world, [], used, epoch).error_code == 0
    sessions = world.broker.extensions["fetch_sessions"]
    assert list(sessions.sessions) == [used]
    assert fetch(world, [], left, 1).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert not world.broker.partitions.get("t", 0).waiters.keys() - {sessions.sessions[used]}


def test_share_sessions_are_bounded_in_partitions() -> None:
    w = share_world(partitions=3)
    one = Consumer(w, partitions=(0,))
    assert one.fetch().error_code == 0
    w.broker.share_partitions.sessions.entries_max = 2
    f = m.ShareFetchRequest
    parts = [f.FetchPartition(partition_index=n) for n in (1, 2)]
    request = f(
        group_id="q",
        member_id="m",
        share_session_epoch=1,
        topics=[f.FetchTopic(topic_id=topic_id(w, "t"), partitions=parts)],
    )
    request.max_bytes = request.max_records = 100
    assert w.ask("ShareFetch", 1, request).error_code == Errors.SHARE_SESSION_LIMIT_REACHED
    assert w.broker.share_partitions.sessions.sessions["q", "m"].entries.keys() == {(topic_id(w, "t"), 0)}  # type: ignore[index]


def test_the_partitions_of_share_sessions_are_counted_as_they_come_and_go() -> None:
    w = share_world(partitions=3)
    sessions = w.broker.share_partitions.sessions

    def check(count: int) -> None:
        assert sessions.entries == sum(len(one.entries) for one in sessions.sessions.values()) == count

    t = topic_id(w, "t")
    lost = Peer("PLAINTEXT", "127.0.0.1:9")
    sessions.begin(SessionKey("q", "m"), w.peer, [Wanted(t, n, "t") for n in (0, 1)])
    check(2)
    sessions.begin(SessionKey("q", "n"), lost, [Wanted(t, 2, "t")])
    check(3)
    sessions.change(sessions.get(SessionKey("q", "m")), [Wanted(t, 1, "t"), Wanted(t, 2, "t")], [(t, 0), (t, 9)])
    check(3)
    sessions.begin(SessionKey("q", "m"), w.peer, [])
    check(1)
    lost.lost()
    check(0)
    sessions.end(SessionKey("q", "m"))
    check(0)


def join(world: World, group_id: str, member_id: str = "", name: str = "c") -> Any:
    j = m.JoinGroupRequest
    protocol = j.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = j(
        group_id=group_id,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=600_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return world.ask("JoinGroup", 5, request)


def test_member_ids_that_are_given_out_are_bounded(monkeypatch: Any) -> None:
    """The oldest go; whoever comes back with one gets another, as after its session."""
    world = group_world(
        1,
        offsets_topic_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
        group_max_session_timeout_ms="1800000",
    )
    shard = world.broker.groups.hosts[0].shard
    joined = join(world, "joined").member_id
    monkeypatch.setattr(join_group, "PENDING_BYTES_MAX", 100 * (join_group.PENDING_BYTES + len(joined)))
    assert join(world, "joined", joined).error_code == 0
    ids = [join(world, f"g{n % 7}").member_id for n in range(500)]
    pending = sum(len(group.pending) for group in shard.groups.values() if isinstance(group, ClassicGroup))
    timers = sum(isinstance(key, tuple) and key[0] == "heartbeat" for key in shard.timers._live)
    assert pending <= 100
    assert timers == pending + 1
    assert len(shard.given_out.ids) <= 100
    assert join(world, "g0", ids[0]).error_code == Errors.UNKNOWN_MEMBER_ID
    assert join(world, f"g{499 % 7}", ids[499]).error_code == 0
    heartbeat = m.HeartbeatRequest(group_id="joined", member_id=joined, generation_id=1)
    assert world.ask("Heartbeat", 4, heartbeat).error_code == 0, "it is a member, and no longer an id"


def test_a_regular_expression_captures_nothing() -> None:
    """With 4,000 groups each name took six seconds."""
    pattern = compiled("(a|b|c)*" * 4000)
    assert getattr(pattern, "groups") == 0  # noqa: B009
    assert pattern.fullmatch("a" * 249)
    assert not pattern.fullmatch("x")


LONG = "[a-z]{1,900}" * 1000


@pytest.mark.parametrize("expression", [LONG, "t-" + "x?" * 400, "t-[a-z]{1,900}", "t-x*"])
def test_a_slow_regular_expression_is_compiled_in_a_thread(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RE2 takes half a second to refuse a large one, and ten for the largest that it takes."""
    compiled_in: list[str] = []
    where, compile = ["loop"], re2.compile

    def noted(*arguments: Any) -> Any:
        compiled_in.append(where[0])
        return compile(*arguments)

    def in_thread(world: World) -> None:
        run = world.schedule.in_thread

        def ran(work: Callable[[], Any], done: Any) -> None:
            def thread() -> Any:
                where[0] = "thread"
                try:
                    return work()
                finally:
                    where[0] = "loop"

            run(thread, done)

        world.schedule.in_thread = ran  # type: ignore[method-assign]

    world = World()
    create(world, "t-xxx")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    world.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000))
    regex.tried.cache_clear()
    monkeypatch.setattr(re2, "compile", noted)
    in_thread(world)
    r = m.ConsumerGroupHeartbeatRequest
    beat = r(group_id="g", member_id="A" * 22, rebalance_timeout_ms=10_000, topic_partitions=[])
    beat.subscribed_topic_regex = expression
    found = world.ask("ConsumerGroupHeartbeat", 1, beat)
    listed = world.ask("ListTransactions", 2, m.ListTransactionsRequest(transactional_id_pattern=expression))
    is_refused = expression == LONG
    assert found.error_code == listed.error_code == (Errors.INVALID_REGULAR_EXPRESSION if is_refused else 0)
    assert compiled_in == ["loop" if expression == "t-x*" else "thread"]


def test_the_program_of_a_regular_expression_is_bounded() -> None:
    with pytest.raises(ApiError) as refused:
        regex.check("[a-z]{1,900}" * 30)
    assert refused.value.code == Errors.INVALID_REGULAR_EXPRESSION
    assert "is not a valid regular expression: pattern too large" in str(refused.value)
    many = regex.compiled("|".join(f"topic-{n}-of-a-team" for n in range(2000)))
    assert many.fullmatch("topic-1999-of-a-team")
