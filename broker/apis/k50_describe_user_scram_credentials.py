"""DescribeUserScramCredentials, version 0: lists users with SCRAM credentials and their mechanisms (KIP-554)."""

from __future__ import annotations

from ...coordinator.metadata import credentials
from ...coordinator.metadata.credentials import Described
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ...protocol.structs import Struct
from ..error_places import Place, Text, array, codes
from ..error_replies import reply_with_error
from ..net.answers import answer_each
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


async def handle(
    context: Context,
    request: messages.DescribeUserScramCredentialsRequest,
) -> messages.DescribeUserScramCredentialsResponse:
    found = credentials.described(context.broker.image, [one.name for one in request.users or ()])
    results = await answer_each(context, "results", found, _result)
    return messages.DescribeUserScramCredentialsResponse(results=results)


def _result(described: Described) -> messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    r = messages.DescribeUserScramCredentialsResponse
    user, records, error = described
    infos = [r.CredentialInfo(mechanism=record.mechanism, iterations=record.iterations) for record in records]
    result = r.DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
    return result if error is None else error.put_into(result, with_default=False)


def failed(context: Context, request: messages.DescribeUserScramCredentialsRequest, error: ApiError) -> Struct:
    """Returns the error without a message: Kafka's broker says no more."""
    return reply_with_error(context.api, context.version, request, ApiError(error.code))
