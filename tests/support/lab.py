"""The lab of a broker in memory: its routes without HTTP, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ottla.broker.broker_schedule import BrokerSchedule
from ottla.broker.config.config import Config
from ottla.broker.lab.clock.clock import LabClock
from ottla.broker.lab.http import Request, Response
from ottla.broker.lab.served import Connected
from ottla.broker.lab.server import LabServer
from ottla.broker.later import Later
from ottla.broker.net.api import Api

from .machine import VirtualMachine
from .world import World


class Counts:
    """The connections of a server without any."""

    open = 0
    connections_max = 1000
    per_address_max = 100

    def __init__(self) -> None:
        self.per_address: Mapping[str, int] = {}

    def all(self) -> list[Counts]:
        return [self]


class Site:
    """The server of a world, as far as the lab uses one."""

    buffered_bytes = 0
    buffered_bytes_max = 1 << 30

    def __init__(self, world: World) -> None:
        self.broker = world.broker
        self.config: Config = world.broker.config
        self.machine = VirtualMachine(world.schedule)
        self.connections: Collection[Connected] = ()
        self.counts = Counts()
        self._apis = world.dispatcher.apis
        self.intercept, self.release = world.seam.add, world.seam.remove
        self.ends: list[Callable[[], None]] = []
        self.at_end = self.ends.append
        self._clock = LabClock(BrokerSchedule(self.machine))

    def clock(self) -> LabClock:
        """A clock that is not the world's: that has none to change."""
        return self._clock

    def api_keys(self) -> Collection[int]:
        return self._apis

    def api(self, key: int) -> Api:
        return self._apis[key]

    def dropped_lines(self) -> int:
        return 0


class LabWorld:
    """The lab of a world: `ask("POST /v1/hold", topic="orders")` returns the reply."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = LabServer(Site(world))
        self.lab = self.server.lab

    def send(self, at: str, body: object = None, query: str = "") -> Response | Later[Response]:
        method, path = at.split(" ")
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {"host": "localhost", "content-type": "application/json"}
        return self.server.answer(Request(method, path, data, "127.0.0.1", headers, query))

    def reply(self, at: str, body: object = None, query: str = "", within_ms: int = 60_000) -> tuple[int, Any]:
        """Returns the status and the JSON, after at most so long in virtual time."""
        found = self.send(at, body, query)
        if isinstance(found, Later):
            for _ in range(within_ms):
                if found.done:
                    break
                self.world.pass_ms(1)
            assert found.done, f"{at} was not answered within {within_ms} ms"
            found = found.get()
        data = found.body if isinstance(found.body, bytes) else b"".join(found.body)
        return found.status, json.loads(data)

    def ask(self, at: str, /, **body: object) -> Any:
        """The reply to a request that must succeed."""
        status, found = self.reply(at, body or None)
        assert status == 200, found
        return found

    def refused(self, at: str, body: object = None, query: str = "") -> tuple[int, str]:
        """The status and the words of a refusal."""
        status, found = self.reply(at, body, query)
        assert status >= 400, found
        return status, found["error"]
