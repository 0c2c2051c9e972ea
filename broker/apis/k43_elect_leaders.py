"""ElectLeaders, versions 0 to 2: every partition has one replica, so that no election is needed, or there is nobody to elect.

1 unclean elections (KIP-460); 2 flexible. Without topics, all are named, and those that need no election have nothing to tell.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

PREFERRED, UNCLEAN = 0, 1
ERROR_SINCE = 1  # for all
NOT_NEEDED = "Leader election not needed for topic partition."
NOBODY = {PREFERRED: Errors.PREFERRED_LEADER_NOT_AVAILABLE, UNCLEAN: Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def handle(context: Context, request: Any) -> Any:
    r = messages.ElectLeadersResponse
    if request.topic_partitions == []:
        return r()
    if request.timeout_ms <= 0:
        return _timed_out(context, request)
    refused = int(Errors.INVALID_REQUEST) if request.election_type not in NOBODY else 0
    if refused and request.topic_partitions is None:
        return r(error_code=refused)
    topics = context.broker.image.topics
    if request.topic_partitions is None:
        asked = [(name, range(context.broker.image.partition_counts[topic.id])) for name, topic in topics.items()]
    else:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    results = []
    for name, partitions in asked:
        found = [_elect(context, name, index, request.election_type) for index in partitions]
        if request.topic_partitions is None:
            found = [one for one in found if one.error_code != Errors.ELECTION_NOT_NEEDED]
        results.append(r.ReplicaElectionResult(topic=name, partition_result=found))
    return r(error_code=refused, replica_election_results=results)


def _timed_out(context: Context, request: Any) -> Any:
    r, code = messages.ElectLeadersResponse, int(Errors.REQUEST_TIMED_OUT)
    results = [
        r.ReplicaElectionResult(
            topic=topic.topic, partition_result=[r.PartitionResult(partition_id=p, error_code=code, error_message=None) for p in topic.partitions]
        )
        for topic in request.topic_partitions or ()
    ]
    return r(error_code=code if context.version >= ERROR_SINCE else 0, replica_election_results=results)


def _elect(context: Context, name: str, index: int, kind: int) -> Any:
    out = messages.ElectLeadersResponse.PartitionResult(partition_id=index)
    if kind not in NOBODY:
        out.error_code, out.error_message = int(Errors.INVALID_REQUEST), f"Unknown election type {kind}"
        return out
    try:
        if context.broker.partition(name, index).offline:
            raise ApiError(NOBODY[kind])
        out.error_code, out.error_message = int(Errors.ELECTION_NOT_NEEDED), NOT_NEEDED
    except ApiError as error:
        out.error_code, out.error_message = error.code, error.text
        if error.code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
            known = name in context.broker.image.topics
            out.error_message = f"No such partition as {name}-{index}" if known else f"No such topic as {name}"
    return out
