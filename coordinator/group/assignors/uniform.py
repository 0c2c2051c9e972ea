"""`uniform`: as even as subscriptions allow, moving as little as possible (UniformAssignor, both of its builders).

Where all members have the same subscription each keeps up to its quota. Where they differ, topics are balanced one after the
other among those who are subscribed to them, for at most sixteen rounds.
"""

from __future__ import annotations

from ..environment import Target
from . import AssignorFailed, Spec, as_sets

ROUNDS = 16


def assign(spec: Spec) -> dict[str, Target]:
    if not spec.members:
        return {}
    if not any(member.topic_ids for member in spec.members.values()):
        return {}
    return as_sets(_Homogeneous(spec).build() if spec.homogeneous else _Heterogeneous(spec).build())


class _Homogeneous:
    """Everyone is subscribed to the same topics."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.topics = sorted(next(iter(spec.members.values())).topic_ids)
        self.result: dict[str, dict[bytes, set[int]]] = {}
        self.short: list[tuple[str, int]] = []
        assigned = spec.assigned()
        every = [(topic, p) for topic in self.topics for p in range(spec.partition_counts[topic])]
        self.free = [one for one in every if one not in assigned]
        self.quota, self.extras = divmod(len(every), len(spec.members))

    def build(self) -> dict[str, dict[bytes, set[int]]]:
        for index, member_id in enumerate(self.spec.members):
            self._keep(index, member_id)
        at = 0
        for member_id, missing in self.short:
            for topic, partition in self.free[at : at + missing]:
                self.result[member_id].setdefault(topic, set()).add(partition)
            at += missing
        if at < len(self.free):
            raise AssignorFailed("Partitions were left unassigned")
        return self.result

    def _keep(self, index: int, member_id: str) -> None:
        """What a member may keep of its target; the rest is free again."""
        quota, has_extra = self.quota, self.extras > 0
        quota += has_extra
        kept: dict[bytes, set[int]] = {}
        for topic, partitions in self.spec.members[member_id].target.items():
            if topic not in self.topics:
                continue
            have = [p for p in sorted(partitions) if p < self.spec.partition_counts[topic]]
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
    """Subscriptions differ."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.ids = list(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic in sorted(member.topic_ids):
                self.subscribers.setdefault(topic, []).append(index)
        self.sizes = [0] * len(self.ids)
        self.owners = {topic: [-1] * spec.partition_counts[topic] for topic in self.subscribers}

    def build(self) -> dict[str, dict[bytes, set[int]]]:
        for index, member in enumerate(self.spec.members.values()):
            for topic, partitions in member.target.items():
                if topic in member.topic_ids:
                    for partition in partitions:
                        if partition < len(self.owners[topic]):
                            self._give(topic, partition, index)
        topics = sorted(self.owners, key=self._topic_order)
        for topic in topics:
            self._fill(topic)
        self._balance([t for t in topics if len(self.subscribers[t]) >= 2])
        result: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in self.ids}
        for topic, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                result[self.ids[owner]].setdefault(topic, set()).add(partition)
        return result

    def _topic_order(self, topic: bytes) -> tuple[float, int, bytes]:
        """The scarcest first: many partitions per subscriber, then few subscribers."""
        count = len(self.subscribers[topic])
        return -self.spec.partition_counts[topic] / count, count, topic

    def _give(self, topic: bytes, partition: int, index: int) -> None:
        before = self.owners[topic][partition]
        if before != -1:
            self.sizes[before] -= 1
        self.owners[topic][partition] = index
        self.sizes[index] += 1

    def _fill(self, topic: bytes) -> None:
        """Gives what nobody has to the least loaded, in turn."""
        free = [p for p, owner in enumerate(self.owners[topic]) if owner == -1]
        if not free:
            return
        balancer = _Balancer(self.sizes, self.subscribers[topic])
        for partition in free:
            self._give(topic, partition, balancer.least_loaded())

    def _balance(self, topics: list[bytes]) -> None:
        last = -1
        for _ in range(ROUNDS):
            for index, topic in enumerate(topics):
                if index == last:
                    return
                if self._balance_topic(topic) or last == -1:
                    last = index

    def _balance_topic(self, topic: bytes) -> int:
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
        """Takes the one that was handed out last out of the level."""
        at, last = self.high_next + 1, self.high_end - 1
        self.members[at], self.members[last] = self.members[last], self.members[at]
        self.high_end -= 1
