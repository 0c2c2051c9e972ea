"""Kafka's StandardAuthorizer: decides from access control entries who may do what.

A resource is covered by the entries with its name, by those with a prefix of it, and by those with the literal name
`*`. One covering entry that denies the operation decides; otherwise one that allows it. Without a matching entry the
answer is no if any entry covers the resource, whomever it is for, and `allow.everyone.if.no.acl.found` if none does.

Entries are kept by the pattern of their resource, and by their principal within it, so that a check looks at few of
them however many there are: two literal patterns, and one pattern for each length that prefixes have. Answers are
remembered until an entry changes.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping

from .acls import ANYONE, SUPPORTED, WILDCARD, Acl, Operation, PatternType, Permission, ResourceType
from .hosts import Network, contains, network_of

LITERAL, PREFIXED = int(PatternType.LITERAL), int(PatternType.PREFIXED)
HARDCODED = "hardcode"  # the resource by which Kafka finds out whether a principal may do everything
MEMORY_MAX = 10_000
MEMORABLE_MAX = 249  # characters of a name; longer names, which groups may have, would fill the memory
_O = Operation
_IMPLIED_BY = {
    _O.DESCRIBE: (_O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER),
    _O.DESCRIBE_CONFIGS: (_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
}


def _mask(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


# by operation, the bits of the operations of an entry that denies it, and of an entry that allows it
_EXACT = tuple(_mask((operation, _O.ALL)) for operation in _O)
_ALLOWING = tuple(_mask((*_IMPLIED_BY.get(operation, (operation,)), _O.ALL)) for operation in _O)


class _Rules:
    """The entries of one principal on one pattern: the operations that are allowed and denied, by host."""

    __slots__ = ("hosts", "networks")

    def __init__(self, acls: Iterable[Acl]) -> None:
        self.hosts: dict[str, tuple[int, int]] = {}
        self.networks: list[tuple[Network, int, int]] = []
        for acl in acls:
            allowed, denied = self.hosts.get(acl.host, (0, 0))
            bit = 1 << acl.operation
            if acl.permission == Permission.ALLOW:
                allowed |= bit
            else:
                denied |= bit
            self.hosts[acl.host] = allowed, denied
        for host in [host for host in self.hosts if "/" in host]:
            try:
                network = network_of(host)
            except ValueError:
                continue  # such an entry can only be in a log of another broker, which ignores it too
            self.networks.append((network, *self.hosts[host]))

    def of(self, host: str) -> tuple[int, int]:
        """Returns the bits of the operations that are allowed and denied to a client at an address."""
        found = self.hosts.get(WILDCARD)
        allowed, denied = found or (0, 0)
        exact = self.hosts.get(host)
        if exact is not None:
            allowed |= exact[0]
            denied |= exact[1]
        for network, more_allowed, more_denied in self.networks:
            if contains(network, host):
                allowed |= more_allowed
                denied |= more_denied
        return allowed, denied


class _Pattern:
    """The entries on one pattern; they are compiled by principal at the first check after a change."""

    __slots__ = ("_rules", "acls")

    def __init__(self) -> None:
        self.acls: dict[bytes, Acl] = {}  # by id
        self._rules: dict[str, _Rules] | None = None

    def put(self, acl_id: bytes, acl: Acl) -> None:
        self.acls[acl_id] = acl
        self._rules = None

    def drop(self, acl_id: bytes) -> None:
        del self.acls[acl_id]
        self._rules = None

    def of(self, principal: str, host: str) -> tuple[int, int]:
        """Returns the bits of the operations that are allowed and denied to a principal at an address."""
        rules = self._rules
        if rules is None:
            rules = self._rules = self._compiled()
        allowed = denied = 0
        for who in (principal, ANYONE):
            found = rules.get(who)
            if found is not None:
                more_allowed, more_denied = found.of(host)
                allowed |= more_allowed
                denied |= more_denied
        return allowed, denied

    def _compiled(self) -> dict[str, _Rules]:
        by_principal: dict[str, list[Acl]] = {}
        for acl in self.acls.values():
            by_principal.setdefault(acl.principal, []).append(acl)
        return {principal: _Rules(acls) for principal, acls in by_principal.items()}


class _Patterns:
    """The patterns of one resource type."""

    __slots__ = ("_counts", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}  # by name
        self.prefixed: dict[str, _Pattern] = {}
        self.lengths: list[int] = []  # of the prefixes, each once, in ascending order
        self._counts: dict[int, int] = {}  # of prefixes, by length

    def put(self, acl_id: bytes, acl: Acl) -> None:
        table = self.literal if acl.pattern_type == LITERAL else self.prefixed
        pattern = table.get(acl.name)
        if pattern is None:
            pattern = table[acl.name] = _Pattern()
            if table is self.prefixed:
                self._count(len(acl.name), 1)
        pattern.put(acl_id, acl)

    def drop(self, acl_id: bytes, acl: Acl) -> None:
        table = self.literal if acl.pattern_type == LITERAL else self.prefixed
        pattern = table[acl.name]
        pattern.drop(acl_id)
        if not pattern.acls:
            del table[acl.name]
            if table is self.prefixed:
                self._count(len(acl.name), -1)

    def _count(self, length: int, by: int) -> None:
        count = self._counts.get(length, 0) + by
        if count == by == 1:
            insort(self.lengths, length)
        if count:
            self._counts[length] = count
        else:
            del self._counts[length]
            del self.lengths[bisect_right(self.lengths, length) - 1]

    def of(self, principal: str, host: str, name: str) -> tuple[int, int, bool]:
        """Returns the bits of the operations that are allowed and denied on a resource,
        and whether any entry covers it.
        """
        prefixed = self.prefixed
        covering = [self.literal[literal] for literal in (name, WILDCARD) if literal in self.literal]
        if prefixed:
            lengths = self.lengths
            prefixes = [name[:length] for length in lengths[: bisect_right(lengths, len(name))]]
            covering += [prefixed[prefix] for prefix in prefixes if prefix in prefixed]
        allowed = denied = 0
        for pattern in covering:
            more_allowed, more_denied = pattern.of(principal, host)
            allowed |= more_allowed
            denied |= more_denied
        return allowed, denied, bool(covering)


class Authorizer:
    """Decides from the entries that it was given with `put`.

    Principals are text of the form `type:name`; hosts are addresses as text; operations and resource types are codes.
    `allows_uncovered`: whether a resource that no entry covers is open to everyone.
    """

    def __init__(self, super_users: Iterable[str] = (), *, allows_uncovered: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.allows_uncovered = allows_uncovered
        self._acls: dict[bytes, Acl] = {}  # by id
        self._types: dict[int, _Patterns] = {kind: _Patterns() for kind in SUPPORTED}
        self._memory: dict[tuple[str, str, int, int, str | None], bool] = {}  # answers by question; no name for any

    def __len__(self) -> int:
        return len(self._acls)

    def put(self, acl_id: bytes, acl: Acl) -> None:
        """Adds an entry, or replaces the one with this id."""
        self.drop(acl_id)
        self._acls[acl_id] = acl
        self._types.setdefault(acl.resource_type, _Patterns()).put(acl_id, acl)

    def drop(self, acl_id: bytes) -> None:
        """Removes the entry with this id, if there is one."""
        self._memory.clear()
        acl = self._acls.pop(acl_id, None)
        if acl is not None:
            self._types[acl.resource_type].drop(acl_id, acl)

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Returns whether a principal may do an operation on a resource."""
        key = (principal, host, operation, resource_type, name)
        found = self._memory.get(key)
        return self._remembered(key, self._allows(*key)) if found is None else found

    def _remembered(self, key: tuple[str, str, int, int, str | None], answer: bool) -> bool:
        if len(self._memory) >= MEMORY_MAX:
            self._memory.clear()
        if key[4] is None or len(key[4]) <= MEMORABLE_MAX:
            self._memory[key] = answer
        return answer

    def _allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        if principal in self.super_users:
            return True
        allowed, denied, covered = self._types[resource_type].of(principal, host, name)
        if not covered:
            return self.allows_uncovered
        return not denied & _EXACT[operation] and bool(allowed & _ALLOWING[operation])

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Returns the bits of the operations that a principal may do on a resource, of those of its type."""
        supported = SUPPORTED[ResourceType(resource_type)]
        if principal in self.super_users:
            return _mask(supported)
        allowed, denied, covered = self._types[resource_type].of(principal, host, name)
        if not covered:
            return _mask(supported) if self.allows_uncovered else 0
        return _mask(one for one in supported if not denied & _EXACT[one] and allowed & _ALLOWING[one])

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Returns whether a principal may do an operation on at least one resource of a type, be there such a resource
        or not (KIP-679).
        """
        key = (principal, host, operation, resource_type, None)
        found = self._memory.get(key)
        if found is None:
            return self._remembered(key, self._allows_any(principal, host, operation, resource_type))
        return found

    def _allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        if self._allows(principal, host, operation, resource_type, HARDCODED):
            return True
        patterns, bits = self._types[resource_type], _EXACT[operation]  # no operation implies another one here
        literal = _granted(patterns.literal, principal, host, bits)
        prefixed = _granted(patterns.prefixed, principal, host, bits)
        on_all = literal.pop(WILDCARD, (False, False))
        if on_all[1]:
            return False
        denied_prefixes = frozenset(name for name, (_, denied) in prefixed.items() if denied and name)
        lengths = sorted(set(map(len, denied_prefixes)))
        return on_all[0] or any(
            allowed and not denied and denied_prefixes.isdisjoint(name[:length] for length in lengths)
            for name, (allowed, denied) in (
                *literal.items(),
                *((name, (allowed, False)) for name, (allowed, _) in prefixed.items()),
            )
        )


def _granted(table: Mapping[str, _Pattern], principal: str, host: str, bits: int) -> dict[str, tuple[bool, bool]]:
    """Returns whether the operations are allowed and denied, by the names of the patterns that say either."""
    found: dict[str, tuple[bool, bool]] = {}
    for name, pattern in table.items():
        allowed, denied = pattern.of(principal, host)
        if (allowed | denied) & bits:
            found[name] = bool(allowed & bits), bool(denied & bits)
    return found
