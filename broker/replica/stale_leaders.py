"""Leaders that are cut off from the controller, and do not know that others have been elected.

Such a node goes on with its old epoch, as in Kafka: clients that hear of no other leader read from it what was
committed, and write to it what will be lost. It has no log of its own here: what it takes is validated and counted,
and not kept. With acks=all it waits for followers that do not come.
"""

from __future__ import annotations

from ...protocol import messages
from ...protocol.buffers import WritableData
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt
from ...storage import validation
from ...storage.producers import Verification
from ..steps import Allowance, at_once
from .appender import Appender, Batch
from .partition import NEVER, Partition


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
    ) -> int:
        """Like that of leaders; what a stale one takes is lost, and acks=all waits in vain."""
        stale = partition.stale.get(self.node_id)
        if stale is None:
            return Appender.append(self, partition, data, at, acks, answer, verification, allowance, opened)
        log = partition.open_log()
        if acks == -1 and stale.is_under_min_isr:
            raise ApiError(Errors.NOT_ENOUGH_REPLICAS)
        validation.check_header(at, data, log.settings.max_message_bytes)
        if isinstance(opened, ApiError):
            raise opened
        if opened is not None:
            data, at = opened
        elif self._must_open(partition, at.header, log.settings, self.schedule.now_ms()):
            data, at = at_once(self.open_batch(partition, data, at), allowance)
        answer.base_offset = stale.end_offset
        answer.log_start_offset = log.start_offset
        stale.end_offset += at.header.last_offset_delta + 1
        return NEVER
