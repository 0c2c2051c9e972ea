"""Leaders that are cut off from the controller, and do not know that others have been elected.

Such a node goes on with its old epoch, as in Kafka: clients that hear of no other leader read from it what was
committed, and write to it what will be lost. It has no log of its own here: what it takes is validated and counted,
and not kept, but for what its producers have sent last, which they may send again. With acks=all it waits for followers
that do not come.
"""

from __future__ import annotations

from ...protocol import messages
from ...protocol.buffers import WritableData
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt, BatchHeader
from ...storage.producers import Verification
from ..steps import Allowance
from .appender import Appender, Batch, Gathering, answer_repeated
from .partition import NEVER, Partition, StaleLeader


class StaleAppender(Appender):
    """What a node that is cut off appends with."""

    def __init__(self, appender: Appender, node_id: int) -> None:
        super().__init__(
            appender.turn,
            appender.settings,
            appender.partitions,
            appender.high_watermarks,
            appender.reopen,
            appender.limits,
        )
        self.append_to_log = appender.append_to_log
        self.node_id = node_id

    def append(
        self,
        partition: Partition,
        data: WritableData,
        at: BatchAt,
        acks: int,
        answer: messages.ProduceResponse.PartitionProduceResponse,
        verification: Verification | None,
        allowance: Allowance,
        opened: Batch | ApiError | None = None,
        gathering: Gathering | None = None,
    ) -> int:
        """Like that of leaders; what a stale one takes is lost, and acks=all waits in vain."""
        stale = partition.stale.get(self.node_id)
        if stale is None:
            return Appender.append(self, partition, data, at, acks, answer, verification, allowance, opened, gathering)
        log = partition.open_log()
        if acks == -1 and stale.is_under_min_isr:
            raise ApiError(Errors.NOT_ENOUGH_REPLICAS)
        _, at = self.validated(partition, log.settings, data, at, allowance, self.schedule.now_ms(), opened)
        self._take(partition, stale, at.header, answer)
        return NEVER

    def _take(
        self,
        partition: Partition,
        stale: StaleLeader,
        header: BatchHeader,
        answer: messages.ProduceResponse.PartitionProduceResponse,
    ) -> None:
        """Counts a batch, unless it repeats one. Raises ApiError."""
        log, producers = partition.open_log(), stale.producers
        if header.producer_id >= 0:
            stale.recall(header.producer_id, log.producers)
            duplicate = producers.find_duplicate(header)
            if duplicate is not None:
                return answer_repeated(answer, duplicate, log.start_offset)
            producers.check(header, stale.end_offset)
        answer.base_offset, answer.log_start_offset = stale.end_offset, log.start_offset
        if log.settings.is_append_time:
            answer.log_append_time_ms = self.schedule.now_ms()
        producers.update(header, stale.end_offset)
        if len(producers.by_id) > self.producers_max:
            self._forget_producers(partition, producers)
        stale.end_offset += header.last_offset_delta + 1
