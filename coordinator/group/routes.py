"""Which function handles what for each kind of group: requests, timers, loading and unloading.

A table has a row for each kind of group, and one for `None`, a group that does not exist. A request that comes to a
group of another kind than it is for is refused, converts the group, or is handled in the room `bridge`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..shard import Decided, Result
from .bridge import classic_members, conversion, removal
from .classic import join, membership, rebalance, sync
from .classic.group import ClassicGroup
from .consumer import assignment as consumer_assignment
from .consumer import heartbeat as consumer_heartbeat
from .consumer import membership as consumer_membership
from .consumer.group import ConsumerGroup
from .consumer.member import LEAVE_STATIC_EPOCH
from .environment import Client
from .events import Event
from .group import Group
from .modern import LEAVE_EPOCH
from .offsets import commit
from .offsets.commit import Check
from .offsets.repeated import RepeatedCommit
from .share import heartbeat as share_heartbeat
from .share.group import ShareGroup
from .state import ShardState, other_kind
from .streams import assignment as streams_assignment
from .streams import heartbeat as streams_heartbeat
from .streams import leaving as streams_leaving
from .streams import membership as streams_membership
from .streams.beat import Beat as StreamsBeat
from .streams.group import StreamsGroup

if TYPE_CHECKING:
    from .classic.member import JoinAnswer, SyncAnswer

P = ParamSpec("P")
R = TypeVar("R")
Table = dict[type, Callable[Concatenate[ShardState, Any, P], R]]
"""The functions of one request by the kind of the group, which they take after the shard's state."""


def _refuse(kind: str) -> Callable[..., NoReturn]:
    """Returns a function that refuses a request for groups of `kind`. Raises ApiError(GROUP_ID_NOT_FOUND)."""

    def refuse(shard: ShardState, group: Group, *request: object) -> NoReturn:
        raise other_kind(group.id, kind)

    return refuse


_not_consumer, _not_share = _refuse(ConsumerGroup.kind), _refuse(ShareGroup.kind)
_not_streams = _refuse(StreamsGroup.kind)

# the classic protocol

JOIN: Table[[Client, messages.JoinGroupRequest, JoinAnswer], Decided[None]] = {
    NoneType: join.join_new_group,
    ClassicGroup: join.join,
    ConsumerGroup: classic_members.join,
    ShareGroup: join.refuse_join,
    StreamsGroup: join.join_other,
}
SYNC: Table[[messages.SyncGroupRequest, SyncAnswer], Decided[None]] = {
    NoneType: sync.refuse_sync,
    ClassicGroup: sync.sync,
    ConsumerGroup: classic_members.sync,
    ShareGroup: sync.refuse_sync,
    StreamsGroup: sync.refuse_sync,
}
HEARTBEAT: Table[[messages.HeartbeatRequest], Result[messages.HeartbeatResponse]] = {
    NoneType: membership.refuse,
    ClassicGroup: membership.heartbeat,
    ConsumerGroup: classic_members.heartbeat,
    ShareGroup: membership.refuse,
    StreamsGroup: membership.refuse,
}
LEAVE: Table[[messages.LeaveGroupRequest], Decided[messages.LeaveGroupResponse]] = {
    NoneType: membership.refuse,
    ClassicGroup: membership.leave,
    ConsumerGroup: removal.leave_group,
    ShareGroup: membership.refuse,
    StreamsGroup: membership.refuse,
}

# the heartbeats of modern groups

