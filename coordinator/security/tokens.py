"""Delegation tokens: a secret that stands for a principal until a moment (KIP-48).

A token has an id, which is public, and an HMAC of it by the cluster's secret key, which is the token's password. Only
the id is in the metadata: who has the key knows the HMACs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Set
from typing import NamedTuple

from ...protocol import messages

MECHANISM = "sha512"


class TokenHmacs:
    """The HMACs of the tokens that there are, and the way back from an HMAC to its token."""

    def __init__(self, secret_key: str) -> None:
        self._key = secret_key.encode("utf-8", "surrogatepass")
        self._of: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}

    def make(self, token_id: str) -> bytes:
        """Returns the HMAC of a token."""
        if token_id in self._of:
            return self._of[token_id]
        import hmac  # most brokers have no tokens

        return hmac.digest(self._key, token_id.encode("utf-8", "surrogatepass"), MECHANISM)

    def put(self, token_id: str) -> None:
        made = self._of[token_id] = self.make(token_id)
        self._ids[made] = token_id

    def drop(self, token_id: str) -> None:
        made = self._of.pop(token_id, None)
        if made is not None:
            del self._ids[made]

    def id_of(self, given: bytes) -> str | None:
        """Returns the id of the token with this HMAC."""
        return self._ids.get(given)

    def password(self, token_id: str) -> str:
        """Returns the password with which a client logs in as the token."""
        return b64encode(self.make(token_id)).decode()


class TokenRoom(NamedTuple):
    """How many tokens there may be, in all and of one owner, and how many renewers a token may have."""

    tokens_max: int
    per_owner_max: int
    renewers_max: int


class TokenPolicy(NamedTuple):
    """`lifetime_ms_max`: how long a token may live at most. `expiry_ms`: after how long it must be renewed, unless
    less is asked for.
    """

    hmacs: TokenHmacs
    lifetime_ms_max: int
    expiry_ms: int
    room: TokenRoom


def has_expired(token: messages.DelegationTokenRecord, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def may_renew(token: messages.DelegationTokenRecord, principal: str) -> bool:
    """Whether a principal may renew and expire a token; who only asked for it may not."""
    return principal == token.owner or principal in token.renewers


def concerns(token: messages.DelegationTokenRecord, principals: Set[str]) -> bool:
    """Whether one of the principals is the token's owner, has asked for it, or may renew it."""
    return not principals.isdisjoint((token.owner, token.requester, *token.renewers))
