"""Rebuilds indexes that are found damaged while their log is in use, in steps.

Kafka looks at its indexes when it starts, and trusts them afterwards. Here each entry that was read from a file is
compared with the log when it is first used. What needs a damaged index gets KAFKA_STORAGE_ERROR until the index is
rebuilt: clients ask again. Everything else goes on, appends too.
"""

from __future__ import annotations

from ...storage.log import Log
from ...storage.rebuilding import rebuild_damaged
from ..turn import Turn
from .partition import Partition
from .partitions import Partitions


class IndexRepairs:
    """The repairs of all open logs; one at a time for each."""

    def __init__(self, turn: Turn, partitions: Partitions) -> None:
        self.turn = turn
        self.partitions = partitions
        self._busy: dict[Log, None] = {}

    def begin(self, partition: Partition, log: Log) -> None:
        """Repairs the damaged indexes of a log, while it is the partition's."""
        if log not in self._busy:
            self._busy[log] = None
            self.turn.background(self._repair(partition, log))

    async def _repair(self, partition: Partition, log: Log) -> None:
        try:
            await self.turn.next()
            for _ in rebuild_damaged(log):
                await self.turn.next()
                if self.turn.stopped or partition.log is not log:
                    return
        except OSError as error:
            log.damaged.clear()  # whoever needs them next finds them damaged again
            if partition.log is log:
                self.partitions.io_failed(partition, error)
        finally:
            del self._busy[log]
        partition.disturb()
        self.turn.moved(partition)
