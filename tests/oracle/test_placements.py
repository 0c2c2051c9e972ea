"""Kafka's own controller places the partitions of 10,000 random clusters as ottla's does, with the same chance."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.coordinator.metadata.controller import Controller, Defaults
from ottla.coordinator.metadata.registration import Broker
from ottla.coordinator.metadata.topics import unplaceable
from ottla.coordinator.timeline import Timeline

from ..support.steps import result_of
from .recorded_cases import words

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
CASES = 10_000


def case(seed: int) -> dict[str, Any]:
    """A cluster and a topic, as the program is asked about them."""
    chance = random.Random(seed)
    count = chance.randint(1, 9)
    racks = chance.choice(([None], ["a", "b"], ["a", "b", None], ["c", "a", "b", "d"]))
    fenced = chance.choice((0, 0.3, 0.8))
    return {
        "brokers": [
            [node, chance.choice(racks), chance.random() < fenced] for node in chance.sample(range(1, 30), count)
        ],
        "partitions": chance.randint(1, 30),
        "factor": chance.randint(1, min(count + 1, 5)),
        "chance": chance.choice((0, chance.randint(1, 9), chance.randint(10, 10**6))),
    }


def placed(one: dict[str, Any]) -> str:
    """Where ottla's controller places the partitions, as the program writes it."""
    controller = Controller(Timeline(), Defaults(), bytes, lambda below: int(one["chance"]) % below)
    for node, rack, is_fenced in one["brokers"]:
        controller.state.apply(Broker(node, 1, bytes(16), (), rack, is_fenced, False, ()).record())
    refused = unplaceable(controller, one["factor"])
    if refused is not None:
        return refused
    found = result_of(controller.place(one["partitions"], one["factor"]))
    return ";".join(",".join(map(str, replicas)) for replicas in found)


def test_every_partition_is_placed_as_in_kafka() -> None:
    cases = [case(seed) for seed in range(CASES)]
    answers = words("Placements", cases)
    for seed, (one, answer) in enumerate(zip(cases, answers, strict=True)):
        assert placed(one) == answer, f"seed {seed}: {one}"
