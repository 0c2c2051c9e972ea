"""A whole broker in which one call fails, once: a file operation, or a function of the broker, with an exception of any
kind.

    python -m tests.sim faults [seeds=20000] [seed=N]

A history uses the main APIs. A first run counts the calls; every other run has one of them raise, before or after its
work is done, and then: each request has an answer or a closed connection within bounded time, good requests that come
later work or get an error of Kafka's for it, and after a restart on the files what was acknowledged is there: records
and topics even when power failed where they were flushed.
"""

from __future__ import annotations

import logging
import random
from functools import cache
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.protocol.records import Record, Template

from ..support.ask import batch, fetch_message, produce_message
from ..support.memory_files import MemFiles
from ..support.world import World, told_with
from .injector import (
    FaultyFiles,
    Injector,
    functions,
)

WITHIN_MS = 150_000


SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "group_consumer_assignment_interval_ms": "0",
    "log_retention_check_interval_ms": "20000",
    "log_initial_task_delay_ms": "5000",
    "log_cleaner_backoff_ms": "5000",
}


__all__ = ["calls", "run"]


class Lost(Exception):
    """The broker ends: the history goes on after a restart."""


class History:
    """What a client does, and what it was told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.topics: dict[
            str, bool
        ] = {}  # whether they are there; those about which nothing is known are not among them
        self.rows: dict[str, list[bytes]] = {}  # acknowledged and flushed
        self.sent: dict[str, set[bytes]] = {}
        self.offset: int | None = None  # the last one that was committed; None where that is not known
        self.in_transaction: list[bytes] = []
        self.is_committed: bool | None = None

    def ask(self, name: str, version: int, message: Any) -> Any:
        """The reply, or None for a closed connection. AssertionError where there is neither in time. Lost."""
        answer = self.world.send(name, version, message)
        waited = 0
        while not answer.done and waited < WITHIN_MS and not self.world.fatal:
            step = 1 if waited < 50 else 500
            self.world.pass_ms(step)
            waited += step
        if self.world.fatal:
            raise Lost
        assert answer.done, f"{name} has neither an answer nor an end"
        return answer.reply

    def create(self, name: str) -> None:
        r = m.CreateTopicsRequest
        wanted = r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        wanted.configs = [
            r.CreatableTopicConfig(name="flush.messages", value="1"),
            r.CreatableTopicConfig(name="segment.bytes", value="1048576"),
        ]
        if self.topics.get(name) is False:  # from now on this is not known, until there is a reply
            del self.topics[name]
        reply = self.ask("CreateTopics", 5, r(topics=[wanted], timeout_ms=10_000))
        if reply is not None and reply.topics[0].error_code == 0:
            self.topics[name] = True
            self.rows[name] = []

    def delete(self, name: str) -> None:
        self.topics.pop(name, None)
        reply = self.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000))
        if reply is not None and reply.responses[0].error_code == 0:
            self.topics[name] = False

    def produce(self, name: str, value: bytes) -> int:
        self.sent.setdefault(name, set()).add(value)
        reply = self.ask("Produce", 9, produce_message(name, batch(value, now=self.world.schedule.now_ms())))
        code = -1 if reply is None else int(reply.responses[0].partition_responses[0].error_code)
        assert code != Errors.REQUEST_TIMED_OUT, f"what failed for a record of {name} was not tried again"
        if code == 0 and name in self.rows:
            self.rows[name].append(value)
        return code

    def commit(self, offset: int) -> int:
        r = m.OffsetCommitRequest
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = r(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        reply = self.ask("OffsetCommit", 8, request)
        code = -1 if reply is None else int(reply.topics[0].partitions[0].error_code)
        self.offset = offset if code == 0 else None
        return code

    def run(self) -> None:
        """The steps. Each may fail, and none waits for the one before to have worked."""
        self.create("t")
        self.create("gone")
        for n in range(3):
            self.produce("t", b"%d" % n)
        self.produce("gone", b"x")
        for kind in (0, 1):
            self.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"]))
        self.commit(1)
        self.join()
        self.transaction()
        self.share()
        self.administer()
        self.commit(2)
        self.read("t")
        self.world.pass_ms(70_000)  # retention, checkpoints, removal of files, sessions that end
        self.produce("t", b"last")
        self.commit(3)

    def join(self) -> None:
        j, h = m.JoinGroupRequest, m.ConsumerGroupHeartbeatRequest
        protocol = j.JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\1\0\1t\0\0\0\0")
        joined = self.ask(
            "JoinGroup",
            3,
            j(group_id="c", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="", protocols=[protocol]),
        )
        if joined is not None and joined.error_code == 0:
            s = m.SyncGroupRequest
            mine = s.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
            self.ask(
                "SyncGroup",
                2,
                s(group_id="c", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[mine]),
            )
        beat = h(
            group_id="k", member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
        )
        found = self.ask("ConsumerGroupHeartbeat", 1, beat)
        if found is not None and found.error_code == 0:
            self.ask("ConsumerGroupHeartbeat", 1, h(group_id="k", member_id="m", member_epoch=found.member_epoch))
        by_pattern = h(
            group_id="r", member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_regex="t.*", topic_partitions=[]
        )
        self.ask("ConsumerGroupHeartbeat", 1, by_pattern)

    def transaction(self) -> None:
        begun = self.ask(
            "InitProducerId", 4, m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=5000)
        )
        if begun is None or begun.error_code:
            return
        self.create("xt")
        template = Template(
            producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, base_sequence=0, transactional=True
        )
        data = bytes(records.encode([Record(None, b"in", self.world.schedule.now_ms())], template))
        message = produce_message("xt", data)
        message.transactional_id = "x"
        reply = self.ask("Produce", 12, message)
        if reply is None or reply.responses[0].partition_responses[0].error_code:
            return
        end = m.EndTxnRequest(
            transactional_id="x", producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, committed=True
        )
        ended = self.ask("EndTxn", 5, end)
        self.is_committed = True if ended is not None and ended.error_code == 0 else None

    def share(self) -> None:
        c, h, f = m.IncrementalAlterConfigsRequest, m.ShareGroupHeartbeatRequest, m.ShareFetchRequest
        earliest = c.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        self.ask(
            "IncrementalAlterConfigs",
            1,
            c(resources=[c.AlterConfigsResource(resource_type=32, resource_name="q", configs=[earliest])]),
        )
        self.ask("ShareGroupHeartbeat", 1, h(group_id="q", member_id="m", member_epoch=0, subscribed_topic_names=["t"]))
        found = self.world.broker.topic("t")
        if found is None:
            return
        for epoch in range(2):
            part = f.FetchPartition(partition_index=0)
            if epoch:
                part.acknowledgement_batches = [
                    f.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
                ]
            request = f(
                group_id="q",
                member_id="m",
                share_session_epoch=epoch,
                topics=[f.FetchTopic(topic_id=found.id, partitions=[part])],
            )
            request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records, request.batch_size = (
                500,
                1,
                1 << 20,
                500,
                500,
            )
            self.ask("ShareFetch", 1, request)

    def administer(self) -> None:
        p, c = m.CreatePartitionsRequest, m.IncrementalAlterConfigsRequest
        self.ask("CreatePartitions", 3, p(topics=[p.CreatePartitionsTopic(name="t", count=2)], timeout_ms=10_000))
        retention = c.AlterableConfig(name="retention.ms", config_operation=0, value="3600000")
        self.ask(
            "IncrementalAlterConfigs",
            1,
            c(resources=[c.AlterConfigsResource(resource_type=2, resource_name="t", configs=[retention])]),
        )
        self.delete("gone")
        self.create("gone")
        self.produce("gone", b"again")
        self.create("late")
        self.produce("late", b"y")
        self.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["c"]))
        self.ask("ListGroups", 5, m.ListGroupsRequest())
        self.ask("DescribeLogDirs", 1, m.DescribeLogDirsRequest(topics=None))

    def read(self, name: str) -> list[bytes | None] | None:
        """What is there of a topic; None where it cannot be read."""
        reply = self.ask("Fetch", 11, fetch_message(name, 0, isolation=1))
        if reply is None or reply.error_code or reply.responses[0].partitions[0].error_code:
            return None
        data = reply.responses[0].partitions[0].records
        found = [(at, record) for at in records.batches(data) for record in records.decode(data, at)]
        return [record.value for at, record in found if not at.header.is_control]


def _check_after_restart(history: History, files: MemFiles, power_failed: bool, seed: int) -> None:
    world = World(files, seed, history.world.schedule.now_ms(), **SETTINGS)
    again = History(world)
    world.pass_ms(2000)
    assert not world.fatal, world.fatal
    for name, is_there in history.topics.items():
        assert (world.broker.topic(name) is not None) is is_there, f"topic {name} is {'gone' if is_there else 'back'}"
        if is_there:
            rows = again.read(name)
            assert rows is not None, f"{name} cannot be read"
            kept = [row for row in rows if row in history.rows[name]]
            assert kept == history.rows[name], f"{name} has {rows}, {history.rows[name]} were acknowledged"
            extra = set(rows) - history.sent.get(name, set()) - {b"in"}
            assert not extra, f"{name} has {extra}, which no producer sent"
    assert all(
        world.broker.partitions.get(p.topic, p.index).log is not None for p in world.broker.partitions.by_name.values()
    ), "a partition is offline"
    if history.is_committed and not power_failed:
        assert again.read("xt") == [b"in"], "a committed transaction is gone"
    if history.offset is not None and not power_failed:
        r = m.OffsetFetchRequest
        reply = again.ask(
            "OffsetFetch", 7, r(group_id="g", topics=[r.OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
        )
        assert reply.topics[0].partitions[0].committed_offset == history.offset, "a committed offset is another one"
    again.create("t2")
    assert again.produce("t2", b"z") == 0
    assert again.topics.get("t2"), "no topic can be created"


@cache
def calls() -> tuple[int, int]:
    """How many calls there are while a broker starts, and until the end of a history."""
    injector = Injector()
    with functions(injector):
        history = History(World(FaultyFiles(injector), 1, **SETTINGS))
        started = injector.count
        history.run()
        history.world.broker.stop()
    assert history.topics == {"t": True, "gone": True, "xt": True, "late": True}
    assert len(history.rows["t"]) == 4
    assert history.offset == 3
    assert history.is_committed
    assert history.world.broker.metrics.bugs == 0
    return started, injector.count


def run(seed: int) -> None:
    """One history with one fault. AssertionError with the seed."""
    chance = random.Random(seed)
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        started, count = calls()
        injector = Injector(
            chance.randrange(started if chance.random() < 0.1 else count), chance.randrange(1000), chance.random() < 0.3
        )
        with told_with(seed):
            try:
                _run(chance, injector)
            except Exception as error:
                raise AssertionError(f"{injector.where}: {type(error).__name__}: {error}") from error
    finally:
        logging.disable(level)


def _run(chance: random.Random, injector: Injector) -> None:
    files = FaultyFiles(injector)
    with functions(injector):
        history = None
        try:
            history = History(World(files, 1, **SETTINGS))
        except Exception:
            if not injector.where:  # otherwise the start was refused, with the reason
                raise
        if history is not None:
            try:
                history.run()
                _check_goes_on(history, injector)
            except Lost:
                pass
            else:
                if chance.random() < 0.5:
                    history.world.broker.stop()
    injector.at = -1
    power_failed = chance.random() < 0.5
    after = files.lose_power(chance) if power_failed else files
    if history is None:
        World(after, 2, **SETTINGS)
    else:
        _check_after_restart(history, after, power_failed, 2)


def _check_goes_on(history: History, injector: Injector) -> None:
    """What is asked for now works, or has one of Kafka's errors for a partition or coordinator that is not
    available.
    """
    world = history.world
    injector.at = -1
    world.pass_ms(40_000)  # what failed has been tried again
    history.create("new")
    assert history.topics.get("new"), "no topic can be created any more"
    for kind in (0, 1):
        history.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"]))
    history.create("new2")
    assert history.produce("new2", b"1") == 0, "a new topic cannot be written"
    history.create("t")
    code = history.produce("t", b"after")
    assert code == 0 or _is_offline(world, "t"), f"t: error {code}"
    code = history.commit(4)
    assert code == 0 or _is_offline(world, "__consumer_offsets"), f"OffsetCommit: error {code}"


def _is_offline(world: World, name: str) -> bool:
    """One partition's trouble is its own, until the next start."""
    return world.broker.partitions.get(name, 0).offline
