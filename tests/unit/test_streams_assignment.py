"""The sticky assignor of streams groups: every task runs once, copies are elsewhere, and what need not move stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.coordinator.group.assignors import PARTITIONS_PER_STEP, finished
from ottla.coordinator.group.streams import sticky
from ottla.coordinator.group.streams.sticky import TaskMember, TaskSpec, steps
from ottla.coordinator.group.streams.tasks import NO_TASKS, Tasks
from ottla.coordinator.java_queue import JavaQueue

from ..oracle.task_cases import KEPT, group, recorded, words
from ..support.seeds import spans


@st.composite
def specs(draw: st.DrawFn) -> TaskSpec:
    """Members of some processes, which may have anything."""
    sizes = {str(n): (draw(st.integers(1, 6)), draw(st.booleans())) for n in range(draw(st.integers(1, 4)))}
    tasks = st.sampled_from([(name, number) for name, (count, _) in sizes.items() for number in range(count)])
    members = {}
    for number in range(draw(st.integers(1, 8))):
        active, standby = (frozenset(draw(st.lists(tasks, max_size=5))) for _ in range(2))
        offsets = draw(st.dictionaries(tasks, st.integers(0, 9), max_size=4))
        process = draw(st.sampled_from("abcd"))
        members[f"m{number}"] = TaskMember(process, Tasks(active, standby - active), offsets)
    return TaskSpec(members, sizes, draw(st.integers(0, 3)))


def assigned(spec: TaskSpec) -> dict[str, Tasks]:
    return dict(finished(steps(spec)))


@pytest.mark.long
@given(specs())
@settings(max_examples=60, deadline=None)
def test_every_task_runs_once_and_copies_are_on_other_processes(spec: TaskSpec) -> None:
    found = assigned(spec)
    wanted = {(name, number) for name, (count, _) in spec.subtopologies.items() for number in range(count)}
    assert Counter(task for one in found.values() for task in one.active) == Counter(wanted)
    places: dict[tuple[str, int], list[str]] = {}
    for name, one in found.items():
        for task in (*one.active, *one.standby):
            places.setdefault(task, []).append(spec.members[name].process)
    processes = {member.process for member in spec.members.values()}
    for (name, number), of in places.items():
        assert len(set(of)) == len(of), f"task {name}_{number} is twice on a process"
        copies = min(spec.standbys, len(processes) - 1) if spec.subtopologies[name][1] else 0
        assert len(of) == 1 + copies


@pytest.mark.long
@given(specs())
@settings(max_examples=60, deadline=None)
def test_a_balanced_assignment_stays(spec: TaskSpec) -> None:
    """Without standby tasks: what was assigned once is assigned again."""
    found = assigned(spec._replace(standbys=0))
    members = {
        name: member._replace(held=Tasks(found[name].active), offsets={}) for name, member in spec.members.items()
    }
    counts = sorted(len(one.active) for one in found.values())
    if counts[-1] - counts[0] <= 1:
        assert assigned(TaskSpec(members, spec.subtopologies, 0)) == found


def test_a_task_goes_to_the_member_that_has_its_state() -> None:
    members = {
        "m1": TaskMember("a", NO_TASKS, {("0", 0): 5}),
        "m2": TaskMember("b", NO_TASKS, {("0", 0): 50}),
        "m3": TaskMember("c", NO_TASKS, {}),
    }
    found = assigned(TaskSpec(members, {"0": (1, True)}, 1))
    assert (found["m2"].active, found["m1"].standby) == (frozenset({("0", 0)}), frozenset({("0", 0)}))


class Looked(dict[tuple[str, int], int]):
    """Offsets that count how often they are looked at."""

    count = 0

    def items(self) -> Any:
        for one in super().items():
            Looked.count += 1
            yield one


@pytest.mark.parametrize("standbys", [0, 1])
@pytest.mark.parametrize("has_offsets", [False, True])
def test_a_step_looks_at_a_few_of_many_tasks(standbys: int, has_offsets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {str(number): (500, True) for number in range(4)}
    everything = {(name, number): 1 for name, (count, _) in sizes.items() for number in range(count)}
    members = {f"m{n}": TaskMember(f"p{n}", NO_TASKS, Looked(everything) if has_offsets else {}) for n in range(20)}
    looks = 0

    def counted(kept: Callable[..., bool]) -> Callable[..., bool]:
        def look(*given: Any) -> bool:
            nonlocal looks
            looks += 1
            return kept(*given)

        return look

    for name in ("_keep", "_give_to_least"):
        monkeypatch.setattr(sticky._Assignment, name, counted(getattr(sticky._Assignment, name)))
    work, most, Looked.count = steps(TaskSpec(members, sizes, standbys)), 0, 0
    for _ in work:
        most, looks, Looked.count = max(most, looks + Looked.count), 0, 0
    assert 0 < most <= 2 * PARTITIONS_PER_STEP


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_the_queue_yields_the_least(count: int) -> None:
    queue = JavaQueue(float, [number * 7 % count for number in range(count)])
    assert [queue.poll() for _ in range(count)] == sorted(number * 7 % count for number in range(count))
    with pytest.raises(IndexError):
        queue.poll()


@pytest.mark.parametrize("of", spans(0, KEPT, quick=200))
def test_an_assignment_is_the_one_that_kafka_makes(of: range) -> None:
    said = recorded()
    for seed in of:
        assert words(assigned(group(seed))) == said[seed], f"seed {seed}"
