"""Groups: members, what a rebalance waits for, timers, offsets with their lag, and what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar

from ...coordinator.group import views
from ...coordinator.group.events import GroupEventView
from ..later import Later, drive
from . import group_resets, group_views, share_resets
from .encode import Turns
from .group_resets import ResetOffsets, ResetView
from .group_views import GroupListView, GroupStateView, Wanted
from .lab import Lab
from .pages import Page
from .routes import Refused, route
from .shapes import Invalid, Millis, Range, Size
from .share_resets import DeletedOffsetsView, DeleteOffsets

if TYPE_CHECKING:
    from ..group.chronicle import Chronicle

T = TypeVar("T")
WAIT_MAX_MS = 50_000  # less than clients wait for a reply
NOT_THERE = {404: "the group does not exist", 409: "the coordinator of the group is loading"}


@dataclass(frozen=True)
class ListGroups(Page):
    """Which groups to list."""

    type: Annotated[str | None, "Only groups of this kind: classic, consumer, share or streams."] = None
    state: Annotated[str | None, "Only groups in this state, such as Stable, in any case."] = None
    name: Annotated[str | None, "Only groups whose name matches: `*` stands for anything.", Size(1, 249)] = None

    def __post_init__(self) -> None:
        if self.type is not None and self.type not in views.KINDS:
            raise Invalid("type", f"must be one of {', '.join(views.KINDS)}, found {self.type!r}")


@dataclass(frozen=True)
class GroupName:
    """A group by its name."""

    group: str


@dataclass(frozen=True)
class GroupTimeline:
    """Which part of the timeline of a group."""

    group: str
    after: Annotated[int, "Only events with higher numbers: `last` of the reply before.", Range(0)] = 0
    wait: Annotated[
        Millis, "How long to wait for an event if there is none, by the machine's time.", Range(0, WAIT_MAX_MS)
    ] = 0
    limit: Annotated[int, "How many events at most.", Range(1, 10_000)] = 1_000


class TimelineView(TypedDict):
    """What happened to a group, oldest first. `last`: what `after` must be to get what follows; 0 if the broker has
    started since, where numbers begin again. `left_out`: whether events after `after` are not kept any more.
    """

    group: str
    events: list[GroupEventView]
    last: int
    left_out: bool


@route("GET /v1/groups", example=ListGroups(limit=100))
def groups(lab: Lab, asked: ListGroups) -> Turns[GroupListView]:
    """Lists groups of all kinds: kind, state, epoch, and the number of members."""
    found, loading = yield from group_views.every(lab.broker, Wanted(asked.type, asked.state, asked.name))
    names, following = asked.of(found)
    return {
        "groups": (views.summary(found[name]) for name in names),
        "next": following,
        "loading": loading,
    }


@route("GET /v1/groups/{group}", example=GroupName("workers"), errors=NOT_THERE)
def group(lab: Lab, asked: GroupName) -> Turns[GroupStateView]:
    """Shows a group: its members with targets beside assignments, what its rebalance waits for and until when, its
    timers, and its offsets with their lag.
    """
    return group_views.group(lab.broker, asked.group)


@route(
    "GET /v1/groups/{group}/timeline",
    example=GroupTimeline("workers"),
    errors={409: "ottla.lab.group.events is 0"},
)
def group_timeline(lab: Lab, asked: GroupTimeline) -> Later[TimelineView]:
    """Tells what happened to a group: who joined, whom a rebalance waited for, which epoch, who got and gave up what,
    and who was too late. With `wait` it answers when something happens, also for a group that does not exist yet.
    """
    chronicle = lab.broker.groups.chronicle
    if chronicle is None:
        raise Refused(409, "there are no timelines: ottla.lab.group.events is 0")
    found: Later[TimelineView] = Later()

    def answer() -> None:
        found.finish(_timeline(chronicle, asked))

    if not asked.wait or chronicle.events(asked.group, asked.after, 1):
        answer()
        return found
    event = chronicle.next_event(asked.group)
    timer = lab.server.machine.after(asked.wait, answer)
    event.when_done(lambda _: answer())

    def end() -> None:
        timer.cancel()
        event.cancel()

    found.on_cancel = end
    found.when_done(lambda _: end())
    return found


@route(
    "PUT /v1/groups/{group}/offsets",
    example=ResetOffsets("reset", "orders", to="earliest"),
    errors={
        404: "the topic or the partition does not exist",
        409: "the group has members, or its coordinator is loading",
    },
)
def reset_offsets(lab: Lab, asked: ResetOffsets) -> Later[ResetView]:
    """Sets the committed offsets of a group without members, or the start offsets of a share group, in one partition of
    a topic or in all. A group that does not exist begins with committed offsets. With `plan` nothing is set.
    """
    return _settled(lab, drive(group_resets.reset(lab.broker, asked)))


@route(
    "DELETE /v1/groups/{group}/offsets",
    example=DeleteOffsets("jobs", "orders"),
    errors={
        404: "the group or the topic does not exist, or the group has no offsets of the topic",
        409: "the group has members, or is no share group, or its coordinator is loading",
    },
)
def delete_offsets(lab: Lab, asked: DeleteOffsets) -> Later[DeletedOffsetsView]:
    """Forgets a topic of a share group without members: the group begins again where its configuration says, and what
    it knew of records in flight is gone. With `plan` nothing is deleted.
    """
    return _settled(lab, drive(share_resets.delete(lab.broker, asked)))


def _settled(lab: Lab, answer: Later[T]) -> Later[T]:
    """Appends what was written for an answer at the end of this turn, and not at the next event of the broker, for
    which an idle broker's clock may have to go on.
    """
    lab.broker.turn.settle_soon()
    return answer


def _timeline(chronicle: Chronicle, asked: GroupTimeline) -> TimelineView:
    events = chronicle.events(asked.group, asked.after, asked.limit)
    known = asked.after if asked.after <= chronicle.newest else 0
    return {
        "group": asked.group,
        "events": events,
        "last": events[-1]["number"] if events else known,
        "left_out": chronicle.has_dropped(asked.group, asked.after),
    }
