"""Request and response headers. The schema says which version of the header a message has: flexible messages have the
newer one. The response to ApiVersions always has the oldest, so that a client can read it before it knows what the
broker supports.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from . import codec, messages, schema
from .buffers import Data
from .frames import framed
from .outlines import outline
from .structs import Struct

API_VERSIONS = 18
HEADER_ELEMENTS_MAX = 100  # tagged fields; no version has any yet
FLEXIBLE_SINCE = 2  # of the request header
CLIENT_ID_CHARS_MAX = 32_767
_CORRELATION_ID = struct.Struct(">i")
_CLIENT_ID = 10  # where the text of the client id begins, after its length


@cache
def request_header_version(request: str, version: int) -> int:
    return 2 if version in outline(request).flexible else 1


@cache
def response_header_version(response: str, version: int) -> int:
    loaded = outline(response)
    if loaded.api_key == API_VERSIONS:
        return 0
    return 1 if version in loaded.flexible else 0


@cache
def request_name(api_key: int) -> str | None:
    """Returns the schema name of an API's request; None for a key that Kafka 4.4 does not have."""
    names = schema.index()["apis"].get(str(api_key))
    return names["request"] if names else None


@cache
def response_name(api_key: int) -> str:
    name: str = schema.index()["apis"][str(api_key)]["response"]
    return name


def parse_request_header(header_version: int, data: Data) -> tuple[Any, int]:
    """Returns the header at the beginning of a frame, and the position of the message."""
    return codec.parse_from("RequestHeader", header_version, data, 0, HEADER_ELEMENTS_MAX)


def client_id_of(header_version: int, data: Data) -> tuple[str | None, int]:
    """Returns the client id of the header at the beginning of a frame, and the position of the message: the fields that
    the frame's first eight bytes do not have. Raises MalformedMessage.
    """
    end = _CLIENT_ID + int.from_bytes(data[_CLIENT_ID - 2 : _CLIENT_ID], "big")
    is_flexible = header_version >= FLEXIBLE_SINCE
    # a null or a long string, tagged fields, or a frame that ends too early
    if end + is_flexible > len(data) or end - _CLIENT_ID > CLIENT_ID_CHARS_MAX or (is_flexible and data[end]):
        header, start = parse_request_header(header_version, data)
        return header.client_id, start
    return str(data[_CLIENT_ID:end], "utf-8", "replace"), end + is_flexible


def request_frame(api: str, version: int, message: Struct, correlation_id: int, client_id: str | None) -> bytes:
    """Returns a request of an API (`Metadata`) with its header, as a frame."""
    name = f"{api}Request"
    header = messages.RequestHeader(
        request_api_key=outline(name).api_key or 0,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    out = codec.build("RequestHeader", request_header_version(name, version), header)
    return framed(codec.build(name, version, message, out))


def start_response(response: str, version: int, correlation_id: int) -> bytearray:
    """Returns the prefix of a frame, still zero, and the response header."""
    head = bytearray(9 if response_header_version(response, version) else 8)
    _CORRELATION_ID.pack_into(head, 4, correlation_id)
    return head
