"""ShareAcknowledge, versions 1 and 2: a member of a share group says what became of records (KIP-932). 2 renewing leases (KIP-1222).

Takes part in the member's share session: its epoch goes up with each request, and the final epoch ends it.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..share_requests import acknowledge, check_ids, lock_duration_ms
from ..share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey


async def handle(context: Context, request: Any) -> Any:
    r = messages.ShareAcknowledgeResponse
    sharing = context.broker.sharing
    try:
        check_ids(context, request)
        key = SessionKey(request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise ApiError(Errors.INVALID_SHARE_SESSION_EPOCH)
        if request.share_session_epoch == FINAL_EPOCH:
            sharing.sessions.get(key)
        else:
            sharing.sessions.take(key, request.share_session_epoch)
    except ApiError as error:
        return r(error_code=error.code)
    topics: dict[bytes, Any] = {}
    for (topic_id, index), outcome in (await acknowledge(context, request)).items():
        out = r.PartitionData(partition_index=index)
        if outcome is not None:
            out.error_code, out.error_message = outcome.code, outcome.message
        topics.setdefault(topic_id, r.ShareAcknowledgeTopicResponse(topic_id=topic_id)).partitions.append(out)
    if request.share_session_epoch == FINAL_EPOCH:
        sharing.end_session(key)
    return r(responses=list(topics.values()), acquisition_lock_timeout_ms=lock_duration_ms(context, request.group_id))
