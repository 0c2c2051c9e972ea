"""FindCoordinator, versions 0 to 6: returns the node that coordinates a group, a transactional id or a share-partition.

**Behaviour**
- If the topic of the coordinator does not exist, the broker creates it before it replies; Kafka first returns
  COORDINATOR_NOT_AVAILABLE.

**Versions**
- 1 transactional ids (KIP-98)
- 3 flexible
- 4 several keys at once (KIP-699)
- 5 TRANSACTION_ABORTABLE (KIP-890)
- 6 share-partitions (KIP-932)
"""

from __future__ import annotations

import base64
from typing import Any

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.share.state import PartitionKey
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..config.listener_values import Listener
from ..config.nodes import Node
from ..error_places import ITSELF, Place, Text, array, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..shards.hosts import ShardHosts
from ._nodes import reachable

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "coordinator_keys", Refusal.ELEMENT)
TRANSACTIONS = Check(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "coordinator_keys", Refusal.ELEMENT)
SHARES = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
AUTHORIZATION = (GROUPS, TRANSACTIONS, SHARES)


GROUP, TRANSACTION, SHARE = 0, 1, 2
SEVERAL_SINCE = 4
SHARE_SINCE = 6
NO_NODE = (("node_id", -1), ("port", -1))
WHOLE = Place(
    "the whole",
    codes(
        "COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED "
        "CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
        "TRANSACTION_ABORTABLE"
    ),
    others=NO_NODE,
    text=Text.OF_CODE,
    until=SEVERAL_SINCE - 1,
)
ERRORS = (
    WHOLE,
    Place(
        "each key",
        WHOLE.errors,
        (array("coordinators", "coordinator_keys", key=("key", ITSELF)),),
        NO_NODE,
        Text.OF_CODE,
        since=SEVERAL_SINCE,
    ),
)


async def handle(context: Context, request: messages.FindCoordinatorRequest) -> messages.FindCoordinatorResponse:
    if context.version < SEVERAL_SINCE:
        found = await _find(context, request.key_type, request.key)
        return messages.FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    answers = Answers(context)
    coordinators = answers.array("coordinators")
    for key in request.coordinator_keys:
        await answers.add("coordinators", await _find(context, request.key_type, key))
    return messages.FindCoordinatorResponse(coordinators=coordinators)


async def _find(context: Context, kind: int, key: str) -> messages.FindCoordinatorResponse.Coordinator:
    c = messages.FindCoordinatorResponse.Coordinator
    try:
        found = await _coordinator(context, kind, key)
    except ApiError as error:
        without_text = (Errors.COORDINATOR_NOT_AVAILABLE, GROUPS.code, TRANSACTIONS.code)
        has_no_text = error.code in without_text or (kind == SHARE and error.code != SHARES.code)
        silent = has_no_text and context.version >= SEVERAL_SINCE
        text = "" if silent else default_message(error.code)
        return c(key=key, error_code=error.code, error_message=text, node_id=-1, host="", port=-1)
    node, at = found
    text = "NONE" if context.version < SEVERAL_SINCE else ""
    return c(key=key, error_code=0, error_message=text, node_id=node.id, host=at.host, port=at.port)


async def _coordinator(context: Context, kind: int, key: str) -> tuple[Node, Listener]:
    """Returns the node that coordinates a key, and its address. Raises ApiError if there is none. Creates the topic of
    the coordinator if it does not exist.
    """
    if kind == GROUP:
        GROUPS.require(context, key)
    elif kind == TRANSACTION:
        TRANSACTIONS.require(context, key)
    elif kind == SHARE and context.version >= SHARE_SINCE:
        SHARES.require(context)
    share_key = _share_key(key) if kind == SHARE and context.version >= SHARE_SINCE else None
    if kind not in (GROUP, TRANSACTION, SHARE) or (kind == SHARE and share_key is None):
        raise ApiError(Errors.INVALID_REQUEST)
    broker = context.broker
    families: dict[int, ShardHosts[Any]] = {
        GROUP: broker.groups,
        TRANSACTION: broker.transactions,
        SHARE: broker.share_states,
    }
    family = families[kind]
    await family.create_topic()
    index = family.partition_for(key if share_key is None else share_key)
    partition = broker.partitions.by_name.get((family.topic_name, index))
    if partition is not None and not partition.offline:
        leader, _ = broker.partitions.known_leader(partition)
        for node, at in reachable(context):
            if node.id == leader:
                return node, at
    raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)


def _share_key(key: str) -> PartitionKey | None:
    """Parses `group:topic id:partition`; the group id may contain colons. Returns None for anything else."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip() or not parts[2].removeprefix("-").isdigit():
        return None
    try:
        topic_id = base64.urlsafe_b64decode(parts[1] + "==")
    except ValueError:
        return None
    return PartitionKey(parts[0], topic_id, int(parts[2])) if len(topic_id) == 16 else None
