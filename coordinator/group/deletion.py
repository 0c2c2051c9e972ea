"""The end of groups: deleted on request (DeleteGroups), or when their last offset has expired."""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import ApiError
from ..format import CoordinatorRecord
from ..shard import Result
from .offsets.deletion import all_tombstones, expired
from .state import ShardState


def delete_groups(
    shard: ShardState, group_ids: list[str]
) -> Result[list[messages.DeleteGroupsResponse.DeletableGroupResult]]:
    """Deletes each group, or notes its error in the reply."""
    r = messages.DeleteGroupsResponse
    results, records = [], []
    for group_id in group_ids:
        out = r.DeletableGroupResult(group_id=group_id)
        try:
            group = shard.existing(group_id)
            group.check_delete()
            records += all_tombstones(shard, group_id)
            records += shard.end_group(group)
        except ApiError as error:
            out.error_code = error.code
        results.append(out)
    return Result(records, results)


def expire(shard: ShardState) -> Result:
    """Takes out offsets that have expired, and groups that have neither members nor offsets then."""
    records: list[CoordinatorRecord] = []
    for group in list(shard.groups.values()):
        before = len(records)
        has_none_left = group.may_expire and expired(shard, group, records)
        if len(records) > before:
            shard.tell(group, "offsets-expired")
        if has_none_left and group.is_empty and not group.is_kept(shard.env.config):
            records += shard.end_group(group)
    by_group = shard.offsets.by_group
    for group_id in [g for g, found in by_group.items() if not len(found) and g not in shard.groups]:
        shard.journal.note(by_group.__setitem__, group_id, by_group.pop(group_id))
    return Result(records, atomic=False)
