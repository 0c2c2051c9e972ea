"""SCRAM-SHA-256 and SCRAM-SHA-512 with the credentials of the metadata log (KIP-84, KIP-554), and with delegation
tokens (KIP-48).
"""

from __future__ import annotations

from ...coordinator.security.scram import (
    MECHANISMS,
    ScramCredential,
    ScramIdentity,
    ScramMechanism,
    ScramServer,
    nonce_of,
    token_named,
)
from ..later import Later, drive
from .sasl import MechanismSetup, SaslServer
from .tokens import DelegationTokens

LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Scram:
    """The mechanism of one listener."""

    def __init__(self, setup: MechanismSetup) -> None:
        self._mechanism = MECHANISMS[setup.name]
        self._new_id = setup.services.new_id
        self._image = setup.services.image
        self._tokens = setup.services.tokens

    def begin(self) -> SaslServer:
        server = ScramServer(self._mechanism, nonce_of(self._new_id() + self._new_id()), self._find)
        return server if self._tokens is None else ScramExchange(server, self._mechanism, self._tokens)

    def _find(self, name: str, is_token: bool) -> ScramIdentity | None:
        if is_token:
            return None if self._tokens is None else self._tokens.identity(name, self._mechanism)
        record = self._image.credentials.get((name, self._mechanism.number))
        if record is None:
            return None
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        return ScramIdentity(credential, name)


class ScramExchange:
    """One exchange where delegation tokens are enabled: the credential of a token is derived before it is needed."""

    def __init__(self, server: ScramServer, mechanism: ScramMechanism, tokens: DelegationTokens) -> None:
        self.authorization_id: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False
        self._server = server
        self._mechanism = mechanism
        self._tokens = tokens
        self._has_begun = False

    def evaluate(self, token: bytes) -> bytes | Later[bytes | None]:
        """Returns the answer to a message of the client, now or later. Raises what `ScramServer` raises."""
        name = None if self._has_begun else token_named(token)
        self._has_begun = True
        prepared = None if name is None else self._tokens.prepare(name, self._mechanism)
        return self._answer(token) if prepared is None else drive(self._answer_after(prepared, token))

    async def _answer_after(self, prepared: Later[None], token: bytes) -> bytes:
        await prepared
        return self._answer(token)

    def _answer(self, token: bytes) -> bytes:
        server = self._server
        answer = server.evaluate(token)
        self.authorization_id, self.expires_at_ms = server.authorization_id, server.expires_at_ms
        self.token_authenticated = server.token_authenticated
        return answer


def make(setup: MechanismSetup) -> Scram:
    """Makes the mechanism of a listener."""
    return Scram(setup)
