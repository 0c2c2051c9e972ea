"""Access control entries by the names that brokers with ZooKeeper keep there: `TransactionalId`, `ClusterAction`."""

from __future__ import annotations

from ...protocol.zookeeper_rights import AclEntry
from .acls import Acl, Operation, PatternType, Permission, ResourceType, named

_Coded = type[ResourceType] | type[Operation] | type[Permission]


def acl_named(kind: str, name: str, pattern: PatternType, entry: AclEntry) -> Acl:
    """Returns an entry of a resource. Raises KeyError for a name that Kafka 4.4 does not know."""
    return Acl(
        _code(ResourceType, kind),
        name,
        pattern,
        entry.principal,
        entry.host,
        _code(Operation, entry.operation),
        _code(Permission, entry.permission),
    )


def resource_name(acl: Acl) -> str:
    """Returns the name of an entry's resource type."""
    return _name(ResourceType, acl.resource_type)


def entry_of(acl: Acl) -> AclEntry:
    return AclEntry(acl.principal, _name(Permission, acl.permission), _name(Operation, acl.operation), acl.host)


def _code(kind: _Coded, name: str) -> int:
    for one in kind:
        if one.name.replace("_", "").lower() == name.lower():
            return int(one)
    raise KeyError(name)


def _name(kind: _Coded, code: int) -> str:
    return named(kind, code).name.replace("_", " ").title().replace(" ", "")
