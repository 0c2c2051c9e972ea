"""Sequences of idempotent producers (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import BatchHead, Reply, Request, batches
from ..replies import partition_errors
from ..rule import Needs, Recent, Rule, rule
from .epochs import NewestEpochs, place

BATCHES_MAX: Final = 5  # that may be in flight, and that a broker knows again
PRODUCE: Final = 0
PUT_OFF_US: Final = 100_000  # in which a producer with more to send could do so
SEQUENCE_MAX: Final = 0x7FFFFFFF
OUT_OF_SEQUENCE: Final = (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, Errors.UNKNOWN_PRODUCER_ID)


def following(head: BatchHead) -> int:
    """The sequence number after a batch."""
    return (head.base_sequence + head.records) & SEQUENCE_MAX


def is_later(sequence: int, than: int) -> bool:
    """Whether a sequence number comes after another; 0 follows the greatest."""
    return 0 < (sequence - than) & SEQUENCE_MAX < 1 << 30


@rule(
    "KIP-98.sequences-in-order",
    "idempotence",
    apis=("Produce", "InitProducerId"),
    needs=Needs(answers=("InitProducerId",), writer="idempotent"),
    source="KIP-98",
    why="The broker refuses a batch after a gap with OUT_OF_ORDER_SEQUENCE_NUMBER, because records may be lost.",
)
class SequencesInOrder(Rule):
    """An idempotent producer numbers the records of a partition without gaps, from 0 in each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self._next: NewestEpochs[tuple[int, Request]] = NewestEpochs()
        self._given: Recent[int, Request] = Recent()  # producer ids that the client got

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.InitProducerIdResponse)
        if found is not None and not found.error_code:
            self._given[found.producer_id] = request

    def asked(self, request: Request) -> None:
        for topic, partition, head in batches(request):
            at = place(topic, partition, head)
            if self._next.is_over(at):
                continue
            before = self._next.get(at)
            begins_at = None if self._next.has_forgotten or head.producer_id not in self._given else 0
            expected = before[0] if before is not None else begins_at
            if expected is None or not is_later(head.base_sequence, expected):
                if expected is not None:
                    self.kept()
            else:
                last = before[1] if before is not None else self._given.get(head.producer_id)
                words = f"sequence {head.base_sequence} of producer {head.producer_id}, and {expected} is next"
                self.fail(words, last, request)
            if before is None or is_later(following(head), before[0]):
                self._next.put(at, (following(head), request))


@rule(
    "KIP-98.five-in-flight",
    "idempotence",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="KIP-98",
    why="A broker knows the last five batches of a producer; it cannot tell whether it has an older one already.",
)
class FiveInFlight(Rule):
    """An idempotent producer sends only the last five batches of a partition again."""

    def __init__(self) -> None:
        super().__init__()
        self._last: NewestEpochs[list[tuple[int, Request]]] = NewestEpochs()

    def asked(self, request: Request) -> None:
        for topic, partition, head in batches(request):
            at = place(topic, partition, head)
            if self._last.is_over(at):
                continue
            last = self._last.get(at) or []
            sent = [sequence for sequence, _ in last]
            if not last or is_later(head.base_sequence, sent[-1]):
                self._last.put(at, [*last, (head.base_sequence, request)][-BATCHES_MAX:])
                self.kept()
            elif len(last) == BATCHES_MAX and is_later(sent[0], head.base_sequence):
                words = f"the batch with sequence {head.base_sequence} again, after {sent}"
                self.fail(words, *(one for _, one in last), request)
            else:
                self.kept()


@rule(
    "KIP-98.in-flight-limit",
    "idempotence",
    apis=("Produce",),
    needs=Needs(asks=(), writer="idempotent"),
    source="KIP-98",
    why="A broker knows the last five batches of a producer; of those that fail together it must know each again.",
)
class InFlightLimit(Rule):
    """An idempotent producer waits for replies when it has five Produce requests in flight on a connection."""

    def answered(self, request: Request, reply: Reply) -> None:
        count = 1 + (reply.waiting.count(PRODUCE) if reply.waiting is not None else 0)
        if count > BATCHES_MAX:
            self.fail(f"{count} Produce requests on the connection before the reply to the first", request, reply)
        elif count > 1 or reply.mono_us - request.mono_us >= PUT_OFF_US:
            self.kept()


@rule(
    "KIP-360.epoch-bumped",
    "idempotence",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="KIP-360",
    why="Within an epoch sequences never start again; the broker could take new records for old ones.",
)
class EpochBumped(Rule):
    """After OUT_OF_ORDER_SEQUENCE_NUMBER or UNKNOWN_PRODUCER_ID, sequences start again only in a new epoch.

    The first batch of an epoch comes again with its number if it was not written: those that were on their way are then
    out of order. A transactional producer whose records before are gone may start again (UNKNOWN_PRODUCER_ID).
    """

    def __init__(self) -> None:
        super().__init__()
        self._failed: Recent[tuple[str | bytes, int], tuple[BatchHead, Request, Reply]] = Recent()
        self._first: NewestEpochs[int] = NewestEpochs()  # the checksum of the first batch of an epoch that was written

    def answered(self, request: Request, reply: Reply) -> None:
        if reply.message is None:
            return
        codes = {(one.topic, one.partition): one.code for one in partition_errors(reply)}
        for topic, partition, head in batches(request):
            code = codes.get((topic, partition), 0)
            if code == Errors.UNKNOWN_PRODUCER_ID and head.is_transactional:
                continue
            if code in OUT_OF_SEQUENCE:
                self._failed[topic, partition] = head, request, reply
            if not code and head.base_sequence == 0:
                self._first.put(place(topic, partition, head), head.crc)

    def asked(self, request: Request) -> None:
        for topic, partition, head in batches(request) if self._failed else ():
            failed = self._failed.get((topic, partition))
            if failed is None:
                continue
            before, asked, reply = failed
            if (head.producer_id, head.producer_epoch) != (before.producer_id, before.producer_epoch):
                self.kept()
                del self._failed[topic, partition]
            elif head.base_sequence == 0 and before.base_sequence > 0:
                first = self._first.get(place(topic, partition, head))
                if first is None or first == head.crc:
                    continue
                words = f"producer {head.producer_id} starts again at 0 in epoch {head.producer_epoch}"
                self.fail(words, asked, reply, request)
                del self._failed[topic, partition]
