"""DescribeLogDirs, versions 1 to 5: returns the log directories, the sizes of their logs, and the space on their
volumes (KIP-113).

**Versions**
- 2 flexible
- 3 a top-level error
- 4 total and usable bytes of the volume (KIP-827)
- 5 whether a directory is cordoned (KIP-1066)
"""

from __future__ import annotations

from collections.abc import Iterator

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage.log import Log
from ..error_places import Place, array, codes
from ..net.context import Context
from ..replica.directories import LogDirectory
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.DESCRIBE, ResourceType.CLUSTER),)
ERRORS = (
    Place("the whole", codes("CLUSTER_AUTHORIZATION_FAILED"), since=3),
    Place(
        "each directory",
        codes("KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND"),
        (array("results", None, directory="log_dir"),),
        of_whole=False,
    ),
)


def handle(context: Context, request: messages.DescribeLogDirsRequest) -> messages.DescribeLogDirsResponse:
    wanted = (
        None
        if request.topics is None
        else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    )
    return messages.DescribeLogDirsResponse(
        results=[_directory(context, one, wanted) for one in context.broker.log_directories.all]
    )


def _size(log: Log, end: int) -> int:
    """Returns the bytes of a log up to the end of a replica."""
    active, position = log.position_of(end)
    return sum(segment.size for segment in log.segments if segment.base_offset < active.base_offset) + position


def _directory(
    context: Context, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> messages.DescribeLogDirsResponse.DescribeLogDirsResult:
    """Returns a directory with those of its logs that are wanted; with all of them if `wanted` is None."""
    r, broker = messages.DescribeLogDirsResponse, context.broker
    out = r.DescribeLogDirsResult(log_dir=broker.log_directories.files.absolute(directory.path))
    out.is_cordoned = broker.replicas.homes.is_cordoned(directory, context.node_id)
    if directory.has_failed(context.node_id):
        out.error_code = int(Errors.KAFKA_STORAGE_ERROR)
        return out
    topics: dict[str, messages.DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for name, found in _logs(context, directory):
        if wanted is None or (name, found.partition_index) in wanted:
            topics.setdefault(name, r.DescribeLogDirsTopic(name=name)).partitions.append(found)
    out.topics = list(topics.values())
    out.total_bytes, out.usable_bytes = broker.log_directories.files.space(directory.path)
    return out


def _logs(
    context: Context, directory: LogDirectory
) -> Iterator[tuple[str, messages.DescribeLogDirsResponse.DescribeLogDirsPartition]]:
    """Yields the logs of this node's replicas in a directory, with their topics, and those that are copied there."""
    broker, node, part = context.broker, context.node_id, messages.DescribeLogDirsResponse.DescribeLogDirsPartition
    homes = broker.replicas.homes
    for partition in broker.partitions.directory_of:
        if homes.of(partition, node) is not directory:
            continue
        end = broker.partitions.replica_end(partition)
        if end is None:
            continue
        try:
            size = _size(partition.open_log(), end)
        except ApiError:  # the log is being deleted, or could not be opened
            continue
        lag = max(0, partition.high_watermark - end)
        yield partition.topic, part(partition_index=partition.index, partition_size=size, offset_lag=lag)
    for move, size, left in broker.replicas.moves.of(node):
        if move.target is directory:
            found = part(partition_index=move.partition.index, partition_size=size, offset_lag=left)
            found.is_future_key = True
            yield move.partition.topic, found
