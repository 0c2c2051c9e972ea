"""The producer ids that a partition of `__transaction_state` names."""

from __future__ import annotations

from ..broker.shards.loader import entries_of
from ..coordinator.format import CoordinatorFormat, transaction_key_names
from ..storage.files import HandlePool
from .survey import ReadOnlyFiles, batches_from, segments_of


def largest_producer_id(path: str, end: int) -> int:
    """Returns the largest id up to an offset, -1 if there is none. Raises OSError."""
    pool, largest = HandlePool(ReadOnlyFiles()), -1
    decode = CoordinatorFormat(transaction_key_names(), {}).decode
    try:
        for segment, batch in batches_from(segments_of(pool, path), 0, end):
            for entry in entries_of(segment, batch, lambda offset, error: None):
                decoded = decode(entry.record) if entry is not None and entry.record is not None else None
                if decoded is not None and decoded[1] is not None:
                    value = decoded[1]
                    largest = max(largest, value.producer_id, value.previous_producer_id, value.next_producer_id)
    finally:
        pool.close_all()
    return largest
