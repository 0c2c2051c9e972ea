"""Access checks of the lab: it serves loopback clients, programs and its own pages, but not web pages of other sites in
a browser, and only who has the token where one is set.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from .http import Request

TOKEN_PATH = "/oauth/token"
JWKS_PATH = "/oauth/jwks"
WITHOUT_TOKEN = ("/live", "/ready", TOKEN_PATH, JWKS_PATH)  # what anyone may ask who may ask at all


def refusal(
    request: Request, is_open: bool, own_hosts: Collection[str], token: str | None = None, scheme: str = "http"
) -> tuple[int, str] | None:
    """Returns status and message of a refusal; None for an allowed request.

    `is_open`: whether clients on other hosts are served. `own_hosts`: host names under which the broker is advertised.
    `token`: what a request must carry, if there is one. `scheme`: of the lab's own URL.
    """
    if not is_open and not _is_loopback(request.peer):
        return 403, "the lab answers only clients on a loopback address (see ottla.lab.open)"
    host = request.headers.get("host")
    if host is not None and not _is_ours(host, own_hosts):
        return (
            403,
            f"the Host header {host!r} does not name this broker; use an IP address, localhost, or a host of "
            "advertised.listeners",
        )
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{scheme}://{host}":
        return 403, f"requests from web pages of {origin} are not allowed"
    if request.headers.get("sec-fetch-site") == "cross-site" and request.headers.get("sec-fetch-mode") != "navigate":
        return 403, "requests from web pages of other sites are not allowed"
    if token and request.path not in WITHOUT_TOKEN and not _carries(request, token):
        return 401, "the lab wants the header 'Authorization: Bearer TOKEN' with the value of ottla.lab.token"
    return None


def refused_content_type(request: Request) -> str | None:
    """Returns the message for a request whose Content-Type its route does not take (415); None for any other."""
    wanted = "application/x-www-form-urlencoded" if request.path == TOKEN_PATH else "application/json"
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method not in ("GET", "HEAD") and given != wanted:
        return f"the Content-Type of the request must be {wanted}"
    return None


def _carries(request: Request, token: str) -> bool:
    """Whether a request carries the token; takes as long for a wrong one as for the right one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_ours(host: str, own_hosts: Collection[str]) -> bool:
    """Whether a host is an address, a name without a dot (localhost, a docker service) or a name of ours: another site
    cannot make any of them point here.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        name = host.rpartition(":")[0] or host
    else:
        return True
    return bool(name) and ("." not in name.rstrip(".") or name.lower() in {one.lower() for one in own_hosts})
