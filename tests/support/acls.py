"""Requests for access control entries."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordinator.security.acls import Acl
from ottla.protocol import messages as m


def creations(acls: Iterable[Acl]) -> m.CreateAclsRequest:
    """A request that creates the entries."""
    c = m.CreateAclsRequest
    return c(
        creations=[
            c.AclCreation(
                resource_type=one.resource_type,
                resource_name=one.name,
                resource_pattern_type=one.pattern_type,
                principal=one.principal,
                host=one.host,
                operation=one.operation,
                permission_type=one.permission,
            )
            for one in acls
        ]
    )
