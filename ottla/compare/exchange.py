"""A request of a client, and its two replies."""

from __future__ import annotations

import asyncio
import copy
import struct
from dataclasses import dataclass, field
from typing import Final

from ..comparing.generations import Round
from ..comparing.identities import Identities, translate
from ..protocol import codec, headers, schema
from ..protocol import messages as m
from ..protocol.errors import MalformedMessage, UnsupportedVersion
from ..protocol.frames import framed
from ..protocol.structs import Struct
from . import produces

WITHOUT_ORDER: Final = ("Fetch",)  # what B answers when it has records; no later request depends on it
ELEMENTS_MAX: Final = 1_000_000  # of a request that is decoded
_START = struct.Struct(">hhi")
_UNREADABLE = (MalformedMessage, UnsupportedVersion, ValueError, KeyError)


@dataclass(eq=False)
class Exchange:
    """`request` is None where the API, its version or the bytes are unknown: then bytes pass, and nothing is compared.

    `after`: exchanges that A had answered before this request came; B answers them first. `beside`: of a Fetch, what
    other connections wrote when A answered.
    """

    frame: bytes
    api_key: int
    version: int
    correlation_id: int
    api: str
    request: Struct | None
    body_at: int  # where the message begins in the frame
    after: tuple[asyncio.Event, ...] = ()
    beside: tuple[asyncio.Event, ...] = ()
    came_at: int = 0  # the number of requests and replies before it
    is_beside_deletion: bool = False  # of a Fetch
    only: set[produces.Place] | None = None  # the partitions of a Produce that B gets; None for all
    answer: bytes | None = None  # of A, once it is there
    # set without an answer where there is none, or will be none any more
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    is_placed: asyncio.Event = field(default_factory=asyncio.Event)  # of a heartbeat: `after` says which go before it
    told: int = 0  # of a heartbeat: see `Assignments.answered`
    round: Round | None = None  # of a JoinGroup that A has answered
    sent: asyncio.Event = field(default_factory=asyncio.Event)  # to B, or never will be
    finished_at: int = 0  # the same as `came_at`, when B has answered
    placed: Struct | None = None  # the message for B with A's assignments of partitions, in A's ids
    shared: Struct | None = None  # of ShareFetch and ShareAcknowledge, what B got
    is_left: bool = False  # by the client, which did not wait for the answer
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_reply(self) -> bool:
        return not (isinstance(self.request, m.ProduceRequest) and self.request.acks == 0)

    @property
    def time_ms(self) -> int:
        """How long a broker may take its time, by the request's own words."""
        if self.request is None:
            return 0
        names = [name for name in self.request.__slots__ if name.endswith(("timeout_ms", "wait_ms"))]
        times: list[int] = [getattr(self.request, name) for name in names]
        return max([0, *times])

    @property
    def waiting_ms(self) -> int:
        """How long B may wait by itself after A has answered: for records, or for a member that fell silent."""
        if isinstance(self.request, m.JoinGroupRequest):
            return self.request.session_timeout_ms
        return self.time_ms if self.api in WITHOUT_ORDER else 0

    def for_b(self, identities: Identities) -> bytes:
        """The frame for B, with B's ids."""
        if self.request is None:
            return framed(self.frame)
        if self.placed is not None:
            return self.frame_of(copy.deepcopy(self.placed), identities)
        message = self.message()
        is_other = translate(message, identities) or not self.has_reply or self.only is not None
        return self._framed(message) if is_other else framed(self.frame)

    def message(self) -> Struct:
        """The request once more, to be changed; B replies to a Produce even where the client wants no reply."""
        found: Struct = codec.parse(f"{self.api}Request", self.version, memoryview(self.frame), self.body_at)
        if isinstance(found, m.ProduceRequest):
            found.acks = found.acks or produces.ACKS
            if self.only is not None:
                produces.leave(found, self.only)
        return found

    def frame_of(self, message: Struct, identities: Identities) -> bytes:
        """The frame of another request of the same API and version, with B's ids."""
        translate(message, identities)
        return self._framed(message)

    def frame_as_it_is(self, message: Struct) -> bytes:
        """The frame of another request of the same API and version that has B's ids already."""
        return self._framed(message)

    def _framed(self, message: Struct) -> bytes:
        return framed(codec.build(f"{self.api}Request", self.version, message, bytearray(self.frame[: self.body_at])))

    def reply(self, frame: bytes) -> Struct | None:
        """A reply, decoded; None if it cannot be."""
        return self._reply(frame)[0]

    def replaced(self, frame: bytes, message: Struct) -> bytes:
        """A reply with another message."""
        out = bytearray(frame[: self._reply(frame)[1]])
        return bytes(codec.build(f"{self.api}Response", self.version, message, out))

    def _reply(self, frame: bytes) -> tuple[Struct | None, int]:
        if self.request is None:
            return None, 0
        name = f"{self.api}Response"
        try:
            header = headers.response_header_version(name, self.version)
            _, start = codec.parse_from("ResponseHeader", header, frame)
            found: Struct = codec.parse(name, self.version, memoryview(frame), start)
        except _UNREADABLE:
            return None, 0
        return found, start


def exchange_of(frame: bytes) -> Exchange:
    """Raises MalformedMessage for a frame that is too short for a header."""
    if len(frame) < _START.size:
        raise MalformedMessage("header", f"a frame of {len(frame)} bytes")
    api_key, version, correlation_id = _START.unpack_from(frame)
    name = headers.request_name(api_key)
    if name is None:
        return Exchange(frame, api_key, version, correlation_id, f"key {api_key}", None, 0)
    api, request, start = name.removesuffix("Request"), None, 0
    try:
        if version in schema.load(name).valid:
            _, start = headers.client_id_of(headers.request_header_version(name, version), frame)
            request = codec.parse(name, version, memoryview(frame), start, ELEMENTS_MAX)
    except _UNREADABLE:
        request = None
    return Exchange(frame, api_key, version, correlation_id, api, request, start)
