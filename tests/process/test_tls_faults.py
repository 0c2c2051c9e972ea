"""Faults and holds on a listener with TLS: clients see the same as without, because they act on frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.tls import Listeners, TlsWire, client_context, make_certificates
from ..support.wire import Closed, request_frame

pytestmark = pytest.mark.slow
FRAME = request_frame("ListGroups", 4, m.ListGroupsRequest())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def listeners(folder: Path) -> Listeners:
    return Listeners(folder)


@pytest.fixture(scope="module")
def broker(listeners: Listeners) -> Iterator[Broker]:
    with Broker(listeners.settings) as broker:
        yield broker


@pytest.fixture
def wire(listeners: Listeners, folder: Path, broker: Broker) -> Iterator[TlsWire]:
    with TlsWire(listeners.at("OPEN"), client_context(folder)) as wire:
        yield wire
    broker.lab.reset()


def answer(wire: TlsWire) -> bytes:
    wire.send(FRAME)
    return wire.read_frame()


def test_damaged_replies(broker: Broker, wire: TlsWire) -> None:
    whole = answer(wire)
    with broker.lab.fault("trickle", piece_bytes=1, interval_ms=0, listener="OPEN") as trickle:
        assert answer(wire) == whole
    with broker.lab.fault("truncate", keep_bytes=5, listener="OPEN"):
        assert answer(wire) == whole[:5]
    with broker.lab.fault("twice", times=1):
        assert answer(wire) == wire.read_frame() == whole
    with broker.lab.fault("correlation-id", by=1, times=1):
        assert answer(wire) == (8).to_bytes(4, "big") + whole[4:]
    with broker.lab.fault("flip", times=1) as flip:
        found = answer(wire)
    assert sum((one ^ other).bit_count() for one, other in zip(found, whole, strict=True)) == 1
    with broker.lab.fault("error", error="CORRUPT_MESSAGE", listener="PLAINTEXT") as other:
        assert answer(wire) == whole
    assert (trickle.applied, flip.applied, other.applied) == (1, 1, 0)


@pytest.mark.parametrize(("at", "read"), [("request", 0), ("before-reply", 0), ("middle", 6)])
def test_closed_connections(broker: Broker, wire: TlsWire, at: str, read: int) -> None:
    more = {"after_bytes": read} if read else {}
    with broker.lab.fault("close", at=at, **more):
        wire.send(FRAME)
        assert len(wire.read(read)) == read
        with pytest.raises(Closed):
            wire.read(1)


def test_a_held_request_goes_on(broker: Broker, wire: TlsWire) -> None:
    whole = answer(wire)
    with broker.lab.hold_requests(api="ListGroups", listener="OPEN") as hold:
        wire.send(FRAME)
        (held,) = hold.held(at_least=1)
        hold.release(held["number"])
        assert wire.read_frame() == whole
        wire.send(FRAME)
        hold.held(at_least=1)
        hold.close()
        with pytest.raises(Closed):
            wire.read(1)
