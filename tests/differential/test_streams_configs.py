"""Streams groups, told the same stories by ottla and by Apache Kafka: configurations of groups and of the broker."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.config_def import keys

from ..support.differential import Pair, own_brokers
from ..support.stories.core import describe
from ..support.stories.streams import SETTINGS, R, beat, configure, join, part, source
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow


INTERVALS = {f"group.{kind}.assignment.interval.ms": 1000 for kind in ("consumer", "share")}  # ours are others
kafka, ours, coordinators = own_brokers({**SETTINGS, **INTERVALS})

BROKER, GROUP = 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
KEYS = [name for name in keys("group") if name.startswith("streams.")]
BROKER_KEYS = [name for name in keys("broker") if name.startswith("group.streams.")]
NUMBERS = ("-1", "0", "1", " 7 ", "999", "1000", "4999", "5000", "14999", "15000", "15001", "44999", "45000")
MORE_NUMBERS = ("59999", "60000", "60001", "2147483647", "2147483648", "9223372036854775808", "1.5", "+5", "1_0")
WORDS = ("", " ", ",", "x", "true", " TRUE ", "sticky", " sticky ", "Sticky", "sticky,sticky", "range", "none")
LISTS = ("zone", " zone , cluster ", "zone,zone", "zone, zone", "a,,b", "a,", ",a", "zone,ZONE", "a b", "a\tb", "ä")
# what tells that a change has arrived: a key of another kind of groups, which is set beside
MARKER = "share.record.lock.duration.ms"
marks = count(20_000)

Operation = tuple[str, int, str | None]


def alter(pair: Pair, group: str, *operations: Operation, version: int = 1, validate_only: bool = False) -> bool:
    """Changes the configuration of a group, and waits until both brokers show it. Returns whether it was changed."""
    mark = str(next(marks))
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=a, config_operation=b, value=c) for a, b, c in (*operations, (MARKER, SET, mark))]
    resource = r.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
    reply, _ = pair.ask("IncrementalAlterConfigs", version, r(resources=[resource], validate_only=validate_only))
    if reply.responses[0].error_code or validate_only:
        return False
    seen(pair, group, mark)
    return True


def seen(pair: Pair, group: str, mark: str) -> None:
    pair.until(
        "DescribeConfigs",
        4,
        describe(group, GROUP, [MARKER]),
        lambda reply: bool(reply.results[0].configs[0].value == mark),
    )


def shown(pair: Pair, name: str, kind: int = GROUP, only: list[str] | None = None, version: int = 4) -> None:
    pair.ask("DescribeConfigs", version, describe(name, kind, only, include_synonyms=True))


# configurations of groups


@pytest.mark.parametrize("key", KEYS)
def test_values_of_a_groups_key(pair: Pair, key: str) -> None:
    """What is taken and what is refused, and how it is shown."""
    name = f"ck-{key}"
    shown(pair, name, only=[key])
    for value in (*NUMBERS, *MORE_NUMBERS, *WORDS, *LISTS, None):
        alter(pair, name, (key, SET, value), validate_only=True)
        if alter(pair, name, (key, SET, value)):
            shown(pair, name, only=[key])
    for operation in (APPEND, SUBTRACT):
        for value in ("zone", "a,b", "", "sticky", "1"):
            if alter(pair, name, (key, operation, value)):
                shown(pair, name, only=[key])
    shown(pair, name)
    alter(pair, name, (key, DELETE, None))
    shown(pair, name)
    assert pair.errors("IncrementalAlterConfigs") >= {"INVALID_CONFIG", "NONE"}


TOGETHER: dict[str, tuple[tuple[Operation, ...], ...]] = {
    "session-and-heartbeat": (
        (("streams.heartbeat.interval.ms", SET, "5000"), ("streams.session.timeout.ms", SET, "5000")),
        (("streams.heartbeat.interval.ms", SET, "15000"), ("streams.session.timeout.ms", SET, "15000")),
        (("streams.heartbeat.interval.ms", SET, "15000"), ("streams.session.timeout.ms", SET, "15001")),
        (("streams.session.timeout.ms", SET, "15000"),),
        (("streams.heartbeat.interval.ms", SET, "14999"), ("streams.session.timeout.ms", SET, "15000")),
        (("streams.heartbeat.interval.ms", SET, "15000"),),
        (("streams.heartbeat.interval.ms", DELETE, None),),
        (("streams.session.timeout.ms", SET, "5000"),),
        (("streams.session.timeout.ms", SET, "5001"),),
        (("streams.session.timeout.ms", DELETE, None), ("streams.heartbeat.interval.ms", SET, "15000")),
    ),
    "a-session-below-the-brokers-heartbeat": (
        (("streams.session.timeout.ms", SET, "1000"),),
        (("streams.session.timeout.ms", SET, "4999"),),
        (("streams.session.timeout.ms", SET, "6000"),),
        (("streams.heartbeat.interval.ms", SET, "6000"),),
        (("streams.heartbeat.interval.ms", SET, "5999"),),
        (("streams.session.timeout.ms", DELETE, None),),
    ),
    "several-errors": (
        (("streams.session.timeout.ms", SET, "1"), ("streams.heartbeat.interval.ms", SET, "1")),
        (("streams.heartbeat.interval.ms", SET, "1"), ("streams.session.timeout.ms", SET, "1")),
        (("streams.num.standby.replicas", SET, "9"), ("streams.session.timeout.ms", SET, "1")),
        (("streams.rack.aware.assignment.tags", SET, "a,a"), ("streams.num.standby.replicas", SET, "9")),
        (("streams.assignor.name", SET, "x"), ("streams.rack.aware.assignment.tags", SET, "a,a")),
        (("streams.assignor.name", SET, "x"), ("streams.task.offset.interval.ms", SET, "1")),
        (("streams.num.warmup.replicas", SET, "99"), ("streams.num.standby.replicas", SET, "9")),
        (("streams.assignment.interval.ms", SET, "99999"), ("streams.heartbeat.interval.ms", SET, "99999")),
        (("consumer.session.timeout.ms", SET, "1"), ("streams.session.timeout.ms", SET, "1")),
        (("streams.session.timeout.ms", SET, "x"), ("no.such.key", SET, "1")),
        (("no.such.key", SET, "1"), ("streams.session.timeout.ms", SET, "x")),
    ),
    "one-key-twice": (
        (("streams.num.standby.replicas", SET, "1"), ("streams.num.standby.replicas", SET, "2")),
        (("streams.num.standby.replicas", SET, "1"), ("streams.num.standby.replicas", DELETE, None)),
        (
            ("streams.rack.aware.assignment.tags", APPEND, "a"),
            ("streams.rack.aware.assignment.tags", APPEND, "b"),
        ),
    ),
    "tags-are-appended-and-taken-away": (
        (("streams.rack.aware.assignment.tags", APPEND, "zone"),),
        (("streams.rack.aware.assignment.tags", APPEND, "zone,row"),),
        (("streams.rack.aware.assignment.tags", APPEND, " cluster , rack "),),
        (("streams.rack.aware.assignment.tags", SUBTRACT, " row , absent"),),
        (("streams.rack.aware.assignment.tags", SUBTRACT, "zone,cluster,rack"),),
        (("streams.rack.aware.assignment.tags", SUBTRACT, "zone"),),
        (("streams.rack.aware.assignment.tags", SET, " a , b "),),
        (("streams.rack.aware.assignment.tags", APPEND, "a"),),
        (("streams.rack.aware.assignment.tags", SUBTRACT, "b"),),
    ),
    "everything": (
        tuple(
            (name, SET, value)
            for name, value in (
                ("streams.acceptable.recovery.lag", " 5 "),
                ("streams.assignment.interval.ms", "2000"),
                ("streams.assignor.name", " sticky "),
                ("streams.assignor.offload.enable", " False "),
                ("streams.heartbeat.interval.ms", " 6000"),
                ("streams.initial.rebalance.delay.ms", "+7"),
                ("streams.num.standby.replicas", "2"),
                ("streams.num.warmup.replicas", "0003"),
                ("streams.rack.aware.assignment.tags", " zone , cluster "),
                ("streams.session.timeout.ms", "50000 "),
                ("streams.task.offset.interval.ms", "15000"),
            )
        ),
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_values_that_depend_on_each_other(pair: Pair, case: str) -> None:
    name = f"ct-{case}"
    for operations in TOGETHER[case]:
        alter(pair, name, *operations, validate_only=True)
        alter(pair, name, *operations)
        shown(pair, name)


@pytest.mark.parametrize("version", versions("AlterConfigs"))
def test_all_values_of_a_group_are_replaced(pair: Pair, version: int) -> None:
    name = f"cr-{version}"
    r = m.AlterConfigsRequest
    for values in (
        {"streams.num.standby.replicas": "1", "streams.rack.aware.assignment.tags": " a , b "},
        {"streams.num.standby.replicas": "3"},
        {"streams.session.timeout.ms": "5000", "streams.num.standby.replicas": "2"},
        {"streams.session.timeout.ms": "50000"},
        {"streams.no.such.key": "1"},
        {"streams.session.timeout.ms": None},
        {},
    ):
        mark = str(next(marks))
        configs = [r.AlterableConfig(name=key, value=value) for key, value in {**values, MARKER: mark}.items()]
        resource = r.AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
        pair.ask("AlterConfigs", version, r(resources=[resource], validate_only=True))
        reply, _ = pair.ask("AlterConfigs", version, r(resources=[resource]))
        if reply.responses[0].error_code == 0:
            seen(pair, name, mark)
        shown(pair, name)
    assert pair.errors("AlterConfigs") >= {"INVALID_CONFIG", "NONE"}


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
def test_configurations_are_described(pair: Pair, version: int) -> None:
    """Of a group that was never configured, of one that was, and with keys that are not those of groups."""
    name = f"cd-{version}"
    shown(pair, f"{name}-absent", version=version)
    alter(pair, name, ("streams.num.standby.replicas", SET, "1"), ("streams.num.warmup.replicas", SET, "1"))
    for only in (None, [], KEYS, BROKER_KEYS, ["streams.num.standby.replicas", "retention.ms"]):
        shown(pair, name, only=only, version=version)
        pair.ask("DescribeConfigs", version, describe(name, GROUP, only))
    shown(pair, "", version=version)


def test_configurations_of_no_group(pair: Pair) -> None:
    for version in versions("IncrementalAlterConfigs"):
        alter(pair, "", ("streams.num.standby.replicas", SET, "1"), version=version)
        alter(pair, " ", ("streams.num.standby.replicas", SET, "1"), version=version)
        alter(pair, "cn", ("group.streams.num.standby.replicas", SET, "1"), version=version)
        alter(pair, "cn", ("", SET, "1"), version=version)
        alter(pair, "cn", ("streams.num.standby.replicas", 9, "1"), version=version)
        alter(pair, "cn", version=version)
    shown(pair, " ")
    shown(pair, "cn")


def test_configurations_outlive_their_group(pair: Pair) -> None:
    source(pair, "cg", 2)
    alter(pair, "cg", ("streams.heartbeat.interval.ms", SET, "7000"))
    join(pair, "cg", part("0", "cg"))
    beat(pair, "cg", -1)
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["cg"]))
    shown(pair, "cg")
    join(pair, "cg", part("0", "cg"))


def test_a_groups_values_reach_its_members(pair: Pair) -> None:
    """With the next heartbeat; a value that is taken away is the broker's again."""
    source(pair, "cm", 2)
    join(pair, "cm", part("0", "cm"))
    for values in (
        {"streams_heartbeat_interval_ms": "6000", "streams_task_offset_interval_ms": "70000"},
        {"streams_acceptable_recovery_lag": "9223372036854775807"},
        {"streams_acceptable_recovery_lag": "2147483648", "streams_heartbeat_interval_ms": None},
        {"streams_acceptable_recovery_lag": None, "streams_task_offset_interval_ms": None},
    ):
        configure(pair, "cm", **values)
        for version in (0, 1):
            beat(pair, "cm", 2, version=version)


