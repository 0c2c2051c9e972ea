"""Health and metrics."""

from __future__ import annotations

from typing import TypedDict

from .encode import as_json
from .http import Request, Response
from .lab import Lab
from .routes import Nothing, plain_route, route

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class LiveView(TypedDict):
    live: bool


class ReadyView(TypedDict):
    ready: bool


@route("GET /live", example=Nothing())
def live(lab: Lab, asked: Nothing) -> LiveView:
    """Answers as long as the process serves."""
    return {"live": True}


@plain_route("GET /ready", reply=ReadyView, errors={503: "partitions are still being opened"})
def ready(lab: Lab, request: Request) -> Response:
    """Says whether every partition is open."""
    is_ready = lab.broker.replicas.ready
    return as_json(ReadyView(ready=is_ready), 200 if is_ready else 503)


@plain_route("GET /metrics", content_type=METRICS_TYPE)
def metrics(lab: Lab, request: Request) -> Response:
    """Returns the metrics in the Prometheus text format."""
    from .exposition import render

    return Response(200, METRICS_TYPE, render(lab.server))
