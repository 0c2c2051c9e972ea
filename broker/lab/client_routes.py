"""Clients: who is connected, what each asked for, and the metrics that it pushed.

A client is known by its address, such as `127.0.0.1:50123`. One that has ended and whose metrics are still there is
known by its instance id.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

from ...storage.checkpoints import uuid_to_text
from ..client_activity import ClientActivity
from ..peer import Peer
from ..telemetry.pushed_metrics import PushingClient
from .lab import Lab
from .pages import Page
from .routes import route

UNKNOWN = ClientActivity(0)  # of a connection that was there before the lab


class TelemetryView(TypedDict):
    """What a client is asked for, and what it pushed (KIP-714). `known`: whether the broker awaits its requests.
    `requested_metrics`: prefixes of names, `*` for all. `throttled` and `failed`: requests that came too early, and
    pushes that could not be read. `has_ended`: whether its last push said that it was the last. `series`: the number of
    time series that are kept.
    """

    client_instance_id: str
    known: bool
    subscription_id: int | None
    push_interval_ms: int | None
    requested_metrics: list[str]
    throttled: int
    failed: int
    pushes: int
    pushed_bytes: int
    last_push_ms: int | None
    has_ended: bool
    series: int


class ClientView(TypedDict):
    """A client. `id`: its address, or its instance id if it has no connection. `open_ms` and `idle_ms`: for how long
    the connection has been open, and without a request; null without one. `requests`: their number by API and version.
    `groups`: the groups that it named, each with its member id. `telemetry`: null for a client that was not asked for
    metrics on this connection.
    """

    id: str
    client_id: str | None
    software_name: str
    software_version: str
    principal: str
    listener: str
    security_protocol: str
    address: str
    connected: bool
    open_ms: int | None
    idle_ms: int | None
    buffered_bytes: int
    requests: Mapping[str, int]
    last_request: str | None
    groups: Mapping[str, str]
    transactional_id: str | None
    telemetry: TelemetryView | None


class ClientsView(TypedDict):
    """Clients by id. `next`: what `after` must be for the next page; null for the last one."""

    clients: Iterable[ClientView]
    next: str | None


class SeriesView(TypedDict):
    """A time series, by the name that it has in /metrics. `value`: null if the client pushed no number, such as NaN."""

    name: str
    labels: Mapping[str, str]
    value: float | None
    is_counter: bool


class ClientDetailView(TypedDict):
    """A client with the metrics that it pushed."""

    client: ClientView
    metrics: Iterable[SeriesView]


@dataclass(frozen=True)
class ClientId:
    """A client by its address or its instance id."""

    id: Annotated[str, "The client's address, such as `127.0.0.1:50123`, or its client instance id."]


@route("GET /v1/clients", example=Page(limit=10))
def clients(lab: Lab, asked: Page) -> ClientsView:
    """Lists the clients that are connected, and those whose metrics are still there."""
    found = _Clients(lab)
    names, following = asked.of(found.names())
    return {"clients": (found.view(name) for name in names), "next": following}


@route("GET /v1/clients/{id}", example=ClientId("AAECAwQFBgcICQoLDA0ODw"), errors={404: "there is no such client"})
def client(lab: Lab, asked: ClientId) -> ClientDetailView:
    """Shows a client with the metrics that it pushed last."""
    found = _Clients(lab)
    name = found.named(asked.id)
    pushed = found.pushed.get(found.instances.get(name, b""))
    return {"client": found.view(name), "metrics": _series(pushed)}


def _series(pushed: PushingClient | None) -> Iterable[SeriesView]:
    for (name, labels), one in list(pushed.series.items()) if pushed is not None else ():
        value = one.value if math.isfinite(one.value) else None  # JSON has no others
        yield {"name": name, "labels": dict(labels), "value": value, "is_counter": one.is_counter}


class _Clients:
    """The clients of a server at one moment, by name. `instances`: their instance ids."""

    def __init__(self, lab: Lab) -> None:
        broker = lab.broker
        self.server = lab.server
        self.now_ms = broker.schedule.monotonic_ms()
        self.manager = broker.client_metrics
        self.pushed = broker.pushed_metrics.clients if broker.pushed_metrics is not None else {}
        self.connections = {one.peer.address: one for one in lab.server.connections}
        self.instances: dict[str, bytes] = {}
        for address, one in self.connections.items():
            instance_id = self.manager.introduced_by(one.peer)
            if instance_id is not None:
                self.instances[address] = instance_id
        connected = set(self.instances.values())
        self.instances |= {uuid_to_text(one): one for one in self.pushed if one not in connected}

    def names(self) -> Iterable[str]:
        yield from self.connections
        yield from (name for name in self.instances if name not in self.connections)

    def named(self, text: str) -> str:
        """Returns the name of a client that is given by name or by instance id. Raises LookupError."""
        if text in self.connections or text in self.instances:
            return text
        for name, instance_id in self.instances.items():
            if uuid_to_text(instance_id) == text:
                return name
        raise LookupError(f"there is no client {text}")

    def view(self, name: str) -> ClientView:
        """Returns a client; one whose connection has ended meanwhile, as it was."""
        connection = self.connections.get(name)
        instance_id = self.instances.get(name)
        pushed = None if instance_id is None else self.pushed.get(instance_id)
        peer = connection.peer if connection is not None else pushed.peer if pushed is not None else Peer("", "")
        activity = peer.activity or UNKNOWN
        last = activity.last
        return {
            "id": name,
            "client_id": activity.client_id if pushed is None else pushed.client_id,
            "software_name": peer.software.name,
            "software_version": peer.software.version,
            "principal": peer.principal,
            "listener": peer.listener,
            "security_protocol": peer.security_protocol.name,
            "address": peer.address,
            "connected": connection is not None,
            "open_ms": None if connection is None else self.now_ms - activity.opened_ms,
            "idle_ms": None if connection is None else self.now_ms - connection.last_active_ms,
            "buffered_bytes": 0 if connection is None else connection.buffered_bytes(),
            "requests": {self._api(at): number for at, number in sorted(activity.requests.items())},
            "last_request": None if last is None else self._api(last),
            "groups": dict(activity.groups),
            "transactional_id": activity.transactional_id,
            "telemetry": None if instance_id is None else self._telemetry(instance_id, pushed),
        }

    def _api(self, at: tuple[int, int]) -> str:
        return f"{self.server.api(at[0]).name} v{at[1]}"

    def _telemetry(self, instance_id: bytes, pushed: PushingClient | None) -> TelemetryView:
        client = self.manager.clients.get(instance_id)
        wanted = None if client is None else client.instance.wanted
        return {
            "client_instance_id": uuid_to_text(instance_id),
            "known": client is not None,
            "subscription_id": None if wanted is None else wanted.subscription_id,
            "push_interval_ms": None if wanted is None else wanted.interval_ms,
            "requested_metrics": [] if wanted is None else list(wanted.metrics),
            "throttled": 0 if client is None else client.throttled,
            "failed": 0 if client is None else client.failed,
            "pushes": 0 if pushed is None else pushed.pushes,
            "pushed_bytes": 0 if pushed is None else pushed.pushed_bytes,
            "last_push_ms": None if pushed is None else self.now_ms - pushed.last_push_ms,
            "has_ended": pushed is not None and pushed.has_ended,
            "series": 0 if pushed is None else len(pushed.series),
        }
