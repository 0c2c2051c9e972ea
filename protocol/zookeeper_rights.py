"""What Kafka 0.9 to 3.9 keep of rights (ACLs) in ZooKeeper: the values of nodes as bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .zookeeper_json import Malformed, decoded_object, encoded, list_of, mapping_of, ordered, text_of
from .zookeeper_paths import Number


@dataclass(frozen=True, slots=True)
class AclEntry:
    """An entry of a resource below ACLS or PREFIXED_ACLS, with names as Kafka writes them: `ClusterAction`."""

    principal: str
    permission: str
    operation: str
    host: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} for {self.principal} from {self.host}"


def acl_entries(entries: Sequence[AclEntry], release: Number) -> bytes:
    """Returns the value of a resource's node."""
    order = "principal permissionType operation host" if release < (3,) else "principal permissionType host operation"
    named: list[dict[str, object]] = [
        {"principal": one.principal, "permissionType": one.permission, "operation": one.operation, "host": one.host}
        for one in entries
    ]
    acls = [ordered(one, order) for one in named]
    return encoded({"version": 1, "acls": acls} if release < (3,) else {"acls": acls, "version": 1})


def acl_change(kind: str, name: str, release: Number) -> bytes:
    """Returns what says that the entries of a resource have changed, in a new sequential node below ACL_CHANGES."""
    return f"{kind if release < (2,) else _in_capitals(kind)}:{name}".encode()


def prefixed_acl_change(kind: str, name: str) -> bytes:
    """Like `acl_change`, of entries for all names that begin so, below PREFIXED_ACL_CHANGES (2.0 and later)."""
    return encoded({"version": 1, "resourceType": _in_capitals(kind), "name": name, "patternType": "PREFIXED"})


def acl_change_of(data: bytes | None) -> tuple[str, str]:
    """Returns the type of a resource, as its node has it, and its name. Raises Malformed."""
    try:
        kind, _, name = (data or b"").decode().partition(":")
    except ValueError:
        raise Malformed("the value is not text") from None
    return _resource(kind, name)


def prefixed_acl_change_of(data: bytes | None) -> tuple[str, str]:
    """Like `acl_change_of`. Raises Malformed."""
    found = decoded_object(data)
    return _resource(found.get("resourceType"), found.get("name"))


def _resource(kind: object, name: object) -> tuple[str, str]:
    if not isinstance(kind, str) or not isinstance(name, str) or not kind.replace("_", "").isalpha() or not name:
        raise Malformed("the value does not name a resource")
    return kind.title().replace("_", "") if kind.isupper() else kind, name


def _in_capitals(kind: str) -> str:
    """`TransactionalId` is TRANSACTIONAL_ID."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind).upper()


def acl_entries_of(data: bytes | None) -> list[AclEntry]:
    """Returns the entries of a resource; none if the node has no value. Raises Malformed."""
    if not data:
        return []
    names = ("principal", "permissionType", "operation", "host")
    try:
        entries = map(mapping_of, list_of(decoded_object(data)["acls"]))
        return [AclEntry(*(text_of(one[name]) for name in names)) for one in entries]
    except (KeyError, TypeError):
        raise Malformed("the value is not a list of access control entries") from None
