"""Reads message sets of versions 0 and 1 in a log, for timestamps, recovery and dumps."""

from __future__ import annotations

from ..protocol import legacy
from ..protocol.buffers import Data

contents = legacy.contents


def is_valid(data: Data) -> bool:
    """Whether the CRC of a single outer entry is right."""
    found = next(legacy.entries(data), None)
    return found is not None and found.crc_valid
