"""Connections: how often a client connects, and how it authenticates."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ..events import Closed, Refused, Reply, Request, batches
from ..replies import errors_of, partition_errors
from ..rule import Needs, Recent, Rule, rule
from .epochs import NewestEpochs, place

BACK_OFF_US: Final = 10_000
EARLY_US_MAX: Final = 9 * BACK_OFF_US  # that connections in a row may come too early: the tenth at once is beyond it
API_VERSIONS: Final = 18
SASL: Final = (17, 36, API_VERSIONS)
FRAMED_SINCE: Final = 1  # version of SaslHandshake
KNOCKS_MIN: Final = 5
OUTAGE_US: Final = 10_000_000  # in which a client has noticed that its brokers are gone
UNUSED_US: Final = 540_000_000  # after which Kafka's clients close a connection by default; its brokers: ten minutes
PAUSE_US: Final = 3_000_000
GOES_ON_US: Final = 1_000_000
LEADS_TO: Final = {"TO_FIRST": "AT_FIRST", "TO_SECOND": "AT_SECOND"}
"""Listeners of the examination `addresses`, and the listener at the place that metadata over them names: it has one of
the two addresses of that name, and the other one refuses connections. A broker sees who comes, and not who tries to; a
client that comes to both places has tried both addresses, whichever it prefers.
"""
PLACES: Final = frozenset(LEADS_TO.values())


@rule(
    "KIP-144.reconnects-slowly",
    "network",
    messages=False,
    needs=Needs(first=True),
    source="KIP-144",
    why="A broker that starts, or has too many connections, does not get up while its clients connect at full speed.",
)
class ReconnectsSlowly(Rule):
    """A client whose connections are lost before their first reply waits between them: 10 ms at the least.

    Several programs may have the same client id, and each waits for itself. They are taken for as many as the
    connections that the client has had at the same time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: set[int] = set()
        self._open_max = 1
        self._silent: Recent[int, Request] = Recent()  # connections without a reply, with their first request
        self._lost: tuple[Request, Closed] | None = None
        self._count = 0
        self._first: Request | None = None
        self._due_us = 0  # when the last of these connections would have come, had all of them waited

    def forget(self) -> None:
        open_max = self._open_max
        super().forget()
        self._open_max = open_max

    def asked(self, request: Request) -> None:
        if not request.is_first:
            return
        self._open.add(request.connection)
        self._open_max = max(self._open_max, len(self._open))
        self._silent[request.connection] = request
        lost, self._lost = self._lost, None
        if lost is None:
            return
        if request.mono_us - lost[1].mono_us >= BACK_OFF_US:
            self.kept()
        self._judge(*lost, request)

    def _judge(self, before: Request, lost: Closed, request: Request) -> None:
        if self._due_us <= request.mono_us:
            self._count, self._due_us, self._first = 0, request.mono_us, before
        self._count += 1
        self._due_us += BACK_OFF_US // self._open_max
        if self._due_us - request.mono_us > EARLY_US_MAX:
            self.fail(f"{self._count} connections in a row at once after one was lost", self._first, lost, request)
            self._count = self._due_us = 0

    def answered(self, request: Request, reply: Reply) -> None:
        if self._silent and self._silent.pop(request.connection, None) is not None:
            self._lost, self._count, self._due_us = None, 0, 0

    def closed(self, closed: Closed) -> None:
        self._open.discard(closed.connection)
        first = self._silent.pop(closed.connection, None)
        if first is not None:
            self._lost = first, closed


@rule(
    "KIP-899.bootstraps-again",
    "network",
    messages=False,
    source="KIP-899",
    why="All brokers that it knows may be gone for good, and others be where it was told to look for them at first.",
)
class BootstrapsAgain(Rule):
    """A client that reaches none of the brokers that it knows connects again to the servers that it was given at first.

    They are told apart by their listeners: the one to which a client comes first is that of its bootstrap servers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given = ""  # the listener to which it came first
        self._silent: Recent[int, Request] = Recent()  # connections to others without a reply, with their first request
        self._first: Request | None = None  # of those in a row that were lost
        self._knocks = 0

    def asked(self, request: Request) -> None:
        if request.is_first:
            self._given = self._given or request.listener
            if request.listener != self._given:
                self._silent[request.connection] = request
        if self._first is not None and request.listener == self._given:
            self.kept()
            self._first = None

    def answered(self, request: Request, reply: Reply) -> None:
        if self._silent and self._silent.pop(request.connection, None) is not None:
            self._first = None

    def closed(self, closed: Closed) -> None:
        request = self._silent.pop(closed.connection, None)
        if request is None or closed.by != "broker":
            return
        if self._first is None:
            self._first, self._knocks = request, 0
        self._knocks += 1
        outage_us = closed.mono_us - self._first.mono_us
        if self._knocks >= KNOCKS_MIN and outage_us >= OUTAGE_US:
            words = f"{self._knocks} connections in {outage_us // 1_000_000} s to a broker that is lost, and no other"
            self.fail(words, self._first, request, closed)
            self._first = None


@rule(
    "KIP-302.all-addresses-tried",
    "network",
    reads=("Metadata", "FindCoordinator"),
    needs=Needs(answers=("Metadata", "FindCoordinator")),
    source="KIP-302",
    why="A name with several addresses is that of a broker, or of a load balancer, which may serve only one of them.",
)
class AllAddressesTried(Rule):
    """A client that is refused at an address of a broker's name tries the other addresses of the name."""

    def __init__(self) -> None:
        super().__init__()
        self._come: set[str] = set()  # the listeners at one address to which it came
        self._told: dict[str, tuple[Request, Reply]] = {}  # when it was first told to go to the others
        self._asked: dict[str, int] = {}  # how often it has asked since

    def asked(self, request: Request) -> None:
        listener = request.listener
        if listener in PLACES and listener not in self._come:
            self._come.add(listener)
            if self._come == PLACES:
                self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        to = LEADS_TO.get(request.listener)
        if to is None or to in self._come or not _leads_on(request, reply):
            return
        first = self._told.setdefault(to, (request, reply))
        count = self._asked[to] = self._asked.get(to, 0) + 1
        passed_us = reply.mono_us - first[1].mono_us
        if count >= KNOCKS_MIN and passed_us >= OUTAGE_US:
            words = f"{count} times in {passed_us // 1_000_000} s it was told where to go, and has not come there"
            self.fail(words, *first, request, reply)
            del self._told[to], self._asked[to]