CONSUMER_HEARTBEAT: Table[
    [Client, messages.ConsumerGroupHeartbeatRequest], Result[messages.ConsumerGroupHeartbeatResponse]
] = {
    NoneType: consumer_heartbeat.join_new_group,
    ClassicGroup: conversion.heartbeat_of_classic,
    ConsumerGroup: consumer_heartbeat.heartbeat,
    ShareGroup: _not_consumer,
    StreamsGroup: _not_consumer,
}
CONSUMER_LEAVE: Table[
    [Client, messages.ConsumerGroupHeartbeatRequest], Result[messages.ConsumerGroupHeartbeatResponse]
] = {
    NoneType: consumer_heartbeat.leave_no_group,
    ClassicGroup: _not_consumer,
    ConsumerGroup: removal.leave_by_heartbeat,
    ShareGroup: _not_consumer,
    StreamsGroup: _not_consumer,
}
SHARE_HEARTBEAT: Table[[Client, messages.ShareGroupHeartbeatRequest], Result[share_heartbeat.Beat]] = {
    NoneType: share_heartbeat.join_new_group,
    ClassicGroup: _not_share,
    ConsumerGroup: _not_share,
    ShareGroup: share_heartbeat.heartbeat,
    StreamsGroup: _not_share,
}
STREAMS_HEARTBEAT: Table[[Client, messages.StreamsGroupHeartbeatRequest], Result[StreamsBeat]] = {
    NoneType: streams_heartbeat.join_new_group,
    ClassicGroup: streams_heartbeat.heartbeat_of_classic,
    ConsumerGroup: _not_streams,
    ShareGroup: _not_streams,
    StreamsGroup: streams_heartbeat.heartbeat,
}
STREAMS_LEAVE: Table[[Client, messages.StreamsGroupHeartbeatRequest], Result[StreamsBeat]] = {
    NoneType: streams_heartbeat.join_new_group,
    ClassicGroup: _not_streams,
    ConsumerGroup: _not_streams,
    ShareGroup: _not_streams,
    StreamsGroup: streams_leaving.leave,
}

# commits: who may commit

CHECK_COMMIT: Table[[int, messages.OffsetCommitRequest], Check | None] = {
    NoneType: commit.check_new,
    ClassicGroup: membership.check_commit,
    ConsumerGroup: consumer_membership.check_commit,
    ShareGroup: _not_consumer,
    StreamsGroup: streams_membership.check_commit,
}
CHECK_TXN_COMMIT: Table[[int, messages.TxnOffsetCommitRequest], Check | None] = {
    NoneType: commit.check_new_in_transaction,
    ClassicGroup: membership.check_commit_in_transaction,
    ConsumerGroup: consumer_membership.check_commit_in_transaction,
    ShareGroup: _not_consumer,
    StreamsGroup: streams_membership.check_commit_in_transaction,
}

# events that are not requests: nothing happens for a kind without a row

TIMERS: dict[tuple[str, type], Callable[..., Result]] = {
    ("heartbeat", ClassicGroup): membership.session_ended,
    ("join", ClassicGroup): rebalance.join_ended,
    ("sync", ClassicGroup): rebalance.sync_ended,
    ("attempt", ClassicGroup): rebalance.attempt_ended,
    ("session", ConsumerGroup): removal.session_ended,
    ("rebalance", ConsumerGroup): removal.revocation_late,
    ("classic-join", ConsumerGroup): removal.classic_member_late,
    ("classic-sync", ConsumerGroup): removal.classic_member_late,
    ("assign", ConsumerGroup): consumer_assignment.begin,
    ("session", ShareGroup): share_heartbeat.session_ended,
    ("assign", ShareGroup): share_heartbeat.begin_assignment,
    ("session", StreamsGroup): streams_leaving.session_ended,
    ("rebalance", StreamsGroup): streams_leaving.revocation_late,
    ("assign", StreamsGroup): streams_assignment.begin,
    ("gather", StreamsGroup): streams_assignment.gathered,
}
"""By the first part of the timer's key. A function takes the rest of the key but the group's id, and the arguments with
which the timer was set."""
LOADED: dict[type, Callable[[ShardState, Any], None]] = {
    ClassicGroup: membership.loaded,
    ConsumerGroup: consumer_membership.loaded,
    ShareGroup: share_heartbeat.loaded,
    StreamsGroup: streams_membership.loaded,
}
UNLOADED: dict[type, Callable[[ShardState, Any], None]] = {ClassicGroup: membership.unloaded}


# the requests


def join_group(
    shard: ShardState, client: Client, request: messages.JoinGroupRequest, answer: JoinAnswer
) -> Decided[None]:
    group = shard.groups.get(request.group_id)
    return JOIN[type(group)](shard, group, client, request, answer)


