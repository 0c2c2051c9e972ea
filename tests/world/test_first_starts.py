"""The power fails during the first start of a broker: whatever of its files is left, the next start goes on."""

from __future__ import annotations

import random

import pytest

from ..support.memory_files import MemFiles
from ..support.topic_world import create
from ..support.world import World

SEEDS = 3


class _PowerFails(BaseException):
    """Nothing in a broker handles it."""


class _Failing(MemFiles):
    """The power fails at a write or sync."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def before_write(self, size: int) -> None:
        self._step()

    def before_sync(self) -> None:
        self._step()

    def _step(self) -> None:
        if not self.left:
            raise _PowerFails
        self.left -= 1


def _after_a_failure(steps: int, chance: random.Random) -> MemFiles | None:
    """Returns what is left if the power fails after so many writes and syncs; None if the start needs fewer."""
    files = _Failing(steps)
    try:
        World(files)
    except _PowerFails:
        return files.lose_power(chance)
    return None


@pytest.mark.long
def test_the_next_start_goes_on() -> None:
    for seed in range(SEEDS):
        chance, steps = random.Random(seed), 0
        while (left := _after_a_failure(steps, chance)) is not None:
            world = World(left)
            create(world, "t", 1)
            assert "t" in world.broker.image.topics, (seed, steps)
            steps += 1
        assert steps > 10


def test_a_first_start_waits_for_the_disk_a_few_times() -> None:
    files = MemFiles()
    waits = []
    files.before_sync = lambda: waits.append(1)  # type: ignore[method-assign]
    World(files)
    assert len(waits) <= 17
