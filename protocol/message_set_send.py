"""The fetch and multi-fetch requests of before Kafka 0.8, and their replies, MessageSetSend and MultiMessageSetSend.

    Fetch           type (1): 2 bytes, then one fetch
    MultiFetch      type (2): 2 bytes, number of fetches: 2 bytes, then the fetches
    a fetch         length of the topic: 2 bytes, topic, partition: 4 bytes, offset: 8 bytes, most bytes: 4 bytes

    MessageSetSend       total length: 4 bytes, error code: 2 bytes, messages
    MultiMessageSetSend  total length: 4 bytes, error code: 2 bytes, a MessageSetSend for each fetch

A total length does not count its own four bytes. Neither requests nor replies have a version or a correlation id.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from .buffers import Data
from .errors import MalformedMessage

FETCH, MULTI_FETCH = 1, 2
TOPIC_BYTES_MAX = 249
FETCHES_MAX = 1000
_SHORT = struct.Struct(">h")
_PLACE = struct.Struct(">iqi")
_HEAD = struct.Struct(">ih")


class OldestFetch(NamedTuple):
    """What is wanted of a partition."""

    topic: str
    partition: int
    offset: int
    bytes_max: int


def is_oldest_fetch(frame: Data) -> bool:
    """Whether a frame begins as one of these requests. Those of 0.8 have version 0 in place of a length or number."""
    if len(frame) < 2 * _SHORT.size:
        return False
    kind, length = struct.unpack_from(">hh", frame)
    return kind in (FETCH, MULTI_FETCH) and length > 0


def parse_fetches(frame: Data) -> list[OldestFetch]:
    """Returns the fetches of a frame. Raises MalformedMessage: it has other bytes than its lengths say, too many
    fetches, or a topic that cannot be.
    """
    (kind,) = _SHORT.unpack_from(frame)
    position, count = _SHORT.size, 1
    if kind == MULTI_FETCH:
        (count,) = _SHORT.unpack_from(frame, position)
        position += _SHORT.size
    if count > FETCHES_MAX:
        raise MalformedMessage("fetches", f"{count}, at most {FETCHES_MAX} are taken")
    found = []
    for number in range(count):
        one, position = _fetch(frame, position, f"fetches[{number}]")
        found.append(one)
    if position != len(frame):
        raise MalformedMessage("", f"{len(frame) - position} bytes after the last fetch")
    return found


def _fetch(frame: Data, position: int, path: str) -> tuple[OldestFetch, int]:
    start = position + _SHORT.size
    length = int.from_bytes(frame[position:start], "big", signed=True)
    end = start + length
    if not 0 < length <= TOPIC_BYTES_MAX or end + _PLACE.size > len(frame):
        raise MalformedMessage(f"{path}.topic", f"{length} bytes, which are too many or not there")
    try:
        topic = bytes(frame[start:end]).decode()
    except UnicodeDecodeError:
        raise MalformedMessage(f"{path}.topic", "it is not UTF-8") from None
    return OldestFetch(topic, *_PLACE.unpack_from(frame, end)), end + _PLACE.size


def message_set_send(error_code: int, message_set: bytes = b"") -> bytes:
    """Returns the reply to a fetch."""
    return _HEAD.pack(_SHORT.size + len(message_set), error_code) + message_set


def multi_message_set_send(sends: Iterable[bytes], error_code: int = 0) -> bytes:
    """Returns the reply to a multi-fetch. `sends`: those for its fetches, in their order."""
    return message_set_send(error_code, b"".join(sends))
