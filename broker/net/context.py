"""The context of a request: the client, its connection, and the version."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from ...coordinator.metadata import topics
from ...coordinator.security.authorizer import Authorizer
from ..broker import Broker
from ..client_quotas import Usage
from ..peer import Peer
from ..replies import NO_REPLY
from ..security.authorization import Audit
from ..turn import Turn
from .api import Api

T = TypeVar("T")


class Context:
    """One request. `peer` is the handlers' view of the connection: an identity that ends with it."""

    __slots__ = ("api", "broker", "client_id", "correlation_id", "peer", "version")

    def __init__(
        self, broker: Broker, api: Api, version: int, correlation_id: int, client_id: str | None, peer: Peer
    ) -> None:
        self.broker = broker
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.peer = peer

    @property
    def principal(self) -> str:
        return self.peer.principal

    @property
    def client_host(self) -> str:
        return self.peer.host_address

    @property
    def client_address(self) -> str:
        return self.peer.address

    @property
    def listener(self) -> str:
        return self.peer.listener

    @property
    def node_id(self) -> int:
        return self.broker.config.node_id

    @property
    def usage(self) -> Usage | None:
        """What counts for the client's quotas; None if there are no quotas."""
        return self.peer.usage

    async def paused(self, waited: Awaitable[T]) -> T:
        """Waits; the time does not count for the client's quotas."""
        usage = self.usage
        if usage is None:
            return await waited
        usage.pause()
        result = await waited
        usage.resume()
        return result

    def throttle(self, usage: Usage, outcome: object) -> None:
        """Puts the throttle time into the reply. It is sent at once; then the connection is muted for that time
        (KIP-219).
        """
        self.peer.usage = None
        throttle_ms = self.peer.throttle_ms = usage.finish(self.api.key, outcome is not NO_REPLY)
        if throttle_ms and hasattr(outcome, "throttle_time_ms"):
            outcome.throttle_time_ms = throttle_ms

    @property
    def authorizer(self) -> Authorizer | None:
        return self.broker.authorizer

    @property
    def audit(self) -> Audit | None:
        return self.broker.audit

    @property
    def api_name(self) -> str:
        return self.api.name

    @property
    def turn(self) -> Turn:
        return self.broker.turn

    def mutations(self, strict_since: int) -> topics.Mutate:
        """Returns what counts partitions for the client's quota. From the version `strict_since` on it refuses what is
        beyond the quota; before that the client is only throttled (KIP-599).
        """
        if self.usage is None:
            return topics.unlimited
        return partial(self.usage.mutate, is_strict=self.version >= strict_since)
