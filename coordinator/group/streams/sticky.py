"""The assignor `sticky` of streams groups: active tasks stay with their members, then go to members that have a copy of
the state, then to the process with the least load; standby tasks follow (KIP-1071).

Each process has the load of its tasks by its members. Within the quota, which is computed again as members reach it, a
member keeps what it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...hashing import computed_order, java_order, name_hash
from ...java_queue import JavaQueue
from ..assignors import Pace, Steps
from .tasks import HeldTasks, Task, Tasks

NAME = "sticky"
Offsets = Mapping[Task, int]
"""The sum of the offsets of a task's changelogs, as a member has them on its disk."""


class TaskMember(NamedTuple):
    """A member as the assignor sees it."""

    process: str
    held: Tasks | HeldTasks
    offsets: Offsets


class TaskSpec(NamedTuple):
    """What the assignor receives. `members`: in the order of Kafka's. `subtopologies`: the number of tasks, and whether
    they have state, by id in their order.
    """

    members: Mapping[str, TaskMember]
    subtopologies: Mapping[str, tuple[int, bool]]
    standbys: int


class _Seat(NamedTuple):
    """A member and its process."""

    process: _Process
    member: str


@dataclass(slots=True, eq=False)
class _Process:
    """The members of a process, and the tasks that they get."""

    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0
    tasks: set[Task] = field(default_factory=set)
    active: dict[str, set[Task]] = field(default_factory=dict)
    standby: dict[str, set[Task]] = field(default_factory=dict)
    queue: JavaQueue[list[object]] | None = None

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    def give(self, member: str, task: Task, is_active: bool) -> int:
        """Returns how many tasks the member has now."""
        self.queue = None
        return self._put(member, task, is_active)

    def give_any(self, task: Task, is_active: bool) -> int:
        """Gives a task to the member with the least; returns how many it has now."""
        if len(self.counts) == 1:
            return self._put(next(iter(self.counts)), task, is_active)
        if self.queue is None:
            entries: list[list[object]] = [[self.counts[name], name] for name in java_order(self.counts)]
            self.queue = JavaQueue(lambda entry: entry[0], entries)  # type: ignore[arg-type,return-value]
        least = self.queue.poll()
        count = self._put(str(least[1]), task, is_active)
        least[0] = count
        self.queue.add(least)
        return count

    def _put(self, member: str, task: Task, is_active: bool) -> int:
        self.total += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member, set()).add(task)
        self.counts[member] += 1
        return self.counts[member]


