"""OAUTHBEARER: the client sends a token of an authorization server (RFC 7628, KIP-255; Kafka's OAuthBearerSaslServer).

`sasl.server.callback.handler.class` says how tokens are validated: by default without signatures, for development;
with Kafka's OAuthBearerValidatorCallbackHandler, by the signatures of an authorization server (KIP-768).
"""

from __future__ import annotations

from collections.abc import Callable

from ...coordinator.security.oauth_message import parse_first_message
from ...coordinator.security.oauth_token import InvalidToken, Token
from ...coordinator.security.sasl import SaslFailed
from ...coordinator.security.unsecured_jwt import unsecured_validator
from .sasl import MechanismSetup

_KAFKA = "org.apache.kafka.common.security.oauthbearer"
LOGIN_MODULE = f"{_KAFKA}.OAuthBearerLoginModule"
UNSECURED_HANDLER = f"{_KAFKA}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SECURED_HANDLER = f"{_KAFKA}.OAuthBearerValidatorCallbackHandler"
HANDLERS = (UNSECURED_HANDLER, SECURED_HANDLER)
_ERROR_SEEN = b"\x01"

Validate = Callable[[str, int], Token]
"""Returns a token, of its text and the wall time. Raises InvalidToken, or MalformedMessage to close the connection."""


class OAuthBearer:
    """The mechanism of one listener. `now_ms`: returns the wall time."""

    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._now_ms = now_ms

    def begin(self) -> OAuthBearerServer:
        return OAuthBearerServer(self._validate, self._now_ms)


class OAuthBearerServer:
    """One exchange."""

    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        self.authorization_id: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False
        self._validate = validate
        self._now_ms = now_ms
        self._refused: InvalidToken | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Checks a message of the client. Returns nothing, or the error of the token as JSON, which the client answers;
        it may send another token instead. Raises SaslFailed or MalformedMessage.
        """
        if token == _ERROR_SEEN and self._refused is not None:
            raise SaslFailed(self._refused.json, str(self._refused))
        self._refused = None
        message = parse_first_message(token)
        try:
            found = self._validate(message.token, self._now_ms())
        except InvalidToken as error:
            self._refused = error
            return error.json.encode()
        if message.name and message.name != found.principal:
            raise SaslFailed(
                f"Authentication failed: Client requested an authorization id ({message.name}) that is different from "
                f"the token's principal name ({found.principal})"
            )
        self.authorization_id, self.expires_at_ms = found.principal, found.expires_at_ms
        return b""


def make(setup: MechanismSetup) -> OAuthBearer:
    """Makes the mechanism of a listener. Raises ValueError if its configuration is invalid."""
    now_ms = setup.services.turn.now_ms
    if setup.values.own("sasl.server.callback.handler.class", setup.name) == SECURED_HANDLER:
        from .secured_jwt import secured_validator

        return OAuthBearer(secured_validator(setup).validate, now_ms)
    options = setup.jaas.options if setup.jaas is not None else {}
    return OAuthBearer(unsecured_validator(options).validate, now_ms)
