"""The limits against abuse: what each does to a client that goes beyond it, and that it is counted and logged by
name.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from ottla.broker.config.config import OWN_KEYS
from ottla.broker.connection_rates import Verdict
from ottla.broker.group.room import RECOUNT_MS
from ottla.broker.limits import BY_NAME, LIMITS, REQUEST_BYTES, REQUEST_ELEMENTS
from ottla.broker.net.connection import Connection
from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.net.listening import IdlePoll, SharedBuffer
from ottla.broker.net.sending import Pipe
from ottla.broker.net.server import Server
from ottla.broker.peer import SecurityProtocol
from ottla.protocol import messages as m
from ottla.protocol.config_def import keys
from ottla.protocol.errors import Errors

from ..support import token_world as tokens
from ..support.ask import batch, produce_message
from ..support.group_world import beat
from ..support.group_world import world as group_world
from ..support.machine import VirtualMachine
from ..support.share_world import Consumer
from ..support.share_world import world as share_world
from ..support.topic_world import create
from ..support.transaction_world import hold
from ..support.world import World

MEMBERS = [f"AAAAAAAAAAAAAAAAAAAAA{letter}" for letter in "ABCDEFGH"]


def reached(world: World) -> dict[str, int]:
    return {name: count for name, count in world.broker.limits.counts.items() if count}


def commit(world: World, group: str) -> int:
    c = m.OffsetCommitRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = c(group_id=group, topics=[c.OffsetCommitRequestTopic(name="t", partitions=[part])])
    code: int = world.ask("OffsetCommit", 8, request).topics[0].partitions[0].error_code
    return code


def join(world: World, group: str) -> int:
    j = m.JoinGroupRequest
    request = j(group_id=group, session_timeout_ms=9000, rebalance_timeout_ms=9000, protocol_type="c")
    request.protocols = [j.JoinGroupRequestProtocol(name="p", metadata=b"")]
    code: int = world.ask("JoinGroup", 3, request).error_code
    return code


def share_beat(world: World, group: str, member: str) -> int:
    request = m.ShareGroupHeartbeatRequest(group_id=group, member_id=member, subscribed_topic_names=["t"])
    code: int = world.ask("ShareGroupHeartbeat", 1, request).error_code
    return code


def test_groups_are_bounded_of_every_kind(caplog: pytest.LogCaptureFixture) -> None:
    world = group_world(1, ottla_groups_max="3")
    assert commit(world, "simple") == 0
    assert join(world, "classic") == 0
    assert beat(world, MEMBERS[0], 0, "t", group="consumer").reply.error_code == 0
    full = int(Errors.GROUP_MAX_SIZE_REACHED)
    assert commit(world, "another") == join(world, "another") == share_beat(world, "another", MEMBERS[1]) == full
    refused = beat(world, MEMBERS[0], 0, "t", group="another").reply
    assert refused.error_code == full
    assert "ottla.groups.max" in refused.error_message
    assert commit(world, "simple") == 0, "groups that are there go on"
    assert beat(world, MEMBERS[1], 0, "t", group="consumer").reply.error_code == 0
    assert reached(world) == {"groups": 4}
    assert [r.getMessage() for r in caplog.records if "limit" in r.getMessage()] == [
        "group another: the limit groups (groups) was reached: GROUP_MAX_SIZE_REACHED for a new group; "
        "to raise it, set ottla.groups.max"
    ], "once in a while, not once per request"


def test_members_of_all_groups_are_bounded_and_those_who_leave_make_room() -> None:
    world = group_world(1, ottla_group_members_max="3")
    for member in MEMBERS[:3]:
        assert beat(world, member, 0, "t", group=f"of-{member}").reply.error_code == 0
    full = int(Errors.GROUP_MAX_SIZE_REACHED)
    assert beat(world, MEMBERS[3], 0, "t").reply.error_code == full
    assert share_beat(world, "sharing", MEMBERS[3]) == join(world, "classic") == full
    assert beat(world, MEMBERS[0], -1, group=f"of-{MEMBERS[0]}").reply.error_code == 0
    world.pass_ms(RECOUNT_MS)
    assert beat(world, MEMBERS[3], 0, "t").reply.error_code == 0
    assert reached(world) == {"group-members": 3}


def test_the_size_of_one_group_is_counted_too() -> None:
    world = group_world(1, group_share_max_size="1", group_consumer_max_size="1", group_max_size="1")
    full = int(Errors.GROUP_MAX_SIZE_REACHED)
    assert [share_beat(world, "s", member) for member in MEMBERS[:2]] == [0, full]
    assert [beat(world, member, 0, "t").reply.error_code for member in MEMBERS[:2]] == [0, full]
    assert reached(world) == {"group-size": 2}


def produce_as(world: World, producer_id: int, sequence: int = 0) -> Any:
    data = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return world.ask("Produce", 9, produce_message("t", data)).responses[0].partition_responses[0]


def test_the_producers_of_a_partition_are_bounded_and_the_silent_ones_go() -> None:
    world = World(ottla_producers_per_partition_max="3")
    create(world, "t")
    producers = world.broker.partitions.get("t", 0).open_log().producers
    for producer_id in (1, 2, 3):
        assert produce_as(world, producer_id).error_code == 0
    assert produce_as(world, 1, 1).error_code == 0
    assert produce_as(world, 4).error_code == 0
    assert list(producers.by_id) == [3, 1, 4]
    assert produce_as(world, 2, 1).error_code == 0, "who was forgotten goes on, as after its expiry"
    producers.by_id[1].transaction_first_offset = producers.open_transactions[1] = 0
    assert produce_as(world, 5).error_code == 0
    assert list(producers.by_id) == [1, 2, 5], "an open transaction is kept"
    assert reached(world) == {"producers": 3}


def test_transactional_ids_are_bounded() -> None:
    world = group_world(1, ottla_transactional_ids_max="2")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["one"]))
    codes = {name: initialized(world, name) for name in ("one", "two", "three", "one")}
    assert codes == {"one": 0, "two": 0, "three": int(Errors.POLICY_VIOLATION)}
    assert reached(world) == {"transactional-ids": 1}


def test_a_transactional_id_that_was_not_committed_in_time_counts_once() -> None:
    world = group_world(1, ottla_transactional_ids_max="2")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["one"]))
    hold(world)
    unwritten = int(Errors.COORDINATOR_NOT_AVAILABLE)
    assert [initialized(world, name) for name in ("one", "two")] == [unwritten, unwritten]
    assert initialized(world, "three") == int(Errors.POLICY_VIOLATION)
    assert reached(world) == {"transactional-ids": 1}


def initialized(world: World, transactional_id: str) -> int:
    asked = m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    return int(world.ask("InitProducerId", 4, asked).error_code)


def test_delegation_tokens_are_bounded_in_all_and_of_one_owner_and_so_are_their_renewers() -> None:
    w = tokens.world_of(
        None,
        **{
            "ottla.delegation.tokens.max": "3",
            "ottla.delegation.tokens.per.owner.max": "2",
            "ottla.delegation.token.renewers.max": "2",
        },
    )
    r = m.CreateDelegationTokenRequest

    def make(owner: str, *renewers: str) -> Any:
        wanted = [r.CreatableRenewers(principal_type="User", principal_name=one) for one in renewers]
        w.peer = tokens.peer_of(owner)
        return w.ask("CreateDelegationToken", 3, r(renewers=wanted))

    first = make("alice", "x", "y")
    assert [one.error_code for one in (first, make("alice"), make("bob"))] == [0, 0, 0]
    assert first.principal_name == "alice"
    refused = [make("carol"), make("alice"), make("dan", "x", "y", "z"), make("dan", "x" * 5000, "y" * 5000)]
    assert [one.error_code for one in refused] == [int(Errors.POLICY_VIOLATION)] * 4
    assert [(one.principal_name, one.issue_timestamp_ms, one.hmac) for one in refused[:1]] == [("carol", -1, b"")]
    assert reached(w) == {"delegation-tokens": 1, "delegation-tokens-per-owner": 1, "delegation-token-renewers": 2}
    w.peer = tokens.peer_of("alice")
    assert tokens.expire(w, first).error_code == 0
    assert make("carol").error_code == 0, "one made room"
    assert dict(w.broker.image.token_counts) == {"User:alice": 1, "User:bob": 1, "User:carol": 1}
    w.broker.stop()
    later = tokens.world_of(w.files)
    assert dict(later.broker.image.token_counts) == {"User:alice": 1, "User:bob": 1, "User:carol": 1}


def test_tokens_of_one_batch_are_counted_before_they_are_committed() -> None:
    w = tokens.world_of(None, **{"ottla.delegation.tokens.max": "2"})
    peers = [tokens.peer_of(name) for name in ("alice", "bob", "carol")]
    answers = [w.send("CreateDelegationToken", 3, m.CreateDelegationTokenRequest(), peer) for peer in peers]
    assert not answers[0].done
    w.pass_ms(10)
    assert [one.reply.error_code for one in answers] == [0, 0, int(Errors.POLICY_VIOLATION)]


def test_fetch_sessions_and_share_sessions_are_counted() -> None:
    w = share_world(
        partitions=1,
        group_share_max_size="1",
        group_share_max_share_sessions="1",
        max_incremental_fetch_session_cache_slots="1",
    )
    assert Consumer(w, partitions=(0,)).fetch().error_code == 0
    assert Consumer(w, "other", partitions=(0,)).fetch().error_code == Errors.SHARE_SESSION_LIMIT_REACHED
    f = m.FetchRequest
    topic = f.FetchTopic(topic="t", partitions=[f.FetchPartition(partition=0, partition_max_bytes=100)])
    asked = [w.ask("Fetch", 11, f(session_epoch=0, topics=[topic], max_bytes=100)) for _ in range(2)]
    assert [(one.error_code, one.session_id > 0) for one in asked] == [(0, True), (0, False)]
    assert reached(w) == {"share-sessions": 1, "fetch-sessions": 1}


def test_what_one_request_takes_is_counted() -> None:
    world = group_world(1, ottla_record_validation="full")
    bomb = batch(b"\0" * (40 << 20), codec=4)
    assert world.ask("Produce", 9, produce_message("t", bomb)).responses[0].partition_responses[0].error_code == int(
        Errors.INVALID_RECORD
    )
    refused = beat(world, MEMBERS[0], 0, subscribed_topic_names=None, subscribed_topic_regex="[a-z]{1,900}" * 100)
    world.pass_ms(10)
    assert refused.reply.error_code == Errors.INVALID_REGULAR_EXPRESSION
    assert reached(world) == {"decompressed-bytes": 1, "regular-expression": 1}
    topics = [m.MetadataRequest.MetadataRequestTopic(name="t")] * 30_000
    with pytest.raises(Refused) as caught:
        world.send("Metadata", 12, m.MetadataRequest(topics=topics))
    assert caught.value.limit is REQUEST_ELEMENTS
    with pytest.raises(Refused) as caught:
        world.dispatcher.check_size(3, 5 << 20)
    assert caught.value.limit is REQUEST_BYTES


def test_every_limit_has_a_name_and_keys_that_exist() -> None:
    known = keys("broker") | keys("topic") | OWN_KEYS
    assert [key for limit in LIMITS for key in limit.keys if key not in known] == []
    assert len(BY_NAME) == len(LIMITS)
    assert all(re.fullmatch(r"[a-z-]+", limit.name) for limit in LIMITS)


class Transport:
    """A connection's transport that keeps what is written, as for a peer that does not read."""

    def __init__(self) -> None:
        self.unread = 0
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return "127.0.0.1", 1

    def pause_reading(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True

    close = abort


class Listening:
    """The part of the server that connections use, with the limit of the server."""

    held = Server.held

    def __init__(self, world: World, buffered_bytes_max: int) -> None:
        self.broker, self.dispatcher, self.shared = world.broker, world.dispatcher, SharedBuffer()
        self.pipe = Pipe()
        self.poll = IdlePoll(VirtualMachine(), 0)
        self.buffered_bytes, self.buffered_bytes_max = 0, buffered_bytes_max
        self.connections: dict[Connection, None] = {}

    def connected(self, connection: Connection) -> bool:
        self.connections[connection] = None
        return True

    def admit(self, connection: Connection) -> None:
        connection.admitted(Verdict(is_served=True))

    def gate(self, connection: Connection) -> Dispatcher:
        return self.dispatcher

    def disconnected(self, connection: Connection) -> None:
        del self.connections[connection]


def connect(server: Any) -> tuple[Connection, Transport]:
    connection, transport = Connection(server, "PLAINTEXT", SecurityProtocol.PLAINTEXT), Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport


def feed(connection: Connection, data: bytes) -> None:
    """Bytes arrive at a connection."""
    while data:
        view = connection.get_buffer(-1)
        count = min(len(view), len(data))
        view[:count], data = data[:count], data[count:]
        connection.buffer_updated(count)


def test_bytes_that_connections_hold_are_bounded_and_who_holds_the_most_goes() -> None:
    world = World()
    server: Any = Listening(world, 1 << 20)
    produce = (90 << 20).to_bytes(4, "big") + b"\0\0\0\x09\0\0\0\1"
    small, large, last = connect(server), connect(server), connect(server)
    feed(small[0], produce + bytes(20_000))
    feed(large[0], produce + bytes(500_000))
    assert server.buffered_bytes == small[0].held_bytes + large[0].held_bytes <= 1 << 20
    last[1].unread = 600_000
    last[0].pause_writing()
    assert (small[1].aborted, large[1].aborted, last[1].aborted) == (False, True, False)
    assert reached(world) == {"buffered-bytes": 1}
    assert server.buffered_bytes == small[0].held_bytes + 600_000
    last[1].unread = 0
    last[0].resume_writing()
    for connection, _ in (small, large, last):
        connection.connection_lost(None)
    assert server.buffered_bytes == 0
