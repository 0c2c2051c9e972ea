"""What idempotent producers send, and what they send again (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request, batches
from ..replies import partition_errors
from ..rule import Needs, Recent, Rule, latest, rule
from .epochs import Place, place
from .idempotence import OUT_OF_SEQUENCE

ALL: Final = -1
REFUSED: Final = frozenset(
    {
        Errors.MESSAGE_TOO_LARGE,  # after which a batch is divided
        Errors.RECORD_LIST_TOO_LARGE,
        Errors.INVALID_TOPIC_EXCEPTION,
        Errors.INVALID_RECORD,
        Errors.INVALID_TIMESTAMP,
        Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Errors.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
NOT_WRITTEN: Final = REFUSED.union(OUT_OF_SEQUENCE)
PASSING: Final = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
    }
)
ATTEMPTS_MIN: Final = 5
Tries = tuple[int, int, Request, Reply]
"""Of a batch: how often it was refused, how long its first retry waited, its first request, and its last reply."""
Refusal = tuple[int, Request, Reply]
"""The checksum of a batch, its request and its reply."""
BACK_OFF_US: Final = 200_000  # of 800 ms after four failures: what chance and shorter settings may leave


@rule(
    "KIP-98.acks-all",
    "idempotence",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="KIP-98",
    why="A batch that only the leader has can be lost after its acknowledgement, and those after it are refused.",
)
class AcksAll(Rule):
    """An idempotent producer asks for the acknowledgement of all replicas (acks -1)."""

    def asked(self, request: Request) -> None:
        found = request.of(m.ProduceRequest)
        if found is None or not batches(request):
            return
        if found.acks == ALL:
            self.kept()
        else:
            self.fail(f"idempotent batches with acks {found.acks}", request)


@rule(
    "KIP-98.producer-id-own",
    "idempotence",
    apis=("Produce", "InitProducerId"),
    needs=Needs(answers=("InitProducerId",), writer="idempotent"),
    source="KIP-98",
    why="Two producers with one id number their records the same, and the broker takes those of one for repetitions.",
)
class ProducerIdOwn(Rule):
    """An idempotent producer uses the producer id that InitProducerId gave it."""

    def __init__(self) -> None:
        super().__init__()
        self._given: Recent[int, Request] = Recent()
        self._has_begun = False

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.InitProducerIdResponse)
        if found is not None and not found.error_code:
            self._given[found.producer_id] = request
            self._has_begun = True

    def asked(self, request: Request) -> None:
        if request.api == "InitProducerId":
            self._has_begun = self._has_begun or request.is_first
            return
        if not self._has_begun or not request.client_is_whole or self._given.has_forgotten:
            return
        for producer_id in {head.producer_id: None for _, _, head in batches(request) if not head.is_transactional}:
            if producer_id in self._given:
                self.kept()
            else:
                words = f"producer id {producer_id}, which no InitProducerId gave to this client"
                self.fail(words, *latest(self._given), request)


@rule(
    "KIP-98.batch-unchanged",
    "idempotence",
    apis=("Produce",),
    needs=Needs(errors=True, writer="idempotent"),
    source="KIP-98",
    why="The broker knows a batch that it has by its first and last sequence number; it refuses one that overlaps.",
)
class BatchUnchanged(Rule):
    """A batch that is sent again has as many records as before, unless it was refused for what it is, or was out of
    order after such a one: then its sequence number is free for another batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sent: Recent[tuple[Place, int], tuple[int, Request]] = Recent()  # records, by the first sequence number

    def asked(self, request: Request) -> None:
        for topic, partition, head in batches(request):
            at = place(topic, partition, head), head.base_sequence
            before = self._sent.get(at)
            if before is None:
                self._sent[at] = head.records, request
            elif before[0] == head.records:
                self.kept()
            else:
                words = f"the batch with sequence {head.base_sequence} has {head.records} records, and had {before[0]}"
                self.fail(words, before[1], request)

    def answered(self, request: Request, reply: Reply) -> None:
        free = {(one.topic, one.partition) for one in partition_errors(reply) if one.code in NOT_WRITTEN}
        for topic, partition, head in batches(request) if free else ():
            if (topic, partition) in free:
                self._sent.pop((place(topic, partition, head), head.base_sequence), None)


