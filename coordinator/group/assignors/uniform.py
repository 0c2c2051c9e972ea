"""`uniform`: as even as subscriptions allow, moving as little as possible (UniformAssignor, both of its builders).

Where all members have the same subscription each keeps up to its quota. Where they differ, topics are balanced one
after the other among those who are subscribed to them, for at most sixteen rounds.
"""

from __future__ import annotations

from struct import Struct

from ...hashing import number_set_order, set_capacity, table_order, table_order_steps, uuid_hash
from . import PARTITIONS_PER_STEP, Assignment, AssignorFailed, Spec, Steps, as_sets, finished

ROUNDS = 16
_LONGS = Struct(">qq")
Building = dict[str, dict[bytes, set[int]]]


def assign(spec: Spec) -> Assignment:
    return finished(steps(spec))


def steps(spec: Spec) -> Steps[Assignment]:
    some = list(spec.members.values())[:1] if spec.homogeneous else spec.members.values()
    if not any(member.topic_ids for member in some):
        return {}
    found = yield from (_Homogeneous(spec).build() if spec.homogeneous else _Heterogeneous(spec).build())
    return (yield from as_sets(found))


class _Homogeneous:
    """All members are subscribed to the same topics."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.topics = next(iter(spec.members.values())).topic_ids
        listed = spec.first_topics or sorted(self.topics)
        self.order = table_order(listed, uuid_hash, set_capacity(len(listed)))
        self.result: Building = {}
        self.short: list[tuple[str, int]] = []
        self.free: list[tuple[bytes, int]] = []
        total = sum(spec.partition_counts[topic] for topic in self.topics)
        self.quota, self.extras = divmod(total, len(spec.members))

    def build(self) -> Steps[Building]:
        yield from self._find_free()
        for index, member_id in enumerate(self.spec.members):
            yield from self._keep(index, member_id)
            yield
        at = 0
        for member_id, missing in self.short:
            for topic, partition in self.free[at : at + missing]:
                self.result[member_id].setdefault(topic, set()).add(partition)
            at += missing
            yield
        if at < len(self.free):
            raise AssignorFailed("Partitions were left unassigned")
        return self.result

    def _find_free(self) -> Steps[None]:
        assigned: dict[bytes, set[int]] = {}
        for member in self.spec.members.values():
            for topic, of in member.target.items():
                assigned.setdefault(topic, set()).update(of)
            yield
        for topic in self.order:
            taken = assigned.get(topic, ())
            self.free += [(topic, p) for p in range(self.spec.partition_counts[topic]) if p not in taken]
            yield

    def _keep(self, index: int, member_id: str) -> Steps[None]:
        """Keeps a part of a member's target; the other partitions can be assigned again."""
        quota, has_extra = self.quota, self.extras > 0
        quota += has_extra
        kept: dict[bytes, set[int]] = {}
        target = self.spec.members[member_id].target
        for topic in (yield from table_order_steps(target, uuid_hash)):
            if topic not in self.topics:
                continue
            have = [p for p in number_set_order(target[topic]) if p < self.spec.partition_counts[topic]]
            stays = have[: max(quota, 0)]
            quota -= len(stays)
            self.free += [(topic, p) for p in have[len(stays) :]]
            if stays:
                kept[topic] = set(stays)
        if quota > 0 and has_extra and len(self.spec.members) - index > self.extras:
            quota -= 1
            has_extra = False
        if quota > 0:
            self.short.append((member_id, quota))
        self.extras -= has_extra
        self.result[member_id] = kept


