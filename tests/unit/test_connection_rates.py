"""Rates of new connections: who waits in line, who is closed, and what counts."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.addresses import address, addresses_of
from ottla.broker.clock import VirtualSchedule
from ottla.broker.connection_rates import RATE_MAX, ConnectionRates, Decided, Verdict
from ottla.broker.turn import Turn
from ottla.coordinator.metadata.delta import MetadataDelta
from ottla.coordinator.metadata.state import MetadataState
from ottla.coordinator.quota.rates import Windows
from ottla.protocol import messages as m

HERE, THERE = "127.0.0.1", "127.0.0.2"


class Door:
    """The rates of a broker with two listeners, and the time at which each connection was decided about."""

    def __init__(self, **rates: int) -> None:
        self.schedule = VirtualSchedule(0)
        self.image = MetadataState()
        self.rates = ConnectionRates(
            Turn(self.schedule),
            self.image,
            Windows(11, 1000),
            ["CLIENTS", "BROKERS"],
            lambda listener: rates.get(listener or "broker", RATE_MAX),
            "BROKERS",
        )
        self.decided: list[tuple[int, Verdict]] = []

    def limit(self, ip: str | None, rate: float | None) -> None:
        r = m.ClientQuotaRecord
        entity = [r.EntityData(entity_type="ip", entity_name=ip)]
        record = r(entity=entity, key="connection_creation_rate", value=rate or 0.0, remove=rate is None)
        delta = MetadataDelta(self.image)
        delta.replay(record)
        self.image.apply(record)
        self.rates.metadata_changed(delta)
        self.schedule.advance(1)

    def open(self, count: int, host: str = HERE, listener: str = "CLIENTS") -> list[Any]:
        """Opens connections; returns for each of them in order when it was served, or None if it is closed."""
        before = len(self.decided)
        for _ in range(count):
            self.rates.opened(listener, host, lambda v: self.decided.append((self.schedule.monotonic_ms(), v)))
        self.schedule.advance(60_000)
        return [at if verdict.is_served else None for at, verdict in self.decided[before:]]


def test_without_a_limit_all_are_served_at_once() -> None:
    assert Door().open(1000) == [0] * 1000


@pytest.mark.parametrize("rates", [{"CLIENTS": 2}, {"broker": 2}, {"CLIENTS": 2, "broker": 5}])
def test_connections_beyond_the_rate_wait_in_line(rates: dict[str, int]) -> None:
    served = Door(**rates).open(40)
    assert served[:20] == [0] * 20, "ten windows of a second"
    assert served == sorted(served)
    assert 5_000 < served[-1] <= 20_000
    assert all(later - earlier <= 1000 for earlier, later in zip(served, served[1:], strict=False)), (
        "one window at most"
    )


def test_connections_that_end_while_they_wait_leave_the_line() -> None:
    """A client that opens and closes them again and again would fill it."""
    door, served = Door(CLIENTS=1), list[int]()
    callers: list[Decided] = [lambda _, n=n: served.append(n) for n in range(1000)]  # type: ignore[misc]
    for decided in callers:
        door.rates.opened("CLIENTS", HERE, decided)
    for decided in callers[:-1]:
        door.rates.closed("CLIENTS", decided)
    assert list(door.rates.lines["CLIENTS"].waiting) == callers[-1:]
    door.schedule.advance(60_000)
    assert served == [*range(10), 999]


def test_the_listener_between_brokers_does_not_wait_for_the_broker_and_does_not_count_for_it() -> None:
    door = Door(broker=1)
    assert door.open(100, listener="BROKERS") == [0] * 100
    assert door.rates.broker.measure(60_000) == 0
    assert Door(BROKERS=1).open(30, listener="BROKERS")[-1] > 0


def test_connections_beyond_the_rate_of_their_address_are_closed() -> None:
    door = Door()
    door.limit(HERE, 1.0)
    found = door.open(15)
    assert found == [1] * 10 + [None] * 5
    assert [verdict.after_ms for _, verdict in door.decided if not verdict.is_served] == [1000] * 5
    assert door.open(5, THERE) == [60_001] * 5
    assert door.rates.lines["CLIENTS"].rate.measure(60_001) == pytest.approx(5 / 10, rel=0.2), (
        "refused ones do not count"
    )


def test_the_default_is_for_addresses_without_a_limit_of_their_own() -> None:
    door = Door()
    door.limit(None, 1.0)
    door.limit(HERE, 3.0)
    assert door.open(20).count(None) == 0
    assert door.open(20, THERE).count(None) == 10
    door.limit(None, None)
    assert door.open(20, THERE).count(None) == 0
    door.limit(HERE, None)
    assert door.open(100).count(None) == 0


def test_the_limit_of_a_host_is_that_of_its_addresses() -> None:
    door = Door()
    door.limit("localhost", 1.0)
    assert door.open(20).count(None) == 10
    assert door.open(20, THERE).count(None) == 0
    door.limit("no such host.invalid", 1.0)


def test_addresses() -> None:
    assert address("::ffff:10.0.0.1") == address("10.0.0.1")
    assert address("fe80::1%eth0") == address("fe80::1")
    assert address("localhost") is None
    assert addresses_of("10.0.0.1") == [address("10.0.0.1")]
    assert address(HERE) in addresses_of("localhost")
    assert addresses_of("a" * 300) == []
