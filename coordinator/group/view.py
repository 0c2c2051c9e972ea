"""What is shown of a group of any kind: its members, its timers, and what it waits for. See `views` for the kinds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Literal, TypedDict, TypeVar

from .environment import TopicImage
from .events import TopicPartitionsView
from .state import ShardState, TimerKey

STEP_MEMBERS = 256  # how many members are looked at before other work gets a turn
Action = Literal["join", "sync", "heartbeat", "revoke", "rejoin", "gather", "retry", "commit", "assign", "initialize"]
T = TypeVar("T")
Steps = Generator[None, None, T]
"""Makes a view in steps. What is shown of members is that of the first step."""


class AwaitedView(TypedDict):
    """A partition of a member's target that another member still holds. `held_by`: that member; None if it is free."""

    topic: str
    partition: int
    held_by: str | None


class TimerView(TypedDict):
    """A timer that runs. `remaining_ms`: until it ends, which may be below 0 for a moment."""

    timer: str
    remaining_ms: int


class WaitView(TypedDict):
    """What a rebalance waits for. `member`: who must act; None where no member must. `action`: `join`, `sync`,
    `heartbeat` or `revoke` is the request that the member must send, and `rejoin` that of a static member that is away;
    `gather`, `retry`, `commit`, `assign` and `initialize` are the broker's. `partitions`: what the member must give up.
    `awaited_by`: the members whose targets have these partitions. `remaining_ms`: how long the broker waits, where it
    has a timer for that.
    """

    member: str | None
    action: Action
    partitions: list[TopicPartitionsView]
    awaited_by: list[str]
    remaining_ms: int | None


class GroupMemberView(TypedDict):
    """A member. `protocol`: how it speaks, `classic`, `consumer` or `share`. `state`: where it is on its way to its
    target. `epoch`: of the member; the generation in a classic group. `assigned`: what it has, as far as the broker can
    read that. `target`: what it is to have; None in a classic group, which has none. `revoking`: what it must give up.
    `awaited`: what it lacks of its target. `topics`: those that it names.
    """

    member: str
    protocol: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    state: str
    epoch: int
    previous_epoch: int | None
    topics: list[str]
    regex: str | None
    assignors: list[str]
    assigned: list[TopicPartitionsView]
    target: list[TopicPartitionsView] | None
    revoking: list[TopicPartitionsView]
    awaited: list[AwaitedView]
    timers: list[TimerView]


class RegexView(TypedDict):
    """A regular expression, how many members are subscribed by it, and the topics that it matched. `resolved_ms`: when;
    None if it has not been matched yet.
    """

    regex: str
    members: int
    topics: list[str]
    resolved_ms: int | None


class KindView(TypedDict):
    """A group. `epoch`: the generation of a classic group. `assignment_epoch`: None in a classic group. `assignor`: the
    protocol of a classic group. `pending`: member ids that were given out, and have not joined. `waits`: what the
    rebalance waits for; empty if none is going on.
    """

    group: str
    kind: str
    state: str
    protocol_type: str | None
    epoch: int
    assignment_epoch: int | None
    assignor: str | None
    leader: str | None
    pending: list[str]
    regexes: list[RegexView]
    timers: list[TimerView]
    waits: Iterable[WaitView]
    members: Iterable[GroupMemberView]


def remaining_ms(shard: ShardState, key: TimerKey) -> int | None:
    """How long a timer still runs; None if it does not."""
    timer = shard.timers.get(key)
    if timer is None or timer.deadline_ms is None:
        return None
    return timer.deadline_ms - shard.env.monotonic_ms()


def timers(shard: ShardState, named: Iterable[tuple[str, TimerKey]]) -> list[TimerView]:
    """The timers among these that run, by the names that are shown."""
    found = ((name, remaining_ms(shard, key)) for name, key in named)
    return [TimerView(timer=name, remaining_ms=left) for name, left in found if left is not None]


def wait(
    member: str | None,
    action: Action,
    remaining: int | None = None,
    partitions: list[TopicPartitionsView] | None = None,
    awaited_by: Iterable[str] = (),
) -> WaitView:
    return WaitView(
        member=member,
        action=action,
        partitions=partitions or [],
        awaited_by=list(awaited_by),
        remaining_ms=remaining,
    )


def topic_of(image: TopicImage, topic_id: bytes) -> str:
    """The name of a topic, or its id if it does not exist any more."""
    return image.topic_name(topic_id) or topic_id.hex()


def named(image: TopicImage, partitions: Iterable[tuple[bytes, Iterable[int]]]) -> list[TopicPartitionsView]:
    """Partitions by topic id as they are shown, sorted."""
    shown = [TopicPartitionsView(topic=topic_of(image, topic), partitions=sorted(of)) for topic, of in partitions if of]
    return sorted(shown, key=lambda one: one["topic"])


def in_steps(members: Iterable[T], note: Callable[[T], object]) -> Steps[None]:
    """Calls `note` with each member, some hundred in a step."""
    for number, member in enumerate(members, 1):
        note(member)
        if number % STEP_MEMBERS == 0:
            yield
