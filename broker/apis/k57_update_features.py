"""UpdateFeatures, versions 0 to 2: raises and lowers the finalized levels of features (KIP-584).

**Behaviour**
- In version 0 every update counts as an upgrade, as in Kafka.

**Versions**
- 1 the type of the update, and a dry run (KIP-778)
- 2 one result for the whole request (KIP-1022)
"""

from __future__ import annotations

from ...coordinator.metadata.features import UPGRADE, Update, update_features
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
KINDS_SINCE = 1
ONE_RESULT_SINCE = 2
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST FEATURE_UPDATE_FAILED INVALID_UPDATE_VERSION"),
        text=Text.OWN,
    ),
    Place(
        "each feature",
        codes("INVALID_REQUEST FEATURE_UPDATE_FAILED INVALID_UPDATE_VERSION"),
        (array("results", "feature_updates", feature="feature"),),
        text=Text.OWN,
        until=ONE_RESULT_SINCE - 1,
        of_whole=False,
    ),
)


async def handle(context: Context, request: messages.UpdateFeaturesRequest) -> messages.UpdateFeaturesResponse:
    r = messages.UpdateFeaturesResponse
    updates = [
        Update(u.feature, u.max_version_level, u.upgrade_type if context.version >= KINDS_SINCE else UPGRADE)
        for u in request.feature_updates
    ]
    metadata, validate_only = context.broker.metadata, context.version >= KINDS_SINCE and request.validate_only
    await metadata.forward(
        lambda: update_features(metadata.controller, metadata.quorum.leader, updates, validate_only),
        request.timeout_ms,
    )
    results = (
        []
        if context.version >= ONE_RESULT_SINCE
        else [r.UpdatableFeatureResult(feature=u.name, error_message="NONE") for u in updates]
    )
    return r(error_message=None, results=results)
