"""CreateTopics of an emulated release: before 2.1 a wrong value of a configuration is an UNKNOWN_SERVER_ERROR, with the
same words, and one that is null has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.errors import Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

OF_A_NAME = "Unknown topic config name"


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    if not release.is_before(2, 1):
        return handle

    async def emulated(context: Context, request: messages.CreateTopicsRequest) -> messages.CreateTopicsResponse:
        response: messages.CreateTopicsResponse = await outcome_of(handle(context, request))
        response.topics = elements_of(response.topics)
        for topic in response.topics:
            text = topic.error_message or ""
            if topic.error_code == Errors.INVALID_CONFIG and not text.startswith(OF_A_NAME):
                topic.error_code = int(Errors.UNKNOWN_SERVER_ERROR)
                topic.error_message = text if text.startswith("Invalid value") else None
        return response

    return emulated
