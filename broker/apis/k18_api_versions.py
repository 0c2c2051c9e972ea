"""ApiVersions, versions 0 to 5: lists the APIs and versions that this broker supports, computed from the registry.

**Behaviour**
- The reply always has header version 0.
- Dispatch answers a request of an unknown version with version 0 of the reply (KIP-511).

**Versions**
- 1 throttle time
- 2 clients are throttled after the reply (KIP-219)
- 3 flexible, software of the client, features (KIP-511, KIP-584)
- 4 features with a minimum level of 0 (KAFKA-17011)
- 5 the cluster and node that the client expects (KIP-1242)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...coordinator.hashing import TABLE_SIZE, put_order
from ...protocol import messages
from ...protocol.errors import Errors
from ...protocol.features import KRAFT_VERSION, METADATA_VERSION, supported
from ..controller.metadata_log import KRAFT_LEVEL
from ..error_places import Place, codes
from ..net.context import Context
from ..peer import Software
from ..security.authorization import Authorization
from . import apis

AUTHORIZATION: Authorization = ()
TELEMETRY = (71, 72)  # not listed unless something takes the metrics of clients, as in Kafka
SOFTWARE_PATTERN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
ERRORS = (Place("the whole", codes("UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED")),)


def handle(context: Context, request: messages.ApiVersionsRequest) -> messages.ApiVersionsResponse:
    r = messages.ApiVersionsResponse
    if context.version >= 3:
        names = Software(request.client_software_name, request.client_software_version)
        if not all(SOFTWARE_PATTERN.fullmatch(name) for name in names):
            return r(error_code=Errors.INVALID_REQUEST)
        context.peer.software = names
    if (request.cluster_id is None) != (request.node_id < 0):  # both or neither
        return r(error_code=Errors.INVALID_REQUEST)
    if context.version >= 5 and _astray(context, request):
        return r(error_code=Errors.REBOOTSTRAP_REQUIRED)
    served = [
        api
        for api in apis(context.broker.config["unstable.api.versions.enable"]).values()
        if api.key not in TELEMETRY or context.broker.config.takes_client_metrics
    ]
    features = supported()
    finalized = {name: level for name, level in context.broker.image.features.items() if name in features} | {
        KRAFT_VERSION: KRAFT_LEVEL
    }
    response = r(
        api_keys=[r.ApiVersion(api_key=a.key, min_version=a.listed_low, max_version=a.high) for a in served],
        finalized_features_epoch=context.broker.metadata.applied_offset - 1,
        finalized_features=[
            r.FinalizedFeatureKey(name=name, max_version_level=finalized[name], min_version_level=finalized[name])
            for name in _finalized_order(finalized)
        ],
    )
    response.supported_features = [
        r.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name in put_order((METADATA_VERSION, *features), TABLE_SIZE)
        for low, high in (features[name],)
        if low > 0 or context.version >= 4
    ]
    return response


def _finalized_order(names: Iterable[str]) -> list[str]:
    """Kafka copies a hash table of the other features, and adds the version of the metadata."""
    others = put_order((name for name in names if name != METADATA_VERSION), TABLE_SIZE)
    return put_order([*others, METADATA_VERSION], int(len(others) / 0.75 + 1))


def _astray(context: Context, request: messages.ApiVersionsRequest) -> bool:
    """Whether the client expects another cluster or node, because its connection was routed to the wrong broker."""
    other_cluster = request.cluster_id is not None and request.cluster_id != context.broker.cluster_id
    return bool(other_cluster or (request.node_id >= 0 and request.node_id != context.node_id))
