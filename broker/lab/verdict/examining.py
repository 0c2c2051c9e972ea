"""The program that examines the clients of a broker: it takes the blocks of a recorder, gives the rules the events, and
answers questions.

An event of an exchange is made of its bytes, and only what rules look into is decoded. What is rare comes as the line
that a trace has of it.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple, cast

from ....protocol import codec, headers
from ....protocol.buffers import Data
from ....protocol.errors import MalformedMessage
from ....protocol.structs import Struct
from ....verdict.events import UNKNOWN, Reply, Request
from ....verdict.from_trace import TraceExaminer
from ....verdict.rule import Examination
from ...unsupported_version import is_of_version_0
from ..sent_replies import LENGTH, Holes, message_of
from ..traces.feeding import Answer, run
from ..traces.recording import REQUEST, Exchanged, filled, records, times_of
from ..traces.stream import SIZE

QUESTION: Final = b"?"  # with which no block of records begins
PUT_OFF_BYTES_MAX: Final = 32 << 20  # some three seconds of work, which an answer may take longer
TEXTS_MAX: Final = 10_000  # of connections, that are known
COLLECTED_AFTER: Final = (50_000, 20, 100)
"""Of the garbage collector: what rules keep has no circles, and looking for them takes time."""


def question(client_id: str | None) -> bytes:
    """The block that asks for the report of all clients, or of those with a client id."""
    return QUESTION + json.dumps(client_id).encode()


class _Who(NamedTuple):
    """What the text of a connection says."""

    connection: int
    client_id: str | None
    address: str
    software: str
    software_version: str


class Examining:
    """Examines the blocks of a stream. `arguments`: the examination, empty for all rules."""

    put_off_bytes_max = PUT_OFF_BYTES_MAX

    def __init__(self, arguments: Sequence[str], answer: Answer) -> None:
        (examination,) = arguments
        self._of = TraceExaminer(cast(Examination, examination) if examination else None)
        self._answer = answer
        self._known: dict[str, _Who] = {}

    def is_urgent(self, block: bytes) -> bool:
        return block.startswith(QUESTION)

    def take(self, block: bytes) -> None:
        if block.startswith(QUESTION):
            self._report(json.loads(block[len(QUESTION) :]))
            return
        zero_ms = times_of(block).zero_ms
        examiner = self._of.examiner
        for record in records(block):
            if isinstance(record, bytes):
                self._of.take(json.loads(record))
            else:
                examiner.feed(self._event(record, zero_ms))

    def _event(self, record: Exchanged, zero_ms: int) -> Request | Reply:
        kind, given_ms, ns, text, number, key, version, correlation_id, size, _, body, holes, waiting = record
        who = self._known.get(text) or self._who(text)
        at_ms = zero_ms + ns // 1_000_000 if given_ms is None else given_ms
        of, has_message = shape(key, version), key in self._of.examiner.message_keys
        if kind == REQUEST:
            return Request(
                who.connection,
                at_ms,
                ns // 1000,
                number,
                of.api,
                key,
                version,
                correlation_id,
                who.client_id,
                who.address,
                who.software,
                who.software_version,
                size,
                of.request(filled(body, holes)) if has_message and body is not None else None,
            )
        message = of.reply(body, holes)
        throttle_ms = getattr(message, "throttle_time_ms", 0)
        made = message if has_message else None
        return Reply(who.connection, at_ms, ns // 1000, number, size, throttle_ms, made, waiting=waiting)

    def _who(self, text: str) -> _Who:
        said = json.loads(f"{{{text}}}")
        if len(self._known) >= TEXTS_MAX:
            self._known.clear()
        found = self._known[text] = _Who(
            said["connection"],
            said["client_id"],
            said["peer"],
            said["software"] or UNKNOWN,
            said["software_version"] or UNKNOWN,
        )
        return found

    def _report(self, client_id: str | None) -> None:
        clients = [one for one in self._of.examiner.report() if client_id in (None, one["client_id"])]
        self._send([self._of.examiner.unexamined, len(clients)])
        for one in clients:
            self._send(one)

    def _send(self, found: object) -> None:
        data = json.dumps(found, separators=(",", ":")).encode()
        self._answer(SIZE.pack(len(data)) + data)

    def end(self) -> None: ...


class Shape:
    """What all requests of a version of an API have in common."""

    def __init__(self, key: int, version: int) -> None:
        self._request, self._response = cast(str, headers.request_name(key)), headers.response_name(key)
        self.api = self._request.removesuffix("Request")
        self._key, self._version = key, version
        self._header_version = headers.request_header_version(self._request, version)
        self._response_start = 2 * LENGTH + headers.response_header_version(self._response, version)

    def request(self, frame: Data) -> Struct:
        """The message of a request."""
        _, start = headers.client_id_of(self._header_version, frame)
        message: Struct = codec.parse(self._request, self._version, frame, start)
        return message

    def reply(self, body: bytes | None, holes: Holes | None) -> Struct | None:
        """The message of a reply; None if none was sent, or if faults have damaged it."""
        try:
            if body is None:
                return None
            if is_of_version_0(self._response, self._version, body):
                return shape(self._key, 0).reply(body, holes)
            if not holes:
                message: Struct = codec.parse(self._response, self._version, body, self._response_start)
                return message
            return message_of(self._response, self._version, body, holes)
        except MalformedMessage:
            return None


@cache
def shape(key: int, version: int) -> Shape:
    return Shape(key, version)


def begin(arguments: Sequence[str], answer: Answer) -> Examining:
    return Examining(arguments, answer)


def main(arguments: Sequence[str]) -> None:
    gc.set_threshold(*COLLECTED_AFTER)
    run(begin, arguments)
