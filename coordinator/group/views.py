"""How a group of each kind is shown: a row in each table for a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from .classic import view as classic_view
from .classic.group import ClassicGroup
from .consumer import view as consumer_view
from .consumer.group import ConsumerGroup
from .group import Group
from .share import view as share_view
from .share.group import ShareGroup
from .state import ShardState
from .streams import view as streams_view
from .streams.group import StreamsGroup
from .view import KindView, Steps

VIEWS: dict[type, Callable[..., Steps[KindView]]] = {
    ClassicGroup: classic_view.view,
    ConsumerGroup: consumer_view.view,
    ShareGroup: share_view.view,
    StreamsGroup: streams_view.view,
}
"""Take the shard's state and the group."""
KINDS = tuple(kind.kind for kind in (ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup))
SUMMARIES: dict[type, Callable[..., tuple[str, int]]] = {
    ClassicGroup: classic_view.summary,
    ConsumerGroup: consumer_view.summary,
    ShareGroup: share_view.summary,
    StreamsGroup: streams_view.summary,
}
"""State and epoch of a group; a consumer group's state takes a look at each of its members."""
SIZES: dict[type, Callable[..., int]] = {
    ClassicGroup: lambda group: len(group.members),
    ConsumerGroup: lambda group: len(group.members),
    ShareGroup: lambda group: len(group.members),
    StreamsGroup: lambda group: len(group.members),
}


class GroupSummaryView(TypedDict):
    """A group in a list. `epoch`: the generation of a classic group. `members`: how many it has."""

    group: str
    kind: str
    state: str
    protocol_type: str | None
    epoch: int
    members: int


def view(shard: ShardState, group: Group) -> Steps[KindView]:
    """Returns all of a group, in steps."""
    return VIEWS[type(group)](shard, group)


def summary(group: Group) -> GroupSummaryView:
    """Returns a group as a row of a list."""
    state, epoch = SUMMARIES[type(group)](group)
    return GroupSummaryView(
        group=group.id,
        kind=group.kind,
        state=state,
        protocol_type=group.protocol_type,
        epoch=epoch,
        members=SIZES[type(group)](group),
    )
