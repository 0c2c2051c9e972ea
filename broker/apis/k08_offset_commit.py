"""OffsetCommit, versions 2 to 10: a group's offsets are written.

2 to 4 a retention time of the request's own; 6 leader epochs (KIP-320); 7 static members; 8 flexible; 9 members of consumer groups
(KIP-848); 10 topics by id (KIP-848).

What members of a group commit while the broker is busy with another becomes one batch.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import offsets
from ...protocol import messages
from ...protocol.errors import ApiError
from .. import committing
from ..committing import Kind, commit
from ..context import Context
from ..grouping import client_of

_R = messages.OffsetCommitResponse
KIND = Kind(_R, _R.OffsetCommitResponseTopic, _R.OffsetCommitResponsePartition, offsets.TOPIC_IDS_SINCE)


def handle(context: Context, request: Any) -> Any:
    client, groups = client_of(context), context.broker.groups
    return commit(context, request, KIND, lambda: groups.write(request.group_id, lambda shard: offsets.commit(shard, client, request)))


def failed(context: Context, request: Any, error: ApiError) -> Any:
    return committing.failed(context, request, KIND, error)
