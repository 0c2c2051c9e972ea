"""Gives events to the rules of the client that they are of, and makes the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..protocol import messages as m
from ..protocol.errors import Errors
from .events import UNKNOWN, Closed, Event, Opened, Refused, Reply, Request, batches, leave_records
from .replies import errors_of
from .report import ClientReport, Outcome, RuleReport
from .rule import FAILURES_MAX, KEPT_BYTES_MAX, WRITERS, Examination, Recent, Rule, Writer, failure, keep_short, key_of
from .rules import all_rules

CLIENTS_MAX: Final = 1000
API_VERSIONS: Final = 18
PRODUCE: Final = 0
WITH_RECORDS: Final = frozenset((1, 78))  # the keys of Fetch and ShareFetch: their replies have records
KEYS: Final = range(200)
Asked = Callable[[Request], None]
Answered = Callable[[Request, Reply], None]


class Who(NamedTuple):
    """A client: what its requests and its ApiVersions say (KIP-511), and the address that they come from."""

    client_id: str | None
    software: str
    software_version: str
    host: str


class Share(NamedTuple):
    """A part of the clients: every `of`-th, from the one with `number` on. All shares together examine all clients, as
    one examiner does.
    """

    number: int = 0
    of: int = 1


class _Places(NamedTuple):
    """The places of the rules that are called for requests of an API, and for their replies without and with errors.
    `first`, `first_answered`: only for the first request of a connection, before `asked`, and for its reply;
    `throttled`: only for replies with a throttle time.
    """

    first: list[int]
    asked: list[int]
    first_answered: list[int]
    throttled: list[int]
    answered: list[int]
    failed: list[int]


class _Looking:
    """Which rules look at the requests and replies of an API, by their places among all."""

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self._rules = list(rules)
        self._by_key: dict[tuple[int, Writer], _Places] = {}

    def at(self, key: int, writer: Writer) -> _Places:
        found = self._by_key.get((key, writer))
        if found is None:
            found = self._by_key[key, writer] = _Places([], [], [], [], [], [])
            for place, one in enumerate(self._rules):
                if not one.about.apis or key in one.about.keys:
                    self._add(found, place, one, key, writer)
        return found

    def _add(self, to: _Places, place: int, one: type[Rule], key: int, writer: Writer) -> None:
        needs = one.about.needs
        if WRITERS.index(needs.writer) > WRITERS.index(writer):
            return
        if one.asked is not Rule.asked and _is_among(key, needs.asks):
            (to.first if needs.first else to.asked).append(place)
        if one.answered is Rule.answered or not _is_among(key, needs.answers):
            return
        if needs.first or needs.throttled:
            (to.first_answered if needs.first else to.throttled).append(place)
            return
        to.failed.append(place)
        if not needs.errors:
            to.answered.append(place)


def _is_among(key: int, apis: Iterable[str] | None) -> bool:
    return apis is None or key in map(key_of, apis)


class _Calls:
    """What is called, as `places` has it; what is seldom called is looked up then."""

    __slots__ = ("answered", "asked", "places", "rules")

    def __init__(self, rules: list[Rule], places: _Places) -> None:
        self.rules, self.places = rules, places
        self.asked: list[Asked] = [rules[n].asked for n in places.asked]
        self.answered: list[Answered] = [rules[n].answered for n in places.answered]


NO_CALLS: Final = _Calls([], _Places([], [], [], [], [], []))


class _Client:
    """A client with its rules; without any if another share examines it. `number`: in the order in which they came.
    `is_whole`: see `Request.client_is_whole`.
    """

    def __init__(self, who: Who, rules: Iterable[type[Rule]], looking: _Looking, number: int) -> None:
        self.who = who
        self.rules = [one() for one in rules]
        self.number = number
        self.is_whole = True
        self._looking = looking
        self._calls: dict[int, _Calls] = {}  # by API, but for Produce
        self._calls_of_writers: dict[tuple[int, Writer], _Calls] = {}
        self.closings = [one.closed for one in self.rules if type(one).closed is not Rule.closed]

    def of(self, request: Request) -> _Calls:
        """What is called for a request: of the rules that look at it."""
        if not self.rules:
            return NO_CALLS
        found = self._calls.get(request.key)
        if found is not None:
            return found
        at = request.key, _writer(request)
        found = self._calls_of_writers.get(at)
        if found is None:
            found = self._calls_of_writers[at] = _Calls(self.rules, self._looking.at(*at))
            if request.key != PRODUCE:
                self._calls[request.key] = found
        return found


def _writer(request: Request) -> Writer:
    """Of which kind of producers a Produce request has batches; any other request is for all rules."""
    if request.key != PRODUCE:
        return "transactional"
    found = batches(request)
    if not found:
        return "any"
    return "transactional" if any(head.is_transactional for _, _, head in found) else "idempotent"


@dataclass(slots=True)
class _Connection:
    """`client`: None until its first request; `earlier`: those that its requests were of before, by their numbers.
    `listener`: where it came, if that was seen. `asked`: the request in hand; `calls`: what is called for its reply.
    `used_us`: when the last request or reply came.
    """

    client: _Client | None = None
    earlier: dict[int, _Client] = field(default_factory=dict)
    software: str = UNKNOWN
    software_version: str = UNKNOWN
    address: str = ""
    requests: int = 0
    was_opened: bool = False
    listener: str = ""
    asked: Request | None = None
    calls: _Calls = NO_CALLS
    used_us: int = 0


ALL: Final = Share()


def _host(address: str) -> str:
    return address.rpartition(":")[0]


class Examiner:
    """Examines all clients of a stream of events, or a share of them; each share needs all events. `unexamined`:
    requests of clients beyond the limit.
    """

    def __init__(self, examination: Examination | None = None, share: Share = ALL) -> None:
        self._rules = all_rules(examination)
        self._looking = _Looking(self._rules)
        self._share = share
        looks_at_all = any(not one.about.apis for one in self._rules)
        keys = {key for one in self._rules for key in one.about.keys}
        self.keys: frozenset[int] = frozenset(KEYS) if looks_at_all else frozenset((*keys, API_VERSIONS))
        """The keys of the APIs whose events are looked at."""
        seen = {key for one in self._rules for key in one.about.message_keys}
        self.message_keys: frozenset[int] = frozenset((*seen, API_VERSIONS))
        """The keys of the APIs whose messages are looked into."""
        self._connections: dict[int, _Connection] = {}
        self._clients: dict[Who, _Client] = {}
        self._nameless: Recent[tuple[str | None, str], tuple[str, str]] = Recent()
        """The software whose ApiVersions was refused, by client id and host: it cannot say its name to that broker."""
        self.unexamined = 0

    def feed(self, event: Event) -> None:
        """Takes the next event."""
        if isinstance(event, Request):
            self._asked(event)
        elif isinstance(event, Reply):
            self._answered(event)
        elif isinstance(event, Opened):
            self._connections[event.connection] = _Connection(was_opened=True, listener=event.listener)
        elif isinstance(event, Closed):
            self._closed(event)
        elif isinstance(event, Refused):
            self._refused(event)

    def forget(self) -> None:
        """Events are missing, or another broker begins, whose connections have numbers of their own: nothing is
        concluded from what was before. Connections may have been closed meanwhile.
        """
        self._connections.clear()
        for client in self._clients.values():
            client.is_whole = False
            for one in client.rules:
                one.forget()

    def _connection(self, number: int) -> _Connection:
        found = self._connections.get(number)
        if found is None:
            found = self._connections[number] = _Connection()
        return found

    def _asked(self, request: Request) -> None:
        connection = self._connection(request.connection)
        connection.requests += 1
        request.listener = connection.listener
        connection.used_us = request.mono_us
        named = request.of(m.ApiVersionsRequest) if request.key == API_VERSIONS else None
        if named is not None:
            self._named(named, request, connection)
        elif request.software != UNKNOWN:
            connection.software, connection.software_version = request.software, request.software_version
        request.is_first = connection.requests == 1 and connection.was_opened and request.software == UNKNOWN
        before = connection.client
        client = connection.client = self._client(request, connection)
        if before is not None and before is not client:
            connection.earlier[before.number] = before
        if client is None:
            self.unexamined += 1
            return
        client.is_whole = request.client_is_whole = client.is_whole and connection.was_opened
        connection.asked = request
        if request.key == PRODUCE:
            leave_records(request)
        calls = connection.calls = client.of(request)
        if request.is_first:
            for n in calls.places.first:
                calls.rules[n].asked(request)
        for call in calls.asked:
            call(request)

    def _named(self, named: m.ApiVersionsRequest, request: Request, connection: _Connection) -> None:
        """Notes what a client says of itself, or has said on another connection before that was refused."""
        if named.client_software_name:
            connection.software, connection.software_version = named.client_software_name, named.client_software_version
        elif request.software != UNKNOWN:
            connection.software, connection.software_version = request.software, request.software_version
        elif connection.software == UNKNOWN:
            at = request.client_id, _host(request.address)
            connection.software, connection.software_version = self._nameless.get(at, (UNKNOWN, UNKNOWN))

    def _client(self, event: Request, connection: _Connection) -> _Client | None:
        """Returns the client of a request; None if there are too many."""
        found = connection.client
        if found is not None and connection.address == event.address:
            who = found.who
            software = connection.software, connection.software_version
            if who.client_id == event.client_id and who[1:3] == software:
                return found
        connection.address = event.address
        who = Who(event.client_id, connection.software, connection.software_version, _host(event.address))
        return self._known(who)

    def _known(self, who: Who) -> _Client | None:
        """Returns a client, which may be a new one; None if there are too many."""
        found = self._clients.get(who)
        if found is None and len(self._clients) < CLIENTS_MAX:
            found = self._add(who)
        return found

    def _add(self, who: Who) -> _Client:
        has_name = who.software != UNKNOWN  # a client may be of another share until it says what it is
        alike = sum((one.software != UNKNOWN) == has_name for one in self._clients) if self._share.of > 1 else 0
        rules = self._rules if alike % self._share.of == self._share.number else ()
        self._clients[who] = _Client(who, rules, self._looking, len(self._clients))
        return self._clients[who]

    def is_of_others(self, connection: int) -> bool:
        """Whether another share examines the client that a connection is of."""
        found = self._connections.get(connection)
        return found is not None and found.client is not None and self._is_of_others(found.client)

    def _is_of_others(self, client: _Client) -> bool:
        return bool(self._rules) and not client.rules

    def _answered(self, reply: Reply) -> None:
        connection = self._connections.get(reply.connection)
        if connection is None or connection.asked is None or connection.asked.exchange != reply.exchange:
            return  # of a request before the beginning of the stream
        request, connection.asked = connection.asked, None
        connection.used_us = reply.mono_us
        told = reply.of(m.ApiVersionsResponse) if request.key == API_VERSIONS else None
        if told is not None and told.error_code == Errors.UNSUPPORTED_VERSION:
            at = request.client_id, _host(request.address)
            self._nameless[at] = connection.software, connection.software_version
        if connection.client is not None:
            if request.key in WITH_RECORDS:
                leave_records(reply)
            calls = connection.calls
            rules, places = calls.rules, calls.places
            if request.is_first:
                for n in places.first_answered:
                    rules[n].answered(request, reply)
            if reply.throttle_time_ms:
                for n in places.throttled:
                    rules[n].answered(request, reply)
            if errors_of(reply):
                for n in places.failed:
                    rules[n].answered(request, reply)
            else:
                for call in calls.answered:
                    call(request, reply)
        if request.size > KEPT_BYTES_MAX:
            keep_short(request)
        if reply.size > KEPT_BYTES_MAX:
            keep_short(reply)

    def _refused(self, refused: Refused) -> None:
        connection = self._connection(refused.connection)
        connection.used_us = refused.mono_us
        if connection.client is None:
            who = Who(None, connection.software, connection.software_version, _host(refused.address))
            connection.client = self._known(who)
        if connection.client is None:
            self.unexamined += 1
            return
        for one in connection.client.rules:
            one.refused(refused)

    def _closed(self, closed: Closed) -> None:
        connection = self._connections.pop(closed.connection, None)
        if connection is None or connection.client is None:
            return
        closed.idle_us, closed.unanswered = closed.mono_us - connection.used_us, connection.asked
        for client in {**connection.earlier, connection.client.number: connection.client}.values():
            for call in client.closings:
                call(closed)

    def report(self) -> Iterator[ClientReport]:
        """Yields what is known of each client so far. More events may follow."""
        yield from (report for _, report in self.numbered())

    def numbered(self) -> Iterator[tuple[int, ClientReport]]:
        """Like `report`, with the number of each client among those of all shares."""
        for client in list(self._clients.values()):
            if not self._is_of_others(client):
                yield (
                    client.number,
                    ClientReport(
                        client_id=client.who.client_id,
                        software=client.who.software,
                        software_version=client.who.software_version,
                        host=client.who.host,
                        rules=[_rule_report(one) for one in client.rules],
                    ),
                )


def _rule_report(rule: Rule) -> RuleReport:
    pending = list(rule.pending())
    first = [failure(one.words, *one.events) for one in pending[: FAILURES_MAX - len(rule.failures)]]
    failed = rule.failed + len(pending)
    outcome: Outcome = "failed" if failed else "passed" if rule.checks else "not exercised"
    about = rule.about
    return RuleReport(
        id=about.id,
        examination=about.examination,
        severity=about.severity,
        outcome=outcome,
        kept=rule.checks,
        failed=failed,
        what=about.what,
        why=about.why,
        link=about.link,
        failures=[
            {
                "words": one.words,
                "evidence": [
                    {
                        "connection": seen.connection,
                        "exchange": seen.exchange,
                        "at_ms": seen.at_ms,
                        "what": seen.what,
                        "message": seen.message,
                    }
                    for seen in one.evidence
                ],
            }
            for one in (*rule.failures, *first)
        ],
    )
