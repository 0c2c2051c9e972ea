"""How large a reply with records is, for quotas."""

from __future__ import annotations

from ...protocol import codec
from ...protocol.structs import Struct
from ..net.context import Context

LENGTH_BYTES = 4  # of the frame, which count as Kafka counts them


def reply_size(context: Context, response: Struct) -> int:
    """Returns the bytes of a reply in its frame, with those of records."""
    head = bytearray()
    parts = codec.build_parts(type(response).__name__, context.version, response, head)
    return LENGTH_BYTES + len(head) + sum(len(part) for _, part in parts)
