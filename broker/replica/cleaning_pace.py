"""How fast the logs are compacted: what a node's compactions have read and written faster than the node allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

PIECES_PER_SECOND = 10
LOOK_AGAIN_MS = 1000  # a change of the rate takes effect within this time


@dataclass
class Pace:
    """The pace of a node's compactions, at any rate in bytes a second. `owed_bytes`: those that were ahead of it."""

    owed_bytes: float = 0
    at_ms: int = 0

    def wait_ms(self, rate: float, now_ms: int) -> int:
        """Returns how long to wait before the next piece, or before looking again; 0 if no piece has to wait."""
        if rate > 0:
            self.owed_bytes = max(0, self.owed_bytes - rate * (now_ms - self.at_ms) / 1000)
        self.at_ms = now_ms
        if not self.owed_bytes:
            return 0
        return LOOK_AGAIN_MS if rate <= 0 else math.ceil(min(LOOK_AGAIN_MS, 1000 * self.owed_bytes / rate))
