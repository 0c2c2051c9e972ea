"""AlterUserScramCredentials, version 0: deletes and upserts SCRAM credentials (KIP-554)."""

from __future__ import annotations

from collections.abc import Sequence

from ...coordinator.metadata import credentials
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "each user",
        CONTROLLER
        + codes(
            "CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_SASL_MECHANISM RESOURCE_NOT_FOUND DUPLICATE_RESOURCE "
            "UNACCEPTABLE_CREDENTIAL"
        ),
        (array("results", ("deletions", "upsertions"), user=("user", "name")),),
        text=Text.OWN,
    ),
)


async def handle(
    context: Context,
    request: messages.AlterUserScramCredentialsRequest,
) -> messages.AlterUserScramCredentialsResponse:
    metadata = context.broker.metadata
    outcome = await metadata.forward(lambda: credentials.alter(metadata.controller, request))
    return _told(outcome)


def _told(outcome: Sequence[tuple[str, ApiError | None]]) -> messages.AlterUserScramCredentialsResponse:
    r = messages.AlterUserScramCredentialsResponse
    results = []
    for user, error in outcome:
        result = r.AlterUserScramCredentialsResult(user=user, error_message=None)
        if error is not None:
            error.put_into(result, with_default=False)
        results.append(result)
    return r(results=results)
