"""What a rule is, and the registry of all rules.

    @rule("KIP-394.member-id-kept", CLASSIC_GROUP, apis=("JoinGroup",), source="KIP-394", why="Without ... ")
    class MemberIdKept(Rule):
        \"""A consumer joins with the member id that MEMBER_ID_REQUIRED gave it.\"""

        def asked(self, request: Request) -> None: ...
        def answered(self, request: Request, reply: Reply) -> None: ...

A rule is a state machine: there is an object of its class for each client, which sees the events of that client in
their order. It calls `kept` when the client did what it must, and `fail` with the events that show that it did not. It
has no clock, files or broker: the same events have the same outcome wherever they come from.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Final, Literal, NamedTuple, TypeVar

from ..protocol import schema
from ..protocol.structs import Struct
from .events import Closed, Event, Refused, Reply, Request

Severity = Literal["error", "warning"]
Examination = Literal[
    "basic", "idempotence", "transactions", "classic-group", "consumer-group", "share-group", "network"
]
EXAMINATIONS: Final[dict[Examination, str]] = {
    "basic": "any client",
    "idempotence": "idempotent producers",
    "transactions": "transactional producers",
    "classic-group": "members of groups with the classic protocol",
    "consumer-group": "members of groups with the protocol of KIP-848",
    "share-group": "members of share groups",
    "network": "connections, throttling and retries",
}
FAILURES_MAX: Final = 3  # that a rule keeps with their evidence, for each client
MESSAGE_CHARACTERS_MAX: Final = 400
KEPT_BYTES_MAX: Final = 2048  # of a message that is kept as evidence as it is
STATES_MAX: Final = 10_000
LATEST_MAX: Final = 10
R = TypeVar("R", bound="type[Rule]")
K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dict that forgets what was set least recently when it has too many: a client decides how many ids there are."""

    has_forgotten = False

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > STATES_MAX:
            self.popitem(last=False)
            self.has_forgotten = True


class OfConnections(dict[int, Recent[K, None]]):
    """What was on which connection: keys of states that a closed connection ends, or one that is asked for, without a
    look at all states.
    """

    def add(self, connection: int, key: K) -> None:
        keys = self.get(connection)
        if keys is None:
            keys = self[connection] = Recent()
        keys[key] = None

    def take(self, connection: int) -> Iterable[K]:
        """Returns the keys of a connection, and forgets that they were there."""
        return self.pop(connection, ())


def latest(found: Recent[K, V]) -> list[V]:
    """What was set last, in its order: no more than evidence needs."""
    return [*islice(reversed(found.values()), LATEST_MAX)][::-1]


@dataclass(frozen=True)
class Evidence:
    """An event, shown. `exchange`: the number of request and reply; None for a frame that was refused."""

    connection: int
    exchange: int | None
    at_ms: int
    what: str
    message: str


@dataclass(frozen=True)
class Failure:
    """What a client did wrong."""

    words: str
    evidence: tuple[Evidence, ...]


class Unfinished(NamedTuple):
    """A failure, unless more comes. `events`: what shows it, in their order."""

    words: str
    events: tuple[Event, ...]


Writer = Literal["any", "idempotent", "transactional"]
WRITERS: Final[tuple[Writer, ...]] = ("any", "idempotent", "transactional")


@dataclass(frozen=True)
class Needs:
    """What a rule needs to be called for. `asks`: the APIs whose requests it looks at, None for all of its APIs;
    `answers`: those whose replies it looks at; `errors`: only replies that have errors; `throttled`: only those with a
    throttle time; `first`: only the first request of a connection, and its reply; `writer`: only Produce requests with
    batches of such producers.
    """

    asks: tuple[str, ...] | None = None
    answers: tuple[str, ...] | None = None
    errors: bool = False
    throttled: bool = False
    first: bool = False
    writer: Writer = "any"


