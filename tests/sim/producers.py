"""Transactional producers and readers of committed records as the simulator of transactions plays them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Protocol

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.protocol.records import Record, Template

from ..support.ask import fetch_message
from ..support.world import Answer, World

NAMES = ("x", "y", "z")


PATIENCE_MS = 3000


TIMEOUT_MS = 15_000


RETRIABLE = {
    int(e)
    for e in (
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.CONCURRENT_TRANSACTIONS,
        Errors.REQUEST_TIMED_OUT,
        Errors.UNSTABLE_OFFSET_COMMIT,
    )
}


DOOMED = {  # the producer has to begin again
    int(e)
    for e in (
        Errors.INVALID_PRODUCER_EPOCH,
        Errors.PRODUCER_FENCED,
        Errors.INVALID_TXN_STATE,
        Errors.INVALID_PRODUCER_ID_MAPPING,
        Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Errors.TRANSACTION_ABORTABLE,
    )
}


class Txn:
    """A transaction as its client knows it."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.rows: list[tuple[int, bytes]] = []  # partition and value of what was acknowledged
        self.offset = False  # whether the commit of an offset was acknowledged
        self.outcome = "open"  # committed, aborted, or unknown


class History(Protocol):
    """What producers know of the history that they are part of."""

    chance: random.Random
    world: World
    trouble: bool

    @property
    def now_ms(self) -> int: ...

    def begin(self, name: str) -> Txn: ...


