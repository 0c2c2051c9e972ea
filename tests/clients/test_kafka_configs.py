"""`kafka-configs` for every kind of entity, with SCRAM credentials and quotas together: it prints of ottla what it
prints of Kafka.
"""

from __future__ import annotations

import pytest

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..oracle.tools import tool

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
USERS, CLIENTS, IPS = "--entity-type users", "--entity-type clients", "--entity-type ips"
ALICE, APP = f"{USERS} --entity-name alice", f"{CLIENTS} --entity-name app"
CHANGES = (
    f"{ALICE} --add-config SCRAM-SHA-256=[password=p]",
    f"{ALICE} --add-config SCRAM-SHA-512=[iterations=5000,password=p]",
    f"{ALICE} --add-config producer_byte_rate=1024,request_percentage=50.5",
    f"{USERS} --entity-default --add-config consumer_byte_rate=2048",
    f"{USERS} --entity-name bob --add-config controller_mutation_rate=10",
    f"{USERS} --entity-name carol --add-config SCRAM-SHA-512=[password=p]",
    f"{APP} --add-config producer_byte_rate=99",
    f"{CLIENTS} --entity-default --add-config producer_byte_rate=98",
    f"{ALICE} {APP} --add-config consumer_byte_rate=77",
    f"{ALICE} {CLIENTS} --entity-default --add-config consumer_byte_rate=76",
    f"{IPS} --entity-name 127.0.0.2 --add-config connection_creation_rate=5",
    f"{IPS} --entity-default --add-config connection_creation_rate=500",
    "--entity-type groups --entity-name g --add-config consumer.session.timeout.ms=50000",
    "--entity-type client-metrics --entity-name m --add-config metrics=*,interval.ms=5000",
    "--entity-type brokers --entity-name 1 --add-config background.threads=9",
    "--entity-type brokers --entity-default --add-config log.cleaner.threads=2",
)
DESCRIBED = (
    *(f"--entity-type {one}" for one in ("users", "clients", "ips", "topics", "groups", "client-metrics", "brokers")),
    *(f"{USERS} --entity-name {one}" for one in ("alice", "bob", "carol", "nobody")),
    f"{IPS} --entity-name 127.0.0.2",
    "--entity-type topics --entity-name none",
    "--entity-type groups --entity-name g",
    "--entity-type client-metrics --entity-name m",
    *(f"--entity-type {one} --entity-default" for one in ("users", "clients", "ips", "brokers")),
    f"{USERS} {CLIENTS}",
    f"{ALICE} {CLIENTS} --entity-default",
    "--user alice",
    "--client-defaults",
)
REFUSED = (
    f"{ALICE} --delete-config controller_mutation_rate",
    f"{ALICE} --add-config SCRAM-SHA-256=[password=p],producer_byte_rate=1",
    f"{ALICE} --add-config nonsense=1",
)


def printed(servers: str) -> dict[str, tuple[int, list[str]]]:
    """What each command prints, and its exit code."""
    at = ["--bootstrap-server", servers]
    made = tool("TopicCommand", *at, "--create", "--topic", "t", "--config", "retention.ms=1000")
    assert made.returncode == 0, made.stdout + made.stderr
    commands = [f"--alter {one}" for one in CHANGES]
    commands += [f"--describe {one}" for one in DESCRIBED]
    commands += [f"--alter {one}" for one in REFUSED]
    commands += [f"--alter {ALICE} --delete-config {one}" for one in ("SCRAM-SHA-256", "producer_byte_rate")]
    commands += [f"--describe {ALICE}"]
    found = {}
    for command in commands:
        done = tool("kafka.admin.ConfigCommand", *at, *command.split())
        lines = (done.stdout + done.stderr).splitlines()
        found[command] = (done.returncode, sorted(map(in_order, lines)))
    return found


def in_order(line: str) -> str:
    """A line with its values in order: the tool and Kafka's broker have them in hash maps."""
    whose, are, values = line.partition(" are ")
    return whose + are + ", ".join(sorted(values.split(", ")))


def test_it_prints_what_it_prints_of_kafka() -> None:
    with Broker(lab=False) as ours, Kafka() as kafka:
        of_ottla, of_kafka = printed(ours.bootstrap_servers), printed(kafka.bootstrap_servers)
    assert of_ottla == of_kafka
    together = " ".join(of_ottla[f"--describe {ALICE}"][1])
    assert "are SCRAM-SHA-512=iterations=5000" in together
    assert "are request_percentage=50.5" in together


def test_each_entity_of_three_nodes() -> None:
    """The tool asks the node for its own configuration and loggers, and any node for the rest."""
    with Broker({"ottla.nodes": 3, "log.cleaner.threads": 1}) as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]

        def ran(words: str) -> str:
            done = tool("kafka.admin.ConfigCommand", *at, *words.split())
            assert done.returncode == 0, done.stdout + done.stderr[-3000:]
            return done.stdout

        made = tool("TopicCommand", *at, "--create", "--topic", "t", "--replication-factor", "3")
        assert made.returncode == 0, made.stdout + made.stderr
        of_two, logger = "--entity-type brokers --entity-name 2", "--entity-type broker-loggers --entity-name 2"
        assert "Completed updating config for broker 2" in ran(
            f"--alter {of_two} --add-config log.cleaner.backoff.ms=100"
        )
        assert "log.cleaner.backoff.ms=100" in ran(f"--describe {of_two}")
        assert "log.cleaner.backoff.ms" not in ran("--describe --entity-type brokers --entity-name 3")
        ran("--alter --entity-type brokers --entity-default --add-config log.cleaner.backoff.ms=200")
        found = ran("--describe --entity-type brokers")
        assert found.count("DYNAMIC_BROKER_CONFIG:log.cleaner.backoff.ms=100") == 1
        assert found.count("log.cleaner.backoff.ms=200") >= 3
        assert "Completed" in ran(f"--alter {logger} --add-config kafka.server.KafkaApis=DEBUG")
        assert "kafka.server.KafkaApis=DEBUG" in ran(f"--describe {logger}")
        for kind, name, change in (
            ("topics", "t", "retention.ms=77"),
            ("groups", "g", "consumer.session.timeout.ms=50000"),
            ("client-metrics", "m", "interval.ms=5000"),
            ("users", "alice", "producer_byte_rate=1024"),
            ("clients", "app", "consumer_byte_rate=1024"),
            ("ips", "127.0.0.2", "connection_creation_rate=5"),
        ):
            ran(f"--alter --entity-type {kind} --entity-name {name} --add-config {change}")
            value = change.partition("=")[2]
            assert value in ran(f"--describe --entity-type {kind} --entity-name {name}"), kind
