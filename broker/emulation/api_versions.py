"""ApiVersions of an emulated release: its APIs, and its features at the levels that it had."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol import messages
from ..apis.k18_api_versions import TELEMETRY
from ..net.api import Api, Handler
from ..net.context import Context
from .between_brokers import versions_of
from .releases import Release

FEATURES_SINCE = (2, 7)  # in ZooKeeper, whose node for them has this version at first
FIRST_EPOCH, WITHOUT_EPOCH = 0, -1


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.ApiVersionsRequest) -> messages.ApiVersionsResponse:
        r = messages.ApiVersionsResponse
        response: messages.ApiVersionsResponse = handle(context, request)
        if response.error_code:
            return response
        response.api_keys = [
            r.ApiVersion(api_key=api.key, min_version=api.listed_low, max_version=api.high)
            for api in served.values()
            if api.key not in TELEMETRY or context.broker.config.takes_client_metrics
        ]
        response.api_keys += [
            r.ApiVersion(api_key=key, min_version=release.apis[key][0], max_version=high)
            for key, (_, high) in versions_of(release).items()
        ]
        response.api_keys.sort(key=lambda one: one.api_key)
        levels = release.features
        response.supported_features = [one for one in response.supported_features if one.name in levels]
        response.finalized_features = [one for one in response.finalized_features if one.name in levels]
        for supported in response.supported_features:
            supported.max_version = min(supported.max_version, levels[supported.name])
            supported.min_version = min(supported.min_version, supported.max_version)
        for finalized in response.finalized_features:
            finalized.max_version_level = min(finalized.max_version_level, levels[finalized.name])
            finalized.min_version_level = min(finalized.min_version_level, finalized.max_version_level)
        if not levels:
            response.finalized_features_epoch = WITHOUT_EPOCH if release.is_before(*FEATURES_SINCE) else FIRST_EPOCH
        return response

    return emulated