@rule(
    "KIP-360.epoch-rises",
    "idempotence",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="KIP-360",
    why="The broker has fenced the older epoch (INVALID_PRODUCER_EPOCH).",
)
class EpochRises(Rule):
    """The epochs of a producer id only rise on a connection, for each partition: batches of another one that were on
    their way keep the epoch that they had.
    """

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[int, Recent[tuple[int, str | bytes, int], tuple[int, Request]]] = {}
        """By connection: of producer id, topic and partition."""

    def asked(self, request: Request) -> None:
        found = batches(request)
        epochs = self._epochs.setdefault(request.connection, Recent()) if found else {}
        for topic, partition, head in found:
            at = head.producer_id, topic, partition
            before = epochs.get(at)
            if before is None or head.producer_epoch > before[0]:
                epochs[at] = head.producer_epoch, request
            if before is None:
                continue
            if head.producer_epoch >= before[0]:
                self.kept()
            else:
                words = f"epoch {head.producer_epoch} of producer {head.producer_id} after {before[0]}"
                self.fail(words, before[1], request)

    def closed(self, closed: Closed) -> None:
        self._epochs.pop(closed.connection, None)


@rule(
    "KIP-98.refused-not-repeated",
    "idempotence",
    apis=("Produce",),
    needs=Needs(errors=True, writer="idempotent"),
    source="KIP-98",
    why="The broker will refuse the same batch again: a retry is for what passes.",
)
class RefusedNotRepeated(Rule):
    """A batch that is refused for what it is (MESSAGE_TOO_LARGE, INVALID_RECORD, ...) is not sent again as it is."""

    # Another one with its sequence number and size, and another checksum, can have other records, or the same with a
    # new time: nothing is concluded from it.

    def __init__(self) -> None:
        super().__init__()
        self._refused: Recent[tuple[Place, int, int], Refusal] = Recent()  # by sequence number and size
        self._producers: Recent[int, None] = Recent()  # that had a batch refused, and have sent none since

    def answered(self, request: Request, reply: Reply) -> None:
        refused = {(one.topic, one.partition) for one in partition_errors(reply) if one.code in REFUSED}
        for topic, partition, head in batches(request) if refused else ():
            if (topic, partition) in refused:
                at = place(topic, partition, head), head.base_sequence, head.size
                self._refused[at] = head.crc, request, reply
                self._producers[head.producer_id] = None

    def asked(self, request: Request) -> None:
        if not self._refused:
            return
        for topic, partition, head in batches(request):
            at = place(topic, partition, head), head.base_sequence, head.size
            refused = self._refused.get(at)
            if refused is not None and refused[0] == head.crc >= 0:
                self.fail(f"the batch with sequence {head.base_sequence} again", *refused[1:], request)
                del self._refused[at]
            elif refused is None and head.producer_id in self._producers:
                self.kept()
                del self._producers[head.producer_id]


@rule(
    "KIP-580.backs-off-more",
    "network",
    apis=("Produce",),
    needs=Needs(writer="idempotent"),
    source="KIP-580",
    why="A broker that has trouble for longer is asked less and less often.",
    severity="warning",
)
class BacksOffMore(Rule):
    """A producer waits longer for each retry of a batch, up to a second: 200 ms or more for the fourth."""

    def __init__(self) -> None:
        super().__init__()
        self._tries: Recent[tuple[Place, int], Tries] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        failed = {(one.topic, one.partition) for one in partition_errors(reply) if one.code in PASSING}
        if not failed and not self._tries:
            return
        for topic, partition, head in batches(request):
            at = place(topic, partition, head), head.base_sequence
            before = self._tries.get(at)
            if (topic, partition) not in failed:
                self._tries.pop(at, None)
            elif before is None:
                self._tries[at] = 1, 0, request, reply
            else:
                waited_us = request.mono_us - before[3].mono_us
                self._judge(at, waited_us, before, request, reply)

    def _judge(self, at: tuple[Place, int], waited_us: int, before: Tries, request: Request, reply: Reply) -> None:
        count, first_us = before[0] + 1, before[1] or waited_us
        self._tries[at] = count, first_us, before[2], reply
        if count != ATTEMPTS_MIN:
            return
        if waited_us >= BACK_OFF_US:
            self.kept()
        else:
            words = f"attempt {count} came after {waited_us // 1000} ms, and the second after {first_us // 1000} ms"
            self.fail(words, before[2], before[3], request)
