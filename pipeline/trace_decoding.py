"""Lines of traces, decoded by msgspec straight into requests, replies and their messages: a third of the time of a JSON
library, whose dicts are then read into messages.

Only what a broker writes is decoded here, fields with their types in a version that is known: a decoder of msgspec is
made for the dataclass that a message is in that version. All else is refused, and goes the long way
(`verdict.from_trace`), which takes what there is; so both have the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from functools import cache
from operator import or_
from types import GenericAlias
from typing import Final

import msgspec

from ..protocol import headers
from ..protocol.errors import UnsupportedVersion
from ..protocol.message import Member, Message, Nullable
from ..protocol.structs import Struct, late_class
from ..protocol.trees import tree
from ..protocol.wire import Array, Bytes, Fixed, Records, String, Wire
from ..verdict.events import UNKNOWN, BatchHead, Reply, Request
from ..verdict.json_reader import batch_head

Event = Request | Reply
Decoder = msgspec.json.Decoder[Struct | None]
NameOf = Callable[[int], str | None]


class _Like(type):
    """The class of classes whose instances are those of `kind`: msgspec asks whether a value is one."""

    kind: type

    def __instancecheck__(cls, found: object) -> bool:
        return isinstance(found, cls.kind)


class _Hex(metaclass=_Like):
    """In place of `bytes`, which are hexadecimal digits in a trace."""

    kind = bytes


class _Head(metaclass=_Like):
    """In place of `BatchHead`."""

    kind = BatchHead


class _Exchange(msgspec.Struct, tag_field="event", gc=False):
    """What lines of requests and of replies have."""

    connection: int
    at_ms: int
    mono_us: int
    exchange: int
    key: int
    version: int
    size: int
    message: msgspec.Raw


class _Asked(_Exchange, tag="request", gc=False):
    correlation_id: int
    api: str
    peer: str
    client_id: str | None
    software: str | None
    software_version: str | None


class _Answered(_Exchange, tag="reply", gc=False):
    waiting: list[int] | None = None


class _Throttled(msgspec.Struct, gc=False):
    """A reply of which nothing else is of interest."""

    throttle_time_ms: int = 0


_LINES: Final = msgspec.json.Decoder(_Asked | _Answered)
_THROTTLED: Final = msgspec.json.Decoder(_Throttled | None)
REFUSED: Final = (ValueError, KeyError, UnsupportedVersion)
"""What `Decoding.event` raises: errors of msgspec are ValueErrors."""


class Decoding:
    """Decodes lines. `keys`: of the APIs that are looked at; `message_keys`: of those whose messages are."""

    def __init__(self, keys: frozenset[int], message_keys: frozenset[int]) -> None:
        self._keys, self._message_keys = keys, message_keys
        self._requests: dict[tuple[int, int], Decoder] = {}
        self._replies: dict[tuple[int, int], Decoder] = {}

    def event(self, line: bytes) -> Event | None:
        """Returns the event of a request or a reply; None if no rule looks at it. Raises REFUSED for all other lines,
        and for one that no broker has written.
        """
        found = _LINES.decode(line)
        key = found.key
        if key not in self._keys:
            return None
        message = None
        if type(found) is _Asked:
            if key in self._message_keys:
                message = self._decoder(self._requests, headers.request_name, found).decode(found.message)
            return Request(
                found.connection,
                found.at_ms,
                found.mono_us,
                found.exchange,
                found.api,
                key,
                found.version,
                found.correlation_id,
                found.client_id,
                found.peer,
                found.software or UNKNOWN,
                found.software_version or UNKNOWN,
                found.size,
                message,
            )
        if key in self._message_keys:
            message = self._decoder(self._replies, headers.response_name, found).decode(found.message)
            throttle_ms = getattr(message, "throttle_time_ms", 0)
        else:
            throttle_ms = getattr(_THROTTLED.decode(found.message), "throttle_time_ms", 0)
        at = found.connection, found.at_ms, found.mono_us
        return Reply(*at, found.exchange, found.size, throttle_ms, message, waiting=found.waiting)

    @staticmethod
    def _decoder(
        known: dict[tuple[int, int], Decoder], name_of: Callable[[int], str | None], found: _Exchange
    ) -> Decoder:
        """Raises KeyError or UnsupportedVersion."""
        at = found.key, found.version
        decoder = known.get(at)
        if decoder is None:
            name = name_of(found.key)
            if name is None:
                raise KeyError(found.key)
            decoder = known[at] = message_decoder(name, found.version)
        return decoder


@cache
def message_decoder(name: str, version: int) -> Decoder:
    """Returns what decodes the JSON of messages of a version, and null. Raises UnsupportedVersion."""
    return msgspec.json.Decoder(_class(tree(name, version)) | None, dec_hook=_converted)


def _converted(kind: type, found: object) -> object:
    """What msgspec has no type for. Raises ValueError, TypeError or KeyError."""
    if kind is _Head:
        return batch_head(found)
    if not isinstance(found, str):
        raise TypeError(found)
    return bytes.fromhex(found)


def _class(message: Message) -> type[Struct]:
    """The class of parsed messages of a version, as a dataclass: only the fields of the version are read."""
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    fields += [(one.name, _type(one.wire)) for one in (*message.plain, *message.tagged)]
    fields += [(one.name, object, _default(one)) for one in message.absent if not _is_struct(one)]
    fields.append(("unknown_tags", type(None), field(default=None)))
    like = make_dataclass("Fields", fields, kw_only=True)
    base: type[Struct] = late_class(message.cls) if any(map(_is_struct, message.absent)) else message.cls
    same = {name: getattr(like, name) for name in ("__annotations__", "__dataclass_fields__")}
    made: type[Struct] = type(base.__name__, (base,), {"__slots__": (), "__module__": __name__, **same})
    made.__slots__ = base.__slots__  # the names of the fields
    return made


def _is_struct(member: Member) -> bool:
    """Whether a field is a struct that is made on first access."""
    return callable(member.default) and member.default is not list


def _default(member: Member) -> object:
    return field(default_factory=list) if member.default is list else field(default=member.default)


def _type(wire: Wire | None) -> object:
    """What msgspec takes for the type of a field."""
    if isinstance(wire, Message):
        return _class(wire)
    if isinstance(wire, Nullable):
        return _class(wire.item) | None
    if isinstance(wire, Fixed):
        return {"?": bool, "d": float, "16s": _Hex}.get(wire.fmt, int)
    if isinstance(wire, Records):
        return _Head | None
    assert isinstance(wire, Array | String | Bytes), wire
    if isinstance(wire, Array):
        made: object = GenericAlias(list, (_type(wire.item),))
    else:
        made = str if isinstance(wire, String) else _Hex
    return or_(made, None) if wire.nullable else made
