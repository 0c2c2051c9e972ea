"""Share groups under trouble: members that are slow, lost or wrong, failed writes, held watermarks, reloads, crashes.

    python -m tests.sim share [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. Beside it stands `Queue`, a model of what a queue promises
that knows nothing of spans, batches or states; every reply is held against it. At the end the trouble stops, and
everything must be delivered. A failure prints its seed; `seed=N` repeats it.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from ottla.broker.shards.host import ShardHost
from ottla.broker.share.coordinators import TOPIC_NAME
from ottla.broker.share.share_partition_leader import SharePartitionLeader
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.share import batches as state_batches
from ottla.coordinator.share.inflight import InFlight, Span
from ottla.coordinator.share.partition import SharePartition
from ottla.coordinator.share.shard import ShareShard
from ottla.coordinator.share.state import PartitionKey, PartitionState
from ottla.coordinator.share.window import Window
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from ..support.bugs import Bug
from ..support.failing_appends import fail_appends
from ..support.world import World, replayed, told_with
from .queue import (
    GROUP,
    LIMIT,
    LOCK_MS,
    TOPIC,
    Member,
    Queue,
)

SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_snapshot_update_records_per_snapshot": "4",
    "share_coordinator_state_topic_prune_interval_ms": "7000",
    "share_coordinator_cold_partition_snapshot_interval_ms": "9000",
    "group_share_min_record_lock_duration_ms": "1000",
    "group_share_record_lock_duration_ms": str(LOCK_MS),
    "group_share_delivery_count_limit": str(LIMIT),
    "group_share_partition_max_record_locks": "100",
}


_created: list[Any] = []  # files with the topic and the group


class Sim:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(copy.deepcopy(files()), seed, **SETTINGS)
        self.world.pass_ms(100)
        topic = self.world.broker.topic(TOPIC)
        assert topic is not None
        self.topic_id = topic.id
        self.key = PartitionKey(GROUP, topic.id, 0)
        self.queue = Queue()
        self.trouble = True
        self.starts: dict[int, int] = {}
        self.held_until_ms: dict[str, int] = {}
        self.failing_until_ms = 0
        self.members = [Member(self, number) for number in range(3)]

    @property
    def now_ms(self) -> int:
        return self.world.schedule.monotonic_ms()

    @property
    def host(self) -> ShardHost[ShareShard]:
        return self.world.broker.share_states.hosts[0]

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.act()
            self.world.pass_ms(self.chance.choice((0, 1, 20, 200, 1500)))
            self.go_on()
        self.settle()

    def go_on(self) -> None:
        for one in self.members:
            one.step()
        self.check()

    def act(self) -> None:
        dice = self.chance.random()
        if dice < 0.35:
            self.produce(self.chance.randint(1, 6))
        elif dice < 0.39:
            self.chance.choice(self.members).lost(politely=False)
        elif dice < 0.42:
            self.chance.choice(self.members).lost(politely=True)
        elif dice < 0.45:
            self.hold(self.chance.choice((TOPIC, TOPIC_NAME)), self.chance.randint(100, 20_000))
        elif dice < 0.49:
            fail_appends(self.world, self.host.partition)
            self.failing_until_ms = self.now_ms + self.chance.randint(1, 6000)
        elif dice < 0.52:
            self.world.broker.turn.event(lambda: self.world.broker.share_states.reload(self.host.partition))
        elif dice < 0.55:
            self.reload_leader()
        elif dice < 0.57:
            self.restart()
        elif dice < 0.58 and self.queue.end:
            self.delete_records()
        for topic, until in list(self.held_until_ms.items()):
            if self.now_ms >= until:
                self.release(topic)
        if self.failing_until_ms and self.now_ms >= self.failing_until_ms:
            fail_appends(self.world)
            self.failing_until_ms = 0

    def produce(self, count: int) -> None:
        rows = [Record(value=b"v", timestamp=self.world.schedule.now_ms()) for _ in range(count)]
        r = m.ProduceRequest
        part = r.PartitionProduceData(index=0, records=bytes(records.encode(rows)))
        topic = r.TopicProduceData(topic_id=self.topic_id, partition_data=[part])
        self.world.send("Produce", 13, r(acks=1, timeout_ms=1000, topic_data=[topic]))
        self.queue.end += count

    def hold(self, topic: str, ms: int) -> None:
        self._policy(topic, "held")
        self.held_until_ms[topic] = self.now_ms + ms

    def release(self, topic: str) -> None:
        self._policy(topic, "immediate")
        self.held_until_ms.pop(topic, None)

    def _policy(self, topic: str, text: str) -> None:
        self.world.broker.policies.set(topic, None, parse_policy(text))
        self.world.broker.turn.event(self.world.broker.replicas.configure)

    def reload_leader(self) -> None:
        """As when the partition's leader moves away and back."""
        for one in self.members:
            one.hear_out()
        partition = self.world.broker.partitions.get(TOPIC, 0)
        self.world.broker.turn.event(lambda: self.world.broker.share_partitions.reload(partition))
        self.queue.new_leader()

    def restart(self) -> None:
        """The process is killed; what it wrote is there."""
        for one in self.members:
            one.hear_out()
            self.queue.unheard += one.waiting is not None
            one.holds = []
            one.begin()
        for topic in list(self.held_until_ms):
            self.release(topic)
        self.queue.new_leader()
        self.world = World(self.world.files, self.chance.randrange(1 << 30), **SETTINGS)
        self.failing_until_ms = 0
        self.world.pass_ms(200)
        self.queue.deleted = (
            self.world.broker.partitions.get(TOPIC, 0).open_log().start_offset
        )  # its checkpoint may be older

    def delete_records(self) -> None:
        offset = self.chance.randint(0, self.world.broker.partitions.get(TOPIC, 0).high_watermark)
        r = m.DeleteRecordsRequest
        parts = [r.DeleteRecordsPartition(partition_index=0, offset=offset)]
        self.world.send(
            "DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name=TOPIC, partitions=parts)])
        )
        self.queue.deleted = max(self.queue.deleted, offset)
        self.queue.gone = max(self.queue.gone, offset)

    # what must hold

    def check(self) -> None:
        state = self.host.shard.states.get(self.key)
        if state is not None and self.host.runtime.describe(0)["uncommitted_records"] == 0:
            before = self.starts.get(state.state_epoch, -1)
            assert state.start_offset >= before, f"the start offset went back from {before} to {state.start_offset}"
            self.starts[state.state_epoch] = state.start_offset
            if self.chance.random() < 0.05:
                check_replay(self.host)
        shared = self.world.broker.share_partitions.partitions.get(self.key)
        if shared is not None and shared.engine.state.value == "active":
            check_engine(shared.engine, self.queue, state)
        assert self.host.runtime.bugs.count == 0, "a handler failed"
        assert self.world.broker.metrics.bugs == 0, "an API failed"

    def settle(self) -> None:
        """The trouble stops: within minutes everything has been delivered, and is accepted or was delivered often
        enough.
        """
        self.trouble = False
        for topic in list(self.held_until_ms):
            self.release(topic)
        fail_appends(self.world)
        for _ in range(600):
            self.world.pass_ms(500)
            self.go_on()
            if all(self.is_over(offset) for offset in range(self.queue.end)) and self.lag() == 0:
                break
        else:
            left = [offset for offset in range(self.queue.end) if not self.is_over(offset)]
            raise AssertionError(f"does not settle: {left[:10]} of {self.queue.end}, lag {self.lag()}")
        queue = self.queue
        for offset in range(queue.gone, queue.end):
            assert offset in queue.most or offset in queue.late or queue.at_most(offset) >= LIMIT, (
                f"{offset} was never delivered"
            )
        check_replay(self.host)

    def is_over(self, offset: int) -> bool:
        queue = self.queue
        return offset in queue.done or offset in queue.unsure or offset < queue.gone or queue.at_most(offset) >= LIMIT

    def lag(self) -> int:
        """What is left; what has gone from the log is not, which the share coordinator hears with the next write."""
        high_watermark = self.world.broker.partitions.get(TOPIC, 0).high_watermark
        shared = self.world.broker.share_partitions.partitions.get(self.key)
        state = shared.engine.window if shared is not None else self.host.shard.states.get(self.key)
        return high_watermark - (state.start_offset + state.complete_count if state is not None else 0)


