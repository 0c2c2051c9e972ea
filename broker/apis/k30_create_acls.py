"""CreateAcls, versions 1 to 3: creates access control entries; entries that exist are not an error.

**Behaviour**
- Without an authorizer it returns SECURITY_DISABLED for each entry, as Kafka does.
- An entry with an invalid value gets INVALID_REQUEST; the others are created.
- In a ZooKeeper, an entry for a name that no node can have (`a/b`) gets UNKNOWN_SERVER_ERROR, as in Kafka, where the
  node that should be above is missing.

**Versions**
- 2 flexible
- 3 user resources (KIP-373)
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import acls
from ...coordinator.security.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.zookeeper_paths import is_node_name
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..later import Steps
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import each_in_steps
from ._acls import NO_AUTHORIZER, check_known, require

ALTERS = Check(Operation.ALTER, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
AUTHORIZATION = (ALTERS,)
ERRORS = (
    Place(
        "each entry",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST SECURITY_DISABLED"),
        (array("results", "creations"),),
        text=Text.OWN,
    ),
)


def handle(context: Context, request: messages.CreateAclsRequest) -> Steps[messages.CreateAclsResponse]:
    for one in request.creations:
        check_known(one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
    require(context, ALTERS)
    return _create(context, request)


async def _create(context: Context, request: messages.CreateAclsRequest) -> messages.CreateAclsResponse:
    turn = context.broker.turn
    wanted = await each_in_steps(turn, request.creations, _wanted)
    if context.broker.authorizer is None:
        await context.broker.metadata.answers()
        raise ApiError(Errors.SECURITY_DISABLED, NO_AUTHORIZER)
    await context.broker.metadata.reached()
    # an entry must name one thing; Kafka fails with a Java exception
    if any(await each_in_steps(turn, wanted, _stands_for_all)):
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    in_zookeeper = context.broker.config.uses_zookeeper
    refused = await each_in_steps(turn, wanted, lambda acl: _refused(acl, in_zookeeper))
    valid = [acl for acl, error in zip(wanted, refused, strict=True) if error is None]
    metadata = context.broker.metadata
    outcome = await metadata.forward(partial(acls.create, metadata.controller, valid))
    created = iter(outcome)
    results = await each_in_steps(turn, refused, lambda error: _result(next(created) if error is None else error))
    return messages.CreateAclsResponse(results=results)


def _wanted(one: messages.CreateAclsRequest.AclCreation) -> Acl:
    return Acl(
        one.resource_type,
        one.resource_name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


def _stands_for_all(acl: Acl) -> bool:
    return (
        acl.resource_type == ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation == Operation.ANY
        or acl.permission == Permission.ANY
    )


def _refused(acl: Acl, in_zookeeper: bool) -> ApiError | None:
    """Returns the error of an entry whose resource cannot have this name."""
    if acl.resource_type == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return ApiError(Errors.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if acl.name and in_zookeeper and not is_node_name(acl.name):
        return ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return None if acl.name else ApiError(Errors.INVALID_REQUEST, "Invalid empty resource name")


def _result(error: ApiError | None) -> messages.CreateAclsResponse.AclCreationResult:
    result = messages.CreateAclsResponse.AclCreationResult()
    return result if error is None else error.put_into(result, with_default=False)
