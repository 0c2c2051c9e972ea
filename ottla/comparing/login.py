"""The client's end of a log-in: PLAIN, and SCRAM (RFC 5802, RFC 7677). Pure: the nonce is an argument.

`steps` yields the tokens that the client sends, and is sent what the server answers.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from ..protocol.errors import MalformedMessage

DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = ("PLAIN", *DIGESTS)
ITERATIONS_MAX: Final = 1 << 20  # what a server may ask of the client
NONCE_BYTES: Final = 16
OLD_S: Final = 4.0  # of silence after ApiVersions, which comes first: the broker is one that does not know it
Steps = Generator[bytes, bytes, None]


@dataclass(frozen=True)
class Credentials:
    """Of a user. `mechanism`: one of `MECHANISMS`."""

    user: str
    password: str
    mechanism: str = "PLAIN"

    def steps(self, nonce: str) -> Steps:
        """Raises MalformedMessage where the server does not show that it knows the user."""
        return self._plain() if self.mechanism == "PLAIN" else self._scram(nonce)

    def _plain(self) -> Steps:
        yield f"\0{self.user}\0{self.password}".encode()

    def _scram(self, nonce: str) -> Steps:
        digest = DIGESTS[self.mechanism]
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        bare = f"n={name},r={nonce}"
        first = yield f"n,,{bare}".encode()
        found = _attributes(first)
        iterations = int(found.get("i", "0")) if found.get("i", "").isdecimal() else 0
        if not found.get("r", "").startswith(nonce) or not 0 < iterations <= ITERATIONS_MAX or "s" not in found:
            raise MalformedMessage("SaslAuthenticate", "the server's first message of SCRAM is not valid")
        salted = hashlib.pbkdf2_hmac(digest, self.password.encode(), b64decode(found["s"]), iterations)
        without_proof = f"c=biws,r={found['r']}"
        said = f"{bare},{first.decode()},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), said, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        last = yield f"{without_proof},p={b64encode(proof).decode()}".encode()
        expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
        if _attributes(last).get("v") != b64encode(expected).decode():
            raise MalformedMessage("SaslAuthenticate", "the server does not know the user's password")


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode("ascii").split(",")
    except UnicodeDecodeError:
        raise MalformedMessage("SaslAuthenticate", "a message of SCRAM is not text") from None
    return {one[0]: one[2:] for one in parts if one[1:2] == "="}
