"""An assignment that is to be computed for a modern group, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..format import CoordinatorRecord
from .assignors import Spec, Steps
from .environment import Target

T = TypeVar("T")


class Candidate(NamedTuple):
    """A member that takes part in an assignment."""

    id: str
    instance_id: str | None
    rack_id: str | None
    names: frozenset[str]
    target: Target


class TargetRecords(NamedTuple, Generic[T]):
    """How one kind of group writes an assignment, of which a member may get nothing."""

    of_member: Callable[[str, str, T], CoordinatorRecord]  # of a group's id, a member's id and its target
    of_group: Callable[[str, int, int], CoordinatorRecord]  # of a group's id, the assignment's epoch and its time
    nothing: T


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """An assignment to compute: by `steps`, or by the function of a user, which cannot be interrupted. `size`: what it
    assigns besides the partitions of topics to which members are subscribed. `homogeneous`: whether the group takes
    its members to be subscribed to the same.
    """

    records: TargetRecords[T]
    epoch: int
    candidates: list[Candidate]
    steps: Callable[[Spec], Steps[Mapping[str, T]]] | None
    function: Callable[[Spec], Mapping[str, T]] | None = None
    size: int = 0
    homogeneous: bool = True


class Failure(NamedTuple):
    """The reason why the assignment of an epoch could not be computed, for the reply to the next heartbeat."""

    epoch: int
    reason: str
