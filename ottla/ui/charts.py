"""Charts, in colours that can be read on light and on dark."""

from __future__ import annotations

from typing import NamedTuple

from nicegui import ui


class Colors(NamedTuple):
    text: str = "#7d8794"
    line: str = "rgba(128, 140, 155, 0.25)"
    accent: str = "#3b82f6"
    good: str = "#2f9e6e"
    bad: str = "#d9534f"


colors = Colors()
PALETTE = ("#3b82f6", "#2f9e6e", "#d97706", "#a855f7", "#d9534f", "#0891b2", "#84804a", "#db2777", "#64748b", "#65a30d")


def chart(name: str, height: int) -> ui.echart:
    """An empty chart."""
    made = ui.echart({"animation": False, "series": []}, renderer="svg").classes("chart")
    made.style(f"height: {height}px").props(f'role="img" aria-label="{name}"')
    return made


LEGEND = {"type": "scroll", "top": 0, "left": 0, "itemHeight": 8}


def rows_over_time(
    names: list[str], tooltip: str, series: list[dict[str, object]], *, is_downwards: bool = False
) -> dict[str, object]:
    """Options of a chart over time with a row for each name. `is_downwards`: the first row is at the top."""
    return {
        "animation": False,
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 8, "containLabel": True},
        "xAxis": {"type": "time", "axisLabel": {"color": colors.text, "hideOverlap": True}},
        "yAxis": {
            "type": "category",
            "inverse": is_downwards,
            "data": names,
            "axisLabel": {"color": colors.text},
            "splitLine": {"show": True, "lineStyle": {"color": colors.line}},
        },
        "tooltip": {"renderMode": "richText", "formatter": tooltip},
        "series": series,
    }


def lines(series: dict[str, list[list[float]]]) -> dict[str, object]:
    """Options of a chart of lines over time. Names stand in values only: keys of options may be code."""
    return {
        "animation": False,
        "color": list(PALETTE),
        "grid": {"left": 8, "right": 12, "top": 26, "bottom": 4, "containLabel": True},
        "legend": {
            **LEGEND,
            "show": len(series) > 1,
            "textStyle": {"color": colors.text, "fontSize": 11},
        },
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {"type": "time", "axisLabel": {"color": colors.text, "hideOverlap": True, "fontSize": 10}},
        "yAxis": {
            "type": "value",
            "min": 0,
            "axisLabel": {"color": colors.text, "fontSize": 10},
            "splitLine": {"lineStyle": {"color": colors.line}},
        },
        "series": [
            {"type": "line", "name": name, "data": data, "showSymbol": False, "lineStyle": {"width": 1.5}}
            for name, data in series.items()
        ],
    }
