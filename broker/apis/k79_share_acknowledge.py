"""ShareAcknowledge, versions 1 and 2: takes the acknowledgements of a member of a share group (KIP-932).

**State**
- Uses the member's share session: each request raises the session epoch, and the final epoch closes the session.

**Versions**
- 2 renewing locks (KIP-1222)
"""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ..error_places import COORDINATOR, Place, Text, array, codes
from ..net.context import Context
from ._nodes import node_endpoints
from ._share_requests import GROUPS, TOPICS, acknowledge, check_ids, denied_topics, leader_of, lock_duration_ms

AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = (
    Place(
        "the whole",
        codes(
            "GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST SHARE_SESSION_NOT_FOUND "
            "INVALID_SHARE_SESSION_EPOCH"
        ),
    ),
    Place(
        "each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST "
            "KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH GROUP_ID_NOT_FOUND UNKNOWN_TOPIC_ID INVALID_RECORD_STATE "
            "FENCED_STATE_EPOCH"
        ),
        (
            array("responses", "topics", topic_id="topic_id"),
            array("partitions", "partitions", partition="partition_index"),
        ),
        text=Text.OWN,
        of_whole=False,
    ),
)


async def handle(context: Context, request: messages.ShareAcknowledgeRequest) -> messages.ShareAcknowledgeResponse:
    r = messages.ShareAcknowledgeResponse
    sharing = context.broker.share_partitions
    try:
        key = check_ids(context, request)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise ApiError(Errors.INVALID_SHARE_SESSION_EPOCH)
        if request.share_session_epoch == FINAL_EPOCH:
            sharing.sessions.get(key)
        else:
            sharing.sessions.take(key, request.share_session_epoch).own_waits = 0
    except ApiError as error:
        return r(error_code=error.code)
    topics: dict[bytes, messages.ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    leaders: list[int] = []
    denied = await denied_topics(context, request)
    for (topic_id, index), outcome in (await acknowledge(context, request, key, denied)).items():
        out = r.PartitionData(partition_index=index)
        if outcome is not None:
            outcome.put_into(out, with_default=False)
            leader = leader_of(context, topic_id, index, outcome.code)
            if leader is not None:
                out.current_leader.leader_id, out.current_leader.leader_epoch = leader
                leaders.append(leader[0])
        topics.setdefault(topic_id, r.ShareAcknowledgeTopicResponse(topic_id=topic_id)).partitions.append(out)
    if request.share_session_epoch == FINAL_EPOCH:
        sharing.end_session(key)
    return r(
        responses=list(topics.values()),
        acquisition_lock_timeout_ms=lock_duration_ms(context, key.group_id),
        node_endpoints=node_endpoints(context, r.NodeEndpoint, leaders),
    )
