"""Streams groups, told the same stories by ottla and by Apache Kafka: what happens when time passes.

A session and the time for giving up tasks are short here; what they lead to is awaited.
"""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import (
    SETTINGS,
    R,
    beat,
    beats_until,
    becomes,
    configure,
    describe,
    given,
    info,
    is_gone,
    join,
    part,
    same_records,
    source,
    tasks,
)

pytestmark = pytest.mark.slow


SHORT: dict[str, object] = {
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 100,
}
kafka, ours, coordinators = own_brokers({**SETTINGS, **SHORT})

SESSION_MS = "2500"


def two_members(pair: Pair, name: str, **more: Any) -> None:
    """A group in which both members have one of two tasks, at epoch 3."""
    source(pair, name, 2)
    parts = (part("0", name),)
    join(pair, name, *parts, **more)
    join(pair, name, *parts, member="m2", **more)
    beat(pair, name, 2, has=tasks(s0=[0, 1]))
    beat(pair, name, 2, has=tasks(s0=[0]))
    beat(pair, name, 3, "m2")
    beat(pair, name, 3, "m2", has=tasks(s0=[1]))


# sessions


def test_a_silent_member_is_thrown_out(pair: Pair) -> None:
    source(pair, "ws", 2)
    configure(pair, "ws", streams_session_timeout_ms=SESSION_MS)
    join(pair, "ws", part("0", "ws"))
    becomes(pair, "ws", "Empty")
    beat(pair, "ws", 2)
    beat(pair, "ws", -1)
    same_records(pair, "ws")
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE", "UNKNOWN_MEMBER_ID"}


def test_the_tasks_of_a_silent_member_go_to_others(pair: Pair) -> None:
    configure(pair, "wt", streams_session_timeout_ms=SESSION_MS)
    two_members(pair, "wt")
    beats_until(pair, "wt", 3, given)
    beat(pair, "wt", 4, has=tasks(s0=[0, 1]))
    beat(pair, "wt", 3, "m2")
    describe(pair, "wt")
    same_records(pair, "wt")


def test_a_static_member_that_does_not_come_back_is_thrown_out(pair: Pair) -> None:
    source(pair, "wi", 2)
    configure(pair, "wi", streams_session_timeout_ms=SESSION_MS)
    join(pair, "wi", part("0", "wi"), instance_id="i1")
    beat(pair, "wi", -2, instance_id="i1")
    describe(pair, "wi")
    becomes(pair, "wi", "Empty")
    join(pair, "wi", part("0", "wi"), member="m2", instance_id="i1")
    same_records(pair, "wi")


def test_the_tasks_of_a_static_member_go_to_others_when_its_session_ends(pair: Pair) -> None:
    source(pair, "wj", 2)
    configure(pair, "wj", streams_session_timeout_ms=SESSION_MS)
    join(pair, "wj", part("0", "wj"))
    join(pair, "wj", part("0", "wj"), member="m2", instance_id="i2")
    beat(pair, "wj", 2, has=tasks(s0=[0]))
    beat(pair, "wj", 3, "m2", instance_id="i2")
    beat(pair, "wj", -2, "m2", instance_id="i2")
    beat(pair, "wj", 3, has=tasks(s0=[0]))
    beats_until(pair, "wj", 3, given)
    describe(pair, "wj")
    same_records(pair, "wj")


def test_a_member_of_a_group_that_is_not_ready_is_thrown_out(pair: Pair) -> None:
    configure(pair, "wn", streams_session_timeout_ms=SESSION_MS)
    join(pair, "wn", part("0", "wn-missing"))
    becomes(pair, "wn", "Empty")
    same_records(pair, "wn")


def test_an_application_that_shuts_down_ends_with_its_last_member(pair: Pair) -> None:
    """A member that comes after the last one was thrown out does not have to shut down."""
    source(pair, "wd", 2)
    configure(pair, "wd", streams_session_timeout_ms=SESSION_MS)
    join(pair, "wd", part("0", "wd"))
    beat(pair, "wd", 2, shutdown_application=True)
    becomes(pair, "wd", "Empty")
    join(pair, "wd", part("0", "wd"), member="m2")
    same_records(pair, "wd")


def test_endpoints_of_a_silent_member_are_forgotten(pair: Pair) -> None:
    configure(pair, "we", streams_session_timeout_ms=SESSION_MS)
    two_members(pair, "we", user_endpoint=R.Endpoint(host="here", port=7))
    beat(pair, "we", 3, endpoint_information_epoch=0)
    beats_until(pair, "we", 3, given)
    beat(pair, "we", 4, has=tasks(s0=[0, 1]), endpoint_information_epoch=0)
    describe(pair, "we")


# tasks that are not given up


