"""AlterUserScramCredentials, version 0: deletes and upserts SCRAM credentials (KIP-554)."""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import credentials
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ...protocol.java import java_units
from ...protocol.structs import Struct
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..error_replies import reply_with_error
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


def failed(context: Context, request: messages.AlterUserScramCredentialsRequest, error: ApiError) -> Struct:
    """Returns the error of each user once, in the order of Java's strings."""
    reply = reply_with_error(context.api, context.version, request, error)
    assert isinstance(reply, messages.AlterUserScramCredentialsResponse)
    users = {one.user: one for one in reply.results}
    reply.results = [users[name] for name in sorted(users, key=java_units)]
    return reply
