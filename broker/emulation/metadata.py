"""Metadata of an emulated release: with ZooKeeper a topic that is being created has LEADER_NOT_AVAILABLE."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.errors import Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

NAMED_MAX = 1000  # topics; clients name those that they use


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    if not release.has_zookeeper:
        return handle

    async def emulated(context: Context, request: messages.MetadataRequest) -> messages.MetadataResponse:
        creates = request.allow_auto_topic_creation and context.broker.config["auto.create.topics.enable"]
        response: messages.MetadataResponse = await outcome_of(handle(context, request))
        if creates and request.topics and len(response.topics) <= NAMED_MAX:
            response.topics = elements_of(response.topics)
            for topic in response.topics:
                if topic.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                    topic.error_code = int(Errors.LEADER_NOT_AVAILABLE)
        return response

    return emulated
