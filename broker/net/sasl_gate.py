"""Serves a connection of a SASL listener: only the exchange, until the client has authenticated
(Kafka's SaslServerAuthenticator, KIP-43, KIP-152, KIP-368).

Requests may come in this order: ApiVersions (or not), SaslHandshake, and SaslAuthenticate as often as the mechanism
needs. After a SaslHandshake of version 0 the tokens are frames without headers. A failure is answered after a delay,
and then the connection ends; a request that has no place in the order ends it at once.

A client that has authenticated is served by the dispatcher itself, unless its session ends at some time. Then the gate
stays: a SaslHandshake begins another exchange, and other requests after the end of the session close the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final, TypeVar

from ...coordinator.security.sasl import SaslFailed
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...protocol.frames import framed
from ...protocol.headers import API_VERSIONS
from ...protocol.structs import Struct
from .. import bugs
from ..clock import Cancellable
from ..later import Later, drive
from ..peer import Peer
from ..replies import Reply, Send
from ..security.sasl import SaslServer
from ..security.sasl_listener import SaslListener
from .api import Api
from .context import Context
from .dispatch import Dispatcher, Refused

T = TypeVar("T")
SASL_HANDSHAKE: Final = 17
HANDSHAKES_INTERVAL_MS: Final = 1000  # between the beginnings of two exchanges in a session, after the first
LOGGED_CHARACTERS_MAX: Final = 200
SESSIONS_SINCE: Final = 1  # the version of SaslAuthenticate whose replies say how long the session lasts
_KEY_AND_VERSION = struct.Struct(">hh")
_INVALID = (
    "Invalid request, potential reasons: kafka client configured with the wrong security protocol, it does not support "
    "KIP-43 or it is not a kafka client."
)


class State(Enum):
    """What may come next."""

    BEGINNING = auto()  # ApiVersions or SaslHandshake
    HANDSHAKE = auto()  # SaslHandshake
    AGAIN = auto()  # the SaslHandshake that begins another exchange
    AUTHENTICATE = auto()  # SaslAuthenticate
    RAW = auto()  # a token without headers
    OTHER_MECHANISM = auto()  # anything, to which the other exchange fails
    COMPLETE = auto()  # requests
    FAILED = auto()


_ALLOWED = {
    State.BEGINNING: (API_VERSIONS, SASL_HANDSHAKE),
    State.HANDSHAKE: (SASL_HANDSHAKE,),
    State.AGAIN: (SASL_HANDSHAKE,),
}


class SaslGate(Dispatcher):
    """Serves one connection. `opened`: called when the client has authenticated, with what serves it from now on."""

    has_quotas = False  # who the client is, is not known

    def __init__(
        self, dispatcher: Dispatcher, listener: SaslListener, peer: Peer, opened: Callable[[Dispatcher], None]
    ) -> None:
        super().__init__(dispatcher.broker, dispatcher.apis, dispatcher.log)
        self.seam = dispatcher.seam
        self.request_bytes_max = listener.receive_bytes_max
        self._dispatcher = dispatcher
        self._listener = listener
        self._peer = peer
        self._opened = opened
        self._state = State.BEGINNING
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._expires_at_ms: int | None = None  # monotonic time
        self._begun_again_at_ms: int | None = None
        self._has_authenticated = False
        self._can_again = False  # whether the client knows re-authentication, by the version of its tokens' requests

    def handle(self, peer: Peer, frame: memoryview, send: Send) -> Cancellable | None:
        """Serves one frame, as a `Dispatcher` does. Raises Refused."""
        key, version = _KEY_AND_VERSION.unpack_from(frame) if len(frame) >= _KEY_AND_VERSION.size else (-1, -1)
        if self._state is State.COMPLETE:
            if not self._begins_again(key):
                return self._dispatcher.handle(peer, frame, send)
            self._state = State.AGAIN
            self.request_bytes_max = self._listener.receive_bytes_max
        send = partial(self._sent, send)
        self.log = self._dispatcher.log
        if self._state in (State.RAW, State.OTHER_MECHANISM):
            later = drive(self._take_token(bytes(frame)))
            later.when_done(partial(self._answered, send))
            return None if later.done else later
        if key not in _ALLOWED.get(self._state, (key,)):
            raise Refused(_INVALID)
        if self._state is State.AUTHENTICATE and key == API_VERSIONS and version > self.apis[key].high:
            raise Refused(_INVALID)  # the dispatcher would answer, and let the client go on
        return super().handle(peer, frame, send)

    def _begins_again(self, key: int) -> bool:
        """Whether a request begins another exchange in the session. Raises Refused if the session is over."""
        now = self.broker.schedule.monotonic_ms()
        if key == SASL_HANDSHAKE and (
            self._begun_again_at_ms is None or now - self._begun_again_at_ms >= HANDSHAKES_INTERVAL_MS
        ):
            self._begun_again_at_ms = now
            return True
        if self._expires_at_ms is not None and now > self._expires_at_ms:
            self.broker.metrics.authentications[self._peer.listener, "expired_connections_killed_count"] += 1
            raise Refused("the session has expired, and the client has not authenticated again")
        return False

    def _sent(self, send: Send, reply: Reply | None, end: bool) -> None:
        send(reply, end or self._state is State.FAILED)

    # the APIs of the exchange

    def call(self, api: Api, context: Context, request: Struct) -> object:
        if isinstance(request, messages.SaslHandshakeRequest) and self._state in _ALLOWED:
            return drive(self._handshake(request, context.version))
        if isinstance(request, messages.SaslAuthenticateRequest) and self._state is State.AUTHENTICATE:
            self._can_again = context.version >= SESSIONS_SINCE
            return drive(self._authenticate(request))
        if isinstance(request, messages.ApiVersionsRequest) and self._state is State.BEGINNING:
            return self._api_versions(api, context, request)
        error = ApiError(
            Errors.ILLEGAL_SASL_STATE,
            f"Unexpected Kafka request of type {_in_capitals(api.name)} during SASL authentication.",
        )
        return drive(self._fail(self.error_reply(api, context, request, error), str(error)))

    def _api_versions(self, api: Api, context: Context, request: messages.ApiVersionsRequest) -> object:
        if request.cluster_id is not None and request.node_id >= 0:  # both are only compared after the exchange
            request.cluster_id, request.node_id = None, -1
        outcome = super().call(api, context, request)
        if isinstance(outcome, messages.ApiVersionsResponse) and not outcome.error_code:
            self._state = State.HANDSHAKE
        return outcome

    async def _handshake(self, request: messages.SaslHandshakeRequest, version: int) -> object:
        mechanism = self._listener.mechanisms.get(request.mechanism)
        reply = messages.SaslHandshakeResponse(mechanisms=list(self._listener.mechanisms))
        is_again = self._state is State.AGAIN
        if mechanism is None:
            if is_again:
                raise Refused(f"Unsupported SASL mechanism {request.mechanism[:LOGGED_CHARACTERS_MAX]}")
            reply.error_code = Errors.UNSUPPORTED_SASL_MECHANISM
            return await self._fail(reply, f"Unsupported SASL mechanism {request.mechanism!r}")
        if is_again and request.mechanism != self._mechanism:
            self._state = State.OTHER_MECHANISM
            return reply
        self._mechanism, self._server = request.mechanism, mechanism.begin()
        self._state = State.AUTHENTICATE if version >= 1 else State.RAW
        return reply

    async def _authenticate(self, request: messages.SaslAuthenticateRequest) -> object:
        try:
            token, lifetime_ms = await self._evaluate(request.auth_bytes)
        except SaslFailed as error:
            failed = error
        else:
            return messages.SaslAuthenticateResponse(auth_bytes=token or b"", session_lifetime_ms=lifetime_ms)
        what = "re-authentication" if self._has_authenticated else "authentication"
        words = failed.words or (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"
        )
        reply = messages.SaslAuthenticateResponse(error_code=Errors.SASL_AUTHENTICATION_FAILED, error_message=words)
        return await self._fail(reply, failed.reason)

    async def _take_token(self, token: bytes) -> Reply | None:
        """Returns the answer to a frame that is a token without headers; None if there is none."""
        try:
            if self._state is State.OTHER_MECHANISM:
                raise SaslFailed("another SASL mechanism than before is not supported for re-authentication")
            answer, _ = await self._evaluate(token)
        except SaslFailed as error:
            failed = error
        else:
            return None if answer is None else Reply(bytearray(framed(answer)), [])
        return await self._fail(None, failed.reason, at_once=failed.words is None)

    def _answered(self, send: Send, later: Later[Reply | None]) -> None:
        if later.error is not None and not isinstance(later.error, Refused):
            bugs.report("an exchange of SASL tokens", later.error)
        send(later.result, later.error is not None)

    # the exchange

    async def _evaluate(self, token: bytes) -> tuple[bytes | None, int]:
        """Returns the answer to a token, if there is one, and the session's lifetime in milliseconds once the exchange
        is complete.

        Raises SaslFailed or Refused.
        """
        server = self._server
        assert server is not None
        try:
            answer = server.evaluate(token)
            if isinstance(answer, Later):
                answer = await answer
        except MalformedMessage as error:
            raise Refused(str(error)) from None
        return answer, 0 if server.authorization_id is None else self._complete(server, server.authorization_id)

    def _complete(self, server: SaslServer, authorization_id: str) -> int:
        """Lets the client in; returns the session's lifetime in milliseconds, 0 for a session without end."""
        principal = f"User:{authorization_id}"
        if self._has_authenticated and principal != self._peer.principal:
            raise SaslFailed(
                f"Cannot change principals during re-authentication from {self._peer.principal.replace(':', '.', 1)}: "
                f"User.{authorization_id}"
            )
        lifetime_ms = self._lifetime_ms(server)
        schedule = self.broker.schedule
        self._peer.principal = principal
        self._peer.token_authenticated = server.token_authenticated
        if self._has_authenticated and self._begun_again_at_ms is not None:
            took_ms = schedule.monotonic_ms() - self._begun_again_at_ms
            self.broker.metrics.authenticated_again(self._peer.listener, took_ms)
        else:
            self.broker.metrics.authenticated(self._peer.listener, self._can_again)
        if self.broker.audit is not None:
            self.broker.audit.login(self._peer, self._mechanism, None)
        self._has_authenticated, self._state, self._server = True, State.COMPLETE, None
        self.request_bytes_max = self._dispatcher.request_bytes_max
        self._expires_at_ms = None if lifetime_ms is None else schedule.monotonic_ms() + lifetime_ms
        if lifetime_ms is None:
            self._opened(self._dispatcher)
        return lifetime_ms or 0

    def _lifetime_ms(self, server: SaslServer) -> int | None:
        """Until when the client must authenticate again: the configuration's time, at most that of the credentials."""
        configured = self._listener.session_ms_max[self._mechanism] or None
        if server.expires_at_ms is None:
            return configured
        left = max(0, server.expires_at_ms - self.broker.schedule.now_ms())
        return left if configured is None else min(left, configured)

    async def _fail(self, outcome: T, reason: str, at_once: bool = False) -> T:
        """Returns `outcome` after the delay; then the connection ends."""
        self._state, self._server = State.FAILED, None
        attempt = "failed_reauthentication" if self._has_authenticated else "failed_authentication"
        self.broker.metrics.authentications[self._peer.listener, attempt] += 1
        self.broker.sparsely.warning(
            "authentication",
            "%s of %s failed with %s on listener %s: %s",
            "re-authentication" if self._has_authenticated else "authentication",
            self._peer.address,
            self._mechanism or "no mechanism",
            self._peer.listener,
            reason[:LOGGED_CHARACTERS_MAX],
        )
        if self.broker.audit is not None:
            self.broker.audit.login(self._peer, self._mechanism, reason[:LOGGED_CHARACTERS_MAX])
        if not at_once:
            await self.broker.turn.pause(self._listener.failure_delay_ms)
            await self.broker.turn.next()  # of many failures that are due at once, one is answered in each turn
        return outcome


def _in_capitals(name: str) -> str:
    """The name of an API as Kafka's enumeration has it: `SASL_HANDSHAKE`."""
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in name).removeprefix("_")
