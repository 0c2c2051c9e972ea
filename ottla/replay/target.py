"""The broker on which a trace is replayed, and how its connections begin: with TLS and with a log-in if it wants them.

The log-ins of the trace are not in it, so every connection has the same credentials.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from dataclasses import dataclass, replace
from typing import Final

from ..comparing.login import NONCE_BYTES, OLD_S, Credentials
from ..protocol import codec, headers, messages
from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct
from ..protocol.text import host_and_port

CLIENT_ID: Final = "ottla-replay"


@dataclass(frozen=True)
class Target:
    """`credentials`: of all connections; None without a log-in."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)

    def nodes(self, timeout_s: float) -> dict[int, Target]:
        """The nodes of the broker's cluster by their ids; none if it does not say. Raises OSError if there is no
        connection.
        """
        with self.begin(timeout_s) as connected:
            try:
                reply = _ask(connected, "Metadata", 1, messages.MetadataRequest(topics=[]))
            except (ConnectionError, TimeoutError):  # a release that does not know this version
                return {}
        assert isinstance(reply, messages.MetadataResponse)
        return {one.node_id: replace(self, host=one.host, port=one.port) for one in reply.brokers}

    def begin(self, timeout_s: float) -> socket.socket:
        """A connection for requests of the replay's own: like that of a good client, it begins with ApiVersions.
        Brokers before Kafka 0.10 close a connection on that, or are silent; it then begins without. Raises OSError.
        """
        found = self._open(timeout_s)
        try:
            try:
                found.settimeout(min(timeout_s, OLD_S))
                _ask(found, "ApiVersions", 0, messages.ApiVersionsRequest())
                found.settimeout(timeout_s)
            except ConnectionRefusedError:
                raise
            except (ConnectionError, TimeoutError):
                found.close()
                found = self._open(timeout_s)
            if self.credentials is not None:
                _log_in(found, self.credentials)
        except BaseException:
            found.close()
            raise
        return found

    def connect(self, timeout_s: float) -> socket.socket:
        """A connection that requests of a client can be sent on; the client begins it. With a log-in, which comes
        before them, it begins as those of the replay's own. Raises OSError.
        """
        return self._open(timeout_s) if self.credentials is None else self.begin(timeout_s)

    def _open(self, timeout_s: float) -> socket.socket:
        found = socket.create_connection((self.host, self.port), timeout_s)
        try:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                found = self.tls.wrap_socket(found, server_hostname=self.host)
        except BaseException:
            found.close()
            raise
        return found


def _log_in(connected: socket.socket, credentials: Credentials) -> None:
    """Raises ConnectionRefusedError."""
    m = messages
    shaken = _ask(connected, "SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=credentials.mechanism))
    _check("SaslHandshake", credentials, shaken)
    steps = credentials.steps(secrets.token_hex(NONCE_BYTES))
    try:
        token = next(steps)
        while True:
            reply = _ask(connected, "SaslAuthenticate", 1, m.SaslAuthenticateRequest(auth_bytes=token))
            _check("SaslAuthenticate", credentials, reply)
            assert isinstance(reply, m.SaslAuthenticateResponse)
            token = steps.send(bytes(reply.auth_bytes))
    except StopIteration:
        return
    except MalformedMessage as error:
        raise ConnectionRefusedError(f"SaslAuthenticate as {credentials.user}: {error}") from None


def _check(api: str, credentials: Credentials, reply: Struct) -> None:
    code = int(getattr(reply, "error_code", 0))
    if code:
        raise ConnectionRefusedError(f"{api} as {credentials.user}: error {code}")


def _ask(connected: socket.socket, api: str, version: int, request: Struct) -> Struct:
    """Sends a request of the replay's own; returns the reply."""
    connected.sendall(headers.request_frame(api, version, request, 0, CLIENT_ID))
    response = f"{api}Response"
    try:
        reply = codec.parse(
            response, version, read_frame(connected), 4 + headers.response_header_version(response, version)
        )
    except MalformedMessage as error:
        raise ConnectionRefusedError(f"{api}: {error}") from None
    found: Struct = reply
    return found


def read_frame(connected: socket.socket) -> bytes:
    """A frame without its length. Raises ConnectionError, TimeoutError."""
    return _exactly(connected, int.from_bytes(_exactly(connected, 4), "big"))


def _exactly(connected: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = connected.recv(min(1 << 20, count - len(data)))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return bytes(data)
