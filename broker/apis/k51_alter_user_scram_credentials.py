"""AlterUserScramCredentials, version 0: deletes and upserts SCRAM credentials (KIP-554)."""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import credentials
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check
from ..steps import each_in_steps

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
    is_void = not (request.deletions or request.upsertions)
    outcome = await metadata.forward(partial(credentials.alter, metadata.controller, request), is_void=is_void)
    results = await each_in_steps(context.broker.turn, outcome, _result)
    return messages.AlterUserScramCredentialsResponse(results=results)


def _result(
    answered: tuple[str, ApiError | None],
) -> messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult:
    user, error = answered
    result = messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(user=user, error_message=None)
    return result if error is None else error.put_into(result, with_default=False)
