"""A connection to a broker, which speaks the newest versions of the protocol that keep the semantics of 0.8.

A broker that knows ApiVersions (0.10 and later) says what it has. An older one closes the connection, or is silent
(0.9): it is asked with the versions of 0.8.2. OffsetCommit and OffsetFetch 0, which mean ZooKeeper, are not used: the
consumer writes there itself. ListOffsets 0 alone returns the offsets before a time, and so it is used where it is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Any

from ..protocol import codec, headers, messages, schema
from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct

OF_0_8_2 = {
    "Produce": 0,
    "Fetch": 0,
    "ListOffsets": 0,
    "Metadata": 0,
    "OffsetCommit": 1,
    "OffsetFetch": 1,
    "FindCoordinator": 0,
}
# the newest that name topics, and know nothing of transactions or sessions unless told
NEWEST = {
    "Produce": 12,
    "Fetch": 12,
    "ListOffsets": 9,
    "Metadata": 9,
    "OffsetCommit": 8,
    "OffsetFetch": 7,
    "FindCoordinator": 3,
    "ListGroups": 4,
    "DescribeGroups": 0,
}
PROBE_S = 2.0  # how long the answer to ApiVersions is awaited
FRAME_BYTES_MAX = 1 << 30


class Connection:
    """Opens when it is first used, and again after an error. For one thread at a time, which a lock sees to.

    All methods raise OSError when the broker does not answer, and MalformedMessage for what is no answer.
    """

    def __init__(
        self, host: str, port: int, client_id: str = "", timeout_s: float = 30.0, buffer_bytes: int = 65536
    ) -> None:
        self.host, self.port = host, port
        self._client_id, self._timeout_s, self._buffer_bytes = client_id, timeout_s, buffer_bytes
        self._socket: socket.socket | None = None
        self._versions: dict[str, int] = {}
        self._correlation_id = 0
        self._lock = threading.RLock()

    def version_of(self, name: str) -> int:
        """Returns the version in which an API is asked."""
        with self._lock:
            self._opened()
            return self._versions[name]

    def ask(self, name: str, version: int, request: Struct) -> Any:
        """Sends a request, and returns the reply."""
        with self._lock:
            try:
                self._send(name, version, request)
                return self._reply(name, version)
            except (OSError, MalformedMessage):
                self.close()
                raise

    def tell(self, name: str, version: int, request: Struct) -> None:
        """Sends a request that is not answered: Produce with acks=0."""
        with self._lock:
            try:
                self._send(name, version, request)
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def interrupt(self) -> None:
        """Lets a thread that waits for a reply see an end of the connection."""
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):  # it is closed already
                sock.shutdown(socket.SHUT_RDWR)

    def _opened(self) -> socket.socket:
        if self._socket is None:
            self._connect()
            try:
                self._versions = self._asked_versions()
            except OSError:
                self.close()
                self._connect()
                self._versions = OF_0_8_2
            except MalformedMessage:
                self.close()
                raise
        assert self._socket is not None
        return self._socket

    def _connect(self) -> None:
        try:
            self._socket = socket.create_connection((self.host, self.port), self._timeout_s)
        except (OverflowError, ValueError) as error:  # a port or a name that cannot be, as some broker told it
            raise ConnectionError(f"{self.host!r}:{self.port}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer_bytes)

    def _asked_versions(self) -> dict[str, int]:
        assert self._socket is not None
        self._socket.settimeout(min(PROBE_S, self._timeout_s))
        self._send("ApiVersions", 0, messages.ApiVersionsRequest())
        reply = self._reply("ApiVersions", 0)
        self._socket.settimeout(self._timeout_s)
        offered = {one.api_key: (one.min_version, one.max_version) for one in reply.api_keys}
        versions = {}
        for name, newest in NEWEST.items():
            low, high = offered.get(schema.load(f"{name}Request").api_key, (0, -1))
            versions[name] = 0 if name == "ListOffsets" and low == 0 else min(high, newest)
            if versions[name] < low:
                raise MalformedMessage("api_keys", f"the broker has no version of {name} that this client knows")
        return versions

    def _send(self, name: str, version: int, request: Struct) -> None:
        to = self._socket if name == "ApiVersions" else self._opened()
        assert to is not None
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        to.sendall(headers.request_frame(name, version, request, self._correlation_id, self._client_id))

    def _reply(self, name: str, version: int) -> Any:
        (size,) = struct.unpack(">i", self._read(4))
        if not 4 <= size <= FRAME_BYTES_MAX:
            raise MalformedMessage("frame", f"a reply of {size} bytes")
        frame = self._read(size)
        if struct.unpack_from(">i", frame)[0] != self._correlation_id:
            raise MalformedMessage("correlation_id", "the reply is to another request")
        start = 5 if headers.response_header_version(f"{name}Response", version) else 4
        return codec.parse(f"{name}Response", version, frame, start)

    def _read(self, count: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(min(1 << 20, count - len(data)))
            if not part:
                raise ConnectionError(f"{self.host}:{self.port} closed the connection")
            data += part
        return bytes(data)
