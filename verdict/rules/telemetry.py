"""Metrics that clients push (KIP-714)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Reply, Request
from ..rule import Needs, Recent, Rule, rule

APIS: Final = ("GetTelemetrySubscriptions", "PushTelemetry")
NO_ID: Final = bytes(16)
SHARE_OF_INTERVAL: Final = 0.5  # what chance may leave of it
TOLERANCE_MS: Final = 100
NOT_COMPRESSED: Final = 0


class Subscribed(Rule):
    """Knows the subscription of each client instance."""

    def __init__(self) -> None:
        super().__init__()
        self.given: Recent[bytes, tuple[m.GetTelemetrySubscriptionsResponse, Request, Reply]] = Recent()  # by instance

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.GetTelemetrySubscriptionsResponse)
        if found is not None and not found.error_code:
            self.given[bytes(found.client_instance_id)] = found, request, reply

    def of(self, pushed: m.PushTelemetryRequest) -> tuple[m.GetTelemetrySubscriptionsResponse, Request, Reply] | None:
        return self.given.get(bytes(pushed.client_instance_id))


@rule(
    "KIP-714.instance-id-kept",
    "basic",
    apis=APIS,
    source="KIP-714",
    why="By it the metrics of a client are told from those of others, for as long as the client lives.",
)
class InstanceIdKept(Subscribed):
    """A client uses the instance id that the broker gave it."""

    def asked(self, request: Request) -> None:
        found = request.message
        if not isinstance(found, m.GetTelemetrySubscriptionsRequest | m.PushTelemetryRequest):
            return
        is_push = isinstance(found, m.PushTelemetryRequest)
        instance = bytes(found.client_instance_id)
        if not self.given or self.given.has_forgotten or (instance == NO_ID and not is_push):
            return
        if not request.client_is_whole:  # another one of its name may have been there before
            return
        if instance in self.given:
            self.kept()
        else:
            last = next(reversed(self.given.values()))
            self.fail(f"{request.api} as {instance.hex()}, which no broker gave it", last[1], last[2], request)


@rule(
    "KIP-714.subscription-sent",
    "basic",
    apis=APIS,
    source="KIP-714",
    why="The broker refuses metrics of a subscription that has changed (UNKNOWN_SUBSCRIPTION_ID).",
)
class SubscriptionSent(Subscribed):
    """A push has the id of the subscription that the client was told last."""

    def asked(self, request: Request) -> None:
        pushed = request.of(m.PushTelemetryRequest)
        given = self.of(pushed) if pushed is not None else None
        if pushed is None or given is None:
            return
        if pushed.subscription_id == given[0].subscription_id:
            self.kept()
        else:
            words = f"subscription {pushed.subscription_id}, and {given[0].subscription_id} was told"
            self.fail(words, given[1], given[2], request)


@rule(
    "KIP-714.compression-accepted",
    "basic",
    apis=APIS,
    source="KIP-714",
    why="The broker cannot read the metrics otherwise (UNSUPPORTED_COMPRESSION_TYPE).",
)
class CompressionAccepted(Subscribed):
    """A push is compressed as the broker accepts it, or not at all."""

    def asked(self, request: Request) -> None:
        pushed = request.of(m.PushTelemetryRequest)
        given = self.of(pushed) if pushed is not None else None
        if pushed is None or given is None:
            return
        accepted = given[0].accepted_compression_types
        if pushed.compression_type in (NOT_COMPRESSED, *accepted):
            self.kept()
        else:
            words = f"compression type {pushed.compression_type}, and the broker accepts {accepted}"
            self.fail(words, given[1], given[2], request)


@rule(
    "KIP-714.interval-kept",
    "basic",
    apis=APIS,
    source="KIP-714",
    why="The broker refuses pushes that come more often (THROTTLING_QUOTA_EXCEEDED).",
)
class IntervalKept(Subscribed):
    """A client waits for at least half of the push interval before it pushes again, unless it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._pushed: Recent[bytes, Request] = Recent()

    def asked(self, request: Request) -> None:
        pushed = request.of(m.PushTelemetryRequest)
        given = self.of(pushed) if pushed is not None else None
        if pushed is None or given is None:
            return
        instance = bytes(pushed.client_instance_id)
        before = self._pushed.get(instance)
        self._pushed[instance] = request
        if before is None or pushed.terminating:
            return
        waited_ms = (request.mono_us - before.mono_us) // 1000
        if waited_ms + TOLERANCE_MS >= given[0].push_interval_ms * SHARE_OF_INTERVAL:
            self.kept()
        else:
            words = f"a push {waited_ms} ms after another, and the interval is {given[0].push_interval_ms} ms"
            self.fail(words, given[1], given[2], before, request)

    def answered(self, request: Request, reply: Reply) -> None:
        super().answered(request, reply)
        found = reply.of(m.PushTelemetryResponse)
        pushed = request.of(m.PushTelemetryRequest)
        if found is not None and found.error_code and pushed is not None:
            self._pushed.pop(bytes(pushed.client_instance_id), None)  # it may ask for its subscription, and push again


@rule(
    "KIP-714.subscribes-again",
    "basic",
    apis=APIS,
    needs=Needs(errors=True),
    source="KIP-714",
    why="Its subscription has changed, and the broker takes no metrics of the old one.",
)
class SubscribesAgain(Rule):
    """After UNKNOWN_SUBSCRIPTION_ID, a client asks for its subscription before it pushes again."""

    def __init__(self) -> None:
        super().__init__()
        self._refused: Recent[bytes, tuple[Request, Reply]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        pushed, found = request.of(m.PushTelemetryRequest), reply.of(m.PushTelemetryResponse)
        if pushed is not None and found is not None and found.error_code == Errors.UNKNOWN_SUBSCRIPTION_ID:
            self._refused[bytes(pushed.client_instance_id)] = request, reply

    def asked(self, request: Request) -> None:
        found = request.message
        if not isinstance(found, m.GetTelemetrySubscriptionsRequest | m.PushTelemetryRequest):
            return
        refused = self._refused.pop(bytes(found.client_instance_id), None)
        if refused is None:
            return
        if isinstance(found, m.GetTelemetrySubscriptionsRequest):
            self.kept()
        elif not found.terminating:
            self.fail("a push of a subscription that is not known", *refused, request)
