"""DescribeLogDirs, versions 1 to 5: the log directories, how large the logs in them are, and the room on their volumes.

2 flexible; 3 an error for all; 4 the volume's size and what is left of it (KIP-827); 5 cordoned directories (KIP-1066), of which there are none.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..context import Context
from ..directories import LogDirectory


def handle(context: Context, request: Any) -> Any:
    wanted = None if request.topics is None else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return messages.DescribeLogDirsResponse(results=[_directory(context.broker, one, wanted) for one in context.broker.directories])


def _directory(broker: Broker, directory: LogDirectory, wanted: set[tuple[str, int]] | None) -> Any:
    """A directory with those of its logs that are wanted; None: all of them."""
    r = messages.DescribeLogDirsResponse
    out = r.DescribeLogDirsResult(log_dir=broker.files.absolute(directory.path))
    if directory.failed:
        out.error_code = int(Errors.KAFKA_STORAGE_ERROR)
        return out
    topics: dict[str, Any] = {}
    for partition, of in broker.partitions.directory_of.items():
        if of is not directory or (wanted is not None and (partition.topic, partition.index) not in wanted):
            continue
        try:
            size = sum(segment.size for segment in partition.open_log().segments)
        except ApiError:  # it is being deleted, or could not be opened
            continue
        topic = topics.setdefault(partition.topic, r.DescribeLogDirsTopic(name=partition.topic))
        topic.partitions.append(r.DescribeLogDirsPartition(partition_index=partition.index, partition_size=size))
    out.topics = list(topics.values())
    out.total_bytes, out.usable_bytes = broker.files.space(directory.path)
    return out
