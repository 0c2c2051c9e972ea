"""The events of a running broker, for the rules of `verdict/`: what a trace would have of them."""

from __future__ import annotations

from functools import partial

from ....protocol.errors import MalformedMessage
from ....protocol.structs import Struct, copied
from ....verdict.events import UNKNOWN, Closed, Event, Opened, Refused, Request
from ....verdict.events import Reply as Answered
from ....verdict.examiner import Examiner
from ....verdict.rule import Examination
from ...broker import Broker
from ...machine import MachineTime
from ...replies import Reply
from ..seam import Asked, Line, Sent, Watcher
from ..sent_replies import LENGTH, holes_of, message_of

LEFT_ALONE = (0, 1)  # the keys of Produce and Fetch, whose handlers do not change what rules look at


class Live(Watcher):
    """Examines the clients of a broker, by what is sent."""

    order = 10

    def __init__(self, examination: Examination | None, broker: Broker, machine: MachineTime) -> None:
        self.examination = examination
        self.examiner = Examiner(examination)
        self.events = 0
        self._keys = self.examiner.keys
        self._message_keys = self.examiner.message_keys
        self._broker, self._work_ns = broker, machine.work_ns

    def feed(self, event: Event) -> None:
        self.events += 1
        self.examiner.feed(event)

    def at(self, line: Line) -> tuple[int, int, int]:
        """The connection and the times of an event."""
        return line.number, self._broker.schedule.now_ms(), self._work_ns() // 1000

    def opened(self, line: Line) -> None:
        self.feed(Opened(*self.at(line), address=line.peer.address))

    def closed(self, line: Line) -> None:
        self.feed(Closed(*self.at(line)))

    def refused(self, line: Line, frame: memoryview, reason: str) -> None:
        refused = Refused(*self.at(line), address=line.peer.address, reason=reason)
        if len(frame) >= 2 * LENGTH:
            refused.key, refused.version, refused.correlation_id = (
                _int(frame, 0, 2),
                _int(frame, 2, 4),
                _int(frame, 4, 8),
            )
        self.feed(refused)

    def asked(self, number: int, line: Line, context: Asked, request: Struct, frame: memoryview) -> Sent | None:
        api = context.api
        key = api.key
        if key not in self._keys:
            return None
        has_message = key in self._message_keys
        software, version = context.peer.software
        self.feed(
            Request(
                *self.at(line),
                exchange=number,
                api=api.name,
                key=key,
                version=context.version,
                correlation_id=context.correlation_id,
                client_id=context.client_id,
                address=context.peer.address,
                software=software or UNKNOWN,
                software_version=version or UNKNOWN,
                size=len(frame),
                message=_as_sent(key, request) if has_message else None,
            )
        )
        return partial(self._answered, line, number, api.response, context.version, has_message)

    def _answered(
        self, line: Line, number: int, response: str, version: int, has_message: bool, reply: Reply | None, end: bool
    ) -> None:
        if reply is None and end:
            return
        message = _message(response, version, reply) if reply is not None else None
        self.feed(
            Answered(
                *self.at(line),
                exchange=number,
                size=reply.size - LENGTH if reply is not None else 0,
                throttle_time_ms=getattr(message, "throttle_time_ms", 0),
                message=message if has_message else None,
            )
        )


def _int(frame: memoryview, start: int, end: int) -> int:
    return int.from_bytes(frame[start:end], "big", signed=True)


def _as_sent(key: int, request: Struct) -> Struct:
    """The message of a request, which stays as it was sent: handlers take theirs apart, and complete it."""
    return request if key in LEFT_ALONE else copied(request)


def _message(response: str, version: int, reply: Reply) -> Struct | None:
    """The message of a reply; None if faults have damaged it."""
    try:
        return message_of(response, version, reply.head, holes_of(reply))
    except MalformedMessage:
        return None
