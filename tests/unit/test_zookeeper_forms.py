"""Paths and values of ZooKeeper's nodes, against those that brokers from 0.8.2.2 to 3.9.1 wrote
(`tests/oracle/record_zookeeper.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ottla.coordinator.security.scram import credential_text, parse_credential
from ottla.protocol import zookeeper_paths as paths
from ottla.protocol import zookeeper_rights
from ottla.protocol import zookeeper_values as values
from ottla.protocol.zookeeper_json import Malformed
from ottla.protocol.zookeeper_values import (
    BrokerRegistration,
    ConsumerRegistration,
    EndPoint,
    PartitionState,
    TopicAssignment,
)

from ..support.sources import ROOT

RECORDED: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper.json").read_text())
VERSIONS = list(RECORDED)


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def nodes(version: str) -> dict[str, bytes]:
    return {path: value.encode() for path, value in RECORDED[version]["nodes"].items()}


def parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_makes_the_paths_of_its_release(version: str) -> None:
    made = {one for path in paths.persistent_paths(number(version)) for one in parents(path)}
    with_values = {
        "/brokers/ids/7",
        "/cluster",
        paths.CLUSTER_ID,
        paths.CONTROLLER,
        paths.CONTROLLER_EPOCH,
        paths.FEATURE,
    }
    assert made == set(RECORDED[version]["start"]) - with_values


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_registers_as_one_of_its_release(version: str) -> None:
    for recorded in (nodes(version)["/brokers/ids/7"], RECORDED[version].get("with_rack", "").encode()):
        if recorded:
            read = BrokerRegistration.decode(recorded)
            assert read.endpoints == (EndPoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 13092),)
            assert read.encode(number(version)) == recorded
            assert read.rack == ("r1" if b"r1" in recorded else None)


def test_a_broker_without_a_plaintext_listener_has_no_host() -> None:
    secured = BrokerRegistration((EndPoint("OUTSIDE", "SASL_SSL", "::1", 9093),), 5)
    assert json.loads(secured.encode((0, 10, 2))) == {
        "listener_security_protocol_map": {"OUTSIDE": "SASL_SSL"},
        "endpoints": ["OUTSIDE://[::1]:9093"],
        "jmx_port": -1,
        "host": None,
        "timestamp": "5",
        "port": -1,
        "version": 4,
    }
    assert BrokerRegistration.decode(secured.encode((0, 10, 2))) == secured


@pytest.mark.parametrize("version", VERSIONS)
def test_values_that_a_broker_writes(version: str) -> None:
    release = number(version)
    for path, value in nodes(version).items():
        if path.endswith("/state"):
            assert PartitionState.decode(value) == PartitionState(7, 0, (7,), 1)
            assert PartitionState.decode(value).encode() == value
        elif path.startswith(paths.BROKER_TOPICS):
            read = TopicAssignment.decode(value)
            assert list(read.partitions) == sorted(read.partitions)
            assert set(read.partitions.values()) == {(7,)}
            # the order of partitions is that of Scala's maps
            assert json.loads(read.encode(release)) == json.loads(value)
        elif path.startswith((f"{paths.CONFIG}/topics", f"{paths.CONFIG}/clients", f"{paths.CONFIG}/users")):
            assert values.config(values.config_of(value)) == value
        elif path.startswith(paths.CONFIG_CHANGES):
            assert values.config_change(*values.config_change_of(value), release) == value
        elif path == paths.CONTROLLER:
            assert values.controller_id(value) == 7
            assert values.controller(7, json.loads(value)["timestamp"], release) == value
        elif path == paths.CLUSTER_ID:
            assert values.cluster_id(values.cluster_id_of(value)) == value
        elif path == paths.FEATURE:
            assert values.feature(release) == value


def test_the_entities_of_changes_are_named_as_nodes_name_them() -> None:
    changes = nodes("0.10.2.2")
    named = [
        values.config_change_of(changes[path]) for path in sorted(changes) if path.startswith(paths.CONFIG_CHANGES)
    ]
    assert named == [("topics", "orders"), ("clients", "c1"), ("users", "u%201")]
    assert paths.sanitized("u 1") == "u%201"
    assert paths.desanitized("u%201") == "u 1"
    assert paths.sanitized("a*b~c/d") == "a%2Ab%7Ec%2Fd"
    assert paths.sanitized("<default>") == paths.desanitized("<default>") == "<default>"


def test_a_consumer_registers_with_its_topics_or_a_filter() -> None:
    written = b'{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1795588702442"}'
    read = ConsumerRegistration.decode(written)
    assert read == ConsumerRegistration({"orders": 2}, values.STATIC, 1795588702442)
    assert read.encode() == written


def test_partitions_that_an_election_or_a_reassignment_names() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3]},{"topic":"t","partition":0}]}'
    assert values.partitions_named(data) == {("t", 1): (2, 3), ("t", 0): ()}
    again = values.reassignment({("t", 1): (2, 3)})
    assert again == b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3]}]}'


READERS: dict[str, Callable[[bytes | None], object]] = {
    "broker": BrokerRegistration.decode,
    "topic": TopicAssignment.decode,
    "state": PartitionState.decode,
    "consumer": ConsumerRegistration.decode,
    "controller": values.controller_id,
    "cluster": values.cluster_id_of,
    "change": values.config_change_of,
    "partitions": values.partitions_named,
    "offset": values.offset_of,
    "rights": zookeeper_rights.acl_change_of,
    "rights of a prefix": zookeeper_rights.prefixed_acl_change_of,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "data",
    [
        *[None, b"", b"\xff", b"x", b"[1]", b"{}", b'{"version":1}', b"[" * 100_000, b"9" * 30],
        *[b'{"endpoints":["x"]}', b'{"endpoints":{"a":1}}', b'{"host":"h","port":"x"}', b'{"endpoints":[7]}'],
        *[b'{"partitions":7}', b'{"partitions":{"x":[1]}}', b'{"partitions":[7]}', b'{"partitions":{"0":[null]}}'],
        *[b'{"subscription":[],"pattern":"static"}', b'{"subscription":{"t":"x"},"pattern":"static"}'],
        b'{"isr":7,"leader":1,"leader_epoch":0,"controller_epoch":1}',
    ],
    ids=lambda data: repr(data)[:40],
)
def test_a_value_that_is_something_else_is_refused_as_such(reader: str, data: bytes | None) -> None:
    with pytest.raises(Malformed):
        READERS[reader](data)


def test_a_configuration_without_a_value_is_empty() -> None:
    assert values.config_of(None) == values.config_of(b"") == {}
    for data in (b"{}", b'{"config":{"a":1}}', b"7"):
        with pytest.raises(Malformed):
            values.config_of(data)


def test_names_that_a_node_can_have() -> None:
    assert all(map(paths.is_node_name, ("g", "a group", "g.1", "größe")))
    assert not any(map(paths.is_node_name, ("", ".", "..", "a/b", "a\0b", "a\nb", "a\x85b", "a\ue000b")))
    assert all(map(paths.is_group, ("g", "a/b")))
    assert not any(map(paths.is_group, ("", "/", "a/", "a//b", "a/../b")))


ENTITIES: dict[str, Any] = json.loads((ROOT / "tests/oracle/recorded/zookeeper_entities.json").read_text())


@pytest.mark.parametrize("version", [version for version in ENTITIES if version >= "1"])
def test_a_token_is_read_as_brokers_write_it(version: str) -> None:
    """Since 3.3 with the principal that asked for it (KIP-373)."""
    recorded = ENTITIES[version]["nodes"]
    ((path, text),) = [one for one in recorded.items() if one[0].startswith(f"{paths.TOKENS}/")]
    found = values.Token.decode(text.encode())
    assert (found.token_id, found.owner) == (path.rpartition("/")[2], "User%3Aalice")
    assert (found.requester, found.renewers) == ("User%3Aalice" if version >= "3.3" else "", ("User%3Abob",))
    assert 0 < found.issued_ms < found.expires_ms < found.latest_ms


@pytest.mark.parametrize("version", [version for version in ENTITIES if version >= "0.9"])
def test_rights_are_read_as_tools_write_them(version: str) -> None:
    found = zookeeper_rights.acl_entries_of(ENTITIES[version]["nodes"][f"{paths.ACLS}/Cluster/kafka-cluster"].encode())
    denied = next(one for one in found if one.permission == "Deny")
    assert denied == zookeeper_rights.AclEntry("User:mallory", "Deny", "All", "10.0.0.1")
    assert str(denied) == "Deny All for User:mallory from 10.0.0.1"
    assert zookeeper_rights.acl_entries_of(b"") == []


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"acls":{}}', b'{"acls":[1]}', b'{"acls":[{"principal":"User:a"}]}'])
def test_rights_and_tokens_of_another_form_are_malformed(data: bytes) -> None:
    for decode in (zookeeper_rights.acl_entries_of, values.Token.decode):
        with pytest.raises(Malformed):
            decode(data)


@pytest.mark.parametrize("version", [version for version in ENTITIES if version >= "0.9"])
def test_rights_are_written_as_the_authorizer_of_the_release_writes_them(version: str) -> None:
    found = {path: text for path, text in ENTITIES[version]["nodes"].items() if path.startswith("/kafka-acl") and text}
    for text in found.values():
        entries = zookeeper_rights.acl_entries_of(text.encode())
        assert zookeeper_rights.acl_entries(entries, number(version)) == text.encode()


@pytest.mark.parametrize(
    ("kind", "release", "change"),
    [
        ("Topic", (1, 1), b"Topic:a:b"),
        ("Topic", (2, 0), b"TOPIC:a:b"),
        ("TransactionalId", (2, 0), b"TRANSACTIONAL_ID:a:b"),
    ],
)
def test_the_resources_of_changes_are_named_in_capitals_since_2_0(
    kind: str, release: tuple[int, ...], change: bytes
) -> None:
    """As the authorizers of 1.1.1 and 2.8.2 wrote them."""
    assert zookeeper_rights.acl_change(kind, "a:b", release) == change
    assert zookeeper_rights.acl_change_of(change) == (kind, "a:b")
    of_prefix = zookeeper_rights.prefixed_acl_change(kind, "a:b")
    assert zookeeper_rights.prefixed_acl_change_of(of_prefix) == (kind, "a:b")
    assert zookeeper_rights.prefixed_acl_change("Topic", "pre") == (
        b'{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}'
    )


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= "0.11" and version < "3"])
def test_a_block_of_producer_ids_is_that_of_a_broker(version: str) -> None:
    recorded = nodes(version).get(paths.PRODUCER_IDS)
    if recorded is not None:
        assert values.producer_ids(7, values.next_producer_id(recorded), 1000) == recorded
    assert values.next_producer_id(None) == values.next_producer_id(b"") == 0
    for data in (b"x", b"{}", b'{"block_end":[]}'):
        with pytest.raises(Malformed):
            values.next_producer_id(data)


@pytest.mark.parametrize("version", [version for version in ENTITIES if version >= "1"])
def test_a_credential_is_written_as_the_tool_writes_it(version: str) -> None:
    config = json.loads(ENTITIES[version]["nodes"]["/config/users/alice"])["config"]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert credential_text(parse_credential(config[mechanism])) == config[mechanism]


@pytest.mark.parametrize("text", ["", "salt", "salt=YQ==", "salt=YQ==,stored_key=YQ==,server_key=%,iterations=1"])
def test_a_credential_of_another_form_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_credential(text)
