"""Takes the metrics that clients push (Kafka's ClientMetricsManager): their subscriptions, and the clients themselves.

A client is known from its first request until its connection ends, it is silent for three intervals (a minute at
least), or there are too many. What it was asked for is computed again after the subscriptions have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...coordinator.metadata.client_metrics import STEPS
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import CLIENT_METRICS, MetadataState
from ...protocol import compression, messages
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...storage.checkpoints import uuid_to_text
from ..alarm import Alarm
from ..limits import CLIENT_INSTANCES, Limits
from ..metrics import Summary
from ..peer import Peer
from ..turn import Turn

if TYPE_CHECKING:
    from ...coordinator.telemetry.client_instance import ClientInstance
    from ...coordinator.telemetry.subscriptions import Attributes, Subscription

RESERVED = (bytes(16), bytes(15) + b"\x01")
INSTANCES_MAX = 16_384
EXPIRY_MS_MIN = 60_000
EXPIRY_INTERVALS = 3
SWEEP_MS_MIN = 1000
logger = logging.getLogger("ottla.org.apache.kafka.server.ClientMetricsManager")


class Pushed(NamedTuple):
    """Metrics of a client: OTLP's MetricsData. `kept_ms`: for how long the client's next push is awaited."""

    instance_id: bytes
    client_id: str | None
    peer: Peer
    data: bytes
    terminating: bool
    kept_ms: int


class Receiver(Protocol):
    """What takes the metrics of clients."""

    def prepare(self) -> None:
        """A client has been asked for metrics."""

    async def export(self, pushed: Pushed) -> None:
        """Takes metrics, some at a time. Raises MalformedMessage for data that is not OTLP."""


class Client:
    """A client, and how its requests went. `peer`: the connection of its last request, `expires_ms`: when it is
    forgotten without another one; monotonic time. `export_ms`: how long the receiver took.
    """

    __slots__ = ("attributes", "expires_ms", "export_ms", "failed", "instance", "peer", "throttled")

    def __init__(self, instance: ClientInstance, attributes: Attributes, peer: Peer) -> None:
        self.instance = instance
        self.attributes = attributes
        self.peer = peer
        self.expires_ms = 0
        self.throttled = self.failed = 0
        self.export_ms = Summary()


class ClientMetricsManager:
    """`bytes_max`: the largest push, compressed or not. `receiver`: where metrics go; None if nothing wants them."""

    def __init__(
        self, turn: Turn, image: MetadataState, limits: Limits, bytes_max: int, new_id: Callable[[], bytes]
    ) -> None:
        self.receiver: Receiver | None = None
        self.bytes_max = bytes_max
        self.subscriptions: dict[str, Subscription] = {}
        self.clients: dict[bytes, Client] = {}  # by instance id, the one that was silent for longest first
        self.unknown_subscriptions = 0
        self._version = 0  # of the subscriptions
        self._expiry = Alarm(turn.schedule, partial(turn.event, self._expire))
        self._made_by: dict[Peer, bytes | None] = {}  # the client that a connection has introduced last
        self._turn = turn
        self._image = image
        self._limits = limits
        self._new_id = new_id

    # subscriptions

    def load(self) -> None:
        """Takes over the subscriptions of the metadata at the start."""
        for kind, name in self._image.configs:
            if kind == CLIENT_METRICS:
                self._subscribe(name)

    def metadata_changed(self, delta: MetadataDelta) -> Iterator[None]:
        for kind, name in delta.configs:
            if kind == CLIENT_METRICS:
                self._subscribe(name)
                yield from repeat(None, STEPS)

    def _subscribe(self, name: str) -> None:
        self.subscribe(name, self._image.config_of(CLIENT_METRICS, name))

    def subscribe(self, name: str, values: Mapping[str, str]) -> None:
        """Sets a subscription of this node by its configuration; removes it without one. A change of the metadata under
        the same name replaces it.
        """
        self.subscriptions.pop(name, None)
        self._version += 1
        if not values:
            return
        try:
            from ...coordinator.telemetry.subscriptions import Subscription  # hardly any broker has some

            self.subscriptions[name] = Subscription.of(values)
        except ApiError as error:
            logger.warning("the client metrics subscription %s applies to no client: %s", name, error)

    # requests

    def get(self, peer: Peer, client_id: str | None, instance_id: bytes) -> tuple[bytes, ClientInstance]:
        """Returns the client that asks, which is a new one without an id, with what it shall push.
        Raises ApiError(THROTTLING_QUOTA_EXCEEDED).
        """
        if instance_id == RESERVED[0]:
            instance_id = self._free_id()
        client = self._client(instance_id, peer, client_id)
        try:
            client.instance.take_get(self._turn.schedule.monotonic_ms())
        except ApiError as error:
            self._count(client, error)
            raise
        if client.instance.wanted.metrics and self.receiver is not None:
            self.receiver.prepare()
        return instance_id, client.instance

    async def push(self, peer: Peer, client_id: str | None, request: messages.PushTelemetryRequest) -> None:
        """Gives a client's metrics to the receiver. Raises ApiError."""
        instance_id, data = request.client_instance_id, request.metrics
        if instance_id in RESERVED:
            words = f"Invalid request from the client [{uuid_to_text(instance_id)}], invalid client instance id"
            raise ApiError(Errors.INVALID_REQUEST, words)
        client = self._client(instance_id, peer, client_id)
        instance, now_ms = client.instance, self._turn.schedule.monotonic_ms()
        try:
            instance.take_push(
                now_ms,
                request.subscription_id,
                request.compression_type,
                len(data),
                self.bytes_max,
                request.terminating,
            )
        except ApiError as error:
            self._count(client, error)
            raise
        if data:
            began = self._turn.schedule.work_ns()
            try:
                await self._export(client_id, peer, request, instance)
            except MalformedMessage as error:
                client.failed += 1
                instance.last_error = Errors.INVALID_RECORD
                raise ApiError(Errors.INVALID_RECORD, f"{instance.name}: {error}") from None
            client.export_ms.add((self._turn.schedule.work_ns() - began) / 1e6)
        instance.last_error = 0

    async def _export(
        self, client_id: str | None, peer: Peer, request: messages.PushTelemetryRequest, instance: ClientInstance
    ) -> None:
        """Raises MalformedMessage for what does not decompress within the limit of pushes, or is not OTLP."""
        data = compression.decompress(request.compression_type, request.metrics, self.bytes_max)
        if self.receiver is not None:
            await self.receiver.export(
                Pushed(request.client_instance_id, client_id, peer, data, request.terminating, _expiry_ms(instance))
            )

    def _count(self, client: Client, error: ApiError) -> None:
        if error.code == Errors.THROTTLING_QUOTA_EXCEEDED:
            client.throttled += 1
        elif error.code == Errors.UNKNOWN_SUBSCRIPTION_ID:
            self.unknown_subscriptions += 1

    # clients

    def introduced_by(self, peer: Peer) -> bytes | None:
        """Returns the client that a connection has introduced last, while it is known."""
        return self._made_by.get(peer)

    def _free_id(self) -> bytes:
        """Returns an id that Kafka could give: its text has no hyphen, so that it can be an argument of commands."""
        while True:
            found = self._new_id()
            if found not in RESERVED and found not in self.clients and "-" not in uuid_to_text(found):
                return found

    def _client(self, instance_id: bytes, peer: Peer, client_id: str | None) -> Client:
        """Returns the client with this id; makes it if it is not known. What it is asked for is up to date."""
        client = self.clients.pop(instance_id, None)
        if client is None:
            attributes = _attributes(instance_id, peer, client_id)
            client = Client(self._instance(instance_id, attributes), attributes, peer)
            self._introduced(peer, instance_id)
        elif client.instance.version < self._version:
            client.instance = self._instance(instance_id, client.attributes)
            self._introduced(peer, instance_id)
        self.clients[instance_id] = client
        client.peer = peer
        client.expires_ms = self._turn.schedule.monotonic_ms() + _expiry_ms(client.instance)
        self._expiry.set(client.expires_ms)
        if len(self.clients) > INSTANCES_MAX:
            oldest = next(iter(self.clients))
            self._limits.reached(CLIENT_INSTANCES, uuid_to_text(oldest))
            del self.clients[oldest]
        return client

    def _instance(self, instance_id: bytes, attributes: Attributes) -> ClientInstance:
        from ...coordinator.telemetry.client_instance import ClientInstance
        from ...coordinator.telemetry.subscriptions import wanted_of

        wanted = wanted_of(self.subscriptions, attributes, instance_id)
        return ClientInstance(uuid_to_text(instance_id), wanted, self._version)

    def _introduced(self, peer: Peer, instance_id: bytes) -> None:
        """Notes that the client is forgotten when the connection ends."""
        if peer not in self._made_by:
            peer.on_lost.append(partial(self._lost, peer))
        self._made_by[peer] = instance_id

    def _lost(self, peer: Peer) -> None:
        instance_id = self._made_by.pop(peer)
        if instance_id is not None:
            self.clients.pop(instance_id, None)

    def _expire(self) -> None:
        """Forgets the clients that were silent for too long; looks again when the next one may be, in a second or
        later.
        """
        now_ms = self._turn.schedule.monotonic_ms()
        for instance_id in [one for one, client in self.clients.items() if client.expires_ms <= now_ms]:
            peer = self.clients.pop(instance_id).peer
            if peer in self._made_by:
                self._made_by[peer] = None
        if self.clients:
            self._expiry.set(max(now_ms + SWEEP_MS_MIN, min(one.expires_ms for one in self.clients.values())))


def _expiry_ms(instance: ClientInstance) -> int:
    return max(EXPIRY_MS_MIN, EXPIRY_INTERVALS * instance.wanted.interval_ms)


def _attributes(instance_id: bytes, peer: Peer, client_id: str | None) -> Attributes:
    return {
        "client_instance_id": uuid_to_text(instance_id),
        "client_id": client_id,
        "client_software_name": peer.software[0],
        "client_software_version": peer.software[1],
        "client_source_address": peer.host_address,
        "client_source_port": peer.address.rpartition(":")[2],
    }
