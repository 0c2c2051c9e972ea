"""OffsetCommit, versions 2 to 10: commits offsets of a group.

**Behaviour**
- Commits of a group's members that arrive while the broker is busy become one batch of `__consumer_offsets`.

**Versions**
- 2 to 4 retention time of the request
- 6 leader epochs (KIP-320)
- 7 static members (KIP-345)
- 8 flexible
- 9 members of consumer groups (KIP-848)
- 10 topic ids (KIP-848)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...coordinator.group import routes
from ...coordinator.group.offsets.commit import TOPIC_IDS_SINCE
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Decided
from ...protocol import messages
from ..error_places import COORDINATOR, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from . import _offset_commits as offset_commits
from ._groups import client_of
from ._offset_commits import Kind, commit
from ._repeated_commits import note

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (Check(Operation.READ, ResourceType.GROUP, "group_id"), TOPICS)
_R = messages.OffsetCommitResponse
KIND = Kind(_R, _R.OffsetCommitResponseTopic, _R.OffsetCommitResponsePartition, TOPIC_IDS_SINCE)
ERRORS = (
    Place(
        "each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION REQUEST_TIMED_OUT OFFSET_METADATA_TOO_LARGE ILLEGAL_GENERATION "
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE INVALID_TXN_STATE "
            "INVALID_PRODUCER_ID_MAPPING TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION "
            "GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID UNKNOWN_TOPIC_ID FENCED_MEMBER_EPOCH "
            "STALE_MEMBER_EPOCH"
        ),
        (
            array("topics", "topics", topic="name", topic_id="topic_id"),
            array("partitions", "partitions", partition="partition_index"),
        ),
    ),
)


async def narrowed(
    context: Context, request: messages.OffsetCommitRequest
) -> Callable[[messages.OffsetCommitResponse], messages.OffsetCommitResponse] | None:
    return await offset_commits.narrowed(context, request, KIND, TOPICS)


def handle(context: Context, request: messages.OffsetCommitRequest) -> Awaitable[messages.OffsetCommitResponse]:
    client, groups = client_of(context), context.broker.groups

    def commit_offsets(shard: GroupShard) -> Decided[messages.OffsetCommitResponse]:
        if request.group_id not in shard.groups:
            groups.room.check_group(shard, request.group_id)
        return routes.commit_offsets(shard, client, request)

    def write() -> Awaitable[messages.OffsetCommitResponse]:
        note(context, request, KIND)
        return groups.write(request.group_id, "commit-offset", commit_offsets)

    return commit(context, request, KIND, write)
