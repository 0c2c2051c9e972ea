"""Epochs that wrap like Java's int: a record in the log may contain the largest one,
which must not block its successors.
"""

from __future__ import annotations

INT_MAX = 2**31 - 1


def after(epoch: int) -> int:
    """Returns the next epoch or generation."""
    return epoch + 1 if epoch < INT_MAX else -INT_MAX - 1
