"""Dynamic configurations of brokers in a ZooKeeper in memory: passwords, which are encrypted there, and the keys of
listeners. And the names that ZooKeeper cannot have.
"""

from __future__ import annotations

import json

import pytest
from ottla.broker.zookeeper.passwords import Sealing, opened, sealed
from ottla.coordinator.metadata.state import BROKER
from ottla.protocol import messages as m

from ..support.entities import acls_of
from ..support.kazoo_double import KazooDouble
from ..support.world import World
from ..support.zookeeper_world import ROUNDS_MS, config_there, restarted, started, tool_configures

RELEASE, SECRET = "2.8", "the secret"
SETTINGS = {"password_encoder_secret": SECRET}
LIKE_KAFKA = Sealing("AES/CBC/PKCS5Padding", 128, "PBKDF2WithHmacSHA512", 1024)
KEY_PASSWORD, STORE = "listener.name.x.ssl.key.password", "listener.name.x.ssl.keystore.location"
INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_SERVER_ERROR = 40, 42, -1
GROUP, LITERAL, READ, ALLOW = 3, 3, 3, 3


@pytest.fixture
def w(client: KazooDouble) -> World:
    return started(client, None, RELEASE, **SETTINGS)


def configure(w: World, name: str, config: dict[str, str | None]) -> tuple[int, str | None]:
    r = m.IncrementalAlterConfigsRequest
    values = [r.AlterableConfig(name=key, config_operation=int(one is None), value=one) for key, one in config.items()]
    asked = r(resources=[r.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=values)])
    answer = w.ask("IncrementalAlterConfigs", 1, asked).responses[0]
    return answer.error_code, answer.error_message


def of_node(w: World) -> dict[str, str]:
    return w.broker.image.config_of(BROKER, "7")


def test_passwords_that_a_tool_writes_take_effect(client: KazooDouble, w: World) -> None:
    there = {KEY_PASSWORD: sealed("one", SECRET, LIKE_KAFKA), STORE: "/x", "log.retention.ms": "5000"}
    tool_configures(client, "brokers/7", there)
    w.pass_ms(ROUNDS_MS)
    assert of_node(w) == {KEY_PASSWORD: "one", STORE: "/x", "log.retention.ms": "5000"}
    assert config_there(client, "brokers/7") == there  # it was not encrypted again
    tool_configures(client, "brokers/7", {KEY_PASSWORD: sealed("two", SECRET, LIKE_KAFKA)})
    w.pass_ms(ROUNDS_MS)
    assert of_node(w) == {KEY_PASSWORD: "two"}


def test_passwords_that_a_client_sets_are_encrypted(client: KazooDouble, w: World) -> None:
    assert configure(w, "7", {KEY_PASSWORD: "one", STORE: "/x"}) == (0, None)
    w.pass_ms(ROUNDS_MS)
    there = config_there(client, "brokers/7")
    assert there.keys() == {KEY_PASSWORD, STORE}
    assert opened(there[KEY_PASSWORD], SECRET) == "one"
    assert configure(w, "7", {STORE: "/y"}) == (0, None)
    w.pass_ms(ROUNDS_MS)
    assert config_there(client, "brokers/7") == {KEY_PASSWORD: there[KEY_PASSWORD], STORE: "/y"}
    again = restarted(w, client, RELEASE, **SETTINGS)
    again.pass_ms(ROUNDS_MS)
    assert of_node(again) == {KEY_PASSWORD: "one", STORE: "/y"}
    assert config_there(client, "brokers/7") == {KEY_PASSWORD: there[KEY_PASSWORD], STORE: "/y"}


def test_a_password_that_a_tool_changes_during_an_outage_takes_effect(client: KazooDouble, w: World) -> None:
    """What both agreed on is in a file, encrypted as in ZooKeeper."""
    configure(w, "7", {KEY_PASSWORD: "one", STORE: "/x"})
    w.pass_ms(ROUNDS_MS)
    client.lose()
    configure(w, "7", {STORE: "/y"})
    with client.tool():
        tool_configures(client, "brokers/7", {KEY_PASSWORD: sealed("two", SECRET, LIKE_KAFKA), STORE: "/x"})
    again = restarted(w, client, RELEASE, **SETTINGS)
    again.pass_ms(ROUNDS_MS)
    assert of_node(again) == {KEY_PASSWORD: "two", STORE: "/y"}
    assert config_there(client, "brokers/7")[STORE] == "/y"


