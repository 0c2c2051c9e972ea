"""How a classic group settles without `group.initial.rebalance.delay.ms` (`ottla.group.settle`).

Kafka's default of three seconds gives each member time to fetch the metadata of its topics. Without the delay two
things differ for a group that has just started.

Members that join one after the other would each cause a rebalance. So they are gathered until none has come for a
while: two clients of librdkafka that start at the same time join up to 50 ms apart, which is how often one tries to
connect, and the second rebalance would reach the first one with its next heartbeat, three seconds later.

A leader may have to assign before it knows of any partition: kafka-python asks for metadata at most every 100 ms, and
does not wait for the reply before it joins. Its assignment then gives nothing to anyone. Kafka takes such an
assignment. The leader joins again as soon as it has the metadata, and the other members learn of that with a heartbeat,
seconds later. kafka-python may even lose a rebalance that it starts for that reason: if `poll` returns between the
leader's SyncGroup and the reply, the leader never looks at the reply, and stays without partitions. So the leader's
SyncGroup waits here, and is then answered with REBALANCE_IN_PROGRESS: all members join again at once. After some
attempts the empty assignment is taken, because the topics may not exist.
"""

from __future__ import annotations

from ....protocol.errors import MalformedMessage
from ..consumer_protocol import assignment, subscription
from ..environment import Environment
from .group import ClassicGroup

GATHER_QUIET_MS = 60
GATHER_MAX_MS = 200
ATTEMPT_MS = (150, 600, 2400)  # how long each empty assignment in a row waits; all together as long as Kafka's delay
STREAMS_PROTOCOL = "stream"
NO_TOPICS = bytes(4)  # the length of an assignment's first array, which follows the version


def gather_ms(env: Environment, group: ClassicGroup, waited_ms: int) -> int:
    """Returns how long a group without a delay still waits for members that come soon after each other; 0 if it does
    not wait.

    Kafka Streams is better off without: its leader joins again with other metadata after the first generation, and a
    thread that is in that generation learns of it with its next heartbeat, three seconds later.
    """
    if not env.config("ottla.group.settle"):
        return 0
    if {name for name, count in group.protocol_counts.items() if count} == {STREAMS_PROTOCOL}:
        return 0
    quiet_ms = group.last_join_ms + GATHER_QUIET_MS - env.monotonic_ms()
    return max(min(quiet_ms, GATHER_MAX_MS - waited_ms), 0)


def attempt_ms(env: Environment, group: ClassicGroup, assignments: dict[str, bytes]) -> int | None:
    """Returns how long a leader's assignment waits before the members join again; None if it is to be taken.

    `assignments`: what the leader sent, by member id.
    """
    if not _is_without_partitions(group, assignments):
        if group.empty_assignments:
            group.empty_assignments = 0
        return None
    if group.empty_assignments >= len(ATTEMPT_MS) or not env.config("ottla.group.settle"):
        return None
    if env.config("group.initial.rebalance.delay.ms") > 0:
        return None
    return ATTEMPT_MS[group.empty_assignments]


def _is_without_partitions(group: ClassicGroup, assignments: dict[str, bytes]) -> bool:
    """Whether the members subscribe to topics and own nothing, and the leader's assignment gives them nothing."""
    if not group.subscribed or not assignments:
        return False
    try:
        for data in assignments.values():
            if data[2:6] != NO_TOPICS or assignment(data).user_data:
                return False
    except MalformedMessage:
        return False  # a protocol of their own, of whose assignments nothing is known
    return not any(_owns_partitions(member.metadata(group.protocol)) for member in group.members.values())


def _owns_partitions(metadata: bytes) -> bool:
    """Whether a member that subscribes to topics owns partitions. The metadata of segmentio's kafka-go say version 1
    and end before the owned partitions, which that version has.
    """
    try:
        return bool(subscription(metadata).owned_partitions)
    except MalformedMessage:
        return False
