"""Server-side assignors: pure functions from members, their subscriptions and present targets to new targets.

The assignors that come with the broker are written as generators: each `next` does a small part of the work and changes
nothing outside, so that the assignment of a large group can be computed between other requests. `finished` runs one to
its end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ..environment import Target

PARTITIONS_PER_STEP = 256
R = TypeVar("R")


class AssignorFailed(Exception):
    """An assignor failed: the group keeps its assignment, and the member gets UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it (KIP-848's MemberSubscription and MemberAssignment)."""

    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    target: Target


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as an assignor sees it (KIP-848's SubscribedTopicDescriber,
    with the name): the racks of each partition's replicas.
    """

    name: str
    partition_racks: Sequence[frozenset[str]]


@dataclass(frozen=True, slots=True)
class Spec:
    """What an assignor receives. `members` are in the order of Kafka's members. `homogeneous`: the group takes them to
    be subscribed to the same. Then the assignors of Kafka look at the first one only, also where that is wrong: a
    member that joins without topics does not raise the group's epoch, so that it is not counted.

    `topics` describes every subscribed topic for a user's assignor; it is empty for those that come with the broker,
    which look at neither names nor racks, as in Kafka 4.4. `first_topics`: those of the first member, in the order of
    Kafka's set of them.
    """

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    homogeneous: bool
    topics: Mapping[bytes, TopicSpec] = field(default_factory=dict)
    first_topics: Sequence[bytes] = ()

    def assigned(self) -> dict[tuple[bytes, int], str]:
        """Returns the owner of each assigned partition, by topic id and partition."""
        return {
            (topic, p): member_id for member_id, m in self.members.items() for topic, of in m.target.items() for p in of
        }


Assignment = Mapping[str, Target]
Assignor = Callable[[Spec], Assignment]
Steps = Generator[None, None, R]
"""A computation that pauses at each yield and returns its result."""


def finished(steps: Steps[R]) -> R:
    """Runs steps to their end without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


@dataclass(slots=True)
class Pace:
    """Counts what was looked at in this step: partitions, members."""

    looked: int = 0

    def is_over(self, looked: int = 1) -> bool:
        """Counts what was looked at; returns whether the step ends."""
        self.looked += looked
        if self.looked < PARTITIONS_PER_STEP:
            return False
        self.looked = 0
        return True


def as_sets(assignment: dict[str, dict[bytes, set[int]]]) -> Steps[Assignment]:
    """Takes the assignment apart: to let go of very many sets at once takes long, too."""
    found: dict[str, Target] = {}
    for member_id in list(assignment):
        topics = assignment.pop(member_id)
        found[member_id] = {topic: frozenset(of) for topic, of in topics.items() if of}
        yield
    return found
