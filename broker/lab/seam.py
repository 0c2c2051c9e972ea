"""What looks at requests and replies on their way, and may change, delay, hold or end them: interceptors.

A server has none, and then nothing of this is imported. `net/intercepting.py` calls them at these points:

    opened(line)                    a connection was opened, or was open when the interceptor was added
    test_of(api)                    what tells of a request that was decoded whether to call `arrived`
    arrived(exchange)               may act on the request
    answered(exchange, outcome)     its reply is decided and not encoded yet
    encoded(exchange, outgoing)     the bytes of the reply are made and not sent yet
    refused(line, frame, reason)    a frame that is no request of a version that is served closes its connection
    closed(line)                    a connection is closed

Requests pass the interceptors by their `order`, replies in the opposite direction: an interceptor with a lower order is
nearer to the client. `answered` and `encoded` are only called for those that follow the exchange (`Exchange.follow`).
A `Watcher` only looks on, which costs less: it sees requests before all interceptors, and what is sent after them.
All run on the loop and to their end; what takes time is a `Later`, which is completed as an input event (`Turn.pause`
does so). A connection has one request in hand at a time: while that waits, those behind it stay bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ...protocol import codec, headers
from ...protocol.buffers import Data
from ...protocol.encoded import Encoded
from ...protocol.errors import ApiError
from ...protocol.structs import Struct
from ..broker import Broker
from ..error_places import Places
from ..later import Later
from ..peer import Ending, Peer
from ..replies import CLOSE, NO_REPLY, Reply, Send, Silence

__all__ = (
    "CLOSE",
    "NO_REPLY",
    "Attached",
    "Exchange",
    "Follower",
    "Interceptor",
    "Line",
    "Outcome",
    "Outgoing",
    "Test",
    "Watch",
    "Watcher",
    "decoded",
)

M = TypeVar("M", bound=Struct)
Outcome = Struct | Silence | ApiError
"""A reply, the mark that there is none or that the connection ends, or the error of the whole request."""


class MatchedApi(Protocol):
    """What a match looks at in an API."""

    @property
    def key(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def request(self) -> str: ...

    @property
    def response(self) -> str: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...


class AskedApi(MatchedApi, Protocol):
    """What interceptors see of an API."""

    has_records: bool

    @property
    def errors(self) -> Places: ...


class Asked(Protocol):
    """What interceptors see of the context of a request."""

    broker: Broker
    version: int
    correlation_id: int
    client_id: str | None
    peer: Peer

    @property
    def api(self) -> AskedApi: ...

    @property
    def principal(self) -> str: ...

    @property
    def listener(self) -> str: ...

    @property
    def client_address(self) -> str: ...

    @property
    def node_id(self) -> int: ...


class Addressed(Protocol):
    """What is known of the two ends of a connection."""

    def get_extra_info(self, name: str) -> object: ...


class Wired(Protocol):
    """What interceptors see of a connection. `ending`: why the broker closes it, None if it does not. `is_serving`:
    whether it takes requests out of what has come; then nothing waits for a reply.
    """

    ending: Ending | None
    is_serving: bool

    @property
    def transport(self) -> Addressed: ...

    def waiting(self) -> list[int] | None:
        """The API keys of whole requests that have come while the one in hand waited; None without any."""


Watch = Callable[[int, Asked, Struct, memoryview, Send], Send]
"""A request was decoded. Called with its number, which counts the exchanges of a server from 1, its context, the
message, and the bytes with the header; both may only be used there. Returns what is called with the reply as it is
sent, after all that others have changed: the last argument, or what notes the reply and calls it, whatever else
happens.
"""


Test = Callable[[Asked, Struct], bool]
"""Whether an interceptor may act on a request."""


class Line:
    """A connection as interceptors see it. `number`: counts the connections of a server, from 1. `connection`: None in
    a broker without sockets. `node_id`: of the node to which the client has connected.
    """

    __slots__ = ("connection", "node_id", "number", "peer")

    def __init__(self, number: int, peer: Peer, connection: Wired | None, node_id: int) -> None:
        self.number = number
        self.node_id = node_id
        self.peer = peer
        self.connection = connection


class Exchange:
    """A request, and later its reply. `number`: counts the exchanges of a server, from 1. `size`: of the frame, without
    its length. `frame`: the bytes of the request with its header.

    `frame` and `request` may only be used in `arrived`; afterwards only by who called `keep` there. A request with
    records has views of the frame, which is a buffer of all connections.
    """

    __slots__ = ("_request", "context", "followers", "frame", "is_kept", "line", "number", "size")

    def __init__(self, number: int, line: Line, context: Asked, request: Struct, frame: memoryview) -> None:
        self.number = number
        self.line = line
        self.context = context
        self._request: Struct | None = request
        self.frame: Data = frame
        self.size = len(frame)
        self.followers: list[Follower] | None = None
        self.is_kept = False

    @property
    def request(self) -> Struct:
        assert self._request is not None, "Exchange.request is used after arrived, and without keep"
        return self._request

    def follow(self, follower: Follower) -> None:
        """Calls `answered` and `encoded` of a follower. Called in `arrived`."""
        if self.followers is None:
            self.followers = [follower]
        else:
            self.followers.append(follower)

    def keep(self) -> None:
        """Keeps the frame and the request beyond `arrived`. The handler of a request with records writes offsets into
        both.
        """
        if self.is_kept:
            return
        self.is_kept = True
        self.frame = bytearray(self.frame)
        api, version = self.context.api, self.context.version
        if api.has_records:
            frame = memoryview(self.frame)
            _, start = headers.client_id_of(headers.request_header_version(api.request, version), frame)
            self._request = codec.parse(api.request, version, frame, start)

    def begin(self) -> Struct:
        """Returns the request for its handler; forgets it unless it is kept."""
        request = self.request
        if not self.is_kept:
            self.frame, self._request = b"", None
        return request


class Outgoing:
    """A reply that is about to be sent. `end`: whether the connection is closed after it. `chunk_bytes`: sent at a
    time, with `interval_ms` between them; 0: all at once. `reply`: None to send nothing.
    """

    __slots__ = ("chunk_bytes", "end", "interval_ms", "reply")

    def __init__(self, reply: Reply, end: bool) -> None:
        self.reply: Reply | None = reply
        self.end = end
        self.chunk_bytes = 0
        self.interval_ms = 0.0

    def forget(self) -> None:
        """Releases the reply; nothing is sent."""
        if self.reply is not None:
            self.reply.release()
            self.reply = None


class Follower:
    """Sees the reply to a request."""

    def answered(self, exchange: Exchange, outcome: Struct | Silence) -> Outcome | None:
        """Returns what is answered instead of `outcome`; None if it stays. It may be changed in place: `decoded` gives
        a message that is complete.
        """
        return None

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> Later[None] | None:
        """May change `outgoing`. Returns what the reply waits for. Not called where there is no reply."""
        return None


class Attached:
    """What sees connections. `order`: where it stands between the client (low) and the handlers (high)."""

    order = 0

    def opened(self, line: Line) -> None: ...

    def refused(self, line: Line, frame: memoryview, reason: str) -> None: ...

    def closed(self, line: Line) -> None: ...


class Watcher(Attached):
    """Sees requests as they come and replies as they are sent, and changes nothing.

    `reads_messages`: whether it looks at the message of a request, and not only at its context and its bytes. While
    nothing does, a request that is like an earlier one of its connection is not decoded, and is watched with the
    message of the earlier one.
    """

    reads_messages = True

    def watching(self, line: Line) -> Watch:
        """Returns what sees the requests of a connection. It may be asked several times."""
        raise NotImplementedError


def _always(context: Asked, request: Struct) -> bool:
    return True


class Interceptor(Attached, Follower):
    """May act on requests and replies: see the module."""

    def test_of(self, api: AskedApi) -> Test | None:
        """Returns what tells for which requests of an API `arrived` is called; None if for none of them. It is asked
        for each request, so it must cost little. An interceptor that is added again is asked for other tests.
        """
        return _always

    def arrived(self, exchange: Exchange) -> Outcome | Later[Outcome | None] | Later[None] | None:
        """Returns what is answered instead of the handler; None lets the request pass. A `Later` of that delays the
        request, or holds it.
        """
        return None


def decoded(message: M) -> M:
    """Decodes, in place, the arrays of a message that were encoded already; returns the message."""
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, Encoded):
            value = value.decoded()
            setattr(message, name, value)
        if isinstance(value, list):
            for item in value:
                if not isinstance(item, Struct):
                    break
                decoded(item)
        elif isinstance(value, Struct):
            decoded(value)
    return message
