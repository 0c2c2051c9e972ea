"""What goes to B for one client's connection: its requests in order, one at a time, with B's ids."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..addresses import Address
from ..comparing.assignments import FIELDS, Heartbeat
from ..comparing.differences import Difference, differences, request_context
from ..comparing.early import AGAIN, READING, SENT_AGAIN, is_early, is_refused
from ..comparing.identities import translate
from ..protocol import messages as m
from ..protocol.structs import Struct
from . import fetches, joins, placing, produces, share_fetches
from .exchange import Exchange
from .joins import AGAIN_MAX, pause_s
from .nodes import OF_EACH_NODE, keys_of
from .rebalances import REBALANCE, TOLD
from .share_fetches import SHARING, as_object
from .silent import Silent
from .upstream import GONE, Upstream

if TYPE_CHECKING:
    from .proxy import Proxy

LATE_MAX: Final = 20  # the same, where replies differ in what they say and not by an error
OFFSETS: Final = frozenset(("ListOffsets", "OffsetForLeaderEpoch"))  # what they reply moves with each write
SASL_KEYS: Final = (17, 36)
FIND_VERSION: Final = 1  # of FindCoordinator
NOT_READY: Final = "A was not ready: the client sends it again"
ANSWERS, CLOSES, SILENT = "<a reply>", "<closed the connection>", "<no reply in time>"


class Lane:
    """B's side of a client's connection. `node_id`: of A, that the client speaks with; None for the first address."""

    def __init__(self, proxy: Proxy, node_id: int | None, address_of_a: Address) -> None:
        self._proxy = proxy
        self._node_id = node_id
        self._address_of_a = address_of_a
        self._upstreams: dict[Address, Upstream] = {}  # to nodes of B
        self._reader_of_a: Upstream | None = None  # to read again; clients do not use it
        self._versions: Exchange | None = None  # the client's ApiVersions, with which other connections begin too
        self._sasl: list[Exchange] = []  # what has authenticated the client, for another connection
        self._silent = Silent(proxy)
        self._shares = proxy.shares(address_of_a)

    async def serve(self, exchange: Exchange) -> None:
        """Sends a request to B and compares the replies; does not raise for what B or A do."""
        try:
            if exchange.api in FIELDS:
                await exchange.answered.wait()
                await exchange.is_placed.wait()
            for event in exchange.after:
                await event.wait()
            if exchange.api_key in SASL_KEYS and self._proxy.options.credentials is not None:
                self._proxy.report.skip(exchange.api, exchange.version, "B has credentials of its own")
                await exchange.answered.wait()
                return
            if not (await self._is_refused(exchange) or await self._is_given_up(exchange)):
                await self._place(exchange)
                await self._exchange(exchange)
        finally:
            self._proxy.finish(exchange)

    async def _is_refused(self, exchange: Exchange) -> bool:
        """Whether A has refused what B must not do then; waits for A's answer where it counts."""
        if exchange.api not in SENT_AGAIN or not exchange.has_reply:
            return False
        await exchange.answered.wait()
        a = exchange.reply(exchange.answer or b"")
        if a is None:
            return False
        if isinstance(a, m.SyncGroupResponse) and a.error_code == REBALANCE:
            self._proxy.report.skip(exchange.api, exchange.version, "A began another rebalance")
            return True
        if isinstance(a, m.ProduceResponse):
            taken = produces.taken(a, AGAIN)
            exchange.only = None if len(taken) == len(list(produces.results(a))) else taken
        if not is_refused(exchange.api, exchange.version, a):
            return False
        self._silent.accepted()
        self._proxy.report.skip(exchange.api, exchange.version, NOT_READY)
        return True

    async def _is_given_up(self, exchange: Exchange) -> bool:
        """Whether A will not answer what B gets in the order of A's answers; waits for that order."""
        if exchange.api not in SHARING:
            return False
        await exchange.answered.wait()
        for event in exchange.after:
            await event.wait()
        if exchange.answer is None:
            self._proxy.report.skip(exchange.api, exchange.version, "the client left before A answered")
        return exchange.answer is None

    async def _place(self, exchange: Exchange) -> None:
        """Has B place what A has placed, where they have several nodes."""
        if not self._proxy.nodes.are_several or exchange.api not in placing.PLACED or exchange.request is None:
            return
        await exchange.answered.wait()
        a, message = exchange.reply(exchange.answer or b""), exchange.message()
        if a is None:
            return

        async def of_a(api: str, version: int, request: Struct) -> Struct:
            return await (await self._to_a()).ask(api, version, request)

        async def of_b(api: str, version: int, request: Struct) -> Struct:
            return await (await self._connected(exchange)).ask(api, version, request)

        try:
            if await placing.placed(a, message, of_a, of_b, self._proxy.nodes.of_b):
                exchange.placed = message
        except GONE as error:
            self.close()
            self._proxy.report.note(f"B places {exchange.api} by itself: {error}")

    async def _exchange(self, exchange: Exchange) -> None:
        theirs, lost = b"", ""
        try:
            theirs = await self._ask(exchange)
        except TimeoutError:
            lost = SILENT
        except GONE as error:
            lost = CLOSES if isinstance(error, EOFError | ConnectionError) else f"<{error}>"
        if lost:
            self.close()
        if not exchange.has_reply:
            await self._take_silent(exchange, theirs, lost)
            return
        await exchange.answered.wait()
        mine = exchange.answer
        if mine is None:
            self._unanswered(exchange, lost)
            return
        self._silent.accepted()
        if lost:
            self._differ(exchange, ANSWERS, lost)
            return
        if exchange.api == "ApiVersions":
            self._versions = exchange
        if exchange.api == "SaslHandshake":
            self._sasl.clear()  # the client logs in again (KIP-368); other connections begin with the last time
        if exchange.api_key in SASL_KEYS:
            self._sasl.append(exchange)
        await self._compare(exchange, mine, theirs)

    def _unanswered(self, exchange: Exchange, lost: str) -> None:
        """A has not answered: because of this request or an earlier one without a reply, or because the client left."""
        report = self._proxy.report
        if exchange.is_left:
            report.skip(exchange.api, exchange.version, "the client left before A answered")
        elif lost == CLOSES:
            self._silent.forget()
        elif not self._silent.is_refused:
            self._differ(exchange, CLOSES, lost or ANSWERS)

    async def _take_silent(self, exchange: Exchange, theirs: bytes, lost: str) -> None:
        reply = exchange.reply(theirs) if theirs else None
        if not isinstance(reply, m.ProduceResponse):
            self._differ(exchange, "<no reply>", lost or "<cannot be decoded>")
            return
        self._silent.take(exchange, await self._produced(exchange, m.ProduceResponse(), reply))

    def _differ(self, exchange: Exchange, a: str, b: str) -> None:
        if self._proxy.options.compares(exchange.api):
            one = Difference("connection", a, b)
            self._proxy.report.difference(exchange.api, exchange.version, one, exchange.request)

    async def _ask(self, exchange: Exchange) -> bytes:
        """B's reply."""
        upstream = await self._connected(exchange)
        if exchange.api == "JoinGroup":
            await self._proxy.rebalances.turn(exchange)
        elif isinstance(exchange.request, m.SyncGroupRequest):
            return await joins.sync(exchange, exchange.request, self._proxy, upstream, self._reply)
        await upstream.send(self._for_b(exchange))
        exchange.sent.set()
        return await self._reply(upstream, exchange)

    def _for_b(self, exchange: Exchange) -> bytes:
        if exchange.api in FIELDS and exchange.request is not None:
            message = exchange.message()
            translate(message, self._proxy.identities)
            self._proxy.assignments.prepare(exchange.api, exchange.request, message)
            return exchange.frame_as_it_is(message)
        if exchange.api not in SHARING or exchange.request is None:
            return exchange.for_b(self._proxy.identities)
        exchange.shared = exchange.message()
        said = share_fetches.plain(exchange.reply(exchange.answer or b""))
        self._shares.prepare(exchange.shared, said)
        return exchange.frame_of(exchange.shared, self._proxy.identities)

    async def _reply(self, upstream: Upstream, exchange: Exchange) -> bytes:
        """B has some seconds from A's reply on; a request that waits for records, and so at each broker by itself, has
        the time that it asks for too.
        """
        limit_s = self._proxy.options.timeout_s + exchange.waiting_ms / 1000
        reading, answered = asyncio.ensure_future(upstream.read()), asyncio.ensure_future(exchange.answered.wait())
        try:
            await asyncio.wait((reading, answered), return_when=asyncio.FIRST_COMPLETED)
            return await asyncio.wait_for(reading, limit_s)
        finally:
            reading.cancel()
            answered.cancel()

    async def _connected(self, exchange: Exchange) -> Upstream:
        """The connection to the node of B that a request is for."""
        options = self._proxy.options
        found = self._proxy.nodes.place_for(exchange.api, exchange.request, self._node_id, self._address_of_a)
        address = found or options.b
        if address not in self._upstreams:
            if options.credentials is None:
                upstream = await Upstream.connect(address, options.tls_b)
            else:
                upstream = await self._proxy.begin_b(address)
            try:
                await self._introduce(upstream, exchange)
            except BaseException:
                upstream.close()
                raise
            self._upstreams[address] = upstream
        return self._upstreams[address]

    async def _introduce(self, upstream: Upstream, exchange: Exchange) -> None:
        """Says to a node of B what the client has said to A before its requests, or logs in."""
        options = self._proxy.options
        if options.credentials is not None:
            await upstream.log_in(options.credentials)
        elif self._versions is not None and exchange.api != "ApiVersions":
            await upstream.asked(self._versions.frame, options.timeout_s)
        for one in self._sasl:
            await upstream.asked(one.frame, options.timeout_s)

    async def _find(self, exchange: Exchange) -> None:
        """Asks B again for the coordinator of a request, which may have moved."""
        for kind, key in list(keys_of(exchange.api, exchange.request))[:1]:
            request = m.FindCoordinatorRequest(key=key, key_type=kind)
            found = await (await self._connected(exchange)).ask("FindCoordinator", FIND_VERSION, request)
            self._proxy.nodes.take_coordinators(request, found)

    async def _compare(self, exchange: Exchange, mine: bytes, theirs: bytes) -> None:
        a, b = exchange.reply(mine), exchange.reply(theirs)
        if a is None or b is None:
            reason = "unknown API or version" if exchange.request is None else "a reply cannot be decoded"
            if (a is None) != (b is None):
                self._differ(exchange, *("<cannot be decoded>" if one is None else ANSWERS for one in (a, b)))
            self._proxy.report.skip(exchange.api, exchange.version, reason)
            return
        if isinstance(a, m.FetchResponse):
            assert isinstance(b, m.FetchResponse)
            found = await self._fetched(exchange, a, b)
        elif isinstance(a, m.ShareFetchResponse):
            assert isinstance(b, m.ShareFetchResponse)
            found = await self._share_fetched(exchange, a, b)
        else:
            b = await self._settled(exchange, a, b)
            if is_early(exchange.api, exchange.version, b, a):
                self._proxy.report.skip(exchange.api, exchange.version, NOT_READY)
                return
            self._proxy.nodes.take(a, b)
            self._proxy.nodes.take_coordinators(exchange.request, b)
            if exchange.api in OF_EACH_NODE and self._proxy.nodes.are_several:
                self._proxy.report.skip(exchange.api, exchange.version, "each node lists what it coordinates")
                return
            found = await self._differences(exchange, a, b)
        if self._proxy.options.compares(exchange.api):
            self._proxy.report.take(exchange.api, exchange.version, found, exchange.request)
        else:
            self._proxy.report.skip(exchange.api, exchange.version, "left out by --only or --ignore")

    async def _differences(self, exchange: Exchange, a: Struct, b: Struct) -> list[Difference]:
        """The differences of two replies. Both brokers are asked again where nothing is changed by it: another
        connection's request may have been done between their replies, and what a broker goes on doing by itself takes
        each its time.
        """
        identities, context = self._proxy.identities, request_context(exchange.request)
        if isinstance(a, m.JoinGroupResponse) and exchange.round is not None:
            assert isinstance(b, m.JoinGroupResponse)
            b = exchange.round.comparable(a, b)
        if exchange.api in FIELDS:
            replies = self._proxy.assignments.settle(_beat(exchange, a), as_object(b))
            return [*differences(*replies, identities, context), *self._proxy.assignments.twice()]
        if exchange.api in TOLD:
            explained = self._proxy.rebalances.explained(exchange, differences(a, b, identities, context))
            if explained is None:
                self._proxy.report.skip(exchange.api, exchange.version, "B began another rebalance")
            return explained or []
        found, written = differences(a, b, identities, context), self._proxy.writes
        for number in range(LATE_MAX if exchange.api in READING else 0):
            if not self._proxy.report.may_pass(exchange.api, found):
                return found
            again = await self._again(exchange, number)
            if again is None:
                return found
            newer = await self._of_a(exchange)
            found = differences(a if newer is None else newer, again, identities, context)
        if exchange.api in OFFSETS and self._proxy.writes > written:
            left = [one for one in found if not one.path.endswith("offset")]
            if left != found:
                self._proxy.report.skip(
                    exchange.api, exchange.version, "offsets moved all the time; the rest is compared"
                )
            return left
        return found

    async def _again(self, exchange: Exchange, number: int, frame: bytes | None = None) -> Struct | None:
        """B's reply to the same request a little later, or to another frame; None if there is none."""
        await asyncio.sleep(pause_s(number))
        return await self._at_once(exchange, frame)

    async def _at_once(self, exchange: Exchange, frame: bytes | None) -> Struct | None:
        self._proxy.report.asked_again[exchange.api] += 1
        try:
            if self._proxy.nodes.are_several:
                await self._find(exchange)
            if frame is None:
                return exchange.reply(await self._ask(exchange))
            upstream = await self._connected(exchange)
            await upstream.send(frame)
            return exchange.reply(await self._reply(upstream, exchange))
        except GONE:
            self.close()
            return None

    async def _of_a(self, exchange: Exchange) -> Struct | None:
        """What A replies now to a request that changes nothing; None if it does not."""
        try:
            reader = await self._to_a()
            return exchange.reply(await reader.asked(exchange.frame, self._proxy.options.timeout_s))
        except GONE:
            if self._reader_of_a is not None:
                self._reader_of_a.close()
                self._reader_of_a = None
            return None

    async def _to_a(self) -> Upstream:
        """A connection of the proxy's own to A."""
        options = self._proxy.options
        if self._reader_of_a is None:
            self._reader_of_a = await self._proxy.begin_a(self._address_of_a)
            for one in self._sasl:
                await self._reader_of_a.asked(one.frame, options.timeout_s)
        return self._reader_of_a

    async def _settled(self, exchange: Exchange, a: Struct, b: Struct) -> Struct:
        """B's reply, once B is as far as A was."""
        if isinstance(a, m.ProduceResponse):
            assert isinstance(b, m.ProduceResponse)
            if exchange.only is not None:
                produces.drop(a, exchange.only)
            return await self._produced(exchange, a, b)
        for number in range(AGAIN_MAX):
            if not is_early(exchange.api, exchange.version, a, b):
                break
            again = await self._again(exchange, number)
            if again is None:
                break
            b = again
        if isinstance(a, m.JoinGroupResponse) and isinstance(b, m.JoinGroupResponse):
            return await joins.follow(exchange, a, b, self._proxy, self._at_once)
        return await self._assigned(exchange, a, b) if exchange.api in FIELDS else b

    async def _assigned(self, exchange: Exchange, a: Struct, b: Struct) -> Struct:
        """B's reply to a heartbeat, once B has told the member what A has."""
        beat, assignments = _beat(exchange, a), self._proxy.assignments
        for number in range(AGAIN_MAX):
            if getattr(b, "error_code", 0):
                break
            now = as_object(b)
            assignments.take(beat, now)
            if not assignments.is_behind(beat):
                break
            await asyncio.sleep(pause_s(number))
            for key, request in list(assignments.others(beat)):
                found = await self._at_once(exchange, exchange.frame_as_it_is(request))
                if found is not None:
                    assignments.take_other(key, as_object(found))
            again = await self._at_once(exchange, exchange.frame_as_it_is(assignments.again(beat)))
            if again is None:
                break
            b = again
        return b

    async def _share_fetched(
        self, exchange: Exchange, a: m.ShareFetchResponse, b: m.ShareFetchResponse
    ) -> list[Difference]:
        async def ask(number: int, request: m.ShareFetchRequest) -> m.ShareFetchResponse | None:
            frame = exchange.frame_of(request, self._proxy.identities)
            found = await self._again(exchange, number, frame)
            return found if isinstance(found, m.ShareFetchResponse) else None

        assert exchange.shared is not None
        return await share_fetches.compare(self._shares, exchange.shared, a, b, self._proxy.identities, ask)

    async def _produced(self, exchange: Exchange, a: m.ProduceResponse, b: m.ProduceResponse) -> m.ProduceResponse:
        """B's reply, once B has taken the partitions that it was not ready for."""
        for number in range(AGAIN_MAX):
            places = produces.early(a, b, self._proxy.identities, AGAIN)
            if not places:
                break
            request = exchange.message()
            assert isinstance(request, m.ProduceRequest)
            produces.leave(request, places)
            again = await self._again(exchange, number, exchange.frame_of(request, self._proxy.identities))
            if not isinstance(again, m.ProduceResponse):
                break
            produces.merge(b, again)
        return b

    async def _fetched(self, exchange: Exchange, a: m.FetchResponse, b: m.FetchResponse) -> list[Difference]:
        request = exchange.request
        assert isinstance(request, m.FetchRequest)

        async def ask(number: int, other: m.FetchRequest) -> m.FetchResponse | None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._proxy.options.timeout_s):
                    for event in exchange.beside:
                        await event.wait()
            found = await self._again(exchange, number, exchange.frame_of(other, self._proxy.identities))
            return found if isinstance(found, m.FetchResponse) else None

        def is_told(path: str) -> bool:
            return self._proxy.report.has_told(exchange.api, path)

        may_be_gone = exchange.is_beside_deletion
        return await fetches.compare(request, a, b, self._proxy.identities, fetches.Asking(ask, is_told, may_be_gone))

    def end(self, *, is_closed_by_a: bool) -> None:
        """The client's connection is over, and B has had its requests."""
        self._silent.end(is_closed_by_a=is_closed_by_a)

    def close(self) -> None:
        """Closes the connections; the next request makes new ones."""
        for upstream in (*self._upstreams.values(), self._reader_of_a):
            if upstream is not None:
                upstream.close()
        self._upstreams.clear()
        self._reader_of_a = None


def _beat(exchange: Exchange, a: Struct) -> Heartbeat:
    return Heartbeat(exchange.api, as_object(exchange.request), as_object(a), exchange.told)
