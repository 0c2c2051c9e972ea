"""The broker's own authorization server, for tests: it grants tokens to the users of `ottla.users` by their passwords
(the client credentials grant, RFC 6749), signed with a key that is made at start and kept in memory.

A listener uses it whose validator wants signatures, and that has no `sasl.oauthbearer.jwks.endpoint.url`.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, unquote_plus

from ..config.users import User
from .guesses import Guesses

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from .jwks import KeySet

ALGORITHM = "ES256"
LIFETIME_S = 3600
DEFAULT_ISSUER = "ottla"
FIELDS_MAX = 20
UNAUTHORIZED = 401
TOO_MANY_REQUESTS = 429


class Granted(NamedTuple):
    """An answer of the token endpoint: the HTTP status, and what the JSON says."""

    status: int
    reply: dict[str, str | int]


class TokenIssuer:
    """`users`: those that the configuration names; `now_ms`: returns the wall time; `new_id`: returns 16 random
    bytes; `guesses`: bounds how often secrets are guessed.
    """

    def __init__(
        self, users: Mapping[str, User], now_ms: Callable[[], int], new_id: Callable[[], bytes], guesses: Guesses
    ) -> None:
        self.jwks: bytes | None = None
        """The public key as JWKS; None if no listener takes these tokens."""
        self._users = users
        self._now_ms = now_ms
        self._new_id = new_id
        self._guesses = guesses
        self._key: EllipticCurvePrivateKey | None = None
        self._kid = ""
        self._issuer = DEFAULT_ISSUER
        self._audiences: dict[str, None] = {}

    def opened(self, issuer: str | None, audiences: tuple[str, ...]) -> KeySet:
        """Returns the keys for a listener that takes these tokens from now on. Raises ValueError if it expects another
        issuer than the listeners before.
        """
        from .jwks import KeySet

        if self.jwks is None:
            self._make_key()
            self._issuer = issuer or DEFAULT_ISSUER
        elif issuer is not None and issuer != self._issuer:
            raise ValueError(f"the tokens of ottla have one issuer, {self._issuer}, which other listeners expect")
        self._audiences.update(dict.fromkeys(audiences))
        assert self.jwks is not None
        return KeySet(self.jwks)

    def _make_key(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from jwt.algorithms import ECAlgorithm

        self._key, self._kid = ec.generate_private_key(ec.SECP256R1()), self._new_id().hex()
        public = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        self.jwks = json.dumps({"keys": [{**public, "kid": self._kid, "alg": ALGORITHM, "use": "sig"}]}).encode()

    def grant(self, address: str, authorization: str, form: bytes) -> Granted:
        """Answers a request for a token. `address`: of the client; `authorization`: the header; `form`: the body."""
        try:
            found = parse_qs(form.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
        except ValueError:
            return _refused(400, "invalid_request", "the body must be a form")
        fields = {name: values[-1] for name, values in found.items()}
        if fields.get("grant_type") != "client_credentials":
            return _refused(400, "unsupported_grant_type", "grant_type must be client_credentials")
        name, password = _client(authorization, fields)
        guessed = unquote_plus(name)  # so that other spellings of a name are no other client
        wait_ms = self._guesses.wait_ms(address, guessed)
        if wait_ms:
            return _refused(
                TOO_MANY_REQUESTS,
                "temporarily_unavailable",
                f"there were too many wrong secrets; try again in {wait_ms // 1000 + 1} s",
            )
        # RFC 6749 wants both in URL encoding, which most clients leave out
        found_as = [self._known(name, password), self._known(guessed, unquote_plus(password))]
        user = found_as[0] or found_as[1]
        if user is None:
            self._guesses.wrong(address, guessed)
            return _refused(UNAUTHORIZED, "invalid_client", "the client's id or secret is wrong")
        scope = fields.get("scope", "").split()
        reply: dict[str, str | int] = {
            "access_token": self._token(user.name, scope),
            "token_type": "Bearer",
            "expires_in": LIFETIME_S,
        }
        return Granted(200, reply | ({"scope": " ".join(scope)} if scope else {}))

    def _known(self, name: str, password: str) -> User | None:
        """Returns the user with this password. Digests are compared, which have one length: it takes as long for a
        user that does not exist and for a password of any length.
        """
        user = self._users.get(name)
        expected = "" if user is None else user.password
        is_right = hmac.compare_digest(_digest(password), _digest(expected))
        return user if is_right else None

    def _token(self, name: str, scope: list[str]) -> str:
        import jwt

        assert self._key is not None
        now = self._now_ms() // 1000
        claims: dict[str, object] = {
            "iss": self._issuer,
            "sub": name,
            "iat": now,
            "exp": now + LIFETIME_S,
            "jti": self._new_id().hex(),
        }
        if self._audiences:
            claims["aud"] = list(self._audiences)
        if scope:
            claims["scope"] = list(dict.fromkeys(scope))
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"kid": self._kid})


def _client(authorization: str, fields: Mapping[str, str]) -> tuple[str, str]:
    """Returns the name and the password in the header, or in the form; both are empty where a header has none."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return fields.get("client_id", ""), fields.get("client_secret", "")
    try:
        name, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return name, password


def _digest(password: str) -> bytes:
    return sha256(password.encode("utf-8", "replace")).digest()


def _refused(status: int, error: str, description: str) -> Granted:
    return Granted(status, {"error": error, "error_description": description})
