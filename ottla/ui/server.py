"""The process behind the page: the application, its pages and its port."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException
from nicegui import app as nicegui_app
from nicegui import ui
from starlette.types import ASGIApp

from .frame import SECTIONS, Page
from .guard import QUERY, Guard, is_loopback
from .links import Link
from .pages import (
    brokers,
    clients,
    clock,
    faults,
    group,
    groups,
    metrics,
    queues,
    requests,
    topic,
    topics,
    transactions,
)
from .pages import verdict as verdicts

STATIC = "/ui"
HEARD_S = 5.0
"""Pings follow from it: a browser that is not heard of for some six seconds is away, and nothing is asked for."""
KEPT_S = 60.0
"""For so long a page is kept for a browser that is away, as on a machine with much else to do: without it the browser
loads the page again, without the dialog that was open and what was typed.
"""
PAGES: dict[str, Callable[[Page], None]] = {
    "topics": topics.build,
    "groups": groups.build,
    "queues": queues.build,
    "transactions": transactions.build,
    "clients": clients.build,
    "requests": requests.build,
    "faults": faults.build,
    "clock": clock.build,
    "metrics": metrics.build,
    "verdict": verdicts.build,
}


def application(links: Sequence[Link], hosts: tuple[str, ...] = (), token: str | None = None) -> ASGIApp:
    """The page as an ASGI application. A process has one."""
    fast = FastAPI(title="ottla", docs_url=None, redoc_url=None, openapi_url=None)
    nicegui_app.add_static_files(STATIC, str(resources.files(__package__) / "static"))
    ui.add_head_html(
        f'<link rel="stylesheet" href="{STATIC}/ui.css"><script src="{STATIC}/ui.js" defer></script>', shared=True
    )
    _declare(links)
    favicon = Path(str(resources.files(__package__) / "static" / "icon.svg"))
    ui.run_with(
        fast,
        title="ottla",
        favicon=favicon,
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=HEARD_S,
    )
    return Guard(fast, hosts, token)


def _declare(links: Sequence[Link]) -> None:
    def link_of(number: int) -> Link:
        if not 0 <= number < len(links):
            raise HTTPException(404, f"there is no broker {number}")
        return links[number]

    @ui.page("/", reconnect_timeout=KEPT_S)
    def first() -> None:
        brokers.build(links)

    @ui.page("/b/{number}/topics/{name}", reconnect_timeout=KEPT_S)
    def one_topic(number: int, name: str) -> None:
        with Page(links, link_of(number), "topics", name) as page:
            topic.build(page, name)

    @ui.page("/b/{number}/group", reconnect_timeout=KEPT_S)
    def one_group(number: int, name: str) -> None:
        with Page(links, link_of(number), "groups", name) as page:
            group.build(page, name)

    @ui.page("/b/{number}/{path}", reconnect_timeout=KEPT_S)
    def section(number: int, path: str) -> None:
        if path not in PAGES:
            raise HTTPException(404, f"there is no page {path}")
        with Page(links, link_of(number), path) as page:
            PAGES[path](page)


assert {one.path for one in SECTIONS} == set(PAGES)


def serve(links: Sequence[Link], host: str, port: int, token: str | None, announce: Callable[[str], None]) -> None:
    """Serves until it is stopped. `token`: what a browser must show once; without one it is made up if the page is
    reached from other machines, or if the brokers have one. Raises OSError if the port cannot be had.
    """
    if token is None and (not is_loopback(host) or any(one.lab.has_token for one in links)):
        token = secrets.token_urlsafe(24)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    bound.listen()  # who connects from now on is served
    served = application(links, (host.lower(),), token)
    config = uvicorn.Config(
        served, log_level="warning", ws="wsproto", proxy_headers=False, server_header=False, timeout_graceful_shutdown=1
    )
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{bound.getsockname()[1]}/" + (f"?{QUERY}={token}" if token else ""))
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        for one in links:
            one.close()
