"""DescribeProducers, version 0: the producers that a partition remembers, and their open transactions (KIP-664)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeProducersResponse
    response = r()
    for topic in request.topics:
        out = r.TopicResponse(name=topic.name)
        for index in topic.partition_indexes:
            answer = r.PartitionResponse(partition_index=index)
            try:
                log = context.broker.partition(topic.name, index).open_log()
                answer.active_producers = [
                    r.ProducerState(
                        producer_id=pid,
                        producer_epoch=p.epoch,
                        last_sequence=p.last_sequence,
                        last_timestamp=p.last_timestamp,
                        coordinator_epoch=p.coordinator_epoch,
                        current_txn_start_offset=p.transaction_first_offset,
                    )
                    for pid, p in log.producers.by_id.items()
                ]
            except ApiError as error:
                answer.error_code, answer.error_message = (
                    error.code,
                    error.text if topic.name not in context.broker.image.topics else error.message,
                )
            out.partitions.append(answer)
        response.topics.append(out)
    return response
