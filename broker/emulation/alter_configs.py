"""AlterConfigs and IncrementalAlterConfigs of an emulated release: what a broker with ZooKeeper says of wrong values.

**Behaviour**
- The words name the resource, of brokers before 3.2. A wrong value of a topic is an INVALID_REQUEST before 3.3.
- Sets are written as Scala writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...coordinator.metadata.state import BROKER, TOPIC
from ...protocol import messages
from ...protocol.errors import Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

Response = messages.AlterConfigsResponse  # that of IncrementalAlterConfigs has the same fields
Answer = messages.AlterConfigsResponse.AlterConfigsResourceResponse
_OF_LISTENERS = "These security configs"
_OF_VALUES = ("Invalid value", "requirement failed", "Cannot update these configs", _OF_LISTENERS)
_NAMES = re.compile(r"\[([^\[\]]*)\]$")


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    if not release.has_zookeeper:
        return handle

    async def emulated(context: Context, request: messages.AlterConfigsRequest) -> Response:
        response: Response = await outcome_of(handle(context, request))
        for one in elements_of(response.responses):
            _settle(one, release)
        return response

    return emulated


def _settle(one: Answer, release: Release) -> None:
    text = one.error_message or ""
    if not text.startswith(_OF_VALUES):
        return
    kind = "Resource(type={}, name='{}'}}" if release.is_before(2, 0) else "ConfigResource(type={}, name='{}')"
    if one.resource_type == TOPIC and one.error_code == Errors.INVALID_CONFIG:
        if release.is_before(3, 3):
            one.error_code = int(Errors.INVALID_REQUEST)
        one.error_message = f"Invalid config value for resource {kind.format('TOPIC', one.resource_name)}: {text}"
    elif one.resource_type == BROKER and one.error_code == Errors.INVALID_REQUEST:
        is_hashed = text.startswith(_OF_LISTENERS) and not release.is_before(2, 7)
        text = _NAMES.sub(r"HashSet(\1)" if is_hashed else r"Set(\1)", text)
        if release.is_before(3, 2):
            text = f"Invalid config value for resource {kind.format('BROKER', one.resource_name)}: {text}"
        one.error_message = text
