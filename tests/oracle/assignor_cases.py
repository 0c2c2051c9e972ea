"""Random groups of consumers and of share consumers; the partitions that Kafka's own assignors give them.

python -m tests.oracle.assignor_cases     asks Kafka's own classes again, and writes `recorded/assignments.txt`
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ottla.coordinator.group.assignors import Assignment, MemberSpec, Spec, simple, uniform
from ottla.coordinator.group.assignors import range as range_assignor
from ottla.coordinator.group.environment import Target
from ottla.coordinator.group.ids import kafka_uuid
from ottla.coordinator.hashing import java_order, set_order

from . import recorded_cases

RECORDED = Path(__file__).parent / "recorded" / "assignments.txt"
GROUPS = 10_000  # that Kafka's classes are asked about
KEPT = 300  # whose answers are recorded
FAILS = "fails"  # what Kafka's assignor of share groups answers, rarely: it asks for the next of no members
MEMBERS = (1, 2, 3, 5, 8, 20, 45)
SIZES = (1, 2, 3, 4, 7, 12, 40)  # of topics


class Group(NamedTuple):
    """A group and its assignor. `names`: of its topics; `assignable`: what a share group may assign."""

    assignor: str
    spec: Spec
    names: dict[bytes, str]
    assignable: Target

    def assigned(self) -> Assignment:
        if self.assignor == "simple":
            return simple.assign(self.spec, self.assignable)
        return range_assignor.assign(self.spec) if self.assignor == "range" else uniform.assign(self.spec)


def group(seed: int) -> Group:
    """A group that was assigned before: members and topics came and went since."""
    chance = random.Random(seed)
    assignor, homogeneous = chance.choice(("range", "uniform", "uniform", "simple", "simple")), chance.random() < 0.5
    counts = {chance.randbytes(16): chance.choice(SIZES) for _ in range(chance.randint(1, 6))}
    topics = list(counts)
    names = {topic: f"{chance.getrandbits(40):010x}" for topic in topics}
    everyone = frozenset(chance.sample(topics, chance.randint(1, len(topics))))
    ids = [f"{chance.getrandbits(64):016x}" for _ in range(chance.choice(MEMBERS))]
    wanted = {
        one: everyone if homogeneous else frozenset(chance.sample(topics, chance.randint(0, len(topics))))
        for one in ids
    }
    had = _had(chance, ids, counts, is_shared=assignor == "simple")
    members = {
        one: MemberSpec(f"i{chance.getrandbits(32)}" if chance.random() < 0.3 else None, None, wanted[one], had[one])
        for one in java_order(ids)
    }
    subscribed = frozenset[bytes]().union(*wanted.values())
    partitions = {topic: count for topic, count in counts.items() if topic in subscribed}
    usual = chance.choice((1.0, 1.0, 0.6))
    assignable = {t: frozenset(p for p in range(count) if chance.random() < usual) for t, count in counts.items()}
    by_name = {names[topic]: topic for topic in next(iter(members.values())).topic_ids}
    first_topics = [by_name[name] for name in set_order(by_name)]
    return Group(assignor, Spec(members, partitions, homogeneous, {}, first_topics), names, assignable)


def _had(chance: random.Random, ids: list[str], counts: dict[bytes, int], *, is_shared: bool) -> dict[str, Target]:
    """Targets from before. A partition has one owner, if it is not shared."""
    some = chance.sample(ids, chance.randint(1, len(ids)))
    share = chance.choice((0.0, 0.5, 1.0))
    found: dict[str, dict[bytes, set[int]]] = {one: {} for one in ids}
    for topic, count in counts.items():
        for partition in range(count):
            for _ in range(chance.choice((1, 1, 2, 4)) if is_shared else 1):
                if chance.random() < share:
                    found[chance.choice(some)].setdefault(topic, set()).add(partition)
    return {one: {topic: frozenset(of) for topic, of in target.items()} for one, target in found.items()}


def words(assigned: Assignment, members: Iterable[str]) -> str:
    """An assignment as the program writes it."""
    return " ".join(f"{one}:{_text(assigned[one])}" for one in sorted(members) if one in assigned)


def _text(target: Target) -> str:
    texts = {kafka_uuid(topic): ",".join(map(str, sorted(of))) for topic, of in target.items() if of}
    return ";".join(f"{topic}/{texts[topic]}" for topic in sorted(texts))


def _listed(target: Target) -> list[tuple[str, list[int]]]:
    return [(kafka_uuid(topic), sorted(of)) for topic, of in target.items()]


def case(one: Group) -> dict[str, object]:
    """What the program is asked about a group."""
    members = [
        [name, member.instance_id, sorted(one.names[topic] for topic in member.topic_ids), _listed(member.target)]
        for name, member in one.spec.members.items()
    ]
    counts = one.spec.partition_counts
    return {
        "assignor": one.assignor,
        "homogeneous": one.spec.homogeneous,
        "topics": [[one.names[topic], kafka_uuid(topic), count] for topic, count in counts.items()],
        "members": members,
        "assignable": _listed(one.assignable),
    }


def ask(groups: Iterable[Group]) -> list[str]:
    """Kafka's answers, a line for each group."""
    return recorded_cases.words("Assignors", [case(one) for one in groups])


def recorded() -> list[str]:
    return RECORDED.read_text().splitlines()


def main() -> int:
    answers = ask(group(seed) for seed in range(KEPT))
    RECORDED.write_text("".join(f"{answer}\n" for answer in answers))
    print(f"{KEPT} groups, {sum(answer.count(':') for answer in answers)} members")
    return 0


if __name__ == "__main__":
    sys.exit(main())