def test_passwords_of_an_earlier_secret_are_encrypted_again(client: KazooDouble, w: World) -> None:
    configure(w, "7", {KEY_PASSWORD: "one"})
    w.pass_ms(ROUNDS_MS)
    settings = {"password_encoder_secret": "new", "password_encoder_old_secret": SECRET}
    again = restarted(w, client, RELEASE, **settings)
    again.pass_ms(ROUNDS_MS)
    assert of_node(again) == {KEY_PASSWORD: "one"}
    assert opened(config_there(client, "brokers/7")[KEY_PASSWORD], "new") == "one"


def test_a_password_that_cannot_be_opened_stays_without_effect(client: KazooDouble, w: World) -> None:
    foreign = {KEY_PASSWORD: sealed("one", "another", LIKE_KAFKA)}
    tool_configures(client, "brokers/7", {**foreign, STORE: "/x"})
    w.pass_ms(ROUNDS_MS)
    assert of_node(w) == {STORE: "/x"}
    configure(w, "7", {STORE: "/y"})
    w.pass_ms(ROUNDS_MS)
    assert config_there(client, "brokers/7") == {**foreign, STORE: "/y"}


def test_keys_of_listeners_and_of_one_broker_are_not_those_of_all(client: KazooDouble, w: World) -> None:
    of_one = {STORE: "/x", "sasl.enabled.mechanisms": "PLAIN", "ssl.keystore.location": "/x"}
    tool_configures(client, "brokers/<default>", {**of_one, "log.retention.ms": "5000"})
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.config_of(BROKER, "").keys() == {"log.retention.ms", "min.insync.replicas"}
    assert config_there(client, "brokers/<default>").keys() == {*of_one, "log.retention.ms"}
    limit = "listener.name.plaintext.max.connections"
    tool_configures(client, "brokers/<default>", {limit: "1000"})
    w.pass_ms(ROUNDS_MS)
    assert w.broker.image.config_of(BROKER, "").keys() == {limit, "min.insync.replicas"}
    tool_configures(client, "brokers/7", {**of_one, "listener.name.x.unknown": "1"})
    w.pass_ms(ROUNDS_MS)
    assert of_node(w).keys() == {STORE, "sasl.enabled.mechanisms"}


@pytest.mark.parametrize(("release", "code"), [(RELEASE, INVALID_REQUEST), ("3.3", INVALID_CONFIG)])
def test_a_password_needs_a_secret(client: KazooDouble, release: str, code: int) -> None:
    """The answers are those of Kafka 2.8.2 and 3.3.2."""
    w = started(client, release=release)
    resource = "ConfigResource(type=BROKER, name='7')"
    text = f"Invalid config value for resource {resource}: Password encoder secret not configured"
    for key in (KEY_PASSWORD, "listener.name.x.sasl.jaas.config"):
        assert configure(w, "7", {key: "x"}) == (code, text)
    assert configure(w, "7", {KEY_PASSWORD: None, STORE: "/x"}) == (0, None)


def test_rights_of_a_name_that_zookeeper_cannot_have_are_refused(client: KazooDouble) -> None:
    """The answers are those of Kafka 1.1.1 and 2.8.2."""
    settings = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    w = started(client, None, RELEASE, super_users="User:ANONYMOUS", **settings)
    r = m.CreateAclsRequest
    names = ("a/b", "a/", "/", "..", "a")
    asked = r(creations=[r.AclCreation(resource_type=GROUP, resource_name=name) for name in names])
    for one in asked.creations:
        one.resource_pattern_type, one.operation, one.permission_type = LITERAL, READ, ALLOW
        one.principal, one.host = "User:x", "*"
    codes = [one.error_code for one in w.ask("CreateAcls", 1, asked).results]
    assert codes == [UNKNOWN_SERVER_ERROR] * 4 + [0]
    assert [row[1] for row in acls_of(w, 1)] == ["a"]
    w.pass_ms(ROUNDS_MS)
    acls = [path for path in client.nodes if path.startswith("/kafka-acl/Group/")]
    assert acls == ["/kafka-acl/Group/a"]
    assert json.loads(client.nodes[acls[0]].value)["acls"][0]["principal"] == "User:x"
