"""Histories of a whole broker under power failures."""

from __future__ import annotations

import pytest

from ..support.seeds import all_slow, spans
from . import broker as sim_broker


@pytest.mark.parametrize("seeds", [*spans(20_000, 100, quick=5), *all_slow(0, 500)])
def test_histories_hold(seeds: range) -> None:
    for seed in seeds:
        sim_broker.run(seed)
