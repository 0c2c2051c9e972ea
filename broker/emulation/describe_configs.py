"""DescribeConfigs of an emulated release.

**Behaviour**
- An empty list of keys is none of them before 2.7, and all of them since. Without an error there was no message, which
  became an empty one.
- 1.1 says that a key can be changed at run time where that is true of the same key in another unit.

**Versions**
- 0 says of each key whether it has its default, instead of where its value is from. Before 1.1 that is so of all that
  is not the topic's own; 2.7 and later say of no key that it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...coordinator.metadata.state import BROKER, TOPIC
from ...protocol import messages
from ...protocol.config_def import dynamic_broker_keys, topic_synonyms
from ...protocol.trees import tree
from ..apis.k32_describe_configs import DEFAULT_SOURCE, TOPIC_SOURCE
from ..net.answers import answer_each
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

Result = messages.DescribeConfigsResponse.DescribeConfigsResult
Resource = messages.DescribeConfigsRequest.DescribeConfigsResource


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def settle(resource: Resource, result: Result) -> None:
        if not release.is_before(2, 7):
            return
        if resource.configuration_keys is not None and not resource.configuration_keys:
            result.configs = []
        if not result.error_code:
            result.error_message = None
        if release.is_before(2, 0) and resource.resource_type == BROKER:
            dynamic = _dynamic_in_any_unit(release)
            for one in result.configs:
                one.read_only = one.read_only and one.name not in dynamic

    def is_default(resource: Resource, source: int) -> bool:
        if not release.is_before(2, 7):
            return False
        if release.is_before(1, 1) and resource.resource_type == TOPIC:
            return source != TOPIC_SOURCE
        return source == DEFAULT_SOURCE

    async def emulated(context: Context, request: messages.DescribeConfigsRequest) -> messages.DescribeConfigsResponse:
        if context.version > 0 and not release.is_before(2, 7):
            found: messages.DescribeConfigsResponse = await outcome_of(handle(context, request))
            return found
        version = max(context.version, 1)
        asked = Context(context.broker, context.api, version, context.correlation_id, context.client_id, context.peer)
        response: messages.DescribeConfigsResponse = await outcome_of(handle(asked, request))
        config_class = tree("DescribeConfigsResponse", 0).at("results.configs").cls

        def told(pair: tuple[Resource, Result]) -> Result:
            resource, result = pair
            settle(resource, result)
            if not context.version:
                result.configs = [
                    config_class(
                        name=one.name,
                        value=one.value,
                        read_only=one.read_only,
                        is_default=is_default(resource, one.config_source),
                        is_sensitive=one.is_sensitive,
                    )
                    for one in result.configs
                ]
            return result

        pairs = list(zip(request.resources, elements_of(response.results), strict=True))
        return messages.DescribeConfigsResponse(results=await answer_each(context, "results", pairs, told, 1))

    return emulated


def _dynamic_in_any_unit(release: Release) -> set[str]:
    dynamic = dynamic_broker_keys(release.name)
    units = {name for names in topic_synonyms().values() if dynamic & set(names) for name in names}
    return {name for name in units if name.endswith((".hours", ".minutes"))}
