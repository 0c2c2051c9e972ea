"""Faults and holds of requests on a real broker: over HTTP, by commands and as objects in Python."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.cli import main
from ottla.lab_client import LabRefused
from ottla.testing import Broker

from ..support.ask import batch, create, produce, produce_message
from ..support.wire import Closed, Wire, request_frame

HEARTBEAT = "Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m")
GROUPS = "ListGroups", 4, m.ListGroupsRequest()
FRAME = request_frame(*GROUPS)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", 2)
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.lab.reset()


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def run(broker: Broker, *arguments: str, code: int = 0) -> Result:
    found = CliRunner().invoke(main, ["lab", *arguments], env={"OTTLA_LAB": broker.lab_url})
    assert found.exit_code == code, found.output
    return found


def test_a_rule_as_an_object(broker: Broker, wire: Wire) -> None:
    with broker.lab.fault("error", error="NOT_LEADER_OR_FOLLOWER", api="Produce", topic="orders", times=1) as fault:
        assert produce(wire, "orders", b"1").error_code == Errors.NOT_LEADER_OR_FOLLOWER
        assert produce(wire, "orders", b"1").error_code == 0
        assert (fault.matched, fault.applied) == (1, 1)
    assert broker.lab.get("faults") == {"faults": []}
    assert fault.applied == 1
    with pytest.raises(LabRefused, match=r"action\.error: unknown error OOPS"):
        broker.lab.fault("error", error="OOPS")


def test_connections_of_a_real_broker_end_and_replies_are_damaged(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire, broker.lab.fault("close", at="middle", after_bytes=6):
        wire.send(FRAME)
        assert len(wire.read(6)) == 6
        with pytest.raises(Closed):
            wire.read(1)
    with Wire(broker.bootstrap_servers) as wire:
        whole = _answer(wire)
        with broker.lab.fault("trickle", interval_ms=1):
            assert _answer(wire) == whole
        with broker.lab.fault("truncate", keep_bytes=5):
            wire.send(FRAME)
            assert wire.read_frame() == whole[:5]
        with broker.lab.fault("twice", times=1):
            wire.send(FRAME)
            assert wire.read_frame() == wire.read_frame() == whole


def _answer(wire: Wire) -> bytes:
    wire.send(FRAME)
    return wire.read_frame()


def test_rules_by_commands(broker: Broker, wire: Wire) -> None:
    added = run(broker, "fault", "add", "delay", "ms=1ms", "at=reply", "--api", "Heartbeat", "--group", "g*")
    assert " ".join(added.stdout.splitlines()[1].split()[1:]) == "delay the reply api=Heartbeat group=g* 0 0 - -"
    wire.ask(*HEARTBEAT)
    (found,) = json.loads(run(broker, "fault", "list", "--json").stdout)
    assert (found["matched"], found["applied"]) == (1, 1)
    number = str(found["number"])
    assert "Heartbeat" in run(broker, "fault", "show", number).stdout.splitlines()[-1]
    refused = run(broker, "fault", "remove", number, "999", code=1)
    assert "there is no fault 999" in refused.stderr
    run(broker, "fault", "remove", number, number)  # it is still there
    assert "there is no fault" in run(broker, "fault", "remove", number, code=1).stderr
    run(broker, "fault", "add", "error", "error=6", "--api", "Produce", "--times", "2", "--duration", "1h")
    assert len(json.loads(run(broker, "fault", "remove", "--all", "--json").stdout)) == 1
    run(broker, "fault", "remove", code=2)
    run(broker, "fault", "add", "error", "nothing", code=2)


class Asking:
    """A request on a connection of its own, in a thread."""

    def __init__(self, broker: Broker, *request: Any) -> None:
        self.reply: Any = None
        self._broker = broker
        self._request = request
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        with Wire(self._broker.bootstrap_servers) as wire:
            try:
                self.reply = wire.ask(*self._request)
            except Closed:
                self.reply = Closed

    def wait(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.reply


def test_requests_are_held_and_go_on_in_another_order(broker: Broker, wire: Wire) -> None:
    before = produce(wire, "orders", b"0").base_offset
    with broker.lab.hold_requests(api="Produce", topic="orders") as hold:
        first = Asking(broker, "Produce", 9, produce_message("orders", batch(b"first")))
        hold.held(at_least=1, within="60s")
        second = Asking(broker, "Produce", 9, produce_message("orders", batch(b"second")))
        one, other = (view["number"] for view in hold.held(at_least=2, within="60s"))
        assert hold.release(other) == [other]
        second.wait()
        assert hold.release() == [one]
    offsets = [asking.wait().responses[0].partition_responses[0].base_offset for asking in (first, second)]
    assert offsets == [before + 2, before + 1]


def test_requests_are_held_by_commands(broker: Broker) -> None:
    held = run(broker, "requests", "hold", "--api", "ListGroups", "--at", "reply").stdout.splitlines()[1].split()
    assert held[1:] == ["reply", "api=ListGroups", "0", "0"]
    asking, other = Asking(broker, *GROUPS), Asking(broker, *GROUPS)
    listed = run(broker, "requests", "list", "--at-least", "2", "--within", "60s", "--json").stdout
    one, two = json.loads(listed)
    assert one["reply"]["error_code"] == 0
    assert run(broker, "requests", "release", str(one["number"])).stdout == f"{one['number']}\n"
    run(broker, "requests", "release", "--close", str(two["number"]))
    assert {str(asking.wait()), str(other.wait())} >= {str(Closed)}
    run(broker, "requests", "end", held[0])
    assert run(broker, "requests", "holds").stdout.splitlines()[1:] == []
    refused = run(broker, "requests", "list", "--at-least", "1", "--within", "1ms", code=1)
    assert "0 of 1 requests are held after 1 ms" in refused.stderr


@pytest.mark.long
def test_a_broker_stops_while_requests_are_held() -> None:
    with Broker() as broker:
        broker.lab.hold_requests(api="ListGroups")
        broker.lab.fault("no-reply", api="Heartbeat")
        askings = [Asking(broker, *GROUPS), Asking(broker, *HEARTBEAT)]
        broker.lab.get("requests", at_least=1, within="60s")
        assert broker.stop() == 0
        assert [asking.wait() for asking in askings] == [Closed, Closed]
