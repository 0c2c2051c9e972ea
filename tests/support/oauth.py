"""Tokens and first messages of clients of OAUTHBEARER."""

from __future__ import annotations

import json
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from jwt.algorithms import ECAlgorithm

LONG_AGO, FAR_AWAY = 1_000_000_000, 4_102_444_800  # 2001 and 2100, in seconds
UNSECURED_HEADER = '{"alg":"none"}'
KAFKA = "org.apache.kafka.common.security.oauthbearer"


def encoded(data: str | bytes) -> str:
    return urlsafe_b64encode(data.encode() if isinstance(data, str) else data).decode().rstrip("=")


def claims(**changed: Any) -> str:
    """The claims of alice as JSON; None leaves one out."""
    given = {"sub": "alice", "iat": LONG_AGO, "exp": FAR_AWAY, "scope": ["kafka", "more"]} | changed
    return json.dumps({name: value for name, value in given.items() if value is not None})


def unsecured(text: str | None = None, header: str = UNSECURED_HEADER, signature: str = "") -> str:
    """A token without a signature."""
    return f"{encoded(header)}.{encoded(claims() if text is None else text)}.{signature}"


def first(token: str, name: str = "", extensions: str = "", scheme: str = "Bearer") -> bytes:
    """The first message. `extensions`: each ends with the character 1."""
    return f"n,{f'a={name}' if name else ''},\x01auth={scheme} {token}\x01{extensions}\x01".encode()


# tokens with a signature


def signing_key(number: int = 1) -> ec.EllipticCurvePrivateKey:
    """The same key each time: what is recorded of Kafka holds for it."""
    return ec.derive_private_key(number + (1 << 200), ec.SECP256R1())


def jwk(key: ec.EllipticCurvePrivateKey, **more: object) -> dict[str, object]:
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


def signed(text: str | None = None, key: ec.EllipticCurvePrivateKey | None = None, **header: object) -> str:
    """A token with a signature of ES256 that is the same each time. A member of the header that is None is left out."""
    members = {"alg": "ES256", "kid": "one", **header}
    head = encoded(json.dumps({name: value for name, value in members.items() if value is not None}))
    message = f"{head}.{encoded(claims(iss='issuer', aud='kafka') if text is None else text)}"
    der = (key or signing_key()).sign(message.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    r, s = decode_dss_signature(der)
    return f"{message}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


# keys of an authorization server


@contextmanager
def served(data: bytes, certificate: Path, moved: str | None = None) -> Iterator[str]:
    """A server of https on `localhost` that answers each GET with these bytes; its URL. `certificate`: a PEM file with
    its key; `moved`: where to it sends a client instead, for all paths but `/new`.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_moved = moved is not None and self.path != "/new"
            self.send_response(302 if is_moved else 200)
            if is_moved:
                self.send_header("Location", moved or "")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Handshakes that clients end are expected."""

    server = Server(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}/keys"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
