"""A thousand histories of a whole broker under power failures; a hundred more are in the quick tests."""

from __future__ import annotations

import pytest

from . import sim_broker


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_a_thousand_histories_hold(first: int) -> None:
    for seed in range(first, first + 100):
        sim_broker.run(seed)


def test_a_hundred_histories_hold() -> None:
    for seed in range(20_000, 20_100):
        sim_broker.run(seed)
