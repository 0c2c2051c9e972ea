"""UpdateFeatures, versions 0 to 2: raises and lowers the levels of features (KIP-584).

1 the kind of update, and trying it only (KIP-778); 2 one result for all. In version 0 everything is an upgrade, whatever it allows, as in Kafka.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata.features import UPGRADE, Update, update_features
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context

KINDS_SINCE = 1
ONE_RESULT_SINCE = 2


async def handle(context: Context, request: Any) -> Any:
    r = messages.UpdateFeaturesResponse
    updates = [Update(u.feature, u.max_version_level, u.upgrade_type if context.version >= KINDS_SINCE else UPGRADE) for u in request.feature_updates]
    metadata, validate_only = context.broker.metadata, context.version >= KINDS_SINCE and request.validate_only
    try:
        await metadata.submit(lambda: update_features(metadata.controller, context.node_id, updates, validate_only), request.timeout_ms)
    except ApiError as error:
        return r(error_code=error.code, error_message=error.text)
    results = [] if context.version >= ONE_RESULT_SINCE else [r.UpdatableFeatureResult(feature=u.name, error_message="NONE") for u in updates]
    return r(error_message=None, results=results)
