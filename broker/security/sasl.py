"""SASL mechanisms as the connections of a listener use them.

A mechanism is made once per listener, from the listener's configuration (`MechanismSetup`), and begins an exchange for
each authentication. Mechanisms are found by name (`broker.security.mechanisms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...coordinator.metadata.state import MetadataState
from ..config.jaas import JaasEntry
from ..config.jaas_file import Sections
from ..config.listener_values import ListenerValues
from ..config.users import User
from ..later import Later
from ..turn import Turn
from .tokens import DelegationTokens

if TYPE_CHECKING:
    from .token_issuer import TokenIssuer


class SaslServer(Protocol):
    """The server's end of one exchange (Java's SaslServer).

    `authorization_id`: the name of the principal once the exchange is complete, None before. `expires_at_ms`: until
    when the credentials are valid, as wall time; None for ever. `token_authenticated`: whether the client proved to
    have a delegation token, which may not be used to make others.
    """

    authorization_id: str | None
    expires_at_ms: int | None
    token_authenticated: bool

    def evaluate(self, token: bytes) -> bytes | Later[bytes | None] | None:
        """Returns the answer to a token of the client, now or later: None where Java's mechanism answers nothing, so
        that a client whose tokens have no headers gets no frame. It is called again only after the answer.

        Raises SaslFailed, or fails with it; raises MalformedMessage where Kafka closes the connection at once.
        """


class Mechanism(Protocol):
    """A mechanism of one listener."""

    def begin(self) -> SaslServer:
        """Begins an exchange with one client."""


@dataclass(frozen=True, slots=True)
class SaslServices:
    """What mechanisms may use of the broker. `new_id`: returns 16 random bytes; `users`: those that the configuration
    names; `sections`: returns those of the JAAS file, None if there is none; `tokens`: None where delegation tokens are
    disabled; `issuer`: grants tokens of OAUTHBEARER.
    """

    turn: Turn
    image: MetadataState
    new_id: Callable[[], bytes]
    users: Mapping[str, User]
    sections: Callable[[], Sections | None]
    tokens: DelegationTokens | None
    issuer: TokenIssuer


@dataclass(frozen=True, slots=True)
class MechanismSetup:
    """What a mechanism of one listener is made from. `jaas`: the entry of its login module, if one is configured."""

    name: str
    values: ListenerValues
    jaas: JaasEntry | None
    services: SaslServices


MakeMechanism = Callable[[MechanismSetup], Mechanism]
"""Makes a mechanism for a listener. Raises ValueError if its configuration is invalid."""
