"""Handshakes of TLS that are damaged byte by byte or in their structure, and what must come of each: the broker serves
the connection, or ends it, and says nothing but records of TLS.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator

from ottla.protocol import messages as m

from .wire import request_frame

CHANGE_CIPHER, ALERT, HANDSHAKE, DATA, HEARTBEAT = range(20, 25)
EARLY_DATA, SERVER_NAME = 42, 0
LENGTH_MAX = (1 << 14) + 256
WAIT_SECONDS = 0.2  # for an answer that perhaps does not come, because the broker waits for the rest
END_SECONDS = 60
VERSIONS = request_frame("ApiVersions", 0, m.ApiVersionsRequest())
JUNK = (VERSIONS, b"GET / HTTP/1.1\r\n\r\n", b"\0" * 60, b"\x16\x03\x01\xff\xff", b"\x80\x2e\x01\x03\x01", b"\x15\x03")


def record(kind: int, body: bytes, version: int = 0x0303) -> bytes:
    return struct.pack(">BHH", kind, version, len(body)) + body


def records_of(data: bytes) -> list[tuple[int, bytes]]:
    """Types and bodies of the records in some bytes; the last may be incomplete."""
    found = []
    while len(data) >= 5:
        kind, _, size = struct.unpack_from(">BHH", data)
        found.append((kind, data[5 : 5 + size]))
        data = data[5 + size :]
    return found


def client_hello(context: ssl.SSLContext) -> bytes:
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    return out.read()


class Hello:
    """A ClientHello in parts, whose lengths are right again when it is put together."""

    def __init__(self, data: bytes) -> None:
        body = data[9:]
        self.version, self.random = body[:2], body[2:34]
        self.session, at = _vector(body, 34, 1)
        self.suites, at = _vector(body, at, 2)
        self.methods, at = _vector(body, at, 1)
        rest, _ = _vector(body, at, 2)
        self.extensions: list[tuple[int, bytes]] = []
        at = 0
        while at < len(rest):
            value, end = _vector(rest, at + 2, 2)
            self.extensions.append((struct.unpack_from(">H", rest, at)[0], value))
            at = end

    def packed(self) -> bytes:
        extensions = b"".join(struct.pack(">HH", kind, len(value)) + value for kind, value in self.extensions)
        body = b"".join(
            (
                *(self.version, self.random, bytes([len(self.session)]), self.session),
                *(struct.pack(">H", len(self.suites)), self.suites, bytes([len(self.methods)]), self.methods),
                *(struct.pack(">H", len(extensions)), extensions),
            )
        )
        return record(HANDSHAKE, b"\x01" + len(body).to_bytes(3, "big") + body, 0x0301)

    def change(self, chance: random.Random) -> None:
        """One change of the structure."""
        found, at = self.extensions, chance.randrange(len(self.extensions))
        kind, value = found[at]
        match chance.randrange(10):
            case 0:
                del found[at]
            case 1:
                found.insert(chance.randrange(len(found)), found[at])
            case 2:
                chance.shuffle(found)
            case 3:
                found[at] = kind, value[: chance.randrange(len(value) + 1)]
            case 4:
                found[at] = kind, value + chance.randbytes(chance.choice((1, 100, 4000)))
            case 5:
                found.append((chance.randrange(1 << 16), chance.randbytes(chance.randrange(50))))
            case 6:
                self.suites = chance.choice((b"", b"\x13", b"\x13\x01", chance.randbytes(20), self.suites * 20))
            case 7:
                self.session = chance.randbytes(chance.choice((0, 1, 32, 33, 255)))
            case 8:
                self.version = chance.choice((b"\x03\x00", b"\x03\x01", b"\x03\x04", b"\xfe\xfd", b"\0\0"))
            case _:
                found.insert(at, (EARLY_DATA, b""))


def _vector(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    """A field with its length before it, and where it ends."""
    end = at + width + int.from_bytes(data[at : at + width], "big")
    return data[at + width : end], end


# what is sent


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Changes, removes or adds some bytes."""
    body = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(body))
        match chance.randrange(4):
            case 0:
                del body[at : at + chance.randint(1, 40)]
            case 1:
                body[at:at] = chance.randbytes(chance.randint(1, 40))
            case _:
                body[at] = chance.randrange(256)
        if not body:
            break
    return bytes(body)


def split_records(data: bytes, chance: random.Random) -> bytes:
    """The same, with each record of a handshake that is not encrypted in several."""
    out = b""
    for kind, body in records_of(data):
        size = chance.choice((1, 2, 50, 200)) if kind == HANDSHAKE else max(1, len(body))
        out += b"".join(record(kind, body[at : at + size], 0x0301) for at in range(0, len(body), size))
    return out


