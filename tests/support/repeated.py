"""Two brokers to which the same happens: one decodes every request, the other serves those that are like an earlier one
of their connection without decoding them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from ottla.broker.lab.faults.matching import Matcher, topic_names
from ottla.broker.lab.seam import Asked, AskedApi, Exchange, Interceptor, Test
from ottla.broker.lab.traces.tracer import TraceAsked, Tracer
from ottla.broker.repeated import DECODE
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.structs import Struct

from .connected import Client, ConnectedWorld
from .machine import VirtualMachine


class _Noting:
    """Serves frames like `serve`, and notes which it has served."""

    def __init__(self, serve: Callable[..., Any], found: Counter[Any]) -> None:
        self._serve = serve
        self._found = found

    def serve(self, dispatcher: Any, *arguments: Any) -> Any:
        pending = self._serve(dispatcher, *arguments)
        self._found[dispatcher] += pending is not DECODE
        return pending


class _Noted(dict[int, Any]):
    """What a connection asks again and again (`Peer.repeated`). What is looked up notes what it serves."""

    def __init__(self, found: Counter[Any]) -> None:
        super().__init__()
        self._found = found

    def __getitem__(self, key: int) -> Any:
        return _Noting(super().__getitem__(key).serve, self._found)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """Returns how many requests are not decoded, by the dispatcher that takes them."""
    found, begin = Counter[Any](), Client.__init__

    def begun(self: Client, *arguments: Any) -> None:
        begin(self, *arguments)
        self.connection.peer.repeated = _Noted(found)

    monkeypatch.setattr(Client, "__init__", begun)
    return found


def traced(world: ConnectedWorld) -> Tracer:
    asked, machine = TraceAsked(raw="frames"), VirtualMachine(world.schedule)
    tracer = Tracer(asked, None, Matcher(asked, topic_names(world.broker)), world.broker, machine)
    world.seam.add(tracer)
    return tracer


def _partitions(request: Struct) -> Iterator[int]:
    """Yields the numbers of the partitions that a Produce, a Fetch or an OffsetCommit names."""
    for topic in getattr(request, "topic_data", None) or getattr(request, "topics", None) or ():
        for one in getattr(topic, "partition_data", None) or getattr(topic, "partitions", None) or ():
            for name in ("index", "partition", "partition_index"):
                if hasattr(one, name):
                    yield getattr(one, name)


class Refusing(Interceptor):
    """Refuses requests for one partition. `asked`: how many it was asked about; `struck`: how many it has refused."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self.asked = self.struck = 0

    def test_of(self, api: AskedApi) -> Test:
        return self._test

    def _test(self, context: Asked, request: Struct) -> bool:
        self.asked += 1
        return self._partition in _partitions(request)

    def arrived(self, exchange: Exchange) -> ApiError:
        self.struck += 1
        return ApiError(Errors.UNKNOWN_SERVER_ERROR)


class Side:
    """One of the two brokers. `decodes`: it decodes every request. `is_traced`: it has a trace, and refuses what is for
    the partition 2.
    """

    def __init__(self, world: ConnectedWorld, decodes: bool, is_traced: bool) -> None:
        self.world = world
        self.tracer = traced(world) if is_traced else None
        if is_traced:
            world.seam.add(Refusing(2))
        world.dispatcher.is_own = not decodes
        self.clients = [world.connect() for _ in range(3)]
        self.replies: list[bytes] = []
        self.noted = 0

    def settle(self, number: int) -> None:
        """Lets time pass, and connects again where the connection was closed, or waits for something."""
        self.world.pass_ms(20)
        client = self.clients[number]
        if client.closed or client.connection.is_waiting() or client.connection._private:
            self.replies.append(client.transport.written)
            client.lose()
            self.clients[number] = self.world.connect()

    def state(self) -> list[Any]:
        """What there is to see: the replies, and the events of the trace since the last time."""
        events: list[bytes] = []
        if self.tracer is not None:
            self.tracer.flush()
            events = list(self.tracer.ring.after(self.noted, 10_000, "frames")[2])
            self.noted += len(events)
        return [self.replies, [client.transport.written for client in self.clients], events]


def assert_same_counts(sides: Sequence[Side], served: Counter[Any], is_traced: bool) -> None:
    """The first side has served enough without decoding, and counted the same as the other one."""
    metrics = [side.world.broker.metrics for side in sides]
    assert metrics[0].errors == metrics[1].errors
    assert metrics[0].malformed == metrics[1].malformed
    for key in metrics[1].apis:
        times = [(one.apis[key].count, one.apis[key].parked) for one in metrics]
        assert times[0] == times[1]
    assert served[sides[0].world.dispatcher] > 15
    assert served[sides[1].world.dispatcher] == 0
    assert (sides[0].noted > 100) is is_traced
