"""A client that sends exactly the bytes that a test gives it, over a plain socket, and decodes the replies."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from ottla.protocol import codec, headers, messages, schema
from ottla.protocol.frames import framed


class Closed(Exception):
    """The broker closed the connection."""


def request_frame(
    name: str, version: int, message: Any, correlation_id: int = 7, client_id: str | None = "wire"
) -> bytes:
    """A frame with header and message; `name` as in `Metadata`."""
    request = f"{name}Request"
    key = schema.load(request).api_key or 0
    header = messages.RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    out = codec.build("RequestHeader", headers.request_header_version(request, version), header)
    return framed(codec.build(request, version, message, out))


class Wire:
    """One connection."""

    def __init__(
        self, bootstrap_servers: str, timeout: float = 120.0, client_id: str | None = "wire", source: str = ""
    ) -> None:
        """`source`: the local address that the connection comes from."""
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next = 0
        self.client_id = client_id

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                chunk = self.socket.recv(min(1 << 20, count - len(data)))
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise Closed
            data += chunk
        return bytes(data)

    def read_into(self, buffer: memoryview) -> memoryview:
        """Reads a frame to the beginning of a buffer, which must have room for it; returns it there."""
        (size,) = struct.unpack(">i", self.read(4))
        filled = 0
        while filled < size:
            count = self.socket.recv_into(buffer[filled:size])
            if not count:
                raise Closed
            filled += count
        return buffer[:size]

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.read(4))
        return self.read(size)

    def ask(self, name: str, version: int, message: Any) -> Any:
        """Sends a request and returns the decoded reply. Closed when the broker hangs up."""
        self.say(name, version, message)
        return self.reply(name, version)

    def say(self, name: str, version: int, message: Any) -> None:
        """Sends a request whose reply will be read later."""
        self._next += 1
        self.send(request_frame(name, version, message, self._next, self.client_id))

    def reply(self, name: str, version: int) -> Any:
        frame = self.read_frame()
        response = f"{name}Response"
        start = 5 if headers.response_header_version(response, version) else 4
        return codec.parse(response, version, frame, start)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
