"""The registry of the lab's routes: what each takes and returns, declared once, beside the function that answers.

    @dataclass(frozen=True)
    class Hold:
        topic: str
        partition: Annotated[int | None, "Only this partition."] = None

    @route("POST /v1/hold", example=Hold("orders"), errors={404: "the topic does not exist"})
    def hold(lab: Lab, asked: Hold) -> PartitionsView:
        \"""Freezes the high watermark of a topic.\"""

Fields of the class that the path names (`/v1/faults/{number}`) come from the path. The others come from the query of a
GET or DELETE, and from the JSON body of a POST or PUT. Everything else is computed from that: how requests are read and
refused, `/v1/openapi.json`, the reference in the documentation, and the steps of scenario files. The function's name is
the name of the step.

A function returns its reply (a TypedDict, a dataclass, ...), a `Later` of one, or `Turns`. It raises Refused,
ValueError (400), LookupError (404), or ApiError (409). Only POST, PUT and DELETE may change anything.

Modules with routes are in `PARTS`, and imported when the first request comes for them.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple, NotRequired, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ...protocol.errors import ApiError
from ..later import Later, after
from .encode import JSON, as_json, in_turns
from .http import Request, Response, preferred
from .lab import Lab
from .shapes import LISTS, Invalid, hints, json_of, parse, plain

A = TypeVar("A")
PARTS = {  # the first word of a path (after /v1), and the module with its routes
    "live": "health_routes",
    "ready": "health_routes",
    "metrics": "health_routes",
    "oauth": "oauth_routes",
    "openapi.json": "openapi_routes",
    "state": "state_routes",
    "topics": "state_routes",
    "topic-sums": "topic_routes",
    "share": "state_routes",
    "clients": "client_routes",
    "clock": "clock.routes",
    "transactions": "state_routes",
    "faults": "faults.routes",
    "records": "records.routes",
    "requests": "requests.routes",
    "traces": "traces.routes",
    "verdict": "verdict.routes",
    **dict.fromkeys(("hold", "release", "policy", "step"), "watermark_routes"),
    "groups": "group_routes",
    "seed": "seed_routes",
    "nodes": "node_routes",
    **dict.fromkeys(("partitions", "losses", "isr-size"), "partition_routes"),
    "wait": "wait_routes",
    **dict.fromkeys(("retention", "compact", "reload", "expire", "reset"), "upkeep_routes"),
}
IN_QUERY = ("GET", "DELETE")


class ErrorView(TypedDict):
    """Why a request was refused. `key`: the path of the value that is wrong, if there is one."""

    error: str
    key: NotRequired[str]


class Refused(Exception):
    """A request that gets an error reply."""

    def __init__(self, status: int, problem: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.headers = headers


class Page(NamedTuple):
    """A form of a reply that is not JSON. `render`: makes it of the reply in pieces; an empty one ends a turn of the
    loop. `policy`: what a browser may do with it (Content-Security-Policy).
    """

    content_type: str
    render: Callable[[object], Iterator[str]]
    policy: str

    def response(self, reply: object) -> Response:
        pieces = (one.encode() for one in self.render(reply))
        return Response(200, self.content_type, pieces, (("Content-Security-Policy", self.policy),))


@dataclass(frozen=True)
class Nothing:
    """What a route takes that takes nothing."""


@dataclass(frozen=True)
class Route:
    """A route. `errors`: what each status means. `content_type`: of the reply. `takes_request`: the function takes the
    request itself, such as a `form`, and returns a Response. `pages`: other forms of the reply, by the value of the
    key `format`; without it the header Accept chooses.
    """

    method: str
    path: str
    call: Callable[[Lab, object], object]
    example: object
    errors: Mapping[int, str] = field(default_factory=dict)
    content_type: str = JSON
    takes_request: bool = False
    reply_kind: object = None
    form: type | None = None
    pages: Mapping[str, Page] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.call.__name__

    @property
    def words(self) -> str:
        """What it does: the function's docstring."""
        return " ".join((self.call.__doc__ or "").split())

    @property
    def part(self) -> str:
        """The word of the path that says which part of the lab it belongs to."""
        return word_of(list(self.segments))

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The fields that the path has."""
        return tuple(one[1:-1] for one in self.segments if one.startswith("{"))

    @property
    def takes_body(self) -> bool:
        return self.method not in IN_QUERY and not self.takes_request

    @cached_property
    def asked(self) -> type:
        """The class of what it takes."""
        return Nothing if self.takes_request else cast(type, get_type_hints(self.call)["asked"])

    @cached_property
    def reply(self) -> object:
        """The type of the reply."""
        if self.takes_request:
            return self.reply_kind
        kind: object = get_type_hints(self.call, include_extras=True)["return"]
        if get_origin(kind) is Later:
            return get_args(kind)[0]
        return get_args(kind)[2] if get_origin(kind) is Generator else kind

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Returns the values of the path's fields; None for another path."""
        if len(segments) != len(self.segments):
            return None
        values = {}
        for own, given in zip(self.segments, segments, strict=True):
            if own.startswith("{") and given:
                values[own[1:-1]] = unquote(given)
            elif own != given:
                return None
        return values

    def target(self, values: Mapping[str, object]) -> tuple[str, dict[str, object] | None]:
        """Returns the path, with the query, and the body of a request with these values."""
        left = dict(values)
        segments = [quote(str(left.pop(one[1:-1], "")), safe="") if one[:1] == "{" else one for one in self.segments]
        path = "/".join(["", *segments])
        if self.method not in IN_QUERY:
            return path, left
        query = urlencode({name: _query_text(one) for name, one in left.items() if one is not None}, doseq=True)
        return f"{path}?{query}" if query else path, None

    def answer(self, lab: Lab, in_path: Mapping[str, str], request: Request) -> Response | Later[Response]:
        if self.takes_request:
            return cast("Response | Later[Response]", self.call(lab, request))
        asked = self.read(in_path, request)
        page = self._page(asked, request)
        reply = self.call(lab, asked)
        respond = as_json if page is None else page.response
        if isinstance(reply, Later):
            return after(reply, lambda done: respond(done.get()))
        if page is not None:
            return page.response(reply)
        return in_turns(reply) if isinstance(reply, Generator) else as_json(reply)

    def _page(self, asked: object, request: Request) -> Page | None:
        """Returns the form of the reply that a request wants; None for JSON."""
        if not self.pages:
            return None
        named: str | None = getattr(asked, "format", None)
        if named is not None:
            return self.pages.get(named)
        by_type = {one.content_type.partition(";")[0]: one for one in self.pages.values()}
        return by_type.get(preferred((JSON, *by_type), request.headers.get("accept", "")))

    def read(self, in_path: Mapping[str, str], request: Request) -> object:
        """Returns what a request asks for. Raises Invalid, also for a body that is no JSON."""
        types_of = hints(self.asked)
        values: dict[str, object] = _query(types_of, request.query) if self.method in IN_QUERY else _body(request.body)
        for name in in_path:
            if name in values:
                raise Invalid(name, "is in the path already")
        values |= {name: json_of(types_of[name], text) for name, text in in_path.items()}
        return parse(self.asked, values)


