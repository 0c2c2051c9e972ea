"""Which versions a client uses (KIP-35, KIP-896), and what it says of itself (KIP-511)."""

from __future__ import annotations

import re
from typing import Final

from ...protocol import headers, schema
from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Refused, Reply, Request
from ..rule import Needs, Rule, rule

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
NAMED_SINCE: Final = 3
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@rule(
    "KIP-35.api-versions-first",
    "basic",
    messages=False,
    needs=Needs(first=True),
    source="KIP-35",
    why="Without it a client guesses versions, and a broker that lacks one closes the connection.",
)
class ApiVersionsFirst(Rule):
    """A client begins a connection with ApiVersions."""

    def asked(self, request: Request) -> None:
        if not request.is_first:
            return
        if request.key in (API_VERSIONS, SASL_HANDSHAKE):
            self.kept()
        else:
            self.fail(f"the first request of connection {request.connection} is {request.api}", request)


@rule(
    "KIP-35.versions-within",
    "basic",
    needs=Needs(answers=("ApiVersions",)),
    source="KIP-35",
    why="The broker closes the connection on a version that it does not have.",
)
class VersionsWithin(Rule):
    """A client uses versions that the broker's reply to ApiVersions has."""

    def __init__(self) -> None:
        super().__init__()
        self._ranges: dict[int, dict[int, tuple[int, int]]] = {}  # by connection and API
        self._last: dict[int, tuple[int, int]] | None = None  # of the latest reply, for connections that did not ask

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.ApiVersionsResponse)
        if found is not None and found.api_keys and not found.error_code:
            self._last = {one.api_key: (one.min_version, one.max_version) for one in found.api_keys}
            self._ranges[request.connection] = self._last

    def asked(self, request: Request) -> None:
        ranges = self._ranges.get(request.connection, self._last)
        if ranges is None or request.key == API_VERSIONS:
            return
        low, high = ranges.get(request.key, (0, -1))
        if low <= request.version <= high:
            self.kept()
        else:
            has = f"versions {low} to {high}" if high >= 0 else "no such API"
            self.fail(f"{request.api} v{request.version}, and the broker has {has}", request)

    def refused(self, refused: Refused) -> None:
        ranges = self._ranges.get(refused.connection, self._last)
        if ranges is None or refused.key is None or refused.version is None:
            return
        low, high = ranges.get(refused.key, (0, -1))
        if not low <= refused.version <= high:
            self.fail(f"key {refused.key} v{refused.version}, which the reply to ApiVersions does not have", refused)

    def closed(self, closed: Closed) -> None:
        self._ranges.pop(closed.connection, None)


@rule(
    "KIP-35.downgraded",
    "basic",
    reads=("ApiVersions",),
    needs=Needs(answers=("ApiVersions",)),
    source="KIP-35",
    why="Otherwise a client cannot speak to a broker that is older than itself.",
)
class Downgraded(Rule):
    """After UNSUPPORTED_VERSION for ApiVersions, a client asks again in a version that the reply has, or in 0, before
    it goes on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._refused: dict[int, tuple[Request, Reply, int]] = {}  # by connection; the last is the version to use

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.ApiVersionsResponse)
        if found is not None and found.error_code == Errors.UNSUPPORTED_VERSION:
            highs = [one.max_version for one in found.api_keys if one.api_key == API_VERSIONS]
            self._refused[request.connection] = request, reply, max(highs, default=0)

    def asked(self, request: Request) -> None:
        before = self._refused.pop(request.connection, None) if self._refused else None
        if before is None:
            return
        asked, reply, high = before
        if request.key == API_VERSIONS and request.version <= min(high, asked.version):
            self.kept()
        else:
            words = f"{request.api} v{request.version} after UNSUPPORTED_VERSION for ApiVersions v{asked.version}"
            self.fail(words, asked, reply, request)

    def closed(self, closed: Closed) -> None:
        self._refused.pop(closed.connection, None)


@rule(
    "KIP-896.removed-versions",
    "basic",
    messages=False,
    source="KIP-896",
    why="Brokers since 4.0 close the connection on them.",
)
class RemovedVersions(Rule):
    """A client does not need versions that Kafka 4.0 has removed."""

    def asked(self, request: Request) -> None:
        self.kept()

    def refused(self, refused: Refused) -> None:
        name = headers.request_name(refused.key) if refused.key is not None else None
        if name is None or refused.version is None:
            return
        low = schema.load(name).valid.low
        if 0 <= refused.version < low:
            api = name.removesuffix("Request")
            self.fail(f"{api} v{refused.version}; the lowest version since Kafka 4.0 is {low}", refused)


@rule(
    "KIP-511.software-named",
    "basic",
    apis=("ApiVersions",),
    source="KIP-511",
    why="Operators find clients to upgrade by it, and requests of clients with a faulty one are refused.",
    severity="warning",
)
class SoftwareNamed(Rule):
    """A client says the name and version of its software in ApiVersions, unless a broker has refused that version."""

    def __init__(self) -> None:
        super().__init__()
        self._is_refused = False  # a client can remember it, and begin other connections with an older version

    def asked(self, request: Request) -> None:
        found = request.of(m.ApiVersionsRequest)
        if found is None or (self._is_refused and request.version < NAMED_SINCE):
            return
        if request.version < NAMED_SINCE:
            self.fail(f"ApiVersions v{request.version} has no name of the software", request)
            return
        names = found.client_software_name, found.client_software_version
        wrong = [one for one in names if not SOFTWARE.fullmatch(one)]
        if wrong:
            self.fail(f"{wrong[0]!r} is no name or version of a software", request)
        else:
            self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.ApiVersionsResponse)
        if found is not None and found.error_code == Errors.UNSUPPORTED_VERSION:
            self._is_refused = True
