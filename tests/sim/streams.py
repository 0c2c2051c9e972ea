"""A Kafka Streams application under trouble: threads of three processes that are slow, lost or doubled, topics that go
and come, other configurations, crashes, held watermarks, failed appends, reloads.

    python -m tests.sim streams [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. After every step the coordinator's state is held against
`streams_invariants`, and every reply against what is committed; at the end the trouble stops, and each task must run
once, with as many copies as there are processes for. A failure prints its seed; `seed=N` repeats it.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.broker.shards.host import ShardHost
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.group.streams.group import StreamsGroup
from ottla.coordinator.group.streams.member import StreamsMember
from ottla.protocol import messages as m

from ..support.failing_appends import fail_appends
from ..support.world import Answer, World, told_with
from .streams_descriptions import PLUGIN, Descriptions
from .streams_invariants import Epochs, check_endpoints, check_group, check_replay, check_reply
from .streams_threads import APPLICATION, INPUTS, INTERNAL, PROCESSES, SOURCES, STATEFUL, Owned, Task, Thread

THREADS = 6
PATIENCE = 20  # seconds
ROUND_MS = 660_000  # in which a group without members and offsets loses its description, and expires
REST_MS = 90_000  # after an application was told to stop: no thread comes until all members are gone
FIXED = {"offsets_topic_num_partitions": "1", "group_streams_topology_description_plugin_class": PLUGIN}
_created: list[Any] = []  # files with the topics, of which every history begins with a copy


class Sim:
    """One history, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.settings = {
            **FIXED,
            "group_streams_initial_rebalance_delay_ms": self.chance.choice(("0", "0", "3000")),
            "group_streams_assignment_interval_ms": self.chance.choice(("0", "0", "2000")),
            "group_streams_num_standby_replicas": self.chance.choice(("0", "1", "1", "2")),
        }
        self.world = self._world(copy.deepcopy(_files()))
        self.trouble = True
        self.topics_went = False
        self.standbys = int(self.settings["group_streams_num_standby_replicas"])
        self.threads: list[Thread] = []
        self.count = 0
        self.rests_until_ms = self.held_until_ms = self.failing_until_ms = 0
        self.replies: list[tuple[Thread, Any]] = []  # that no check has seen
        self.unheard: dict[str, StreamsMember] = {}  # whose threads have other tasks
        self.epochs = Epochs()
        self.descriptions = Descriptions(self)
        self.commits: list[tuple[Answer, Task, int]] = []
        self.acknowledged: dict[Task, int] = {}

    def _world(self, files: Any, start_ms: int = 1_700_000_000_000) -> World:
        world = World(files, self.chance.randrange(1 << 30), start_ms, **self.settings)
        world.pass_ms(100)
        return world

    @property
    def now_ms(self) -> int:
        return self.world.schedule.now_ms()

    @property
    def host(self) -> ShardHost[GroupShard]:
        return self.world.broker.groups.hosts[0]

    @property
    def group(self) -> StreamsGroup | None:
        found = self.host.shard.groups.get(APPLICATION)
        assert found is None or isinstance(found, StreamsGroup)
        return found

    def heard(self, thread: Thread, reply: Any) -> None:
        self.replies.append((thread, reply))

    def describe(self, thread: Thread) -> None:
        if not self.trouble or self.chance.random() < 0.8:
            self.descriptions.push(thread.id)

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.act()
            self.go_on(self.chance.choice((1, 20, 200, 1500)))
        self.settle()

    def go_on(self, ms: int) -> None:
        self.world.pass_ms(ms)
        for one in list(self.threads):
            one.step()
            if one.is_over and one.waiting is None:
                self.threads.remove(one)
        if any(one.is_over for one in self.threads if 4 in one.statuses):
            self.rests_until_ms = self.now_ms + REST_MS
        self.check()

    def act(self) -> None:
        dice = self.chance.random()
        if dice < 0.16:
            self.begin_thread()
        elif dice < 0.20 and self.threads:
            self.chance.choice(self.threads).leave()
        elif dice < 0.22 and self.threads:
            self.threads.remove(self.chance.choice(self.threads))
        elif dice < 0.32 and self.threads:
            self.commits += [found for found in [self.chance.choice(self.threads).commit()] if found is not None]
        else:
            self.disturb(dice)
        if self.held_until_ms and self.now_ms >= self.held_until_ms:
            self._policy("immediate")
        if self.failing_until_ms and self.now_ms >= self.failing_until_ms:
            self.appends_succeed()

    def disturb(self, dice: float) -> None:
        if dice < 0.34:
            self._policy("held")
            self.held_until_ms = self.now_ms + self.chance.randint(100, 9000)
        elif dice < 0.36:
            fail_appends(self.world, self.host.partition)
            self.failing_until_ms = self.now_ms + self.chance.randint(1, 1000)
        elif dice < 0.38:
            self.world.broker.turn.event(lambda: self.world.broker.groups.reload(self.host.partition))
        elif dice < 0.39:
            self.restart()
        elif dice < 0.40:
            self.world.pass_ms(self.chance.randint(10_000, 50_000))
        elif dice < 0.43:
            self.delete_topic(self.chance.choice([*SOURCES, *INTERNAL]))
        elif dice < 0.47:
            self.create_sources()
        elif dice < 0.48:
            self.add_partition()
        elif dice < 0.50:
            self.set_standbys(self.chance.choice((0, 1, 2)))
        elif dice < 0.52 and self.threads:
            self.descriptions.push(self.chance.choice(self.threads).id)
        elif dice < 0.54:
            self.descriptions.delete_group()
        elif dice < 0.55:
            self.stop_all()

    def begin_thread(self) -> None:
        if len(self.threads) < THREADS and self.now_ms >= self.rests_until_ms:
            self.count += 1
            self.threads.append(Thread(self, self.count, self.chance.choice(PROCESSES)))

    def stop_all(self) -> None:
        """All threads leave or are lost; the group is deleted or expires, or is there when others come."""
        for one in self.threads if self.chance.random() < 0.7 else ():
            one.leave()
        self.threads.clear()
        if self.chance.random() < 0.7:
            self.world.pass_ms(self.chance.choice((0, 1000)))
            self.descriptions.delete_group()
        else:
            self.world.pass_ms(ROUND_MS)
            if self.group is None:
                self.forget_group()

    def forget_group(self) -> None:
        """The group was deleted or expired, with what it had committed."""
        self.epochs = Epochs()
        self.commits.clear()
        self.acknowledged.clear()

    def appends_succeed(self) -> None:
        fail_appends(self.world)
        self.failing_until_ms = 0

    def _policy(self, text: str) -> None:
        self.held_until_ms = 0
        self.world.broker.policies.set(TOPIC_NAME, None, parse_policy(text))
        self.world.broker.turn.event(self.world.broker.replicas.configure)

    def restart(self) -> None:
        """The process is killed; what it wrote is there."""
        for one in self.threads:
            one.missed |= one.waiting is not None
            one.waiting = None
        self.commits.clear()
        self.descriptions.forget()
        self.held_until_ms = self.failing_until_ms = 0
        self.world = self._world(self.world.files, self.now_ms)
        self.world.pass_ms(200)

    # topics and configurations

    def partitions(self, topic: str) -> int | None:
        image = self.world.broker.groups.image
        topic_id = image.topic_id(topic)
        return None if topic_id is None else image.partition_count(topic_id)

    def delete_topic(self, name: str) -> None:
        self.topics_went = True
        r = m.DeleteTopicsRequest
        self.world.send("DeleteTopics", 6, r(topics=[r.DeleteTopicState(name=name)], timeout_ms=1000))

    def create_sources(self) -> None:
        r = m.CreateTopicsRequest
        absent = [name for name in SOURCES if self.partitions(name) is None]
        topics = [r.CreatableTopic(name=name, num_partitions=SOURCES[name], replication_factor=1) for name in absent]
        if topics:
            self.world.send("CreateTopics", 5, r(topics=topics, timeout_ms=1000))

    def add_partition(self) -> None:
        """Only to the topic on which no internal topic depends."""
        count = self.partitions("b")
        if count is not None and count < 4:
            r = m.CreatePartitionsRequest
            topic = r.CreatePartitionsTopic(name="b", count=count + 1, assignments=None)
            self.world.send("CreatePartitions", 3, r(topics=[topic], timeout_ms=1000))

    def set_standbys(self, count: int) -> None:
        self.standbys = count
        r = m.IncrementalAlterConfigsRequest
        config = r.AlterableConfig(name="streams.num.standby.replicas", config_operation=0, value=str(count))
        resource = r.AlterConfigsResource(resource_type=32, resource_name=APPLICATION, configs=[config])
        self.world.send("IncrementalAlterConfigs", 1, r(resources=[resource]))

    # what must hold

    def check(self) -> None:
        replies, self.replies = self.replies, []
        self.descriptions.hear()
        runtime, group = self.host.runtime, self.group
        if runtime.state.value == "active":
            for thread, reply in replies:
                check_reply(reply, thread.instance, group, runtime.committed_offset)
                check_endpoints(reply)
        if group is not None:
            check_group(group)
            if runtime.last_written_offset == runtime.committed_offset:
                self.epochs.check(group)
        if runtime.state.value == "active":
            self.check_threads(group)
            self.check_commits()
            self.descriptions.check()
            if self.chance.random() < 0.05 and runtime.describe(0)["uncommitted_records"] == 0:
                check_replay(self.host)
        assert runtime.bugs.count == 0, "a handler failed"
        assert self.world.broker.metrics.bugs == 0, "an API failed"

    def check_threads(self, group: StreamsGroup | None) -> None:
        """What runs in a thread that is not fenced belongs to that thread; so no task runs twice."""
        runs: dict[Task, str] = {}
        for one in self.threads:
            member = group.members.get(one.id) if group is not None else None
            if member is None or one.epoch not in (member.epoch, member.previous_epoch) or one.epoch == 0:
                continue
            held = member.assigned.active.keys() | member.revoking.active.keys()
            assert one.owned.active <= held, f"{one.id} runs {sorted(one.owned.active - held)}, which it has not"
            for task in one.owned.active:
                other = runs.setdefault(task, one.id)
                assert other == one.id, f"{other} and {one.id} run {task}"

    def check_commits(self) -> None:
        """An acknowledged commit is committed: a reader sees it, or a later one."""
        waiting = []
        for answer, task, offset in self.commits:
            if not answer.done:
                waiting.append((answer, task, offset))
            elif answer.reply is not None and answer.reply.topics[0].partitions[0].error_code == 0:
                self.acknowledged[task] = max(self.acknowledged.get(task, 0), offset)
        self.commits = waiting
        runtime = self.host.runtime
        for (name, number), offset in self.acknowledged.items():
            if self.topics_went or self.descriptions.deletion is not None:
                return  # the offsets go with their topic, and with the group
            found = self.host.shard.offsets.of(APPLICATION).get((INPUTS[name], number), runtime.committed_offset)
            assert found is not None, f"the commit {offset} of {name}_{number} is not committed"
            assert found[1] >= offset, f"the commit {offset} of {name}_{number} is not committed, {found[1]} is"

    def settle(self) -> None:
        """The trouble stops: within ten minutes every task runs, and is copied."""
        self.trouble = False
        self._policy("immediate")
        self.appends_succeed()
        for number in range(600):
            self.create_sources()
            if len(self.threads) < 3:
                self.begin_thread()
            if number % PATIENCE == PATIENCE - 1:
                self.restart_idle_threads()
            self.go_on(1000)
            if self._is_settled():
                break
        else:
            raise AssertionError(f"does not settle: {self._situation()}")
        self.descriptions.settle()
        check_replay(self.host)

    def restart_idle_threads(self) -> None:
        """As in Kafka, a reply that is lost takes with it the tasks that it gives: the thread does not hear of them
        until its assignment changes. Someone who sees that restarts the thread.
        """
        group, before = self.group, self.unheard
        self.unheard = {}
        for one in self.threads:
            member = group.members.get(one.id) if group is not None else None
            if member is None or one.target == _held(member):
                continue
            self.unheard[one.id] = member
            if before.get(one.id) == member:
                assert one.missed, f"{one.id} was not told of its tasks"
                one.leave()

    def _is_settled(self) -> bool:
        group, threads = self.group, self.threads
        if group is None or group.state_name() != "Stable" or {one.id for one in threads} != set(group.members):
            return False
        if any(one.statuses or one.owned != _held(group.members[one.id]) for one in threads):
            return False
        counts = {name: self.partitions(topic) or 0 for name, topic in INPUTS.items()}
        every = sorted((name, number) for name, count in counts.items() for number in range(count))
        runs = sorted(task for one in threads for task in one.owned.active)
        copies = sorted(task for one in threads for task in one.owned.standby)
        each = min(self.standbys, len({one.process for one in threads}) - 1)
        wanted = [task for task in every if task[0] == STATEFUL for _ in range(each)]
        return runs == every and copies == wanted

    def _situation(self) -> str:
        group = self.group
        state = "no group" if group is None else f"{group.state_name()} {group.epochs()} {sorted(group.members)}"
        return f"{state}; threads {[(o.id, o.process, o.epoch, sorted(o.statuses), o.owned) for o in self.threads]}"


def _held(member: StreamsMember) -> Owned:
    return Owned(frozenset(member.assigned.active), member.assigned.standby)


def _files() -> Any:
    if not _created:
        world = World(None, 0, **FIXED)
        r = m.CreateTopicsRequest
        topics = [r.CreatableTopic(name=n, num_partitions=c, replication_factor=1) for n, c in SOURCES.items()]
        world.ask("CreateTopics", 5, r(topics=topics, timeout_ms=1000))
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[APPLICATION]))
        world.broker.stop()
        _created.append(world.files)
    return _created[0]


def run(seed: int, steps: int = 60) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)