def _query_text(value: object) -> object:
    return json.dumps(value) if isinstance(value, bool) else value


def _body(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data) if data else {}
    except (ValueError, RecursionError) as error:
        raise Invalid("", f"the body of the request is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Invalid("", "the body of the request must be a JSON object")
    return found


def _query(types_of: Mapping[str, object], text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=100):
        kind = plain(types_of[name])[0] if name in types_of else str
        if get_origin(kind) in LISTS:
            cast(list[object], found.setdefault(name, [])).append(json_of(get_args(kind)[0], value))
        elif name in found:
            raise Invalid(name, "is given twice")
        else:
            found[name] = json_of(kind, value)
    return found


def route(
    at: str, *, example: A, errors: Mapping[int, str] | None = None, pages: Mapping[str, Page] | None = None
) -> Callable[[Callable[[Lab, A], object]], Route]:
    """Declares a route. `at`: method and path. `example`: what a test and the documentation ask. `errors`: what each
    status means for this route; 400 needs no words.
    """
    method, path = at.split(" ")

    def declare(call: Callable[[Lab, A], object]) -> Route:
        return Route(
            method, path, cast(Callable[[Lab, object], object], call), example, errors or {}, pages=pages or {}
        )

    return declare


def plain_route(
    at: str,
    *,
    reply: object = None,
    content_type: str = JSON,
    errors: Mapping[int, str] | None = None,
    form: type | None = None,
) -> Callable[[Callable[[Lab, Request], Response | Later[Response]]], Route]:
    """Declares a route whose function takes the request itself and returns a response, such as one that is not JSON."""
    method, path = at.split(" ")

    def declare(call: Callable[[Lab, Request], Response | Later[Response]]) -> Route:
        taken = cast(Callable[[Lab, object], object], call)
        return Route(method, path, taken, Nothing(), errors or {}, content_type, True, reply, form)

    return declare


@cache
def routes_of(module: str) -> tuple[Route, ...]:
    """The routes that a module declares, in their order."""
    found = vars(importlib.import_module(f".{module}", __package__))
    here = f"{__package__}.{module}"
    return tuple(one for one in found.values() if isinstance(one, Route) and one.call.__module__ == here)


def every_route() -> tuple[Route, ...]:
    """All routes. Imports every part of the lab."""
    return tuple(one for module in dict.fromkeys(PARTS.values()) for one in routes_of(module))


def word_of(segments: list[str]) -> str:
    """The word of a path that says which part of the lab it belongs to."""
    return segments[1] if segments[0] == "v1" and len(segments) > 1 else segments[0]


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Returns the route of a request, and the values of its path's fields. Raises Refused (404 or 405)."""
    segments = path.split("/")[1:] or [""]  # a path without a slash, as CONNECT has
    word = word_of(segments)
    allowed = []
    for one in routes_of(PARTS[word]) if word in PARTS else ():
        values = one.match(segments)
        if values is not None and one.method == method:
            return one, values
        if values is not None:
            allowed.append(one.method)
    if allowed:
        methods = ", ".join(allowed)
        raise Refused(405, f"{path} takes {methods}, not {method}", (("Allow", methods),))
    raise Refused(404, f"no such resource: {method} {path}; /v1/openapi.json describes all")


def error_reply(error: Exception) -> Response | None:
    """The reply for an exception of a route; None if the exception is a bug."""
    if isinstance(error, Refused):
        return as_json(ErrorView(error=error.problem), error.status)._replace(headers=error.headers)
    if isinstance(error, Invalid):
        return as_json(ErrorView(error=str(error), key=error.place), 400)
    if isinstance(error, RecursionError):
        return as_json(ErrorView(error="the JSON of the body is nested too deeply"), 400)
    if isinstance(error, ApiError):
        return as_json(ErrorView(error=str(error)), 409)
    if isinstance(error, LookupError) and not isinstance(error, KeyError | IndexError):
        return as_json(ErrorView(error=str(error)), 404)
    return as_json(ErrorView(error=str(error)), 400) if isinstance(error, ValueError) else None
