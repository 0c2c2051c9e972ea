"""What is shown of a share group (KIP-932). Its members share partitions, so that none waits for another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..events import TopicPartitionsView
from ..state import ShardState
from ..view import GroupMemberView, KindView, Steps, WaitView, named, remaining_ms, timers, wait
from .group import NOTHING, ShareGroup, ShareMember


def summary(group: ShareGroup) -> tuple[str, int]:
    """State and epoch."""
    return group.state_name(), group.epoch


def view(shard: ShardState, group: ShareGroup) -> Steps[KindView]:
    """Returns the group as it is now."""
    members = list(group.members.values())
    targets = [group.targets.get(member.id, {}) for member in members]
    epoch, assignment_epoch = group.epochs()
    image = shard.env.image

    def described() -> Iterator[GroupMemberView]:
        for member, target in zip(members, targets, strict=True):
            yield GroupMemberView(
                member=member.id,
                protocol=group.kind,
                instance_id=None,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                state="stable" if member.epoch >= assignment_epoch else "behind",
                epoch=member.epoch,
                previous_epoch=member.previous_epoch,
                topics=sorted(member.topic_names),
                regex=None,
                assignors=[],
                assigned=named(image, member.assigned.items()),
                target=named(image, target.items()),
                revoking=[],
                awaited=[],
                timers=timers(shard, [("session", ("session", group.id, member.id))]),
            )

    shown = KindView(
        group=group.id,
        kind=group.kind,
        state=group.state_name(),
        protocol_type=group.protocol_type,
        epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor="simple",
        leader=None,
        pending=[],
        regexes=[],
        timers=timers(shard, [("assignment", ("assign", group.id))]),
        waits=chain(list(_waits_of_group(shard, group)), _waits(shard, group.id, members, assignment_epoch)),
        members=described(),
    )
    yield
    return shown


def initialized(shard: ShardState, group: ShareGroup) -> list[TopicPartitionsView]:
    """The share-partitions that the share coordinator has initialized."""
    found = shard.initializations.get(group.id, NOTHING)
    return named(shard.env.image, ((topic, state.partitions) for topic, state in found.initialized.items()))


def _waits_of_group(shard: ShardState, group: ShareGroup) -> Iterator[WaitView]:
    if group.is_empty:
        return
    initializing = shard.initializations.get(group.id, NOTHING).initializing
    if initializing:
        of = named(shard.env.image, ((topic, state.partitions) for topic, state in initializing.items()))
        yield wait(None, "initialize", None, of)
    if group.epoch > group.assignment_epoch:
        yield wait(None, "assign", remaining_ms(shard, ("assign", group.id)))


def _waits(shard: ShardState, group_id: str, members: list[ShareMember], epoch: int) -> Iterator[WaitView]:
    for member in members:
        if member.epoch < epoch:
            yield wait(member.id, "heartbeat", remaining_ms(shard, ("session", group_id, member.id)))
