"""The proxy: a listener for the first address and one for each further node of A, made when a reply names it."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ..addresses import Address
from ..comparing.assignments import FIELDS, Assignments
from ..comparing.identities import Identities
from ..comparing.login import Credentials
from ..comparing.shares import Shares
from ..protocol import messages as m
from . import addresses
from .exchange import WITHOUT_ORDER, Exchange
from .lane import Lane
from .link import Link
from .nodes import Nodes
from .pace import Pace
from .placing import METADATA_VERSION
from .rebalances import Rebalances
from .report import Report
from .share_fetches import SHARING
from .upstream import GONE, Upstream, versions_of

NODES_MAX: Final = 1000
CANCEL_S: Final = 10.0
WRITING: Final = frozenset(("Produce", "EndTxn", "WriteTxnMarkers", "CreateTopics", "CreatePartitions"))
"""APIs after which there are more records, or topics for them."""
DELETING: Final = frozenset(("DeleteTopics", "DeleteRecords"))
WILDCARDS: Final = ("0.0.0.0", "::", "")


@dataclass(frozen=True)
class Options:
    """What the command line says. `timeout_s`: how long B may take beyond the time that a request gives."""

    a: Address
    b: Address
    listen: Address
    advertised_host: str
    timeout_s: float = 30.0
    only: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    tls_a: ssl.SSLContext | None = None
    tls_b: ssl.SSLContext | None = None
    credentials: Credentials | None = None

    def compares(self, api: str) -> bool:
        return (not self.only or api in self.only) and api not in self.ignored


class Proxy:
    """Two brokers behind one address."""

    def __init__(self, options: Options, report: Report, identities: Identities) -> None:
        self.options = options
        self.report = report
        self.identities = identities
        self._shares: dict[Address, Shares] = {}
        self.assignments = Assignments(identities)
        self.versions_of_a: m.ApiVersionsResponse | None = None  # None: it does not tell them
        self.versions_of_b: m.ApiVersionsResponse | None = None
        self.nodes = Nodes(identities)
        self._due: dict[Exchange, None] = {}  # what A has answered and B has not
        self._moment = 0  # counts requests and replies
        self._deleting = 0  # requests that A has not answered
        self._deleted_at = 0
        self.writes = 0  # requests that write, so far
        self._writing: dict[Exchange, Lane] = {}  # sent to A and not done by B
        self._servers: list[asyncio.Server] = []
        self._addresses: dict[Address, asyncio.Future[Address]] = {}  # of the proxy, by those of A
        self.rebalances = Rebalances(identities)
        self._pace = Pace()
        self._links: set[asyncio.Task[None]] = set()

    def shares(self, address_of_a: Address) -> Shares:
        """The share sessions with a node of A, and with the one of B that stands for it: each node counts its own."""
        found = self._shares.get(address_of_a)
        if found is None:
            found = self._shares[address_of_a] = Shares(self.identities)
        return found

    async def start(self) -> Address:
        """Asks both brokers for their versions and listens; returns the address for clients. Raises OSError."""
        a, b = (
            await versions_of(self.options.a, self.options.tls_a),
            await versions_of(self.options.b, self.options.tls_b),
        )
        self.versions_of_a, self.versions_of_b = a, b
        for name, found in (("A", a), ("B", b)):
            if found is None:
                self.report.note(f"{name} does not answer ApiVersions, as brokers before Kafka 0.10")
        if a is not None and b is not None:
            mine, theirs = addresses.ranges(a), addresses.ranges(b)
            for name, lacks in (("A", addresses.lacking(mine, theirs)), ("B", addresses.lacking(theirs, mine))):
                if lacks:
                    self.report.note(f"only {name} has {', '.join(lacks)}")
        await self._look_for_nodes()
        return await self._listen(self.options.a, None, self.options.listen.port)

    async def _look_for_nodes(self) -> None:
        """Learns of the nodes of both, so that the first topic is placed at B as at A. Where clients must log in, the
        first Metadata of one says.
        """
        with suppress(*GONE):
            found = []
            for begin, address, versions in (
                (self.begin_a, self.options.a, self.versions_of_a),
                (self.begin_b, self.options.b, self.versions_of_b),
            ):
                upstream = await begin(address)
                version = 0 if versions is None else METADATA_VERSION
                try:
                    found.append(await upstream.ask("Metadata", version, m.MetadataRequest(topics=[])))
                finally:
                    upstream.close()
            self.nodes.take(*found)

    async def begin_a(self, address: Address) -> Upstream:
        """A connection of the proxy's own to a node of A. Raises the exceptions of `GONE`."""
        begin = Upstream.connect if self.versions_of_a is None else Upstream.begin
        return await begin(address, self.options.tls_a)

    async def begin_b(self, address: Address) -> Upstream:
        """The same for a node of B."""
        begin = Upstream.connect if self.versions_of_b is None else Upstream.begin
        return await begin(address, self.options.tls_b)

    async def listen_for(self, node_id: int, address: Address) -> Address:
        """The proxy's address for an address of A. The listener is made in a task of its own: others wait for it too
        when the client leaves whose reply has named the address first.
        """
        known = self._addresses.get(address)
        if known is None:
            if len(self._addresses) >= NODES_MAX:
                return address
            known = self._addresses[address] = asyncio.ensure_future(self._listen_or_not(address, node_id))
        return await asyncio.shield(known)

    async def _listen_or_not(self, address: Address, node_id: int) -> Address:
        try:
            return await self._listen(address, node_id, 0)
        except OSError:
            self.report.note(f"no port is free for A's node {node_id}")
            return address

    async def _listen(self, address: Address, node_id: int | None, port: int) -> Address:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(Link(self, node_id, address, reader, writer))

        server = await asyncio.start_server(serve, self.options.listen.host, port)
        self._servers.append(server)
        found = Address(self.options.advertised_host, server.sockets[0].getsockname()[1])
        if node_id is None:
            first: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
            first.set_result(found)
            self._addresses[address] = first
        return found

    async def _serve(self, link: Link) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            with suppress(asyncio.CancelledError):
                await link.run()
        finally:
            self._links.discard(task)

    def begin(self, exchange: Exchange, lane: Lane) -> None:
        """A request came. What deletes records goes to B after it has been asked for those that A has returned."""
        self._moment += 1
        exchange.came_at = self._moment
        exchange.after = tuple(
            one.done for one in self._due if one.api not in WITHOUT_ORDER or exchange.api in DELETING
        )
        self.rebalances.begin(exchange)
        self._pace.begin(exchange, lane)
        self.assignments.note(exchange.api, exchange.request)
        if exchange.api in WRITING:
            self.writes += 1
            self._writing[exchange] = lane
        elif exchange.api in DELETING:
            self._deleting += 1
        if not exchange.has_reply:
            self.owe(exchange, lane)

    def owe(self, exchange: Exchange, lane: Lane) -> None:
        """A has answered, or will not: later requests go to B after B has answered too."""
        self._moment += 1
        self.rebalances.take_a(exchange)
        self._pace.take_a(exchange)
        if exchange.api in FIELDS and exchange.answer is not None:
            reply = exchange.reply(exchange.answer)
            exchange.told = self.assignments.answered(exchange.api, exchange.request, reply)
        if exchange.api in DELETING:
            self.forgo(exchange)
            self._deleted_at = self._moment
        if exchange.api in SHARING:
            exchange.after += tuple(one.done for one in self._due if one.api in SHARING)
        if exchange.api in WITHOUT_ORDER:
            exchange.beside = tuple(one.done for one, other in self._writing.items() if other is not lane)
            exchange.is_beside_deletion = self._deleting > 0 or self._deleted_at > exchange.came_at
        if not exchange.done.is_set():
            self._due[exchange] = None

    def forgo(self, exchange: Exchange) -> None:
        """A has answered or never will."""
        self._deleting -= exchange.api in DELETING
        self._pace.take_a(exchange)

    def finish(self, exchange: Exchange) -> None:
        """B has answered."""
        exchange.done.set()
        exchange.sent.set()
        exchange.finished_at = self._moment
        self._pace.finish(exchange)
        self._due.pop(exchange, None)
        self._writing.pop(exchange, None)

    async def close(self, hurrying: asyncio.Event) -> None:
        """Takes no more clients, and ends when B has answered what A has, or after some seconds, or when told to."""
        for server in self._servers:
            server.close()
        due, told = asyncio.create_task(self._all_done()), asyncio.create_task(hurrying.wait())
        await asyncio.wait((due, told), timeout=self.options.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in (due, told, *self._links):
            task.cancel()
        if self._links:
            await asyncio.wait(set(self._links), timeout=CANCEL_S)

    async def _all_done(self) -> None:
        for exchange in [*self._due]:
            await exchange.done.wait()
