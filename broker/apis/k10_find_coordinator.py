"""FindCoordinator, versions 0 to 6: which node coordinates a group, a transaction or a share-partition.

1 transactions; 3 flexible; 4 several keys at once (KIP-699); 5 TRANSACTION_ABORTABLE; 6 share-partitions (KIP-932).
Where the topic of the groups does not exist yet it is made, and the answer waits for it; Kafka answers COORDINATOR_NOT_AVAILABLE first.
Transactions and share-partitions get COORDINATOR_NOT_AVAILABLE until their coordinators are served.
"""

from __future__ import annotations

import base64
from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..context import Context
from ..coordinators import TOPIC_NAME

GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_SINCE = 4
SHARE_SINCE = 6


async def handle(context: Context, request: Any) -> Any:
    if context.version < SEVERAL_SINCE:
        found = await _find(context, request.key_type, request.key)
        return messages.FindCoordinatorResponse(
            error_code=found.error_code, error_message=found.error_message, node_id=found.node_id, host=found.host, port=found.port
        )
    coordinators = [await _find(context, request.key_type, key) for key in request.coordinator_keys]
    return messages.FindCoordinatorResponse(coordinators=coordinators)


async def _find(context: Context, kind: int, key: str) -> Any:
    c = messages.FindCoordinatorResponse.Coordinator
    try:
        await _check(context, kind, key)
    except ApiError as error:
        silent = kind == SHARE and context.version >= SEVERAL_SINCE
        text = "" if silent else default_message(error.code)
        return c(key=key, error_code=error.code, error_message=text, node_id=-1, host="", port=-1)
    at = context.broker.config.advertised[context.listener]
    text = "NONE" if context.version < SEVERAL_SINCE else ""
    return c(key=key, error_code=0, error_message=text, node_id=context.node_id, host=at.host, port=at.port)


async def _check(context: Context, kind: int, key: str) -> None:
    if kind not in (GROUP, TRANSACTION, SHARE) or (kind == SHARE and (context.version < SHARE_SINCE or not _is_share_key(key))):
        raise ApiError(Errors.INVALID_REQUEST)
    if kind != GROUP:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    broker = context.broker
    if broker.topic(TOPIC_NAME) is None:
        await broker.groups.create_topic()
    if (TOPIC_NAME, broker.groups.partition_for(key)) not in broker.partitions.by_name:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)


def _is_share_key(key: str) -> bool:
    """`group:topic id:partition`; the group's id may hold colons itself."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not parts[2].removeprefix("-").isdigit():
        return False
    try:
        return len(base64.urlsafe_b64decode(parts[1] + "==")) == 16
    except ValueError:
        return False
