"""DeleteTopics of an emulated release: where topics may not be deleted (`delete.topic.enable`, false by default before
1.0), the request waits for its time-out in vain before 2.1 (KIP-322).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.errors import Errors
from ..broker import Broker
from ..later import Later
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import outcome_of
from .releases import Release


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    if not release.is_before(2, 1):
        return handle

    async def emulated(context: Context, request: messages.DeleteTopicsRequest) -> messages.DeleteTopicsResponse:
        broker = context.broker
        if broker.config["delete.topic.enable"]:
            response: messages.DeleteTopicsResponse = await outcome_of(handle(context, request))
            return response
        r = messages.DeleteTopicsResponse
        topics = broker.image.topics
        codes = {
            name: Errors.REQUEST_TIMED_OUT if name in topics else Errors.UNKNOWN_TOPIC_OR_PARTITION
            for name in request.topic_names
        }
        if request.timeout_ms > 0 and Errors.REQUEST_TIMED_OUT in codes.values():
            await _timed_out(broker, request.timeout_ms)
        return r(responses=[r.DeletableTopicResult(name=name, error_code=int(code)) for name, code in codes.items()])

    return emulated


def _timed_out(broker: Broker, timeout_ms: int) -> Later[None]:
    over: Later[None] = Later()
    timer = broker.schedule.later(timeout_ms, lambda: broker.turn.event(lambda: over.finish(None)))
    over.on_cancel = timer.cancel
    return over
