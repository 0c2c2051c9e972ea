"""A client of SASL/GSSAPI that also does what is wrong; a program, whose process has the library and the tickets.

python -m tests.support.gss_client PORT stories|first|log-in|late|tokens     prints what the broker answered, as JSON
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

import gssapi

from .poll import until

SERVICE = "kafka@localhost"
NOT_WRAPPED = b"\x01\0\0\0"


class Connection:
    """A connection that has begun an exchange; `says` is what the broker answered, in words."""

    def __init__(self, port: int, *, has_handshake: bool = True, version: int = 1) -> None:
        self.says: list[str] = []
        self.context = gssapi.SecurityContext(
            name=gssapi.Name(SERVICE, gssapi.NameType.hostbased_service), usage="initiate"
        )
        self._socket = socket.create_connection(("localhost", port), 30)
        if has_handshake:
            self._exchange(struct.pack(">hhih", 17, version, 1, -1) + struct.pack(">h", 6) + b"GSSAPI")

    def token(self) -> bytes:
        return bytes(self.context.step() or b"")

    def send(self, token: bytes) -> bytes | None:
        """Sends a token; returns the answer, or None if there is none."""
        reply = self._ask(36, struct.pack(">i", len(token)) + token)
        if reply is None:
            self.says.append("closed")
            return None
        code, length = struct.unpack_from(">hh", reply)
        at = 4 + max(length, 0)
        words = reply[4:at].decode() if length >= 0 else ""
        (size,) = struct.unpack_from(">i", reply, at)
        self.says.append(f"{code} {words}" if code else f"{size} bytes" if self.context.complete else "a token")
        return None if code else reply[at + 4 : at + 4 + size]

    def establish(self) -> None:
        """Establishes the context, until the broker's offer is next."""
        answer = self.send(self.token())
        assert answer is not None, self.says
        self.context.step(answer)

    def offered(self) -> bytes:
        self.establish()
        offer = self.send(b"")
        assert offer is not None, self.says
        found = bytes(self.context.unwrap(offer).message)
        self.says.append(found.hex())
        return found

    def choose(self, choice: bytes) -> None:
        self.send(self.context.wrap(choice, False).message)

    def ask_for_metadata(self) -> None:
        self.says.append("closed" if self._ask(3, struct.pack(">i", 0)) is None else "metadata")

    def send_alone(self, token: bytes) -> None:
        """Sends a token without headers, as clients of Kafka 0.9 do."""
        self.says.append("closed" if self._exchange(token) is None else "a token")

    def choose_without_headers(self) -> None:
        """Goes through the exchange, and reads no answer to the last token: Kafka sends none."""
        self.context.step(self._exchange(self.token()))
        offer = self._exchange(b"")
        assert offer is not None
        choice = self.context.wrap(self.context.unwrap(offer).message, False).message
        self._socket.sendall(struct.pack(">i", len(choice)) + choice)
        reply = self._ask(3, struct.pack(">i", 0))
        self.says.append("closed" if reply is None else "metadata" if reply else "an answer to the last token")

    def _ask(self, key: int, body: bytes) -> bytes | None:
        reply = self._exchange(struct.pack(">hhih", key, 1, 1, -1) + body)
        return None if reply is None else reply[4:]

    def _exchange(self, frame: bytes) -> bytes | None:
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", self._read(4))
            return self._read(size)
        except (ConnectionError, EOFError):
            return None

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self._socket.recv(size - len(found))
            if not more:
                raise EOFError
            found += more
        return found


def begun(port: int, choice: bytes) -> list[str]:
    """The story of a client that makes a choice after the offer."""
    one = Connection(port)
    one.offered()
    one.choose(choice)
    one.ask_for_metadata()
    return one.says


def without_headers(port: int, token: bytes | None = None) -> list[str]:
    """The story of a client of Kafka 0.9, with a token of its own instead of the first."""
    one = Connection(port, has_handshake=False)
    one.send_alone(one.token() if token is None else token)
    return one.says


def stories(port: int) -> dict[str, list[str]]:
    found = {
        "good": begun(port, b"\x01\0\0\0"),
        "the name of another": begun(port, b"\x01\0\0\0mallory"),
        "integrity and no layer": begun(port, b"\x03\0\xff\xff"),
        "confidentiality": begun(port, b"\x04\0\xff\xff"),
        "no layer at all": begun(port, b"\0\0\0\0"),
        "an empty choice": begun(port, b""),
        "a short choice": begun(port, b"\x01\0\0"),
    }
    for name, token in (
        ("0.9", None),
        ("0.9, garbage", b"\x60garbage"),
        ("0.9, zeros", bytes(2)),
        ("0.9, nothing", b""),
    ):
        found[name] = without_headers(port, token)
    one = Connection(port, version=0)
    one.choose_without_headers()
    found["a handshake of version 0"] = one.says
    one = Connection(port)
    one.offered()
    one.send(NOT_WRAPPED)
    found["a choice without checksum"] = one.says
    one = Connection(port)
    one.establish()
    one.send(b"more")
    found["data before the offer"] = one.says
    for name, token in (("no token", b""), ("garbage", b"\x60garbage"), ("zeros", bytes(100))):
        one = Connection(port)
        one.send(token)
        found[name] = one.says
    one, other = Connection(port), Connection(port)
    token = one.token()
    one.send(token)
    other.send(token)
    found["a replay"] = one.says + other.says
    one = Connection(port)
    token = one.token()
    one.send(token[:-9] + bytes([token[-9] ^ 1]) + token[-8:])
    found["a token that is not what was made"] = one.says
    return found


def first_answer(port: int) -> dict[str, list[str]]:
    """The story of a client whose ticket the broker cannot read."""
    one = Connection(port)
    one.send(one.token())
    return {"a ticket": one.says}


def late(port: int) -> dict[str, list[str]]:
    """The story of a client whose ticket, which is valid for a second, expires before its token is sent. Asking the
    library for the ticket would fetch a new one.
    """
    one = Connection(port)
    token = one.token()
    end = time.time() + 3  # that second, another for which the broker takes it, and what is cut off
    until(lambda: time.time() > end, "the broker's clock allows it no more", every=0.1)
    one.send(token)
    return {"late": one.says}


def log_in(port: int) -> dict[str, list[str]]:
    return {"a log-in": begun(port, b"\x01\0\0\0")}


def tokens(port: int) -> dict[str, list[str]]:
    """Some first tokens, which are not sent."""
    return {"tokens": [Connection(port, has_handshake=False).token().hex() for _ in range(20)]}


if __name__ == "__main__":
    known = {"stories": stories, "first": first_answer, "log-in": log_in, "late": late, "tokens": tokens}
    told = known[sys.argv[2]]
    print(json.dumps(told(int(sys.argv[1]))))
