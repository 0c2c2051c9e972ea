"""CreateTopics of an emulated release.

Brokers with ZooKeeper look at the number of partitions before the replication factor, and have other words for both.
Before 2.1 a wrong value of a configuration is an UNKNOWN_SERVER_ERROR, with the same words, and one that is null has
none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...protocol import messages
from ...protocol.errors import Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

OF_A_NAME = "Unknown topic config name"
MANUAL = "A manual partition assignment was specified"
BOTH = "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
TOO_FEW = re.compile(r"The target replication factor of (\d+) cannot be reached because only (\d+) broker")
Asked = messages.CreateTopicsRequest.CreatableTopic
Created = messages.CreateTopicsResponse.CreatableTopicResult


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    if not release.has_zookeeper:
        return handle

    async def emulated(context: Context, request: messages.CreateTopicsRequest) -> messages.CreateTopicsResponse:
        response: messages.CreateTopicsResponse = await outcome_of(handle(context, request))
        response.topics = elements_of(response.topics)
        asked = {topic.name: topic for topic in request.topics}
        for topic in response.topics:
            if topic.error_code:
                _refuse_numbers(asked[topic.name], topic, release)
                if release.is_before(2, 1):
                    _refuse_values(topic)
        return response

    return emulated


def _refuse_numbers(asked: Asked, topic: Created, release: Release) -> None:
    """Puts what a broker with ZooKeeper says of partitions and replicas in place of what a controller says."""
    code, text = topic.error_code, topic.error_message or ""
    if code == Errors.INVALID_REQUEST and text.startswith(MANUAL):
        topic.error_message = BOTH
    elif code in (Errors.INVALID_PARTITIONS, Errors.INVALID_REPLICATION_FACTOR):
        few = TOO_FEW.search(text)
        if asked.num_partitions < -1 or asked.num_partitions == 0:
            topic.error_code = int(Errors.INVALID_PARTITIONS)
            text = "Number of partitions must be larger than 0."
        elif few:
            text = f"Replication factor: {few[1]} larger than available brokers: {few[2]}."
        elif asked.replication_factor < -1 or asked.replication_factor == 0:
            text = "Replication factor must be larger than 0."
        topic.error_message = text[:1].lower() + text[1:].rstrip(".") if release.is_before(1, 0) else text


def _refuse_values(topic: Created) -> None:
    text = topic.error_message or ""
    if topic.error_code == Errors.INVALID_CONFIG and not text.startswith(OF_A_NAME):
        topic.error_code = int(Errors.UNKNOWN_SERVER_ERROR)
        topic.error_message = text if text.startswith("Invalid value") else None
