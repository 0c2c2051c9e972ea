"""What a group says of the stored description of its topology (KIP-1331).

The group's record has the topology's epoch whose description is stored, NONE, or UNCERTAIN. The store is not part of
the log: before anything is changed there, UNCERTAIN is written, so that after a crash in between a member is asked for
its description again. It also has the epoch whose description was refused for good, which is not asked for again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...shard import Result
from ..state import ShardState
from .group import NO_TOPOLOGY, StreamsGroup
from .records import group_record

NONE = NO_TOPOLOGY
UNCERTAIN = -2


def check_update(shard: ShardState, as_of: int, request: messages.StreamsGroupTopologyDescriptionUpdateRequest) -> None:
    """Checks that a member of the group describes the group's topology.

    Raises ApiError(GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or INVALID_REQUEST).
    """
    group = shard.existing_of(StreamsGroup, request.group_id, as_of)
    group.member(request.member_id, as_of)
    epoch, current = request.topology_epoch, group.topology_epoch
    if epoch != current:
        text = f"Topology epoch {epoch} does not match the group's current topology epoch {current}."
        raise ApiError(Errors.INVALID_REQUEST, text)


def stored_epoch(shard: ShardState, as_of: int, group_id: str) -> int:
    """Returns the epoch of the topology whose description is stored, or NONE or UNCERTAIN."""
    return shard.existing_of(StreamsGroup, group_id, as_of).described_epoch(as_of)


def stored_of(shard: ShardState, group_ids: Iterable[str], as_of: int) -> list[str]:
    """Returns the streams groups among these of which a description may be stored."""
    found = ((group_id, shard.groups.get(group_id, None, as_of)) for group_id in group_ids)
    return [name for name, one in found if isinstance(one, StreamsGroup) and one.described_epoch(as_of) != NONE]


def without_use(shard: ShardState, as_of: int) -> list[str]:
    """Returns the streams groups without members and offsets of which a description may be stored."""
    return [
        group.id
        for _, group in shard.groups.items(as_of)
        if isinstance(group, StreamsGroup)
        and not group.members.items(as_of)
        and group.described_epoch(as_of) != NONE
        and not len(shard.offsets.by_group.get(group.id, ()))
    ]


def mark_uncertain(shard: ShardState, group_ids: Iterable[str], *, for_update: bool) -> Result[list[str]]:
    """Notes that what is stored of these groups is about to change; replies with those that are marked.

    `for_update`: a description comes. Otherwise one goes, and groups with members, or without a description, are left
    out.
    """
    records: list[CoordinatorRecord] = []
    marked = []
    for group_id in group_ids:
        group = shard.groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            continue
        stored = group.described_epoch()
        if not for_update and (not group.is_empty or stored == NONE):
            continue
        if stored != UNCERTAIN:
            records.append(_record(group, UNCERTAIN))
        marked.append(group_id)
    return Result(records, marked)


def note_stored(shard: ShardState, group_id: str, epoch: int) -> Result[None]:
    """Notes that the description of the topology with this epoch is stored. Raises ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.existing_of(StreamsGroup, group_id)
    stored = group.described_epoch()
    # the description was deleted meanwhile: whether before or after it was stored is not known
    return Result([_record(group, UNCERTAIN if stored == NONE else max(stored, epoch))])


def note_refused(shard: ShardState, group_id: str, epoch: int) -> Result[None]:
    """Notes that this topology's description will never be stored. Raises ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.existing_of(StreamsGroup, group_id)
    stored, refused = group.description_epochs
    return Result([_record(group, stored, max(refused, epoch))])


def note_deleted(shard: ShardState, group_ids: Collection[str]) -> Result[None]:
    """Notes that descriptions are deleted. One that was stored meanwhile may be deleted, too."""
    records = []
    for group_id in group_ids:
        group = shard.groups.get(group_id)
        if isinstance(group, StreamsGroup) and group.described_epoch() != NONE:
            records.append(_record(group, NONE if group.described_epoch() == UNCERTAIN else UNCERTAIN))
    return Result(records)


def _record(group: StreamsGroup, stored: int, refused: int | None = None) -> CoordinatorRecord:
    """The group's record with other epochs of descriptions."""
    epochs = stored, group.description_epochs[1] if refused is None else refused
    return group_record(
        group, group.epoch, group.metadata_hash, group.validated_epoch, group.assignment_configs, epochs
    )
