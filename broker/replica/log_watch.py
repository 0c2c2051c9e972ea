"""Hands on what logs need to those who look after them. Their rounds look at these logs only, so that a broker that has
nothing to do needs no more of a processor with many partitions than with few.
"""

from __future__ import annotations

from ...storage.log import Log
from .ageing import Ageing
from .cleaner import Cleaner
from .flusher import Flusher
from .index_repairs import IndexRepairs
from .partition import Partition
from .partitions import Partitions


class LogWatch:
    """The `Watch` of all open logs. One that is no partition's any more needs nothing, and does not matter to a later
    one of that name: what is noted of a partition is what its own log needs.
    """

    def __init__(
        self, partitions: Partitions, repairs: IndexRepairs, flusher: Flusher, ageing: Ageing, cleaner: Cleaner
    ) -> None:
        self.partitions = partitions
        self.repairs = repairs
        self.flusher = flusher
        self.ageing = ageing
        self.cleaner = cleaner

    def follow(self, partition: Partition, log: Log) -> None:
        """The log of a partition was opened."""
        log.report_to(self)
        self.configured(partition)

    def configured(self, partition: Partition) -> None:
        """The settings of a log may be others."""
        self.flusher.note(partition)
        self.cleaner.note(partition)

    def damaged(self, topic: str, partition: int) -> None:
        found = self.partitions.by_name.get((topic, partition))
        if found is not None and found.log is not None:
            self.repairs.begin(found, found.log)

    def unflushed(self, topic: str, partition: int) -> None:
        found = self.partitions.by_name.get((topic, partition))
        if found is not None:
            self.flusher.note(found)

    def removed(self, topic: str, partition: int) -> None:
        found = self.partitions.by_name.get((topic, partition))
        if found is not None:
            self.ageing.note(found)
