"""Clients that are scripts: what one asks and is answered, through the codec, as events of a live broker and as a
trace.
"""

from __future__ import annotations

import json
import struct
from typing import Any, cast

from crc32c import crc32c
from ottla.protocol import codec
from ottla.protocol.json_text import Masks, json_writer
from ottla.protocol.structs import Struct
from ottla.verdict.events import Closed, Event, Opened, Refused, Reply, Request
from ottla.verdict.examiner import Examiner
from ottla.verdict.from_trace import examine
from ottla.verdict.report import ClientReport, RuleReport
from ottla.verdict.rule import key_of

NO_MASKS = Masks(frozenset(), lambda name: False, "")
ADDRESS = "10.0.0.1:5000"


def records(
    sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0, *, transactional: bool = False, time: int = 0
) -> bytes:
    """A batch of which only the header matters, and a checksum of that."""
    head = 0x10 if transactional else 0, count - 1, time, time, producer_id, epoch, sequence, count
    checked = struct.pack(">hiqqqhii", *head)
    return struct.pack(">qiibI", 0, 49, 0, 2, crc32c(checked)) + checked


class Script:
    """What a client does. `asks` is a request with its reply, unless that is `lost`; time goes on by `after_ms` before
    each. `size`: what all requests and replies say of their bytes.
    """

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self.events: list[Event] = []
        self.lines: list[dict[str, Any]] = []
        self._us = 0
        self._exchange = 0
        self._asked: dict[str, Any] = {}

    def _add(self, event: Event, line: dict[str, Any]) -> None:
        self.events.append(event)
        at = {"at_ms": event.at_ms, "mono_us": event.mono_us, "connection": event.connection}
        self.lines.append(json.loads(json.dumps({**at, **line})))

    def _at(self, connection: int, after_ms: float = 0) -> tuple[int, int, int]:
        self._us += int(after_ms * 1000)
        return connection, self._us // 1000, self._us

    def waits(self, ms: float) -> None:
        self._us += int(ms * 1000)

    def opens(self, connection: int = 1, listener: str = "PLAINTEXT") -> None:
        event = Opened(*self._at(connection), address=ADDRESS, listener=listener)
        self._add(event, {"event": "opened", "peer": ADDRESS, "listener": listener})

    def closes(self, connection: int = 1, by: str = "client", reason: str = "") -> None:
        event = Closed(*self._at(connection), by=by, reason=reason)
        self._add(event, {"event": "closed", "peer": ADDRESS, "by": by, "reason": reason})

    def refused(self, key: int, version: int, connection: int = 1) -> None:
        values = {"key": key, "version": version, "correlation_id": 1, "reason": "not served"}
        event = Refused(*self._at(connection), address=ADDRESS, **cast(Any, values))
        self._add(event, {"event": "refused", "peer": ADDRESS, **values})

    def asks(
        self,
        api: str,
        version: int,
        request: Struct,
        reply: Struct | None = None,
        *,
        after_ms: float = 100,
        connection: int = 1,
        client_id: str | None = "client",
        correlation_id: int | None = None,
        lost: bool = False,
        waiting: list[int] | None = None,
    ) -> None:
        self._exchange += 1
        given = _decoded(f"{api}Request", version, request)
        who: dict[str, Any] = {"client_id": client_id, "exchange": self._exchange, "api": api, "key": key_of(api)}
        who |= {"version": version, "correlation_id": self._exchange if correlation_id is None else correlation_id}
        event = Request(*self._at(connection, after_ms), address=ADDRESS, **who, size=self._size, message=given)
        text = json_writer(f"{api}Request", version, NO_MASKS)(given)
        self._add(event, {"event": "request", "peer": ADDRESS, **who, "size": self._size, "message": json.loads(text)})
        self._asked = {"connection": connection, **who}
        if not lost:
            self.answers(reply, waiting)

    def answers(self, reply: Struct | None, waiting: list[int] | None = None) -> None:
        """The reply to what was asked last."""
        name, version, connection = f"{self._asked['api']}Response", self._asked["version"], self._asked["connection"]
        answered = _decoded(name, version, reply) if reply is not None else None
        throttle_time_ms = getattr(answered, "throttle_time_ms", 0)
        at = self._at(connection, 1)
        self.events.append(Reply(*at, self._exchange, self._size, throttle_time_ms, answered, waiting=waiting))
        text = "null" if reply is None else json_writer(name, version, NO_MASKS)(answered)
        line = {"event": "reply", "at_ms": at[1], "mono_us": at[2], **self._asked}
        more = {} if waiting is None else {"waiting": waiting}
        self.lines.append({**line, "size": self._size, **more, "message": json.loads(text)})

    def reports(self, examination: Any = None) -> list[ClientReport]:
        """The report, which is the same for the events and for the trace."""
        live = Examiner(examination)
        for event in self.events:
            live.feed(event)
        found = list(live.report())
        assert list(examine(self.lines, examination).report()) == found
        return found

    def rule(self, id: str) -> RuleReport:
        """What the report says of a rule."""
        (client,) = self.reports()
        (found,) = (one for one in client["rules"] if one["id"] == id)
        return found


def _decoded(name: str, version: int, message: Struct) -> Any:
    """A message after its way through the codec."""
    return codec.parse(name, version, bytes(codec.build(name, version, message)))
