"""The aborted transactions of a log, from the indexes of its segments. Index entries from a file are verified against
the log before use; one that differs from it raises IndexDamaged.
"""

from __future__ import annotations

from ..protocol import records
from ..protocol.control import marker_of
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt
from .index import AbortedTransaction, Overlap, decode_aborted
from .layout import TXN_INDEX, TXN_INDEX_ENTRY
from .log import Log

UNLIMITED = 2**63 - 1
LOADED_MAX = 5000  # entries of a file whose order is checked
CHECKED_MAX = 256  # entries that are compared with the log at a time
MANY = "too many entries to compare them with the log"


def aborted_between(log: Log, offset: int, upper: int) -> list[AbortedTransaction]:
    """Returns the aborted transactions that overlap the offsets from `offset` to `upper`,
    in the order in which they ended. Raises IndexDamaged.
    """
    return some_aborted(log, offset, upper, UNLIMITED)[0]


def some_aborted(log: Log, offset: int, upper: int, limit: int) -> tuple[list[AbortedTransaction], int]:
    """Like `aborted_between`, but if more than `limit` transactions end there, only up to a lower offset, which is
    returned too; transactions that are open there may exceed the limit.
    """
    found: list[AbortedTransaction] = []
    for slot in range(max(log.floor(offset), 0), len(log.segments)):
        some = _of_segment(log, slot, offset, upper, limit - len(found))
        found += some.found
        upper = some.upper
        if some.is_all:
            break
    return found, upper


def packed_between(log: Log, offset: int, upper: int) -> list[bytes]:
    """Returns index entries, as on disk, among which are those of `aborted_between`: copying them takes less time than
    reading them, which `unpacked` does elsewhere. Raises IndexDamaged.
    """
    found = []
    for slot in range(max(log.floor(offset), 0), len(log.segments)):
        index = log.segments[slot].aborted
        if not len(index):
            continue
        if index.entry(0).last_stable_offset >= upper:  # all transactions that end later begin later
            _verify(log, slot, range(1))
            found.append(bytes(index.data[: TXN_INDEX_ENTRY.size]))
            break
        _verify(log, slot, range(len(index)))
        found.append(bytes(index.data))
    return found


def unpacked(packed: list[bytes], offset: int, upper: int) -> list[AbortedTransaction]:
    """Returns the transactions of packed entries that overlap the offsets from `offset` to `upper`."""
    return [
        one for data in packed for one in decode_aborted(data) if one.last_offset >= offset and one.first_offset < upper
    ]


def _of_segment(log: Log, slot: int, offset: int, upper: int, limit: int) -> Overlap:
    index = log.segments[slot].aborted
    _check_order(log, slot)
    some = index.overlapping(offset, upper, limit)
    _verify(log, slot, some.used)
    return some


def _verify(log: Log, slot: int, used: range) -> None:
    """Compares entries from a file with the log before use; what would take long is rebuilt instead."""
    _check_order(log, slot)
    segment, index = log.segments[slot], log.segments[slot].aborted
    loaded = range(used.start, min(used.stop, index.loaded))
    unchecked = [entry for entry in loaded if entry not in index.checked]
    if len(unchecked) > CHECKED_MAX:
        raise segment.damaged(TXN_INDEX, MANY)
    for entry in unchecked:
        if not _is_true(log, slot, index.entry(entry)):
            raise segment.damaged(TXN_INDEX, "an entry differs from the log")
        index.checked.add(entry)


def _check_order(log: Log, slot: int) -> None:
    """Checks the entries from a file among themselves, once."""
    segment, index = log.segments[slot], log.segments[slot].aborted
    if index.loaded and not index.checked:
        end_offset = log.bases[slot + 1] if slot + 1 < len(log.bases) else log.end_offset
        if index.loaded > LOADED_MAX:
            raise segment.damaged(TXN_INDEX, MANY)
        if not index.is_sane(segment.base_offset, end_offset):
            raise segment.damaged(TXN_INDEX, "the entries do not ascend")


def _is_true(log: Log, slot: int, transaction: AbortedTransaction) -> bool:
    """Whether an index entry agrees with the log: its marker is in the segment, its first batch (if not removed) is
    where the entry says, and no transaction of a later segment began before its last stable offset.
    """
    segment = log.segments[slot]
    if any(later.aborted.earliest < transaction.last_stable_offset for later in log.segments[slot + 1 :]):
        return False
    batch = segment.find(transaction.last_offset)
    header = None if batch is None else batch.header
    if batch is None or header is None or not header.is_control or header.base_offset != transaction.last_offset:
        return False
    if header.producer_id != transaction.producer_id:
        return False
    try:
        markers = [marker_of(record) for record in records.decode(segment.read_batch(batch), BatchAt(0, header))]
    except MalformedMessage:
        return False
    if len(markers) != 1 or markers[0] is None or markers[0].committed:
        return False
    return _begins_where_it_says(log, transaction)


def _begins_where_it_says(log: Log, transaction: AbortedTransaction) -> bool:
    if transaction.first_offset < log.start_offset:
        return True
    first = log.segments[max(log.floor(transaction.first_offset), 0)].find(transaction.first_offset)
    header = None if first is None else first.header
    if first is None or first.base_offset != transaction.first_offset:
        return log.settings.is_compacted and (first is None or first.base_offset > transaction.first_offset)
    return (
        header is not None
        and header.is_transactional
        and not header.is_control
        and header.producer_id == transaction.producer_id
    )
