"""`simple`: the assignor of share groups. Partitions are shared as evenly as subscriptions allow,
moving as little as possible.

Every member gets partitions, also where there are more members than partitions: then several have the same
(SimpleAssignor, both builders).
"""

from __future__ import annotations

from collections.abc import Mapping

from . import Assignment, AssignorFailed, Pace, Spec, Steps, as_sets, finished

MEMBER_COST = 8  # of a member, beside that of a partition
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
    if spec.homogeneous:
        rounds = [sorted(one.topic_ids) for one in list(spec.members.values())[:1] if one.topic_ids]
    else:
        rounds = [[topic] for topic in sorted(spec.partition_counts)]
    pace = Pace()
    for together in rounds:
        members = [m for m in spec.members if spec.homogeneous or not spec.members[m].topic_ids.isdisjoint(together)]
        partitions: list[Partition] = []
        for topic in together:
            of_topic = assignable.get(topic, ())
            partitions += [(topic, p) for p in range(spec.partition_counts[topic]) if p in of_topic]
            yield
        old: dict[str, set[Partition]] = {}
        of_round = frozenset(together)
        for member_id in members:
            had: set[Partition] = set()
            old[member_id] = had
            for topic, of in spec.members[member_id].target.items():
                if topic in of_round:
                    had.update([(topic, p) for p in of])
                    if pace.is_over(len(of)):
                        yield
            if pace.is_over(MEMBER_COST):
                yield
        got = yield from _Sharing(members, partitions, old, pace).build()
        for member_id in members:
            for topic, partition in got.pop(member_id):
                found[member_id].setdefault(topic, set()).add(partition)
                if pace.is_over():
                    yield
            if pace.is_over(MEMBER_COST):
                yield
    return (yield from as_sets(found))


class _Sharing:
    """Some members, all of whom may have any of some partitions."""

    def __init__(
        self, members: list[str], partitions: list[Partition], old: dict[str, set[Partition]], pace: Pace
    ) -> None:
        """`old`: is changed to what the members get."""
        self.members = members
        self.partitions = partitions
        self.pace = pace
        # how many members have each partition, at most
        self.sharing = -(-len(members) // len(partitions)) if partitions else 0
        total = self.sharing * len(partitions)
        count = len(members)
        self.wanted = {m: -(-total * (i + 1) // count) + (-total * i // count) for i, m in enumerate(members)}
        self.of_member = old
        self.of_partition: dict[Partition, set[str]] = {}

    def build(self) -> Steps[dict[str, set[Partition]]]:
        for partition in self.partitions:
            self.of_partition[partition] = set()
            if self.pace.is_over():
                yield
        for member in self.members:
            kept = [p for p in sorted(self.of_member[member]) if p in self.of_partition][: self.wanted[member]]
            if self.pace.is_over(MEMBER_COST + len(self.of_member[member])):
                yield
            self.of_member[member] = set()
            for partition in kept:
                self._give(member, partition)
                if self.pace.is_over():
                    yield
        for partition, members in self.of_partition.items():
            if len(members) > self.sharing:
                for member in sorted(members)[self.sharing :]:
                    members.discard(member)
                    self.of_member[member].discard(partition)
            if self.pace.is_over(1 + len(members)):
                yield
        yield from self._fill([m for m in self.members if len(self.of_member[m]) < self.wanted[m]])
        return self.of_member

    def _give(self, member: str, partition: Partition) -> None:
        self.of_member[member].add(partition)
        self.of_partition[partition].add(member)

    def _fill(self, short: list[str]) -> Steps[None]:
        """Assigns the partitions that are left, in turn, to the members that have too few."""
        at = 0
        for partition, members in self.of_partition.items():
            if self.pace.is_over(1 + self.sharing):
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
