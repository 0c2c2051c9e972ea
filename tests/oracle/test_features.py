"""Kafka's own controller answers 5,000 random updates of features as ottla's does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.coordinator.metadata.controller import Controller, Defaults
from ottla.coordinator.metadata.features import Update, update_features
from ottla.coordinator.timeline import Timeline
from ottla.protocol import messages
from ottla.protocol.errors import ApiError
from ottla.protocol.features import KRAFT_VERSION, METADATA_VERSION, supported

from .recorded_cases import words

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
CASES = 5_000
NODE = 1
FAILED = "The update failed for all features since the following feature had an error: "


def case(seed: int) -> dict[str, Any]:
    """The levels of a cluster, and the updates of a request, as the program is asked about them."""
    chance = random.Random(seed)
    names = list(supported())
    present = {name: chance.randint(low, high) for name, (low, high) in supported().items() if name != KRAFT_VERSION}
    wanted = chance.sample([*names, METADATA_VERSION, "none"], chance.randint(1, 3))
    return {
        "present": present,
        "updates": [[name, _level(chance, name), chance.choice((0, 1, 1, 2, 2, 3))] for name in dict.fromkeys(wanted)],
    }


def _level(chance: random.Random, name: str) -> int:
    low, high = supported().get(name, (0, 1))
    return chance.randint(max(low - 2, -1), high + 1)


def updated(one: dict[str, Any]) -> str:
    """How ottla's controller answers the updates, as the program writes it."""
    controller = Controller(Timeline(), Defaults(), bytes, lambda below: 0)
    for name, level in one["present"].items():
        controller.state.apply(messages.FeatureLevelRecord(name=name, feature_level=level))
    try:
        done = update_features(controller, NODE, [Update(*each) for each in one["updates"]], validate_only=False)
    except ApiError as error:
        return str(error).removeprefix(FAILED)
    records = [each for each in done.records if isinstance(each, messages.FeatureLevelRecord)]
    return ";".join(sorted(f"{each.name}={each.feature_level}" for each in records))


def test_every_update_is_answered_as_in_kafka() -> None:
    cases = [case(seed) for seed in range(CASES)]
    answers = words("FeatureUpdates", cases)
    found = [(seed, one, updated(one), answer) for seed, (one, answer) in enumerate(zip(cases, answers, strict=True))]
    differ = [one for one in found if one[2] != one[3]]
    assert not differ, f"{len(differ)} differ: {differ[:3]}"
