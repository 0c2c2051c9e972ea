"""A broker with a topic and transactional producers, for the tests of transactions."""

from __future__ import annotations

from typing import Any

from ottla.broker.replica.partition import Partition
from ottla.broker.shards.loader import log_entries
from ottla.broker.transaction.coordinators import TOPIC_NAME
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.transaction.format import TransactionFormat
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from .ask import fetch_message, values
from .world import Answer, World

SMALL = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}


def world(partitions: int = 3, /, **settings: str) -> World:
    """A broker with a topic `t` and the topics of both coordinators."""
    w = World(None, 0, **{**SMALL, **settings})
    create(w, "t", partitions)
    for kind in (0, 1):
        found = w.ask(
            "FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
        ).coordinators[0]
        assert found.error_code == 0
    return w


def create(w: World, name: str, partitions: int = 1, **configs: str) -> None:
    r = m.CreateTopicsRequest
    wanted = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    wanted.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    assert w.ask("CreateTopics", 5, r(topics=[wanted], timeout_ms=1000)).topics[0].error_code == 0


def partition(w: World, name: str = "t", index: int = 0) -> Partition:
    return w.broker.partitions.by_name[name, index]


def hold(w: World, name: str = TOPIC_NAME, text: str = "held") -> None:
    """What is written to a topic is not committed until its policy is `immediate` again."""
    w.broker.policies.set(name, None, parse_policy(text))
    w.broker.turn.event(w.broker.replicas.configure)


class Writer:
    """A transactional producer. `raises`: it speaks version 2 of transactions."""

    def __init__(self, w: World, name: str = "x", raises: bool = True, timeout_ms: int = 60_000) -> None:
        self.w = w
        self.name = name
        self.raises = raises
        self.timeout_ms = timeout_ms
        self.id = self.epoch = -1
        self.sequences: dict[int, int] = {}

    def init(self, **more: Any) -> int:
        """Begins; the error code."""
        reply = self.w.ask(
            "InitProducerId",
            5,
            m.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=self.timeout_ms, **more),
        )
        if reply.error_code == 0:
            self.id, self.epoch, self.sequences = reply.producer_id, reply.producer_epoch, {}
        return int(reply.error_code)

    def add(self, *partitions: int, name: str = "t") -> Answer:
        a = m.AddPartitionsToTxnRequest
        request = a(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
        )
        request.v3_and_below_topics = [a.AddPartitionsToTxnTopic(name=name, partitions=list(partitions))]
        return self.w.send("AddPartitionsToTxn", 3, request)

    def send(
        self,
        *rows: bytes,
        index: int = 0,
        name: str = "t",
        key: bytes | None = None,
        timeout_ms: int = 5000,
        codec: int = 0,
    ) -> Answer:
        """One batch; its sequence is taken as used once it is answered without an error."""
        sequence = self.sequences.get(index, 0)
        template = Template(
            producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence, transactional=True, codec=codec
        )
        data = bytes(records.encode([Record(key, row, self.w.schedule.now_ms()) for row in rows], template))
        r = m.ProduceRequest
        topic = r.TopicProduceData(name=name, partition_data=[r.PartitionProduceData(index=index, records=data)])
        return self.w.send(
            "Produce",
            12 if self.raises else 11,
            r(transactional_id=self.name, acks=-1, timeout_ms=timeout_ms, topic_data=[topic]),
        )

    def write(self, *rows: bytes, index: int = 0, name: str = "t", key: bytes | None = None) -> int:
        """As `send`, after announcing the partition where that is needed; the error code."""
        if not self.raises:
            code = (
                self.add(index, name=name)
                .reply.results_by_topic_v3_and_below[0]
                .results_by_partition[0]
                .partition_error_code
            )
            if code:
                return int(code)
        answer = self.send(*rows, index=index, name=name, key=key)
        for _ in range(1000):
            if answer.done:
                break
            self.w.pass_ms(1)
        code = produced(answer)
        if code == 0:
            self.sequences[index] = self.sequences.get(index, 0) + len(rows)
        return code

    def ending(self, committed: bool = True) -> Answer:
        request = m.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        return self.w.send("EndTxn", 5 if self.raises else 4, request)

    def end(self, committed: bool = True) -> int:
        """The error code, once markers have had a moment."""
        answer = self.ending(committed)
        self.w.pass_ms(1)
        assert answer.done
        self.take(answer)
        return int(answer.reply.error_code)

    def take(self, answer: Answer) -> None:
        if answer.reply.error_code == 0 and self.raises:
            self.id, self.epoch, self.sequences = answer.reply.producer_id, answer.reply.producer_epoch, {}

    def commit_offset(self, offset: int, group: str = "g", index: int = 0, version: int = 5, **more: Any) -> Answer:
        r = m.TxnOffsetCommitRequest
        part = r.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = r(transactional_id=self.name, group_id=group, producer_id=self.id, producer_epoch=self.epoch)
        request.topics = [r.TxnOffsetCommitRequestTopic(name="t", partitions=[part])]
        for name, value in more.items():
            setattr(request, name, value)
        return self.w.send("TxnOffsetCommit", version, request)


def produced(answer: Answer) -> int:
    return int(answer.reply.responses[0].partition_responses[0].error_code)


def state(w: World, name: str = "x") -> Any:
    """What DescribeTransactions says: state, epoch, and partitions."""
    (found,) = w.ask(
        "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=[name])
    ).transaction_states
    if found.error_code:
        return found.error_code
    return (
        found.transaction_state,
        found.producer_epoch,
        sorted((t.topic, p) for t in found.topics for p in t.partitions),
    )


def fetched(w: World, index: int = 0, name: str = "t", isolation: int = 1, offset: int = 0) -> Any:
    return w.ask("Fetch", 11, fetch_message(name, offset, index, isolation=isolation)).responses[0].partitions[0]


def committed_values(w: World, index: int = 0, name: str = "t") -> list[bytes | None]:
    """What a reader of committed records makes of a fetch."""
    from ..sim.producers import committed_rows

    found = fetched(w, index, name)
    return [value for _, value in committed_rows(found.records, found.aborted_transactions or (), 0)]


def all_values(w: World, index: int = 0, name: str = "t") -> list[bytes | None]:
    return values(fetched(w, index, name, isolation=0).records)


def steps(w: World, name: str = "x") -> list[Any]:
    """The states in the coordinator's log of a transactional id, in order."""
    found = []
    for entry in log_entries(partition(w, TOPIC_NAME).open_log()):
        decoded = TransactionFormat(lambda: 1).decode(entry.record) if entry.record is not None else None
        assert decoded is not None
        if decoded[0] == name:
            found.append(decoded[1])
    return found


def begun(w: World, name: str = "x", raises: bool = True, **more: Any) -> Writer:
    one = Writer(w, name, raises, **more)
    assert one.init() == 0
    return one


def lower(w: World, level: int) -> None:
    u = m.UpdateFeaturesRequest
    update = u.FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=3)
    assert w.ask("UpdateFeatures", 1, u(feature_updates=[update])).error_code == 0
