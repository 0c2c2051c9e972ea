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
from ..security.authorization import Check
from ._acls import NO_AUTHORIZER, check_known

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "each entry",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST SECURITY_DISABLED"),
        (array("results", "creations"),),
        text=Text.OWN,
    ),
)


def handle(context: Context, request: messages.CreateAclsRequest) -> Steps[messages.CreateAclsResponse]:
    wanted = [
        Acl(
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for one in request.creations
    ]
    for acl in wanted:
        check_known(acl.resource_type, acl.pattern_type, acl.operation, acl.permission)
    return _create(context, wanted)


async def _create(context: Context, wanted: list[Acl]) -> messages.CreateAclsResponse:
    await context.broker.metadata.reached()
    if context.broker.authorizer is None:
        raise ApiError(Errors.SECURITY_DISABLED, NO_AUTHORIZER)
    if any(_stands_for_all(acl) for acl in wanted):  # an entry must name one thing; Kafka fails with a Java exception
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    refused = [_refused(acl, context.broker.config.uses_zookeeper) for acl in wanted]
    valid = [acl for acl, error in zip(wanted, refused, strict=True) if error is None]
    metadata = context.broker.metadata
    outcome = await metadata.forward(partial(acls.create, metadata.controller, valid))
    created = iter(outcome)
    return _answer([next(created) if error is None else error for error in refused])


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


def _answer(outcome: list[ApiError | None]) -> messages.CreateAclsResponse:
    r = messages.CreateAclsResponse
    results = []
    for error in outcome:
        result = r.AclCreationResult()
        results.append(result if error is None else error.put_into(result, with_default=False))
    return r(results=results)
