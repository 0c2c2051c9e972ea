"""The reply to a version of ApiVersions that a broker does not have: it is of version 0, which every client reads."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from ..protocol import codec, headers, messages
from ..protocol.buffers import Data
from ..protocol.errors import Errors
from .replies import Reply

RESPONSE: Final = "ApiVersionsResponse"
Listed = messages.ApiVersionsResponse.ApiVersion
_LENGTH: Final = struct.Struct(">i")
_ERROR: Final = slice(8, 10)  # behind the length and the correlation id
_UNSUPPORTED: Final = Errors.UNSUPPORTED_VERSION.to_bytes(2, "big")


def unsupported_version(correlation_id: int, listed: Iterable[Listed]) -> Reply:
    """Makes the reply. `listed`: the APIs that it has, which is ApiVersions only (KIP-511), or none before."""
    head = headers.start_response(RESPONSE, 0, correlation_id)
    found = messages.ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=list(listed))
    codec.build(RESPONSE, 0, found, head)
    _LENGTH.pack_into(head, 0, len(head) - _LENGTH.size)
    return Reply(head, [])


def is_of_version_0(response: str, version: int, data: Data) -> bool:
    """Whether a reply, with its length, is such a one in place of one of the version that was asked for."""
    return version > 0 and response == RESPONSE and bytes(data[_ERROR]) == _UNSUPPORTED
