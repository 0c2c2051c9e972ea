"""The sticky assignor of streams groups: every task runs once, copies are elsewhere, and what need not move stays."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.coordinator.group.assignors import finished
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
