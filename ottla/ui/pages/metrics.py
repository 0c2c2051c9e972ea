"""Metrics as charts: what the broker's /metrics says, from when the page was opened on."""

from __future__ import annotations

import time

from nicegui import run, ui

from ..charts import chart, lines
from ..frame import Page
from ..grid import Column, Grid, Row
from ..series import Sample, Series, parse

EVERY_S = 0.4  # a rate is that since the sample before
SERIES_MAX = 10  # in a chart: the largest ones
TABLE_MAX = 2000
CHARTS = (  # title, name of the family, unit, whether it is a rate, by which label
    ("Requests by API", "kafka_network_RequestMetrics_Requests_total", "a second", True, "request"),
    ("Errors", "kafka_network_RequestMetrics_Errors_total", "a second", True, "error"),
    ("Records written", "kafka_log_Log_LogEndOffset", "a second", True, "topic"),
    ("Bytes in", "kafka_server_BrokerTopicMetrics_BytesIn_total", "bytes a second", True, ""),
    ("Bytes out", "kafka_server_BrokerTopicMetrics_BytesOut_total", "bytes a second", True, ""),
    ("Connections", "kafka_server_socket_server_metrics_connection_count", "", False, ""),
    ("Requests that wait", "ottla_parked_requests", "", False, ""),
    ("Longest delay of the loop", "ottla_loop_lag_seconds_max", "seconds", False, ""),
)
COLUMNS = (Column("name", "name", "mono"), Column("labels", "labels", "mono"), Column("value", "value", "number"))


def build(page: Page) -> None:
    Metrics(page)


class Metrics:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._series = [Series(name, is_rate, label, SERIES_MAX) for _, name, _, is_rate, label in CHARTS]
        with ui.element("div").classes("charts"):
            self._charts = []
            for title, _, unit, *_ in CHARTS:
                with ui.element("figure"):
                    with ui.element("figcaption"):
                        ui.label(f"{title}, {unit}" if unit else title)
                    self._charts.append(chart(title, 170))
        ui.label("All metrics").classes("heading part").props('role="heading" aria-level="2"')
        self._grid = Grid("All metrics", COLUMNS, empty="There are no metrics.", filtered=True)
        page.live(self._fetch, self._show, every_s=EVERY_S)

    async def _fetch(self) -> list[Sample]:
        text = await self._page.link.get("/metrics")
        return await run.io_bound(parse, text) or []

    def _show(self, samples: list[Sample]) -> None:
        now_ms = time.time() * 1000  # the machine's: the broker's may stand still
        for one, of in zip(self._series, self._charts, strict=True):
            one.add(now_ms, samples)
            of.options.clear()
            of.options.update(lines(one.points()))
            of.update()
        self._grid.show(row(number, one) for number, one in enumerate(samples[:TABLE_MAX]))


def row(number: int, one: Sample) -> Row:
    labels = " ".join(f"{name}={value}" for name, value in one.labels.items())
    return {"key": f"{one.name} {labels}", "name": one.name, "labels": labels, "value": f"{one.value:,.6g}"}
