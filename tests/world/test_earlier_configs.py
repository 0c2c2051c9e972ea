"""The configuration of a broker that emulates an earlier release: its defaults, and what they do."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config import sources
from ottla.broker.config.config import RELEASES, Config, ConfigError
from ottla.broker.config.effects import EARLIER_WITHOUT_EFFECT, without_effect
from ottla.coordinator.metadata.state import BROKER, TOPIC
from ottla.protocol import messages as m
from ottla.protocol.config_def import ConfigInvalid, dynamic_broker_keys, keys, keys_in_force
from ottla.protocol.errors import Errors
from ottla.protocol.legacy import Message, encode

from ..support.emulated import put, with_topic, world_of
from ..support.world import World

EARLIER = RELEASES[:-1]
LONG_MAX = 2**63 - 1
STORES = ("keystore", "truststore")
# read by the code, or by its names for keys of topics
WITH_EFFECT = {
    *("host.name", "port", "advertised.host.name", "advertised.port", "delegation.token.master.key"),
    *("inter.broker.protocol.version", "log.message.format.version", "log.message.downconversion.enable"),
    "log.message.timestamp.difference.max.ms",
    *("zookeeper.connect", "zookeeper.connection.timeout.ms", "zookeeper.session.timeout.ms", "zookeeper.set.acl"),
    *("zookeeper.ssl.client.enable", "zookeeper.ssl.protocol", "zookeeper.ssl.enabled.protocols"),
    *("zookeeper.ssl.cipher.suites", "zookeeper.ssl.endpoint.identification.algorithm"),
    *(f"zookeeper.ssl.{store}.{part}" for store in STORES for part in ("location", "password", "type")),
    *("password.encoder.secret", "password.encoder.old.secret", "password.encoder.cipher.algorithm"),
    *("password.encoder.key.length", "password.encoder.keyfactory.algorithm", "password.encoder.iterations"),
}


def build(release: str, *arguments: str) -> Config:
    return sources.build(sources.from_arguments([f"ottla.emulate={release}", *arguments]))


@pytest.mark.parametrize("release", EARLIER)
def test_every_default_of_a_release_is_valid_and_no_reason_for_a_warning(release: str) -> None:
    assert build(release).warnings == []
    for kind in ("broker", "topic", "group"):
        for key in (*keys(kind, release).values(), *keys_in_force(kind, release).values()):
            key.parse(key.default)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("offsets.retention.minutes", {"0.8.2": 1440, "1.1": 1440, "2.0": 10080}),
        ("message.max.bytes", {"0.8.2": 1000012, "2.4": 1000012, "2.5": 1048588}),
        ("unclean.leader.election.enable", {"0.10.2": True, "0.11": False}),
        ("delete.topic.enable", {"0.11": False, "1.0": True}),
        ("log.cleaner.enable", {"0.8.2": False, "0.9": True}),
        ("group.max.session.timeout.ms", {"0.9": 30_000, "0.10.0": 300_000, "2.2": 300_000, "2.3": 1_800_000}),
        ("replica.lag.time.max.ms", {"2.4": 10_000, "2.5": 30_000}),
        ("zookeeper.session.timeout.ms", {"2.4": 6_000, "2.5": 18_000}),
        ("group.coordinator.rebalance.protocols", {"3.9": ["classic"], "4.3": ["classic", "consumer", "streams"]}),
        ("log.message.timestamp.after.max.ms", {"0.8.2": LONG_MAX, "3.9": LONG_MAX, "4.0": 3_600_000}),
    ],
)
def test_a_default_is_that_of_the_release_and_gives_way_to_what_is_given(key: str, values: dict[str, Any]) -> None:
    for release, value in values.items():
        assert build(release)[key] == value, release
    given = {int: "77777", bool: "true", list: "classic"}[type(value)]
    for release in values:
        config = build(release, f"{key}={given}")
        assert config[key] == keys("broker")[key].parse(given) if key in keys("broker") else int(given)


def test_topics_have_the_defaults_of_the_release() -> None:
    for release, max_bytes, unclean in (("0.10.2", 1000012, True), ("2.4", 1000012, False), ("2.5", 1048588, False)):
        world = with_topic(release)
        values = world.broker.settings.of_topic("t")
        assert (values["max.message.bytes"], values["unclean.leader.election.enable"]) == (max_bytes, unclean)
    assert with_topic("0.9", message_max_bytes="5000").broker.settings.of_topic("t")["max.message.bytes"] == 5000


def test_a_key_that_only_earlier_releases_had_has_an_effect_or_a_reason_why_not() -> None:
    gone = {name for release in EARLIER for name in keys("broker", release)} - keys("broker").keys()
    assert {name for name in gone if without_effect(name) is None} == WITH_EFFECT
    for pattern in EARLIER_WITHOUT_EFFECT:
        assert any(without_effect(name) == EARLIER_WITHOUT_EFFECT[pattern] for name in gone), pattern
    assert build("0.8.2", "replica.lag.max.messages=9").warnings == [
        "command line: configuration key 'replica.lag.max.messages' has no effect: all replicas of a partition share "
        "one log"
    ]
    assert "unknown configuration key" in build("0.9", "replica.lag.max.messages=9").warnings[0]


def test_host_and_port_of_the_oldest_configurations_are_listeners() -> None:
    config = build("0.8.2", "host.name=127.0.0.2", "port=9095", "advertised.host.name=kafka.example")
    assert config["listeners"] == ["PLAINTEXT://127.0.0.2:9095"]
    assert config["advertised.listeners"] == ["PLAINTEXT://kafka.example:9095"]
    assert build("2.8", "port=9095")["listeners"] == ["PLAINTEXT://127.0.0.1:9095"]
    assert build("2.8", "port=9095", "listeners=PLAINTEXT://127.0.0.1:1")["listeners"] == ["PLAINTEXT://127.0.0.1:1"]
    assert build("3.0", "port=9095")["listeners"] == build("3.0")["listeners"]


def test_the_earlier_name_of_the_secret_of_tokens_counts_unless_the_other_is_given() -> None:
    assert build("1.1", "delegation.token.master.key=old")["delegation.token.secret.key"] == "old"
    both = ("delegation.token.master.key=old", "delegation.token.secret.key=new")
    assert build("2.8", *both)["delegation.token.secret.key"] == "new"


def test_messages_may_have_any_time_unless_a_difference_is_given() -> None:
    def told(world: World) -> int:
        message = Message(0, None, b"v", 1, world.broker.schedule.now_ms() + 7_200_000)
        code: int = put(world, encode([message]), version=2).error_code
        return code

    assert told(with_topic("0.10.2")) == 0
    assert told(with_topic("0.10.2", log_message_timestamp_difference_max_ms="3600000")) == Errors.INVALID_TIMESTAMP
    assert told(with_topic("3.9")) == 0


def test_keys_that_a_release_did_not_know_are_refused_for_topics() -> None:
    def created(release: str, key: str) -> int:
        c = m.CreateTopicsRequest
        config = c.CreatableTopicConfig(name=key, value="1048576")
        wanted = c.CreatableTopic(name="made", num_partitions=1, replication_factor=1, configs=[config])
        code: int = world_of(release).ask("CreateTopics", 0, c(topics=[wanted], timeout_ms=5000)).topics[0].error_code
        return code

    assert created("2.2", "max.compaction.lag.ms") == Errors.INVALID_CONFIG
    assert created("2.3", "max.compaction.lag.ms") == 0
    assert created("3.9", "message.timestamp.difference.max.ms") == 0


def test_what_can_be_changed_at_run_time_is_that_of_the_release() -> None:
    assert dynamic_broker_keys("1.0") == frozenset()
    r = m.IncrementalAlterConfigsRequest
    for release, code in (("2.8", Errors.INVALID_REQUEST), ("3.9", 0)):
        change = r.AlterableConfig(name="producer.id.expiration.ms", config_operation=0, value="86400001")
        asked = r(resources=[r.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])])
        assert world_of(release).ask("IncrementalAlterConfigs", 1, asked).responses[0].error_code == code


def test_a_deletion_times_out_where_topics_may_not_be_deleted() -> None:
    def deleted(world: World, timeout_ms: int) -> dict[str, int]:
        r = m.DeleteTopicsRequest
        found = world.ask("DeleteTopics", 0, r(topic_names=["t", "absent"], timeout_ms=timeout_ms)).responses
        return {one.name: one.error_code for one in found}

    refused = {"t": Errors.REQUEST_TIMED_OUT, "absent": Errors.UNKNOWN_TOPIC_OR_PARTITION}
    for world in (with_topic("0.10.2"), with_topic("1.1", delete_topic_enable="false")):
        before = world.broker.schedule.now_ms()
        assert deleted(world, 1500) == refused
        assert world.broker.schedule.now_ms() - before == 1500
        assert deleted(world, 0) == refused
        assert "t" in world.broker.image.topics
    assert deleted(with_topic("0.10.2", delete_topic_enable="true"), 1500) == {**refused, "t": 0}
    assert deleted(with_topic("1.0"), 1500) == {**refused, "t": 0}
    assert deleted(with_topic("2.1", delete_topic_enable="false"), 1500)["t"] == Errors.INVALID_REQUEST


def test_a_client_may_replace_the_configuration_of_all_brokers() -> None:
    """Before 4.0 `min.insync.replicas` of all brokers needs no value; the broker's own is in force then."""
    w = world_of("1.1")
    r = m.AlterConfigsRequest
    for values in ({"min.insync.replicas": "2", "log.retention.ms": "5000"}, {"log.retention.ms": "6000"}, {}):
        config = [r.AlterableConfig(name=name, value=value) for name, value in values.items()]
        asked = r(resources=[r.AlterConfigsResource(resource_type=4, resource_name="", configs=config)])
        assert not w.ask("AlterConfigs", 0, asked).responses[0].error_code
        found = w.broker.image.config_of(4, "")
        assert found == {"min.insync.replicas": "1", **values}


