"""The end of committed offsets: deleted on request (OffsetDelete), with their topics or their group,
or expired (KIP-211).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from ....protocol import messages
from ....protocol.errors import Errors
from ....protocol.schema import NO_UUID
from ...format import CoordinatorRecord
from ...shard import Result
from ..environment import OffsetExpiry
from ..format import COMMIT_MS, EXPIRE_MS, NO_EXPIRY, TOPIC_ID, Key, Stored
from ..group import Group
from ..state import ShardState
from .store import tombstone

STEP_OFFSETS = 128  # whose age is looked at in one write
STEP_GROUPS = 64  # whose offsets of deleted topics are looked for in one write


def delete(shard: ShardState, request: messages.OffsetDeleteRequest) -> Result[messages.OffsetDeleteResponse]:
    """OffsetDelete. Raises ApiError for a group whose offsets may not be deleted."""
    group = shard.existing(request.group_id)
    group.check_delete_offsets()
    r = messages.OffsetDeleteResponse
    response = r()
    records: list[CoordinatorRecord] = []
    found = shard.offsets.of(request.group_id)
    for topic in request.topics:
        out = r.OffsetDeleteResponseTopic(name=topic.name)
        subscribed = group.is_subscribed_to(topic.name)
        for p in topic.partitions:
            code = int(Errors.GROUP_SUBSCRIBED_TO_TOPIC) if subscribed else 0
            out.partitions.append(r.OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code))
            key = (topic.name, p.partition_index)
            if not subscribed and (key in found or shard.offsets.is_pending(request.group_id, key)):
                records.append(tombstone(request.group_id, key))
        response.topics.append(out)
    shard.counts["offset_deletions"] += len(records)
    return Result(records, response)


def all_tombstones(shard: ShardState, group_id: str) -> list[CoordinatorRecord]:
    """The records that end a group's offsets, pending ones too."""
    keys = dict.fromkeys(shard.offsets.of(group_id))
    keys |= {key: None for key, _ in shard.offsets.pending_of(group_id)}
    return [tombstone(group_id, key) for key in keys]


def of_deleted_topics(shard: ShardState, names: dict[bytes, str]) -> Iterator[None]:
    """Deletes the offsets of deleted topics, those of some groups in a write. `names`: by topic id."""
    groups = list(shard.offsets.by_group)
    groups += [one for one in shard.offsets.pending_producers if one not in shard.offsets.by_group]
    for at in range(0, len(groups), STEP_GROUPS):
        shard.write("on-partition-deleted", partial(_of_deleted_topics, shard, names, groups[at : at + STEP_GROUPS]))
        yield


def _of_deleted_topics(shard: ShardState, names: dict[bytes, str], groups: list[str]) -> Result:
    """The offsets of some groups, except for those of other topics of the same names."""
    gone = set(names.values())

    def is_of_them(key: Key, committed: Stored) -> bool:
        return key[0] in gone and (committed[TOPIC_ID] == NO_UUID or names.get(committed[TOPIC_ID]) == key[0])

    records = []
    for group_id in groups:
        found = shard.offsets.by_group.get(group_id)
        if found is not None:
            records += [tombstone(group_id, key) for key, committed in found.at().items() if is_of_them(key, committed)]
        if shard.offsets.has_pending(group_id):
            records += [
                tombstone(group_id, key)
                for key, committed in shard.offsets.pending_of(group_id)
                if is_of_them(key, committed)
            ]
    return Result(records, atomic=False)


# expiry


def expired(shard: ShardState, group: Group, records: list[CoordinatorRecord]) -> bool:
    """Adds tombstones for expired offsets; returns whether the group has no offsets left. Of a group with very many,
    `add_expired` has taken out those that have expired.
    """
    found = shard.offsets.by_group.get(group.id, ())
    if len(found) > STEP_OFFSETS:
        return False
    return add_expired(shard, group, found, records) and not shard.offsets.has_pending(group.id)


def add_expired(shard: ShardState, group: Group, keys: Iterable[Key], records: list[CoordinatorRecord]) -> bool:
    """Adds tombstones for those of some offsets that have expired; returns whether these are all."""
    group_id = group.id
    now, retention = shard.env.now_ms(), shard.env.config("offsets.retention.minutes") * 60_000
    found, before, kept = shard.offsets.by_group.get(group_id), len(records), False
    for key in keys:
        committed = found.get(key) if found is not None else None
        if committed is None:  # it was deleted meanwhile
            continue
        since = _ages_from(shard.env.offset_expiry, group, key[0], committed[COMMIT_MS])
        if since is None or shard.offsets.is_pending(group_id, key):
            kept = True
        elif now >= (committed[EXPIRE_MS] if committed[EXPIRE_MS] != NO_EXPIRY else since + retention):
            records.append(tombstone(group_id, key))
        else:
            kept = True
    shard.counts["offset_expirations"] += len(records) - before
    return not kept


def _ages_from(expiry: OffsetExpiry, group: Group, topic: str, commit_ms: int) -> int | None:
    """Returns the time from which the retention time of an offset counts; None while it may not expire."""
    if expiry is OffsetExpiry.BY_COMMIT:
        return commit_ms
    if group.is_subscribed_to(topic) or (expiry is OffsetExpiry.WITHOUT_MEMBERS and not group.is_empty):
        return None
    return group.offset_ages_from(commit_ms)
