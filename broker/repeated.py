"""What serves requests of a connection that are like an earlier one without decoding them (`apis/_repeated.py`): how
it says that a frame has to be decoded, and how much all connections keep for it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from .clock import Cancellable


class Unlike(Enum):
    """What serves frames (`peer.Repeated`) returns for a frame that it does not serve."""

    DECODE = "the frame has to be decoded"


DECODE: Final = Unlike.DECODE
Served = Cancellable | Unlike | None
"""What is pending after a frame was served, if anything is, or DECODE."""


class KeptFrames:
    """How many bytes of frames the connections of a broker keep."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0
