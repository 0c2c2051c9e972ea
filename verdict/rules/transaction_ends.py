"""How transactions end: what a commit needs, which epoch follows, and which errors leave what (KIP-890, KIP-1050)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Reply, Request, batches
from ..replies import errors_of, partition_errors
from ..rule import Needs, Recent, Rule, rule
from .coordinators import ON_THEIR_WAY_US
from .epochs import Place, place
from .transactions import PRODUCE_ADDS, TRANSACTIONAL, producer_of

EPOCH_BUMPED_SINCE: Final = 5  # version of EndTxn
FATAL: Final = (Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Errors.INVALID_TXN_STATE)
WAITING_MAX: Final = 1000  # batches of a producer
WRITES: Final = ("Produce", *TRANSACTIONAL)
Producer = tuple[int, int]
"""Producer id and epoch."""


def writers_of(request: Request) -> list[Producer]:
    """The producers of a request of a transaction, or of transactional batches."""
    producer = producer_of(request.message)
    if producer is not None:
        return [producer] if producer[0] >= 0 else []
    found = {(head.producer_id, head.producer_epoch): None for _, _, head in batches(request) if head.is_transactional}
    return list(found)


@rule(
    "KIP-890.aborts-after-abortable",
    "transactions",
    apis=WRITES,
    needs=Needs(errors=True, writer="transactional"),
    source="KIP-890",
    why="Something of the transaction is missing. To commit the rest would tear what belongs together.",
)
class AbortsAfterAbortable(Rule):
    """After TRANSACTION_ABORTABLE, a producer aborts its transaction."""

    def __init__(self) -> None:
        super().__init__()
        self._abortable: Recent[Producer, tuple[Request, Reply]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        if Errors.TRANSACTION_ABORTABLE in errors_of(reply):
            for producer in writers_of(request):
                self._abortable[producer] = request, reply

    def asked(self, request: Request) -> None:
        ended = request.of(m.EndTxnRequest)
        found = self._abortable.pop((ended.producer_id, ended.producer_epoch), None) if ended is not None else None
        if ended is None or found is None:
            return
        if ended.committed:
            self.fail(f"commits the transaction of producer {ended.producer_id}", *found, request)
        else:
            self.kept()


@rule(
    "KIP-1050.fatal-stops",
    "transactions",
    apis=WRITES,
    needs=Needs(errors=True, writer="transactional"),
    source="KIP-1050",
    why="The producer cannot go on by itself: it is misused, or not allowed to.",
)
class FatalStops(Rule):
    """After a fatal error (INVALID_TXN_STATE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED), a producer sends nothing more."""

    def __init__(self) -> None:
        super().__init__()
        self._fatal: Recent[Producer, tuple[Request, Reply]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        if request.api == "Produce" or not any(one in FATAL for one in errors_of(reply)):
            return
        for producer in writers_of(request):
            if producer not in self._fatal:
                self.kept()
            self._fatal[producer] = request, reply

    def asked(self, request: Request) -> None:
        for producer in writers_of(request) if self._fatal else ():
            found = self._fatal.get(producer)
            if found is None or (request.api == "Produce" and request.mono_us - found[1].mono_us < ON_THEIR_WAY_US):
                continue
            self.fail(f"{request.api} of producer {producer} after a fatal error", *found, request)


@rule(
    "KIP-890.epoch-taken",
    "transactions",
    apis=WRITES,
    needs=Needs(answers=("EndTxn",), writer="transactional"),
    source="KIP-890",
    why="The epoch of each transaction keeps requests that come late out of the next one.",
)
class EpochTaken(Rule):
    """A producer goes on with the producer id and epoch that the reply to EndTxn has (since version 5)."""

    def __init__(self) -> None:
        super().__init__()
        self._given: Recent[tuple[int, int], tuple[Producer, Request, Reply]] = Recent()  # by connection and old id

    def answered(self, request: Request, reply: Reply) -> None:
        ended, found = request.of(m.EndTxnRequest), reply.of(m.EndTxnResponse)
        if ended is None or found is None or request.version < EPOCH_BUMPED_SINCE:
            return
        if not found.error_code and found.producer_id >= 0:
            given = found.producer_id, found.producer_epoch
            self._given[request.connection, ended.producer_id] = given, request, reply

    def asked(self, request: Request) -> None:
        for producer in writers_of(request) if self._given else ():
            given = self._given.pop((request.connection, producer[0]), None)
            if given is None:
                continue
            if producer[1] >= given[0][1] or producer[0] != given[0][0]:
                self.kept()
            else:
                words = f"{request.api} with epoch {producer[1]} after an EndTxn that gave {given[0][1]}"
                self.fail(words, given[1], given[2], request)


@rule(
    "KIP-98.no-empty-commit",
    "transactions",
    apis=("InitProducerId", *WRITES),
    needs=Needs(answers=("InitProducerId", "EndTxn"), writer="transactional"),
    source="KIP-98",
    why="The coordinator knows of no transaction, and refuses to end it (INVALID_TXN_STATE).",
    severity="warning",
)
class NoEmptyCommit(Rule):
    """A producer commits a transaction only if something was sent in it (EndTxn before version 5)."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: Recent[int, Request] = Recent()  # producer ids, since InitProducerId or EndTxn
        self._sent: Recent[int, None] = Recent()

    def asked(self, request: Request) -> None:
        ended = request.of(m.EndTxnRequest)
        if ended is None:
            for producer_id, _ in writers_of(request):
                self._sent[producer_id] = None
        elif ended.committed and ended.producer_id in self._begun and request.version < EPOCH_BUMPED_SINCE:
            begun = self._begun[ended.producer_id]
            if ended.producer_id in self._sent:
                self.kept()
            elif begun.api != "EndTxn" or not request.is_elsewhere(begun):
                self.fail("commits, and has sent nothing", begun, request)

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.message
        if isinstance(found, m.InitProducerIdResponse | m.EndTxnResponse) and not found.error_code:
            ended = request.of(m.EndTxnRequest)
            producer_id = found.producer_id if ended is None else ended.producer_id
            self._begun[producer_id] = request
            self._sent.pop(producer_id, None)


