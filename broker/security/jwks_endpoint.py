"""Where the keys of an authorization server come from: a file, or a URL that is read again from time to time
(Kafka's RefreshingHttpsJwks).
"""

from __future__ import annotations

import logging
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from urllib.request import Request

from ...protocol.config_def import keys
from ..tls.context import client_context
from ..turn import Turn
from .jwks import KeySet

logger = logging.getLogger("ottla.org.apache.kafka.common.security.oauthbearer.internals.secured.RefreshingHttpsJwks")
BYTES_MAX = 1 << 20
TIMEOUT_S = 10
MISSING_MAX = 16  # identifiers of keys that are remembered, and
MISSING_MS = 60_000  # for how long: each makes the broker read the URL once in that time
MISSING_CHARACTERS_MAX = 1000


class JwksFile:
    """The keys of a file, which is read again when it has changed (Kafka's CachedFile)."""

    def __init__(self, path: str) -> None:
        """Raises ValueError if the keys cannot be read."""
        self._path = Path(path)
        self._read()

    def keys(self) -> KeySet:
        """Returns the keys. Where the file cannot be read any more, those that are known stay."""
        try:
            if self._path.stat().st_mtime_ns != self._modified:
                self._read()
        except (OSError, ValueError) as error:
            logger.warning("the keys stay as they are: %s", error)
        return self._keys

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file:
                self._modified = os.fstat(file.fileno()).st_mtime_ns
                data = file.read(BYTES_MAX + 1)
        except OSError as error:
            raise ValueError(f"the JWKS cannot be read: {error}") from None
        self._keys = KeySet(_bounded(data, str(self._path)))


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns whom to trust at a URL of https, and the own key: the `ssl.*` options of a JAAS line, which are keys of a
    client (Kafka's JaasOptionsUtils.getSslClientConfig). Without them, the system's authorities. Raises ValueError.
    """
    known = {name: key for name, key in keys("broker").items() if name.startswith("ssl.")}
    return client_context({name: key.parse(options.get(name, key.default)) for name, key in known.items()})


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows redirections as Java does: never from https to http, or back."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme.lower() != req.type:
            return None  # the redirection itself is the answer, which is an error
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def read_url(url: str, context: ssl.SSLContext | None) -> bytes:
    """Reads a JWKS over HTTP. Waits for it. Raises ValueError."""
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _SameScheme)
    try:
        with opener.open(url, timeout=TIMEOUT_S) as reply:
            return _bounded(reply.read(BYTES_MAX + 1), url)
    except (OSError, HTTPException) as error:  # urllib's errors are OSErrors
        raise ValueError(f"the JWKS cannot be read from {url}: {error}") from None


def _bounded(data: bytes, where: str) -> bytes:
    if len(data) > BYTES_MAX:
        raise ValueError(f"the JWKS of {where} is larger than {BYTES_MAX} bytes")
    return data


class JwksEndpoint:
    """The keys of a URL: read at once, and then in a thread every `refresh_ms` milliseconds, and early if a token names
    a key that is not known. A failed read is tried again after `backoff_ms`, then after twice as long each time, up to
    `backoff_max_ms`; the keys that are known stay.
    """

    def __init__(
        self,
        url: str,
        context: ssl.SSLContext | None,
        turn: Turn,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
    ) -> None:
        """`context`: for a URL of https. Raises ValueError if the keys cannot be read."""
        self.keys = KeySet(read_url(url, context))
        self._url = url
        self._context = context
        self._turn = turn
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._is_refreshing = False
        self._missing: dict[str, int] = {}  # until when no key of this identifier is looked for, as monotonic time
        turn.every(lambda: refresh_ms, self.refresh)

    def refresh_for(self, kid: str) -> None:
        """Reads the keys because one is missing."""
        now = self._turn.schedule.monotonic_ms()
        if len(kid) > MISSING_CHARACTERS_MAX or self._missing.get(kid, now) > now:
            return
        self._missing.pop(kid, None)
        if len(self._missing) >= MISSING_MAX:
            del self._missing[next(iter(self._missing))]
        self._missing[kid] = now + MISSING_MS
        self.refresh()

    def refresh(self) -> None:
        """Reads the keys, unless that goes on already."""
        if not self._is_refreshing:
            self._is_refreshing = True
            self._try(self._backoff_ms)

    def _try(self, backoff_ms: int) -> None:
        def done(keys: KeySet | None, error: BaseException | None) -> None:
            if keys is not None:
                self.keys = keys
                self._is_refreshing = False
            elif backoff_ms <= self._backoff_max_ms and not self._turn.stopped:
                self._turn.later(backoff_ms, lambda: self._try(backoff_ms * 2))
            else:
                logger.warning("the keys stay as they are: %s", error)
                self._is_refreshing = False

        self._turn.in_thread(lambda: KeySet(read_url(self._url, self._context)), done)
