"""ApiVersions, versions 0 to 5: what this broker speaks.

1 throttle time; 2 throttled clients are muted; 3 flexible, the client's software, features (KIP-511, KIP-584); 4 features with a
minimum of 0 are listed (KAFKA-17011); 5 cluster and node id, so that a client that went astray is told (KIP-1242).
The reply's header is always version 0. A version that is not known is answered by dispatch, with version 0 of the reply.
"""

from __future__ import annotations

import re
from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ...protocol.features import KRAFT_VERSION, supported
from ..context import Context
from ..metadata_log import KRAFT_LEVEL
from ..registry import apis

SOFTWARE_PATTERN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: Context, request: Any) -> Any:
    r = messages.ApiVersionsResponse
    if context.version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE_PATTERN.fullmatch(name) for name in names):
            return r(error_code=Errors.INVALID_REQUEST)
        context.peer.software = names
    if (request.cluster_id is None) != (request.node_id < 0):  # both or neither
        return r(error_code=Errors.INVALID_REQUEST)
    if context.version >= 5 and _astray(context, request):
        return r(error_code=Errors.REBOOTSTRAP_REQUIRED)
    served = apis(context.broker.config["unstable.api.versions.enable"]).values()
    finalized = {**dict(context.broker.image.features.items()), KRAFT_VERSION: KRAFT_LEVEL}
    features = supported().items()
    response = r(
        api_keys=[r.ApiVersion(api_key=a.key, min_version=a.listed_low, max_version=a.high) for a in served],
        finalized_features_epoch=context.broker.metadata.applied_offset - 1,
        finalized_features=[r.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level) for name, level in finalized.items()],
    )
    response.supported_features = [
        r.SupportedFeatureKey(name=name, min_version=low, max_version=high) for name, (low, high) in features if low > 0 or context.version >= 4
    ]
    return response


def _astray(context: Context, request: Any) -> bool:
    """The client wanted another cluster or node, and somebody mapped its connection here."""
    other_cluster = request.cluster_id is not None and request.cluster_id != context.broker.cluster_id
    return bool(other_cluster or (request.node_id >= 0 and request.node_id != context.node_id))
