"""Who may use the page of `ottla ui`: what the guard before it refuses, and the token of the page."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from ottla.ui.guard import COOKIE, Guard, is_loopback

TOKEN = "a-token"


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """The application behind the guard."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def asked(guard: Guard, kind: str = "http", path: str = "/", query: str = "", **headers: str) -> list[Any]:
    """What is sent for a request."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": "GET", "path": path, "query_string": query.encode(), "headers": given}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent


def status(guard: Guard, **more: str) -> int:
    return int(asked(guard, **more)[0]["status"])


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "127.0.0.1:9645"}, 200),
        ({"host": "localhost:9645"}, 200),
        ({"host": "[::1]:9645"}, 200),
        ({"host": "ui"}, 200),  # a service of docker-compose
        ({"host": "ui.example.com"}, 200),  # --host
        ({"host": "evil.example.com"}, 403),  # DNS rebinding
        ({}, 403),
        ({"host": "127.0.0.1:9645", "origin": "http://127.0.0.1:9645"}, 200),
        ({"host": "127.0.0.1:9645", "origin": "http://evil.example.com"}, 403),
        ({"host": "127.0.0.1:9645", "origin": "http://127.0.0.1:9646"}, 403),
        ({"host": "127.0.0.1:9645", "origin": "null"}, 403),
        ({"host": "127.0.0.1:9645", "sec_fetch_site": "cross-site"}, 403),
        ({"host": "127.0.0.1:9645", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
        ({"host": "127.0.0.1:9645", "sec_fetch_site": "same-origin"}, 200),
    ],
)
def test_other_hosts_and_other_sites_are_refused(headers: dict[str, str], code: int) -> None:
    assert status(Guard(inside, ("ui.example.com",), None), **headers) == code


@pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "http://127.0.0.1:1"])
def test_a_websocket_of_another_site_is_closed(origin: str) -> None:
    guard = Guard(inside, (), None)
    assert asked(guard, "websocket", host="127.0.0.1:9645", origin="http://127.0.0.1:9645") == [
        {"type": "websocket.accept"}
    ]
    (closed,) = asked(guard, "websocket", host="127.0.0.1:9645", origin=origin)
    assert closed == {"type": "websocket.close", "code": 1008}


def test_a_token_is_shown_once_and_then_kept_in_a_cookie_of_this_site_only() -> None:
    guard, host = Guard(inside, (), TOKEN), "127.0.0.1:9645"
    assert status(guard, host=host) == 401
    assert status(guard, host=host, query="token=wrong") == 401
    first = asked(guard, host=host, path="/b/0/topics", query=f"a=1&token={TOKEN}")[0]
    assert first["status"] == 303
    headers = {name.decode(): value.decode() for name, value in first["headers"]}
    assert headers["location"] == "/b/0/topics?a=1"
    assert {"HttpOnly", "SameSite=strict"} <= set(headers["set-cookie"].split("; "))
    assert status(guard, host=host, cookie=f"other=1; {COOKIE}={TOKEN}") == 200
    assert status(guard, host=host, cookie=f"{COOKIE}=wrong") == 401
    assert status(guard, host=host, cookie='"\0;;=') == 401
    assert asked(guard, "websocket", host=host)[0]["type"] == "websocket.close"
    assert asked(guard, "websocket", host=host, cookie=f"{COOKIE}={TOKEN}")[0]["type"] == "websocket.accept"


def test_the_page_may_load_nothing_from_elsewhere_and_stand_in_no_frame() -> None:
    headers = dict(asked(Guard(inside, (), None), host="localhost")[0]["headers"])
    policy = headers[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("host", "found"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("ui", False)],
)
def test_only_loopback_is_open_without_a_token(host: str, found: bool) -> None:
    assert is_loopback(host) is found
