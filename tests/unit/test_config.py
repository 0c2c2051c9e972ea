"""Every value of a configuration is checked before anything is opened, as Kafka checks it; what it says of other
keys.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.config import config, sources
from ottla.broker.config.secrets import is_secret
from ottla.broker.peer import SecurityProtocol
from ottla.coordinator.metadata import configs
from ottla.protocol.config_def import ConfigInvalid, keys
from ottla.protocol.errors import ApiError

from ..oracle.config_cases import SECURITY, cases, name_of, recorded

BASE = {
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
}

STRICTER = (
    "authorizer.class.name",  # Kafka looks for these classes later in its start, and refuses them then
    "group.share.dlq.manager.class.name",
    "group.share.persister.class.name",
    "replica.selector.class",
    "metrics.recording.level",
    "config.providers",  # Kafka has some
)
LOOSER = (
    "controller.listener.names",  # no controller listener is served
    "controller.quorum.bootstrap.servers=",  # and no quorum is needed
    "process.roles=broker",
    "group.consumer.max.assignment.interval.ms",  # our own default of the interval is 0
    "group.share.max.assignment.interval.ms",
    "group.streams.max.assignment.interval.ms",
    *(
        f"{name}=no.such.Class"
        for name, key in keys("broker").items()
        if key.type == "CLASS" and name.startswith(("sasl.", "ssl."))
    ),
    *(f"{name}=" for name, key in keys("broker").items() if key.type == "CLASS" and name.startswith(("sasl.", "ssl."))),
)


class _Defaults:
    def broker_value(self, name: str) -> Any:
        key = keys("broker")[name]
        return key.parse(key.default)


class _Controller:
    defaults = _Defaults()


def refused(case: dict[str, Any]) -> str | None:
    """What ottla says of a case, or None where it takes the values."""
    controller: Any = _Controller()
    try:
        if case["kind"] == "broker":
            sources.build(sources.from_arguments(f"{k}={v}" for k, v in {**BASE, **case["settings"]}.items()))
        elif case["kind"] == "topic":
            configs.check_topic_config(dict(case["own"]))
        else:
            configs.check_group_config(controller, dict(case["own"]))
    except config.ConfigError as error:
        return error.reason
    except ConfigInvalid as error:
        return str(error)
    except ApiError as error:
        return error.message_or_default
    return None


def build(*arguments: str) -> config.Config:
    return sources.build(sources.from_arguments(arguments))


@pytest.mark.long
def test_what_kafka_refuses_is_refused_and_what_it_takes_is_taken() -> None:
    kafka = recorded()
    wrong = []
    for case in cases():
        name, words = name_of(case), refused(case)
        excused = STRICTER if words is not None else LOOSER
        if (words is None) != (name not in kafka) and not name.removeprefix("broker ").startswith(excused):
            wrong.append((name, kafka.get(name), words))
    assert wrong == []


def test_values_of_topics_and_groups_are_refused_in_kafkas_words() -> None:
    kafka = recorded()
    asked = [
        case for case in cases() if case["kind"] != "broker" and "min.cleanable.dirty.ratio" not in case["own"]
    ]  # Java writes doubles otherwise
    wrong = [(name_of(case), kafka.get(name_of(case)), refused(case)) for case in asked]
    assert [one for one in wrong if one[1] != one[2]] == []


def test_listeners_and_security_protocols_are_refused_in_kafkas_words() -> None:
    kafka = recorded()
    asked: list[dict[str, Any]] = [{"kind": "broker", "settings": settings} for settings in SECURITY]
    wrong = []
    for case in asked:
        theirs, ours = kafka.get(name_of(case)), refused(case)
        if theirs is not None and theirs.removeprefix("requirement failed: ") != ours:
            wrong.append((name_of(case), theirs, ours))
    assert [one for one in wrong if "begin 0, end -1" not in one[1]] == []  # words of a Java exception


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["offsets.topic.compression.codec=9"],
            "Unknown compression type id: 9 (found offsets.topic.compression.codec=9)",
        ),
        (["listeners=PLAINTEXT://127.0.0.1:99999"], "the port of PLAINTEXT://127.0.0.1:99999 is greater than 65535"),
        (["ottla.lab.port=99999"], "Value must be no more than 65535"),
        (["log.dirs="], "Configuration 'log.dirs' must not be empty"),
        (["group.consumer.assignors=nonsense"], "'nonsense' is neither uniform, range nor module:function"),
        (["group.consumer.assignors=no_such_module:assign"], "no_such_module"),
        (["group.consumer.migration.policy=sometimes"], "String must be one of (case insensitive): DISABLED"),
        (["group.share.persister.class.name=x"], "Unknown persister specified"),
        (
            ["authorizer.class.name=kafka.security.authorizer.AclAuthorizer"],
            "it has Kafka's org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ),
        (["ottla.high.watermark=nonsense"], "ottla.high.watermark: 'nonsense' is not a policy"),
        (["broker.id=-1"], "Missing configuration `node.id`"),
        (["process.roles=controller"], "ottla is broker and controller in one process"),
        (
            ["group.share.max.record.lock.duration.ms=40000", "group.share.record.lock.duration.ms=50000"],
            "found group.share.max.record.lock.duration.ms=40000, group.share.record.lock.duration.ms=50000",
        ),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_was_found(arguments: list[str], words: str) -> None:
    with pytest.raises(config.ConfigError) as refusal:
        build(*arguments)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("command line: ")


@pytest.mark.parametrize(
    ("argument", "warning"),
    [
        (
            "log.retension.ms=1",
            "unknown configuration key 'log.retension.ms' (did you mean 'log.retention.ms'?); ignored",
        ),
        (
            "group.coordinator.thread=1",
            "unknown configuration key 'group.coordinator.thread' (did you mean 'group.coordinator.threads'?); ignored",
        ),
        ("ottla.lab.prot=1", "unknown configuration key 'ottla.lab.prot' (did you mean 'ottla.lab.port'?); ignored"),
        ("something.else=1", "unknown configuration key 'something.else'; ignored"),
        ("listener.name.a.nonsense=1", "unknown configuration key 'listener.name.a.nonsense'; ignored"),
        (
            "num.io.threads=9",
            "configuration key 'num.io.threads' has no effect: ottla has no such thread pool, queue or buffer",
        ),
        (
            "ssl.provider=secret",
            "configuration key 'ssl.provider' has no effect: OpenSSL takes the place of Java's providers",
        ),
    ],
)
def test_a_key_that_is_unknown_or_has_no_effect_warns(argument: str, warning: str) -> None:
    assert build(argument).warnings == [f"command line: {warning}"]


@pytest.mark.parametrize(("release", "left"), [("4.4", ["delete"]), ("4.2", ["delete"]), ("4.1", ["delete", "delete"])])
def test_a_list_loses_what_is_repeated_with_kafkas_warning(release: str, left: list[str]) -> None:
    found = build(
        "log.cleanup.policy=delete,delete", "ottla.nodes=2", "ottla.nodes.racks=a,a", f"ottla.emulate={release}"
    )
    warning = (
        'command line: Configuration key "log.cleanup.policy" contains duplicate values. Duplicates will be removed. '
        "The original value is: [delete, delete], the updated value is: [delete]"
    )
    assert found["log.cleanup.policy"] == left
    assert (warning in found.warnings) == (len(left) == 1)
    assert found["ottla.nodes.racks"] == ["a", "a"]


@pytest.mark.parametrize(
    "argument",
    [
        "num.io.threads=8",  # Kafka's default
        "log.retention.ms=1000",
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config=x",
        "listener.name.plaintext.ssl.keystore.location=x",
        "controller.quorum.bootstrap.servers=127.0.0.1:9093",
    ],
)
def test_a_key_that_has_an_effect_or_kafkas_default_does_not_warn(argument: str) -> None:
    assert build(argument).warnings == []


@pytest.mark.parametrize(("release", "is_used"), [("0.8.2", True), ("3.9", True), ("4.0", False), ("4.4", False)])
def test_zookeeper_is_for_releases_that_knew_it(release: str, is_used: bool) -> None:
    config = build("zookeeper.connect=127.0.0.1:2181", f"ottla.emulate={release}")
    assert config.uses_zookeeper is is_used
    assert any("Kafka 4.0 and later have no ZooKeeper" in one for one in config.warnings) is not is_used
    assert not build(f"ottla.emulate={release}").uses_zookeeper


def test_a_key_of_a_listener_overrides_the_key_of_all_listeners() -> None:
    both = build("ssl.client.auth=required", "listener.name.inside.ssl.client.auth=none")
    assert [both.of_listener(name)["ssl.client.auth"] for name in ("INSIDE", "OUTSIDE")] == ["none", "required"]
    assert [both.of_listener(name).own("ssl.client.auth") for name in ("INSIDE", "OUTSIDE")] == ["none", None]


def test_a_key_of_a_mechanism_is_read_only_with_the_listeners_prefix() -> None:
    given = build(
        "sasl.login.class=general",
        "plain.sasl.login.class=without a listener",
        "listener.name.inside.sasl.login.class=of the listener",
        "listener.name.inside.scram-sha-256.sasl.login.class=of the mechanism",
    )
    inside, outside = given.of_listener("INSIDE"), given.of_listener("OUTSIDE")
    assert inside.of_mechanism("SCRAM-SHA-256", "sasl.login.class") == "of the mechanism"
    assert inside.own("sasl.login.class", "SCRAM-SHA-256") == "of the mechanism"
    assert inside.of_mechanism("PLAIN", "sasl.login.class") == "of the listener"
    assert inside.own("sasl.login.class", "PLAIN") is None
    assert outside.of_mechanism("PLAIN", "sasl.login.class") == "general"


def test_a_listener_has_the_security_protocol_of_its_name_or_of_the_map() -> None:
    by_name = build("listeners=SASL_SSL://127.0.0.1:9092")
    mapped = build("listeners=A://127.0.0.1:9092", "listener.security.protocol.map=a:ssl")
    assert (by_name.security_protocol("SASL_SSL"), mapped.security_protocol("A")) == (
        SecurityProtocol.SASL_SSL,
        SecurityProtocol.SSL,
    )


def test_an_invalid_value_of_a_listener_is_refused_where_it_was_given() -> None:
    with pytest.raises(config.ConfigError) as refusal:
        build("listener.name.plaintext.ssl.client.auth=maybe")
    assert "Invalid value maybe for configuration ssl.client.auth: String must be one of" in str(refusal.value)
    build("listener.name.other.ssl.client.auth=maybe")  # no listener has this name


def test_of_the_keys_of_a_listener_only_passwords_are_secrets() -> None:
    names = ("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key", "plain.sasl.jaas.config", "unknown")
    assert [is_secret(f"listener.name.a.{name}") for name in names] == [False, True, True, True, True]
    of_a_node = ("listeners", "max.connections", "ssl.key.password", "unknown")
    assert [is_secret(f"ottla.node.2.{name}") for name in of_a_node] == [False, False, True, True]


def test_an_advertised_port_of_zero_is_the_port_that_is_bound() -> None:
    assert [
        str(one)
        for one in build("listeners=PLAINTEXT://:9192", "advertised.listeners=plaintext://h:0").advertised.values()
    ] == ["PLAINTEXT://h:9192"]


@pytest.mark.parametrize("given", ["log.retention.ms=-5", "log.retention.ms= -1", "log.retention.minutes=-7"])
def test_a_negative_time_to_keep_records_is_no_limit(given: str) -> None:
    assert build(given).topic_defaults()["retention.ms"] == "-1"
