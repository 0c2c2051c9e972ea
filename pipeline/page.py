"""A report as one self-contained page: plots, followed by the tables that they show."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly import io
from plotly.offline import get_plotlyjs

from .plain import Row, plain
from .threads import at_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .jobs import Plot, Report

ROWS_MAX = 1000  # of a table
POINTS_MAX = 20_000  # of a plot
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { font-weight: 600; } .clean { color: #18794e; } .found { color: #c62a2f; } .note { opacity: .7; }
.scroll { overflow: auto; max-height: 32rem; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; font-variant-numeric: tabular-nums; }
th { position: sticky; top: 0; background: Canvas; text-align: left; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--soft); white-space: nowrap; } td.n { text-align: right; }
"""


def write_page(report: Report, title: str, path: str) -> dict[str, int]:
    """Writes the page; returns how many rows each table has. Raises OSError."""
    read = at_once([partial(_rows, frame) for frame in report.tables.values()])
    tables = dict(zip(report.tables, read, strict=True))
    totals = {
        name: len(rows) if len(rows) < POINTS_MAX else report.tables[name].count() for name, rows in tables.items()
    }
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>",
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style><script>{get_plotlyjs()}</script>",
        f"<h1>{html.escape(title)}</h1><p class='note'>made {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC</p>",
    ]
    if report.findings is not None:
        count = totals[report.findings]
        said = (
            f"<span class='found'>{count:,} findings</span>"
            if count
            else "<span class='clean'>clean: nothing was found</span>"
        )
        parts.append(f"<p class='verdict'>{said}</p>")
    for plot in report.plots:
        rows = tables[plot.table]
        if rows:
            drawn = io.to_html(figure(plot, rows), validate=False, full_html=False, include_plotlyjs=False)
            parts.append(f"<h2>{html.escape(plot.title)}</h2>{drawn}")
    for name, rows in tables.items():
        shown = f" <span class='note'>the first {ROWS_MAX:,} of {totals[name]:,}</span>"
        note = shown if totals[name] > ROWS_MAX else ""
        parts.append(f"<h2>{html.escape(name)}{note}</h2>{_table(report.tables[name].columns, rows[:ROWS_MAX])}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts))
    return totals


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.limit(POINTS_MAX).collect()]


def _table(columns: list[str], rows: list[Row]) -> str:
    if not rows:
        return "<p class='note'>none</p>"
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(row[name]) for name in columns) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    text = "" if value is None else str(plain(value))
    return f"<td{' class=n' if is_number else ''}>{html.escape(text)}</td>"


def figure(plot: Plot, rows: list[Row]) -> dict[str, object]:
    """Returns a figure as Plotly's JSON. Plotly's own class would check and copy the template for each."""
    colors = sorted({str(row[plot.color]) for row in rows}) if plot.color else [None]
    traces = [
        _DRAWN[plot.kind](plot, [row for row in rows if plot.color is None or str(row[plot.color]) == color], color)
        for color in colors
    ]
    layout = {
        "template": io.templates["plotly_white"].to_plotly_json(),
        "margin": {"l": 40, "r": 20, "t": 20, "b": 40},
        "height": 420,
        "barmode": "group" if plot.kind == "bar" else "overlay",
    }
    if plot.kind in _AXES:
        layout["xaxis"] = {"type": _AXES[plot.kind]}
    return {"data": [one.to_plotly_json() for one in traces], "layout": layout}


def _points(plot: Plot, rows: list[Row], color: str | None, mode: str) -> go.Scatter:
    shape = "hv" if "lines" in mode else "linear"  # a value holds until the next one
    return go.Scatter(
        line_shape=shape, x=[row[plot.x] for row in rows], y=[row[plot.y] for row in rows], mode=mode, name=color
    )


def _bars(plot: Plot, rows: list[Row], color: str | None) -> go.Bar:
    return go.Bar(x=[row[plot.x] for row in rows], y=[row[plot.y] for row in rows], name=color)


def _timeline(plot: Plot, rows: list[Row], color: str | None) -> go.Bar:
    """Draws bars from `x` to `until`; a bar without an end reaches to the last end."""
    assert plot.until is not None
    ends = [row[name] for row in rows for name in (plot.x, plot.until) if row[name] is not None]
    until = [row[plot.until] or max(ends) for row in rows]
    lengths = [(end - row[plot.x]).total_seconds() * 1000 for end, row in zip(until, rows, strict=True)]
    return go.Bar(
        base=[row[plot.x] for row in rows], x=lengths, y=[str(row[plot.y]) for row in rows], orientation="h",
        name=color, offsetgroup="one"
    )  # fmt: skip


_DRAWN = {
    "line": lambda plot, rows, color: _points(plot, rows, color, "lines+markers"),
    "scatter": lambda plot, rows, color: _points(plot, rows, color, "markers"),
    "bar": _bars,
    "timeline": _timeline,
}
_AXES = {"timeline": "date", "bar": "category"}  # others by their values
