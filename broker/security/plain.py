"""PLAIN: the client sends its name and password (RFC 4616; Kafka's PlainSaslServer).

The users are those of the listener's JAAS line (`user_NAME="PASSWORD"`) and of `ottla.users`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ...coordinator.security.sasl import SaslFailed
from .sasl import MechanismSetup

LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER_PREFIX = "user_"
TOKENS_MAX = 4  # Kafka looks for no more


class Plain:
    """The mechanism of one listener. `passwords`: by user."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {user: password.encode("utf-8", "surrogatepass") for user, password in passwords.items()}

    def begin(self) -> PlainServer:
        return PlainServer(self._passwords)


class PlainServer:
    """One exchange."""

    def __init__(self, passwords: Mapping[str, bytes]) -> None:
        self.authorization_id: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False
        self._passwords = passwords

    def evaluate(self, token: bytes) -> bytes:
        """Checks the client's only token. Raises SaslFailed."""
        tokens = token.decode("utf-8", "replace").split("\0", TOKENS_MAX - 1)
        if len(tokens) != 3:
            raise SaslFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, name, password = tokens
        if not name:
            raise SaslFailed("Authentication failed: username not specified")
        if not password:
            raise SaslFailed("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        given = password.encode()
        # for an unknown user the password is compared too, so that it takes as long
        if not hmac.compare_digest(given, b"\0" if expected is None else expected):
            raise SaslFailed("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != name:
            raise SaslFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.authorization_id = name
        return b""


def make(setup: MechanismSetup) -> Plain:
    """Makes the mechanism of a listener. Raises ValueError if there are no users."""
    options = setup.jaas.options if setup.jaas is not None else {}
    passwords = {key.removeprefix(USER_PREFIX): value for key, value in options.items() if key.startswith(USER_PREFIX)}
    for user in setup.services.users.values():
        if setup.name in user.mechanisms:
            passwords[user.name] = user.password
    if setup.jaas is None and not passwords:
        raise ValueError(
            "PLAIN has no users: name them by ottla.users=NAME:PASSWORD, or by "
            f'{setup.values.prefix}plain.sasl.jaas.config={LOGIN_MODULE} required user_NAME="PASSWORD";'
        )
    return Plain(passwords)