def check_engine(engine: SharePartition, queue: Queue, state: PartitionState | None) -> None:
    """The engine's counts are those of its records, its spans are apart, every record that was promised to be done lies
    before its start or is marked, and the share coordinator knows of every acknowledgement that counts.
    """
    written = (
        [batch for batch in state.batches if batch.state == state_batches.ACKNOWLEDGED] if state is not None else []
    )
    previous = -1
    complete = 0
    for span in engine.window.spans:
        assert span.first > previous, "spans overlap"
        previous = span.last
        for offset in range(span.first, span.last + 1):
            record = span.at(offset)
            terminal = state_batches.is_terminal(record.state)
            complete += terminal and offset >= engine.window.start_offset
            if offset in queue.done and not record.in_transition:
                assert terminal or offset < queue.deleted, f"{offset} is done, and {record.state.name}"
            assert record.state is not state_batches.ACQUIRED or record.member_id, f"{offset} is held by no member"
            if (
                record.state is state_batches.ACKNOWLEDGED
                and record.is_settled
                and state is not None
                and offset >= max(state.start_offset, 0)
            ):
                assert any(batch.first <= offset <= batch.last for batch in written), (
                    f"{offset} is acknowledged, and that is not written"
                )
    assert complete == engine.window.complete_count, (
        f"{engine.window.complete_count} records are said to be complete, {complete} are"
    )


