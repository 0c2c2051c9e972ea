"""Levels of loggers (KIP-412), asked of ottla and of Apache Kafka, compared field by field. Each has loggers that the
other has not; those of the stories both have.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.core import describe
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
LOGGER, TOPIC = 8, 2
SET, DELETE, APPEND, SUBTRACT = range(4)
SERVER, CLEANER = "kafka.server.KafkaApis", "org.apache.kafka.storage.internals.log.LogCleaner"
NAMES = ["root", "kafka.request.logger", SERVER, CLEANER]
Change = tuple[str, int, str | None]


def altered(*changes: Change, node: str = "1", validate_only: bool = False, kind: int = LOGGER) -> object:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=name, config_operation=what, value=value) for name, what, value in changes]
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=node, configs=configs)
    return r(resources=[resource], validate_only=validate_only)


def alter(pair: Pair, *changes: Change, node: str = "1", validate_only: bool = False) -> None:
    """Alters, and looks at the levels of all loggers of the story."""
    pair.ask("IncrementalAlterConfigs", 1, altered(*changes, node=node, validate_only=validate_only))
    for name in NAMES:
        pair.ask("DescribeConfigs", 4, describe("1", LOGGER, [name]))


def start(pair: Pair) -> None:
    """Both begin with the same levels."""
    deleted: list[Change] = [(name, DELETE, None) for name in NAMES[1:]]
    pair.ask("IncrementalAlterConfigs", 1, altered(("root", SET, "WARN"), *deleted))


def test_levels_are_described(pair: Pair) -> None:
    start(pair)
    for version in versions("DescribeConfigs"):
        for name in NAMES:
            pair.ask("DescribeConfigs", version, describe("1", LOGGER, [name], include_synonyms=True))
        pair.ask("DescribeConfigs", version, describe("1", LOGGER, ["no.such.logger", "kafka.server"]))
        pair.ask("DescribeConfigs", version, describe("1", LOGGER, ["root", "root"]))
        if version >= 3:
            pair.ask("DescribeConfigs", version, describe("1", LOGGER, ["root"], include_documentation=True))
    for node in ("", "01", "+1", "02", "2", "-1", "x", " 1", "1_0", "99999999999", "٣"):
        pair.ask("DescribeConfigs", 4, describe(node, LOGGER, ["root"]))
        pair.ask("DescribeConfigs", 4, describe(node, 4, ["no.such.key"]))
    assert pair.errors("DescribeConfigs") == {"NONE", "INVALID_REQUEST"}


def test_every_level_is_set_and_deleted(pair: Pair) -> None:
    start(pair)
    for level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
        alter(pair, (SERVER, SET, level))
        alter(pair, ("root", SET, level), (CLEANER, SET, level))
    for value in (None, "", "x"):
        alter(pair, (SERVER, SET, "DEBUG"))
        alter(pair, (SERVER, DELETE, value))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE"}


def test_wrong_changes_are_refused_and_change_nothing(pair: Pair) -> None:
    start(pair)
    for level in ("debug", "OFF", "ALL", "WARNING", "nope", "", " DEBUG ", "fatal", None):
        alter(pair, (CLEANER, SET, "ERROR"), (SERVER, SET, level))
    for operation in (APPEND, SUBTRACT, 4, 7, -1):
        alter(pair, (SERVER, operation, "INFO"))
    for name in ("no.such.logger", "", "ROOT", f"{SERVER}.", f"{SERVER}.x", "kafka.server", "org"):
        alter(pair, (name, SET, "INFO"), (SERVER, SET, "INFO"))
        alter(pair, (name, DELETE, None))
    alter(pair, ("root", DELETE, None))
    alter(pair, (SERVER, SET, "INFO"), (SERVER, DELETE, None))
    alter(pair, ("nope", APPEND, "bad"))
    alter(pair, ("nope", SET, "bad"))
    alter(pair)
    for node in ("", "2", "02", "-2", "+2", "x", " 1", "99999999999", "٣"):
        alter(pair, (SERVER, SET, "ERROR"), node=node)
        pair.ask("IncrementalAlterConfigs", 1, altered(("log.cleaner.threads", SET, "1"), node=node, kind=4))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST", "INVALID_CONFIG"}


def test_a_dry_run_changes_nothing(pair: Pair) -> None:
    start(pair)
    alter(pair, (SERVER, SET, "DEBUG"), validate_only=True)
    alter(pair, (SERVER, SET, "x"), validate_only=True)
    alter(pair, ("nope", SET, "DEBUG"), validate_only=True)
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_CONFIG"}


def test_loggers_stand_beside_other_resources(pair: Pair) -> None:
    start(pair)
    r = m.IncrementalAlterConfigsRequest
    levels = r.AlterConfigsResource(
        resource_type=LOGGER, resource_name="1", configs=[r.AlterableConfig(name=SERVER, value="TRACE")]
    )
    topic = r.AlterConfigsResource(
        resource_type=TOPIC, resource_name="absent", configs=[r.AlterableConfig(name="retention.ms", value="1")]
    )
    for version in versions("IncrementalAlterConfigs"):
        for resources in ([levels, topic], [topic, levels], [levels, levels], [levels, levels, topic]):
            pair.ask("IncrementalAlterConfigs", version, r(resources=resources))
    pair.ask("DescribeConfigs", 4, describe("1", LOGGER, [SERVER]))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_alter_configs_knows_no_loggers(pair: Pair) -> None:
    r = m.AlterConfigsRequest
    for version in versions("AlterConfigs"):
        for kind in (TOPIC, 4):
            configs = [r.AlterableConfig(name="retention.ms", value=value) for value in (None, "1")]
            resource = r.AlterConfigsResource(resource_type=kind, resource_name="1", configs=configs)
            pair.ask("AlterConfigs", version, r(resources=[resource]))
        for node in ("1", "2", "x", ""):
            for names in ((SERVER,), (), (SERVER, SERVER), ("nope",)):
                for value in ("INFO", "bad", None):
                    configs = [r.AlterableConfig(name=name, value=value) for name in names]
                    resource = r.AlterConfigsResource(resource_type=LOGGER, resource_name=node, configs=configs)
                    pair.ask("AlterConfigs", version, r(resources=[resource]))
    assert pair.errors("AlterConfigs") == {"INVALID_REQUEST"}
