"""Random limits and uses of clients; the throttle times of Kafka's own quota managers beside them.

python -m tests.oracle.quota_cases     asks Kafka's own classes again, and writes `recorded/quotas.txt`
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .recorded_cases import words

RECORDED = Path(__file__).parent / "recorded" / "quotas.txt"
WORLDS = 1000
EVENTS = 60
USERS, CLIENT_IDS, PAIRS = [(True, False)], [(False, True)], [(True, True)]  # the parts of entities


class Limit(NamedTuple):
    """A limit is set, or removed by None. A part of "" is the default; None, if the entity does not have the part."""

    user: str | None
    client_id: str | None
    bound: float | None


class Use(NamedTuple):
    """A client uses something at a time."""

    user: str
    client_id: str
    value: float
    at_ms: int
    is_strict: bool


@dataclass(frozen=True)
class World:
    samples: int
    seconds: int
    of_mutations: bool
    events: list[Limit | Use]


def world(seed: int) -> World:
    """Few users, client ids and bounds, so that limits meet; uses come close together and far apart."""
    chance = random.Random(seed)
    shapes = chance.choice(
        ([(True, False)], [(False, True)], [(True, True)], [(True, True), (True, False), (False, True)])
    )
    pause_ms = chance.choice((3, 100, 900, 4000))
    scale = chance.choice((1.0, 2.5, 1000.0))
    events: list[Limit | Use] = []
    now_ms = 0
    for _ in range(EVENTS):
        if chance.random() < 0.15 or not events:
            of_user, of_client_id = chance.choice(shapes)
            events.append(
                Limit(
                    chance.choice(("a", "b", "")) if of_user else None,
                    chance.choice(("x", "y", "")) if of_client_id else None,
                    None if chance.random() < 0.2 else scale * chance.choice((1, 2, 3, 7, 10)),
                )
            )
            continue
        now_ms += int(chance.expovariate(1 / pause_ms))
        value = chance.randint(0, 40) * scale
        events.append(Use(chance.choice("abc"), chance.choice("xyz"), value, now_ms, chance.random() < 0.6))
    return World(chance.choice((1, 2, 3, 11)), chance.choice((1, 2)), seed % 3 == 0, events)


def ask(worlds: list[World]) -> list[str]:
    """Kafka's answers: for each world a line with a word for each use."""
    cases = [
        {
            "samples": one.samples,
            "seconds": one.seconds,
            "mutations": one.of_mutations,
            "events": [["limit" if isinstance(event, Limit) else "use", *event] for event in one.events],
        }
        for one in worlds
    ]
    return words("Quotas", cases)


def recorded() -> list[str]:
    return RECORDED.read_text().splitlines()


def main() -> int:
    answers = ask([world(seed) for seed in range(WORLDS)])
    RECORDED.write_text("".join(f"{answer}\n" for answer in answers))
    throttled = sum(word != "0" for answer in answers for word in answer.split())
    print(f"{WORLDS} worlds, {throttled} of {sum(len(a.split()) for a in answers)} uses were throttled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
