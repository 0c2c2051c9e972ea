"""DeleteAcls, versions 1 to 3: deletes the access control entries that filters match, and lists them.

**Behaviour**
- Without an authorizer it returns SECURITY_DISABLED for each filter, as Kafka does.
- The entries of all filters are deleted together; one that several filters match is listed under each.

**Versions**
- 2 flexible
- 3 user resources (KIP-373)
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata.acls import Deletions, delete
from ...coordinator.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType, acl_of, named
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..later import Steps
from ..net.answers import Answers, ReplyTooLarge
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ._acls import NO_AUTHORIZER, filter_of, require

ENTRY_BYTES_MIN = 14  # of an entry in the reply
ALTERS = Check(Operation.ALTER, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
AUTHORIZATION = (ALTERS,)
ERRORS = (
    Place(
        "each filter",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST SECURITY_DISABLED"),
        (array("filter_results", "filters"),),
        text=Text.OWN,
    ),
    Place(
        "each entry",
        codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST"),
        (
            array("filter_results", "filters"),
            array("matching_acls", None),
        ),
        text=Text.OWN,
        of_whole=False,
        is_kept=True,
    ),
)


def handle(context: Context, request: messages.DeleteAclsRequest) -> Steps[messages.DeleteAclsResponse]:
    wanted = [filter_of(one) for one in request.filters]
    require(context, ALTERS)
    return _delete(context, wanted)


async def _delete(context: Context, wanted: list[AclFilter]) -> messages.DeleteAclsResponse:
    if context.broker.authorizer is None:
        await context.broker.metadata.answers()
        raise ApiError(Errors.SECURITY_DISABLED, NO_AUTHORIZER)
    await context.broker.metadata.reached()
    entries = [(acl_id, acl_of(record)) for acl_id, record in context.broker.image.acls.items()]
    pace, deletions = Pace(context.broker.turn), Deletions()
    left = context.broker.config["ottla.reply.max.bytes"] // ENTRY_BYTES_MIN
    matched: list[list[tuple[bytes, Acl]] | ApiError] = []
    for one in wanted:
        error = _refused(one)
        found = []
        for entry in entries if error is None else ():
            if one.matches(entry[1]):
                deletions.add(entry[0])
                found.append(entry)
            if pace.is_over():
                await pace.rest()
        left -= len(found)
        if left < 0:
            raise ReplyTooLarge  # before anything is deleted
        matched.append(error or found)
    metadata = context.broker.metadata
    deleted = await metadata.forward(partial(delete, metadata.controller, deletions.ids))
    return await _answer(context, matched, deleted)


def _refused(wanted: AclFilter) -> ApiError | None:
    """Returns the error of a filter with a code that Kafka does not know."""
    if not (named(ResourceType, wanted.resource_type) and named(PatternType, wanted.pattern_type)):
        return ApiError(Errors.INVALID_REQUEST, "Unknown patternFilter.")
    if not (named(Operation, wanted.operation) and named(Permission, wanted.permission)):
        return ApiError(Errors.INVALID_REQUEST, "Unknown entryFilter.")
    return None


async def _answer(
    context: Context, matched: list[list[tuple[bytes, Acl]] | ApiError], deleted: set[bytes]
) -> messages.DeleteAclsResponse:
    """Returns the reply: for each filter its error, or the entries that this request deleted."""
    r = messages.DeleteAclsResponse
    answers = Answers(context)
    results = answers.array("filter_results")
    for one in matched:
        result = r.DeleteAclsFilterResult(error_message=None)
        if isinstance(one, ApiError):
            one.put_into(result)
        else:
            result.matching_acls = answers.array("filter_results.matching_acls")
            for acl_id, acl in one:
                if acl_id in deleted:
                    await answers.add("filter_results.matching_acls", _described(acl))
        await answers.add("filter_results", result)
    return r(filter_results=results)


def _described(acl: Acl) -> messages.DeleteAclsResponse.DeleteAclsMatchingAcl:
    return messages.DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
