"""Access control entries in a whole broker: creating, listing and deleting them, and reading them again."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.net.dispatch import Refused
from ottla.coordinator.metadata import acls as acls_module
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.coordinator.security.authorizer import Authorizer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.features import RANGES_SINCE

from ..support.acls import creations
from ..support.world import World

C, D, F = m.CreateAclsRequest, m.DescribeAclsRequest, m.DeleteAclsRequest
SOME = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)


def secured(world: World, *, supers: tuple[str, ...] = ("User:ANONYMOUS",)) -> World:
    world.broker.authorize_with(Authorizer(supers))
    return world


def create(world: World, *acls: Acl) -> list[tuple[int, str | None]]:
    reply = world.ask("CreateAcls", 3, creations(acls))
    return [(one.error_code, one.error_message) for one in reply.results]


def asked(**given: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    } | given


def listed(world: World, **given: Any) -> list[Acl]:
    reply = world.ask("DescribeAcls", 3, D(**asked(**given)))
    assert reply.error_code == 0
    return sorted(
        Acl(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in reply.resources
        for a in r.acls
    )


def delete(world: World, *filters: dict[str, Any]) -> list[tuple[int, list[str]]]:
    reply = world.ask("DeleteAcls", 3, F(filters=[F.DeleteAclsFilter(**asked(**one)) for one in filters]))
    return [(one.error_code, sorted(a.resource_name for a in one.matching_acls)) for one in reply.filter_results]


def test_entries_are_created_once_listed_and_deleted() -> None:
    world = secured(World())
    other = SOME._replace(name="te", pattern_type=PatternType.PREFIXED, permission=Permission.DENY)
    assert create(world, SOME, other, SOME) == [(0, "")] * 3
    assert create(world, SOME) == [(0, "")]
    assert listed(world) == sorted([SOME, other])
    assert listed(world, resource_name_filter="test", pattern_type_filter=PatternType.MATCH) == [other]
    assert len(world.broker.authorizer or ()) == 2
    by_name, by_permission = {"resource_name_filter": "te"}, {"permission_type": Permission.DENY}
    assert delete(world, by_name, by_permission, {"resource_name_filter": "x"}) == [(0, ["te"]), (0, ["te"]), (0, [])]
    assert listed(world) == [SOME]
    assert len(world.broker.authorizer or ()) == 1
    assert delete(world, {}) == [(0, ["t"])]
    assert listed(world) == []
    assert create(world, SOME) == [(0, "")], "an entry that was deleted can be created again"
    assert listed(world) == [SOME]


def test_invalid_entries_do_not_keep_others_from_being_created() -> None:
    world = secured(World())
    refused = {
        SOME._replace(resource_type=99): "Invalid resourceType UNKNOWN",
        SOME._replace(pattern_type=9): "Invalid patternType UNKNOWN",
        SOME._replace(operation=77): "Invalid operation UNKNOWN",
        SOME._replace(permission=9): "Invalid permissionType UNKNOWN",
        SOME._replace(name=""): "Invalid empty resource name",
        SOME._replace(resource_type=ResourceType.CLUSTER): (
            "The only valid name for the CLUSTER resource is kafka-cluster"
        ),
        SOME._replace(principal="x"): (
            "Could not parse principal from `x` (no colon is present separating the principal type from the principal "
            "name)"
        ),
        SOME._replace(host=""): "Host pattern cannot be null or empty",
        SOME._replace(host="1.2.3.4/40"): "Invalid CIDR notation '1.2.3.4/40': Value [40] not in range [0,32]",
        SOME._replace(host="x:y/3"): "Invalid CIDR notation 'x:y/3': Could not parse [x:y]",
    }
    expected: list[tuple[int, str | None]] = [(Errors.INVALID_REQUEST, text) for text in refused.values()]
    assert create(world, *refused, SOME) == [*expected, (0, "")]
    assert listed(world) == [SOME]
    ranged = SOME._replace(host="10.0.0.0/8")
    assert create(world, ranged) == [(0, "")]
    for state in (world.broker.metadata.controller.state, world.broker.image):
        state.features["metadata.version"] = RANGES_SINCE - 1
    text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert create(world, ranged) == [(Errors.UNSUPPORTED_VERSION, text)]


def test_any_is_for_filters_and_unknown_closes_the_connection() -> None:
    world = secured(World())
    any_of_each: tuple[dict[str, Any], ...] = (
        *({"resource_type": 1}, {"pattern_type": 1}, {"pattern_type": 2}, {"operation": 1}, {"permission": 1}),
    )
    for any_ in any_of_each:
        assert create(world, SOME, SOME._replace(**any_)) == [(Errors.UNKNOWN_SERVER_ERROR, None)] * 2
    assert listed(world) == []
    for message, name in (
        (C(creations=[C.AclCreation(resource_type=2, operation=0, principal="a:b")]), "CreateAcls"),
        (D(**asked(operation=0)), "DescribeAcls"),
        (F(filters=[F.DeleteAclsFilter(**asked(permission_type=0))]), "DeleteAcls"),
    ):
        with pytest.raises(Refused):
            world.send(name, 3, message)
    assert delete(world, {"operation": 99}, {"pattern_type_filter": 9}) == [(Errors.INVALID_REQUEST, [])] * 2
    assert listed(world, operation=99) == []


def test_too_many_deletions_delete_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls_module, "RECORDS_PER_REQUEST", 3)
    world = secured(World())
    create(world, *(SOME._replace(name=f"t{n}") for n in range(4)))
    assert delete(world, {}) == [(Errors.INVALID_REQUEST, [])]
    assert len(listed(world)) == 4
    assert [code for code, _ in delete(world, {"resource_name_filter": "t1"})] == [0]


def test_entries_survive_restarts_and_snapshots() -> None:
    world = secured(World())
    create(world, SOME, SOME._replace(name="gone"))
    delete(world, {"resource_name_filter": "gone"})
    world.broker.stop()
    again = secured(World(world.files))
    assert listed(again) == [SOME]
    assert len(again.broker.authorizer or ()) == 1
    again.broker.metadata.snapshots.take_now()
    again.broker.stop()
    third = secured(World(again.files))
    assert listed(third) == [SOME]
    assert create(third, SOME) == [(0, "")]
    assert listed(third) == [SOME], "the entry of the snapshot is known by its content"


def test_the_three_apis_need_rights_on_the_cluster() -> None:
    world = secured(World(), supers=("User:admin",))
    refused = Errors.CLUSTER_AUTHORIZATION_FAILED
    assert [code for code, _ in create(world, SOME, SOME)] == [refused, refused]
    assert world.ask("DescribeAcls", 3, D(**asked())).error_code == refused
    assert delete(world, {}) == [(refused, [])]
    world.peer.principal = "User:admin"
    cluster = SOME._replace(resource_type=ResourceType.CLUSTER, name="kafka-cluster", principal="User:ANONYMOUS")
    assert create(world, cluster._replace(operation=Operation.DESCRIBE)) == [(0, "")]
    world.peer.principal = "User:ANONYMOUS"
    assert len(listed(world)) == 1
    assert [code for code, _ in create(world, SOME)] == [refused]
    world.peer.principal = "User:admin"
    create(world, cluster._replace(operation=Operation.ALTER))
    world.peer.principal = "User:ANONYMOUS"
    assert create(world, SOME) == [(0, "")]
    assert delete(world, {"principal_filter": "User:a"}) == [(0, ["t"])]


def test_without_an_authorizer_security_is_disabled() -> None:
    world = World()
    assert create(world, SOME) == [(Errors.SECURITY_DISABLED, "No Authorizer is configured.")]
    assert world.ask("DescribeAcls", 3, D(**asked())).error_code == Errors.SECURITY_DISABLED
    assert delete(world, {}) == [(Errors.SECURITY_DISABLED, [])]