def test_who_keeps_tasks_too_long_is_thrown_out(pair: Pair) -> None:
    source(pair, "wr", 2)
    parts = (part("0", "wr"),)
    join(pair, "wr", *parts, rebalance_timeout_ms=300)
    join(pair, "wr", *parts, member="m2")
    beat(pair, "wr", 2, has=tasks(s0=[0, 1]))
    both = tasks(s0=[0, 1])
    kept: dict[str, Any] = {"active_tasks": both, "standby_tasks": [], "warmup_tasks": []}
    beats_until(pair, "wr", 2, is_gone, **kept)
    beat(pair, "wr", 2)
    beats_until(pair, "wr", 3, given, "m2")
    beat(pair, "wr", 4, "m2", has=tasks(s0=[0, 1]))
    describe(pair, "wr")
    same_records(pair, "wr")


def test_a_longer_time_for_giving_up_counts_from_then_on(pair: Pair) -> None:
    """A member that has more time by the time that it has to give up tasks is not thrown out."""
    source(pair, "wl", 2)
    parts = (part("0", "wl"),)
    join(pair, "wl", *parts, rebalance_timeout_ms=300)
    beat(pair, "wl", 2, rebalance_timeout_ms=60_000)
    join(pair, "wl", *parts, member="m2")
    join(pair, "wl-short", *parts, rebalance_timeout_ms=300)
    join(pair, "wl-short", *parts, member="m2")
    beat(pair, "wl", 3, has=tasks(s0=[0, 1]))
    beat(pair, "wl-short", 2, has=tasks(s0=[0, 1]))
    both = tasks(s0=[0, 1])
    beats_until(pair, "wl-short", 2, is_gone, active_tasks=both, standby_tasks=[], warmup_tasks=[])
    beat(pair, "wl", 3, has=both)
    describe(pair, "wl")
    same_records(pair, "wl")


def test_standby_tasks_are_not_waited_for(pair: Pair) -> None:
    """Only active tasks block others; copies are given up with the next heartbeat."""
    for name in ("wc", "wc-log"):
        source(pair, name, 2)
    configure(pair, "wc", streams_num_standby_replicas="1")
    parts = (part("0", "wc", changelogs=[info("wc-log")]),)
    join(pair, "wc", *parts)
    join(pair, "wc", *parts, member="m2")
    beat(pair, "wc", 2, has=tasks(s0=[0, 1]))
    beat(pair, "wc", 2, has=tasks(s0=[0]))
    beats_until(pair, "wc", 3, given, "m2")
    join(pair, "wc", *parts, member="m3")
    for member in ("m1", "m2"):
        beat(pair, "wc", 3, member, has=[])
    describe(pair, "wc")
    same_records(pair, "wc")


# assignments that wait


def test_the_first_assignment_comes_after_a_delay(pair: Pair) -> None:
    source(pair, "wf", 2)
    configure(pair, "wf", streams_initial_rebalance_delay_ms="1500")
    join(pair, "wf", part("0", "wf"))
    join(pair, "wf", part("0", "wf"), member="m2")
    describe(pair, "wf")
    first = beats_until(pair, "wf", 1, given)
    assert first.member_epoch > 1
    beat(pair, "wf", 1, "m2")
    beat(pair, "wf", 2, "m2")
    describe(pair, "wf")
    same_records(pair, "wf")


def test_an_empty_group_waits_again(pair: Pair) -> None:
    source(pair, "wg", 2)
    configure(pair, "wg", streams_initial_rebalance_delay_ms="1000")
    join(pair, "wg", part("0", "wg"))
    beats_until(pair, "wg", 1, given)
    beat(pair, "wg", -1)
    epoch = join(pair, "wg", part("0", "wg"), member="m2").member_epoch
    describe(pair, "wg")
    beats_until(pair, "wg", epoch, given, "m2")
    describe(pair, "wg")
    same_records(pair, "wg")


def test_a_member_that_leaves_while_the_group_waits_gets_nothing(pair: Pair) -> None:
    source(pair, "wh", 2)
    configure(pair, "wh", streams_initial_rebalance_delay_ms="1500")
    join(pair, "wh", part("0", "wh"))
    join(pair, "wh", part("0", "wh"), member="m2")
    beat(pair, "wh", -1)
    describe(pair, "wh")
    beats_until(pair, "wh", 1, given, "m2")
    describe(pair, "wh")
    same_records(pair, "wh")


def test_assignments_have_an_interval_between_them(pair: Pair) -> None:
    source(pair, "wa", 2)
    join(pair, "wa", part("0", "wa"))
    configure(pair, "wa", streams_assignment_interval_ms="3000")
    epoch = join(pair, "wa", part("0", "wa"), member="m2").member_epoch
    describe(pair, "wa")
    beats_until(pair, "wa", 2, given, active_tasks=tasks(s0=[0, 1]), standby_tasks=[], warmup_tasks=[])
    describe(pair, "wa")
    beat(pair, "wa", 2, has=tasks(s0=[0]))
    beats_until(pair, "wa", epoch, given, "m2")
    describe(pair, "wa")
    same_records(pair, "wa")
