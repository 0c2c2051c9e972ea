"""DescribeUserScramCredentials, version 0: lists users with SCRAM credentials and their mechanisms (KIP-554)."""

from __future__ import annotations

from ...coordinator.metadata import credentials
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ...protocol.structs import Struct
from ..error_places import Place, Text, array, codes
from ..error_replies import reply_with_error
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.DESCRIBE, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "each user",
        codes("RESOURCE_NOT_FOUND DUPLICATE_RESOURCE"),
        (array("results", "users", user=("user", "name")),),
        text=Text.OWN,
        of_whole=False,
    ),
    Place("the whole", codes("CLUSTER_AUTHORIZATION_FAILED"), text=Text.OWN),
    Place(
        "each user, without its name",
        codes("CLUSTER_AUTHORIZATION_FAILED"),
        (array("results", "users"),),
        text=Text.OWN,
    ),
)


def handle(
    context: Context,
    request: messages.DescribeUserScramCredentialsRequest,
) -> messages.DescribeUserScramCredentialsResponse:
    r = messages.DescribeUserScramCredentialsResponse
    response = r()
    for user, records, error in credentials.described(context.broker.image, [one.name for one in request.users or ()]):
        infos = [r.CredentialInfo(mechanism=record.mechanism, iterations=record.iterations) for record in records]
        result = r.DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
        if error is not None:
            error.put_into(result, with_default=False)
        response.results.append(result)
    return response


def failed(context: Context, request: messages.DescribeUserScramCredentialsRequest, error: ApiError) -> Struct:
    """Returns the error without a message: Kafka's broker says no more."""
    return reply_with_error(context.api, context.version, request, ApiError(error.code))
