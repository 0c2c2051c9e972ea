"""Threads of a Kafka Streams application as the simulator plays them: each asks, waits for its answer, and believes it.
A thread closes tasks that it must give up, which takes time, and only then reports that it has done so.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple, Protocol

from ottla.coordinator.group.streams.statuses import Code
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.stories.streams import R, info, part, topology
from ..support.world import Answer, World

APPLICATION = "app"
SOURCES = {"a": 3, "b": 2}
INTERNAL = {"r": 3, "log": 3}
"""The repartition topic that subtopology 0 writes and 1 reads, and the changelog topic of subtopology 1."""
INPUTS = {"0": "a", "1": "r", "2": "b"}
TOPOLOGY = topology(
    part("0", "a", sinks=["r"]), part("1", repartitions=[info("r")], changelogs=[info("log")]), part("2", "b")
)
STATEFUL = "1"
PROCESSES = ("p0", "p1", "p2")
WITH_ENDPOINT = ("p0", "p2")
STATIC = "p1"  # the process whose threads are static members
PATIENCE = 60  # how often a thread asks for an instance id that another one has

RETRIABLE = {
    int(e)
    for e in (
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    )
}
FENCED = {int(e) for e in (Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH, Errors.GROUP_ID_NOT_FOUND)}
ENDED_BY_TOPICS = {int(Errors.UNKNOWN_SERVER_ERROR), int(Errors.INVALID_REQUEST)}
"""What ends a thread, in Kafka too, whose partitions went: the topic of an endpoint's partitions does not exist, or a
task of the thread has no partition in the topic that came again.
"""

Task = tuple[str, int]


class Owned(NamedTuple):
    """The tasks that a thread has."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()


NOTHING = Owned()


class History(Protocol):
    """What threads know of the history that they are part of."""

    chance: random.Random
    world: World
    trouble: bool
    topics_went: bool

    @property
    def now_ms(self) -> int: ...

    def heard(self, thread: Thread, reply: Any) -> None: ...
    def describe(self, thread: Thread) -> None: ...


