"""Compaction of message sets of versions 0 and 1: what stays of an entry, which may be a compressed message."""

from __future__ import annotations

from collections.abc import Mapping

from ..protocol import legacy
from ..protocol.errors import MalformedMessage


def last_offsets(data: bytes) -> dict[bytes, int]:
    """Returns the last offset of each key in an entry; none if it cannot be read: it supersedes nothing then."""
    found: dict[bytes, int] = {}
    try:
        for some in legacy.contents(data):
            for message in some:
                if message.key is not None:
                    found[message.key] = message.offset
    except MalformedMessage:
        return {}
    return found


def filtered(data: bytes, latest: Mapping[bytes, int], keeps_deletes: bool) -> bytes | None:
    """Returns what stays of an entry; None for nothing. One that cannot be read stays as it is.

    `latest`: the last offset of each key. `keeps_deletes`: whether messages without a value stay.
    """
    (entry,) = legacy.entries(data)
    kept, count = [], 0
    try:
        for some in legacy.contents(data):
            count += len(some)
            kept += [one for one in some if _stays(one, latest, keeps_deletes)]
    except MalformedMessage:
        return data
    if len(kept) == count:
        return data
    return legacy.encode(kept, entry.codec) if kept else None


def _stays(message: legacy.Message, latest: Mapping[bytes, int], keeps_deletes: bool) -> bool:
    if message.key is None or latest.get(message.key, -1) > message.offset:
        return False
    return message.value is not None or keeps_deletes
