"""Faults and held requests without measure: what waits is bounded, and nothing stalls others."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from ottla.protocol import messages as m

from ..support.ask import batch, create, produce_message
from ..support.wire import Closed, Wire, request_frame
from .harness import Site, attack
from .limits import reached

RULES_MAX = HOLDS_MAX = 1000
GROUPS = request_frame("ListGroups", 4, m.ListGroupsRequest())


def post(site: Site, path: str, body: Any) -> int:
    """Returns the status."""
    request = urllib.request.Request(
        f"{site.broker.lab_url}/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@attack(lab=True)
def a_thousand_rules_and_more(site: Site) -> None:
    """All of them look at each request."""
    rule = {"topic": "nowhere-*", "client_id": "no-client-*", "action": {"kind": "delay", "ms": 1}}
    codes = [post(site, "faults", rule) for _ in range(RULES_MAX + 10)]
    assert codes == [200] * RULES_MAX + [409] * 10
    hold = {"topic": "nowhere-*", "client_id": "no-client-*"}
    codes = [post(site, "requests/holds", hold) for _ in range(HOLDS_MAX + 10)]
    assert codes == [200] * HOLDS_MAX + [409] * 10
    with site.wire() as wire:
        for _ in range(200):
            wire.send(GROUPS)
            wire.read_frame()
    site.broker.lab.reset()


@attack(lab=True, settings={"ottla.connections.per.ip.max": 5000}, memory_mib_max=600)
def large_requests_that_are_held(site: Site) -> None:
    """They take 256 MiB at most; beyond that, connections are closed."""
    with site.wire() as wire:
        create(wire, "held")
    post(site, "requests/holds", {"api": "Produce"})
    frame = request_frame("Produce", 9, produce_message("held", batch(bytes(8 << 20))))
    wires = [site.wire() for _ in range(40)]
    for wire in wires:
        _send(wire, frame)
    held = site.broker.lab.get("requests/holds")["holds"][0]["waiting"]
    site.note(f"{held} of {len(wires)} requests of 8 MiB are held")
    assert 0 < held <= 32
    assert reached(site, "waiting-exchanges")
    for wire in wires:
        wire.socket.close()
    site.broker.lab.reset()


def _send(wire: Wire, frame: bytes) -> None:
    try:
        wire.send(frame)
    except (Closed, OSError):
        return


@attack(lab=True, quick=True)
def replies_that_come_byte_by_byte(site: Site) -> None:
    """Many at once, of connections that are lost in the middle."""
    post(site, "faults", {"api": "Metadata", "action": {"kind": "trickle", "interval_ms": 1}})
    everything = request_frame("Metadata", 12, m.MetadataRequest(topics=None))
    wires = [site.wire() for _ in range(50)]
    for wire in wires:
        wire.send(everything)
    for wire in wires[::2]:
        wire.read(10)
        wire.socket.close()
    for wire in wires[1::2]:
        assert wire.read_frame()
        wire.socket.close()
    site.broker.lab.reset()


@attack(lab=True, quick=True)
def connections_that_are_lost_while_they_are_held(site: Site) -> None:
    """Nothing is left of them."""
    post(site, "requests/holds", {"api": "ListGroups"})
    post(site, "faults", {"api": "Heartbeat", "action": {"kind": "no-reply"}})
    heartbeat = request_frame("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"))
    for _ in range(20):
        wires = [site.wire() for _ in range(20)]
        for number, wire in enumerate(wires):
            wire.send(GROUPS if number % 2 else heartbeat)
        site.broker.lab.get("requests", at_least=10, within="60s")
        for wire in wires:
            wire.socket.close()
        _until_nothing_waits(site)
    site.broker.lab.reset()


def _until_nothing_waits(site: Site) -> None:
    for _ in range(1000):
        if not site.broker.lab.get("requests")["requests"]:
            return
    raise AssertionError("requests of lost connections are held")
