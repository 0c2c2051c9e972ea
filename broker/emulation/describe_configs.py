"""DescribeConfigs version 0, which says of each key whether it has its default, instead of where its value is from."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ...protocol.trees import tree
from ..net.answers import answer_each
from ..net.api import Api, Handler
from ..net.context import Context
from .outcomes import elements_of, outcome_of
from .releases import Release

DEFAULT_SOURCE = 5
Result = messages.DescribeConfigsResponse.DescribeConfigsResult


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    async def emulated(context: Context, request: messages.DescribeConfigsRequest) -> messages.DescribeConfigsResponse:
        if context.version > 0:
            found: messages.DescribeConfigsResponse = await outcome_of(handle(context, request))
            return found
        later = Context(context.broker, context.api, 1, context.correlation_id, context.client_id, context.peer)
        response: messages.DescribeConfigsResponse = await outcome_of(handle(later, request))
        config_class = tree("DescribeConfigsResponse", 0).at("results.configs").cls

        def old(result: Result) -> Result:
            result.configs = [
                config_class(
                    name=one.name,
                    value=one.value,
                    read_only=one.read_only,
                    is_default=one.config_source == DEFAULT_SOURCE,
                    is_sensitive=one.is_sensitive,
                )
                for one in result.configs
            ]
            return result

        return messages.DescribeConfigsResponse(
            results=await answer_each(context, "results", elements_of(response.results), old, 1)
        )

    return emulated
