"""The other end of a connection, as everything above sockets sees it."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from . import bugs
from .client_activity import ClientActivity
from .client_quotas import Usage

if TYPE_CHECKING:
    from .repeated import Served
    from .replies import Send

ANONYMOUS: Final = "User:ANONYMOUS"
Ending = Literal["idle", "fault", "refused", "request", "limit", "error", "stop"]
"""Why a broker closes a connection. `idle`: for longer than `connections.max.idle.ms`. `fault`: of the lab. `refused`:
a frame is no request that is served, or TLS has failed. `request`: what a request asked for ends it. `limit`: of
connections, of their rate or of their memory. `error`: of the broker. `stop`: of the broker, or of its node.
"""


class SecurityProtocol(IntEnum):
    """How clients of a listener connect; the values are Kafka's ids."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class Repeated(Protocol):
    """Serves requests of a connection that are like an earlier one, without decoding them."""

    def serve(self, dispatcher: Any, peer: Peer, frame: memoryview, send: Send) -> Served:
        """Serves the request of a frame, and calls `send` once. Returns what is pending, or DECODE: then it has done
        nothing. `dispatcher`: the one that serves the connection, a `net.dispatch.Dispatcher`.
        """


class Gathered(Protocol):
    """Requests of a connection that came at once, and are answered at once."""

    def takes(self, frame: memoryview, send: Send) -> bool:
        """Whether the request of a frame is one of them; then it calls `send` once, at the latest in `finish`."""

    def finish(self) -> None:
        """Answers the requests. The frames must have stayed as they were."""


class Software(NamedTuple):
    """What a client says that it is.

    It is a named tuple because compiled modules take any other tuple apart, and make a new object of it each time.
    """

    name: str
    version: str


UNKNOWN_SOFTWARE: Final = Software("unknown", "unknown")


class Peer:
    """A client's connection: its listener with the security protocol, its address, who the client is, its software,
    and what to cancel when it closes.

    `activity`: what the client asked for, while the lab is on. `token_authenticated`: whether the client has shown a
    delegation token. `usage`: what the current request uses, if there are quotas. `throttle_ms`: for how long no
    request is served after the reply. `repeated`: by API key, what serves requests that are like earlier ones.
    `has_more`: whether more has come behind the request that is being served. `gathered`: the requests before it that
    are not answered yet.
    """

    __slots__ = (
        "activity",
        "address",
        "gathered",
        "has_more",
        "host",
        "host_address",
        "listener",
        "on_lost",
        "principal",
        "repeated",
        "security_protocol",
        "software",
        "throttle_ms",
        "token_authenticated",
        "usage",
    )

    def __init__(
        self, listener: str, address: str, security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ) -> None:
        self.listener = listener
        self.security_protocol = security_protocol
        self.address = address
        self.host_address = in_java(address.rpartition(":")[0].strip("[]"))
        self.host = "/" + self.host_address
        self.principal = ANONYMOUS
        self.token_authenticated = False
        self.software = UNKNOWN_SOFTWARE
        self.throttle_ms = 0
        self.usage: Usage | None = None
        self.activity: ClientActivity | None = None
        self.repeated: dict[int, Repeated] = {}
        self.has_more = False
        self.gathered: Gathered | None = None
        self.on_lost: list[Callable[[], object]] = []

    def takes(self, frame: memoryview, send: Send) -> bool:
        """Whether the request of a frame is one of those that are gathered; answers these if it is not."""
        gathered = self.gathered
        if gathered is None:
            return False
        if gathered.takes(frame, send):
            return True
        gathered.finish()
        return False

    def answer_gathered(self) -> None:
        if self.gathered is not None:
            self.gathered.finish()

    def lost(self) -> None:
        calls, self.on_lost = self.on_lost, []
        for call in calls:
            bugs.guarded("what ends with a connection", call)


def in_java(host: str) -> str:
    """Returns an address as Java writes it: without abbreviation, and an IPv4 address even if it came over IPv6."""
    if ":" not in host:
        return host
    plain, _, scope = host.partition("%")
    address = IPv6Address(plain)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    parts = ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
    return f"{parts}%{scope}" if scope else parts
