"""Rights, quotas and credentials that administrators have set, as the replies of a cluster show them."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from .old_directories import Asks

LITERAL = 3
ANY = 1  # of resource types, pattern types, operations and permissions
Row = list[Any]


def acls_of(asks: Asks, version: int) -> list[Row]:
    """Resource type, name and pattern type, principal, host, operation and permission of each entry."""
    r = m.DescribeAclsRequest
    fields: dict[str, Any] = {"resource_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    fields |= {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    if version:
        fields["pattern_type_filter"] = ANY
    reply = asks.ask("DescribeAcls", version, r(**fields))
    assert not reply.error_code, reply
    return sorted(
        [
            *(of.resource_type, of.resource_name, of.pattern_type if version else LITERAL),
            *(one.principal, one.host, one.operation, one.permission_type),
        ]
        for of in reply.resources
        for one in of.acls
    )


def quotas_of(asks: Asks) -> list[Row]:
    """Types and names of each entity, and its limits. The name of a default is None."""
    reply = asks.ask("DescribeClientQuotas", 0, m.DescribeClientQuotasRequest(components=[], strict=False))
    assert not reply.error_code, reply
    found = [
        [
            sorted([one.entity_type, one.entity_name] for one in entry.entity),
            sorted([one.key, one.value] for one in entry.values),
        ]
        for entry in reply.entries
    ]
    return sorted(found, key=repr)


def credentials_of(asks: Asks) -> list[Row]:
    """Each user with mechanisms and iterations."""
    reply = asks.ask("DescribeUserScramCredentials", 0, m.DescribeUserScramCredentialsRequest(users=None))
    assert not reply.error_code, reply
    return sorted(
        [one.user, sorted([info.mechanism, info.iterations] for info in one.credential_infos)] for one in reply.results
    )
