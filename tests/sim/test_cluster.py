"""The simulator of clusters: a thousand histories hold."""

from __future__ import annotations

import pytest

from ..support.seeds import spans
from . import cluster

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("of", spans(0, 1000, quick=10))
def test_a_thousand_histories_hold(of: range) -> None:
    for seed in of:
        cluster.run(seed)