@dataclass(frozen=True)
class About:
    """What is declared of a rule. `apis`: the requests and replies that it looks at, empty for all; `reads`: those that
    it looks into; `needs`: what spares it the others. `what`: what a client does, `why`: what goes wrong otherwise.
    """

    id: str
    examination: Examination
    apis: tuple[str, ...]
    reads: tuple[str, ...]
    needs: Needs
    source: str
    what: str
    why: str
    severity: Severity

    @property
    def link(self) -> str:
        """The page of its source."""
        if self.source.startswith("KIP-"):
            return f"https://cwiki.apache.org/confluence/display/KAFKA/{self.source}"
        return "https://kafka.apache.org/protocol"

    @cached_property
    def keys(self) -> tuple[int, ...]:
        return tuple(key_of(one) for one in self.apis)

    @property
    def message_keys(self) -> tuple[int, ...]:
        return tuple(key_of(one) for one in self.reads)


def key_of(api: str) -> int:
    """The key of an API by its name."""
    key = schema.load(f"{api}Request").api_key
    assert key is not None
    return key


def shown(event: Event) -> Evidence:
    """An event as evidence."""
    if isinstance(event, Request):
        name = f"{event.api} v{event.version} request {event.correlation_id}"
        return Evidence(event.connection, event.exchange, event.at_ms, name, event.text or _text(event.message))
    if isinstance(event, Reply):
        return Evidence(event.connection, event.exchange, event.at_ms, "reply", event.text or _text(event.message))
    if isinstance(event, Refused):
        name = f"key {event.key} v{event.version} request {event.correlation_id} refused"
        return Evidence(event.connection, None, event.at_ms, name, event.reason)
    what = type(event).__name__.lower()
    if isinstance(event, Closed) and event.by:
        what = f"{what} by the {event.by}"
    return Evidence(event.connection, None, event.at_ms, what, event.reason if isinstance(event, Closed) else "")


def keep_short(event: Request | Reply) -> None:
    """Replaces a message that is larger than KEPT_BYTES_MAX by its text: rules keep events as evidence, and what they
    need of messages beside them.
    """
    if event.message is not None:
        event.text, event.message = _text(event.message), None


def _text(message: Struct | None) -> str:
    text = repr(message) if message is not None else ""
    return text if len(text) <= MESSAGE_CHARACTERS_MAX else f"{text[:MESSAGE_CHARACTERS_MAX]}..."


class Rule:
    """See the module. `checks`: how often the client was seen to keep the rule; `failed`: how often not."""

    about: ClassVar[About]

    def __init__(self) -> None:
        self.checks = 0
        self.failed = 0
        self.failures: list[Failure] = []

    def asked(self, request: Request) -> None:
        """A request of `apis` came."""

    def answered(self, request: Request, reply: Reply) -> None:
        """A request of `apis` was answered, or will not be (the reply has no message)."""

    def refused(self, refused: Refused) -> None:
        """A frame was refused, and its connection will be closed."""

    def closed(self, closed: Closed) -> None:
        """A connection was closed."""

    def pending(self) -> Iterable[Unfinished]:
        """Returns what is wrong if nothing more comes. Changes nothing: more may come."""
        return ()

    def forget(self) -> None:
        """Events are missing: begins again, and keeps what was found."""
        found = self.checks, self.failed, self.failures
        type(self).__init__(self)
        self.checks, self.failed, self.failures = found

    def kept(self) -> None:
        self.checks += 1

    def fail(self, words: str, *events: Event | None) -> None:
        """Notes a failure. `events`: what shows it, in their order."""
        self.failed += 1
        if len(self.failures) < FAILURES_MAX:
            self.failures.append(failure(words, *events))


def failure(words: str, *events: Event | None) -> Failure:
    return Failure(words, tuple(shown(one) for one in events if one is not None))


RULES: Final[dict[str, type[Rule]]] = {}


def rule(
    id: str,
    examination: Examination,
    *,
    apis: Iterable[str] = (),
    messages: bool = True,
    reads: Iterable[str] = (),
    needs: Needs | None = None,
    source: str,
    why: str,
    severity: Severity = "error",
) -> Callable[[R], R]:
    """Registers the class of a rule. Its docstring says what a client does. `apis`: what it looks at, all by default;
    it looks into the messages of these, unless `messages` is False, and of `reads`.
    """
    looks_at = tuple(apis)

    def register(made: R) -> R:
        assert id not in RULES, f"two rules {id}"
        what = " ".join((made.__doc__ or "").split())
        read = (*looks_at, *reads) if messages else ()
        made.about = About(id, examination, looks_at, read, needs or Needs(), source, what, why, severity)
        RULES[id] = made
        return made

    return register
