"""The longest step of the loop while very many members and groups do the same at once, in milliseconds of the
processor. `make bench ARGS=storms`.

Each storm is a broker without sockets in this process, so a step is what it needs of the processor, whatever else the
machine does: an event with all that it causes. That is how long everyone else waits. Only ottla is measured.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from ottla.broker.net import warming
from ottla.broker.peer import Peer
from ottla.protocol import codec, headers
from ottla.protocol import messages as m

from ..support.memory_files import MemFiles
from ..support.stories.streams import joining, part
from ..support.wire import request_frame
from ..support.world import World
from .servers import Figures

MEMBERS, TOPICS, PARTITIONS = 1000, 10, 1000  # of a group, and of each topic
BEATING, GROUP_SIZE = 10_000, 1000
GROUPS = 10_000
JOINING = 500
REBALANCE_MS, SESSION_MS = 300_000, 600_000
SETTLED_MS = 5000
DAY_MS = 86_400_000
Asked = tuple[str, int, Any]


class Storm:
    """A broker whose steps are measured."""

    def __init__(self, files: MemFiles | None = None, **settings: str) -> None:
        sizes = {"group_consumer_max_size": "100000", "group_share_max_size": "1000", "group_streams_max_size": "1000"}
        intervals = {f"group_{kind}_assignment_interval_ms": "1000" for kind in ("consumer", "share", "streams")}
        sessions = {f"group_{kind}_max_session_timeout_ms": str(SESSION_MS) for kind in ("consumer", "streams")}
        more = {f"group_{kind}_session_timeout_ms": str(SESSION_MS) for kind in ("consumer", "streams")}
        one = {"offsets_topic_num_partitions": "1", "ottla_reply_max_bytes": "100000000"}
        self.world = World(files, 0, **one, **sizes, **intervals, **sessions, **more, **settings)
        self.longest_ms = 0.0
        schedule = self.world.schedule
        take_next = schedule.take_next
        schedule.take_next = lambda: self._measured(take_next())  # type: ignore[method-assign]
        schedule.work_ns = time.thread_time_ns  # type: ignore[method-assign]
        self._peers = count(2)
        deque(warming.steps(self.world.dispatcher.apis), 0)
        gc.collect()
        warming.freeze()
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        while self.ask(("FindCoordinator", 4, find)).coordinators[0].error_code:
            self.world.pass_ms(1)

    def _measured(self, event: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            began = time.thread_time()
            event()
            self.longest_ms = max(self.longest_ms, (time.thread_time() - began) * 1000)

        return call

    def send(self, asked: Asked) -> list[bytes]:
        """Sends a request as an event; returns where the reply comes."""
        name, version, message = asked
        replies: list[bytes] = []
        frame = memoryview(bytearray(request_frame(name, version, message)))[4:]
        peer = Peer("PLAINTEXT", f"127.0.0.1:{next(self._peers)}")

        def event() -> None:
            self.world.dispatcher.handle(peer, frame, lambda reply, end: replies.append(bytes(reply.head)))  # type: ignore[union-attr]
            self.world.broker.turn.settle()

        self._measured(event)()
        return replies

    def ask(self, asked: Asked) -> Any:
        """Sends a request, and lets time pass until the reply is there."""
        replies = self.send(asked)
        while not replies:
            self.world.pass_ms(1)
        name, version, _ = asked
        start = 9 if headers.response_header_version(f"{name}Response", version) else 8
        reply = codec.parse(f"{name}Response", version, replies[0], start)
        assert not getattr(reply, "error_code", 0), reply
        return reply

    def ask_all(self, requests: Iterable[Asked]) -> list[Any]:
        return [self.ask(one) for one in requests]

    def topic(self, name: str, partitions: int) -> None:
        r = m.CreateTopicsRequest
        asked = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        (made,) = self.ask(("CreateTopics", 7, r(topics=[asked]))).topics
        assert not made.error_code, made

    def step_ms(self, storm: Callable[[], object]) -> float:
        """Returns the longest step of a storm, and of what follows it for some seconds."""
        self.longest_ms = 0.0
        storm()
        self.world.pass_ms(SETTLED_MS)
        return self.longest_ms


# assignments


def _consumer(group: str, member: str, names: list[str], assignor: str | None = None) -> Asked:
    r = m.ConsumerGroupHeartbeatRequest
    beat = r(group_id=group, member_id=member, member_epoch=0, rebalance_timeout_ms=REBALANCE_MS)
    beat.subscribed_topic_names, beat.topic_partitions, beat.server_assignor = names, [], assignor
    return "ConsumerGroupHeartbeat", 1, beat


def _share(group: str, member: str, names: list[str]) -> Asked:
    r = m.ShareGroupHeartbeatRequest
    return "ShareGroupHeartbeat", 1, r(group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=names)


def _streams(group: str, member: str, names: list[str]) -> Asked:
    parts = [part(str(number), name) for number, name in enumerate(names)]
    return "StreamsGroupHeartbeat", 1, joining(group, *parts, member=member)


def _kinds(names: list[str]) -> Iterator[tuple[str, Callable[[int], Asked]]]:
    """The members of each kind of group, by number."""
    yield "consumer, uniform", lambda n: _consumer("uniform", f"m{n}", names, "uniform")
    yield "consumer, range", lambda n: _consumer("range", f"m{n}", names, "range")
    yield "consumer, uniform, of different topics", lambda n: _consumer("mixed", f"m{n}", names[n % 3 :], "uniform")
    yield "share", lambda n: _share("share", f"m{n}", names)
    yield "streams", lambda n: _streams("streams", f"m{n}", names)


def assignments(figures: Figures) -> None:
    """Members join until there are 1,000 of them, on 10,000 partitions."""
    storm = Storm()
    names = [f"t{number}" for number in range(TOPICS)]
    for name in names:
        storm.topic(name, PARTITIONS)
    for kind, member in _kinds(names):
        joins = [member(number) for number in range(MEMBERS)]
        figures[f"1,000 members on 10,000 partitions: {kind}"] = storm.step_ms(lambda: storm.ask_all(joins))  # noqa: B023


# members


def heartbeats(figures: Figures) -> None:
    """10,000 members of ten groups join, and beat."""
    storm = Storm()
    storm.topic("t", 100)
    r, epochs = m.ConsumerGroupHeartbeatRequest, {}

    def join() -> None:
        for number in range(BEATING):
            group, member = f"group-{number // GROUP_SIZE}", f"m{number}"
            epochs[group, member] = storm.ask(_consumer(group, member, ["t"])).member_epoch

    def beat() -> None:
        for (group, member), epoch in epochs.items():
            reply = storm.ask(("ConsumerGroupHeartbeat", 1, r(group_id=group, member_id=member, member_epoch=epoch)))
            epochs[group, member] = max(epoch, reply.member_epoch)

    figures["10,000 members in ten groups join"] = storm.step_ms(join)
    figures["10,000 members beat"] = max(storm.step_ms(beat) for _ in range(2))


def joins(figures: Figures) -> None:
    """500 members join a classic group at once, and get what its leader decides; then one more joins."""
    storm = Storm(group_initial_rebalance_delay_ms="1000")
    storm.topic("t", 100)
    r, s = m.JoinGroupRequest, m.SyncGroupRequest
    protocol = r.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")
    join = r(group_id="g", session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS, protocol_type="consumer")
    join.protocols = [protocol]
    waiting: list[list[bytes]] = []

    def storm_of_joins() -> None:
        waiting.extend(storm.send(("JoinGroup", 3, join)) for _ in range(JOINING))
        storm.world.pass_ms(10_000)

    def storm_of_syncs() -> None:
        replies = [codec.parse("JoinGroupResponse", 3, data[0], 8) for data in waiting]
        assert not any(one.error_code for one in replies)
        leader = replies[0].leader
        for one in sorted(replies, key=lambda one: one.member_id == leader):
            sync = s(group_id="g", generation_id=one.generation_id, member_id=one.member_id)
            if one.member_id == leader:
                sync.assignments = [
                    s.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"a" * 50)
                    for member in one.members
                ]
            storm.send(("SyncGroup", 3, sync))

    figures["500 members join a classic group"] = storm.step_ms(storm_of_joins)
    figures["500 members get their assignments"] = storm.step_ms(storm_of_syncs)
    figures["one more member joins 500"] = storm.step_ms(lambda: storm.send(("JoinGroup", 3, join)))


# groups


def groups(figures: Figures) -> None:
    """10,000 groups, each with one member, and as many that have only offsets, on one partition."""
    files = MemFiles()
    storm = Storm(files)
    storm.topic("t", 1)
    names = [f"group-{number}" for number in range(GROUPS)]
    figures["10,000 groups of one member join"] = storm.step_ms(
        lambda: storm.ask_all(_consumer(name, "m", ["t"]) for name in names)
    )
    figures["10,000 groups are listed"] = storm.step_ms(lambda: storm.ask(("ListGroups", 5, m.ListGroupsRequest())))
    figures["10,000 groups are described"] = storm.step_ms(
        lambda: storm.ask(("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=names)))
    )
    r = m.CreatePartitionsRequest
    grown = r(topics=[r.CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=SETTLED_MS)
    figures["their topic grows"] = storm.step_ms(lambda: storm.ask(("CreatePartitions", 3, grown)))
    _commit(storm)
    storm.world.broker.stop()
    figures["20,000 groups are loaded"] = _loading_ms(files)


def _commit(storm: Storm) -> None:
    """10,000 groups commit an offset."""
    c = m.OffsetCommitRequest
    topic = c.OffsetCommitRequestTopic(name="t", partitions=[c.OffsetCommitRequestPartition(partition_index=0)])
    for number in range(GROUPS):
        reply = storm.ask(("OffsetCommit", 8, c(group_id=f"simple-{number}", topics=[topic])))
        assert not reply.topics[0].partitions[0].error_code, reply


def _loading_ms(files: MemFiles) -> float:
    storm = Storm(files)
    return storm.step_ms(lambda: storm.ask(("ListGroups", 5, m.ListGroupsRequest())))


def deletions(figures: Figures) -> None:
    """4,000 groups that have only offsets are deleted at once, as many as a request may name; then the topic of the
    others.
    """
    storm = Storm()
    storm.topic("t", 1)
    _commit(storm)
    names = [f"simple-{number}" for number in range(4000)]
    deletion = m.DeleteGroupsRequest(groups_names=names)
    figures["4,000 groups are deleted"] = storm.step_ms(lambda: storm.ask(("DeleteGroups", 2, deletion)))
    r = m.DeleteTopicsRequest
    gone = r(topics=[r.DeleteTopicState(name="t")], timeout_ms=SETTLED_MS)
    figures["the topic of 6,000 groups is deleted"] = storm.step_ms(lambda: storm.ask(("DeleteTopics", 6, gone)))


def expiry(figures: Figures) -> None:
    """10,000 groups that have only offsets, all of which expire in one round."""
    storm = Storm(offsets_retention_minutes="60", offsets_retention_check_interval_ms=str(DAY_MS))
    storm.topic("t", 1)
    _commit(storm)
    figures["10,000 groups expire"] = storm.step_ms(lambda: storm.world.pass_ms(DAY_MS))
    assert not storm.ask(("ListGroups", 5, m.ListGroupsRequest())).groups


# transactions


def transactions(figures: Figures) -> None:
    """A transaction of 1,000 partitions ends; then 5,000 transactions time out at once."""
    storm = Storm(transaction_state_log_num_partitions="1")
    storm.topic("t", 1000)
    find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    while storm.ask(("FindCoordinator", 4, find)).coordinators[0].error_code:
        storm.world.pass_ms(1)

    def begin(name: str, partitions: int) -> Any:
        init = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        made, a = storm.ask(("InitProducerId", 4, init)), m.AddPartitionsToTxnRequest
        add = a(v3_and_below_transactional_id=name, v3_and_below_producer_id=made.producer_id)
        add.v3_and_below_producer_epoch = made.producer_epoch
        add.v3_and_below_topics = [a.AddPartitionsToTxnTopic(name="t", partitions=list(range(partitions)))]
        storm.ask(("AddPartitionsToTxn", 3, add))
        return made

    made = begin("wide", 1000)
    end = m.EndTxnRequest(transactional_id="wide", producer_id=made.producer_id, producer_epoch=made.producer_epoch)
    end.committed = True
    figures["a transaction of 1,000 partitions ends"] = storm.step_ms(lambda: storm.ask(("EndTxn", 4, end)))
    for number in range(5000):
        begin(f"x{number}", 1)
    figures["5,000 transactions time out"] = storm.step_ms(lambda: storm.world.pass_ms(120_000))


def storms(side: str) -> Figures:
    """Returns the longest step of each storm, in milliseconds of the processor."""
    figures: Figures = {}
    if side == "ottla":
        for measure in (assignments, heartbeats, joins, groups, deletions, expiry, transactions):
            measure(figures)
    return figures


SECTIONS: dict[str, Any] = {"storms": storms}