class Thread:
    """A thread of a process, which is a member of the group (KIP-1071)."""

    def __init__(self, sim: History, number: int, process: str) -> None:
        self.sim = sim
        self.id = f"t{number}"
        self.process = process
        self.instance = f"{process}-{number % 2}" if process == STATIC else None
        self.epoch = 0
        self.owned = self.target = NOTHING
        self.reported: Owned | None = None  # what the coordinator is known to have heard
        self.closed_at_ms = 0
        self.endpoint_epoch = 0
        self.statuses: set[int] = set()
        self.is_over = False
        self.doubled = False
        self.missed = False  # an answer, which may have given it tasks
        self.refused = 0  # because another thread has its instance id
        self.waiting: Answer | None = None
        self.asked: Owned | None = None
        self.next_ms = self.asked_ms = 0

    def step(self) -> None:
        answer = self.waiting
        if answer is not None and answer.done:
            self.waiting = None
            if answer.reply is not None:
                self._take(answer.reply)
        elif answer is not None and self.sim.now_ms < self.asked_ms + 8000:
            return
        if self.sim.now_ms >= self.next_ms and not self.is_over:
            self.next_ms = self.sim.now_ms + self.sim.chance.randint(100, 3000)
            self._close()
            self._beat()

    def _close(self) -> None:
        """Tasks that the target has not are closed; then those that are new begin."""
        if self.sim.now_ms >= self.closed_at_ms:
            self.owned = self.target

    # requests

    def request(self, epoch: int) -> Any:
        return R(group_id=APPLICATION, member_id=self.id, member_epoch=epoch, instance_id=self.instance)

    def _beat(self) -> None:
        request = self.request(self.epoch)
        request.endpoint_information_epoch = self.endpoint_epoch
        joins = self.epoch == 0
        if joins:
            request.rebalance_timeout_ms, request.process_id = 20_000, self.process
            request.topology = TOPOLOGY
            if self.process in WITH_ENDPOINT:
                request.user_endpoint = R.Endpoint(host=self.process, port=1)
        if joins or self.owned != self.reported or self.sim.chance.random() < 0.2:
            request.active_tasks = _ids(self.owned.active)
            request.standby_tasks = _ids(self.owned.standby)
            request.warmup_tasks = []
        if not joins and self.owned.standby and self.sim.chance.random() < 0.2:
            request.task_offsets = [
                R.TaskOffset(subtopology_id=name, partition=number, offset=self.sim.chance.randint(0, 9))
                for name, number in sorted(self.owned.standby)
            ]
        if not joins and self.sim.trouble and self.sim.chance.random() < 0.003:
            request.shutdown_application = True
        self.asked = self.owned
        self._ask(request)

    def _ask(self, request: Any) -> None:
        """Sends a request; trouble may lose it, double it, or lose its answer."""
        chance, world = self.sim.chance, self.sim.world
        self.missed |= self.waiting is not None
        self.doubled = False
        self.waiting, self.reported, self.asked_ms = None, None, self.sim.now_ms
        if self.sim.trouble and chance.random() < 0.05:
            return
        self.waiting = world.send("StreamsGroupHeartbeat", 1, request)
        if self.sim.trouble and chance.random() < 0.05:
            world.send("StreamsGroupHeartbeat", 1, request)
            self.doubled = self.missed = True
        if self.sim.trouble and chance.random() < 0.05:
            self.waiting, self.missed = None, True

    def leave(self) -> None:
        """Closes all tasks and leaves."""
        self.is_over, self.owned, self.target = True, NOTHING, NOTHING
        if self.epoch > 0:
            comes_back = self.instance is not None and self.sim.chance.random() < 0.5
            self._ask(self.request(-2 if comes_back else -1))

    def commit(self) -> tuple[Answer, Task, int] | None:
        """Commits an offset of one of its tasks, which goes up with the time. Returns the answer to come, the task and
        the offset.
        """
        if self.epoch <= 0 or not self.owned.active:
            return None
        task = self.sim.chance.choice(sorted(self.owned.active))
        r, offset = m.OffsetCommitRequest, self.sim.now_ms
        request = r(group_id=APPLICATION, member_id=self.id, generation_id_or_member_epoch=self.epoch)
        request.group_instance_id = self.instance
        one = r.OffsetCommitRequestPartition(partition_index=task[1], committed_offset=offset)
        request.topics = [r.OffsetCommitRequestTopic(name=INPUTS[task[0]], partitions=[one])]
        return self.sim.world.send("OffsetCommit", 9, request), task, offset

    # answers

    def _take(self, reply: Any) -> None:
        code = reply.error_code
        if code in FENCED:
            self.epoch, self.owned, self.target, self.closed_at_ms = 0, NOTHING, NOTHING, 0
            self.endpoint_epoch = 0
        elif code == Errors.FENCED_INSTANCE_ID:
            self.is_over = True
        elif code in ENDED_BY_TOPICS:
            assert self.sim.topics_went, f"{self.id} was told {code}, and no topic went: {reply.error_message}"
            self.is_over = True
        elif code == 0:
            self.sim.heard(self, reply)
            self._go_on(reply)
        elif code == Errors.UNRELEASED_INSTANCE_ID:
            self.refused += 1
            self.is_over = self.refused > PATIENCE
        else:
            assert code in RETRIABLE, f"{self.id} was told {code} {reply.error_message}"
            self.missed = True  # what was decided may be written later

    def _go_on(self, reply: Any) -> None:
        if self.is_over or reply.member_epoch < 0:
            return
        self.epoch, self.reported = reply.member_epoch, self.asked
        self.endpoint_epoch = reply.endpoint_information_epoch
        self.statuses = {one.status_code for one in reply.status or ()}
        if reply.topology_description_required:
            self.sim.describe(self)
        if reply.active_tasks is not None:
            self.target = Owned(_flat(reply.active_tasks), _flat(reply.standby_tasks))
            self.missed = self.doubled
            chance = self.sim.chance
            slow = self.sim.trouble and self.owned.active - self.target.active and chance.random() < 0.3
            self.closed_at_ms = self.sim.now_ms + (chance.choice((500, 5000, 30_000)) if slow else 0)
        if Code.SHUTDOWN_APPLICATION in self.statuses:
            self.leave()


def _ids(tasks: frozenset[Task]) -> list[Any]:
    names = sorted({name for name, _ in tasks})
    return [
        R.TaskIds(subtopology_id=name, partitions=sorted(number for one, number in tasks if one == name))
        for name in names
    ]


def _flat(of: Any) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in of for number in one.partitions)
