"""Request and response headers. Which version a message has is data: flexible messages have the newer one, and the
response to ApiVersions always the oldest, so that a client can read it before it knows what the broker speaks."""

from __future__ import annotations

from functools import cache
from typing import Any

from . import codec, schema

API_VERSIONS = 18


@cache
def request_header_version(request: str, version: int) -> int:
    return 2 if version in schema.load(request).flexible else 1


@cache
def response_header_version(response: str, version: int) -> int:
    loaded = schema.load(response)
    if loaded.api_key == API_VERSIONS:
        return 0
    return 1 if version in loaded.flexible else 0


@cache
def request_name(api_key: int) -> str | None:
    """The schema name of an API's request; None for a key that Kafka 4.4 does not have."""
    names = schema.index()["apis"].get(str(api_key))
    return names["request"] if names else None


@cache
def response_name(api_key: int) -> str:
    name: str = schema.index()["apis"][str(api_key)]["response"]
    return name


def parse_request_header(header_version: int, data: Any) -> tuple[Any, int]:
    """The header at the beginning of a frame, and where the message begins."""
    return codec.parse_from("RequestHeader", header_version, data)


def start_response(response: str, version: int, correlation_id: int) -> bytearray:
    """A frame's prefix, still zero, and the response header."""
    flexible = response_header_version(response, version)
    return bytearray(b"\0\0\0\0" + correlation_id.to_bytes(4, "big", signed=True) + (b"\0" if flexible else b""))