def files() -> Any:
    """What every history begins with a copy of. It is made once."""
    if not _created:
        world = World(None, 0, **SETTINGS)
        r = m.CreateTopicsRequest
        world.ask(
            "CreateTopics",
            5,
            r(topics=[r.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)], timeout_ms=1000),
        )
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
        c = m.IncrementalAlterConfigsRequest
        configs = [c.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")]
        world.ask(
            "IncrementalAlterConfigs",
            1,
            c(resources=[c.AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=configs)]),
        )
        h = m.ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m0", member_epoch=0, subscribed_topic_names=[TOPIC])
        world.ask("ShareGroupHeartbeat", 1, h)
        world.pass_ms(1000)
        world.broker.stop()
        _created.append(world.files)
    return _created[0]


def check_replay(host: ShardHost[ShareShard]) -> None:
    """What lives in memory is what the log would give."""
    fresh = replayed(ShareShard(Timeline(), Timers(), host.shard.env), host)
    for name in ("states", "leader_epochs", "state_epochs"):
        mine, theirs = dict(getattr(host.shard, name).items()), dict(getattr(fresh, name).items())
        assert mine == theirs, f"{name}: {mine} lives, the log has {theirs}"


def run(seed: int, steps: int = 60) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)


# Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
# with each of them.
BUGS: tuple[Bug, ...] = (
    (InFlight, "acquire", "self.delivery_count += 1", "self.delivery_count += 0"),
    (InFlight, "take_back", "if not self.archived:", "if self.archived:"),
    (Span, "begin_held", "or record.member_id != member_id", "or not member_id"),
    (
        SharePartition,
        "_expire",
        "record.leave(self._released_state(last), step.max_count, step.has_dlq)",
        "record.member_id = ''",
    ),
    (Window, "lock", "deadline = now_ms + self.limits.lock_duration_ms", "deadline = now_ms + 1"),
    (Window, "_last_settled", "if not span.whole.is_settled:", "if not span.whole.state:"),
    (Window, "counted", "max(self.start_offset, first)", "first"),
    (ShareShard, "_written", "start = max(start, state.start_offset)", "start = start"),
    (ShareShard, "_replay_update", "before.updated(value) if before is not None else", "before is not None and"),
    (
        state_batches,
        "_sweep",
        "heappush(open_, (-one.delivery_count, -one.state, one.last))",
        "heappush(open_, (-one.delivery_count, one.state, one.last))",
    ),
    (SharePartitionLeader, "_written", "later.settle(None, error)", "later.finish(None)"),
)
