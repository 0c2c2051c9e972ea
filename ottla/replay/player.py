"""Replays a trace: one connection for each of the trace, and everything in the order of the trace.

A reply that the trace has is waited for before what came after it, because what a client asks depends on what it was
told. An error that a broker gives while it is not ready yet, and the trace does not have, makes the request be sent
again, as a client does. Members of groups ask again until they have what they had in the trace (`comparing`).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ..comparing.assignments import FIELDS, Assignments, Heartbeat
from ..comparing.early import AGAIN
from ..comparing.identities import Identities, translate
from ..comparing.rules import Rules
from ..comparing.shares import Shares
from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct
from ..traces.walking import errors
from .exchanges import Exchange, Step
from .plain import NotWhole
from .replies import Answered, compare
from .target import Target, read_frame

Plain = dict[str, object]
AGAIN_S: Final = 0.1
SHARE_FETCH: Final = "ShareFetch"


@dataclass
class Found:
    """What a replay has found. `left_out`: requests that could not be sent, with the reason; `again`: those that were
    sent more than once. `problems`: replies that did not come, or could not be read.
    """

    requests: int = 0
    replies: int = 0
    again: int = 0
    left_out: list[tuple[Exchange, str]] = field(default_factory=list)
    problems: list[tuple[Exchange, str]] = field(default_factory=list)
    differences: list[tuple[Exchange, Answered]] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but what the rules allow."""
        return not self.problems and not self.left_out and all(one.why for _, one in self.differences)


class Player:
    """Replays onto a broker. `speed`: 0 sends as soon as it may, 1 at the times of the trace. `nodes`: those of the
    broker's cluster by their ids; a connection goes to the one that has the id of its node, else to the broker.
    """

    def __init__(self, target: Target, rules: Rules, speed: float = 0.0, timeout_s: float = 30.0) -> None:
        self.nodes: dict[int, Target] = {}
        self._target = target
        self._rules = rules
        self._speed = speed
        self._timeout_s = timeout_s
        self._sockets: dict[int, socket.socket] = {}
        self._flying: dict[int, set[int]] = {}  # correlation ids of requests without replies, by connection
        self._identities = Identities()
        self._shares = Shares(self._identities)
        self._assignments = Assignments(self._identities)
        self.found = Found()

    def play(self, steps: Iterable[Step]) -> Found:
        """Raises OSError if the broker cannot be reached."""
        began = time.monotonic()
        try:
            for step in steps:
                if self._speed and step.kind == "request":
                    late_s = began + step.at_us / 1e6 / self._speed - time.monotonic()
                    time.sleep(max(0.0, late_s))
                self._step(step)
        finally:
            for one in self._sockets.values():
                one.close()
        return self.found

    def _step(self, step: Step) -> None:
        exchange = step.exchange
        if exchange is None:
            closed = self._sockets.pop(step.connection, None)
            if closed is not None:
                closed.close()
        elif step.kind == "request":
            self._begin(exchange)
        elif exchange.sent is not None and exchange.has_reply:
            self._receive(exchange)
        else:
            self._flying.get(step.connection, set()).discard(exchange.correlation_id)

    def _socket(self, exchange: Exchange) -> socket.socket:
        found = self._sockets.get(exchange.connection)
        if found is None:
            target = self._target if exchange.node is None else self.nodes.get(exchange.node, self._target)
            found = self._sockets[exchange.connection] = target.connect(self._timeout_s)
        return found

    def _begin(self, exchange: Exchange) -> None:
        """Sends a request of the trace."""
        try:
            message = exchange.request()
            self._shares.prepare(message, exchange.plain_reply if exchange.has_reply else None)
            translate(message, self._identities)
            self._assignments.prepare(exchange.api, exchange.request(), message)
            frame = exchange.frame(message)
        except (NotWhole, MalformedMessage) as error:
            self.found.left_out.append((exchange, str(error)))
            return
        if self._send(exchange, frame):
            exchange.sent = message
            self.found.requests += 1

    def _send(self, exchange: Exchange, frame: bytes) -> bool:
        """Returns whether the connection took it. Raises OSError if there is no connection."""
        connected = self._socket(exchange)
        try:
            connected.sendall(frame)
        except ConnectionError as error:
            self._lost(exchange, f"the connection was closed before it: {error}")
            return False
        self._flying.setdefault(exchange.connection, set()).add(exchange.correlation_id)
        return True

    def _lost(self, exchange: Exchange, problem: str) -> None:
        """The connection cannot be used any more; what follows in the trace has another."""
        self.found.problems.append((exchange, problem))
        self._flying.pop(exchange.connection, None)
        lost = self._sockets.pop(exchange.connection, None)
        if lost is not None:
            lost.close()

    def _receive(self, exchange: Exchange) -> None:
        first: Plain = {}
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                frame = read_frame(self._socket(exchange))
                now = exchange.answer(frame)
            except TimeoutError:
                return self._lost(exchange, f"no reply within {self._timeout_s:g} s")
            except (ConnectionError, MalformedMessage) as error:
                return self._lost(exchange, str(error))
            first = first or now
            again = self._next(exchange, now)
            is_alone = len(self._flying[exchange.connection]) <= 1
            if again is None or not is_alone or time.monotonic() > until:
                break
            self.found.again += 1
            time.sleep(AGAIN_S)
            if not self._send(exchange, exchange.frame(again)):
                return None
        self._flying[exchange.connection].discard(exchange.correlation_id)
        return self._compare(exchange, first if exchange.api == SHARE_FETCH else now, frame)

    def _next(self, exchange: Exchange, now: Plain) -> Struct | None:
        """What is asked after a reply, because the broker is not as far as that of the trace was; None if it is."""
        assert exchange.sent is not None
        if exchange.api == SHARE_FETCH:
            self._shares.take(exchange.sent, now)
            return None if now.get("error_code") else self._shares.follow_up(exchange.sent, exchange.plain_reply)
        if _is_early(exchange, now):
            message = exchange.request()
            translate(message, self._identities)
            return message
        if exchange.api in FIELDS and not now.get("error_code"):
            beat = _beat(exchange)
            self._assignments.take(beat, now)
            return self._assignments.again(beat) if self._assignments.is_behind(beat) else None
        return None

    def _compare(self, exchange: Exchange, now: Plain, frame: bytes) -> None:
        self.found.replies += 1
        if int.from_bytes(frame[:4], "big", signed=True) != exchange.correlation_id:
            self.found.problems.append((exchange, "the reply has another correlation id"))
        said = exchange.plain_reply
        if exchange.api == SHARE_FETCH and exchange.sent is not None:
            said, now = self._shares.settle(exchange.sent, said, now)
        elif exchange.api in FIELDS:
            said, now = self._assignments.settle(_beat(exchange), now)
        for one in compare(exchange, said, now, self._identities, self._rules):
            self.found.differences.append((exchange, one))
        self.found.differences += ((exchange, Answered(one, "")) for one in self._assignments.twice())


def _beat(exchange: Exchange) -> Heartbeat:
    return Heartbeat(exchange.api, exchange.plain_request, exchange.plain_reply)


def _is_early(exchange: Exchange, now: Plain) -> bool:
    """Whether a reply has an error that the broker gives while it is not ready, and that the trace does not have."""
    said = exchange.reply or {}
    found = {code for _, code in errors({**said, "message": now})}
    return bool((found & AGAIN) - {code for _, code in errors(said)})
