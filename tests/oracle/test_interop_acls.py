"""Access control entries go both ways in a data directory, and Kafka's tool for them works on ottla."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ottla.coordinator.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support.acls import creations
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka
from .tools import tool

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, Any] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
NARROWED = {**SETTINGS, "super.users": "User:admin"}
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ME = "User:ANONYMOUS"
ACLS = sorted(
    (
        Acl(ResourceType.CLUSTER, CLUSTER_NAME, LITERAL, ME, "*", Operation.ALL, Permission.ALLOW),
        Acl(ResourceType.TOPIC, "a-", PREFIXED, ME, "127.0.0.0/8", Operation.READ, Permission.ALLOW),
        Acl(ResourceType.TOPIC, "a-b", LITERAL, "User:*", "*", Operation.READ, Permission.DENY),
        Acl(ResourceType.TRANSACTIONAL_ID, "x", LITERAL, "User:c", "::1", Operation.TWO_PHASE_COMMIT, Permission.ALLOW),
    )
)


def create(wire: Wire) -> None:
    gone = Acl(ResourceType.TOPIC, "gone", LITERAL, "a:b", "*", Operation.READ, Permission.ALLOW)
    assert {one.error_code for one in wire.ask("CreateAcls", 3, creations([*ACLS, gone])).results} == {0}
    f = m.DeleteAclsRequest
    wanted = f.DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter="gone", pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    assert len(wire.ask("DeleteAcls", 3, f(filters=[wanted])).filter_results[0].matching_acls) == 1


def listed(wire: Wire) -> list[Acl]:
    request = m.DescribeAclsRequest(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    return sorted(
        Acl(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in wire.ask("DescribeAcls", 3, request).resources
        for a in r.acls
    )


def may_read(wire: Wire, topic: str) -> bool:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)]
    reply = wire.ask(
        "Fetch", 11, r(max_wait_ms=0, session_epoch=-1, topics=[r.FetchTopic(topic=topic, partitions=parts)])
    )
    code = reply.responses[0].partitions[0].error_code
    assert code in (Errors.TOPIC_AUTHORIZATION_FAILED, Errors.UNKNOWN_TOPIC_OR_PARTITION)
    return bool(code == Errors.UNKNOWN_TOPIC_OR_PARTITION)


def test_kafka_keeps_to_the_entries_that_ottla_wrote(tmp_path: Path) -> None:
    with Broker(SETTINGS, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire)
        assert listed(wire) == ACLS
    with Kafka(dict(NARROWED), directory=tmp_path, formatted=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert listed(wire) == ACLS
        assert [may_read(wire, topic) for topic in ("a-", "a-c", "a-b", "b")] == [True, True, False, False]


def test_ottla_keeps_to_the_entries_that_kafka_wrote(tmp_path: Path) -> None:
    with Kafka(dict(SETTINGS), directory=tmp_path) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire)
        until(lambda: listed(wire) == ACLS, "Kafka lists the entries")
    settings = {"node.id": 1, **NARROWED}
    with Broker(settings, directory=tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert listed(wire) == ACLS
        assert [may_read(wire, topic) for topic in ("a-", "a-c", "a-b", "b")] == [True, True, False, False]


def test_kafkas_tool() -> None:
    def acls(*arguments: str) -> str:
        done = tool(
            "AclCommand", "--bootstrap-server", broker.bootstrap_servers, *arguments
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with Broker(SETTINGS) as broker:
        added = acls("--add", "--allow-principal", "User:a", "--producer", "--topic", "t", "--transactional-id", "x")
        assert "operation=CREATE, permissionType=ALLOW" in added
        denied = ("--deny-principal", "User:b", "--operation", "Read", "--topic", "t", "--group", "g")
        acls("--add", *denied, "--resource-pattern-type", "prefixed")
        found = acls("--list")
        assert found.count("principal=User:a") == 5
        assert "(principal=User:b, host=*, operation=READ, permissionType=DENY)" in found
        assert acls("--list", "--topic", "test", "--resource-pattern-type", "match").count("principal=User:b") == 1
        acls("--remove", "--force", "--topic", "t", "--resource-pattern-type", "any")
        assert "name=t," not in acls("--list")
