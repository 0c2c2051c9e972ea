"""Fixtures of tests whose broker has the lab's clock: a connection to it, and the clock, which stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.clock import Clock
from ottla.testing import Broker

from .wire import Wire


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers, timeout=20) as found:
        yield found


@pytest.fixture
def clock(broker: Broker) -> Clock:
    broker.clock.freeze()
    return broker.clock
