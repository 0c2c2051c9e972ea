"""ElectLeaders, versions 0 to 2: every partition has one replica, so that no election is needed, or there is nobody to elect.

1 unclean elections (KIP-460); 2 flexible. Without topics, all are named, and those that need no election have nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..context import Context
from ..metadata import check_time

PREFERRED, UNCLEAN = 0, 1
ERROR_SINCE = 1  # for all
NOBODY = {PREFERRED: Errors.PREFERRED_LEADER_NOT_AVAILABLE, UNCLEAN: Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def handle(context: Context, request: Any) -> Any:
    r = messages.ElectLeadersResponse
    if request.topic_partitions == []:
        return r()
    try:
        check_time(request.timeout_ms)
        if request.election_type not in NOBODY:
            raise ApiError(Errors.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    except ApiError as error:
        return _refused(context, request, error)
    if request.topic_partitions is not None:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
        return r(replica_election_results=[_elect(context, name, partitions, request.election_type) for name, partitions in asked])
    image = context.broker.image
    every = [_elect(context, name, range(image.partition_counts[topic.id]), request.election_type) for name, topic in image.topics.items()]
    for topic in every:
        topic.partition_result = [one for one in topic.partition_result if one.error_code != Errors.ELECTION_NOT_NEEDED]
    return r(replica_election_results=every)


def _refused(context: Context, request: Any, error: ApiError) -> Any:
    """The same error for everything."""
    r = messages.ElectLeadersResponse
    results = []
    for topic in request.topic_partitions or ():
        partitions = [r.PartitionResult(partition_id=index, error_code=error.code, error_message=error.message) for index in topic.partitions]
        results.append(r.ReplicaElectionResult(topic=topic.topic, partition_result=partitions))
    return r(error_code=error.code if context.version >= ERROR_SINCE else 0, replica_election_results=results)


def _elect(context: Context, name: str, indexes: Iterable[int], kind: int) -> Any:
    r, results = messages.ElectLeadersResponse, []
    for index in indexes:
        partition = context.broker.partitions.by_name.get((name, index))
        if partition is None:
            code = Errors.UNKNOWN_TOPIC_OR_PARTITION
            text: str | None = f"No such partition as {name}-{index}" if name in context.broker.image.topics else f"No such topic as {name}"
        else:
            code = NOBODY[kind] if partition.offline else Errors.ELECTION_NOT_NEEDED
            text = default_message(code)
        results.append(r.PartitionResult(partition_id=index, error_code=int(code), error_message=text))
    return r.ReplicaElectionResult(topic=name, partition_result=results)