def disturbed(data: bytes, chance: random.Random) -> bytes:
    """The same records with one that does not belong there, one twice, or in another order."""
    found = [record(kind, body) for kind, body in records_of(data)]
    strange = (
        *(record(ALERT, b"\x01\x00"), record(ALERT, b"\x01\x5a"), record(ALERT, b"\x02\x28"), record(ALERT, b"\x02")),
        *(record(CHANGE_CIPHER, b"\x01"), record(CHANGE_CIPHER, b"\x02"), record(HANDSHAKE, b"")),
        *(record(HANDSHAKE, b"\0\0\0\0"), record(DATA, b"early data"), record(DATA, chance.randbytes(LENGTH_MAX + 1))),
        *(record(HEARTBEAT, b"\x01\x40\x00"), record(99, b"?"), *JUNK),
    )
    match chance.randrange(3):
        case 0 if found:
            found.insert(chance.randrange(len(found)), chance.choice(found))
        case 1:
            chance.shuffle(found)
        case _:
            found.insert(chance.randint(0, len(found)), chance.choice(strange))
    return b"".join(found)


def as_it_is(data: bytes, chance: random.Random) -> bytes:
    return data


Mutation = Callable[[bytes, random.Random], bytes]


HARMLESS: tuple[Mutation, ...] = (as_it_is, split_records)
"""After these, in the first flight, the handshake succeeds."""


def connected(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), END_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def until_end(peer: socket.socket) -> bytes:
    """Sends no more, and reads until the broker closes. TimeoutError if it does not."""
    peer.settimeout(END_SECONDS)
    found = b""
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        with contextlib.suppress(OSError):
            peer.shutdown(socket.SHUT_WR)
        while data := peer.recv(1 << 16):
            found += data
    return found


def check_records(data: bytes, what: str) -> None:
    """What a listener with TLS sends is alerts and a handshake, and never an answer in the clear."""
    kinds = {kind for kind, _ in records_of(data)}
    assert kinds <= {CHANGE_CIPHER, ALERT, HANDSHAKE, DATA}, f"{what} is answered by {data[:60]!r}"


def send_hello(port: int, data: bytes) -> bytes:
    """A first flight to a listener with TLS, and nothing after it; returns the answer."""
    with connected(port) as peer:
        with contextlib.suppress(ConnectionError):
            peer.sendall(data)
        found = until_end(peer)
    check_records(found, data[:100].hex())
    return found


def _pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """What is written to the socket at a time."""
    size = chance.choice((1, 7, 100, 1 << 20, 1 << 20))
    for at in range(0, len(data), size):
        yield data[at : at + size]


def asked_again(port: int, version: str, letter: str, times: int) -> None:
    """A client of OpenSSL asks for another handshake (R) or for other keys (K), and reads nothing in between."""
    program = shutil.which("openssl")
    if program is None:
        return
    command = [program, "s_client", "-connect", f"127.0.0.1:{port}", version]
    lines = f"{letter}\n" * times
    subprocess.run(command, input=lines.encode(), capture_output=True, timeout=120, check=False)


class Handshake:
    """A client of whose flights one is mutated on its way: the one with this number."""

    def __init__(
        self, port: int, context: ssl.SSLContext, mutate: Mutation, number: int, chance: random.Random
    ) -> None:
        self.peer = connected(port)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._mutate = mutate
        self._number = number
        self._chance = chance
        self._flights = 0
        self._seen = b""

    def _flush(self) -> None:
        data = self._out.read()
        if not data:
            return
        if self._flights == self._number:
            data = self._mutate(data, self._chance)
        self._flights += 1
        for piece in _pieces(data, self._chance):
            self.peer.sendall(piece)

    def _receive(self) -> bool:
        """Whether anything came; for a short time if the broker may be waiting for more itself."""
        self.peer.settimeout(END_SECONDS if self._mutate in HARMLESS else WAIT_SECONDS)
        data = self.peer.recv(1 << 16)
        self._seen += data
        self._in.write(data)
        return bool(data)

    def served(self) -> bool:
        """Whether the handshake succeeds, and a request after it is answered. Otherwise the broker has closed."""
        is_served = False
        with self.peer:
            with contextlib.suppress(ssl.SSLError, OSError):
                is_served = self._shaken() and self._answered()
            if not is_served:
                self._seen += until_end(self.peer)
        check_records(self._seen, "a handshake")
        return is_served

    def _shaken(self) -> bool:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not self._receive():
                    return False
            else:
                self._flush()
                return True

    def _answered(self) -> bool:
        self.tls.write(VERSIONS)
        self._flush()
        while True:
            try:
                return len(self.tls.read(1 << 16)) > 4
            except ssl.SSLWantReadError:
                if not self._receive():
                    return False
