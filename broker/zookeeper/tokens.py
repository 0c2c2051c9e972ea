"""Delegation tokens as ZooKeeper has them: one in a node each. Who has the cluster's secret key knows their passwords.

Such a node is merged as a configuration is, with one key, whose value is the token as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial

from ...coordinator.metadata import tokens
from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import MetadataState
from ...coordinator.security.tokens import TokenRoom
from ...protocol import messages
from ...protocol import zookeeper_paths as paths
from ...protocol.errors import ApiError
from ...protocol.zookeeper_json import Malformed
from ...protocol.zookeeper_values import Token
from ..controller.controller import MetadataController
from .found import Entity, Values

KEY = "token"
REQUESTERS_SINCE = (3, 3)  # KIP-373


class Tokens:
    """The tokens of the metadata."""

    def __init__(
        self, metadata: MetadataController, image: MetadataState, room: TokenRoom, release: paths.Number
    ) -> None:
        self._metadata = metadata
        self._image = image
        self._room = room
        self._release = release

    def all(self) -> list[Entity]:
        return [(paths.TOKENS, token_id) for token_id in self._image.tokens]

    def changed(self, delta: MetadataDelta) -> Iterator[Entity]:
        """Yields the tokens that a commit has made, changed or removed."""
        yield from ((paths.TOKENS, token_id) for token_id in delta.tokens)

    def here(self, entity: Entity) -> Values:
        found = self._image.tokens.get(entity[1])
        if found is None:
            return {}
        requester = found.requester if self._release >= REQUESTERS_SINCE else found.owner
        times = found.issue_timestamp, found.expiration_timestamp, found.max_timestamp
        return {KEY: _text(Token(found.token_id, found.owner, requester, tuple(found.renewers), *times))}

    def is_shown(self, entity: Entity) -> bool:
        return True

    def taken(self, entity: Entity, key: str, value: str) -> str | None:
        """Returns a token that has the node's name, and names principals and moments."""
        token = _token(value)
        moments = token.issued_ms, token.expires_ms, token.latest_ms
        principals = (token.owner, token.requester, *token.renewers)
        is_known = (
            token.token_id == entity[1]
            and all(0 <= one <= tokens.TIME_MAX for one in moments)
            and all(all(one.partition(":")) for one in principals)
        )
        return value if is_known else None

    async def change(self, entity: Entity, changes: Mapping[str, str | None]) -> ApiError | None:
        """Makes, changes or removes a token; returns the error if that is refused. Fails with ApiError."""
        controller, text = self._metadata.controller, changes[KEY]
        if text is None:
            await self._metadata.submit(partial(tokens.remove, controller, entity[1]))
            return None
        token = _token(text)
        record = messages.DelegationTokenRecord(
            token_id=token.token_id,
            owner=token.owner,
            requester=token.requester,
            renewers=list(token.renewers),
            issue_timestamp=token.issued_ms,
            max_timestamp=token.latest_ms,
            expiration_timestamp=token.expires_ms,
        )
        try:
            await self._metadata.submit(partial(tokens.put, controller, self._room, record))
        except ApiError as error:
            return error
        return None


def values_of(data: bytes) -> Values:
    """Returns what a token's node has. Raises Malformed."""
    found = Token.decode(data)
    owner = paths.desanitized(found.owner)
    requester = paths.desanitized(found.requester) if found.requester else owner
    renewers = tuple(map(paths.desanitized, found.renewers))
    return {KEY: _text(Token(found.token_id, owner, requester, renewers, *_moments(found)))}


def value_of(found: Values, release: paths.Number) -> bytes:
    token = _token(found[KEY])
    requester = paths.sanitized(token.requester) if release >= REQUESTERS_SINCE else ""
    renewers = tuple(map(paths.sanitized, token.renewers))
    return Token(token.token_id, paths.sanitized(token.owner), requester, renewers, *_moments(token)).encode()


def change_of(entity: Entity, release: paths.Number) -> tuple[str, bytes]:
    """Returns the path without its number, and the value, of what says that a token has changed."""
    return f"{paths.TOKEN_CHANGES}/{paths.TOKEN_CHANGE_PREFIX}", entity[1].encode()


def changed(data: bytes) -> Entity:
    """Returns the token that a change names. Raises Malformed."""
    try:
        return paths.TOKENS, data.decode()
    except UnicodeDecodeError:
        raise Malformed("the value is not text") from None


def _moments(token: Token) -> tuple[int, int, int]:
    return token.issued_ms, token.expires_ms, token.latest_ms


def _text(token: Token) -> str:
    return json.dumps([token.token_id, token.owner, token.requester, token.renewers, *_moments(token)])


def _token(text: str) -> Token:
    token_id, owner, requester, renewers, *moments = json.loads(text)
    return Token(token_id, owner, requester, tuple(renewers), *moments)
