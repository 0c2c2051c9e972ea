"""The delegation tokens of the committed metadata: which HMACs they have, and what a login with one needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...coordinator.security.tokens import TokenHmacs, TokenPolicy
from ..config.config import Config
from ..config.tokens import token_room
from ..later import Later
from ..peer import ANONYMOUS, Peer, SecurityProtocol
from ..turn import Turn

if TYPE_CHECKING:  # a start without SASL does not need it
    from ...coordinator.security.scram import ScramCredential, ScramIdentity, ScramMechanism


def may_ask_for_tokens(peer: Peer) -> bool:
    """Whether requests about tokens are served on a connection: the client has shown who it is, not by a token."""
    protocol = peer.security_protocol
    if peer.token_authenticated or protocol is SecurityProtocol.PLAINTEXT:
        return False
    return protocol is not SecurityProtocol.SSL or peer.principal != ANONYMOUS


def tokens_of(config: Config, turn: Turn, image: MetadataState, new_id: Callable[[], bytes]) -> DelegationTokens | None:
    """Returns what the broker keeps of tokens; None if the configuration has no secret key."""
    room = token_room(config)
    if room is None:
        return None
    key = config["delegation.token.secret.key"]
    lifetime_ms, expiry_ms = config["delegation.token.max.lifetime.ms"], config["delegation.token.expiry.time.ms"]
    return DelegationTokens(turn, image, TokenPolicy(TokenHmacs(key), lifetime_ms, expiry_ms, room), new_id)


class DelegationTokens:
    """The tokens, with the credentials of those that were used to log in: deriving one takes milliseconds, and is done
    in a thread when it is needed first.
    """

    def __init__(self, turn: Turn, image: MetadataState, policy: TokenPolicy, new_id: Callable[[], bytes]) -> None:
        self.policy = policy
        self._turn = turn
        self._image = image
        self._new_id = new_id
        self._credentials: dict[str, dict[str, ScramCredential]] = {}  # by id and mechanism

    # following the metadata

    def load(self) -> None:
        for token_id in self._image.tokens:
            self.policy.hmacs.put(token_id)

    def metadata_changed(self, delta: MetadataDelta) -> None:
        for token_id in delta.tokens:
            if token_id in self._image.tokens:
                self.policy.hmacs.put(token_id)
            else:
                self.policy.hmacs.drop(token_id)
                self._credentials.pop(token_id, None)

    # logging in

    def identity(self, token_id: str, mechanism: ScramMechanism) -> ScramIdentity | None:
        """Returns whom a token stands for; None if there is no such token, or its credential is not prepared."""
        from ...coordinator.security.scram import ScramIdentity

        token = self._image.tokens.get(token_id)
        credential = self._credentials.get(token_id, {}).get(mechanism.name)
        if token is None or credential is None:
            return None
        return ScramIdentity(credential, token.owner.partition(":")[2], token.expiration_timestamp)

    def prepare(self, token_id: str, mechanism: ScramMechanism) -> Later[None] | None:
        """Derives the credential of a token, which is complete later; None if there is nothing to derive."""
        if token_id not in self._image.tokens or mechanism.name in self._credentials.get(token_id, {}):
            return None
        from ...coordinator.security.scram import ITERATIONS_MIN, credential_of, salted_password

        later: Later[None] = Later()
        password, salt = self.policy.hmacs.password(token_id), self._new_id()

        def derive() -> ScramCredential:
            salted = salted_password(mechanism.digest, password, salt, ITERATIONS_MIN)
            return credential_of(mechanism.digest, salted, salt, ITERATIONS_MIN)

        def done(credential: ScramCredential | None, error: BaseException | None) -> None:
            if credential is not None and token_id in self._image.tokens:
                self._credentials.setdefault(token_id, {}).setdefault(mechanism.name, credential)
            later.settle(None, error)

        self._turn.in_thread(derive, done)
        return later