@rule(
    "KIP-98.commit-after-writes",
    "transactions",
    apis=("Produce", "EndTxn"),
    needs=Needs(writer="transactional"),
    source="KIP-98",
    why="The transaction would be committed without what was not written: some of its records are lost.",
)
class CommitAfterWrites(Rule):
    """A producer commits after all its batches are acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Recent[Producer, dict[tuple[Place, int], tuple[Request, Reply | None]]] = Recent()

    def asked(self, request: Request) -> None:
        ended = request.of(m.EndTxnRequest)
        if ended is not None:
            waiting = self._waiting.pop((ended.producer_id, ended.producer_epoch), None)
            if waiting is None or not ended.committed:
                return
            if waiting:
                (at, _), events = next(iter(waiting.items()))
                words = f"commits, and {len(waiting)} batches are not acknowledged, as that for partition {at[3]}"
                self.fail(words, *events, request)
            else:
                self.kept()
            return
        for topic, partition, head in batches(request):
            if head.is_transactional:
                one = self._waiting.setdefault((head.producer_id, head.producer_epoch), {})
                one[place(topic, partition, head), head.base_sequence] = request, None
                if len(one) > WAITING_MAX:
                    del one[next(iter(one))]

    def answered(self, request: Request, reply: Reply) -> None:
        made = reply.of(m.ProduceResponse)
        if made is None:
            return
        failed = {(one.topic, one.partition): one.code for one in partition_errors(reply)}
        for topic, partition, head in batches(request):
            one = self._waiting.get((head.producer_id, head.producer_epoch)) if head.is_transactional else None
            if one is None:
                continue
            at = place(topic, partition, head), head.base_sequence
            if failed.get((topic, partition), 0) in (0, Errors.DUPLICATE_SEQUENCE_NUMBER):
                one.pop(at, None)
            elif at in one:
                one[at] = request, reply


@rule(
    "KIP-890.no-adding",
    "transactions",
    apis=("Produce", "AddPartitionsToTxn"),
    needs=Needs(writer="transactional"),
    source="KIP-890",
    why="Produce since version 12 adds its partitions itself; a request for it costs a round trip, and is refused.",
    severity="warning",
)
class NoAdding(Rule):
    """A producer that writes with Produce since version 12 does not add partitions by AddPartitionsToTxn."""

    def __init__(self) -> None:
        super().__init__()
        self._adds_itself: Recent[Producer, Request] = Recent()

    def asked(self, request: Request) -> None:
        if request.api == "Produce":
            if request.version >= PRODUCE_ADDS:
                for producer in writers_of(request):
                    if producer not in self._adds_itself:
                        self.kept()
                        self._adds_itself[producer] = request
            return
        for producer in writers_of(request):
            wrote = self._adds_itself.get(producer)
            if wrote is not None:
                self.fail(f"AddPartitionsToTxn of producer {producer}, which writes with Produce v12", wrote, request)
