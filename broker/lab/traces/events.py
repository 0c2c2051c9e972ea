"""The lines of a trace (format 1): docs/reference/trace.md has every field.

A line is made of pieces of text that are made once: what is the same for all requests of a connection, and for all
requests of a version of an API. So an event costs a few microseconds.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final, Literal, cast

from ....protocol import codec, headers
from ....protocol.buffers import Data
from ....protocol.frame_text import FrameText, frame_text
from ....protocol.json_text import NULL, JsonWriter, Masks, json_writer, may_have_secrets
from ....protocol.text import Json
from ....protocol.varints import UNREADABLE
from ...config.secrets import MASK, SENSITIVE, is_secret
from ...peer import Peer
from ...unsupported_version import is_of_version_0
from ..sent_replies import LENGTH, Holes, message_of

FORMAT: Final = 1
Raw = Literal["none", "frames", "secrets"]
MASKS: Final = Masks(SENSITIVE, is_secret, MASK)
NO_MESSAGE: Final = ValueError, TypeError, AttributeError
"""What is raised for bytes that are no message, because a fault has damaged them: MalformedMessage is a ValueError."""
_MASKED: Final = f'"{MASK}"'


class Shape:
    """What all requests of a version of an API have in common. Functions are compiled when they are first used."""

    def __init__(self, key: int, version: int) -> None:
        request, response = cast(str, headers.request_name(key)), headers.response_name(key)
        self.text = f'"api":"{request.removesuffix("Request")}","key":{key},"version":{version}'
        self.may_have_secrets = may_have_secrets(request, MASKS) or may_have_secrets(response, MASKS)
        self._key, self._request, self._response, self._version = key, request, response, version
        self._header_version = headers.request_header_version(request, version)
        self._response_start = 2 * LENGTH + headers.response_header_version(response, version)

    @cached_property
    def _request_text(self) -> JsonWriter:
        return json_writer(self._request, self._version, MASKS)

    @cached_property
    def _response_text(self) -> JsonWriter:
        return json_writer(self._response, self._version, MASKS)

    @cached_property
    def _request_frame(self) -> FrameText:
        return frame_text(self._request, self._version, MASKS)

    @cached_property
    def _response_frame(self) -> FrameText:
        return frame_text(self._response, self._version, MASKS)

    def request_of(self, frame: Data) -> str:
        """The text of the request in a frame without length. Raises MalformedMessage."""
        _, start = headers.client_id_of(self._header_version, frame)
        try:
            return self._request_frame(frame, start, ())
        except UNREADABLE:
            return self._request_text(codec.parse(self._request, self._version, frame, start))

    def response_of(self, data: Data, holes: Holes | None) -> str:
        """The text of the reply in a frame with its length, without records in files. Raises MalformedMessage."""
        if is_of_version_0(self._response, self._version, data):
            return shape(self._key, 0).response_of(data, holes)
        try:
            return self._response_frame(data, self._response_start, holes or ())
        except UNREADABLE:
            return self._response_text(message_of(self._response, self._version, data, holes))


@cache
def shape(key: int, version: int) -> Shape:
    return Shape(key, version)


def connection_text(number: int, peer: Peer, client_id: str | None, node: Mapping[str, Json]) -> str:
    """The fields of a connection, and of who is at its other end. `node`: the field of its node, if there are several
    nodes.
    """
    software, software_version = peer.software
    known: dict[str, Json] = {
        "connection": number,
        "peer": peer.address,
        "listener": peer.listener,
        **node,
        "principal": peer.principal,
        "client_id": client_id,
        "software": software,
        "software_version": software_version,
    }
    return json.dumps(known, separators=(",", ":"))[1:-1]


def line(head: str, text: str) -> bytes:
    """An event of an exchange: its fields, and the text of the message."""
    return f'{{{head},"message":{text}}}\n'.encode()


def with_raw(made: bytes, frame: Data) -> bytes:
    """Adds the bytes of a frame, without its length, to an event."""
    return b'%b,"raw":"%b"}\n' % (made[:-2], binascii.b2a_base64(frame, newline=False))


def may_show_raw(raw: Raw, text: str, of: Shape) -> bool:
    """Whether the bytes of a frame are written: not if a value of it is masked, or would be if it were decoded."""
    if raw != "frames":
        return raw == "secrets"
    return not of.may_have_secrets if text == NULL else _MASKED not in text


def plain_line(event: str, **values: Json) -> bytes:
    """An event that is rare."""
    return json.dumps({"event": event, **values}, separators=(",", ":")).encode() + b"\n"


def base64_of(frame: Data) -> str:
    return binascii.b2a_base64(frame, newline=False).decode()


def start_of(frame: Data) -> tuple[int | None, int | None, int | None]:
    """API key, version and correlation id of a frame; None for those that it is too short for."""
    if len(frame) < 8:
        return None, None, None
    key, version, correlation_id = (
        int.from_bytes(frame[start:end], "big", signed=True) for start, end in ((0, 2), (2, 4), (4, 8))
    )
    return key, version, correlation_id
