"""`range`: contiguous ranges of each topic, the same range of every topic with as many partitions (RangeAssignor).

Members are in the order of their instance ids, then members without one by their member ids, so that static members
keep their ranges.
"""

from __future__ import annotations

from . import Assignment, Spec, Steps, as_sets, finished


def assign(spec: Spec) -> Assignment:
    return finished(steps(spec))


def steps(spec: Spec) -> Steps[Assignment]:
    order = sorted(spec.members, key=lambda m: (spec.members[m].instance_id is None, spec.members[m].instance_id or m))
    all_want = sorted(spec.members[order[0]].topic_ids) if spec.homogeneous and order else None
    subscribers: dict[bytes, int] = {}
    for member in spec.members.values():
        for topic in sorted(member.topic_ids) if all_want is None else all_want:
            subscribers[topic] = subscribers.get(topic, 0) + 1
        yield
    extra = {topic: spec.partition_counts[topic] % count for topic, count in subscribers.items()}
    following = dict.fromkeys(subscribers, 0)
    assignment: dict[str, dict[bytes, set[int]]] = {}
    for member_id in order:
        mine: dict[bytes, set[int]] = {}
        for topic in sorted(spec.members[member_id].topic_ids) if all_want is None else all_want:
            start = following[topic]
            quota = spec.partition_counts[topic] // subscribers[topic]
            if extra[topic] > 0:
                quota += 1
                extra[topic] -= 1
            following[topic] = end = min(start + quota, spec.partition_counts[topic])
            if start < end:
                mine[topic] = set(range(start, end))
        assignment[member_id] = mine
        yield
    return (yield from as_sets(assignment))
