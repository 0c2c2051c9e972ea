"""`simple`: the assignor of share groups. Partitions are shared as evenly as subscriptions allow,
moving as little as possible.

Every member gets partitions, also where there are more members than partitions: then several have the same
(SimpleAssignor, both builders).
"""

from __future__ import annotations

from collections.abc import Mapping

from . import PARTITIONS_PER_STEP, Assignment, AssignorFailed, Spec, Steps, as_sets, finished

MEMBERS_PER_STEP = 32
Partition = tuple[bytes, int]


def assign(spec: Spec, assignable: Mapping[bytes, frozenset[int]]) -> Assignment:
    """Returns targets by member. `assignable`: the partitions that may be assigned, by topic id."""
    return finished(steps(spec, assignable))


def steps(spec: Spec, assignable: Mapping[bytes, frozenset[int]]) -> Steps[Assignment]:
    for topic, count in spec.partition_counts.items():
        if count < 0:
            raise AssignorFailed(
                f"Members are subscribed to topic {topic.hex()} which doesn't exist in the topic metadata."
            )
    found: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in spec.members}
    topics = sorted(spec.partition_counts)
    rounds = [topics] if spec.homogeneous else [[topic] for topic in topics]
    for together in rounds:
        members = [m for m, one in spec.members.items() if not one.topic_ids.isdisjoint(together)]
        partitions: list[Partition] = []
        for topic in together:
            of_topic = assignable.get(topic, ())
            partitions += [(topic, p) for p in range(spec.partition_counts[topic]) if p in of_topic]
            yield
        old: dict[str, set[Partition]] = {}
        of_round = frozenset(together)
        for number, member_id in enumerate(members, 1):
            old[member_id] = {
                (topic, p) for topic, of in spec.members[member_id].target.items() if topic in of_round for p in of
            }
            if number % MEMBERS_PER_STEP == 0:
                yield
        got = yield from _Sharing(members, partitions, old).build()
        for number, (member_id, theirs) in enumerate(got.items(), 1):
            for topic, partition in theirs:
                found[member_id].setdefault(topic, set()).add(partition)
            if number % MEMBERS_PER_STEP == 0:
                yield
    return (yield from as_sets(found))


class _Sharing:
    """Some members, all of whom may have any of some partitions."""

    def __init__(self, members: list[str], partitions: list[Partition], old: dict[str, set[Partition]]) -> None:
        self.members = members
        # how many members have each partition, at most
        self.sharing = -(-len(members) // len(partitions)) if partitions else 0
        total = self.sharing * len(partitions)
        count = len(members)
        self.wanted = {m: -(-total * (i + 1) // count) + (-total * i // count) for i, m in enumerate(members)}
        self.of_member: dict[str, set[Partition]] = {m: set(old[m]) for m in members}
        self.of_partition: dict[Partition, set[str]] = {one: set() for one in partitions}

    def build(self) -> Steps[dict[str, set[Partition]]]:
        for number, member in enumerate(self.members, 1):
            kept = [p for p in sorted(self.of_member[member]) if p in self.of_partition][: self.wanted[member]]
            self.of_member[member] = set()
            for partition in kept:
                self._give(member, partition)
            if number % MEMBERS_PER_STEP == 0:
                yield
        for number, (partition, members) in enumerate(self.of_partition.items(), 1):
            if len(members) > self.sharing:
                for member in sorted(members)[self.sharing :]:
                    members.discard(member)
                    self.of_member[member].discard(partition)
            if number % PARTITIONS_PER_STEP == 0:
                yield
        yield from self._fill([m for m in self.members if len(self.of_member[m]) < self.wanted[m]])
        return self.of_member

    def _give(self, member: str, partition: Partition) -> None:
        self.of_member[member].add(partition)
        self.of_partition[partition].add(member)

    def _fill(self, short: list[str]) -> Steps[None]:
        """Assigns the partitions that are left, in turn, to the members that have too few."""
        at = 0
        for number, (partition, members) in enumerate(self.of_partition.items(), 1):
            if number % PARTITIONS_PER_STEP == 0:
                yield
            skipped = 0
            while len(members) < self.sharing and short and skipped < len(short):
                at %= len(short)
                member = short[at]
                if member in members:
                    at += 1
                    skipped += 1
                    continue
                self._give(member, partition)
                skipped = 0
                if len(self.of_member[member]) >= self.wanted[member]:
                    del short[at]
                else:
                    at += 1
