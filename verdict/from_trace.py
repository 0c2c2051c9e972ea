"""The events of a trace: each line of it, decoded from JSON (format 1, docs/reference/trace.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import itemgetter
from typing import Final, cast

from ..protocol import headers, schema
from ..protocol import messages as m
from ..protocol.errors import UnsupportedVersion
from ..protocol.schema import FieldSchema, Schema, StructSchema
from ..protocol.structs import Struct
from .events import UNKNOWN, BatchHead, Closed, Event, Opened, Refused, Reply, Request
from .examiner import ALL, Examiner, Share
from .json_reader import JsonReader, json_reader
from .rule import Examination
from .trace_lines import Runs, number

Line = Mapping[str, object]
FILTERS: Final = "filters"
"""Of the first line of a trace: what was traced, null for everything."""
Convert = Callable[[object], object]
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "bool": (bool,),
    "float64": (float, int, str),
}


class FilteredTrace(ValueError):
    """A trace that does not have all requests. A verdict of it would blame clients for what was left out."""

    def __init__(self, filters: Mapping[str, object]) -> None:
        shown = ", ".join(f"{name}={value}" for name, value in filters.items())
        super().__init__(f"the trace was filtered ({shown}), and a verdict needs all requests: trace without filters")


class TraceExaminer:
    """Examines the clients of a trace, line by line. `share`: of its clients, all by default."""

    def __init__(self, examination: Examination | None = None, share: Share = ALL) -> None:
        self.examiner = Examiner(examination, share)
        self._runs = Runs()

    def take(self, line: Line) -> Event | None:
        """Takes the next line; returns the event that it was for the rules. Raises FilteredTrace."""
        examiner, kind = self.examiner, line.get("event")
        if kind == "trace":
            filters = line.get(FILTERS)
            if isinstance(filters, dict):
                raise FilteredTrace(filters)
        if kind in ("dropped", "damaged") or self._runs.begins(line):
            examiner.forget()
        event = event_of(line, examiner.keys, examiner.message_keys)
        if event is not None:
            examiner.feed(event)
        return event


def examine(lines: Iterable[Line], examination: Examination | None = None) -> Examiner:
    """Examines the clients of a trace. Raises FilteredTrace."""
    made = TraceExaminer(examination)
    for line in lines:
        made.take(line)
    return made.examiner


def event_of(line: Line, keys: frozenset[int], message_keys: frozenset[int]) -> Event | None:
    """Returns the event of a line; None for one that no rule looks at. `keys`: of the APIs that are looked at;
    `message_keys`: of those whose messages are decoded.
    """
    kind = line.get("event")
    if kind in ("request", "reply"):
        try:
            return (_written_request if kind == "request" else _written_reply)(line, keys, message_keys)
        except (KeyError, TypeError):
            pass  # the line was changed; what follows reads what is left of it
    at = number(line, "connection"), number(line, "at_ms"), number(line, "mono_us")
    if kind in ("request", "reply"):
        key, version = number(line, "key"), number(line, "version")
        if key not in keys:
            return None
        message = message_of_line(key, str(kind), version, line.get("message")) if key in message_keys else None
        if kind == "request":
            return _request(line, at, message)
        given = line.get("message")
        throttle = number(given, "throttle_time_ms") if isinstance(given, dict) else 0
        exchange, size = number(line, "exchange"), number(line, "size")
        made = Reply(*at, exchange=exchange, size=size, throttle_time_ms=throttle, message=message)
        made.waiting = _waiting(line)
        return made
    if kind == "opened":
        return Opened(*at, address=_text(line, "peer"), to=_text(line, "to"), listener=_text(line, "listener"))
    if kind == "closed":
        return Closed(*at, by=_text(line, "by"), reason=_text(line, "reason"))
    if kind == "refused":
        return Refused(
            *at,
            address=_text(line, "peer"),
            key=_maybe(line, "key"),
            version=_maybe(line, "version"),
            correlation_id=_maybe(line, "correlation_id"),
            reason=_text(line, "reason"),
        )
    return None


_OF_REQUEST: Final = itemgetter(
    *("connection", "at_ms", "mono_us", "exchange", "key", "version", "correlation_id", "size", "message"),
    *("api", "peer", "client_id", "software", "software_version"),
)
_OF_REPLY: Final = itemgetter("connection", "at_ms", "mono_us", "exchange", "key", "version", "size", "message")
_NUMBERS: Final = {int}
_TEXTS: Final = {str}, {str, type(None)}


def _written_request(line: Line, keys: frozenset[int], message_keys: frozenset[int]) -> Request | None:
    """Like `event_of`, for a line as a broker writes it. Raises KeyError or TypeError for another one."""
    found = _OF_REQUEST(line)
    connection, at_ms, mono_us, exchange, key, version, correlation_id, size, message, api, peer, *who = found
    if {*map(type, found[:8])} != _NUMBERS or {*map(type, who), type(api), type(peer)} not in _TEXTS:
        raise TypeError
    if key not in keys:
        return None
    client_id, software, software_version = who
    at = connection, at_ms, mono_us, exchange, api, key, version, correlation_id
    who = client_id, peer, software or UNKNOWN, software_version or UNKNOWN
    made = message_of_line(key, "request", version, message) if key in message_keys else None
    return Request(*at, *who, size, made)


def _written_reply(line: Line, keys: frozenset[int], message_keys: frozenset[int]) -> Reply | None:
    """Like `event_of`, for a line as a broker writes it. Raises KeyError or TypeError for another one."""
    *found, message = _OF_REPLY(line)
    if {*map(type, found)} != _NUMBERS:
        raise TypeError
    connection, at_ms, mono_us, exchange, key, version, size = found
    if key not in keys:
        return None
    throttle = number(message, "throttle_time_ms") if isinstance(message, dict) else 0
    made = message_of_line(key, "reply", version, message) if key in message_keys else None
    return Reply(connection, at_ms, mono_us, exchange, size, throttle, made, waiting=_waiting(line))


def _request(line: Line, at: tuple[int, int, int], message: Struct | None) -> Request:
    return Request(
        *at,
        exchange=number(line, "exchange"),
        api=_text(line, "api"),
        key=number(line, "key"),
        version=number(line, "version"),
        correlation_id=number(line, "correlation_id"),
        client_id=_text(line, "client_id") if line.get("client_id") is not None else None,
        address=_text(line, "peer"),
        software=_text(line, "software") or UNKNOWN,
        software_version=_text(line, "software_version") or UNKNOWN,
        size=number(line, "size"),
        message=message,
    )


def _waiting(line: Line) -> list[int] | None:
    found = line.get("waiting")
    return [one for one in found if isinstance(one, int)] if isinstance(found, list) else None


def _maybe(line: Line, name: str) -> int | None:
    found = line.get(name)
    return found if isinstance(found, int) else None


def _text(line: Line, name: str) -> str:
    found = line.get(name)
    return found if isinstance(found, str) else ""


def message_of_line(key: int, kind: str, version: int, found: object) -> Struct | None:
    """Returns the message of a line from its JSON; None if it is none. `kind`: request or reply."""
    try:
        return _reader(key, kind, version)(found)
    except (ValueError, KeyError, TypeError, UnsupportedVersion):
        return _message_of_changed(key, kind, found)


@cache
def _reader(key: int, kind: str, version: int) -> JsonReader:
    """Raises KeyError, UnsupportedVersion."""
    name = headers.request_name(key)
    if name is None:
        raise KeyError(key)
    return json_reader(name if kind == "request" else headers.response_name(key), version)


def _message_of_changed(key: int, kind: str, found: object) -> Struct | None:
    name = headers.request_name(key)
    if name is None or not isinstance(found, dict):
        return None
    try:
        return message_of(name if kind == "request" else headers.response_name(key), found)
    except (ValueError, TypeError, AttributeError, UnsupportedVersion):
        return None  # the line was changed


def message_of(name: str, found: Line) -> Struct:
    """Returns the message of a schema from its JSON (`json_text`), in any version and with fields missing: the slow
    form of `json_reader`.
    """
    loaded = schema.load(name)
    return _struct(loaded, loaded.root)(found)


@cache
def _makers(name: str) -> dict[str, Callable[[Line], Struct]]:
    return {}


def _struct(loaded: Schema, struct: StructSchema) -> Callable[[Line], Struct]:
    """Returns the function that makes a struct of its JSON."""
    makers = _makers(loaded.name)
    if struct.name in makers:
        return makers[struct.name]
    make: Callable[..., Struct] = m.struct_class(loaded, struct)
    convert = {one.name: _convert(loaded, one) for one in struct.fields}

    def of(found: Line) -> Struct:
        values = {name: convert[name](value) for name, value in found.items() if name in convert}
        return make(**values, unknown_tags=_tags(found.get("unknown_tags")))

    makers[struct.name] = of
    return of


def _tags(found: object) -> list[tuple[int, bytes]] | None:
    if not isinstance(found, dict):
        return None
    return [(int(tag), bytes.fromhex(data)) for tag, data in found.items()]


def _convert(loaded: Schema, field: FieldSchema) -> Convert:
    one = _element(loaded, field)
    if field.is_array:
        return lambda found: _maybe_null(field, found, lambda: [one(each) for each in cast("list[object]", found)])
    return lambda found: _maybe_null(field, found, lambda: one(found))


def _maybe_null(field: FieldSchema, found: object, convert: Callable[[], object]) -> object:
    """Raises TypeError for null where the schema has none."""
    if found is not None:
        return convert()
    if field.nullable == schema.NONE:
        raise TypeError(f"{field.name} is null")
    return None


def _element(loaded: Schema, field: FieldSchema) -> Convert:
    """Returns what converts a value, or one of an array. Null is none."""
    if field.struct is not None:
        make = _struct(loaded, field.struct)
        return lambda found: make(cast(Line, found))
    if field.element_type == "records":
        return _records
    if field.element_type in ("bytes", "uuid"):
        return lambda found: _bytes(cast(str, _of_type((str,), found)))
    types = _TYPES.get(field.element_type, (int,))
    return lambda found: _of_type(types, found)


def _of_type(types: tuple[type, ...], found: object) -> object:
    """Raises TypeError for a value of another type, which no broker has written."""
    if type(found) not in types:
        raise TypeError(f"{found!r} is not of {types}")
    return found


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:  # a secret that is masked
        return text.encode()


def _records(found: object) -> BatchHead | None:
    if not isinstance(found, dict):
        return None
    names = {"bytes": "size", "count": "records"}
    values = {names.get(name, name): value for name, value in found.items()}
    known = {name: _of_type((int,), one) for name, one in values.items() if name in BatchHead._fields}
    return BatchHead(**cast(dict[str, int], known))
