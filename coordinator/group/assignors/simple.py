"""`simple`: the assignor of share groups. Partitions are shared as evenly as subscriptions allow,
moving as little as possible.

Every member gets partitions, also where there are more members than partitions: then several have the same
(SimpleAssignor, both builders). Members are numbered, and what several could give up or get goes by these numbers and
by the order of Java's hash tables, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil

from ...hashing import (
    computed_order_steps,
    id_partition_hash,
    number_order,
    number_set_order,
    table_order_steps,
    uuid_hash,
)
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
    members = list(spec.members.values())
    wanted = members[0].topic_ids if spec.homogeneous and members else spec.partition_counts.keys()
    if not wanted:
        return {}
    pace = Pace()
    found: dict[str, dict[bytes, set[int]]] = {}
    having: dict[bytes, list[int]] = {}  # who has partitions of a topic
    for number, (member_id, member) in enumerate(spec.members.items()):
        mine = found[member_id] = {}
        for topic, of in member.target.items():
            if not spec.homogeneous or topic in wanted:  # else it stays, also without a subscriber
                mine[topic] = set(of)
                having.setdefault(topic, []).append(number)
            if pace.is_over(1 + len(of)):
                yield
        if pace.is_over(MEMBER_COST):
            yield
    every, together = list(found.values()), list(spec.first_topics) or sorted(wanted)
    for topics in [together] if spec.homogeneous else [[topic] for topic in sorted(wanted)]:
        numbers = [n for n, one in enumerate(members) if spec.homogeneous or topics[0] in one.topic_ids]
        if pace.is_over(len(numbers)):
            yield
        partitions: list[Partition] = []
        for topic in topics:
            of_topic = assignable.get(topic, ())
            partitions += [(topic, p) for p in range(spec.partition_counts[topic]) if p in of_topic]
            yield
        had = numbers if spec.homogeneous else having.get(topics[0], [])
        hash_of = id_partition_hash if spec.homogeneous else _number
        yield from _Sharing(numbers, topics, partitions, every, had, hash_of, pace).build()
    return (yield from as_sets(found))


def _number(partition: Partition) -> int:
    """Returns the hash code of a partition whose topic is known."""
    return partition[1]


class _Sharing:
    """Some members, all of whom may have any of some partitions. `found`: of all members, by their numbers; becomes
    what they get. `having`: the numbers of those that had some before.
    """

    def __init__(
        self,
        members: list[int],
        topics: list[bytes],
        partitions: list[Partition],
        found: list[dict[bytes, set[int]]],
        having: list[int],
        hash_of: Callable[[Partition], int],
        pace: Pace,
    ) -> None:
        self.members = members
        self.topics = topics
        self.partitions = partitions
        self.found = found
        self.having = having
        self.hash_of = hash_of
        self.pace = pace
        # how many members have each partition, at most
        self.sharing = -(-len(members) // len(partitions)) if partitions else 0
        each = self.sharing * len(partitions) / len(members)  # in floating point, as in Kafka
        self.wanted = {member: ceil(each * (i + 1)) - ceil(each * i) for i, member in enumerate(members)}
        self.sizes = dict.fromkeys(members, 0)
        self.of_partition: dict[Partition, set[int]] = {}

    def build(self) -> Steps[None]:
        for member in self.having:
            yield from self._look_at(member)
        for partition in self.partitions:
            self.of_partition.setdefault(partition, set())
            if self.pace.is_over():
                yield
        for partition, members in self.of_partition.items():
            for member in number_order(sorted(members))[: max(len(members) - self.sharing, 0)]:
                self._take(member, partition)
            if self.pace.is_over(1 + len(members)):
                yield
        yield from self._fill([member for member in self.members if self.sizes[member] < self.wanted[member]])

    def _look_at(self, member: int) -> Steps[None]:
        """Notes what a member has, without the first partitions of too many."""
        target = self.found[member]
        topics = self.topics if len(self.topics) == 1 else (yield from table_order_steps(target, uuid_hash))
        had: list[Partition] = []
        for topic in topics:
            of_topic = [(topic, p) for p in number_set_order(target.get(topic, ()))]
            had += of_topic
            for partition in of_topic:
                self.of_partition.setdefault(partition, set()).add(member)
                if self.pace.is_over():
                    yield
        self.sizes[member] = len(had)
        excess = len(had) - self.wanted.get(member, 0)
        order = (yield from table_order_steps(had, self.hash_of)) if excess > 0 else []
        for partition in order[: max(excess, 0)]:
            self._take(member, partition)
            if self.pace.is_over():
                yield
        if self.pace.is_over():
            yield

    def _take(self, member: int, partition: Partition) -> None:
        self.of_partition[partition].discard(member)
        self.found[member][partition[0]].discard(partition[1])
        self.sizes[member] -= 1

    def _fill(self, short: list[int]) -> Steps[None]:
        """Assigns the partitions that are left, in turn, to the members that have too few."""
        if not short:
            return
        capacity = int((len(self.partitions) + 1) / 0.75 + 1)
        order = yield from computed_order_steps(self.of_partition, capacity, self.hash_of)
        turns = _Turns(short)
        for partition in order:
            members = self.of_partition[partition]
            if self.pace.is_over(1 + self.sharing):
                yield
            missing = self.sharing - len(members)
            while missing > 0 and (member := turns.next()) is not None:
                if member in members:
                    continue
                missing -= 1
                turns.has_given = True
                of_topic = self.found[member].setdefault(partition[0], set())
                if partition[1] not in of_topic:  # else it has come round for the same partition
                    of_topic.add(partition[1])
                    self.sizes[member] += 1
                if self.sizes[member] >= self.wanted[member]:
                    turns.remove()


class _Turns:
    """Members that take turns, until none of a whole round is given anything."""

    def __init__(self, members: Iterable[int]) -> None:
        self._members = list(members)
        self._at = 0
        self.has_given = False

    def next(self) -> int | None:
        if self._at >= len(self._members):
            if not self.has_given or not self._members:
                return None
            self._at, self.has_given = 0, False
        self._at += 1
        return self._members[self._at - 1]

    def remove(self) -> None:
        """Takes out the member whose turn it is."""
        self._at -= 1
        del self._members[self._at]
