"""Throttle times, against what Kafka's own quota managers said of random limits and uses, and rule by rule."""

from __future__ import annotations

import math

import pytest
from ottla.coordinator.quota import clients
from ottla.coordinator.quota.clients import INACTIVE_MS, MutationQuota, RateQuota
from ottla.coordinator.quota.limits import DEFAULT, Entity, Limits, Name, Tags
from ottla.coordinator.quota.rates import THROTTLE_MS_MAX, Average, Windows

from ..oracle.quota_cases import WORLDS, Limit, Use, World, recorded, world
from ..support.seeds import spans

ELEVEN = Windows(11, 1000)


def named(name: str | None) -> Name:
    return DEFAULT if name == "" else name


def answers(one: World) -> str:
    windows = Windows(one.samples, one.seconds * 1000)
    quota = MutationQuota(windows, Limits()) if one.of_mutations else RateQuota(windows, Limits())
    words = []
    for event in one.events:
        if isinstance(event, Limit):
            quota.limits.put(Entity(named(event.user), named(event.client_id)), event.bound)
        else:
            words.append(answer(quota, event))
    return " ".join(words)


def answer(quota: RateQuota | MutationQuota, use: Use) -> str:
    if isinstance(quota, RateQuota):
        return str(quota.record(use.user, use.client_id, use.value, use.at_ms))
    throttle_ms = quota.take(use.user, use.client_id, use.value, use.at_ms, use.is_strict)
    return f"{throttle_ms or 0}{'!' if use.is_strict and throttle_ms is not None else ''}"


@pytest.mark.parametrize("part", spans(0, WORLDS, quick=100, each=300))
def test_throttle_times_are_kafkas(part: range) -> None:
    said = recorded()
    assert len(said) == WORLDS
    assert sum(word != "0" for seed in part for word in said[seed].split()) > 10 * len(part)
    for seed in part:
        assert answers(world(seed)) == said[seed], f"world {seed}"


def test_a_client_gets_the_most_specific_limit() -> None:
    """The order of KIP-55, from a limit of exactly this user and client id to the default of client ids."""
    entities = [
        Entity("u", "c"),
        Entity("u", DEFAULT),
        Entity("u", None),
        Entity(DEFAULT, "c"),
        Entity(DEFAULT, DEFAULT),
        Entity(DEFAULT, None),
        Entity(None, "c"),
        Entity(None, DEFAULT),
    ]
    quota = RateQuota(ELEVEN, Limits())
    for bound, entity in enumerate(entities, 1):
        quota.limits.put(entity, bound)
    for bound, entity in enumerate(entities, 1):
        assert quota.limits.bound(quota.limits.tags("u", "c")) == bound
        quota.limits.put(entity, None)
    assert not quota.limits.are_used


def test_clients_of_a_user_share_its_rate_and_those_of_a_pair_do_not() -> None:
    shared, single = RateQuota(ELEVEN, Limits()), RateQuota(ELEVEN, Limits())
    shared.limits.put(Entity("u", None), 10)
    single.limits.put(Entity("u", DEFAULT), 10)
    for quota, throttled in ((shared, True), (single, False)):
        assert quota.record("u", "a", 100, 0) == 0
        assert bool(quota.record("u", "b", 100, 1)) is throttled


def test_the_throttle_time_of_a_quota_may_be_bounded() -> None:
    free, bounded = RateQuota(ELEVEN, Limits()), RateQuota(ELEVEN, Limits(), throttle_ms_max=1000)
    for quota, throttle_ms in ((free, 10_000), (bounded, 1000)):
        quota.limits.put(Entity("u", None), 10)
        assert quota.record("u", "", 200, 0) == throttle_ms


def test_what_is_taken_back_is_as_if_it_had_not_been() -> None:
    quota = RateQuota(ELEVEN, Limits())
    quota.limits.put(Entity("u", None), 10)
    assert quota.record("u", "", 200, 0) > 0
    quota.record_unchecked("u", "", -200, 0)
    assert quota.record("u", "", 1, 1) == 0
    assert quota.most("u", "") == 100


def test_a_bound_without_a_number_throttles_no_client() -> None:
    quota = RateQuota(ELEVEN, Limits())
    for bound in (math.nan, math.inf, 1e-300):
        quota.limits.put(Entity("u", None), bound)
        assert quota.record("u", "", 1e300, 0) in (0, THROTTLE_MS_MAX)


def test_sensors_are_few_and_forgotten_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "SENSORS_MAX", 3)
    quota = RateQuota(ELEVEN, Limits())
    quota.limits.put(Entity(None, DEFAULT), 10)
    for number in range(5):
        quota.record("", f"c{number}", 1, number)
    assert [tags for tags, _ in quota.sensors(5)] == [Tags("", f"c{number}") for number in (2, 3, 4)]
    assert [tags for tags, _ in quota.sensors(3 + INACTIVE_MS)] == [Tags("", "c3"), Tags("", "c4")]
    assert len(list(quota.sensors(3))) == 2


def test_the_mean_of_throttle_times_is_that_of_a_minute() -> None:
    mean = Average()
    assert math.isnan(mean.measure(0))
    mean.record(10, 0)
    mean.record(30, 1000)
    assert mean.measure(2000) == 20
    assert math.isnan(mean.measure(90_000))
