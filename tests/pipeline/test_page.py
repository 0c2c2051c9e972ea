"""The figures of a page: Plotly does not check them when they are written, so the tests have it check them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import pytest
from ottla.pipeline.jobs import Plot
from ottla.pipeline.page import figure
from plotly import io

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ROWS = [
    {"at": AT, "until": AT + timedelta(seconds=n) if n else None, "count": n, "owner": f"member {n % 2}"}
    for n in range(4)
]


@pytest.mark.parametrize("color", ["owner", None])
@pytest.mark.parametrize("kind", ["line", "scatter", "bar", "timeline"])
def test_a_figure_is_one_that_plotly_accepts(kind: str, color: str | None) -> None:
    """And has a trace for each color."""
    made = figure(Plot("Title", "table", kind, "at", "count", color, "until"), ROWS)
    accepted = go.Figure(made)
    assert json.loads(accepted.to_json()) == json.loads(io.to_json(made, validate=False))
    assert [trace.name for trace in accepted.data] == (["member 0", "member 1"] if color else [None])
