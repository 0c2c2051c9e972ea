"""What happened to a group, as one line of its timeline: what the log tells (`story`), and what only lives in memory,
such as a session that ended (`ShardState.tell`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict

Place = tuple[str, int]
"""A topic's name and a partition."""
WORDS: Mapping[str, str] = {
    # what the log tells
    "created": "a {kind} group began",
    "converted": "the {why} group became a {kind} group",
    "ended": "the group ended",
    "generation": "generation {epoch} began with the protocol {why}: {members}",
    "emptied": "the last member is gone: generation {epoch} is empty",
    "member-added": "{member} became a member ({why})",
    "member-removed": "{member} is no member any more",
    "subscribed": "{member} changed what it says of itself ({why})",
    "epoch": "the epoch rose to {epoch}: a new assignment is due",
    "assignment": "the assignment of epoch {epoch} is complete",
    "target": "{member} is to have {partitions}",
    "assigned": "{member} got {partitions}",
    "must-revoke": "{member} must give up {partitions}",
    "revoked": "{member} gave up {partitions}",
    "waits": "{member} waits for partitions that others still have",
    "acknowledged": "{member} acknowledged epoch {epoch}",
    "away": "{member} is away, and may come back",
    "topology": "the topology was stored: {why}",
    "regex": "a regular expression matched: {why}",
    "offsets-removed": "the offsets of {partitions} were removed",
    # what only lives in memory
    "id-given": "{member} was given its id, and must join with it",
    "joined": "{member} joined",
    "rebalance": "a rebalance began, because {why}; it waits for {members}",
    "all-joined": "all members of generation {epoch} have joined; it waits for {member}, the leader, to assign",
    "synced": "{member} synced",
    "late": "{member} was too late: {why}",
    "session-ended": "the session of {member} ended",
    "left": "{member} left",
    "replaced": "the static member {why} came back as {member}",
    "refused": "{member} was refused: {why}",
    "offsets-expired": "offsets expired",
}
"""A sentence for each kind of event."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `epoch`: of the member or the group; the generation of a classic group; -1 if it does
    not matter.
    """

    what: str
    kind: str
    epoch: int = -1
    member: str | None = None
    why: str = ""
    partitions: tuple[Place, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """What it takes of memory, roughly in proportion."""
        return 1 + len(self.partitions) + len(self.members)


class TopicPartitionsView(TypedDict):
    """Partitions of a topic. `topic`: the name, or the id of a topic that does not exist any more."""

    topic: str
    partitions: list[int]


class GroupEventView(TypedDict):
    """An event of a timeline. `number`: for `after`. `at_ms`: the broker's time; `monotonic_ms`: null if the event was
    read from the log when the broker started. `source`: `log` for what the log tells, which a data directory tells too;
    `memory` for what is nowhere else. `words`: the event as a sentence.
    """

    number: int
    at_ms: int
    monotonic_ms: int | None
    source: Literal["log", "memory"]
    what: str
    kind: str
    epoch: int | None
    member: str | None
    why: str
    partitions: list[TopicPartitionsView]
    members: list[str]
    words: str


def shown(
    event: Event, number: int, at_ms: int, monotonic_ms: int | None, source: Literal["log", "memory"]
) -> GroupEventView:
    return GroupEventView(
        number=number,
        at_ms=at_ms,
        monotonic_ms=monotonic_ms,
        source=source,
        what=event.what,
        kind=event.kind,
        epoch=None if event.epoch == -1 else event.epoch,
        member=event.member,
        why=event.why,
        partitions=by_topic(event.partitions),
        members=list(event.members),
        words=words_of(event),
    )


def by_topic(places: Iterable[Place]) -> list[TopicPartitionsView]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return [TopicPartitionsView(topic=topic, partitions=of) for topic, of in found.items()]


def words_of(event: Event) -> str:
    """The event as a sentence."""
    places = " ".join(f"{one['topic']}:{','.join(map(str, one['partitions']))}" for one in by_topic(event.partitions))
    return WORDS[event.what].format(
        kind=event.kind,
        epoch=event.epoch,
        member=event.member,
        why=event.why,
        partitions=places or "nothing",
        members=", ".join(event.members) or "time only",
    )
