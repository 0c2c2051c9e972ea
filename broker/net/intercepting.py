"""Takes requests through the interceptors of the lab (`lab/seam.py`), and replies back.

A `Seam` is connected to the dispatchers only while there is an interceptor or a watcher. A request that no interceptor
acts on or follows is served by its dispatcher as always; the others by an `_Intercepted` each, which is one coroutine
from the arrival to the sending of the reply, so that a lost connection ends it wherever it waits.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Protocol, cast

from ...protocol.errors import ApiError
from ...protocol.structs import Struct
from .. import bugs
from ..broker import Broker
from ..lab.seam import Attached, Exchange, Interceptor, Line, Outcome, Outgoing, Test, Watcher
from ..later import Later, after, drive, failed
from ..limits import WAITING_EXCHANGES
from ..metrics import ApiTimes
from ..peer import Peer
from ..replies import CLOSE, Reply, Send, Silence
from .api import Api
from .connection import Connection
from .context import Context
from .dispatch import LARGE_BYTES, Dispatcher, Refused
from .pacing import pace
from .turns import encoded, in_turns
from .watches import Watches
from .watching import Pending

WAITING_MAX: Final = 10_000  # requests and replies that interceptors keep waiting
WAITING_BYTES_MAX: Final = 256 << 20
Instead = Outcome | Later[Outcome | None] | Later[None] | None


class Serving(Protocol):
    """What a seam needs of its server."""

    @property
    def broker(self) -> Broker: ...

    @property
    def dispatcher(self) -> Dispatcher: ...

    @property
    def connections(self) -> Collection[Connection]: ...


class Seam:
    """The interceptors of a server, and what waits for them."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self.broker = server.broker
        self._attached: list[Attached] = []
        self._watchers: list[Watcher] = []
        self._interceptors: list[Interceptor] = []
        self._tests: dict[int, tuple[Test, ...]] = {}  # of the interceptors, by API
        self._lines: dict[Peer, Line] = {}
        self._opened = 0
        self._watches = Watches(self._line)
        self.watched = self._watches.watched
        self.reads_messages = False
        self.waiting = self.waiting_bytes = 0

    # interceptors and watchers

    def add(self, one: Attached) -> None:
        """Adds an interceptor or a watcher, which sees the requests from now on, of connections that are open too. An
        interceptor that is there already has other tests from now on.
        """
        if one in self._attached:
            self._tests.clear()
            return
        if not self._attached:
            self._connect(self)
            for connection in self._server.connections:
                self._line(connection.peer, connection)
        self._set([*self._attached, one])
        for line in list(self._lines.values()):
            bugs.guarded("an interceptor", one.opened, line)

    def remove(self, one: Attached) -> None:
        """Removes an interceptor or a watcher; requests that it follows or holds go on."""
        self._set([other for other in self._attached if other is not one])
        if not self._attached:
            self._connect(None)
            self._lines.clear()
            self._watches.by_peer.clear()

    def _set(self, attached: Iterable[Attached]) -> None:
        self._attached = sorted(attached, key=lambda one: one.order)
        self._interceptors = [one for one in self._attached if isinstance(one, Interceptor)]
        watchers = [one for one in self._attached if isinstance(one, Watcher)]
        self._watchers = watchers[::-1]  # the last one that wraps `send` is the first that is called
        self._tests.clear()
        self.reads_messages = any(one.reads_messages for one in watchers)
        for line in self._lines.values():
            self._watch(line)

    def _watch(self, line: Line) -> None:
        """Shows the requests of a connection to the watchers."""
        watches = self._watches.by_peer[line.peer] = []
        for watcher in self._watchers:
            try:
                watches.append(watcher.watching(line))
            except Exception as error:
                bugs.report("a watcher", error)

    def _connect(self, seam: Seam | None) -> None:
        self._server.dispatcher.seam = seam
        for connection in self._server.connections:
            connection.dispatcher.seam = seam

    # connections

    def _line(self, peer: Peer, connection: Connection | None = None) -> Line:
        line = self._lines.get(peer)
        if line is None:
            self._opened += 1
            dispatcher = self._server.dispatcher if connection is None else connection.own_dispatcher
            node_id = dispatcher.broker.config.node_id
            line = self._lines[peer] = Line(self._opened, peer, connection, node_id)
            self._watch(line)
        return line

    def opened(self, connection: Connection) -> None:
        if not self._attached:
            return
        line = self._line(connection.peer, connection)
        for one in self._attached:
            bugs.guarded("an interceptor", one.opened, line)

    def closed(self, connection: Connection) -> None:
        line = self._lines.pop(connection.peer, None)
        if line is not None:
            del self._watches.by_peer[connection.peer]
            for one in self._attached:
                bugs.guarded("an interceptor", one.closed, line)

    def refused(self, peer: Peer, frame: memoryview, reason: str) -> None:
        for one in self._attached:
            bugs.guarded("an interceptor", one.refused, self._line(peer), frame, reason)

    # exchanges

    def serve(
        self,
        dispatcher: Dispatcher,
        context: Context,
        request: Struct,
        frame: memoryview,
        send: Send,
        times: ApiTimes,
    ) -> Pending | None:
        """Serves a request, and calls `send` once. Raises Refused."""
        if self._watchers:
            send = self.watched(context, request, frame, send)
        else:
            self._watches.exchanges += 1
        if self.concerns(context, request):
            return self._intercept(dispatcher, context, request, frame, send, times)
        return dispatcher.serve(context, request, len(frame), send, times)

    def concerns(self, context: Context, request: Struct) -> bool:
        """Whether an interceptor may act on a request."""
        tests = self._tests.get(context.api.key)
        if tests is None:
            tests = self._tests_of(context.api)
        for test in tests:
            try:
                if test(context, request):
                    return True
            except Exception as error:
                bugs.report("an interceptor", error)
        return False

    def _tests_of(self, api: Api) -> tuple[Test, ...]:
        """Asks the interceptors for their tests of the requests of an API."""
        tests = []
        for one in self._interceptors:
            try:
                test = one.test_of(api)
            except Exception as error:
                bugs.report("an interceptor", error)
            else:
                if test is not None:
                    tests.append(test)
        found = self._tests[api.key] = tuple(tests)
        return found

    def _intercept(
        self,
        dispatcher: Dispatcher,
        context: Context,
        request: Struct,
        frame: memoryview,
        send: Send,
        times: ApiTimes,
    ) -> Pending | None:
        """Shows a request to the interceptors, up to the first that acts on it, and serves it."""
        exchange = Exchange(self._watches.exchanges, self._line(context.peer), context, request, frame)
        rest = iter(self._interceptors)
        for one in rest:
            instead = asked(one, exchange)
            if instead is not None:
                return _Intercepted(self, dispatcher, context, exchange, instead, rest).serve(send, times)
        if exchange.followers is not None:
            return _Intercepted(self, dispatcher, context, exchange, None, rest).serve(send, times)
        return dispatcher.serve(context, exchange.begin(), exchange.size, send, times)

    def has_room(self, size: int, who: str) -> bool:
        """Whether another exchange may wait, which keeps `size` bytes; if not, the limit was reached."""
        if self.waiting < WAITING_MAX and self.waiting_bytes + size <= WAITING_BYTES_MAX:
            return True
        self.broker.limits.reached(WAITING_EXCHANGES, who)
        return False


