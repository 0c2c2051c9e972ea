"""Rights, credentials, quotas and configurations of brokers in a ZooKeeper in memory: tools write them while the broker
runs, and the broker writes its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from ottla.broker.zookeeper.rights import Rights
from ottla.coordinator.metadata.state import BROKER
from ottla.protocol import messages as m

from ..support.entities import acls_of, credentials_of, quotas_of
from ..support.kazoo_double import KazooDouble
from ..support.sources import ROOT
from ..support.world import World
from ..support.zookeeper_world import ROUNDS_MS, config_there, put, restarted, started, tool_configures, value

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())
RELEASE = "2.8"
SETTINGS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
LITERAL, TOPIC, READ, ALLOW = 3, 2, 3, 3
SCRAM_SHA_512 = 2
RIGHTS = "/kafka-acl/Topic/t"
ALICE = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
BOB = {**ALICE, "principal": "User:bob"}


@pytest.fixture
def w(client: KazooDouble) -> World:
    return started(client, None, RELEASE, **SETTINGS)


def nodes(version: str) -> dict[str, str]:
    """Returns what the tools of a release wrote, as a broker of this one has it in ZooKeeper."""
    kinds = ("clients", "users", "ips")
    of_entities = tuple(f"/config/{kind}/" for kind in kinds)
    rights = ("/kafka-acl/", "/kafka-acl-extended/prefixed/")
    found = RECORDED[version]["nodes"].items()
    return {path: text for path, text in found if path.startswith(of_entities + rights) and text}


def tool_grants(client: KazooDouble, *entries: dict[str, str]) -> None:
    """Replaces the rights on the topic `t` as AclCommand of 2.8 does."""
    with client.tool():
        if entries:
            put(client, RIGHTS, {"version": 1, "acls": list(entries)})
        else:
            client.delete(RIGHTS)
        client.create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", sequence=True)


def grant(w: World, principal: str, name: str = "t", pattern: int = LITERAL) -> None:
    r = m.CreateAclsRequest
    one = r.AclCreation(resource_type=TOPIC, resource_name=name, resource_pattern_type=pattern, principal=principal)
    one.host, one.operation, one.permission_type = "*", READ, ALLOW
    assert not w.ask("CreateAcls", 1, r(creations=[one])).results[0].error_code


def revoke(w: World, principal: str) -> None:
    r = m.DeleteAclsRequest
    one = r.DeleteAclsFilter(resource_type_filter=TOPIC, resource_name_filter="t", pattern_type_filter=LITERAL)
    one.principal_filter, one.host_filter, one.operation, one.permission_type = principal, None, 1, 1
    assert len(w.ask("DeleteAcls", 1, r(filters=[one])).filter_results[0].matching_acls) == 1


def granted(w: World) -> list[str]:
    """Returns who may read the topic `t`."""
    return [row[3] for row in acls_of(w, 1) if row[1] == "t"]


def granted_there(client: KazooDouble) -> list[str]:
    return sorted(one["principal"] for one in value(client, RIGHTS)["acls"]) if RIGHTS in client.nodes else []


def set_credential(w: World, user: str, mechanism: int = SCRAM_SHA_512) -> None:
    r = m.AlterUserScramCredentialsRequest
    one = r.ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p")
    assert not w.ask("AlterUserScramCredentials", 0, r(deletions=[], upsertions=[one])).results[0].error_code


def limit(w: World, kind: str, name: str | None, key: str, limit: float | None) -> None:
    r = m.AlterClientQuotasRequest
    operation = r.OpData(key=key, value=limit or 0.0, remove=limit is None)
    entity = r.EntityData(entity_type=kind, entity_name=name)
    asked = r(entries=[r.EntryData(entity=[entity], ops=[operation])], validate_only=False)
    assert not w.ask("AlterClientQuotas", 0, asked).entries[0].error_code


def configure(w: World, name: str, **config: str | None) -> None:
    """Changes the dynamic configuration of a broker, or of all; None removes a key."""
    r = m.IncrementalAlterConfigsRequest
    values = [
        r.AlterableConfig(name=key.replace("_", "."), config_operation=int(one is None), value=one)
        for key, one in config.items()
    ]
    asked = r(resources=[r.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=values)])
    assert not w.ask("IncrementalAlterConfigs", 1, asked).responses[0].error_code


def changes(client: KazooDouble, above: str) -> list[str]:
    return [client.nodes[path].value.decode() for path in sorted(client.nodes) if path.startswith(f"{above}/")]


def announce(client: KazooDouble, paths: Iterable[str]) -> None:
    """Says that nodes have changed, as the tools of 2.8 do."""
    for path in paths:
        kind, _, name = path.removeprefix("/").partition("/")
        if kind == "config":
            above, data = "/config/changes/config_change_", json.dumps({"version": 2, "entity_path": name})
        elif kind == "kafka-acl":
            above, data = "/kafka-acl-changes/acl_changes_", ":".join(name.split("/", 1))
        else:
            _, resource, name = name.split("/", 2)
            of = {"version": 1, "resourceType": resource.upper(), "name": name, "patternType": "PREFIXED"}
            above, data = "/kafka-acl-extended-changes/acl_changes_", json.dumps(of)
        client.create(above, data.encode(), sequence=True, makepath=True)


@pytest.mark.parametrize("is_running", [False, True], ids=["at the start", "while it runs"])
def test_what_tools_wrote_is_what_a_broker_of_kafka_made_of_it(client: KazooDouble, is_running: bool) -> None:
    """The nodes, and the answers of a broker that had them in its ZooKeeper, are those of Kafka 2.8.2."""
    found = nodes("2.8.2")
    w = started(client, None, RELEASE, **SETTINGS) if is_running else None
    for path, text in found.items():
        put(client, path, json.loads(text))
    if w is None:
        w = started(client, None, RELEASE, **SETTINGS)
    else:
        announce(client, found)
        w.pass_ms(ROUNDS_MS)
    recorded = RECORDED["2.8.2"]
    assert acls_of(w, 1) == recorded["acls"]
    assert quotas_of(w) == recorded["quotas"]
    assert credentials_of(w) == recorded["credentials"]


def test_a_broker_writes_what_the_tools_of_its_release_write(client: KazooDouble) -> None:
    """It took everything over from one ZooKeeper, and shows it in another."""
    found = nodes("2.8.2")
    for path, text in found.items():
        put(client, path, json.loads(text))
    w = started(client, None, RELEASE, **SETTINGS)
    fresh = KazooDouble()
    started(fresh, w.files, RELEASE, **SETTINGS)
    written = {path: node.value.decode() for path, node in fresh.nodes.items() if path in found}
    assert written.keys() == found.keys()
    assert all(sorted(written[path]) == sorted(found[path]) for path in found)  # but for the order of keys
    assert {path: json.loads(one)["version"] for path, one in written.items()} == dict.fromkeys(found, 1)


def test_rights_that_a_tool_changes_take_effect(client: KazooDouble, w: World) -> None:
    tool_grants(client, ALICE, BOB)
    w.pass_ms(ROUNDS_MS)
    assert granted(w) == ["User:alice", "User:bob"]
    tool_grants(client, BOB)
    w.pass_ms(ROUNDS_MS)
    assert granted(w) == ["User:bob"]
    tool_grants(client)
    w.pass_ms(ROUNDS_MS)
    assert granted(w) == []


def test_rights_that_a_client_changes_are_shown(client: KazooDouble, w: World) -> None:
    grant(w, "User:alice")
    grant(w, "User:bob")
    grant(w, "User:bob", "pre", pattern=4)
    w.pass_ms(ROUNDS_MS)
    assert granted_there(client) == ["User:alice", "User:bob"]
    assert value(client, "/kafka-acl-extended/prefixed/Topic/pre") == {"version": 1, "acls": [BOB]}
    assert changes(client, "/kafka-acl-changes")[-1] == "TOPIC:t"
    of_prefix = {"version": 1, "resourceType": "TOPIC", "name": "pre", "patternType": "PREFIXED"}
    assert json.loads(changes(client, "/kafka-acl-extended-changes")[-1]) == of_prefix
    revoke(w, "User:alice")
    w.pass_ms(ROUNDS_MS)
    assert granted_there(client) == ["User:bob"]
    revoke(w, "User:bob")
    w.pass_ms(ROUNDS_MS)
    assert RIGHTS not in client.nodes


@pytest.mark.parametrize("is_last", [False, True])
def test_rights_that_a_tool_grants_between_the_reading_and_the_writing_of_a_round_are_kept(
    client: KazooDouble, w: World, is_last: bool
) -> None:
    """Also where the broker is about to remove the node, with its last entry."""
    grant(w, "User:alice")
    w.pass_ms(ROUNDS_MS)
    by_tool = [{**ALICE, "principal": "User:carol"}]

    def more(path: str) -> None:
        if path == RIGHTS and by_tool:
            tool_grants(client, ALICE, by_tool.pop())

    client.before_write = more
    if is_last:
        revoke(w, "User:alice")
    else:
        grant(w, "User:bob")
    w.pass_ms(ROUNDS_MS)
    assert not by_tool
    expected = ["User:carol"] if is_last else ["User:alice", "User:bob", "User:carol"]
    assert granted(w) == granted_there(client) == expected


def test_what_changes_while_zookeeper_cannot_be_reached_is_there_after_a_restart(client: KazooDouble, w: World) -> None:
    """Changes of the broker, and of tools."""
    for name in ("User:alice", "User:bob"):
        grant(w, name)
    set_credential(w, "alice")
    limit(w, "user", "alice", "producer_byte_rate", 1000)
    limit(w, "client-id", None, "producer_byte_rate", 2000)
    configure(w, "", log_retention_ms="5000")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    revoke(w, "User:alice")
    limit(w, "user", "alice", "producer_byte_rate", None)
    set_credential(w, "bob")
    configure(w, "", log_segment_bytes="2000000", log_retention_ms=None)
    tool_grants(client, ALICE)  # bob's rights are gone
    tool_configures(client, "clients/<default>", {"producer_byte_rate": "3000"})
    again = restarted(w, client, RELEASE, **SETTINGS)
    again.pass_ms(ROUNDS_MS)
    assert granted(again) == granted_there(client) == []
    assert config_there(client, "users/alice").keys() == {"SCRAM-SHA-512"}
    assert config_there(client, "users/bob").keys() == {"SCRAM-SHA-512"}
    assert [row[0] for row in credentials_of(again)] == ["alice", "bob"]
    assert quotas_of(again) == [[[["client-id", None]], [["producer_byte_rate", 3000.0]]]]
    assert config_there(client, "clients/<default>") == {"producer_byte_rate": "3000"}
    assert config_there(client, "brokers/<default>") == {"log.segment.bytes": "2000000"}


def test_rights_that_a_tool_removes_with_their_node_during_an_outage_are_gone(client: KazooDouble, w: World) -> None:
    """What says so is not there any more: it is removed after a quarter of an hour."""
    grant(w, "User:alice")
    w.pass_ms(ROUNDS_MS)
    client.lose()
    with client.tool():
        client.delete(RIGHTS)
        client.delete("/kafka-acl-changes/acl_changes_0000000000")
    again = restarted(w, client, RELEASE, **SETTINGS)
    assert granted(again) == granted_there(client) == []


def test_credentials_that_a_tool_removes_are_gone(client: KazooDouble, w: World) -> None:
    """A limit of the user stays, as both are in one node."""
    set_credential(w, "alice")
    limit(w, "user", "alice", "producer_byte_rate", 1000)
    w.pass_ms(ROUNDS_MS)
    assert config_there(client, "users/alice").keys() == {"producer_byte_rate", "SCRAM-SHA-512"}
    assert json.loads(changes(client, "/config/changes")[-1]) == {"version": 2, "entity_path": "users/alice"}
    tool_configures(client, "users/alice", {"producer_byte_rate": "1000"})
    w.pass_ms(ROUNDS_MS)
    assert credentials_of(w) == []
    assert quotas_of(w) == [[[["user", "alice"]], [["producer_byte_rate", 1000.0]]]]


def test_dynamic_configurations_of_brokers_are_those_of_zookeeper(client: KazooDouble, w: World) -> None:
    """But for those of another broker, keys of TLS for all listeners, passwords without a secret that opens them, and
    what contradicts what is in force.
    """
    secret = {"listener.name.x.ssl.key.password": "encryptedPassword:x", "ssl.keystore.location": "/x"}
    tool_configures(client, "brokers/<default>", {"log.retention.ms": "5000"})
    tool_configures(client, "brokers/7", {"log.segment.bytes": "2000000", **secret})
    tool_configures(client, "brokers/1", {"log.segment.bytes": "3000000"})
    w.pass_ms(ROUNDS_MS)
    image = w.broker.image
    assert image.config_of(BROKER, "") == {"log.retention.ms": "5000", "min.insync.replicas": "1"}
    assert image.config_of(BROKER, "7") == {"log.segment.bytes": "2000000"}
    assert image.config_of(BROKER, "1") == {}
    assert w.broker.settings.value("log.retention.ms") == 5000

    configure(w, "7", log_segment_bytes="4000000")
    w.pass_ms(ROUNDS_MS)
    assert config_there(client, "brokers/7") == {"log.segment.bytes": "4000000", **secret}
    assert config_there(client, "brokers/1") == {"log.segment.bytes": "3000000"}
    tool_configures(client, "brokers/<default>", {"max.connections.per.ip": "0"})  # needs overrides
    w.pass_ms(ROUNDS_MS)
    assert image.config_of(BROKER, "").keys() == {"log.retention.ms", "min.insync.replicas"}


def test_the_number_of_replicas_in_sync_that_all_brokers_need_is_shown_where_it_is_not_the_default(
    client: KazooDouble, w: World
) -> None:
    """Brokers of today always have such a value of all; those of the release need none."""
    assert "/config/brokers/<default>" not in client.nodes
    tool_configures(client, "brokers/<default>", {"min.insync.replicas": "2"})
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.config_of(BROKER, "") == {"min.insync.replicas": "2"}
    tool_configures(client, "brokers/<default>", {})
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.config_of(BROKER, "") == {"min.insync.replicas": "1"}
    assert config_there(client, "brokers/<default>") == {}


def test_limits_of_addresses_are_shown_since_2_7(client: KazooDouble, w: World) -> None:
    limit(w, "ip", "127.0.0.9", "connection_creation_rate", 7)
    w.pass_ms(ROUNDS_MS)
    assert config_there(client, "ips/127.0.0.9") == {"connection_creation_rate": "7"}
    tool_configures(client, "ips/<default>", {"connection_creation_rate": "70"})
    w.pass_ms(ROUNDS_MS)
    assert [[["ip", None]], [["connection_creation_rate", 70.0]]] in quotas_of(w)


def test_rights_are_indexed_in_steps_between_which_they_may_change(client: KazooDouble, w: World) -> None:
    for name in ("User:alice", "User:bob", "User:carol"):
        grant(w, name)
    image = w.broker.image
    rights = Rights(w.broker.metadata, image, (2, 8))
    steps = rights.load()
    next(steps)
    w.broker.metadata.watch(lambda delta: (None for _ in rights.changed(delta)))
    revoke(w, "User:alice")  # it is indexed
    revoke(w, "User:carol")  # and this one is not yet
    grant(w, "User:dave")
    assert len(list(steps)) == 2
    found = rights.here(rights.all()[0])
    assert sorted(json.loads(key)[0] for key in found) == ["User:bob", "User:dave"]
    assert len(rights.all()) == 1


def test_a_broker_without_an_authorizer_leaves_rights_alone(client: KazooDouble) -> None:
    """It ignores them, as Kafka does."""
    put(client, RIGHTS, {"version": 1, "acls": [ALICE]})
    w = started(client, release="2.8")
    assert not w.broker.image.acls
    assert granted_there(client) == ["User:alice"]


def test_what_this_broker_cannot_have_stays_without_effect(client: KazooDouble, w: World) -> None:
    """And is there after a change of the rest."""
    unknown = {**ALICE, "operation": "Ponder"}
    tool_grants(client, ALICE, unknown)
    config = {"SCRAM-SHA-512": "junk", "producer_byte_rate": "much", "consumer_byte_rate": "5", "x": "y"}
    tool_configures(client, "users/alice", config)
    w.pass_ms(ROUNDS_MS)
    assert granted(w) == ["User:alice"]
    assert quotas_of(w) == [[[["user", "alice"]], [["consumer_byte_rate", 5.0]]]]
    assert credentials_of(w) == []
    revoke(w, "User:alice")
    limit(w, "user", "alice", "consumer_byte_rate", 6)
    w.pass_ms(ROUNDS_MS)
    assert value(client, RIGHTS)["acls"] == [unknown]
    assert config_there(client, "users/alice") == {**config, "consumer_byte_rate": "6"}


def test_what_is_malformed_stays_without_effect(
    client: KazooDouble, w: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Until a client changes it."""
    with client.tool():
        client.create(RIGHTS, b"junk", makepath=True)
        for data in (b"TOPIC:t", b"TOPIC", b"\xff", b"TOPIC:..", b"TOPIC:a/../b", b"TOPIC:", b"TOPIC:a/b"):
            client.create("/kafka-acl-changes/acl_changes_", data, sequence=True)
        client.create("/kafka-acl-extended-changes/acl_changes_", b"[]", sequence=True)
        for name in ("..", "users/..", "users/", "/", "users//x"):
            change = json.dumps({"version": 2, "entity_path": name}).encode()
            client.create("/config/changes/config_change_", change, sequence=True)
    w.pass_ms(ROUNDS_MS)
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []
    grant(w, "User:alice")
    w.pass_ms(ROUNDS_MS)
    assert granted(w) == granted_there(client) == ["User:alice"]
