"""Leader epochs of a log, with the first offset of each. Pure; the log keeps them in `leader-epoch-checkpoint`."""

from __future__ import annotations

from bisect import bisect_right

UNDEFINED_EPOCH = UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """Pairs of an epoch and its first offset, both ascending."""

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries or []

    @property
    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Records that `epoch` begins at `start_offset`; returns False if that is already known."""
        if self.entries and self.entries[-1][0] >= epoch:
            return False
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end: int, latest: int | None = None) -> tuple[int, int]:
        """Returns the largest epoch not above `epoch`, and the offset at which it ends (KIP-101, KIP-279). `latest`:
        the last epoch of a leader that has not heard of later ones.
        """
        latest = self.latest if latest is None else latest
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == latest:
            return epoch, log_end
        if not self.entries or epoch > latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        slot = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        if slot == 0:  # before the first known epoch: it ended where that one begins
            return epoch, self.entries[0][1]
        return self.entries[slot - 1][0], self.entries[slot][1]

    def epoch_at(self, offset: int) -> int:
        """Returns the epoch that wrote `offset`."""
        slot = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[slot - 1][0] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        before = len(self.entries)
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
        return len(self.entries) < before

    def truncate_from_start(self, start_offset: int) -> bool:
        """Keeps one entry for the log start, moved to the new start offset."""
        slot = bisect_right(self.entries, start_offset, key=lambda entry: entry[1])
        if slot == 0 or (self.entries[slot - 1][1] == start_offset and slot == 1):
            return False
        changed = slot > 1 or self.entries[0][1] != start_offset
        self.entries[:slot] = [(self.entries[slot - 1][0], start_offset)]
        return changed
