"""Helpers of the three APIs of access control entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.security.acls import AclFilter
from ...protocol import messages
from ...protocol.errors import MalformedMessage
from ..net.context import Context
from ..security.authorization import Check, refused

if TYPE_CHECKING:
    Filter = messages.DescribeAclsRequest | messages.DeleteAclsRequest.DeleteAclsFilter

NO_AUTHORIZER = "No Authorizer is configured."


def filter_of(wanted: Filter) -> AclFilter:
    """Returns the filter of a request. Raises MalformedMessage for the code UNKNOWN,
    at which Kafka closes the connection.
    """
    found = AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )
    check_known(found.resource_type, found.pattern_type, found.operation, found.permission)
    return found


def require(context: Context, check: Check) -> None:
    """Raises ApiError: the principal may not do it. Kafka reads the codes of a request before it asks for rights."""
    if not check.allows(context):
        raise refused(context, context.api_name, check)


def check_known(*codes: int) -> None:
    """Raises MalformedMessage: a code is UNKNOWN."""
    if 0 in codes:
        raise MalformedMessage("", "an access control entry or its filter with the code UNKNOWN")
