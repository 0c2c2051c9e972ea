"""Dynamic changes of a broker's keys are checked with the keys in force, in Kafka's words (recorded from Kafka
4.4.0).
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.net.connection_counts import ConnectionCounts
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.world import World

SET, DELETE = 0, 1
DEDUPE = "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
NOT_TAKEN = (
    "Invalid value org.apache.kafka.common.config.ConfigException: %s for configuration Invalid dynamic configuration"
)
THREADS = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
    "failed for num.io.threads"
)


def alter(w: World, name: str, changes: dict[str, str | None]) -> tuple[int, str | None]:
    i = m.IncrementalAlterConfigsRequest
    wanted = [
        i.AlterableConfig(name=k, value=v, config_operation=DELETE if v is None else SET) for k, v in changes.items()
    ]
    (answer,) = w.ask(
        "IncrementalAlterConfigs",
        1,
        i(resources=[i.AlterConfigsResource(resource_type=4, resource_name=name, configs=wanted)]),
    ).responses
    return answer.error_code, answer.error_message


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("1", {"log.cleaner.threads": "200"}, DEDUPE),
        ("1", {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "5"}, DEDUPE),
        (
            "",
            {"log.retention.ms": "0"},
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        ("1", {"log.roll.ms": "0"}, "requirement failed: log.roll.ms must be greater than or equal to 1"),
        (
            "1",
            {"log.roll.jitter.ms": "-1"},
            "requirement failed: log.roll.jitter.ms must be greater than or equal to 0",
        ),
        (
            "1",
            {"max.connections.per.ip": "0"},
            "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set.",
        ),
        (
            "1",
            {"num.io.threads": "100"},
            f"{THREADS}=100, value should not be greater than double the current value 8 for configuration Invalid "
            "dynamic configuration",
        ),
        (
            "1",
            {"num.io.threads": "1"},
            f"{THREADS}=1, value should be at least half the current value 8 for configuration Invalid dynamic "
            "configuration",
        ),
        (
            "1",
            {"max.connections": "0"},
            "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connections 0 for "
            "configuration Invalid dynamic configuration",
        ),
        (
            "1",
            {"ssl.keystore.type": "x"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.type]",
        ),
        ("1", {"log.dirs": "x"}, "Cannot update these configs dynamically: [log.dirs]"),
        ("1", {"listener.name.plaintext.max.connections": "0"}, NOT_TAKEN % "Invalid max.connections 0"),
        (
            "1",
            {"metric.reporters": "x.y.Z"},
            NOT_TAKEN % "Validation of dynamic config update of Set(metric.reporters) failed with class class "
            "kafka.server.DynamicMetricsReporters",
        ),
        (
            "1",
            {"log.cleaner.threads": "3"},
            NOT_TAKEN % "Log cleaner threads cannot be increased to more than double the current value 1",
        ),
        (
            "1",
            {"leader.replication.throttled.rate": "-5"},
            "Invalid value -5 for configuration leader.replication.throttled.rate: Value must be at least 0",
        ),
        (
            "",
            {"follower.replication.throttled.rate": "abc"},
            "Invalid value abc for configuration follower.replication.throttled.rate: Not a number of type LONG",
        ),
        (
            "1",
            {"listener.security.protocol.map": "PLAINTEXT:SSL"},
            NOT_TAKEN % "Security protocol cannot be updated for existing listener ListenerName(PLAINTEXT)",
        ),
        (
            "1",
            {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093"},
            NOT_TAKEN % "Advertised listeners cannot be altered when using a Raft-based metadata quorum.",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(name: str, changes: dict[str, Any], words: str) -> None:
    w = World(None, 0)
    assert alter(w, name, changes) == (Errors.INVALID_REQUEST, words)


def test_values_that_go_together_are_taken_and_what_is_in_force_counts() -> None:
    w = World(None, 0)
    assert alter(w, "1", {"log.cleaner.threads": "2"})[0] == 0
    assert alter(w, "", {"log.cleaner.dedupe.buffer.size": str(3 << 20)})[0] == 0
    assert alter(w, "1", {"log.cleaner.threads": "3"}) == (Errors.INVALID_REQUEST, DEDUPE)
    assert alter(w, "1", {"log.cleaner.threads": None})[0] == 0
    assert alter(w, "1", {"num.io.threads": "16", "no.such.key": "1"})[0] == 0
    assert alter(w, "1", {"num.io.threads": "32"})[0] == 0, "sixteen are in force"


def test_keys_of_all_listeners_are_fixed_while_a_listener_has_stored_values_that_need_a_restart() -> None:
    w = World(None, 0)
    own = "listener.name.plaintext."
    assert alter(w, "1", {"sasl.enabled.mechanisms": "PLAIN"})[0] == 0
    assert alter(w, "1", {f"{own}max.connections": "9", f"{own}num.network.threads": "4"})[0] == 0
    assert alter(w, "1", {"sasl.kerberos.service.name": "kafka"})[0] == 0
    assert alter(w, "1", {f"{own}plain.sasl.jaas.config": "x", f"{own}sasl.enabled.mechanisms": "y"})[0] == 0
    words = NOT_TAKEN % (
        "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart broker or create "
        "a new listener for update"
    )
    assert alter(w, "1", {"sasl.enabled.mechanisms": "GSSAPI"}) == (Errors.INVALID_REQUEST, words)
    assert alter(w, "1", {"sasl.enabled.mechanisms": "PLAIN", "log.retention.ms": "5"})[0] == 0, "nothing changes"
    assert alter(w, "1", {f"{own}plain.sasl.jaas.config": None, f"{own}sasl.enabled.mechanisms": None})[0] == 0
    assert alter(w, "1", {"sasl.enabled.mechanisms": "GSSAPI"})[0] == 0


def test_limits_of_connections_follow_dynamic_values() -> None:
    w = World(
        None,
        0,
        listeners="A://127.0.0.1:1,B://127.0.0.1:2",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
    )
    counts = ConnectionCounts(w.broker, 100)
    w.broker.metadata.watch(counts.metadata_changed)

    def opened(listener: str, *addresses: str) -> list[str]:
        """The limits that new connections go beyond."""
        found = [counts.opened(listener, one) for one in addresses]
        for one in addresses:
            counts.closed(listener, one)
        return [one.name for one in found if one is not None]

    some = [f"127.0.0.{n}" for n in range(5)]
    assert (opened("A", *some), counts.connections_max, counts.per_address_max) == ([], 100, 75)
    assert alter(w, "1", {"listener.name.a.max.connections": "3", "max.connections.per.ip": "2"})[0] == 0
    assert (opened("A", *some), opened("B", *some)) == (["connections"] * 2, [])
    assert opened("B", *["127.0.0.1"] * 4) == ["connections-per-ip"] * 2
    assert alter(w, "1", {"max.connections.per.ip.overrides": "127.0.0.1:3, no.such.host.invalid:1"})[0] == 0
    w.pass_ms(10)
    assert opened("B", *["127.0.0.1"] * 4) == ["connections-per-ip"]
    assert alter(w, "1", {"max.connections.per.ip.overrides": ":1"})[0] == 0  # as in Kafka, which is here
    w.pass_ms(10)
    assert opened("B", *["127.0.0.1"] * 4, *["127.0.0.2"] * 2) == ["connections-per-ip"] * 3
    assert alter(w, "1", {"max.connections.per.ip.overrides": "127.0.0.1:3"})[0] == 0
    w.pass_ms(10)
    assert alter(w, "1", {"max.connections": "4", "listener.name.a.max.connections": None})[0] == 0
    assert (opened("A", *some), opened("B", *some)) == (["connections"], ["connections"])
    assert not counts.per_address
    again = ConnectionCounts(w.broker, 100)
    assert again.connections_max == 4


def test_the_pause_of_the_cleaner_follows_its_dynamic_value() -> None:
    w = World(None, 0)
    rounds: list[int] = []

    def looks() -> list[Any]:
        rounds.append(1)
        return []

    w.broker.replicas.cleaner._plans = looks  # type: ignore[method-assign]
    assert alter(w, "1", {"log.cleaner.backoff.ms": "100"})[0] == 0
    w.pass_ms(15_000)
    rounds.clear()
    for _ in range(20):
        w.broker.turn.wake()  # something happens: without that the rounds rest
        w.pass_ms(50)
    assert len(rounds) == 10
