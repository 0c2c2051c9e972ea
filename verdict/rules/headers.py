"""The headers of requests."""

from __future__ import annotations

from ..events import Closed, Request
from ..rule import Rule, rule


@rule(
    "protocol.correlation-ids",
    "network",
    messages=False,
    source="Kafka protocol",
    why="A client that takes a reply for that of another request reads garbage.",
    severity="warning",
)
class CorrelationIds(Rule):
    """Consecutive requests of a connection have different correlation ids."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[int, Request] = {}

    def asked(self, request: Request) -> None:
        before = self._last.get(request.connection)
        self._last[request.connection] = request
        if before is None:
            return
        if before.correlation_id == request.correlation_id:
            self.fail(f"two requests with the correlation id {request.correlation_id}", before, request)
        else:
            self.kept()

    def closed(self, closed: Closed) -> None:
        self._last.pop(closed.connection, None)


@rule(
    "protocol.client-id",
    "basic",
    messages=False,
    source="Kafka protocol",
    why="Quotas, logs and metrics know clients by it.",
    severity="warning",
)
class ClientId(Rule):
    """A client has a client id."""

    def asked(self, request: Request) -> None:
        if request.client_id:
            self.kept()
        else:
            self.fail(f"{request.api} without a client id", request)
