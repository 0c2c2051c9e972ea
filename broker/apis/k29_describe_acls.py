"""DescribeAcls, versions 1 to 3: lists the access control entries that a filter matches.

**Behaviour**
- Without an authorizer it returns SECURITY_DISABLED, as Kafka does.
- Entries are grouped by the pattern of their resource.

**Versions**
- 2 flexible
- 3 user resources (KIP-373)
"""

from __future__ import annotations

from ...coordinator.security.acls import Acl, AclFilter, Operation, ResourceType, acl_of
from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import Place, Text, codes
from ..later import Steps
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._acls import filter_of, require

DESCRIBES = Check(Operation.DESCRIBE, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
AUTHORIZATION = (DESCRIBES,)
ERRORS = (Place("the whole", codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST SECURITY_DISABLED"), text=Text.OWN),)


def handle(
    context: Context, request: messages.DescribeAclsRequest
) -> messages.DescribeAclsResponse | Steps[messages.DescribeAclsResponse]:
    wanted = filter_of(request)
    require(context, DESCRIBES)
    if context.broker.authorizer is None:
        return messages.DescribeAclsResponse(
            error_code=Errors.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        )
    return _describe(context, wanted)


async def _describe(context: Context, wanted: AclFilter) -> messages.DescribeAclsResponse:
    r = messages.DescribeAclsResponse
    pace = Pace(context.broker.turn)
    resources: dict[tuple[int, str, int], list[Acl]] = {}
    for record in list(context.broker.image.acls.values()):
        acl = acl_of(record)
        if wanted.matches(acl):
            resources.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(acl)
        if pace.is_over():
            await pace.rest()
    answers = Answers(context)
    made = answers.array("resources")
    for (resource_type, name, pattern_type), acls in resources.items():
        described = answers.array("resources.acls")
        for acl in acls:
            await answers.add("resources.acls", _described(acl))
        resource = r.DescribeAclsResource(
            resource_type=resource_type, resource_name=name, pattern_type=pattern_type, acls=described
        )
        await answers.add("resources", resource)
    return r(resources=made)


def _described(acl: Acl) -> messages.DescribeAclsResponse.AclDescription:
    return messages.DescribeAclsResponse.AclDescription(
        principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
    )
