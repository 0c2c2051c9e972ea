"""The requests of a trace and their replies, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from ..broker.lab.traces.events import MASKS
from ..protocol import codec, headers, schema
from ..protocol.json_text import JsonWriter, json_writer
from ..protocol.schema import StructSchema
from ..protocol.structs import Struct
from ..traces.reading import frame_of, text
from ..verdict.trace_lines import Event, number
from .plain import NotWhole, message_of

SASL = frozenset((17, 36))  # SaslHandshake, SaslAuthenticate


@dataclass
class Exchange:
    """A request of a trace. `reply`: what the trace has of its reply, None if it has none. `sent`: the request that was
    sent, in ids of the broker.
    """

    event: Event
    reply: Event | None = None
    sent: Struct | None = field(default=None, compare=False)

    @property
    def api(self) -> str:
        return text(self.event, "api")

    @property
    def key(self) -> int:
        return number(self.event, "key")

    @property
    def version(self) -> int:
        return number(self.event, "version")

    @property
    def connection(self) -> int:
        return number(self.event, "connection")

    @property
    def node(self) -> int | None:
        """The node to which the client had connected; None in a trace of one node."""
        node = self.event.get("node")
        return node if isinstance(node, int) else None

    @property
    def correlation_id(self) -> int:
        return number(self.event, "correlation_id")

    @property
    def plain_request(self) -> dict[str, object]:
        """The request as the trace shows it."""
        plain = self.event.get("message")
        return plain if isinstance(plain, dict) else {}

    @property
    def plain_reply(self) -> dict[str, object]:
        """The reply as the trace shows it."""
        plain = self.reply.get("message") if self.reply is not None else None
        return plain if isinstance(plain, dict) else {}

    @property
    def request_schema(self) -> StructSchema:
        return schema.load(f"{self.api}Request").root

    @property
    def reply_schema(self) -> StructSchema:
        return schema.load(f"{self.api}Response").root

    @property
    def has_reply(self) -> bool:
        """Whether the trace has a reply with a message."""
        return self.reply is not None and isinstance(self.reply.get("message"), dict)

    def frame(self, message: Struct) -> bytes:
        """The bytes of a request of this API and version, with their length, as this client sends them."""
        client_id = text(self.event, "client_id") if self.event.get("client_id") is not None else None
        return headers.request_frame(self.api, self.version, message, self.correlation_id, client_id)

    def request(self) -> Struct:
        """The request, in ids of the trace. Raises NotWhole."""
        name, version = f"{self.api}Request", self.version
        if self.event.get("raw"):
            frame = frame_of(self.event)
            if not frame:
                raise NotWhole("the frame in the trace is damaged")
            _, start = headers.client_id_of(headers.request_header_version(name, version), frame)
            message: Struct = codec.parse(name, version, frame, start)
            return message
        return message_of(name, self.plain_request)

    def answer(self, frame: bytes) -> dict[str, object]:
        """The plain form of a reply that came now, without its length. Raises MalformedMessage."""
        name = f"{self.api}Response"
        start = 4 + headers.response_header_version(name, self.version)
        message = codec.parse(name, self.version, frame, start)
        plain: dict[str, object] = json.loads(_writer(name, self.version)(message))
        return plain


@cache
def _writer(name: str, version: int) -> JsonWriter:
    return json_writer(name, version, MASKS)


@dataclass
class Step:
    """What happened next in a trace: a request was sent, a reply came, or a connection was closed. `at_us`: since the
    first.
    """

    kind: str
    connection: int
    at_us: int
    exchange: Exchange | None = None


def steps(events: Iterable[Event]) -> Iterator[Step]:
    """Yields what happened in a trace, in order. Each request knows its reply already. Log-ins are left out: their
    secrets are not in it.
    """
    found = [one for one in events if number(one, "key") not in SASL]
    exchanges = _exchanges(found)
    began_us = next((number(one, "mono_us") for one in found if "connection" in one), 0)
    for event in found:
        kind, at_us = str(event["event"]), number(event, "mono_us") - began_us
        if kind == "closed":
            yield Step(kind, number(event, "connection"), at_us)
        elif id(event) in exchanges:
            yield Step(kind, number(event, "connection"), at_us, exchanges[id(event)])


def _exchanges(events: Iterable[Event]) -> dict[int, Exchange]:
    """By the identity of an event, the request that it is or that it replies to."""
    asked: dict[tuple[int, int], Exchange] = {}
    found: dict[int, Exchange] = {}
    for event in events:
        at = number(event, "connection"), number(event, "exchange")
        if event["event"] == "request":
            asked[at] = found[id(event)] = Exchange(event)
        elif event["event"] == "reply" and at in asked:
            found[id(event)] = exchange = asked.pop(at)
            exchange.reply = event
    return found
