"""Metadata, versions 0 to 13: brokers, topics and their partitions.

0 an empty list means all topics, from 1 on null does; 1 controller, rack, internal; 2 cluster id; 4 auto-creation may be forbidden;
5 offline replicas; 7 leader epoch; 8 authorized operations; 9 flexible; 10 topic ids, which may be asked for from 12 on (KIP-516);
11 no cluster operations; 13 an error of its own (KIP-1102).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from ...coordinator.metadata import topics as topic_rules
from ...coordinator.metadata.format import CLUSTER_METADATA
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..context import Context
from ..partition_info import topic_operations
from .k60_describe_cluster import CLUSTER_OPERATIONS


def handle(context: Context, request: Any) -> Any:
    wanted = request.topics
    if wanted is None or (context.version == 0 and not wanted):
        names = sorted(context.broker.image.topics)
        return _response(context, request, [_topic(context, request, name) for name in names])
    if context.version < 12 and any(t.topic_id != NO_UUID or t.name is None for t in wanted):
        return messages.MetadataResponse(topics=[_refused(t) for t in wanted], cluster_id=None)
    missing = _to_create(context, request)
    if missing:
        return _create_and_answer(context, request, missing)
    return _response(context, request, [_one(context, request, t) for t in _distinct(wanted)])


def _distinct(wanted: list[Any]) -> list[Any]:
    """What is asked for twice is told once."""
    return list({(t.name, t.topic_id): t for t in wanted}.values())


def _refused(wanted: Any) -> Any:
    """Versions 10 and 11 have a place for ids, and no meaning for them."""
    name = wanted.name if wanted.name is not None else ""
    return messages.MetadataResponse.MetadataResponseTopic(error_code=Errors.INVALID_REQUEST, name=name, topic_id=wanted.topic_id)


def _to_create(context: Context, request: Any) -> list[str]:
    if not request.allow_auto_topic_creation or not context.broker.config["auto.create.topics.enable"]:
        return []
    names = dict.fromkeys(t.name for t in request.topics if t.name is not None and t.topic_id == NO_UUID)
    return [name for name in names if name not in context.broker.image.topics and _is_legal(name)]


def _is_legal(name: str) -> bool:
    try:
        topic_rules.check_name(name)
    except ApiError:
        return False
    return name != CLUSTER_METADATA


def _create_and_answer(context: Context, request: Any, names: list[str]) -> Coroutine[Any, Any, Any]:
    """Creation begins now; as in Kafka, this answer still says that the topics are not there."""
    broker = context.broker
    create = messages.CreateTopicsRequest(
        topics=[messages.CreateTopicsRequest.CreatableTopic(name=n, num_partitions=-1, replication_factor=-1) for n in names]
    )
    controller = broker.metadata.controller
    broker.metadata.submit(lambda: topic_rules.create_topics(controller, create))

    async def answer() -> Any:
        return _response(context, request, [_one(context, request, t) for t in _distinct(request.topics)])

    return answer()


def _one(context: Context, request: Any, wanted: Any) -> Any:
    name, image = wanted.name, context.broker.image
    t = messages.MetadataResponse.MetadataResponseTopic
    if wanted.topic_id != NO_UUID:
        name = image.topic_names.get(wanted.topic_id)
        if name is None:
            return t(error_code=Errors.UNKNOWN_TOPIC_ID, topic_id=wanted.topic_id, name=None)
    if name not in image.topics:
        return t(error_code=_absent(context, request, name), name=name, is_internal=context.broker.is_internal(name))
    return _topic(context, request, name)


def _absent(context: Context, request: Any, name: str) -> int:
    try:
        topic_rules.check_name(name)
    except ApiError as error:
        return error.code
    return int(Errors.UNKNOWN_TOPIC_OR_PARTITION)


def _topic(context: Context, request: Any, name: str) -> Any:
    image = context.broker.image
    topic = image.topics[name]
    out = messages.MetadataResponse.MetadataResponseTopic(name=name, topic_id=topic.id, is_internal=context.broker.is_internal(name))
    partition_class = messages.MetadataResponse.MetadataResponsePartition
    for state in image.partitions_of(topic.id):
        local = context.broker.partitions.by_name.get((name, state.index))
        offline = [r for r in state.replicas if r not in image.brokers or (local is not None and local.offline)]
        out.partitions.append(
            partition_class(
                error_code=Errors.LEADER_NOT_AVAILABLE if state.leader < 0 or offline else 0,
                partition_index=state.index,
                leader_id=-1 if offline else state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                offline_replicas=offline,
            )
        )
    if request.include_topic_authorized_operations:
        out.topic_authorized_operations = topic_operations()
    return out


def _response(context: Context, request: Any, topics: list[Any]) -> Any:
    broker = context.broker
    r = messages.MetadataResponse
    at = broker.config.advertised[context.listener]
    response = r(
        brokers=[r.MetadataResponseBroker(node_id=context.node_id, host=at.host, port=at.port, rack=broker.config["broker.rack"])],
        cluster_id=broker.cluster_id,
        controller_id=context.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
