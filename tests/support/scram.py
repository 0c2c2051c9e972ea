"""The client's end of SCRAM, for tests (RFC 5802)."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

from ottla.protocol import messages as m

from .wire import Wire


class ScramClient:
    """One exchange. `extensions`: as text that begins with a comma. The salted password may be given, which saves the
    time of salting it.
    """

    def __init__(
        self,
        mechanism: str,
        name: str,
        password: str,
        nonce: str = "fyko+d2lbbFgONRv9qkxdawL",
        extensions: str = "",
        salted: bytes | None = None,
    ) -> None:
        self.digest = f"sha{mechanism[-3:]}"
        self.bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}{extensions}"
        self.password = password
        self.salted = salted
        self.signed = ""

    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, reply: bytes) -> bytes:
        """The message with the proof, after the server's first one."""
        fields = dict(one.split("=", 1) for one in reply.decode().split(","))
        if self.salted is None:
            salt, iterations = b64decode(fields["s"]), int(fields["i"])
            self.salted = hashlib.pbkdf2_hmac(self.digest, self.password.encode(), salt, iterations)
        without_proof = f"c=biws,r={fields['r']}"
        self.signed = f"{self.bare},{reply.decode()},{without_proof}"
        key = hmac.digest(self.salted, b"Client Key", self.digest)
        stored = hashlib.new(self.digest, key).digest()
        signature = hmac.digest(stored, self.signed.encode(), self.digest)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def verify(self, reply: bytes) -> None:
        """The server's last message shows that it knows the user."""
        assert self.salted is not None
        key = hmac.digest(self.salted, b"Server Key", self.digest)
        assert reply == b"v=" + b64encode(hmac.digest(key, self.signed.encode(), self.digest))


def log_in(wire: Wire, client: ScramClient, mechanism: str) -> bool:
    """Whether the broker takes the client's password, in which case it also shows that it knows it."""
    wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
    said = client.first()
    for step in (client.final, client.verify):
        reply = wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=said))
        if reply.error_code:
            return False
        said = step(reply.auth_bytes) or b""
    return True
