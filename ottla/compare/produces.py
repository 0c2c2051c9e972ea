"""Produce at B: only the partitions that B has refused are sent again, since the others have their records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ..comparing.identities import TOPIC, Identities
from ..protocol import messages as m

ACKS: Final = 1  # at B, for a client that wants none: the proxy has to know when B has the records
Result = m.ProduceResponse.PartitionProduceResponse


class Place(NamedTuple):
    """A partition, in ids of A."""

    topic: str
    topic_id: bytes
    partition: int


def results(reply: m.ProduceResponse, identities: Identities | None = None) -> Iterator[tuple[Place, Result]]:
    """The partitions of a reply. `identities`: for a reply of B."""
    for topic in reply.responses:
        topic_id = topic.topic_id if identities is None else identities.of_a(TOPIC, {}, topic.topic_id)
        assert isinstance(topic_id, bytes)
        for partition in topic.partition_responses:
            yield Place(topic.name, topic_id, partition.index), partition


def early(a: m.ProduceResponse, b: m.ProduceResponse, identities: Identities, codes: frozenset[int]) -> set[Place]:
    """The partitions that B has refused with one of `codes`, and A has not. A reply without partitions refuses none."""
    refused = {place for place, one in results(a) if one.error_code}
    return {place for place, one in results(b, identities) if one.error_code in codes} - refused


def leave(request: m.ProduceRequest, places: set[Place]) -> None:
    """Takes out all partitions but some."""
    for topic in request.topic_data:
        topic.partition_data = [
            one for one in topic.partition_data if Place(topic.name, topic.topic_id, one.index) in places
        ]
    request.topic_data = [topic for topic in request.topic_data if topic.partition_data]


def taken(a: m.ProduceResponse, codes: frozenset[int]) -> set[Place]:
    """The partitions that A has not refused with one of `codes`."""
    return {place for place, one in results(a) if one.error_code not in codes}


def drop(a: m.ProduceResponse, places: set[Place]) -> None:
    """Takes what was refused, and is not compared, out of A's reply."""
    for topic in a.responses:
        topic.partition_responses = [
            one for one in topic.partition_responses if Place(topic.name, topic.topic_id, one.index) in places
        ]
    a.responses = [topic for topic in a.responses if topic.partition_responses]
    named = {one.current_leader.leader_id for topic in a.responses for one in topic.partition_responses}
    a.node_endpoints = [one for one in a.node_endpoints if one.node_id in named]


def merge(b: m.ProduceResponse, again: m.ProduceResponse) -> None:
    """Puts the results of a later reply of B into its first one."""
    later = {(topic.name, topic.topic_id): topic.partition_responses for topic in again.responses}
    for topic in b.responses:
        found = {one.index: one for one in later.get((topic.name, topic.topic_id), ())}
        topic.partition_responses = [found.get(one.index, one) for one in topic.partition_responses]
    named = {one.current_leader.leader_id for topic in b.responses for one in topic.partition_responses}
    nodes = {one.node_id: one for one in (*b.node_endpoints, *again.node_endpoints)}
    b.node_endpoints = [one for node_id, one in nodes.items() if node_id in named]