def asked(interceptor: Interceptor, exchange: Exchange) -> Instead:
    """Returns what an interceptor wants to be done with a request."""
    try:
        return interceptor.arrived(exchange)
    except Exception as error:
        bugs.report("an interceptor", error)
        return None


class _Intercepted:
    """The way of one exchange. `instead`: what the first interceptor that acts wants; `rest`: those after it."""

    __slots__ = ("_context", "_dispatcher", "_exchange", "_instead", "_outgoing", "_parked_ns", "_rest", "_seam",
                 "_send", "_times")  # fmt: skip
    _send: Send
    _times: ApiTimes

    def __init__(
        self,
        seam: Seam,
        dispatcher: Dispatcher,
        context: Context,
        exchange: Exchange,
        instead: Instead,
        rest: Iterator[Interceptor],
    ) -> None:
        self._seam = seam
        self._dispatcher = dispatcher
        self._context = context
        self._exchange = exchange
        self._instead = instead
        self._rest = rest
        self._outgoing: Outgoing | None = None
        self._parked_ns = 0

    def serve(self, send: Send, times: ApiTimes) -> Later[None] | None:
        """Serves the request, and calls `send` once. Raises Refused."""
        self._send = send
        self._times = times
        whole = drive(self._steps())
        if whole.done:
            whole.get()
            return None
        times.parked += 1
        self._parked_ns = time.perf_counter_ns()
        whole.when_done(self._ended)
        return whole

    def _ended(self, whole: Later[None]) -> None:
        """Closes the connection of a request that could not be served to its end."""
        if whole.error is not None:
            if not isinstance(whole.error, Refused):
                bugs.report(f"intercepting {self._context.api.name}", whole.error)
            self._send(None, True)

    async def _steps(self) -> None:
        context, exchange = self._context, self._exchange
        api = context.api
        try:
            instead = await self._arrived()
            request = exchange.begin()
            kept = request if exchange.is_kept or (api.needs_request and not api.has_records) else None
            if instead is None:
                outcome = await self._handled(request, kept)
            else:
                outcome = self._made(instead, request)
            del request  # one that is not needed any more is freed while the reply waits
            for follower in reversed(exchange.followers or ()):
                changed = follower.answered(exchange, outcome)
                if changed is not None:
                    outcome = self._made(changed, kept)
            if isinstance(outcome, Struct):
                outcome = await self._with_arrays_encoded(outcome, kept)
            self._dispatcher.finish(api, context, kept, outcome, self._take, self._times)
            await self._encoded()
        finally:
            if self._parked_ns:
                self._times.parked -= 1
                self._times.park_ns += time.perf_counter_ns() - self._parked_ns
            if self._outgoing is not None:  # the connection was lost
                self._outgoing.forget()

    # the points

    async def _arrived(self) -> Outcome | None:
        """Asks the interceptors; returns what is answered instead of the handler."""
        instead = self._instead
        while True:
            if isinstance(instead, Later):
                self._exchange.keep()
                instead = await self._waited(instead, self._exchange.size)
            if instead is not None:
                return instead
            one = next(self._rest, None)
            if one is None:
                return None
            instead = asked(one, self._exchange)

    async def _handled(self, request: Struct, kept: Struct | None) -> Struct | Silence:
        """Has the request handled; returns the reply."""
        context, dispatcher = self._context, self._dispatcher
        api = context.api
        if self._exchange.size > LARGE_BYTES and not api.has_records:
            outcome: object = drive(in_turns(dispatcher, api, context, request, encodes=False))
        else:
            began = time.perf_counter_ns()
            outcome = dispatcher.call(api, context, request)
            self._times.handle_ns += time.perf_counter_ns() - began
        del request
        if isinstance(outcome, Later):
            handled = after(outcome, lambda found: dispatcher.outcome_of(api, context, kept, found))
            outcome = await self._context.paused(handled)
        return cast(Struct | Silence, outcome)

    def _made(self, outcome: Outcome, kept: Struct | None) -> Struct | Silence:
        """Returns the reply that an interceptor wants."""
        if isinstance(outcome, ApiError):
            return self._dispatcher.error_reply(self._context.api, self._context, kept, outcome)
        if outcome is CLOSE:
            self._note_end()
        return outcome

    def _note_end(self) -> None:
        """Notes that it is an interceptor that ends the connection."""
        connection = self._exchange.line.connection
        if connection is not None:
            connection.ending = "fault"

    async def _with_arrays_encoded(self, reply: Struct, kept: Struct | None) -> Struct | Silence:
        """Encodes the large arrays of a reply in steps; returns the reply, or what is sent in place of one that cannot
        be encoded.
        """
        context, dispatcher = self._context, self._dispatcher
        try:
            return await encoded(dispatcher, context, reply)
        except Exception as error:
            return cast(Struct | Silence, dispatcher.outcome_of(context.api, context, kept, failed(error)))

    def _take(self, reply: Reply | None, end: bool) -> None:
        """Accepts the encoded reply."""
        if reply is not None:
            self._outgoing = Outgoing(reply, end)
        else:
            self._send(None, end)

    async def _encoded(self) -> None:
        """Shows the bytes of the reply to the followers, and sends them."""
        outgoing = self._outgoing
        if outgoing is None:
            return
        for follower in reversed(self._exchange.followers or ()):
            if outgoing.reply is None:
                break
            size = len(outgoing.reply.head)
            waits = follower.encoded(self._exchange, outgoing)
            if waits is not None and await self._waited(waits, size) is CLOSE:
                outgoing.forget()
                outgoing.end = True
        self._outgoing = None
        if outgoing.end:
            self._note_end()
        connection = self._exchange.line.connection
        if outgoing.reply is not None and connection is not None:
            pace(cast(Connection, connection), outgoing, self._seam.broker.schedule)
        self._send(outgoing.reply, outgoing.end)

    # waits

    async def _waited(self, awaited: Later[Outcome | None] | Later[None], size: int) -> Outcome | None:
        """Waits for what an interceptor waits for; returns its result, or CLOSE if too much waits already."""
        later = cast(Later[Outcome | None], awaited)
        if later.done:
            return later.get()
        seam = self._seam
        if not seam.has_room(size, self._context.client_address):
            later.cancel()
            return CLOSE
        seam.waiting += 1
        seam.waiting_bytes += size
        try:
            return await self._context.paused(later)
        finally:
            seam.waiting -= 1
            seam.waiting_bytes -= size
