"""Random groups of Kafka Streams threads; the tasks that Kafka's own assignor gives them.

python -m tests.oracle.task_cases     asks Kafka's own class again, and writes `recorded/tasks.txt`
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.coordinator.group.streams.sticky import TaskMember, TaskSpec
from ottla.coordinator.group.streams.tasks import Task, Tasks
from ottla.coordinator.hashing import java_order

from . import recorded_cases

RECORDED = Path(__file__).parent / "recorded" / "tasks.txt"
GROUPS = 10_000  # that Kafka's class is asked about
KEPT = 500  # whose answers are recorded


def group(seed: int) -> TaskSpec:
    """A group that was assigned before: threads came and went since, others kept only states on their disks."""
    chance = random.Random(seed)
    names = sorted(str(n) for n in chance.sample(range(12), chance.randint(1, 5)))
    sizes = {name: (chance.choice((1, 2, 3, 4, 8, 13)), chance.random() < 0.6) for name in names}
    tasks = [(name, number) for name in names for number in range(sizes[name][0])]
    processes = [f"{chance.getrandbits(64):016x}" for _ in range(chance.randint(1, 6))]
    count = chance.choice((1, 2, 3, 5, 8, 20))
    holds = chance.choice((0.0, 0.5, 1.0))
    active, standby = _dealt(chance, tasks, count, holds), _dealt(chance, tasks, count, holds * chance.random())
    members = {}
    for at in range(count):
        offsets = {task: chance.randint(0, 5) * 100 for task in tasks if chance.random() < 0.1 * holds}
        held = Tasks(frozenset(active[at]), frozenset(standby[at] - active[at]))
        members[f"{chance.getrandbits(64):016x}"] = TaskMember(chance.choice(processes), held, offsets)
    return TaskSpec({name: members[name] for name in java_order(members)}, sizes, chance.choice((0, 0, 1, 1, 2, 3)))


def _dealt(chance: random.Random, tasks: Sequence[Task], count: int, share: float) -> list[set[Task]]:
    """Tasks of members, evenly or not."""
    found: list[set[Task]] = [set() for _ in range(count)]
    places = range(count) if chance.random() < 0.5 else [chance.randrange(count) for _ in range(count)]
    for number, task in enumerate(tasks):
        if chance.random() < share:
            found[places[number % count]].add(task)
    return found


def words(assigned: dict[str, Tasks]) -> str:
    """An assignment as the program writes it."""
    return " ".join(
        f"{name}:{_text(assigned[name].active)}|{_text(assigned[name].standby)}" for name in sorted(assigned)
    )


def _text(tasks: Iterable[Task]) -> str:
    return ",".join(f"{name}_{number}" for name, number in sorted(tasks))


def ask(groups: Iterable[TaskSpec]) -> list[str]:
    """Kafka's answers, a line for each group."""
    cases = [
        {
            "members": [
                [
                    name,
                    one.process,
                    sorted(one.held.active),
                    sorted(one.held.standby),
                    [[*task, offset] for task, offset in one.offsets.items()],
                ]
                for name, one in spec.members.items()
            ],
            "subtopologies": [[name, *size] for name, size in spec.subtopologies.items()],
            "standbys": spec.standbys,
        }
        for spec in groups
    ]
    return recorded_cases.words("StickyTasks", cases)


def recorded() -> list[str]:
    return RECORDED.read_text().splitlines()


def main() -> int:
    answers = ask(group(seed) for seed in range(KEPT))
    RECORDED.write_text("".join(f"{answer}\n" for answer in answers))
    print(f"{KEPT} groups, {sum(answer.count(':') for answer in answers)} members")
    return 0


if __name__ == "__main__":
    sys.exit(main())