class Client:
    """A transactional producer: one request at a time, which it repeats when no answer comes."""

    def __init__(self, sim: History, name: str, raises: bool) -> None:
        self.sim = sim
        self.name = name
        self.raises = raises  # speaks version 2 of transactions
        self.id = self.epoch = -1
        self.todo = "init"
        self.sequences: dict[int, int] = {}
        self.known: set[Any] = set()  # what has been announced, where that is needed
        self.txn: Txn | None = None
        self.work: list[int] = []  # the partitions that are still to be written to; -1 for the offset
        self.commits = False
        self.doubtful = False  # an end may have been decided of which no reply came
        self.waiting: Answer | None = None
        self.since_ms = 0

    def step(self) -> bool:
        """False when the client is done for."""
        answer = self.waiting
        if answer is not None and answer.done:
            self.waiting = None
            if answer.reply is None:
                return True
            return self.take(answer.reply)
        if answer is None or self.sim.now_ms - self.since_ms > PATIENCE_MS:
            if answer is not None and self.todo == "end":
                self.doubtful = True
            self.ask()
        return True

    def send(self, name: str, version: int, message: Any) -> None:
        chance, world = self.sim.chance, self.sim.world
        self.since_ms = self.sim.now_ms
        self.waiting = Answer()  # of a request that never arrives
        if self.sim.trouble and chance.random() < 0.03:
            return
        self.waiting = world.send(name, version, message)
        if self.sim.trouble and chance.random() < 0.03:
            world.send(name, version, message)
        if self.sim.trouble and chance.random() < 0.03:
            self.waiting = Answer()  # nor does its answer

    def ask(self) -> None:
        chance = self.sim.chance
        if self.todo == "idle":
            if chance.random() < 0.5:
                return
            self.txn = self.sim.begin(self.name)
            self.work = [chance.choice((0, 1, 2, 2, -1)) for _ in range(chance.randint(1, 4))]
            self.commits, self.doubtful, self.known = chance.random() < 0.7, False, set()
            self.todo = "work"
        if self.todo == "init":
            self.send(
                "InitProducerId",
                5,
                m.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS),
            )
        elif self.todo == "work" and self.work:
            self._work(self.work[0])
        else:
            self.todo = "end"
            if self.commits and self.txn is not None:
                self.txn.outcome = "unknown"
            request = m.EndTxnRequest(
                transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=self.commits
            )
            self.send("EndTxn", 5 if self.raises else 4, request)

    def _work(self, partition: int) -> None:
        assert self.txn is not None
        if not self.raises and partition not in self.known:
            if partition < 0:
                request = m.AddOffsetsToTxnRequest(
                    transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id="g"
                )
                return self.send("AddOffsetsToTxn", 3, request)
            a = m.AddPartitionsToTxnRequest
            added = a(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
            )
            added.v3_and_below_topics = [a.AddPartitionsToTxnTopic(name="t", partitions=[partition])]
            return self.send("AddPartitionsToTxn", 3, added)
        if partition < 0:
            o = m.TxnOffsetCommitRequest
            part = o.TxnOffsetCommitRequestPartition(
                partition_index=NAMES.index(self.name), committed_offset=self.txn.number
            )
            commit = o(transactional_id=self.name, group_id="g", producer_id=self.id, producer_epoch=self.epoch)
            commit.topics = [o.TxnOffsetCommitRequestTopic(name="t", partitions=[part])]
            return self.send("TxnOffsetCommit", 5 if self.raises else 3, commit)
        template = Template(
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(partition, 0),
            transactional=True,
        )
        data = bytes(records.encode([Record(None, self._value(), self.sim.now_ms)], template))
        r = m.ProduceRequest
        topic = r.TopicProduceData(name="t", partition_data=[r.PartitionProduceData(index=partition, records=data)])
        return self.send(
            "Produce",
            12 if self.raises else 11,
            r(transactional_id=self.name, acks=-1, timeout_ms=2000, topic_data=[topic]),
        )

    def _value(self) -> bytes:
        assert self.txn is not None
        return f"{self.txn.number}.{len(self.work)}".encode()

    def take(self, reply: Any) -> bool:
        kind = type(reply).__name__
        code = self._code(kind, reply)
        if code in RETRIABLE:
            if kind == "EndTxnResponse" and code != Errors.CONCURRENT_TRANSACTIONS:
                self.doubtful = True  # the coordinator may have moved with the decision
            return True
        if code in DOOMED:
            if self.txn is not None and not self.doubtful:
                self.txn.outcome = "aborted"  # no producer has asked for its commit, or the one who did was refused
            self.txn = None
            return False
        assert code == 0, f"{self.name} was told {code} by {kind}"
        self._succeeded(kind, reply)
        return True

    def _code(self, kind: str, reply: Any) -> int:
        if kind == "ProduceResponse":
            return int(reply.responses[0].partition_responses[0].error_code)
        if kind == "TxnOffsetCommitResponse":
            return int(reply.topics[0].partitions[0].error_code)
        if kind == "AddPartitionsToTxnResponse":
            return int(reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
        return int(reply.error_code)

    def _succeeded(self, kind: str, reply: Any) -> None:
        if kind == "InitProducerIdResponse":
            self.id, self.epoch, self.sequences, self.todo = reply.producer_id, reply.producer_epoch, {}, "idle"
        elif kind in ("AddPartitionsToTxnResponse", "AddOffsetsToTxnResponse"):
            self.known.add(self.work[0])
        elif kind == "EndTxnResponse":
            assert self.txn is not None
            self.txn.outcome = "committed" if self.commits else "aborted"
            self.txn, self.todo = None, "idle"
            if self.raises:
                self.id, self.epoch, self.sequences = reply.producer_id, reply.producer_epoch, {}
        else:
            assert self.txn is not None
            partition = self.work[0]
            if kind == "ProduceResponse":
                self.txn.rows.append((partition, self._value()))
                self.sequences[partition] = self.sequences.get(partition, 0) + 1
            else:
                self.txn.offset = True
            self.work.pop(0)


class Reader:
    """A consumer of committed records in one partition: it drops aborted ones by the list that comes with them."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.offset = 0
        self.rows: list[tuple[int, bytes]] = []
        self.stable = 0

    def read(self, world: World) -> list[bytes]:
        """What has become readable."""
        answer = world.send("Fetch", 11, fetch_message("t", self.offset, self.partition, isolation=1))
        if not answer.done or answer.reply is None:
            return []
        (part,) = answer.reply.responses[0].partitions
        if part.error_code in RETRIABLE:
            return []
        assert part.error_code == 0, f"a reader of {self.partition} at {self.offset} was told {part.error_code}"
        assert part.last_stable_offset <= part.high_watermark
        assert part.last_stable_offset >= self.stable, (
            f"the last stable offset went back from {self.stable} to {part.last_stable_offset}"
        )
        self.stable = part.last_stable_offset
        found = committed_rows(part.records, part.aborted_transactions or (), self.offset)
        self.rows += found
        for at in records.batches(part.records):
            self.offset = max(self.offset, at.header.next_offset)
        return [value for _, value in found]


def committed_rows(data: Any, aborted: Iterable[Any], start: int) -> list[tuple[int, bytes]]:
    """What a client makes of fetched batches and the list of aborted transactions."""
    waiting, open_ids, rows = sorted(aborted, key=lambda one: one.first_offset), set(), []
    for at in records.batches(data):
        h = at.header
        while waiting and waiting[0].first_offset <= h.last_offset:
            open_ids.add(waiting.pop(0).producer_id)
        opened = records.decode(data, at)
        if h.is_control:
            if opened and (opened[0].key or b"")[2:4] == b"\0\0":
                open_ids.discard(h.producer_id)
            continue
        if h.is_transactional and h.producer_id in open_ids:
            continue
        rows += [(r.offset, r.value or b"") for r in opened if r.offset >= start]
    return rows
