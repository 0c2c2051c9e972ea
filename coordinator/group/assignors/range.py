"""`range`: contiguous ranges of each topic, the same range of every topic with as many partitions (RangeAssignor).

Members go by instance id, those without one behind them by member id, so that static members keep their ranges.
"""

from __future__ import annotations

from ..environment import Target
from . import Spec, as_sets


def assign(spec: Spec) -> dict[str, Target]:
    order = sorted(spec.members, key=lambda m: (spec.members[m].instance_id is None, spec.members[m].instance_id or m))
    subscribers: dict[bytes, int] = {}
    for member in spec.members.values():
        for topic in member.topic_ids:
            subscribers[topic] = subscribers.get(topic, 0) + 1
    extra = {topic: spec.partition_counts[topic] % count for topic, count in subscribers.items()}
    following = dict.fromkeys(subscribers, 0)
    assignment: dict[str, dict[bytes, set[int]]] = {}
    for member_id in order:
        mine: dict[bytes, set[int]] = {}
        for topic in spec.members[member_id].topic_ids:
            start = following[topic]
            quota = spec.partition_counts[topic] // subscribers[topic]
            if extra[topic] > 0:
                quota += 1
                extra[topic] -= 1
            following[topic] = end = min(start + quota, spec.partition_counts[topic])
            if start < end:
                mine[topic] = set(range(start, end))
        assignment[member_id] = mine
    return as_sets(assignment)
