"""A connection to a broker."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import struct
from typing import Final

from ..addresses import Address
from ..comparing.login import NONCE_BYTES, OLD_S, Credentials
from ..protocol import codec, headers
from ..protocol import messages as m
from ..protocol.errors import MalformedMessage
from ..protocol.frames import framed
from ..protocol.structs import Struct

FRAME_BYTES_MAX: Final = 104_857_600  # Kafka's socket.request.max.bytes
CONNECT_S: Final = 10.0
FEATURES_SINCE: Final = 3  # version of ApiVersions
CLIENT_ID: Final = "ottla-compare"
_LENGTH = struct.Struct(">i")
GONE = (OSError, EOFError, MalformedMessage, asyncio.TimeoutError)  # IncompleteReadError is an EOFError


async def read_frame(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Returns a frame without its length. Raises EOFError at the end, MalformedMessage beyond the limit."""
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if size < 0 or size > limit:
        raise MalformedMessage("frame", f"a length of {size}, the limit is {limit}")
    return await reader.readexactly(size)


class Upstream:
    """One connection to a broker; its methods raise the exceptions of `GONE`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def begin(cls, address: Address, tls: ssl.SSLContext | None) -> Upstream:
        """A connection for requests of the proxy's own: like that of a good client, it begins with ApiVersions."""
        found = await cls.connect(address, tls)
        try:
            await found.ask("ApiVersions", 0, m.ApiVersionsRequest())
        except BaseException:
            found.close()
            raise
        return found

    @classmethod
    async def connect(cls, address: Address, tls: ssl.SSLContext | None) -> Upstream:
        opening = asyncio.open_connection(address.host, address.port, ssl=tls)
        return cls(*await asyncio.wait_for(opening, CONNECT_S))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def read(self) -> bytes:
        return await read_frame(self._reader, 2**31 - 1)

    async def asked(self, frame: bytes, timeout_s: float) -> bytes:
        """The reply to a client's request. Nothing else may be on the way."""
        await self.send(framed(frame))
        return await asyncio.wait_for(self.read(), timeout_s)

    async def ask(self, api: str, version: int, message: Struct, timeout_s: float = CONNECT_S) -> Struct:
        """Sends a request of the proxy's own. Nothing else may be on the way."""
        await self.send(headers.request_frame(api, version, message, 0, CLIENT_ID))
        frame = await asyncio.wait_for(self.read(), timeout_s)
        response = f"{api}Response"
        _, start = codec.parse_from("ResponseHeader", headers.response_header_version(response, version), frame)
        found: Struct = codec.parse(response, version, frame, start)
        return found

    async def log_in(self, credentials: Credentials) -> None:
        """Raises MalformedMessage if the broker refuses."""
        shaken = await self.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=credentials.mechanism))
        _check(shaken)
        steps = credentials.steps(secrets.token_hex(NONCE_BYTES))
        token = next(steps)
        while True:
            found = await self.ask("SaslAuthenticate", 1, m.SaslAuthenticateRequest(auth_bytes=token))
            assert isinstance(found, m.SaslAuthenticateResponse)
            _check(found)
            try:
                token = steps.send(bytes(found.auth_bytes))
            except StopIteration:
                return

    def close(self) -> None:
        self._writer.close()


def _check(reply: Struct) -> None:
    code = int(getattr(reply, "error_code", 0))
    if code:
        raise MalformedMessage("SaslAuthenticate", f"B refused the credentials with error {code}")


async def versions_of(address: Address, tls: ssl.SSLContext | None) -> m.ApiVersionsResponse | None:
    """The versions and features of a broker; None if it does not tell them, as before Kafka 0.10: 0.8 closes the
    connection, 0.9 is silent. Each is asked on a connection of its own: before a log-in, a broker answers one
    ApiVersions only. Raises ConnectionError, which names the broker.
    """
    try:
        return await _asked_versions(address, tls)
    except GONE as error:
        words = str(error) or f"no answer within {CONNECT_S:g} seconds"
        if isinstance(error, EOFError | MalformedMessage):
            words = f"it does not answer in Kafka's protocol ({words}); it may expect TLS"
        raise ConnectionError(f"cannot reach {address}: {words}") from None


async def _asked_versions(address: Address, tls: ssl.SSLContext | None) -> m.ApiVersionsResponse | None:
    upstream = await Upstream.connect(address, tls)
    try:
        first = await upstream.ask("ApiVersions", 0, m.ApiVersionsRequest(), OLD_S)
    except (EOFError, ConnectionError, TimeoutError):
        await _asked(address, tls, "Metadata", 0, m.MetadataRequest(topics=[]))
        return None
    finally:
        upstream.close()
    assert isinstance(first, m.ApiVersionsResponse)
    highest = max((one.max_version for one in first.api_keys if one.api_key == headers.API_VERSIONS), default=0)
    if highest < FEATURES_SINCE:
        return first
    request = m.ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")
    found = await _asked(address, tls, "ApiVersions", FEATURES_SINCE, request)
    assert isinstance(found, m.ApiVersionsResponse)
    return found


async def _asked(address: Address, tls: ssl.SSLContext | None, api: str, version: int, request: Struct) -> Struct:
    """The reply to a request on a connection of its own."""
    upstream = await Upstream.connect(address, tls)
    try:
        return await upstream.ask(api, version, request)
    finally:
        upstream.close()
