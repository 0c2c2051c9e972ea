"""Tasks of a streams group: a subtopology and a number, which is that of the partitions of its source topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from ...hashing import java_order

Task = tuple[str, int]
"""The id of a subtopology, and the number of the task."""
NONE: frozenset[Task] = frozenset()


class Tasks(NamedTuple):
    """The tasks that a member is to have, or says that it has."""

    active: frozenset[Task] = NONE
    standby: frozenset[Task] = NONE
    warmup: frozenset[Task] = NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class HeldTasks(NamedTuple):
    """The tasks that a member has or must give up; the active ones with the epoch at which it got them."""

    active: Mapping[Task, int] = {}
    standby: frozenset[Task] = NONE
    warmup: frozenset[Task] = NONE

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def plain(self) -> Tasks:
        """The same without epochs."""
        return Tasks(frozenset(self.active), self.standby, self.warmup)


NO_TASKS = Tasks()
NOTHING_HELD = HeldTasks()


class NamedTasks(Protocol):
    """Tasks of a subtopology, as requests and records have them."""

    subtopology_id: str
    partitions: list[int]


def flat(named: Iterable[NamedTasks]) -> frozenset[Task]:
    """Returns the tasks of a list of a request or a record."""
    return frozenset((one.subtopology_id, number) for one in named for number in one.partitions)


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Returns the sorted numbers of the tasks of each subtopology, in the order of their ids."""
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        found.setdefault(subtopology, []).append(number)
    return found


def in_reply_order(tasks: Iterable[Task]) -> list[tuple[str, list[int]]]:
    """Like `by_subtopology`, in the order of a Java HashMap, as Kafka's heartbeat has it."""
    found = by_subtopology(tasks)
    return [(name, found[name]) for name in java_order(found)]
