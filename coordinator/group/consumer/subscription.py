"""What the members of a consumer group are subscribed to, and the group's epoch, which a change raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....protocol import messages
from ...format import CoordinatorRecord
from ..environment import Client
from ..metadata_hash import metadata_hash
from ..state import ShardState
from .epoch import METADATA_REFRESH_MS, raise_epoch
from .group import ConsumerGroup, Count
from .member import Member
from .records import metadata_record
from .topic_regexes import update_regexes


class Subscribed(NamedTuple):
    """The group's epoch, whether the member's subscription changed, and the topics of the group with that, if they had
    to be looked at.
    """

    epoch: int
    has_changed: bool
    topics: Mapping[str, Count] | None


def subscribe(
    shard: ShardState,
    client: Client,
    group: ConsumerGroup,
    member: Member,
    changed: Member,
    records: list[CoordinatorRecord],
    *,
    classic: bool = False,
) -> Subscribed:
    """Adds the records of a member's metadata and of the group's epoch, if they change. `classic`: the member uses the
    classic protocol. Raises ApiError.
    """
    names_changed = False
    if member is not changed and member.subscription() != changed.subscription():
        records.append(metadata_record(group.id, changed))
        names_changed = member.topic_names != changed.topic_names
    regex_changed, resolved = update_regexes(shard, client, group, member, changed, records)
    bump = names_changed or (regex_changed if classic else resolved or _assignor_changes(shard, group, member, changed))
    if not bump and not _refresh_is_due(shard, group):
        return Subscribed(group.epoch, regex_changed, None)
    topics = group.topics_after([member], [changed])
    epoch = _update_epoch(shard, group, topics, bump, records)
    return Subscribed(epoch, names_changed or regex_changed, topics)


def _assignor_changes(shard: ShardState, group: ConsumerGroup, member: Member, changed: Member) -> bool:
    """Whether another assignor is preferred now: also where two have as many votes, so that the own one comes first."""
    if member.server_assignor == changed.server_assignor and len(group.assignor_votes) < 2:
        return False
    default = shard.assignors.default
    return group.preferred_assignor(default) != group.preferred_assignor(default, member, changed)


def _refresh_is_due(shard: ShardState, group: ConsumerGroup) -> bool:
    deadline, epoch = group.refresh_at_ms
    return shard.env.now_ms() >= deadline or group.epoch < epoch


def _update_epoch(
    shard: ShardState,
    group: ConsumerGroup,
    topics: Mapping[str, Count],
    bump: bool,
    records: list[CoordinatorRecord],
) -> int:
    found = metadata_hash(topics, shard.env.image)
    epoch = group.epoch
    if bump or found != group.metadata_hash:
        epoch = raise_epoch(shard, group, found, records)
    group.refresh_at_ms = (shard.env.now_ms() + METADATA_REFRESH_MS, epoch)
    if group.has_partition_metadata:
        records.append((messages.ConsumerGroupPartitionMetadataKey(group_id=group.id), None))
    return epoch