def sync_group(shard: ShardState, request: messages.SyncGroupRequest, answer: SyncAnswer) -> Decided[None]:
    group = shard.groups.get(request.group_id)
    return SYNC[type(group)](shard, group, request, answer)


def heartbeat(shard: ShardState, request: messages.HeartbeatRequest) -> Result[messages.HeartbeatResponse]:
    """Raises ApiError."""
    group = shard.groups.get(request.group_id)
    try:
        return HEARTBEAT[type(group)](shard, group, request)
    except ApiError as error:
        _tell_refused(shard, group, request.member_id, request.generation_id, error)
        raise


def leave_group(shard: ShardState, request: messages.LeaveGroupRequest) -> Decided[messages.LeaveGroupResponse]:
    """Raises ApiError(UNKNOWN_MEMBER_ID): for a group that does not exist."""
    group = shard.groups.get(request.group_id)
    return LEAVE[type(group)](shard, group, request)


def consumer_group_heartbeat(
    shard: ShardState, client: Client, request: messages.ConsumerGroupHeartbeatRequest
) -> Result[messages.ConsumerGroupHeartbeatResponse]:
    """Raises ApiError."""
    leaves = request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)
    group = shard.groups.get(request.group_id)
    try:
        return (CONSUMER_LEAVE if leaves else CONSUMER_HEARTBEAT)[type(group)](shard, group, client, request)
    except ApiError as error:
        _tell_refused(shard, group, request.member_id, request.member_epoch, error)
        raise


def share_group_heartbeat(
    shard: ShardState, client: Client, request: messages.ShareGroupHeartbeatRequest
) -> Result[share_heartbeat.Beat]:
    """Replies with the response, and the share-partitions to initialize or None. Raises ApiError."""
    group = shard.groups.get(request.group_id)
    try:
        return SHARE_HEARTBEAT[type(group)](shard, group, client, request)
    except ApiError as error:
        _tell_refused(shard, group, request.member_id, request.member_epoch, error)
        raise


def streams_group_heartbeat(
    shard: ShardState, client: Client, request: messages.StreamsGroupHeartbeatRequest
) -> Result[StreamsBeat]:
    """Replies with the response, and the internal topics to create. Raises ApiError."""
    leaves = request.member_epoch in streams_leaving.LEAVES
    group = shard.groups.get(request.group_id)
    try:
        return (STREAMS_LEAVE if leaves else STREAMS_HEARTBEAT)[type(group)](shard, group, client, request)
    except ApiError as error:
        _tell_refused(shard, group, request.member_id, request.member_epoch, error)
        raise


def _tell_refused(shard: ShardState, group: Group | None, member_id: str, epoch: int, error: ApiError) -> None:
    """A member was refused, such as one that is fenced. That holds although the write that it wanted failed."""
    if shard.on_event is not None and group is not None:
        why = f"{Errors(error.code).name}, with the epoch {epoch}"
        shard.on_event(group.id, Event("refused", group.kind, epoch, member_id, why))


def commit_offsets(
    shard: ShardState, client: Client, request: messages.OffsetCommitRequest
) -> Decided[messages.OffsetCommitResponse]:
    """Raises ApiError."""
    group = shard.groups.get(request.group_id)
    check = CHECK_COMMIT[type(group)](shard, group, client.version, request)
    return commit.commit(shard, client, request, check)


def commit_offsets_again(shard: ShardState, repeated: RepeatedCommit, numbers: Sequence[int]) -> Result:
    """Like `commit_offsets`, for a request that has other numbers than one before it. Raises ApiError."""
    request = repeated.request
    group = shard.groups.get(request.group_id)
    check = CHECK_COMMIT[type(group)](shard, group, repeated.version, request)
    return repeated.commit(shard, numbers, check)


def commit_offsets_in_transaction(
    shard: ShardState, client: Client, request: messages.TxnOffsetCommitRequest
) -> Decided[messages.TxnOffsetCommitResponse]:
    """Raises ApiError."""
    group = shard.groups.get(request.group_id)
    check = CHECK_TXN_COMMIT[type(group)](shard, group, client.version, request)
    return commit.commit_in_transaction(shard, client, request, check)
