"""Message sets of version 0 and 1 in a log: opened for timestamps, recovery and dumps."""

from __future__ import annotations

from typing import Any

from ..protocol import legacy

messages = legacy.decode


def is_valid(data: Any) -> bool:
    """Whether a single outer entry has the CRC it claims."""
    found = next(legacy.entries(data), None)
    return found is not None and found.crc_valid
