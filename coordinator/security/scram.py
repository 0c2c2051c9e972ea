"""The server's end of SCRAM, and what it keeps of a password (RFC 5802, RFC 7677; Kafka's ScramSaslServer).

The keys of a user do not reveal the password: the stored key recognizes a proof of the client, and the server key
proves to the client that the server knows the user. Messages have the forms that Kafka accepts: without channel
binding, without a mandatory extension, names in ASCII. The extension `tokenauth=true` makes the name that of a
delegation token (KIP-48); other extensions are ignored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from ...protocol.errors import MalformedMessage
from .sasl import SaslFailed

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
_NONCE_LIMIT = 1 << 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(NamedTuple):
    """A mechanism: its name, its number in Kafka's records and requests, and its hash function."""

    name: str
    number: int
    digest: str


MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism("SCRAM-SHA-256", 1, "sha256"),
    "SCRAM-SHA-512": ScramMechanism("SCRAM-SHA-512", 2, "sha512"),
}
BY_NUMBER = {one.number: one for one in MECHANISMS.values()}


class ScramCredential(NamedTuple):
    """What the server keeps of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


_CREDENTIAL_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


def credential_text(credential: ScramCredential) -> str:
    """Returns a credential as brokers with ZooKeeper keep it there (Kafka's ScramCredentialUtils)."""
    *keys, iterations = credential
    fields = [*(b64encode(one).decode() for one in keys), str(iterations)]
    return ",".join(f"{name}={one}" for name, one in zip(_CREDENTIAL_FIELDS, fields, strict=True))


def parse_credential(text: str) -> ScramCredential:
    """Returns what `credential_text` wrote. Raises ValueError."""
    fields = dict(one.split("=", 1) for one in text.split(","))
    if fields.keys() != set(_CREDENTIAL_FIELDS):
        raise ValueError("the fields are not those of a credential")
    salt, stored_key, server_key = (b64decode(fields[name], validate=True) for name in _CREDENTIAL_FIELDS[:3])
    return ScramCredential(salt, stored_key, server_key, int(fields["iterations"]))


class ScramIdentity(NamedTuple):
    """Whom a name stands for. `expires_at_ms`: until when, as wall time; None for ever."""

    credential: ScramCredential
    authorization_id: str
    expires_at_ms: int | None = None


Find = Callable[[str, bool], ScramIdentity | None]
"""Returns the identity for the name of a user, or with True of a delegation token; None if there is none."""


def salted_password(digest: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds, and releases the interpreter lock."""
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)


def credential_of(digest: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Derives the keys from a salted password, which must not be empty."""
    client_key = hmac.digest(salted, b"Client Key", digest)
    server_key = hmac.digest(salted, b"Server Key", digest)
    return ScramCredential(salt, hashlib.new(digest, client_key).digest(), server_key, iterations)


def nonce_of(random: bytes) -> str:
    """Writes 130 of at least 17 random bytes' bits as Kafka's nonces are written: in base 36."""
    left = int.from_bytes(random, "big") % _NONCE_LIMIT
    digits = ""
    while left:
        left, digit = divmod(left, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


# messages

# without backtracking, which would take time in proportion to the square of a message
_VALUE = r"[\x01-\x2b\x2d-\x7f]++"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]++"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = f"(?:,[A-Za-z]++={_VALUE})*"
_CLIENT_FIRST = re.compile(
    f"n,(?:a=(?P<authzid>{_NAME}))?,(?:m={_VALUE},)?"
    f"n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS})"
)
_CLIENT_FINAL = re.compile(f"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS},p=(?P<proof>{_BASE64})")


def _matched(pattern: re.Pattern[str], token: bytes, what: str) -> re.Match[str]:
    found = pattern.fullmatch(token.decode("utf-8", "replace"))
    if found is None:
        raise SaslFailed(reason=f"invalid SCRAM {what} message")
    return found


def _extensions(text: str) -> dict[str, str]:
    pairs = (one.partition("=") for one in text.split(",")[1:])
    return {name: value for name, _, value in pairs}


def token_named(token: bytes) -> str | None:
    """Returns the id of the delegation token that the client's first message names; None if it names none."""
    if b"tokenauth" not in token:
        return None
    found = _CLIENT_FIRST.fullmatch(token.decode("utf-8", "replace"))
    return _name(found) if found is not None and _is_token(_extensions(found["extensions"])) else None


def _name(first: re.Match[str]) -> str:
    return first["name"].replace("=2C", ",").replace("=3D", "=")


def _is_token(extensions: dict[str, str]) -> bool:
    return extensions.get("tokenauth", "").lower() == "true"


class ScramServer:
    """One exchange. `nonce`: the server's part of the nonce."""

    def __init__(self, mechanism: ScramMechanism, nonce: str, find: Find) -> None:
        self.mechanism = mechanism
        self.authorization_id: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False
        self._digest = mechanism.digest
        self._nonce = nonce
        self._find = find
        self._has_begun = False
        self._identity: ScramIdentity | None = None
        self._first_messages = ""  # the client's without its header, and the server's

    def evaluate(self, token: bytes) -> bytes:
        """Returns the answer to a message of the client.

        Raises SaslFailed, and MalformedMessage for a proof of another length, after which Kafka closes the connection.
        """
        identity, self._identity = self._identity, None  # of an exchange that fails nothing is left
        if not self._has_begun:
            self._has_begun = True
            return self._begin(token)
        if identity is None:
            raise SaslFailed(reason="the exchange is over")
        return self._end(token, identity)

    def _begin(self, token: bytes) -> bytes:
        found = _matched(_CLIENT_FIRST, token, "client first")
        extensions = _extensions(found["extensions"])
        self.token_authenticated = _is_token(extensions)
        name = _name(found)
        identity = self._find(name, self.token_authenticated)
        if identity is None:
            raise SaslFailed(reason=f"there are no {self.mechanism.name} credentials of {name!r}")
        if found["authzid"] not in (None, name):
            raise SaslFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        credential = identity.credential
        if credential.iterations < ITERATIONS_MIN:
            raise SaslFailed(reason=f"{credential.iterations} iterations are less than {ITERATIONS_MIN}")
        bare = [f"n={found['name']}", f"r={found['nonce']}", *(f"{key}={value}" for key, value in extensions.items())]
        self._nonce = found["nonce"] + self._nonce
        reply = f"r={self._nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._first_messages = f"{','.join(bare)},{reply}"
        self._identity = identity
        return reply.encode()

    def _end(self, token: bytes, identity: ScramIdentity) -> bytes:
        found = _matched(_CLIENT_FINAL, token, "client final")
        if not found["nonce"].endswith(self._nonce):
            raise SaslFailed(reason="another nonce than the server's")
        credential, digest = identity.credential, self._digest
        channel = b64encode(b64decode(found["channel"])).decode()
        signed = f"{self._first_messages},c={channel},r={found['nonce']}".encode()
        signature, proof = hmac.digest(credential.stored_key, signed, digest), b64decode(found["proof"])
        if len(proof) != len(signature):
            raise MalformedMessage("proof", f"{len(proof)} bytes for {self.mechanism.name}")
        client_key = bytes(one ^ other for one, other in zip(signature, proof, strict=True))
        if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), credential.stored_key):
            raise SaslFailed(reason=f"a wrong password of {identity.authorization_id!r}")
        self.authorization_id, self.expires_at_ms = identity.authorization_id, identity.expires_at_ms
        return b"v=" + b64encode(hmac.digest(credential.server_key, signed, digest))
