"""Where errors stand in the replies of an API, and which errors Kafka documents or gives there.

An API's file declares in `ERRORS` the places of its reply where an error can stand: the whole reply, each topic, each
partition, each group. Error replies (`error_replies`), the documentation's table and fault injection read these
declarations. What a reply contains besides the error is what Kafka's `getErrorResponse` of the request puts there.

A place below the root of a reply is reached through arrays. An array answers an array of the request, element by
element, and its elements are identified by fields that both have: the roles of an element (`topic`, `partition`,
`group`, ...) are the names of these fields that are the same in all APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple, Protocol

from ..protocol.errors import CODES, ApiError, Errors, default_message
from ..protocol.schema import NO_UUID

ITSELF = ""  # in place of a field of a request: its elements are plain values
LAST_VERSION = 0x7FFF
ROOT_ROLES = {
    "group_id": "group",
    "member_id": "member",
    "group_instance_id": "instance",
    "transactional_id": "transactional_id",
    "v3_and_below_transactional_id": "transactional_id",
}
Roles = Mapping[str, object]
"""What identifies an element, by role."""
Where = Callable[[Roles], bool]
"""Whether an element is chosen."""


def codes(names: str) -> tuple[int, ...]:
    """Returns the error codes with these names, which spaces separate."""
    return tuple(CODES[name] for name in names.split())


EVERYWHERE = codes("UNKNOWN_SERVER_ERROR ILLEGAL_SASL_STATE")  # that any request can get
CONTROLLER = codes("NOT_CONTROLLER REQUEST_TIMED_OUT")  # of requests that brokers forward to the controller
COORDINATOR = codes("COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS NOT_COORDINATOR")


class Text(Enum):
    """What the message beside an error code is."""

    NOTHING = "none"
    OWN = "of the case"  # none if it is that of the code, or for UNKNOWN_SERVER_ERROR: it could tell internals
    OF_CODE = "of the code"
    OWN_OR_OF_CODE = "of the case, or of the code"
    OWN_OF_ALL_OR_OF_CODE = "of the case, also for UNKNOWN_SERVER_ERROR, or of the code"

    def of(self, error: ApiError) -> str | None:
        """Returns the message for an error."""
        of_code = default_message(error.code)
        is_shown = error.code != Errors.UNKNOWN_SERVER_ERROR or self is Text.OWN_OF_ALL_OR_OF_CODE
        own = error.own_message if is_shown else None
        if self is Text.OWN:
            return None if own == of_code else own
        return of_code if own is None or self is Text.OF_CODE else own


class Key(NamedTuple):
    """A role, and the fields of the reply and of the request that have it."""

    role: str
    reply: str
    request: str


@dataclass(frozen=True, slots=True)
class Level:
    """An array of a reply; `requests` are the arrays whose elements it answers (`outer.inner`: an array within the
    elements of another one), none if the request has no such elements. Elements without keys are identified by their
    position. `null`: a key in the reply that is null in the request.
    """

    reply: str
    requests: tuple[str, ...]
    keys: tuple[Key, ...]
    null: str | None

    def elements(self, part: object) -> Iterator[object]:
        """Yields the elements of (a part of) a request; each once if several arrays name them."""
        found = (one for holder, name in self.holders(part) for one in getattr(holder, name) or ())
        if len(self.requests) < 2:
            yield from found
            return
        yield from {tuple(self.value(one, key.request) for key in self.keys): one for one in found}.values()

    def holders(self, part: object) -> Iterator[tuple[object, str]]:
        """Yields the structs that have the arrays of (a part of) a request, and the arrays' fields."""
        for name in self.requests:
            outer, _, inner = name.rpartition(".")
            yield from ((one, inner) for one in (getattr(part, outer) if outer else (part,)))

    def requested(self, element: object, position: int, outer: Roles) -> Roles:
        """Returns the roles of an element of a request, with those of the elements that it is in."""
        return self._roles(element, position, outer, [(key.role, key.request) for key in self.keys])

    def replied(self, element: object, position: int, outer: Roles) -> Roles:
        """Returns the roles of an element of a reply."""
        return self._roles(element, position, outer, [(key.role, key.reply) for key in self.keys])

    def _roles(self, element: object, position: int, outer: Roles, fields: Sequence[tuple[str, str]]) -> Roles:
        if not self.keys:
            return {**outer, "position": position}
        named = ((role, self.value(element, field)) for role, field in fields)
        return {**outer, **{role: value for role, value in named if value not in (None, "", NO_UUID)}}

    @staticmethod
    def value(element: object, field: str) -> object:
        """Returns a field of an element of a request."""
        return element if field == ITSELF else getattr(element, field)


