"""Writes down what the tools of Kafkas with ZooKeeper keep there for administrators and old consumers, and what brokers
say of it: `recorded/zookeeper_entities.json`.

`python -m tests.oracle.record_entities`, by hand; it takes four minutes. Quotas, credentials, rights, tokens and
configurations of brokers are made by the release's own tools, and so are the offsets that consumers commit there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from ..support.entities import acls_of, credentials_of, quotas_of
from ..support.poll import until
from ..support.ports import free_port
from ..support.sources import ROOT
from ..support.wire import Wire
from .jars import archived, classpath
from .kafka import tool as latest_tool
from .old_kafka import OldKafka
from .record_old_directories import RELEASES, Story
from .zookeeper import JAVA

PATHS = ("/config", "/kafka-acl", "/kafka-acl-extended", "/delegation_token", "/consumers", "/admin")
LEFT_OUT = ("/config/changes", "/config/topics", "/kafka-acl-changes", "/kafka-acl-extended-changes")
PASSWORD = "alice-secret"
MASTER_KEY = "master-key"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
CONFIGS, ACLS, TOKENS = "kafka.admin.ConfigCommand", "kafka.admin.AclCommand", "kafka.admin.DelegationTokenCommand"
QUOTAS = (
    (("clients", "c1"), "producer_byte_rate=1000,consumer_byte_rate=2000"),
    (("clients", None), "producer_byte_rate=50000"),
    (("users", "u 1/é*%"), "consumer_byte_rate=3000,request_percentage=12.5"),
    (("users", None), "producer_byte_rate=40000"),
    (("users", "u 1/é*%", "clients", "c1"), "producer_byte_rate=100"),
    (("users", "u 1/é*%", "clients", None), "producer_byte_rate=200"),
    (("users", None, "clients", "c2"), "producer_byte_rate=300"),
    (("ips", "127.0.0.9"), "connection_creation_rate=7"),
    (("ips", None), "connection_creation_rate=70"),
)
RIGHTS = (
    ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "plain", "--group", "simple"),
    ("--deny-principal", "User:mallory", "--deny-host", "10.0.0.1", "--operation", "All", "--cluster"),
    ("--allow-principal", "User:CN=app,OU=a b,O=ü", "--producer", "--topic", "*"),
    ("--allow-principal", "User:*", "--operation", "Describe", "--topic", "plain", "--allow-host", "127.0.0.1"),
    ("--allow-principal", "User:alice", "--operation", "Write", "--transactional-id", "t 1"),
    ("--allow-principal", "User:alice", "--operation", "Describe", "--delegation-token", "t1"),
    ("--allow-principal", "User:bob", "--operation", "All", "--topic", "pre-", "--resource-pattern-type", "prefixed"),
    ("--allow-principal", "User:bob", "--operation", "Read", "--group", "p-", "--resource-pattern-type", "prefixed"),
)


class Administrator:
    """Runs the tools of one release; those of an option that the release does not know fail, and leave nothing."""

    def __init__(self, kafka: OldKafka) -> None:
        self.kafka = kafka
        self.at = ("--zookeeper", kafka.zookeeper)

    def run(self, main: str, *arguments: str) -> str:
        """Returns what the tool printed."""
        part = f"kafka-{self.kafka.version}"
        command = [*JAVA, *archived(part, "tools"), "-cp", classpath(part), main, *arguments]
        made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if made.returncode:
            print(self.kafka.version, arguments, made.stdout[-300:], made.stderr[-300:], file=sys.stderr)
        return made.stdout

    def configure(self, at: tuple[str, ...], entity: tuple[str | None, ...], values: str) -> None:
        named = [("--entity-type", str(kind)) for kind in entity[::2]]
        names = [("--entity-default",) if name is None else ("--entity-name", name) for name in entity[1::2]]
        words = [word for pair in zip(named, names, strict=True) for part in pair for word in part]
        self.run(CONFIGS, *at, "--alter", *words, "--add-config", values)

    def consume(self, group: str, messages: int) -> None:
        """A consumer of those years reads, and commits to ZooKeeper."""
        config = self.kafka.directory / f"{group}.properties"
        config.write_text(f"group.id={group}\nzookeeper.session.timeout.ms=2000\n")
        options = ("--topic", "plain", "--from-beginning", "--max-messages", str(messages))
        self.run("kafka.tools.ConsoleConsumer", *self.at, *options, "--consumer.config", str(config))


def record(version: str) -> dict[str, Any]:
    number = tuple(map(int, version.split(".")))
    settings: dict[str, object] = {"offsets.topic.num.partitions": 4, "log.cleaner.enable": "false"}
    sasl = free_port()
    if number >= (0, 9):
        name = "authorizer.AclAuthorizer" if number >= (2, 4) else "auth.SimpleAclAuthorizer"
        settings |= {
            "authorizer.class.name": f"kafka.security.{name}",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
        }
    kafka = OldKafka(version, settings)
    if number >= (1, 1):
        settings |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{kafka.port},SASL_PLAINTEXT://127.0.0.1:{sasl}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{LOGIN};",
            "delegation.token.master.key": MASTER_KEY,
            "password.encoder.secret": "encoder",
        }
    with kafka:
        client = KazooClient(kafka.zookeeper)
        client.start()
        try:
            until(lambda: client.exists("/brokers/ids/1") and client.exists("/controller"), "the broker is there")
            return _recorded(number, Administrator(kafka), client, sasl)
        finally:
            client.stop()
            client.close()


def _recorded(number: tuple[int, ...], admin: Administrator, client: KazooClient, sasl: int) -> dict[str, Any]:
    kafka = admin.kafka
    story = Story(kafka, RELEASES[kafka.version], client)
    story.topic("plain", 2)
    story.topic("defaults")
    for n in range(8):
        story.produce("plain", (b"k", b"%d" % n), partition=0)
    story.produce("plain", (b"k", b"8"), (b"k", b"9"), partition=1)
    brokers = ("--bootstrap-server", kafka.bootstrap_servers)
    if number < (2,):
        for group, count in (("zookeeper", 10), ("simple", 10), ("classic", 1)):
            admin.consume(group, count)
    if number >= (0, 10):
        _administrate(number, admin, brokers)
    found: dict[str, Any] = {}
    if number >= (1, 1):
        found["tokens"] = _tokens(admin, client, sasl)
        with Wire(kafka.bootstrap_servers) as wire:
            found["acls"] = acls_of(wire, 1 if number >= (2,) else 0)
            if number >= (2, 7):
                found |= {"quotas": quotas_of(wire), "credentials": credentials_of(wire)}
    kafka.stop_broker()
    until(lambda: not client.exists("/brokers/ids/1"), "the broker is forgotten")
    if number < (3,):
        admin.run("kafka.admin.TopicCommand", *admin.at, "--delete", "--topic", "defaults")
        found["described"] = admin.run("kafka.admin.TopicCommand", *admin.at, "--describe", "--topic", "defaults")
    if number >= (1, 1):
        secret = "listener.name.other.ssl.key.password=hidden,password.encoder.secret=encoder"
        admin.configure(admin.at, ("brokers", "1"), secret)
    nodes: dict[str, str] = {}
    for path in PATHS:
        _read(client, path, nodes)
    return {"nodes": nodes, **found}


def _administrate(number: tuple[int, ...], admin: Administrator, brokers: tuple[str, ...]) -> None:
    for mechanisms in ("SCRAM-SHA-256=[iterations=4096,password={0}]", "SCRAM-SHA-512=[password={0}]"):
        admin.configure(admin.at, ("users", "alice"), mechanisms.format(PASSWORD))
    for entity, values in QUOTAS:
        admin.configure(admin.at if number < (3,) else brokers, entity, values)
    for arguments in RIGHTS:
        at = ("--authorizer-properties", f"zookeeper.connect={admin.kafka.zookeeper}")
        admin.run(ACLS, *at, "--add", *arguments)
    if number >= (1, 1):
        admin.configure(brokers, ("brokers", "1"), "log.cleaner.threads=2")
        admin.configure(brokers, ("brokers", None), "log.retention.ms=900000001")


def _tokens(admin: Administrator, client: KazooClient, sasl: int) -> list[str]:
    """Makes one, and returns the lines that describe it, once the broker knows it."""
    login = admin.kafka.directory / "login.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="{PASSWORD}";\n'
    )
    at = ("--bootstrap-server", f"127.0.0.1:{sasl}", "--command-config", str(login))
    create = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    is_own = admin.kafka.version < "3"

    def asked(*arguments: str) -> str:
        if is_own:
            return admin.run(TOKENS, *at, *arguments)
        return latest_tool("DelegationTokenCommand", *at, *arguments).stdout

    asked(*create)
    describe = ("--describe", "--owner-principal", "User:alice")
    (token,) = client.get_children("/delegation_token/tokens")
    until(lambda: token in asked(*describe), "the broker knows the token")
    return asked(*describe).splitlines()


def _read(client: KazooClient, path: str, nodes: dict[str, str]) -> None:
    if path in LEFT_OUT or not client.exists(path):
        return
    nodes[path] = (client.get(path)[0] or b"").decode()
    for name in sorted(client.get_children(path)):
        _read(client, f"{path}/{name}", nodes)


def main() -> None:
    target = Path(ROOT / "tests/oracle/recorded/zookeeper_entities.json")
    found: dict[str, Any] = json.loads(target.read_text()) if target.exists() else {}
    for version in sys.argv[1:] or RELEASES:
        found[version] = record(version)
        ordered = {version: found[version] for version in RELEASES if version in found}
        target.write_text(json.dumps(ordered, indent=1) + "\n")


if __name__ == "__main__":
    main()
