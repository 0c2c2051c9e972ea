"""Histories of a whole broker under power failures."""

from __future__ import annotations

import pytest

from ..support.seeds import all_slow, in_turn, spans
from . import broker as sim_broker


@pytest.mark.long
@pytest.mark.parametrize("seeds", in_turn([*spans(20_000, 100, quick=5, each=25), *all_slow(0, 500, each=25)]))
def test_histories_hold(seeds: range) -> None:
    for seed in seeds:
        sim_broker.run(seed)