class _Heterogeneous:
    """The subscriptions of the members differ."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.ids = list(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        self.sizes = [0] * len(self.ids)
        self.owners: dict[bytes, list[int]] = {}

    def build(self) -> Steps[Building]:
        for index, member in enumerate(self.spec.members.values()):
            for topic in sorted(member.topic_ids):
                self.subscribers.setdefault(topic, []).append(index)
            yield
        self.owners = {topic: [-1] * self.spec.partition_counts[topic] for topic in self.subscribers}
        for index, member in enumerate(self.spec.members.values()):
            for topic, partitions in member.target.items():
                if topic in member.topic_ids:
                    for partition in partitions:
                        if partition < len(self.owners[topic]):
                            self._give(topic, partition, index)
            yield
        topics = sorted(self.owners, key=self._topic_order)
        for topic in topics:
            yield from self._fill(topic)
        yield from self._balance([t for t in topics if len(self.subscribers[t]) >= 2])
        result: Building = {member_id: {} for member_id in self.ids}
        for topic, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                result[self.ids[owner]].setdefault(topic, set()).add(partition)
            yield
        return result

    def _topic_order(self, topic: bytes) -> tuple[float, int, tuple[int, ...]]:
        """The scarcest first: many partitions per subscriber, then few subscribers, then by the numbers with a sign
        that an id is in Java.
        """
        count = len(self.subscribers[topic])
        return -self.spec.partition_counts[topic] / count, count, _LONGS.unpack(topic)

    def _give(self, topic: bytes, partition: int, index: int) -> None:
        before = self.owners[topic][partition]
        if before != -1:
            self.sizes[before] -= 1
        self.owners[topic][partition] = index
        self.sizes[index] += 1

    def _fill(self, topic: bytes) -> Steps[None]:
        """Assigns the partitions that no member has to the least loaded members, in turn."""
        free = [p for p, owner in enumerate(self.owners[topic]) if owner == -1]
        yield
        if not free:
            return
        balancer = _Balancer(self.sizes, self.subscribers[topic])
        for number, partition in enumerate(free, 1):
            self._give(topic, partition, balancer.least_loaded())
            if number % PARTITIONS_PER_STEP == 0:
                yield

    def _balance(self, topics: list[bytes]) -> Steps[None]:
        last = -1
        for _ in range(ROUNDS):
            for index, topic in enumerate(topics):
                if index == last:
                    return
                moved = yield from self._balance_topic(topic)
                if moved or last == -1:
                    last = index
                yield

    def _balance_topic(self, topic: bytes) -> Steps[int]:
        """Moves partitions of a topic from the most to the least loaded; returns how many."""
        balancer = _Balancer(self.sizes, self.subscribers[topic])
        if balancer.imbalance <= 1:
            return 0
        owners, moved = self.owners[topic], 0
        have: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            have.setdefault(owner, []).append(partition)
        while not balancer.is_balanced:
            most = balancer.most_loaded()
            while most != -1 and not have.get(most):
                balancer.exclude_most_loaded()
                most = balancer.most_loaded()
            if most == -1:
                break
            partition = have[most].pop()
            least = balancer.least_loaded()
            if balancer.is_balanced:
                break
            self._give(topic, partition, least)
            moved += 1
            if moved % PARTITIONS_PER_STEP == 0:
                yield
        return moved


class _Balancer:
    """Hands out the least and the most loaded of some members in turn, a whole level of load at a time."""

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self.sizes = sizes
        self.members = sorted(members, key=lambda m: (sizes[m], m))
        low, high = sizes[self.members[0]], sizes[self.members[-1]]
        self.imbalance = high - low
        self.low_end, self.low_level, self.low_next = 0, low - 1, 0
        self.high_start = self.high_end = len(self.members)
        self.high_level, self.high_next = high + 1, len(self.members) - 1

    @property
    def is_balanced(self) -> bool:
        return self.high_level - self.low_level <= 1

    def least_loaded(self) -> int:
        if self.low_next >= self.low_end:
            self.low_level += 1
            while self.low_end < len(self.members) and self.sizes[self.members[self.low_end]] == self.low_level:
                self.low_end += 1
            self.low_next = 0
        found = self.members[self.low_next]
        self.low_next += 1
        return found

    def most_loaded(self) -> int:
        if self.high_next < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                self.high_level = self.sizes[self.members[self.high_start - 1]]
            else:
                self.high_level -= 1
            while self.high_start > 0 and self.sizes[self.members[self.high_start - 1]] == self.high_level:
                self.high_start -= 1
            self.high_next = self.high_end - 1
        if self.high_next < 0:
            return -1
        found = self.members[self.high_next]
        self.high_next -= 1
        return found

    def exclude_most_loaded(self) -> None:
        """Takes the member that was handed out last out of the level."""
        at, last = self.high_next + 1, self.high_end - 1
        self.members[at], self.members[last] = self.members[last], self.members[at]
        self.high_end -= 1
