"""Server-side assignors: pure functions from members, their subscriptions and present targets to new targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..environment import Target


class AssignorFailed(Exception):
    """An assignor could not or would not: the group keeps its assignment, the member is told UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it (KIP-848's AssignmentMemberSpec)."""

    instance_id: str | None
    rack_id: str | None
    topic_ids: frozenset[bytes]
    target: Target


@dataclass(frozen=True, slots=True)
class Spec:
    """What an assignor is given. `members` are in the order in which Kafka's would be."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    homogeneous: bool

    def assigned(self) -> dict[tuple[bytes, int], str]:
        """Who has what at present, of members that are there."""
        return {(topic, p): member_id for member_id, m in self.members.items() for topic, of in m.target.items() for p in of}


Assignor = Callable[[Spec], Mapping[str, Target]]


def as_sets(assignment: Mapping[str, Mapping[bytes, set[int]]]) -> dict[str, Target]:
    return {member_id: {topic: frozenset(of) for topic, of in topics.items() if of} for member_id, topics in assignment.items()}
