"""`simple`: the assignor of share groups. Partitions are shared as evenly as subscriptions allow, moving as little as possible.

Every member gets partitions, also where there are more members than partitions: then several have the same (SimpleAssignor, both builders).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..environment import Target
from . import AssignorFailed, Spec, as_sets

Partition = tuple[bytes, int]


def assign(spec: Spec, assignable: Mapping[bytes, frozenset[int]]) -> dict[str, Target]:
    """Targets by member. `assignable`: the partitions that may be given to anybody, by topic."""
    for topic, count in spec.partition_counts.items():
        if count < 0:
            raise AssignorFailed(f"Members are subscribed to topic {topic.hex()} which doesn't exist in the topic metadata.")
    found: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in spec.members}
    topics = sorted(spec.partition_counts)
    rounds = [topics] if spec.homogeneous else [[topic] for topic in topics]
    for together in rounds:
        members = [m for m, one in spec.members.items() if not one.topic_ids.isdisjoint(together)]
        partitions = [(t, p) for t in together for p in range(spec.partition_counts[t]) if p in assignable.get(t, ())]
        old = {m: {(t, p) for t in together for p in spec.members[m].target.get(t, ())} for m in members}
        for member_id, got in _Sharing(members, partitions, old).build().items():
            for topic, partition in got:
                found[member_id].setdefault(topic, set()).add(partition)
    return as_sets(found)


class _Sharing:
    """Some members, all of whom may have any of some partitions."""

    def __init__(self, members: list[str], partitions: list[Partition], old: dict[str, set[Partition]]) -> None:
        self.members = members
        self.sharing = -(-len(members) // len(partitions)) if partitions else 0  # how many members have each partition, at most
        total = self.sharing * len(partitions)
        count = len(members)
        self.wanted = {m: -(-total * (i + 1) // count) + (-total * i // count) for i, m in enumerate(members)}
        self.of_member: dict[str, set[Partition]] = {m: set(old[m]) for m in members}
        self.of_partition: dict[Partition, set[str]] = {one: set() for one in partitions}

    def build(self) -> dict[str, set[Partition]]:
        for member in self.members:
            kept = [p for p in sorted(self.of_member[member]) if p in self.of_partition][: self.wanted[member]]
            self.of_member[member] = set()
            for partition in kept:
                self._give(member, partition)
        for partition, members in self.of_partition.items():
            for member in sorted(members)[self.sharing :]:
                members.discard(member)
                self.of_member[member].discard(partition)
        self._fill([m for m in self.members if len(self.of_member[m]) < self.wanted[m]])
        return self.of_member

    def _give(self, member: str, partition: Partition) -> None:
        self.of_member[member].add(partition)
        self.of_partition[partition].add(member)

    def _fill(self, short: list[str]) -> None:
        """Gives what is left in turn to those who have too little."""
        at = 0
        for partition, members in self.of_partition.items():
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
