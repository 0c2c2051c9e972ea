"""The audit log: which decisions are lines, and what they say."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from ottla.broker.net.audit_log import KINDS, AuditLog, opened
from ottla.broker.peer import Peer
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.coordinator.security.authorizer import Authorizer
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.acls import creations
from ..support.machine import VirtualMachine
from ..support.wire import Wire
from ..support.world import World

ME = "User:ANONYMOUS"


class Audited:
    """A world whose authorizer knows no entry, with an audit log in a file."""

    def __init__(self, path: Path, grants: bool) -> None:
        values = {"": str(path), ".max.bytes": -1, ".backups": 0, ".grants": grants}
        self.path = path
        self.world = World()
        self.world.broker.authorize_with(Authorizer(("User:admin",)))
        schedule = self.world.schedule
        self.log: AuditLog = opened(
            lambda key: values[key.removeprefix("ottla.audit.log")], schedule, VirtualMachine(schedule)
        )
        self.world.broker.audit = self.log

    def lines(self) -> list[dict[str, Any]]:
        self.log.lines.close()
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture(params=[False, True], ids=["denied", "with grants"])
def audited(tmp_path: Path, request: pytest.FixtureRequest) -> Audited:
    return Audited(tmp_path / "audit.jsonl", request.param)


def test_a_denied_request_says_who_what_and_from_where(audited: Audited) -> None:
    audited.world.ask("CreateAcls", 3, creations([_allowed("t")]))
    line = audited.lines()[0]
    assert line.pop("at_ms") == 1_700_000_000_000
    assert line == {
        "format": 1,
        "outcome": "denied",
        "principal": ME,
        "client_id": "wire",
        "peer": "127.0.0.1:1",
        "listener": "PLAINTEXT",
        "api": "CreateAcls",
        "operation": "ALTER",
        "resource_type": "CLUSTER",
        "resource": "kafka-cluster",
    }


def test_what_is_left_out_is_not_denied_and_grants_are_lines_on_request(audited: Audited) -> None:
    audited.world.ask("Metadata", 12, m.MetadataRequest(topics=None))
    admin = Peer("PLAINTEXT", "127.0.0.1:2")
    admin.principal = "User:admin"
    audited.world.send("CreateAcls", 3, creations([_allowed("t")]), admin)
    found = audited.lines()
    assert {line["outcome"] for line in found} == ({"allowed"} if audited.log.grants else set())
    assert {line["principal"] for line in found} <= {"User:admin"}


def test_a_right_to_any_resource_has_no_name(audited: Audited) -> None:
    audited.world.ask("InitProducerId", 5, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert None in [line["resource"] for line in audited.lines() if line["resource_type"] == "TOPIC"]


def test_log_ins(audited: Audited) -> None:
    peer = Peer("SASL", "10.0.0.1:9")
    audited.log.login(peer, "PLAIN", "Invalid username or password")
    peer.principal = "User:alice"
    audited.log.login(peer, "SCRAM-SHA-256", None)
    failed, *others = audited.lines()
    assert (failed["outcome"], failed["reason"], failed["mechanism"]) == (
        "denied",
        "Invalid username or password",
        "PLAIN",
    )
    assert [(line["principal"], line["outcome"], "reason" in line) for line in others] == [
        ("User:alice", "allowed", False)
    ][: audited.log.grants]


def test_every_line_has_the_fields_that_are_documented(audited: Audited) -> None:
    """In their order, with values of their types."""
    world = audited.world
    world.ask("CreateAcls", 3, creations([_allowed("t")]))
    world.ask("InitProducerId", 5, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    admin = Peer("PLAINTEXT", "127.0.0.1:2")
    admin.principal = "User:admin"
    world.send("CreateAcls", 3, creations([_allowed("t")]), admin)
    for mechanism, reason in (("PLAIN", "wrong"), ("", "Unsupported SASL mechanism 'x'"), ("PLAIN", None)):
        audited.log.login(admin, mechanism, reason)
    types = {"text": (str,), "number": (int,), "text or null": (str, type(None))}
    found = set()
    for line in audited.lines():
        kind = "a right" if "operation" in line else "a failed log-in" if "reason" in line else "a log-in"
        found.add(kind)
        assert [field.name for field in KINDS[kind] if isinstance(line[field.name], types[field.type])] == list(line)
    assert found == set(KINDS) - ({"a log-in"} if not audited.log.grants else set())


def _allowed(topic: str) -> Acl:
    return Acl(ResourceType.TOPIC, topic, PatternType.LITERAL, ME, "*", Operation.READ, Permission.ALLOW)


@pytest.mark.slow
def test_a_running_broker_writes_it_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    settings: dict[str, object] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "ottla.audit.log": path,
    }
    with Broker(settings, lab=False) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.ask("CreateAcls", 3, creations([_allowed("t")])).results[0].error_code
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert (line["api"], line["outcome"]) == ("CreateAcls", "denied")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
