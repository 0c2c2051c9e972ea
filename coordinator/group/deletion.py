"""The end of groups: deleted on request (DeleteGroups), or when their last offset has expired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from ...protocol import messages
from ...protocol.errors import ApiError
from ..format import CoordinatorRecord
from ..shard import Result
from .format import Key
from .group import Group
from .offsets.deletion import STEP_OFFSETS, add_expired, all_tombstones, expired
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
    """Takes out offsets that have expired, and groups that have neither members nor offsets then: some in this write,
    the others between other requests.
    """
    writes = _writes(shard, list(shard.groups.values()))
    first, second = next(writes, None), next(writes, None)
    if second is not None:
        rest = chain((second,), writes)
        shard.journal.after(lambda: shard.env.in_steps(_expire_rest(shard, rest)))
    else:
        _forget_empty(shard, list(shard.offsets.by_group))
    return first() if first is not None else Result()


def _writes(shard: ShardState, groups: list[Group]) -> Iterator[Callable[[], Result]]:
    """Yields what is taken out in one write: of some groups, or of some offsets of a group that has many."""
    some: list[Group] = []
    offsets = 0
    for group in groups:
        keys = list(shard.offsets.by_group.get(group.id, ()))
        if len(keys) > STEP_OFFSETS:
            told: set[str] = set()
            for at in range(0, len(keys), STEP_OFFSETS):
                yield partial(_expire_offsets, shard, group, keys[at : at + STEP_OFFSETS], told)
        else:
            offsets += len(keys)
        some.append(group)
        if len(some) == STEP_GROUPS or offsets >= STEP_OFFSETS:
            yield partial(_expire_some, shard, some)
            some, offsets = [], 0
    if some:
        yield partial(_expire_some, shard, some)


def _expire_rest(shard: ShardState, writes: Iterator[Callable[[], Result]]) -> Iterator[None]:
    for write in writes:
        shard.write(EXPIRE, write)
        yield
    names = list(shard.offsets.by_group)
    for at in range(0, len(names), STEP_NAMES):
        shard.write(EXPIRE, partial(_forget_empty, shard, names[at : at + STEP_NAMES]))
        yield


def _expire_offsets(shard: ShardState, group: Group, keys: list[Key], told: set[str]) -> Result:
    """Takes out those of some offsets that have expired; reports the first ones."""
    records: list[CoordinatorRecord] = []
    if shard.groups.get(group.id) is group and group.may_expire:
        add_expired(shard, group, keys, records)
        if records and group.id not in told:
            told.add(group.id)
            shard.tell(group, "offsets-expired")
    return Result(records, atomic=False)


def _expire_some(shard: ShardState, groups: list[Group]) -> Result:
    """Takes out the offsets of some groups that have expired, and those groups that end with that."""
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
