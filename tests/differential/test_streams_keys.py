"""Streams groups, told the same stories by ottla and by Apache Kafka: the broker's own delay, interval and least
session, which a group without its own configurations has.
"""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import (
    SETTINGS,
    beat,
    beats_until,
    becomes,
    configure,
    describe,
    given,
    join,
    part,
    same_records,
    source,
    tasks,
)

pytestmark = pytest.mark.slow

LEAST_SESSION_MS = 3000
kafka, ours, coordinators = own_brokers(
    {
        **SETTINGS,
        "group.streams.initial.rebalance.delay.ms": 1500,
        "group.streams.assignment.interval.ms": 3000,
        "group.streams.min.session.timeout.ms": LEAST_SESSION_MS,
        "group.streams.min.heartbeat.interval.ms": 100,
        "group.streams.heartbeat.interval.ms": 100,
    }
)


def test_the_first_assignment_comes_after_the_brokers_delay(pair: Pair) -> None:
    """A member that joins meanwhile has its part of it at once."""
    source(pair, "kf", 2)
    join(pair, "kf", part("0", "kf"))
    join(pair, "kf", part("0", "kf"), member="m2")
    describe(pair, "kf")
    beats_until(pair, "kf", 1, given)
    beat(pair, "kf", 1, "m2")
    describe(pair, "kf")
    same_records(pair, "kf")


def test_a_group_has_a_delay_of_its_own(pair: Pair) -> None:
    source(pair, "ko", 2)
    configure(pair, "ko", streams_initial_rebalance_delay_ms="0")
    assert join(pair, "ko", part("0", "ko")).active_tasks
    describe(pair, "ko")


def test_assignments_have_the_brokers_interval_between_them(pair: Pair) -> None:
    source(pair, "ki", 2)
    configure(pair, "ki", streams_initial_rebalance_delay_ms="0")
    join(pair, "ki", part("0", "ki"))
    epoch = join(pair, "ki", part("0", "ki"), member="m2").member_epoch
    describe(pair, "ki")
    beats_until(pair, "ki", 2, given, active_tasks=tasks(s0=[0, 1]), standby_tasks=[], warmup_tasks=[])
    beat(pair, "ki", 2, has=tasks(s0=[0]))
    beats_until(pair, "ki", epoch, given, "m2")
    describe(pair, "ki")
    same_records(pair, "ki")


def test_a_group_has_an_interval_of_its_own(pair: Pair) -> None:
    source(pair, "kn", 2)
    configure(pair, "kn", streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0")
    join(pair, "kn", part("0", "kn"))
    join(pair, "kn", part("0", "kn"), member="m2")
    assert len(beat(pair, "kn", 2, has=tasks(s0=[0, 1])).active_tasks[0].partitions) == 1
    describe(pair, "kn")


@pytest.mark.parametrize("session_ms", [LEAST_SESSION_MS - 1, LEAST_SESSION_MS, 60_000, 60_001])
def test_the_session_of_a_group_has_the_brokers_bounds(pair: Pair, session_ms: int) -> None:
    r = m.IncrementalAlterConfigsRequest
    config = r.AlterableConfig(name="streams.session.timeout.ms", config_operation=0, value=str(session_ms))
    resource = r.AlterConfigsResource(resource_type=32, resource_name=f"kb{session_ms}", configs=[config])
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
    refused = not LEAST_SESSION_MS <= session_ms <= 60_000
    assert pair.errors("IncrementalAlterConfigs") == {"INVALID_CONFIG" if refused else "NONE"}


def test_a_member_is_silent_for_the_least_session(pair: Pair) -> None:
    source(pair, "ks", 2)
    configure(pair, "ks", streams_session_timeout_ms=str(LEAST_SESSION_MS), streams_initial_rebalance_delay_ms="0")
    join(pair, "ks", part("0", "ks"))
    becomes(pair, "ks", "Empty")
    beat(pair, "ks", 2)
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE", "UNKNOWN_MEMBER_ID"}