# configurations of the broker


@pytest.mark.parametrize("key", BROKER_KEYS)
def test_values_of_the_brokers_key(pair: Pair, key: str) -> None:
    """Most are read at start only. They are shown with where they come from."""
    shown(pair, "1", BROKER, [key])
    for name in ("", "1"):
        for value in ("-1", "0", "1", "5000", "15001", "x", "true", "sticky", "", None):
            for operation in (SET, APPEND):
                r = m.IncrementalAlterConfigsRequest
                config = r.AlterableConfig(name=key, config_operation=operation, value=value)
                resource = r.AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=[config])
                pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=True))


def test_the_brokers_assignment_interval_changes_while_it_runs(pair: Pair) -> None:
    """It is the one that groups without their own have, within its bounds."""
    key, own = "group.streams.assignment.interval.ms", "streams.assignment.interval.ms"
    source(pair, "ci", 2)
    join(pair, "ci", part("0", "ci"))

    def change(value: str | None) -> None:
        r = m.IncrementalAlterConfigsRequest
        config = r.AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        resource = r.AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
        reply, _ = pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
        if reply.responses[0].error_code == 0:
            pair.until("DescribeConfigs", 4, describe("1", BROKER, [key]), lambda reply: has(reply, value))
        shown(pair, "1", BROKER, [key])
        shown(pair, "ci", GROUP, [own])

    def has(reply: Any, value: str | None) -> bool:
        (found,) = reply.results[0].configs
        return bool(found.config_source != 3 if value is None else found.value == value)

    change("15000")
    change("15001")
    join(pair, "ci", part("0", "ci"), member="m2")
    beat(pair, "ci", 2, has=[])
    change(None)
    request = R(group_id="ci", member_id="m1", member_epoch=2)
    pair.until("StreamsGroupHeartbeat", 1, request, lambda reply: bool(reply.active_tasks))
