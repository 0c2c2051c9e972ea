"""What Kafka's StandardAuthorizer decides, written down a second time as plainly as possible: every entry is looked at
for every question. The simulator of security holds the broker against it.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from ottla.coordinator.security.acls import ANYONE, SUPPORTED, WILDCARD, Acl, Operation, PatternType, Permission
from ottla.coordinator.security.acls import ResourceType as R

IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
"""The operations whose permission gives another one, too."""
SUPER_USER = "User:admin"


class Rights:
    """The entries that there are. `is_open`: whether a resource that no entry covers is for everyone."""

    def __init__(self) -> None:
        self.acls: set[Acl] = set()
        self.is_open = False

    def allow(self, principal: str, host: str, operation: Operation, kind: R, name: str) -> bool:
        """Whether a principal at an address may do an operation on a resource."""
        if principal == SUPER_USER:
            return True
        covering = [one for one in self.acls if one.resource_type == kind and _covers(one, name)]
        if not covering:
            return self.is_open
        mine = [one for one in covering if one.principal in (principal, ANYONE) and _is_at(one.host, host)]
        exact = {operation, Operation.ALL}
        if any(one.permission == Permission.DENY and one.operation in exact for one in mine):
            return False
        allowing = exact | IMPLYING.get(operation, set())
        return any(one.permission == Permission.ALLOW and one.operation in allowing for one in mine)

    def allow_any(self, principal: str, host: str, operation: Operation, kind: R) -> bool:
        """Whether there could be a resource of the type on which the principal may do the operation (KIP-679).

        The operation is one that no other implies. Tries the names that entries name, one name below each prefix, and
        one that is most likely covered by no entry.
        """
        names = {"hardcode"}
        for one in self.acls:
            if one.resource_type == kind and one.name != WILDCARD:
                names.add(one.name if one.pattern_type == PatternType.LITERAL else f"{one.name}~")
        return any(self.allow(principal, host, operation, kind, name) for name in sorted(names))

    def bits(self, principal: str, host: str, kind: R, name: str) -> int:
        """The operations that the principal may do on a resource, as a reply has them."""
        return sum(1 << one for one in SUPPORTED[kind] if self.allow(principal, host, one, kind, name))


def _covers(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, WILDCARD)


def _is_at(pattern: str, host: str) -> bool:
    if "/" in pattern:
        return ip_address(host) in ip_network(pattern)
    return pattern in (host, WILDCARD)