def array(
    reply: str, request: str | tuple[str, ...] | None, *, null: str | None = None, **keys: str | tuple[str, str]
) -> Level:
    """Returns the level of an array of the reply, and of the request.

    `keys`: by role the field that reply and request have, or the field of each.
    """
    requests = () if request is None else (request,) if isinstance(request, str) else request
    pairs = ((role, (field, field) if isinstance(field, str) else field) for role, field in keys.items())
    return Level(reply, requests, tuple(Key(role, *fields) for role, fields in pairs), null)


@dataclass(frozen=True, slots=True, eq=False)  # declared once: compared, and hashed, as the object that it is
class Place:
    """A place where errors can stand, in some versions of a reply.

    `what`: its name. `errors`: the codes that Kafka gives there, besides those that any request can get. `others`: the
    values of other fields beside an error; fields that a version does not have, or cannot leave out, are skipped.
    `of_whole`: whether an error of the whole request stands here. `is_kept`: whether an element keeps its other fields
    when an error is put into a reply that the handler has made. `code`: None for elements that only are listed.
    `copied`: fields of the whole reply that have the value of the request.
    """

    what: str
    errors: tuple[int, ...] = ()
    levels: tuple[Level, ...] = ()
    others: tuple[tuple[str, object], ...] = ()
    text: Text = Text.NOTHING
    since: int = 0
    until: int = LAST_VERSION
    of_whole: bool = True
    is_kept: bool = False
    code: str | None = "error_code"
    message: str = "error_message"
    copied: tuple[str, ...] = ()

    @property
    def is_requested(self) -> bool:
        """Whether the request names the elements."""
        return all(level.requests for level in self.levels)

    @property
    def path(self) -> str:
        """The path of the code in the reply."""
        return ".".join([*(level.reply for level in self.levels), *([self.code] if self.code else ())])


Places = tuple[Place, ...]
"""What an API's file declares."""


class Declares(Protocol):
    """An API that has declared its places."""

    @property
    def response(self) -> str: ...

    @property
    def errors(self) -> Places: ...


@cache
def _in_version(places: Places, version: int) -> Places:
    return tuple(place for place in places if place.since <= version <= place.until)


def places_of(api: Declares, version: int) -> Places:
    """Returns the places of a version."""
    return _in_version(api.errors, version)


def place_of(api: Declares, version: int, code: int) -> Place | None:
    """Returns the place for an error in an element or in the whole of a reply: the first that is declared with this
    code; otherwise the innermost for errors of the whole request; None if the version has no room for an error.
    """
    found = [place for place in places_of(api, version) if place.code is not None]
    declared = [place for place in found if code in place.errors]
    whole = sorted((place for place in found if place.of_whole), key=lambda place: -len(place.levels))
    return (declared + whole + found + [None])[0]


def every(_: Roles) -> bool:
    """Chooses every element."""
    return True


def named(wanted: Roles, topic_names: Mapping[bytes, str] | None = None) -> Where:
    """Chooses the elements that have all the wanted roles. `topic_names`: by id, for elements that name their topic by
    its id.
    """
    names = {} if topic_names is None else topic_names

    def chosen(roles: Roles) -> bool:
        topic_id = roles.get("topic_id")
        if isinstance(topic_id, bytes) and "topic" not in roles:
            roles = {**roles, "topic": names.get(topic_id)}
        return all(roles.get(role) == value for role, value in wanted.items())

    return chosen


def root_roles(request: object) -> Roles:
    """Returns the roles of a whole request: its group, member and transactional id."""
    found = ((role, getattr(request, field, None)) for field, role in ROOT_ROLES.items())
    return {role: value for role, value in found if value}


def rows(name: str, places: Places) -> Iterator[tuple[str, str, str, str, str]]:
    """Yields the rows of the documentation's table: API, place, versions, path of the code, and errors."""
    for place in places:
        if place.code is None:
            continue
        until = "" if place.until == LAST_VERSION else f" to {place.until}"
        versions = "all" if not place.since and not until else f"{place.since}{until or ' and later'}"
        yield name, place.what, versions, place.path, ", ".join(Errors(code).name for code in place.errors)
