"""The seam of the lab: interceptors see requests and replies in order, and may change, delay, hold and end them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker import bugs
from ottla.broker.lab.damage import cut
from ottla.broker.lab.seam import CLOSE, NO_REPLY, Exchange, Interceptor, Line, Outgoing, decoded
from ottla.broker.later import Later
from ottla.broker.net import intercepting
from ottla.broker.peer import SecurityProtocol
from ottla.protocol import messages as m
from ottla.protocol.encoded import Encoded
from ottla.protocol.errors import ApiError, Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.sasl_world import LISTENER, SETTINGS
from ..support.topic_world import create

METADATA = "Metadata", 12, m.MetadataRequest(topics=[])
GROUPS = "ListGroups", 4, m.ListGroupsRequest()
HEARTBEAT = "Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m")


class Noting(Interceptor):
    """Notes what it sees."""

    def __init__(self, order: int = 0, name: str = "") -> None:
        self.order = order
        self.name = name
        self.seen: list[str] = []

    def note(self, point: str, exchange: Exchange) -> None:
        self.seen.append(f"{self.name}{point} {exchange.context.api.name} {exchange.context.correlation_id}")

    def opened(self, line: Line) -> None:
        self.seen.append(f"opened {line.number}")

    def arrived(self, exchange: Exchange) -> Any:
        self.note("arrived", exchange)
        exchange.follow(self)
        return None

    def answered(self, exchange: Exchange, outcome: Any) -> Any:
        self.note("answered", exchange)
        return None

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> Later[None] | None:
        self.note("encoded", exchange)
        return None

    def refused(self, line: Line, frame: memoryview, reason: str) -> None:
        self.seen.append(f"refused {line.number}: {reason}")

    def closed(self, line: Line) -> None:
        self.seen.append(f"closed {line.number}")


class Doing(Interceptor):
    """Does with requests of some APIs what a function says; with a function for `encoded`, follows them."""

    def __init__(
        self, on_arrival: Callable[[Exchange], Any], on_reply: Callable[[Exchange, Outgoing], Any] | None = None
    ) -> None:
        self.on_arrival = on_arrival
        self.on_reply = on_reply

    def arrived(self, exchange: Exchange) -> Any:
        if self.on_reply is not None:
            exchange.follow(self)
        return self.on_arrival(exchange)

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> Any:
        return self.on_reply(exchange, outgoing) if self.on_reply is not None else None


def passing(exchange: Exchange) -> None:
    """Lets a request pass."""


def only(api: str, instead: Callable[[], Any]) -> Callable[[Exchange], Any]:
    return lambda exchange: instead() if exchange.context.api.name == api else None


def started(*interceptors: Interceptor) -> tuple[ConnectedWorld, Client]:
    world = ConnectedWorld()
    client = world.connect()
    for one in interceptors:
        world.seam.add(one)
    return world, client


def test_an_interceptor_sees_the_life_of_connections_and_exchanges() -> None:
    noting = Noting()
    world, client = started(noting)
    client.ask(*METADATA)
    other = world.connect()
    client.ask(*GROUPS)
    other.feed(b"\0\0\0\x08\x7f\xff\0\0\0\0\0\1")
    client.lose()
    assert noting.seen == [
        "opened 1",
        *(f"{point} Metadata 1" for point in ("arrived", "answered", "encoded")),
        "opened 2",
        *(f"{point} ListGroups 2" for point in ("arrived", "answered", "encoded")),
        "refused 2: API key 32767 is not served",
        "closed 1",
    ]


def test_requests_pass_interceptors_by_order_and_replies_come_back() -> None:
    inner, outer = Noting(2, "inner "), Noting(1, "outer ")
    inner.seen = outer.seen
    _, client = started(inner, outer)
    del outer.seen[:]
    client.ask(*METADATA)
    assert [line.rpartition(" Metadata")[0] for line in outer.seen] == [
        "outer arrived",
        "inner arrived",
        "inner answered",
        "outer answered",
        "inner encoded",
        "outer encoded",
    ]


def test_dispatchers_have_no_seam_while_there_is_no_interceptor() -> None:
    world, client = started()
    one, other = Noting(), Noting()
    assert world.dispatcher.seam is None
    world.seam.add(one)
    world.seam.add(other)
    assert world.dispatcher.seam is client.connection.dispatcher.seam is world.seam
    world.seam.remove(one)
    assert world.dispatcher.seam is world.seam
    world.seam.remove(other)
    assert world.dispatcher.seam is client.connection.dispatcher.seam is None
    client.ask(*METADATA)
    assert len(one.seen) == len(other.seen) == 1  # a connection that was open


@pytest.mark.parametrize("waits_first", [False, True])
def test_an_answer_in_place_of_the_handler(waits_first: bool) -> None:
    answer = m.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS)
    world, client = started()

    def instead() -> Any:
        if not waits_first:
            return answer
        later: Later[Any] = Later()
        world.broker.turn.later(5, lambda: later.finish(answer))
        return later

    world.seam.add(Doing(only("Heartbeat", instead)))
    assert client.ask(*HEARTBEAT).error_code == Errors.REBALANCE_IN_PROGRESS
    assert world.schedule.monotonic_ms() == (5 if waits_first else 0)
    assert client.ask(*GROUPS).error_code == 0


def test_an_error_of_the_whole_request() -> None:
    _, client = started(Doing(only("Heartbeat", lambda: ApiError(Errors.NOT_COORDINATOR))))
    assert client.ask(*HEARTBEAT).error_code == Errors.NOT_COORDINATOR


@pytest.mark.parametrize("silence", [CLOSE, NO_REPLY])
def test_a_request_that_gets_no_answer(silence: Any) -> None:
    _, client = started(Doing(only("Heartbeat", lambda: silence)))
    client.send(*HEARTBEAT)
    assert client.closed == (silence is CLOSE)
    if silence is NO_REPLY:
        client.send(*GROUPS)
        assert client.ids == [2]


def test_a_delayed_request_keeps_the_order_of_replies() -> None:
    world, client = started()
    world.seam.add(Doing(only("Heartbeat", lambda: world.broker.turn.pause(100))))
    for request in (HEARTBEAT, GROUPS, HEARTBEAT, GROUPS):
        client.send(*request)
    assert client.ids == []
    world.pass_ms(99)
    assert client.ids == []
    world.pass_ms(1)
    assert client.ids == [1, 2]
    world.pass_ms(100)
    assert client.ids == [1, 2, 3, 4]
    assert world.seam.waiting == world.seam.waiting_bytes == 0


def test_a_held_reply_is_sent_when_it_is_released() -> None:
    hold: Later[None] = Later()
    world, client = started(Doing(passing, lambda exchange, outgoing: hold if exchange.number == 1 else None))
    client.send(*METADATA)
    client.send(*GROUPS)
    other = world.connect()
    other.send(*GROUPS)
    assert (client.ids, other.ids, world.seam.waiting) == ([], [1], 1)
    world.broker.turn.event(lambda: hold.finish(None))
    world.pass_ms(0)
    assert client.ids == [1, 2]
    assert world.seam.waiting == world.seam.waiting_bytes == 0


@pytest.mark.parametrize("at_reply", [False, True])
def test_a_lost_connection_ends_what_waits(at_reply: bool) -> None:
    hold: Later[None] = Later()
    ended = []
    hold.on_cancel = lambda: ended.append(1)
    world, client = started(
        Doing(passing, lambda exchange, outgoing: hold) if at_reply else Doing(only("ListGroups", lambda: hold))
    )
    client.send(*GROUPS)
    times = world.broker.metrics.apis[16, 4]
    assert (world.seam.waiting, times.parked, client.connection.is_waiting()) == (1, 1, True)
    client.lose()
    assert ended == [1]
    assert (world.seam.waiting, world.seam.waiting_bytes, times.parked) == (0, 0, 0)
    hold.finish(None)
    assert client.ids == []


def test_a_held_produce_keeps_its_records() -> None:
    """They are views of a buffer that other requests use meanwhile."""
    world, client = started()
    create(world, "t")
    world.seam.add(Doing(only("Produce", lambda: world.broker.turn.pause(10))))
    client.send("Produce", 9, produce_message("t", batch(b"value")))
    world.connect().ask(*METADATA)
    world.pass_ms(10)
    (partition,) = client.reply(1).responses[0].partition_responses
    assert (partition.error_code, partition.base_offset) == (0, 0)
    assert world.broker.partitions.by_name["t", 0].end_offset == 1


def test_a_request_without_a_reply_can_be_delayed() -> None:
    world, client = started()
    create(world, "t")
    seen: list[Any] = []
    noting = Noting()
    noting.answered = lambda exchange, outcome: seen.append(outcome)  # type: ignore[method-assign]
    world.seam.add(noting)
    world.seam.add(Doing(only("Produce", lambda: world.broker.turn.pause(10))))
    client.send("Produce", 9, produce_message("t", batch(b"value"), acks=0))
    client.send(*GROUPS)
    world.pass_ms(10)
    assert (client.ids, seen[0]) == ([2], NO_REPLY)
    assert world.broker.partitions.by_name["t", 0].end_offset == 1


def test_a_large_request_is_handled_in_turns_after_it_waited() -> None:
    world, client = started()
    world.seam.add(Doing(only("Metadata", lambda: world.broker.turn.pause(10))))
    topics = [m.MetadataRequest.MetadataRequestTopic(name=f"topic-{n}") for n in range(2000)]
    client.send("Metadata", 12, m.MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    client.send(*GROUPS)
    world.pass_ms(20)
    assert client.ids == [1, 2]
    assert len(client.reply(1).topics) == 2000


def test_a_large_reply_is_encoded_in_steps_after_it_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[type] = []
    noting = Noting()
    noting.answered = lambda exchange, outcome: shown.append(type(outcome.topics))  # type: ignore[method-assign]
    world, client = started(noting)
    put_together = world.dispatcher._reply

    def noted(api: Any, context: Any, outcome: Any) -> Any:
        shown.append(type(outcome.topics))
        return put_together(api, context, outcome)

    monkeypatch.setattr(world.dispatcher, "_reply", noted)
    r = m.ListOffsetsRequest
    topics = [r.ListOffsetsTopic(name=f"t{n}", partitions=[r.ListOffsetsPartition()]) for n in range(2000)]
    assert len(client.ask("ListOffsets", 7, r(topics=topics)).topics) == 2000
    assert shown == [list, Encoded]


def test_encoded_arrays_can_be_decoded_for_who_follows() -> None:
    names: list[str] = []

    class Reading(Noting):
        def answered(self, exchange: Exchange, outcome: Any) -> Any:
            message: Any = decoded(outcome)
            names.extend(topic.name for topic in message.topics)
            message.topics = message.topics[:1]

    _, client = started(Reading())
    topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in ("a", "b")]
    reply = client.ask("Metadata", 12, m.MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    assert names == ["a", "b"]
    assert [topic.name for topic in reply.topics] == ["a"]


def _fetch(world: ConnectedWorld, client: Client, size: int = 300) -> Any:
    """A Fetch whose reply has records that are read from a file; creates the topic."""
    create(world, "t")
    for _ in range(3):
        client.ask("Produce", 9, produce_message("t", batch(bytes(size))))
    return "Fetch", 11, fetch_message("t", 0)


def _holds(world: ConnectedWorld) -> int:
    log = world.broker.partitions.by_name["t", 0].open_log()
    return sum(segment.holds for segment in log.segments)


def test_a_lost_connection_releases_the_records_of_a_held_reply() -> None:
    world, client = started()
    fetch = _fetch(world, client)
    world.seam.add(Doing(passing, lambda exchange, outgoing: Later()))
    client.send(*fetch)
    assert _holds(world) == 1
    client.lose()
    assert _holds(world) == 0


def test_a_reply_with_records_is_sent_in_pieces_and_then_ends_the_connection() -> None:
    world, client = started()
    fetch = _fetch(world, client)
    whole = client.ask(*fetch)
    before = len(client.transport.writes)

    def slow(exchange: Exchange, outgoing: Outgoing) -> None:
        outgoing.chunk_bytes, outgoing.interval_ms, outgoing.end = 100, 10, True

    world.seam.add(Doing(only("ListGroups", lambda: None), slow))
    number = client.send(*fetch)
    client.send(*GROUPS)
    world.pass_ms(10_000)
    pieces = client.transport.writes[before:]
    assert [len(data) for _, data in pieces[:-1]] == [100] * (len(pieces) - 1)
    assert {after - now for (now, _), (after, _) in zip(pieces[:-1], pieces[1:], strict=True)} == {10}
    assert client.ids[-1] == number
    assert client.reply(number) == whole
    assert client.closed
    assert _holds(world) == 0


def test_replies_in_pieces_keep_their_order() -> None:
    def slow(exchange: Exchange, outgoing: Outgoing) -> None:
        outgoing.chunk_bytes = 1

    world, client = started(Doing(passing, slow))
    for _ in range(20):
        client.send(*GROUPS)
        client.send(*METADATA)
    world.pass_ms(1)
    assert client.ids == list(range(1, 41))
    assert {len(data) for _, data in client.transport.writes} == {1}
    assert not client.closed


def test_a_reply_may_be_cut() -> None:
    def shorten(exchange: Exchange, outgoing: Outgoing) -> None:
        assert outgoing.reply is not None
        ((place, _),) = outgoing.reply.parts
        cut(outgoing.reply, place + 10)
        outgoing.end = True

    world, client = started()
    fetch = _fetch(world, client)
    before = len(client.transport.written)
    world.seam.add(Doing(passing, shorten))
    client.send(*fetch)
    world.pass_ms(1)
    sent = client.transport.written[before:]
    assert int.from_bytes(sent[:4], "big") > len(sent)
    assert client.closed
    assert _holds(world) == 0


@pytest.mark.parametrize("at_reply", [False, True])
def test_what_waits_is_bounded(at_reply: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intercepting, "WAITING_MAX", 2)
    world, _ = started(
        Doing(passing, lambda exchange, outgoing: Later()) if at_reply else Doing(only("ListGroups", Later))
    )
    clients = [world.connect() for _ in range(3)]
    for client in clients:
        client.send(*GROUPS)
    assert [client.closed for client in clients] == [False, False, True]
    assert world.broker.limits.counts["waiting-exchanges"] == 1
    clients[0].lose()
    world.connect().send(*GROUPS)
    assert world.seam.waiting == 2


def test_an_interceptor_that_fails_lets_the_request_pass() -> None:
    def wrong() -> None:
        raise KeyError("a bug")

    _, client = started(Doing(only("ListGroups", wrong)))
    before = bugs.count()
    assert client.ask(*GROUPS).error_code == 0
    assert bugs.count() == before + 1


def test_a_follower_that_fails_ends_the_connection() -> None:
    def wrong(exchange: Exchange, outgoing: Outgoing) -> None:
        raise KeyError("a bug")

    world, client = started(Doing(only("Metadata", lambda: None), wrong))
    before = bugs.count()
    client.send(*GROUPS)
    assert client.closed
    assert bugs.count() == before + 1
    assert world.connect().transport.closed is False


def test_a_throttled_connection_is_muted_after_a_reply_that_waited() -> None:
    def throttle(exchange: Exchange, outgoing: Outgoing) -> Later[None]:
        exchange.line.peer.throttle_ms = 50
        return world.broker.turn.pause(10)

    world, client = started()
    world.seam.add(Doing(passing, throttle))
    client.send(*GROUPS)
    client.send(*GROUPS)
    world.pass_ms(10)
    assert client.ids == [1]
    world.pass_ms(59)
    assert client.ids == [1]
    world.pass_ms(1)
    assert client.ids == [1, 2]


def test_the_exchange_of_sasl_passes_the_seam_and_so_do_the_requests_after_it() -> None:
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    plain = {f"{LISTENER}.sasl.enabled.mechanisms": "PLAIN", f"{LISTENER}.plain.sasl.jaas.config": users}
    world = ConnectedWorld(**SETTINGS, **plain)
    early = world.connect("AUTH", SecurityProtocol.SASL_PLAINTEXT)
    noting = Noting()
    world.seam.add(noting)
    world.seam.add(Doing(only("SaslAuthenticate", lambda: world.broker.turn.pause(10))))
    for client in (early, world.connect("AUTH", SecurityProtocol.SASL_PLAINTEXT)):
        del noting.seen[:]
        client.send("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        client.send("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))
        client.send(*METADATA)
        assert client.ids == [1]
        world.pass_ms(10)
        assert client.ids == [1, 2, 3]
        assert client.connection.peer.principal == "User:alice"
        assert client.connection.dispatcher is world.dispatcher
        assert noting.seen[::3] == ["arrived SaslHandshake 1", "arrived SaslAuthenticate 2", "arrived Metadata 3"]
