"""FindCoordinator, versions 0 to 6: which node coordinates a group, a transaction or a share-partition.

1 transactions; 3 flexible; 4 several keys at once (KIP-699); 5 TRANSACTION_ABORTABLE; 6 share-partitions (KIP-932).
Where the topic of the coordinators does not exist yet it is made, and the answer waits for it; Kafka answers COORDINATOR_NOT_AVAILABLE first.
"""

from __future__ import annotations

import base64
from typing import Any

from ...coordinator.share.state import PartitionKey
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..context import Context
from ..hosting import Coordinators

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
    """ApiError where there is no coordinator for a key. The topic behind it is made where it is not there."""
    share_key = _share_key(key) if kind == SHARE and context.version >= SHARE_SINCE else None
    if kind not in (GROUP, TRANSACTION, SHARE) or (kind == SHARE and share_key is None):
        raise ApiError(Errors.INVALID_REQUEST)
    broker = context.broker
    families: dict[int, Coordinators[Any]] = {GROUP: broker.groups, TRANSACTION: broker.transactions, SHARE: broker.share_states}
    family = families[kind]
    await family.create_topic()
    index = family.partition_for(key if share_key is None else share_key)
    if (family.topic_name, index) not in broker.partitions.by_name:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)


def _share_key(key: str) -> PartitionKey | None:
    """`group:topic id:partition`; the group's id may hold colons itself. None for anything else."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip() or not parts[2].removeprefix("-").isdigit():
        return None
    try:
        topic_id = base64.urlsafe_b64decode(parts[1] + "==")
    except ValueError:
        return None
    return PartitionKey(parts[0], topic_id, int(parts[2])) if len(topic_id) == 16 else None
