"""Tools of earlier releases write rights, credentials and configurations of brokers to a real ZooKeeper, in which a
broker is registered; and they read what the broker has written there.
"""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from ottla.protocol import messages as m

from ottla import certs

from ..oracle.zookeeper import ZooKeeperServer, tool
from ..support.entities import acls_of
from ..support.poll import until
from ..support.ports import free_ports
from ..support.tls import PASSWORD
from ..support.wire import Wire
from .zookeeper_brokers import registered

pytestmark = pytest.mark.slow
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
TOPIC, LITERAL, PREFIXED, READ, ALLOW = 2, 3, 4, 3, 3
RELEASES = {"1.1": "1.1.1", "2.8": "2.8.2"}


@pytest.mark.parametrize("release", RELEASES)
def test_rights(zookeeper: ZooKeeperServer, release: str) -> None:
    at, version = f"/rights-{release}", RELEASES[release]
    can_prefix = release >= "2"
    patterns = {"plain": LITERAL, "pre": PREFIXED} if can_prefix else {"plain": LITERAL}

    def acls(*arguments: str) -> str:
        where = ("--authorizer-properties", f"zookeeper.connect={zookeeper.address}{at}")
        return tool(version, "admin.AclCommand", *where, *arguments)

    def named(topic: str) -> tuple[str, ...]:
        of_prefix = ("--resource-pattern-type", "prefixed") if patterns[topic] == PREFIXED else ()
        return ("--topic", topic, *of_prefix)

    with (
        registered(zookeeper, at, release, lab=False, **AUTHORIZER) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        api = 1 if can_prefix else 0
        expected = [
            [TOPIC, topic, pattern, principal, "*", READ, ALLOW]
            for topic, pattern in patterns.items()
            for principal in ("User:alice", "User:bob")
        ]
        for topic in patterns:
            both = ("--allow-principal", "User:alice", "--allow-principal", "User:bob")
            acls("--add", *both, "--operation", "Read", *named(topic))
        until(lambda: acls_of(wire, api) == expected, "the rights take effect", within=20)

        r = m.CreateAclsRequest
        one = r.AclCreation(resource_type=TOPIC, resource_name="plain", principal="User:carol", host="*")
        one.operation, one.permission_type = READ, ALLOW
        assert not wire.ask("CreateAcls", api, r(creations=[one])).results[0].error_code
        until(lambda: "User:carol" in acls("--list", "--topic", "plain"), "the tool lists it", within=30)

        for topic in patterns:
            everyone = [word for name in ("alice", "bob", "carol") for word in ("--allow-principal", f"User:{name}")]
            acls("--remove", "--force", *everyone, "--operation", "Read", *named(topic))
        until(lambda: acls_of(wire, api) == [], "the rights are gone", within=20)


def test_a_user_whose_password_a_tool_sets_logs_in(zookeeper: ZooKeeperServer) -> None:
    """With the tool of 1.1.1; what the broker keeps of another user's password it reads, too."""
    at = "/users"
    listeners = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl_enabled_mechanisms": "SCRAM-SHA-512"}
    listeners |= {"security_inter_broker_protocol": "SASL_PLAINTEXT"}
    listeners |= {"sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-512"}
    command = ("admin.ConfigCommand", "--zookeeper", f"{zookeeper.address}{at}", "--entity-type", "users")
    with registered(zookeeper, at, "1.1", lab=False, **listeners) as broker:
        password = ("--add-config", "SCRAM-SHA-512=[iterations=4096,password=secret],producer_byte_rate=1000")
        tool("1.1.1", *command, "--alter", "--entity-name", "alice", *password)

        def logs_in() -> bool:
            try:
                KafkaConsumer(
                    bootstrap_servers=broker.bootstrap_servers,
                    security_protocol="SASL_PLAINTEXT",
                    sasl_mechanism="SCRAM-SHA-512",
                    sasl_plain_username="alice",
                    sasl_plain_password="secret",
                ).close()
            except Exception as error:
                if "uthentication" not in repr(error):
                    raise
                return False
            return True

        until(logs_in, "alice logs in", within=20, every=0.2)
        written = json.loads(zookeeper.value(f"{at}/config/users/alice") or "")["config"]
        broker.stop()
        zookeeper.client.delete(f"{at}/config/users/alice")
        broker.start()
        again = json.loads(zookeeper.value(f"{at}/config/users/alice") or "")["config"]
        assert again == written
        shown = tool("1.1.1", *command, "--describe", "--entity-name", "alice")
        assert f"SCRAM-SHA-512={written['SCRAM-SHA-512']}" in shown


def test_configurations_of_brokers(zookeeper: ZooKeeperServer) -> None:
    """Kafka 1.1.1's tool writes throttles of replication there; other configurations it asks the broker for."""
    at = "/brokers-of-1.1"
    command = ("admin.ConfigCommand", "--zookeeper", f"{zookeeper.address}{at}", "--entity-type", "brokers")
    with registered(zookeeper, at, "1.1") as broker:
        rate = "leader.replication.throttled.rate"
        tool("1.1.1", *command, "--alter", "--entity-name", "7", "--add-config", f"{rate}=1000")
        asked = ("--bootstrap-server", broker.bootstrap_servers, "--entity-type", "brokers")
        kept = ("--alter", "--entity-default", "--add-config", "log.retention.ms=5000")
        tool("1.1.1", "admin.ConfigCommand", *asked, *kept)
        path = f"{at}/config/brokers/<default>"
        until(lambda: "5000" in (zookeeper.value(path) or ""), "the broker writes its own", within=20)
        d = m.DescribeConfigsRequest
        names = [rate, "log.retention.ms"]
        of_broker = d(resources=[d.DescribeConfigsResource(4, "7", names)])
        with Wire(broker.bootstrap_servers) as wire:

            def found() -> dict[str, str]:
                return {one.name: one.value for one in wire.ask("DescribeConfigs", 1, of_broker).results[0].configs}

            until(lambda: found() == {rate: "1000", "log.retention.ms": "5000"}, "both are in force", within=20)
        shown = tool("1.1.1", *command, "--describe", "--entity-name", "7")
        assert f"{rate}=1000" in shown


def test_a_store_that_a_tool_names_and_its_password(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    """Kafka 2.8.2's tool encrypts the password while the broker does not run, as it demands; the broker's listener has
    the certificate of that store. The password is still that of the tool after a change by a client.
    """
    at, prefix = "/stores", "listener.name.tls.ssl.keystore"
    for name in ("old", "new"):
        certs.make(tmp_path / name, certs.HOSTS, [], PASSWORD)
    plain, secured = free_ports(2)
    listeners: dict[str, Any] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},TLS://127.0.0.1:{secured}",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": tmp_path / "old" / "server.pem",
        "password_encoder_secret": "the secret",
    }
    store = {f"{prefix}.location": tmp_path / "new" / "server.p12", f"{prefix}.type": "PKCS12"}
    given = {**store, f"{prefix}.password": PASSWORD, "password.encoder.secret": "the secret"}
    command = ("admin.ConfigCommand", "--zookeeper", f"{zookeeper.address}{at}", "--alter", "--entity-type", "brokers")
    zookeeper.client.ensure_path(f"{at}/config/changes")
    words = ",".join(f"{key}={value}" for key, value in given.items())
    tool("2.8.2", *command, "--entity-name", "7", "--add-config", words)
    written = json.loads(zookeeper.value(f"{at}/config/brokers/7") or "")["config"]
    assert PASSWORD not in written[f"{prefix}.password"]
    with registered(zookeeper, at, "2.8", lab=False, **listeners) as broker:
        context = ssl.create_default_context(cafile=str(tmp_path / "new" / "ca.crt"))

        def is_trusted() -> bool:
            with socket.create_connection(("127.0.0.1", secured), 20) as connection:
                try:
                    context.wrap_socket(connection, server_hostname="localhost").close()
                except ssl.SSLCertVerificationError:
                    return False
            return True

        until(is_trusted, "the listener has the certificate of the store", within=20)
        r = m.IncrementalAlterConfigsRequest
        asked = r.AlterConfigsResource(4, "7", [r.AlterableConfig(name="log.roll.ms", config_operation=0, value="7")])
        with Wire(broker.bootstrap_servers.split(",")[0]) as wire:
            assert not wire.ask("IncrementalAlterConfigs", 1, r(resources=[asked])).responses[0].error_code
        path = f"{at}/config/brokers/7"
        until(lambda: "log.roll.ms" in (zookeeper.value(path) or ""), "the broker writes its own", within=20)
        found = json.loads(zookeeper.value(path) or "")["config"]
    assert found == {**written, "log.roll.ms": "7"}