def _leads_on(request: Request, reply: Reply) -> bool:
    """Whether a client has to go to the broker that a reply names: to the leaders of topics that it asked for by their
    names or ids, or to a coordinator.
    """
    if errors_of(reply):
        return False
    asked = request.of(m.MetadataRequest)
    return reply.message is not None and (asked is None or bool(asked.topics))


@rule(
    "protocol.closed-while-idle",
    "network",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="connections.max.idle.ms",
    why="Brokers close connections that are not used; nothing was on its way, so that nothing has failed.",
)
class ClosedWhileIdle(Rule):
    """After the broker has closed an idle connection, a producer goes on over another one with its next batch: it sends
    none again that was answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written: NewestEpochs[tuple[int, Request]] = NewestEpochs()  # the last batches that were answered
        self._closed: Closed | None = None

    def answered(self, request: Request, reply: Reply) -> None:
        if reply.message is None or any(one.code for one in partition_errors(reply)):
            return
        for topic, partition, head in batches(request):
            self._written.put(place(topic, partition, head), (head.base_sequence, request))

    def asked(self, request: Request) -> None:
        closed = self._closed
        if closed is None:
            return
        self._closed = None
        for topic, partition, head in batches(request):
            before = self._written.get(place(topic, partition, head))
            if before is None or before[1].connection != closed.connection:  # its reply can be lost with another one
                continue
            if before[0] == head.base_sequence:
                words = f"the batch with sequence {head.base_sequence} again, which was answered"
                return self.fail(words, before[1], closed, request)
        self.kept()

    def closed(self, closed: Closed) -> None:
        if closed.by == "broker" and closed.reason == "idle":
            self._closed = closed


@rule(
    "protocol.closes-idle",
    "network",
    messages=False,
    source="connections.max.idle.ms",
    why="The broker closes it a minute later, and a request that comes at that moment is lost and must be sent again.",
    severity="warning",
)
class ClosesIdle(Rule):
    """A client that goes on closes a connection by itself that it has not used for some time, nine minutes at most."""

    def __init__(self) -> None:
        super().__init__()
        self._closed: Closed | None = None

    def asked(self, request: Request) -> None:
        if self._closed is not None and request.mono_us - self._closed.mono_us >= GOES_ON_US:
            self.kept()
            self._closed = None

    def closed(self, closed: Closed) -> None:
        if closed.by == "client" and closed.idle_us >= PAUSE_US:
            self._closed = closed
        elif closed.reason == "idle" and closed.idle_us >= UNUSED_US:
            minutes = closed.idle_us // 60_000_000
            self.fail(f"the broker had to close a connection that was idle for {minutes} min", closed)


@rule(
    "KIP-368.reauthenticated",
    "network",
    reads=("SaslAuthenticate",),
    needs=Needs(answers=("SaslAuthenticate",)),
    source="KIP-368",
    why="The broker closes a connection whose session is over as soon as a request comes.",
)
class Reauthenticated(Rule):
    """A client authenticates again before the session of its connection is over."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[int, tuple[int, Request, Reply]] = {}  # until when, by connection

    def asked(self, request: Request) -> None:
        session = self._sessions.get(request.connection) if self._sessions else None
        if session is None:
            return
        if request.key in SASL:
            if request.key != API_VERSIONS and request.mono_us <= session[0]:
                self.kept()
                del self._sessions[request.connection]
        else:
            self._came(session, request)

    def refused(self, refused: Refused) -> None:
        """A broker reads no request of a session that is over."""
        session = self._sessions.get(refused.connection)
        if session is not None:
            self._came(session, refused)

    def _came(self, session: tuple[int, Request, Reply], event: Request | Refused) -> None:
        if event.mono_us > session[0]:
            late_ms = (event.mono_us - session[0]) // 1000
            self.fail(f"a request {late_ms} ms after the end of the session", session[1], session[2], event)
            del self._sessions[event.connection]

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.SaslAuthenticateResponse)
        if found is not None and not found.error_code and found.session_lifetime_ms > 0:
            until_us = reply.mono_us + found.session_lifetime_ms * 1000
            self._sessions[request.connection] = until_us, request, reply

    def closed(self, closed: Closed) -> None:
        self._sessions.pop(closed.connection, None)


@rule(
    "KIP-152.tokens-framed",
    "network",
    apis=("SaslHandshake",),
    source="KIP-152",
    why="Without it tokens have no frame, and a broker can only close the connection on one that is wrong.",
    severity="warning",
)
class TokensFramed(Rule):
    """A client authenticates with SaslHandshake since version 1, and so with SaslAuthenticate."""

    def asked(self, request: Request) -> None:
        if request.version >= FRAMED_SINCE:
            self.kept()
        else:
            self.fail(f"SaslHandshake v{request.version}", request)
