"""The end of groups: deleted on request (DeleteGroups), or when their last offset has expired."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...protocol import messages
from ...protocol.errors import ApiError
from ..format import CoordinatorRecord
from ..shard import Result
from .group import Group
from .offsets.deletion import all_tombstones, expired
from .state import ShardState

EXPIRE = "expire-group-metadata"  # the name of the write
STEP_GROUPS, STEP_NAMES = 64, 4096  # what is looked at in one write


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
    """Takes out offsets that have expired, and groups that have neither members nor offsets then: of some groups in
    this write, of the others between other requests.
    """
    groups = list(shard.groups.values())
    if len(groups) > STEP_GROUPS:
        shard.journal.after(lambda: shard.env.in_steps(_expire_rest(shard, groups[STEP_GROUPS:])))
    else:
        _forget_empty(shard, list(shard.offsets.by_group))
    return _expire_some(shard, groups[:STEP_GROUPS])


def _expire_rest(shard: ShardState, groups: list[Group]) -> Iterator[None]:
    for at in range(0, len(groups), STEP_GROUPS):
        shard.write(EXPIRE, partial(_expire_some, shard, groups[at : at + STEP_GROUPS]))
        yield
    names = list(shard.offsets.by_group)
    for at in range(0, len(names), STEP_NAMES):
        shard.write(EXPIRE, partial(_forget_empty, shard, names[at : at + STEP_NAMES]))
        yield


def _expire_some(shard: ShardState, groups: list[Group]) -> Result:
    records: list[CoordinatorRecord] = []
    for group in groups:
        if shard.groups.get(group.id) is not group:
            continue
        before = len(records)
        has_none_left = group.may_expire and expired(shard, group, records)
        if len(records) > before:
            shard.tell(group, "offsets-expired")
        if has_none_left and group.is_empty and not group.is_kept(shard.env.config):
            records += shard.end_group(group)
    return Result(records, atomic=False)


def _forget_empty(shard: ShardState, names: list[str]) -> Result:
    """Forgets that groups which do not exist any more had offsets."""
    by_group = shard.offsets.by_group
    for name in names:
        found = by_group.get(name)
        if found is not None and not len(found) and name not in shard.groups:
            shard.journal.note(by_group.__setitem__, name, by_group.pop(name))
    return Result()
