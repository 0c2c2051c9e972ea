"""ShareGroupHeartbeat, version 1: a member of a share group joins, stays or leaves (KIP-932).

**Behaviour**
- If a heartbeat finds share-partitions without a state, the share coordinator initializes them after the reply. They
  are assigned once they are initialized.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.group.share.heartbeat import check_request
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..group.room import NoRoom
from ..later import Later, after
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share_groups import initialize
from ._groups import WITHOUT_WORDS, client_of, may_describe_all, note_full
from ._share_requests import MEMBER_ID_CHARS_MAX

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ...coordinator.group.share.heartbeat import Beat

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "subscribed_topic_names", Refusal.IN_HANDLER)
AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED "
            "UNSUPPORTED_VERSION INVALID_REQUEST GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED FENCED_MEMBER_EPOCH"
        ),
    ),
)


def handle(
    context: Context,
    request: messages.ShareGroupHeartbeatRequest,
) -> messages.ShareGroupHeartbeatResponse | Later[messages.ShareGroupHeartbeatResponse]:
    broker = context.broker
    if broker.share_partitions.version < 1:
        return messages.ShareGroupHeartbeatResponse(error_code=int(Errors.UNSUPPORTED_VERSION))
    if not GROUPS.allows(context, request.group_id):
        return messages.ShareGroupHeartbeatResponse(error_code=GROUPS.code)
    if not may_describe_all(context, TOPICS, request.subscribed_topic_names or ()):
        return messages.ShareGroupHeartbeatResponse(error_code=TOPICS.code)
    if not request.member_id or len(request.member_id) > MEMBER_ID_CHARS_MAX:
        return messages.ShareGroupHeartbeatResponse(error_code=int(Errors.INVALID_REQUEST))
    check_request(request)
    client = client_of(context)

    def beat(shard: GroupShard) -> Result[Beat]:
        if request.member_epoch == 0:
            broker.groups.room.check_member(shard, request.group_id, request.member_id)
        return routes.share_group_heartbeat(shard, client, request)

    def answered(beat: Later[Beat]) -> messages.ShareGroupHeartbeatResponse:
        response, unset = beat.get()
        if unset is not None:
            broker.turn.background(initialize(broker, unset))
        return response

    return after(broker.groups.write(request.group_id, "share-group-heartbeat", beat), answered)


def failed(
    context: Context, request: messages.ShareGroupHeartbeatRequest, error: ApiError
) -> messages.ShareGroupHeartbeatResponse:
    if not isinstance(error, NoRoom):
        note_full(context, request.group_id, error.code)
    return error.put_into(messages.ShareGroupHeartbeatResponse(), with_default=error.code not in WITHOUT_WORDS)
