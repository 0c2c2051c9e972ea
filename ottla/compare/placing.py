"""New topics at B have their partitions where A has them, so that a client that follows A's leaders finds B's.

Both clusters place replicas by chance. What creates topics or partitions goes to B with A's assignments;
topics that A has made because a client asked for their metadata are created at B by the proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ..protocol import messages as m
from ..protocol.structs import Struct

METADATA_VERSION: Final = 8
CREATE_VERSION: Final = 5
CREATE_MS: Final = 30_000
LOOKS_MAX: Final = 40  # at A, until it shows what it has made
LOOK_S: Final = 0.1
PLACED: Final = frozenset(("CreateTopics", "CreatePartitions", "Metadata"))
AUTO_SINCE: Final = 4  # the version of Metadata that says whether topics are created
Ask = Callable[[str, int, Struct], Awaitable[Struct]]
"""Sends a request of the proxy's own to a broker."""
Assigned = dict[str, list[list[int]]]
"""By topic, the replicas of each partition; none of a topic that is not there."""


async def placed(a: Struct, message: Struct, of_a: Ask, of_b: Ask, b_ids: Callable[[int], int]) -> bool:
    """Changes a request for B, in A's ids, so that B places what A has placed; returns whether it is another one.
    `a`: A's reply. `b_ids`: B's id for a node of A.
    """
    if isinstance(message, m.CreateTopicsRequest) and isinstance(a, m.CreateTopicsResponse):
        return not message.validate_only and await _topics(a, message, of_a)
    if isinstance(message, m.CreatePartitionsRequest) and isinstance(a, m.CreatePartitionsResponse):
        return not message.validate_only and await _partitions(a, message, of_a, of_b)
    if isinstance(message, m.MetadataRequest) and isinstance(a, m.MetadataResponse):
        return message.allow_auto_topic_creation and await _made_by_metadata(a, message, of_a, of_b, b_ids)
    return False


async def _topics(a: m.CreateTopicsResponse, message: m.CreateTopicsRequest, of_a: Ask) -> bool:
    made = {one.name for one in a.topics if not one.error_code}
    wanted = [one for one in message.topics if one.name in made and not one.assignments]
    assigned = await _shown(of_a, {one.name: one.num_partitions for one in wanted})
    r = m.CreateTopicsRequest.CreatableReplicaAssignment
    for topic in wanted:
        topic.num_partitions = topic.replication_factor = -1
        replicas = assigned[topic.name]
        topic.assignments = [r(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas)]
    return bool(wanted)


async def _partitions(a: m.CreatePartitionsResponse, message: m.CreatePartitionsRequest, of_a: Ask, of_b: Ask) -> bool:
    made = {one.name for one in a.results if not one.error_code}
    wanted = [one for one in message.topics if one.name in made and not one.assignments]
    assigned = await _shown(of_a, {one.name: one.count for one in wanted})
    there = await _assigned(of_b, assigned)
    r = m.CreatePartitionsRequest.CreatePartitionsAssignment
    for topic in wanted:
        topic.assignments = [r(broker_ids=ids) for ids in assigned[topic.name][len(there[topic.name]) :]] or None
    return bool(wanted)


async def _made_by_metadata(
    a: m.MetadataResponse, message: m.MetadataRequest, of_a: Ask, of_b: Ask, b_ids: Callable[[int], int]
) -> bool:
    made = {one.name: -1 for one in a.topics if one.name and not one.error_code and not one.is_internal}
    there = await _assigned(of_b, made) if message.topics and made else {}
    missing = {name: made[name] for name, replicas in there.items() if not replicas}
    t, r = m.CreateTopicsRequest.CreatableTopic, m.CreateTopicsRequest.CreatableReplicaAssignment
    if missing:
        topics = [
            t(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    r(partition_index=index, broker_ids=[b_ids(one) for one in ids])
                    for index, ids in enumerate(replicas)
                ],
            )
            for name, replicas in (await _shown(of_a, missing)).items()
        ]
        await of_b("CreateTopics", CREATE_VERSION, m.CreateTopicsRequest(topics=topics, timeout_ms=CREATE_MS))
    message.allow_auto_topic_creation = False
    return True


async def _shown(of: Ask, counts: dict[str, int]) -> Assigned:
    """Where a cluster has topics, once it shows all their partitions. `counts`: how many there are, -1 for any."""
    found: Assigned = {}
    for _ in range(LOOKS_MAX):
        found = await _assigned(of, counts)
        if all(len(found[name]) >= max(count, 1) for name, count in counts.items()):
            break
        await asyncio.sleep(LOOK_S)
    return found


async def _assigned(of: Ask, names: Iterable[str]) -> Assigned:
    t = m.MetadataRequest.MetadataRequestTopic
    request = m.MetadataRequest(topics=[t(name=name) for name in names], allow_auto_topic_creation=False)
    found: Assigned = {name: [] for name in names}
    if request.topics:
        reply = await of("Metadata", METADATA_VERSION, request)
        assert isinstance(reply, m.MetadataResponse)
        for topic in reply.topics:
            partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
            found[topic.name or ""] = [one.replica_nodes for one in partitions]
    return found
