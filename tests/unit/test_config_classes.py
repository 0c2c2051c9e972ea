"""Each of Kafka's keys without an effect warns at start when it is set, and each that can only have its default is
refused: asked of the configuration with one key after another.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.broker.config import sources
from ottla.broker.config.checks import CLASSES, DEFAULT_ONLY
from ottla.broker.config.config import Config, ConfigError
from ottla.broker.config.effects import REQUIRED, without_effect
from ottla.protocol.config_def import ConfigInvalid, ConfigKey, keys

VALUES = {
    "BOOLEAN": ("true", "false"),
    "INT": ("1", "2", "100", "100000000"),
    "LONG": ("1", "2", "100", "1000000000"),
    "SHORT": ("1", "2"),
    "DOUBLE": ("0.1", "0.7", "1.5"),
    "STRING": ("x", "RS256", "ES256"),
    "LIST": ("x", "*"),
    "CLASS": ("org.example.Plug",),
    "PASSWORD": ("x",),
}
SILENT = [name for name in keys("broker") if without_effect(name) is not None and name not in REQUIRED]


def other_values(key: ConfigKey) -> Iterator[str]:
    """Yields values that are valid for the key alone and are not its default."""
    for text in VALUES[key.type]:
        try:
            if key.parse(text) != key.parse(key.default):
                yield text
        except ConfigInvalid:
            continue


def configured(name: str, text: str) -> Config:
    return sources.build(sources.from_arguments([f"{name}={text}"]))


@pytest.mark.long
@pytest.mark.parametrize("name", SILENT)
def test_a_key_without_effect_warns_with_the_reason(name: str) -> None:
    if name == "early.start.listeners":
        taken = [configured(name, "PLAINTEXT")]
    elif name == "metrics.recording.level":
        taken = [configured(name, "DEBUG")]
    else:
        taken = []
        for text in other_values(keys("broker")[name]):
            try:
                taken.append(configured(name, text))
            except ConfigError:  # together with the other keys
                continue
    assert taken, "a value that is not the default"
    for config in taken:
        assert [line for line in config.warnings if f"{name!r} has no effect: {without_effect(name)}" in line]


@pytest.mark.long
@pytest.mark.parametrize("name", SILENT)
def test_the_default_of_a_key_without_effect_warns_of_nothing(name: str) -> None:
    default = keys("broker")[name].default
    if default is not None:
        assert not [line for line in configured(name, default).warnings if "has no effect" in line]


@pytest.mark.parametrize(("name", "text"), list(zip(REQUIRED, ("localhost:9093", "1@localhost:9093"), strict=True)))
def test_a_key_that_kafka_requires_does_not_warn(name: str, text: str) -> None:
    assert without_effect(name) is not None
    assert configured(name, text).warnings == []


@pytest.mark.parametrize("name", DEFAULT_ONLY)
def test_a_key_that_can_only_have_its_default_is_refused_with_another(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        configured(name, "org.example.Plug")


@pytest.mark.parametrize("name", CLASSES)
def test_a_key_takes_kafkas_classes_and_no_other(name: str) -> None:
    for known in filter(None, CLASSES[name][0]):
        assert configured(name, known)[name] == known
    with pytest.raises(ConfigError, match=f"Invalid value org.example.Plug for configuration {name}: "):
        configured(name, "org.example.Plug")


@pytest.mark.parametrize(
    ("name", "known"), [("group.share.assignors", "simple"), ("group.streams.assignors", "sticky")]
)
def test_a_group_takes_kafkas_assignor_and_no_other(name: str, known: str) -> None:
    assert configured(name, known)[name] == [known]
    with pytest.raises(ConfigError, match=f"Invalid value org.example.Plug for configuration {name}: "):
        configured(name, "org.example.Plug")
