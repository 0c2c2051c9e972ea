"""The state of groups of all kinds for the lab: lists in pages, and a group with its offsets and their lag. A view does
not change the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import translate
from itertools import islice
from re import Pattern, compile
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict
from urllib.parse import quote

from ...coordinator.group import views
from ...coordinator.group.format import Key, Stored
from ...coordinator.group.offsets.store import Offsets
from ...coordinator.group.share.group import ShareGroup
from ...coordinator.group.share.view import initialized
from ...coordinator.group.streams.group import StreamsGroup
from ...coordinator.group.view import KindView
from ...coordinator.group.views import GroupSummaryView
from ...coordinator.lifecycle import State
from ...coordinator.share.batches import UNSET_OFFSET
from ...coordinator.share.state import PartitionKey, PartitionState
from ...protocol.errors import ApiError, Errors
from ..group.coordinators import TOPIC_NAME
from ..share import share_partition_leader
from . import streams_views
from .encode import Turns
from .streams_views import StreamsView

if TYPE_CHECKING:
    from ...coordinator.group.group import Group
    from ...coordinator.group.shard import GroupShard
    from ..broker import Broker
    from ..shards.host import ShardHost

STEP_GROUPS = 256  # how many groups are looked at in a turn of the loop


class GroupListView(TypedDict):
    """Groups by name. `next`: what `after` must be for the next page; null for the last one. `loading`: the partitions
    of `__consumer_offsets` whose groups are not known yet.
    """

    groups: Iterable[GroupSummaryView]
    next: str | None
    loading: list[int]


class OffsetView(TypedDict):
    """A committed offset, beside the offsets of its partition; these are null if it does not exist. `committed_ms`:
    when. `lag`: from the committed offset to the high watermark. `in_transaction`: the offset that an open transaction
    is about to commit.
    """

    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    in_transaction: int | None
    high_watermark: int | None
    last_stable_offset: int | None
    log_end_offset: int | None
    lag: int | None


class ShareLagView(TypedDict):
    """A share-partition of a share group. `start_offset`: null while the group has none; `end_offset` and `in_flight`
    are null until a member fetches. `href`: where all of its state is.
    """

    topic: str
    partition: int
    start_offset: int | None
    end_offset: int | None
    in_flight: int | None
    high_watermark: int | None
    lag: int | None
    href: str


class GroupStateView(KindView):
    """A group with its offsets. `coordinator`: the partition of `__consumer_offsets` that has it."""

    coordinator: int
    offsets: Iterable[OffsetView]
    share_partitions: Iterable[ShareLagView]
    streams: Annotated[StreamsView | None, "The topology and the tasks of a streams group."]


class Wanted(NamedTuple):
    """Which groups are listed: None means all."""

    kind: str | None
    state: str | None
    name: str | None


EVERY = Wanted(None, None, None)


def shard_at(broker: Broker, index: int) -> GroupShard | None:
    """Returns the shard of a partition of `__consumer_offsets`; None while it is not loaded."""
    host = _host_at(broker, index)
    return host.shard if host is not None and host.runtime.state is State.ACTIVE else None


def _host_at(broker: Broker, index: int) -> ShardHost[GroupShard] | None:
    partition = broker.partitions.by_name.get((TOPIC_NAME, index))
    if partition is not None and partition.opening is not None:
        broker.turn.event(partition.opening)  # logs are opened when they are needed
    return broker.groups.hosts.get(index)


def found(broker: Broker, group_id: str) -> tuple[GroupShard, Group]:
    """Returns a group and its shard. Raises LookupError, or ApiError(COORDINATOR_LOAD_IN_PROGRESS)."""
    groups = broker.groups
    if groups.has_topic:
        shard = shard_at(broker, groups.partition_for(group_id))
        if shard is None:
            raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        group = shard.groups.get(group_id)
        if group is not None:
            return shard, group
    raise LookupError(f"group {group_id} does not exist")


def every(broker: Broker, wanted: Wanted) -> Turns[tuple[dict[str, Group], list[int]]]:
    """Returns the wanted groups by name, in turns, and the partitions that are not loaded."""
    taken: dict[str, Group] = {}
    loading: list[int] = []
    pattern = None if wanted.name is None else compile(translate(wanted.name))
    for index in range(broker.groups.partition_count if broker.groups.has_topic else 0):
        shard = shard_at(broker, index)
        if shard is None:
            loading.append(index)
            yield
            continue
        left = iter(list(shard.groups.items()))
        while some := list(islice(left, STEP_GROUPS)):
            taken.update(some if wanted == EVERY else [one for one in some if _is_wanted(*one, wanted, pattern)])
            yield
    return taken, loading


def _is_wanted(name: str, group: Group, wanted: Wanted, pattern: Pattern[str] | None) -> bool:
    if wanted.kind not in (None, group.kind) or (pattern is not None and not pattern.match(name)):
        return False
    return wanted.state is None or wanted.state.lower() == group.state_name().lower()


def group(broker: Broker, group_id: str) -> Turns[GroupStateView]:
    """Returns a group. Members, offsets and share-partitions are described when their turn comes. Raises LookupError,
    or ApiError(COORDINATOR_LOAD_IN_PROGRESS).
    """
    shard, one = found(broker, group_id)
    stored, pending = sorted(_stored(shard.offsets, group_id)), dict(shard.offsets.pending_of(group_id))
    shared = _shared(broker, shard, one) if isinstance(one, ShareGroup) else iter(())
    shown = yield from views.view(shard, one)
    index = broker.groups.partition_for(group_id)
    return {
        **shown,
        "coordinator": index,
        "offsets": (_offset(broker, *one, pending) for one in stored),
        "share_partitions": shared,
        "streams": (
            streams_views.view(one, shard.env.image, broker.groups.descriptions)
            if isinstance(one, StreamsGroup)
            else None
        ),
    }


def _stored(offsets: Offsets, group_id: str) -> Iterable[tuple[Key, Stored]]:
    found = offsets.by_group.get(group_id)
    return () if found is None else found.at().items()


def _offset(broker: Broker, key: Key, stored: Stored, pending: dict[Key, Stored]) -> OffsetView:
    _, committed, leader_epoch, metadata, committed_ms, _, _ = stored
    in_transaction, partition = pending.get(key), broker.partitions.by_name.get(key)
    high_watermark = None if partition is None else partition.high_watermark
    return {
        "topic": key[0],
        "partition": key[1],
        "committed_offset": committed,
        "leader_epoch": leader_epoch,
        "metadata": metadata,
        "committed_ms": committed_ms,
        "in_transaction": None if in_transaction is None else in_transaction[1],
        "high_watermark": high_watermark,
        "last_stable_offset": None if partition is None else partition.last_stable_offset,
        "log_end_offset": None if partition is None else partition.end_offset,
        "lag": None if high_watermark is None else max(0, high_watermark - committed),
    }


def _shared(broker: Broker, shard: GroupShard, group: ShareGroup) -> Iterator[ShareLagView]:
    """Yields the share-partitions of a group that are initialized."""
    loaded = {
        (key.topic_id, key.partition): one
        for key, one in broker.share_partitions.partitions.items()
        if key.group_id == group.id
    }
    for place in initialized(shard, group):
        topic_id = shard.env.image.topic_id(place["topic"]) or b""
        for index in place["partitions"]:
            stored = _stored_share(broker, PartitionKey(group.id, topic_id, index))
            yield _share_lag(broker, group.id, (place["topic"], index), loaded.get((topic_id, index)), stored)


def _stored_share(broker: Broker, key: PartitionKey) -> PartitionState | None:
    """What the share coordinator has of a share-partition; None without a state, or while it is loading."""
    states = broker.share_states
    host = states.hosts.get(states.partition_for(key)) if states.has_topic else None
    return host.shard.states.get(key) if host is not None and host.runtime.state is State.ACTIVE else None


def _share_lag(
    broker: Broker,
    group_id: str,
    place: Key,
    one: share_partition_leader.SharePartitionLeader | None,
    stored: PartitionState | None,
) -> ShareLagView:
    """Offsets of the share-partition's leader; of the share coordinator, if none is loaded, or if the offsets were set
    since.
    """
    topic, index = place
    window = None if one is None else one.engine.window
    if one is not None and stored is not None and stored.state_epoch > one.engine.state_epoch:
        window = None
    start, complete = None, 0
    if window is not None:
        start, complete = window.start_offset, window.complete_count
    elif stored is not None and stored.start_offset != UNSET_OFFSET:
        start, complete = stored.start_offset, max(0, stored.complete_count)
    partition = broker.partitions.by_name.get(place)
    high_watermark = None if partition is None else partition.high_watermark
    return {
        "topic": topic,
        "partition": index,
        "start_offset": start,
        "end_offset": None if window is None else window.end_offset,
        "in_flight": None if window is None else window.in_flight_count,
        "high_watermark": high_watermark,
        "lag": None if start is None or high_watermark is None else max(0, high_watermark - start - complete),
        "href": f"/v1/share/{quote(group_id, safe='')}/{quote(topic, safe='')}/{index}",
    }
