"""What a listener of SASL answers to requests in any order (Kafka's SaslServerAuthenticator, KIP-43, KIP-152): a model
of its states, and requests drawn at random.
"""

from __future__ import annotations

import contextlib
import random

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors as E
from ottla.protocol.frames import framed

from .wire import Closed, Wire, request_frame

GOOD, BAD = b"\0alice\0alice-secret", b"\0alice\0guess"
CLOSED = -1
HANDSHAKE_VERSIONS = range(2)


class Order:
    """One connection whose client uses PLAIN."""

    def __init__(self) -> None:
        self.state = "beginning"

    def step(self, wire: Wire, chance: random.Random) -> bool:
        """Sends something, and compares the answer; returns whether the connection goes on."""
        usual = {"beginning": "handshake", "versions are known": "handshake", "authenticating": "authenticate"}
        kinds = ["versions", "old versions", "handshake", "other", "authenticate", "metadata"]
        kinds += [usual.get(self.state, "metadata")] * 4
        kind = "token" if self.state == "raw" else chance.choice(kinds)
        version = chance.choice((0, 1, 1, 1, 2))
        before, is_right = self.state, chance.random() < 0.7
        wanted, ends = self._expected(kind, version, is_right)
        found = _sent(wire, kind, version, is_right)
        assert found == wanted, f"{kind} v{version}, {is_right}, while {before}: {found}, not {wanted}"
        if ends and found != CLOSED:
            wire.socket.settimeout(60)
            with contextlib.suppress(ConnectionError):
                assert wire.socket.recv(1) == b"", f"the connection goes on after {kind} while {before}"
        return not ends

    def _expected(self, kind: str, version: int, is_right: bool) -> tuple[int, bool]:
        """The error code of the answer, or CLOSED; and whether the connection ends then."""
        state = self.state
        if state == "in":
            return self._while_in(kind, version)
        if state == "raw":
            self.state = "in" if is_right else "over"
            return (0, False) if is_right else (CLOSED, True)
        if state == "authenticating":
            return self._while_authenticating(kind, version, is_right)
        if kind == "handshake" and version in HANDSHAKE_VERSIONS:
            self.state = "authenticating" if version else "raw"
            return 0, False
        if kind == "other" and version in HANDSHAKE_VERSIONS:
            return int(E.UNSUPPORTED_SASL_MECHANISM), True
        if kind == "versions" and state == "beginning":
            self.state = "versions are known"
            return 0, False
        if kind == "old versions" and state == "beginning":
            return int(E.UNSUPPORTED_VERSION), False
        return CLOSED, True

    def _while_in(self, kind: str, version: int) -> tuple[int, bool]:
        if kind in ("handshake", "other") and version not in HANDSHAKE_VERSIONS:
            return CLOSED, True
        codes = {"versions": 0, "old versions": E.UNSUPPORTED_VERSION, "metadata": 0}
        return int(codes.get(kind, E.ILLEGAL_SASL_STATE)), False

    def _while_authenticating(self, kind: str, version: int, is_right: bool) -> tuple[int, bool]:
        illegal = int(E.ILLEGAL_SASL_STATE), True
        if kind == "authenticate":
            if is_right:
                self.state = "in"
            return (0, False) if is_right else (int(E.SASL_AUTHENTICATION_FAILED), True)
        if kind in ("handshake", "other"):
            return illegal if version in HANDSHAKE_VERSIONS else (CLOSED, True)
        if kind == "metadata":
            return 0, True  # its error would stand beside the topics, of which there are none
        return illegal if kind == "versions" else (CLOSED, True)


def _sent(wire: Wire, kind: str, version: int, is_right: bool) -> int:
    """Sends a request of a kind; returns the error code of its answer, or CLOSED."""
    try:
        return _answer(wire, kind, version, GOOD if is_right else BAD)
    except (Closed, ConnectionError):
        return CLOSED


def _answer(wire: Wire, kind: str, version: int, token: bytes) -> int:
    match kind:
        case "token":
            wire.send(framed(token))
            assert wire.read_frame() == b""
            return 0
        case "versions":
            return int(wire.ask("ApiVersions", 0, m.ApiVersionsRequest()).error_code)
        case "old versions":
            return _of_another_version(wire, "ApiVersions", 99, 4)
        case "handshake" | "other" if version in HANDSHAKE_VERSIONS:
            request = m.SaslHandshakeRequest(mechanism="PLAIN" if kind == "handshake" else "NOPE")
            return int(wire.ask("SaslHandshake", version, request).error_code)
        case "handshake" | "other":
            return _of_another_version(wire, "SaslHandshake", version, 1)
        case "authenticate":
            reply = wire.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=token))
            return int(reply.error_code)
        case _:
            wire.ask("Metadata", 9, m.MetadataRequest(topics=[]))
            return 0


def _of_another_version(wire: Wire, api: str, version: int, like: int) -> int:
    """Sends a request of a version that does not exist, which looks like one that does; an answer has version 0."""
    frame = request_frame(api, like, getattr(m, f"{api}Request")())
    wire.send(frame[:6] + version.to_bytes(2, "big") + frame[8:])
    return int.from_bytes(wire.read_frame()[4:6], "big")


def answered(wire: Wire, version: int, token: bytes, chance: random.Random) -> bytes | None:
    """Sends a token with headers, or without after a handshake of version 0; returns the answer, None for a failure."""
    try:
        if version == 0:
            wire.send(framed(token))
            return wire.read_frame()
        reply = wire.ask("SaslAuthenticate", chance.randint(0, 2), m.SaslAuthenticateRequest(auth_bytes=token))
    except (Closed, ConnectionError):
        return None
    return None if reply.error_code else bytes(reply.auth_bytes)
