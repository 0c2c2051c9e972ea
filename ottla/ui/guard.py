"""Who may use the page: programs and pages of this address, but no pages of other sites, and only who has the page's
token where there is one.

The framework's websocket takes any origin, so this stands before everything.
"""

from __future__ import annotations

import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "ottla-ui"
QUERY: Final = "token"
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'self'; "
    "object-src 'none'"
)
"""The page loads nothing from elsewhere. The framework compiles templates in the browser, which is `unsafe-eval`."""


class Guard:
    """Stands before the application. `hosts`: names under which the page is reached beside addresses and names without
    a dot. `token`: what a browser must have shown once, or None.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], token: str | None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is None and self._token is not None:
            answer = self._without_token(scope, self._token)
            if answer is not None:
                await _refuse(answer, scope, receive, send)
                return
        if problem is not None:
            await _refuse(PlainTextResponse(f"{problem}\n", 403), scope, receive, send)
            return
        await self._app(scope, receive, _with_policy(send))

    def _problem(self, scope: Scope) -> str | None:
        """Why a request is refused: it is for another host, or comes from a page of another site."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_ours(host, self._hosts):
            return f"the Host header {host!r} does not name this page (see --host)"
        if origin is not None and urlsplit(origin).netloc != host:
            return f"requests from pages of {origin} are not allowed"
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "requests from pages of other sites are not allowed"
        return None

    def _without_token(self, scope: Scope, token: str) -> Response | None:
        """What a browser gets that has not shown the token; None for one that has."""
        headers = Headers(scope=scope)
        if _is(_cookie(headers.get("cookie", "")), token):
            return None
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        if scope["type"] == "http" and any(name == QUERY and _is(value, token) for name, value in query):
            left = urlencode([(name, value) for name, value in query if name != QUERY])
            answer = RedirectResponse(scope["path"] + (f"?{left}" if left else ""), 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        return PlainTextResponse("open the address that `ottla ui` printed: it has the token of this page\n", 401)


def is_ours(host: str, names: tuple[str, ...]) -> bool:
    """Whether a host is an address, a name without a dot, or one of our names: another site cannot make any of them
    point here.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        name = host.rpartition(":")[0] or host
    else:
        return True
    return bool(name) and ("." not in name.rstrip(".") or name.lower() in names)


def is_loopback(host: str) -> bool:
    """Whether a host to listen on is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is(given: str, token: str) -> bool:
    """Takes as long for a wrong token as for the right one."""
    return hmac.compare_digest(given.encode(), token.encode())


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refuse(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await answer(scope, receive, send)


def _with_policy(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = POLICY
            headers["X-Content-Type-Options"] = "nosniff"
            headers["X-Frame-Options"] = "DENY"
            headers["Referrer-Policy"] = "same-origin"
        await send(message)

    return sending
