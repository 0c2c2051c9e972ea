"""DescribeLogDirs, versions 1 to 5: returns the log directories, the sizes of their logs, and the space on their
volumes (KIP-113).

**Versions**
- 2 flexible
- 3 a top-level error
- 4 total and usable bytes of the volume (KIP-827)
- 5 whether a directory is cordoned (KIP-1066)
"""

from __future__ import annotations

from collections.abc import Generator

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage.log import Log
from ..error_places import Place, array, codes
from ..net.context import Context
from ..replica.directories import LogDirectory
from ..replica.partition import Partition
from ..security.authorization import Check
from ..steps import paced

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


async def handle(context: Context, request: messages.DescribeLogDirsRequest) -> messages.DescribeLogDirsResponse:
    wanted = (
        None
        if request.topics is None
        else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    )
    return messages.DescribeLogDirsResponse(
        results=[await _directory(context, one, wanted) for one in list(context.broker.log_directories.all)]
    )


def _size(log: Log, end: int) -> int:
    """Returns the bytes of a log up to the end of a replica."""
    active, position = log.position_of(end)
    return sum(segment.size for segment in log.segments if segment.base_offset < active.base_offset) + position


async def _directory(
    context: Context, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> messages.DescribeLogDirsResponse.DescribeLogDirsResult:
    """Returns a directory with those of its logs that are wanted; with all of them if `wanted` is None."""
    r, broker = messages.DescribeLogDirsResponse, context.broker
    out = r.DescribeLogDirsResult(log_dir=broker.log_directories.files.absolute(directory.path))
    out.is_cordoned = broker.replicas.homes.is_cordoned(directory, context.node_id)
    if directory.has_failed(context.node_id):
        out.error_code = int(Errors.KAFKA_STORAGE_ERROR)
        return out
    out.topics = await paced(context.turn, _topics(context, directory, wanted))
    out.total_bytes, out.usable_bytes = broker.log_directories.files.space(directory.path)
    return out


def _topics(
    context: Context, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> Generator[None, None, list[messages.DescribeLogDirsResponse.DescribeLogDirsTopic]]:
    """Finds the logs of this node's replicas in a directory, one in a step, and those that are copied there; returns
    their topics.
    """
    broker, node, r = context.broker, context.node_id, messages.DescribeLogDirsResponse
    homes, part = broker.replicas.homes, r.DescribeLogDirsPartition
    topics: dict[str, messages.DescribeLogDirsResponse.DescribeLogDirsTopic] = {}

    def is_wanted(partition: Partition) -> bool:
        return wanted is None or (partition.topic, partition.index) in wanted

    def add(partition: Partition, size: int, lag: int, is_future: bool) -> None:
        found = part(partition_index=partition.index, partition_size=size, offset_lag=lag, is_future_key=is_future)
        of_topic = topics.get(partition.topic)
        if of_topic is None:
            of_topic = topics[partition.topic] = r.DescribeLogDirsTopic(name=partition.topic)
        of_topic.partitions.append(found)

    for partition in list(broker.partitions.directory_of):
        yield
        if not is_wanted(partition) or partition not in broker.partitions.directory_of:
            continue
        if homes.of(partition, node) is not directory:
            continue
        end = broker.partitions.replica_end(partition)
        if end is None:
            continue
        try:
            size = _size(partition.open_log(), end)
        except ApiError:  # the log is being deleted, or could not be opened
            continue
        add(partition, size, max(0, partition.high_watermark - end), is_future=False)
    for move, size, left in broker.replicas.moves.of(node):
        if move.target is directory and is_wanted(move.partition):
            add(move.partition, size, left, is_future=True)
    return list(topics.values())