@dataclass(slots=True)
class _Quota:
    """How many tasks each member may get, while some have room."""

    tasks: int
    members: int
    each: int = 0

    def __post_init__(self) -> None:
        self._compute()

    def _compute(self) -> None:
        self.each = -(-self.tasks // self.members) if self.members else 0

    def note(self, count: int) -> None:
        """A member has this many tasks now."""
        if count == self.each:
            self.members -= 1
            self.tasks -= count
            self._compute()


class _Assignment:
    """One assignment under way."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        active = sum(count for count, _ in spec.subtopologies.values())
        stateful = sum(count for count, is_stateful in spec.subtopologies.values() if is_stateful)
        self.active_quota = _Quota(active, len(spec.members))
        self.quota = _Quota(active + stateful * spec.standbys, len(spec.members))
        self.processes: dict[str, _Process] = {}
        self.had: dict[Task, _Seat] = {}
        self.copies: dict[Task, list[_Seat]] = {}
        self.pace = Pace()

    def prepare(self) -> Steps[None]:
        """Notes what each member has."""
        ranked: dict[Task, list[tuple[int, int, _Seat]]] = {}
        for name, member in self.spec.members.items():
            process = self.processes.setdefault(member.process, _Process())
            process.counts[name] = 0
            seat = _Seat(process, name)
            for task in member.held.active:
                self.had[task] = seat
                if self.pace.is_over():
                    yield
            for task in member.held.standby:
                ranked.setdefault(task, []).append((0, -member.offsets.get(task, 0), seat))
                if self.pace.is_over():
                    yield
            for task, offset in member.offsets.items():
                if task not in member.held.standby:
                    ranked.setdefault(task, []).append((1, -offset, seat))
                if self.pace.is_over():
                    yield
            if self.pace.is_over():
                yield
        while ranked:  # taken out one by one: to let go of all of them takes long, too
            task, found = ranked.popitem()
            found.sort(key=lambda one: one[:2])
            self.copies[task] = [seat for *_, seat in found]
            if self.pace.is_over(len(found)):
                yield

    def _tasks(self, stateful_only: bool) -> Iterator[Task]:
        """Yields the tasks in the order of their numbers, and those of a number in that of their subtopologies."""
        left = [
            (name, count)
            for name, (count, is_stateful) in sorted(self.spec.subtopologies.items())
            if is_stateful or not stateful_only
        ]
        number = 0
        while left := [one for one in left if one[1] > number]:
            yield from ((name, number) for name, _ in left)
            number += 1

    def _by_subtopology(self, tasks: Iterable[Task], reverse: bool) -> Steps[list[Task]]:
        """Returns tasks, which are in the order of their numbers, in that of their subtopologies."""
        found: dict[str, list[Task]] = {name: [] for name in sorted(self.spec.subtopologies, reverse=reverse)}
        for task in tasks:
            found[task[0]].append(task)
            if self.pace.is_over():
                yield
        return [task for of in found.values() for task in of]

    def _copies_of(self, task: Task) -> int:
        return len(self.copies.get(task, ()))

    def by_load(self) -> JavaQueue[_Process]:
        members = self.spec.members
        names = computed_order((member.process for member in members.values()), len(members), name_hash)
        return JavaQueue(lambda process: process.load, [self.processes[name] for name in names])

    def _gave(self, count: int, is_active: bool) -> None:
        if is_active:
            self.active_quota.note(count)
        self.quota.note(count)

    def _keep(self, seat: _Seat | None, task: Task, is_active: bool) -> bool:
        """Gives a task to a member that has room in its quota."""
        quota = self.active_quota if is_active else self.quota
        if seat is None or seat.process.counts[seat.member] >= quota.each:
            return False
        self._gave(seat.process.give(seat.member, task, is_active), is_active)
        return True

    def _best_copy(self, task: Task, is_standby: bool) -> _Seat | None:
        """Returns the member with a copy of the task's state whose process and itself have the least load."""
        best, loads = None, (0.0, 0)
        for seat in self.copies.get(task, ()):
            if is_standby and task in seat.process.tasks:
                continue
            found = seat.process.load, seat.process.counts[seat.member]
            if best is None or (found[0] < loads[0] and found[1] < loads[1]):
                best, loads = seat, found
        return best

    def give_active(self) -> Steps[None]:
        new: list[Task] = []
        for task in self._tasks(stateful_only=False):
            if not self._keep(self.had.get(task), task, True):
                new.append(task)
            if self.pace.is_over():
                yield
        left: list[Task] = []
        for task in new:
            if not self._keep(self._best_copy(task, False), task, True):
                left.append(task)
            if self.pace.is_over(1 + self._copies_of(task)):
                yield
        queue = self.by_load()
        for task in (yield from self._by_subtopology(left, reverse=False)):
            process = queue.poll()
            self._gave(process.give_any(task, True), True)
            queue.add(process)
            if self.pace.is_over():
                yield

    def give_standby(self) -> Steps[None]:
        tasks: list[Task] = []
        for task in self._tasks(stateful_only=True):
            tasks.append(task)
            if self.pace.is_over():
                yield
        missing: dict[Task, int] = {}
        for task in reversed(tasks):
            kept = 0
            while kept < self.spec.standbys and self._keep_standby(task):
                kept += 1
            if kept < self.spec.standbys:
                missing[task] = self.spec.standbys - kept
            if self.pace.is_over((1 + kept) * (1 + self._copies_of(task))):
                yield
        queue = self.by_load()
        for task in (yield from self._by_subtopology(missing, reverse=True)):
            for _ in range(missing[task]):
                if not self._give_to_least(queue, task):
                    break
            if self.pace.is_over(missing[task]):
                yield

    def _keep_standby(self, task: Task) -> bool:
        seat = self.had.get(task)
        if seat is not None and task not in seat.process.tasks and self._keep(seat, task, False):
            return True
        return self._keep(self._best_copy(task, True), task, False)

    def _give_to_least(self, queue: JavaQueue[_Process], task: Task) -> bool:
        """Gives a standby task to the process with the least load that does not have the task yet."""
        passed: list[_Process] = []
        found = False
        while len(queue) and not found:
            process = queue.poll()
            passed.append(process)
            if task not in process.tasks:
                self._gave(process.give_any(task, False), False)
                found = True
        for process in reversed(passed):
            queue.add(process)
        return found

    def result(self) -> Steps[dict[str, Tasks]]:
        found = {}
        for name, member in self.spec.members.items():
            process = self.processes[member.process]
            tasks = Tasks(frozenset(process.active.get(name, ())), frozenset(process.standby.get(name, ())))
            found[name] = tasks
            if self.pace.is_over(1 + len(tasks.active) + len(tasks.standby)):
                yield
        return found


def steps(spec: TaskSpec) -> Steps[Mapping[str, Tasks]]:
    """Computes the tasks of each member."""
    assignment = _Assignment(spec)
    yield from assignment.prepare()
    yield from assignment.give_active()
    if spec.standbys:
        yield from assignment.give_standby()
    return (yield from assignment.result())


def nothing(members: Sequence[str]) -> Steps[Mapping[str, Tasks]]:
    """Gives no task to any member: the topology is not ready."""
    yield
    return {name: Tasks() for name in members}