# bounds: those of today are higher (KIP-1030)


@pytest.mark.parametrize(
    ("key", "lowest"),
    [
        ("log.segment.bytes", {"0.8.2": 14, "3.9": 14, "4.0": 1 << 20, "4.4": 1 << 20}),
        ("ottla.node.1.log.segment.bytes", {"0.8.2": 14, "3.9": 14, "4.0": 1 << 20, "4.4": 1 << 20}),
        ("metadata.log.segment.bytes", {"3.0": 12, "4.0": 12, "4.1": 8 << 20, "4.4": 8 << 20}),
        ("max.connections.per.ip", {"0.8.2": 1, "1.1": 1}),
        ("remote.log.manager.expiration.thread.pool.size", {"4.0": 1, "4.4": 1}),
    ],
)
def test_a_value_of_the_configuration_has_the_bounds_of_the_release(key: str, lowest: dict[str, int]) -> None:
    for release, value in lowest.items():
        assert build(release, f"{key}={value}").given[key] == str(value)
        with pytest.raises(ConfigError, match=rf"Value must be at least {value}$"):
            build(release, f"{key}={value - 1}")


def test_a_value_of_a_topic_has_the_bounds_of_the_release() -> None:
    for key, lowest in (
        ("segment.bytes", {"0.8.2": 14, "3.9": 14, "4.0": 14, "4.1": 1 << 20}),
        ("segment.ms", {"0.8.2": 0, "1.1": 0, "2.0": 1}),
        ("segment.index.bytes", {"0.8.2": 0, "3.2": 0, "3.3": 4}),
        ("flush.messages", {"0.8.2": 0, "3.2": 0, "3.3": 1}),
    ):
        for release, value in lowest.items():
            assert keys("topic", release)[key].parse(str(value)) == value
            with pytest.raises(ConfigInvalid, match=rf"Value must be at least {value}$"):
                keys("topic", release)[key].parse(str(value - 1))


