"""The order of requests in a transaction (KIP-98, KIP-890)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ...protocol.structs import Struct
from ..events import Reply, Request, batches
from ..replies import errors_of
from ..rule import Needs, Recent, Rule, latest, rule

PRODUCE_ADDS: Final = 12  # version of Produce that adds its partitions to the transaction (KIP-890)
COMMIT_ADDS: Final = 5  # version of TxnOffsetCommit that adds its group
MEMBER_NAMED_SINCE: Final = 3  # version of TxnOffsetCommit
TRANSACTIONAL: Final = ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit")
FENCED_SINCE: Final = 2  # version of requests to the coordinator of transactions that has PRODUCER_FENCED


def producer_of(message: Struct | None) -> tuple[int, int] | None:
    """The producer id and epoch of a request of a transaction."""
    if isinstance(message, m.AddPartitionsToTxnRequest):
        return message.v3_and_below_producer_id, message.v3_and_below_producer_epoch
    if isinstance(message, m.AddOffsetsToTxnRequest | m.EndTxnRequest | m.TxnOffsetCommitRequest):
        return message.producer_id, message.producer_epoch
    return None


class InTransaction(Rule):
    """Knows which producers were initialized. One whose InitProducerId was before the beginning is not judged."""

    def __init__(self) -> None:
        super().__init__()
        self.known: Recent[int, Request] = Recent()  # by producer id: its InitProducerId, or the EndTxn that gave it

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.message
        if isinstance(found, m.InitProducerIdResponse | m.EndTxnResponse) and not found.error_code:
            if found.producer_id >= 0 and (request.api != "EndTxn" or found.producer_id not in self.known):
                self.known[found.producer_id] = request


@rule(
    "KIP-98.init-first",
    "transactions",
    apis=("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "Produce"),
    needs=Needs(answers=("InitProducerId", "EndTxn"), writer="transactional"),
    source="KIP-98",
    why="InitProducerId ends the transaction that an earlier producer left open, and fences that producer.",
)
class InitFirst(InTransaction):
    """A transactional producer begins with InitProducerId and uses the producer id of its reply, or the one that EndTxn
    gives it when the epochs of the first are used up.
    """

    def __init__(self) -> None:
        super().__init__()
        self._has_begun = False

    def asked(self, request: Request) -> None:
        if request.api == "InitProducerId":
            self._has_begun = True
            return
        transactional = {head.producer_id for _, _, head in batches(request) if head.is_transactional}
        producer = producer_of(request.message)
        if producer is not None and producer[0] >= 0:
            transactional.add(producer[0])
        for producer_id in sorted(transactional):
            if producer_id in self.known:
                self.kept()
            elif self._has_begun and request.client_is_whole:
                words = f"{request.api} with producer id {producer_id}, which no InitProducerId gave to this client"
                self.fail(words, *latest(self.known), request)


@rule(
    "KIP-98.partitions-added",
    "transactions",
    apis=("InitProducerId", "AddPartitionsToTxn", "EndTxn", "Produce"),
    needs=Needs(answers=("InitProducerId", "AddPartitionsToTxn", "EndTxn"), writer="transactional"),
    source="KIP-98",
    why="The coordinator writes no marker to a partition that it does not know: its records are never committed.",
)
class PartitionsAdded(InTransaction):
    """A producer adds a partition to its transaction before it writes to it (Produce before version 12)."""

    def __init__(self) -> None:
        super().__init__()
        self._added: Recent[int, set[tuple[str, int]]] = Recent()  # by producer id

    def answered(self, request: Request, reply: Reply) -> None:
        super().answered(request, reply)
        added, ended = request.of(m.AddPartitionsToTxnRequest), request.of(m.EndTxnRequest)
        if added is not None and not errors_of(reply) and added.v3_and_below_topics:
            known = self._added.setdefault(added.v3_and_below_producer_id, set())
            known |= {(topic.name, one) for topic in added.v3_and_below_topics for one in topic.partitions}
        elif ended is not None and not errors_of(reply):
            self._added.pop(ended.producer_id, None)

    def asked(self, request: Request) -> None:
        if request.api != "Produce" or request.version >= PRODUCE_ADDS:
            return
        for topic, partition, head in batches(request):
            if not head.is_transactional or head.producer_id not in self.known:
                continue
            if (topic, partition) in self._added.get(head.producer_id, ()):
                self.kept()
            else:
                words = f"a batch for {topic!s}-{partition}, which was not added to the transaction"
                self.fail(words, self.known[head.producer_id], request)


@rule(
    "KIP-98.offsets-added",
    "transactions",
    apis=("InitProducerId", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
    source="KIP-98",
    why="The coordinator writes no marker to the group's offsets otherwise: they stay pending.",
)
class OffsetsAdded(InTransaction):
    """A producer adds a group to its transaction before it commits offsets of it (TxnOffsetCommit before version 5)."""

    def __init__(self) -> None:
        super().__init__()
        self._added: Recent[int, set[str]] = Recent()  # groups by producer id

    def answered(self, request: Request, reply: Reply) -> None:
        super().answered(request, reply)
        added, ended = request.of(m.AddOffsetsToTxnRequest), request.of(m.EndTxnRequest)
        if added is not None and not errors_of(reply):
            self._added.setdefault(added.producer_id, set()).add(added.group_id)
        elif ended is not None and not errors_of(reply):
            self._added.pop(ended.producer_id, None)

    def asked(self, request: Request) -> None:
        found = request.of(m.TxnOffsetCommitRequest)
        if found is None or request.version >= COMMIT_ADDS or found.producer_id not in self.known:
            return
        if found.group_id in self._added.get(found.producer_id, ()):
            self.kept()
        else:
            words = f"offsets of group {found.group_id}, which was not added to the transaction"
            self.fail(words, self.known[found.producer_id], request)


@rule(
    "KIP-588.fenced-stops",
    "transactions",
    apis=TRANSACTIONAL,
    needs=Needs(errors=True),
    source="KIP-588",
    why="Another producer has its transactional id. What it goes on with can never be committed.",
)
class FencedStops(Rule):
    """A producer that is fenced (PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH in versions that lack it) sends nothing
    more for its transaction.
    """

    def __init__(self) -> None:
        super().__init__()
        self._fenced: Recent[tuple[int, int], tuple[Request, Reply]] = Recent()  # by producer id and epoch

    def answered(self, request: Request, reply: Reply) -> None:
        producer = producer_of(request.message)
        is_old = request.version < FENCED_SINCE and request.api != "TxnOffsetCommit"
        fenced = Errors.INVALID_PRODUCER_EPOCH if is_old else Errors.PRODUCER_FENCED
        if producer is not None and fenced in errors_of(reply):
            if producer not in self._fenced:
                self.kept()
            self._fenced[producer] = request, reply

    def asked(self, request: Request) -> None:
        producer = producer_of(request.message)
        fenced = self._fenced.get(producer) if producer is not None else None
        if fenced is not None:
            self.fail(f"{request.api} of producer {producer}, which was fenced", *fenced, request)


@rule(
    "KIP-98.transactional-flag",
    "transactions",
    apis=("InitProducerId", "Produce"),
    needs=Needs(answers=("InitProducerId",), writer="idempotent"),
    source="KIP-98",
    why="A record without it is read before the transaction is committed, and also if it is aborted.",
)
class TransactionalFlag(Rule):
    """All batches of a producer with a transactional id are transactional."""

    def __init__(self) -> None:
        super().__init__()
        self._transactional: Recent[int, Request] = Recent()  # producer ids

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.InitProducerIdRequest), reply.of(m.InitProducerIdResponse)
        if asked is not None and found is not None and not found.error_code and asked.transactional_id:
            self._transactional[found.producer_id] = request

    def asked(self, request: Request) -> None:
        for topic, partition, head in batches(request) if self._transactional else ():
            known = self._transactional.get(head.producer_id)
            if known is None:
                continue
            if head.is_transactional:
                self.kept()
            else:
                self.fail(f"a batch for {topic!s}-{partition} that is not transactional", known, request)


@rule(
    "KIP-98.transactional-id-sent",
    "transactions",
    apis=("Produce",),
    needs=Needs(writer="transactional"),
    source="KIP-98",
    why="By it the broker authorizes the producer, and finds the coordinator of the transaction.",
)
class TransactionalIdSent(Rule):
    """A Produce request with transactional batches has a transactional id."""

    def asked(self, request: Request) -> None:
        found = request.of(m.ProduceRequest)
        if found is None or not any(head.is_transactional for _, _, head in batches(request)):
            return
        if found.transactional_id:
            self.kept()
        else:
            self.fail("transactional batches without a transactional id", request)


@rule(
    "KIP-360.own-epoch-named",
    "transactions",
    apis=("InitProducerId", "EndTxn"),
    source="KIP-360",
    why="The coordinator takes another one for a producer that was fenced (PRODUCER_FENCED).",
)
class OwnEpochNamed(Rule):
    """A producer that asks for a new epoch names the producer id and epoch that it has."""

    def __init__(self) -> None:
        super().__init__()
        self._has: Recent[str, tuple[int, int, Request, Reply]] = Recent()
        """Producer id and epoch, by transactional id, as the last reply gave them."""

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.message, reply.message
        if not isinstance(asked, m.InitProducerIdRequest | m.EndTxnRequest):
            return
        if not isinstance(found, m.InitProducerIdResponse | m.EndTxnResponse) or found.error_code:
            return
        if found.producer_id >= 0 and asked.transactional_id:
            has = found.producer_id, found.producer_epoch, request, reply
            self._has[asked.transactional_id] = has

    def asked(self, request: Request) -> None:
        asked = request.of(m.InitProducerIdRequest)
        if asked is None or asked.producer_id < 0 or not asked.transactional_id:
            return
        has = self._has.get(asked.transactional_id)
        if has is None or request.is_elsewhere(has[2]):  # another producer can have the last one
            return
        if (asked.producer_id, asked.producer_epoch) == has[:2]:
            self.kept()
        else:
            words = (
                f"InitProducerId of {asked.producer_id}, {asked.producer_epoch}; the producer has {has[0]}, {has[1]}"
            )
            self.fail(words, has[2], has[3], request)


@rule(
    "KIP-447.member-named",
    "transactions",
    apis=("TxnOffsetCommit",),
    source="KIP-447",
    why="The coordinator refuses offsets of a member that its group has left behind, if it knows which member it is.",
    severity="warning",
)
class MemberNamed(Rule):
    """Offsets that are committed in a transaction name the member and its generation (since version 3)."""

    def asked(self, request: Request) -> None:
        found = request.of(m.TxnOffsetCommitRequest)
        if found is None or request.version < MEMBER_NAMED_SINCE:
            return
        if found.member_id and found.generation_id_or_member_epoch >= 0:
            self.kept()
        else:
            words = f"member {found.member_id!r} with generation {found.generation_id_or_member_epoch}"
            self.fail(f"offsets of group {found.group_id} of {words}", request)
