"""The epochs of fetch sessions (KIP-227) and share sessions (KIP-932).

A request with the initial epoch opens a session, one with the final epoch closes it; epochs in between count up from 1
and wrap to 1.
"""

from __future__ import annotations

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
FIRST_EPOCH = 1
EPOCH_MAX = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """Returns the epoch of the next request of a session."""
    return FIRST_EPOCH if epoch == EPOCH_MAX else epoch + 1