def alter(world: World, kind: int, name: str, key: str, value: str) -> int:
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=key, config_operation=0, value=value)
    asked = r(resources=[r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])])
    code: int = world.ask("IncrementalAlterConfigs", 1, asked).responses[0].error_code
    return code


def test_a_dynamic_value_has_the_bounds_of_the_release() -> None:
    assert alter(with_topic("4.0"), BROKER, "", "log.segment.bytes", "200") == Errors.INVALID_REQUEST
    world = with_topic("3.9")
    assert alter(world, BROKER, "", "log.segment.bytes", "13") == Errors.INVALID_REQUEST
    assert alter(world, BROKER, "", "log.segment.bytes", "200") == 0
    assert world.broker.settings.value("log.segment.bytes") == 200
    for value in (b"a", b"b"):
        assert put(world, encode([Message(0, None, value * 90, 1)]), version=2).error_code == 0
    assert len([one for one in world.files.names("/data/t-0") if one.endswith(".log")]) == 2


def test_a_value_that_the_release_in_force_refuses_has_no_effect() -> None:
    """It was given while an earlier one was emulated."""
    before = with_topic("3.9", log_roll_ms="5000")
    for kind, name, key in ((BROKER, "", "log.segment.bytes"), (TOPIC, "t", "segment.bytes")):
        assert alter(before, kind, name, key, "200") == 0
    world = World(before.files, log_roll_ms="5000")
    assert world.broker.settings.value("log.segment.bytes") == 1 << 30
    values = world.broker.settings.of_topic("t")
    assert (values["segment.bytes"], values["segment.ms"]) == (1 << 30, 5000)
    assert alter(world, BROKER, "", "log.retention.ms", "6000") == 0
