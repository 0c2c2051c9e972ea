"""What a trace says of a connection: at which address it arrived, what waited in it for a reply, and who closed it."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.net.ahead import KEYS_MAX
from ottla.broker.net.idle import IdleConnections
from ottla.protocol import messages as m
from ottla.verdict.from_trace import examine

from ..support.ask import batch, produce_message
from ..support.connected import ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create
from ..support.wire import request_frame

NOT_SERVED = b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\x09\xff\xff"
DELAY_MS = 50


class Traced:
    """A broker with a trace and a verdict, whose replies to Produce are put off."""

    def __init__(self) -> None:
        self.world = ConnectedWorld()
        self.world.schedule.is_machines = True
        create(self.world, "orders", 1)
        self.lab = LabWorld(self.world)
        self.lab.ask("POST /v1/traces")
        self.lab.ask("POST /v1/verdict")
        self.client = self.world.connect()

    @property
    def events(self) -> list[dict[str, Any]]:
        self.world.pass_ms(100)
        found: list[dict[str, Any]] = self.lab.ask("GET /v1/traces/1/events")["events"]
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == kind]

    def delay(self, at: str = "reply", ms: int = DELAY_MS, **more: Any) -> None:
        self.lab.ask("POST /v1/faults", api="Produce", action={"kind": "delay", "ms": ms, "at": at}, **more)

    def in_flight_limit(self) -> tuple[str, list[str]]:
        """What the live verdict says of the rule, which is what it says by the trace."""
        found = self.lab.ask("GET /v1/traces/1/events")
        live = self.lab.ask("GET /v1/verdict")["clients"]
        assert list(examine([found["head"], *found["events"]]).report()) == live
        (rule,) = (one for client in live for one in client["rules"] if one["id"] == "KIP-98.in-flight-limit")
        return rule["outcome"], [one["words"] for one in rule["failures"]]


def written(number: int, acks: int = -1) -> bytes:
    data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=number)
    return request_frame("Produce", 9, produce_message("orders", data, acks=acks), number, "client")


def asked(number: int) -> bytes:
    return request_frame("Metadata", 12, m.MetadataRequest(topics=[]), number, "client")


@pytest.mark.parametrize("ms", [DELAY_MS // 10, DELAY_MS])
@pytest.mark.parametrize("at", ["request", "reply"])
def test_what_came_while_a_reply_was_put_off_is_in_its_event(at: str, ms: int) -> None:
    """The reply is recorded in the block of its request, or in another one."""
    traced = Traced()
    traced.delay(at, ms, nth=1)
    traced.client.feed(written(0))
    traced.client.feed(asked(1) + written(2))
    traced.client.feed(written(3)[:-1])
    traced.world.pass_ms(ms)
    traced.client.feed(written(3)[-1:])
    assert [one.get("waiting") for one in traced.of("reply")] == [[3, 0], None, None, None]


@pytest.mark.parametrize(("behind", "outcome"), [(4, "passed"), (5, "failed")])
def test_six_batches_on_their_way_are_seen(behind: int, outcome: str) -> None:
    traced = Traced()
    traced.delay(nth=1)
    for number in range(1 + behind):
        traced.client.feed(written(number))
    traced.world.pass_ms(DELAY_MS)
    found, words = traced.in_flight_limit()
    assert found == outcome
    assert [one[:18] for one in words] == ["6 Produce requests"] * (outcome == "failed")


def test_requests_that_came_together_and_did_not_wait_are_not_counted() -> None:
    traced = Traced()
    traced.client.feed(b"".join(map(asked, range(4))))
    assert [one.get("waiting") for one in traced.of("reply")] == [None] * 4
    assert traced.in_flight_limit() == ("not exercised", [])


def test_not_all_is_counted_of_very_many() -> None:
    traced = Traced()
    traced.delay()
    traced.client.feed(written(0))
    traced.client.feed(b"".join(map(asked, range(KEYS_MAX + 5))))
    traced.world.pass_ms(DELAY_MS)
    assert traced.of("reply")[0]["waiting"] == [3] * KEYS_MAX


def is_idle(traced: Traced) -> None:
    IdleConnections(traced.world.broker.turn, traced.world.connections, 500)
    traced.world.pass_ms(3000)


def meets_a_fault(traced: Traced, at: str) -> None:
    traced.lab.ask("POST /v1/faults", api="Metadata", action={"kind": "close", "at": at})
    traced.client.feed(asked(1))
    traced.world.pass_ms(1)


def is_refused(traced: Traced) -> None:
    traced.client.feed(NOT_SERVED)


def is_no_request(traced: Traced) -> None:
    traced.client.feed(b"GET / HTTP/1.1\r\n")


def fails_without_acks(traced: Traced) -> None:
    absent = produce_message("absent", batch(b"v"), acks=0)
    traced.client.send("Produce", 9, absent)


def stops(traced: Traced) -> None:
    traced.client.connection.close(why="stop")


@pytest.mark.parametrize(
    ("does", "end"),
    [
        (lambda traced: None, {"by": "client"}),
        (is_idle, {"by": "broker", "reason": "idle"}),
        *(
            (lambda traced, at=at: meets_a_fault(traced, at), {"by": "broker", "reason": "fault"})
            for at in ("request", "before-reply", "middle", "after-reply")
        ),
        (is_refused, {"by": "broker", "reason": "refused"}),
        (is_no_request, {"by": "broker", "reason": "refused"}),
        (fails_without_acks, {"by": "broker", "reason": "request"}),
        (stops, {"by": "broker", "reason": "stop"}),
    ],
)
def test_the_end_of_a_connection_says_who_closed_it(does: Any, end: dict[str, str]) -> None:
    traced = Traced()
    does(traced)
    assert traced.client.closed == (end["by"] == "broker")
    traced.client.lose()
    (closed,) = traced.of("closed")
    assert {name: closed[name] for name in closed if name in ("by", "reason")} == end


def test_what_the_client_does_after_the_broker_has_closed_does_not_count() -> None:
    traced = Traced()
    is_refused(traced)
    traced.client.connection.close(why="stop")
    traced.client.lose()
    assert traced.of("closed")[0]["reason"] == "refused"


def test_the_address_at_which_a_client_arrived_is_told() -> None:
    traced = Traced()
    assert traced.of("opened")[0]["to"] == "127.0.0.1:1"
