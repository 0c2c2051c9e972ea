"""Share groups under trouble: members that are slow, lost or wrong, failed writes, held watermarks, reloads, crashes.

    python -m tests.sim share [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. Beside it stands `Queue`, a model of what a queue promises that knows nothing of
spans, batches or states; every reply is held against it. At the end the trouble stops, and everything must be delivered.
A failure prints its seed; `seed=N` repeats it.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import Any

from ottla.broker.context import Peer
from ottla.broker.hosting import Host
from ottla.broker.replication import parse_policy
from ottla.broker.share_coordinators import TOPIC_NAME
from ottla.broker.share_partition import Shared
from ottla.coordinator.share import batches as state_batches
from ottla.coordinator.share.inflight import InFlight
from ottla.coordinator.share.partition import SharePartition
from ottla.coordinator.share.shard import ShareShard
from ottla.coordinator.share.state import PartitionKey, PartitionState
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record

from .bugs import Bug
from .world import Answer, World, replayed, told_with

GROUP, TOPIC = "q", "t"
LIMIT = 4
LOCK_MS = 2000
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
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
_created: list[Any] = []  # files with the topic and the group, of which every history begins with a copy


Acks = list[tuple[int, int, int]]


@dataclass
class Queue:
    """What a queue promises. An offset whose last acknowledgement got no answer may or may not be done."""

    done: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)  # deliveries under the present leader
    most: dict[int, int] = field(default_factory=dict)  # the greatest count that anybody was told
    held: dict[int, tuple[str, int]] = field(default_factory=dict)  # by whom, and at least until when
    unheard: int = 0  # answers that may have brought records, and that nobody saw in time
    late: set[int] = field(default_factory=set)  # what came with answers that were too late to count
    heard_of: dict[int, int] = field(default_factory=dict)  # `unheard` at the offset's last delivery
    end: int = 0
    deleted: int = 0  # the log's start offset
    gone: int = 0  # what it was at most: a kill may bring records back, for groups that have not passed them
    leaders: int = 0

    def delivered(self, member: str, first: int, last: int, count: int, asked_ms: int, now_ms: int, slow: int) -> None:
        """`slow`: how many answers are awaited for so long that locks which came with them may be over."""
        for offset in range(first, last + 1):
            assert offset < self.end, f"{offset} was never produced"
            assert offset not in self.done, f"{offset} came back after its acknowledgement"
            holder, until = self.held.get(offset, ("", 0))
            assert holder == "" or until <= now_ms, f"{offset} came to {member} while {holder} holds it"
            assert 1 <= count <= LIMIT, f"{offset} is delivered for the {count}th time"
            if offset in self.counts:
                assert count > self.counts[offset], f"{offset} has count {count} after {self.counts[offset]}"
            assert count <= self.at_most(offset) + slow + 1, f"{offset} has count {count} after {self.most.get(offset)}"
            self.heard_of[offset] = self.unheard
            self.counts[offset] = count
            self.most[offset] = max(count, self.most.get(offset, 0))
            self.held[offset] = member, asked_ms + LOCK_MS
            self.unsure.discard(offset)

    def at_most(self, offset: int) -> int:
        """How often it can have been delivered, with the answers that nobody saw."""
        return self.most.get(offset, 0) + self.unheard - self.heard_of.get(offset, 0)

    def acknowledging(self, member: str, acks: Acks, now_ms: int) -> tuple[bool, set[int]]:
        """A member says something, and what it gives back may go to others before it is answered.

        Whether it must be refused, and which offsets it holds for sure: what it says of others may be too late, and is passed over then.
        """
        wrong, sure = False, set[int]()
        for first, last, kind in acks:
            for offset in range(max(first, self.deleted), last + 1):
                holder, until = self.held.get(offset, ("", 0))
                wrong = wrong or (holder not in ("", member) and until > now_ms)
                if holder == member and until > now_ms:
                    sure.add(offset)
                if kind != RENEW and holder == member:
                    del self.held[offset]
        return wrong, sure

    def acknowledged(self, member: str, first: int, last: int, kind: int, asked_ms: int, sure: set[int]) -> None:
        """It was answered without an error."""
        for offset in range(max(first, self.deleted), last + 1):
            if kind == RENEW and self.held.get(offset, ("", 0))[0] in ("", member):
                self.held[offset] = member, asked_ms + LOCK_MS
            elif kind not in (RELEASE, RENEW):
                (self.done if offset in sure else self.unsure).add(offset)

    def maybe_acknowledged(self, first: int, last: int) -> None:
        for offset in range(first, last + 1):
            if offset not in self.done:
                self.unsure.add(offset)

    def left(self, member: str) -> None:
        self.held = {offset: who for offset, who in self.held.items() if who[0] != member}

    def new_leader(self) -> None:
        self.leaders += 1
        self.counts.clear()
        self.held.clear()


class Member:
    """A consumer as the simulator plays it."""

    def __init__(self, sim: Sim, number: int) -> None:
        self.sim = sim
        self.id = f"m{number}"
        self.holds: Acks = []
        self.wrong = False  # what it said last must be refused
        self.sure: set[int] = set()  # what it held then
        self.begin()

    def begin(self) -> None:
        self.peer = Peer("PLAINTEXT", f"127.0.0.1:{self.sim.chance.randint(1, 60000)}")
        self.epoch = 0
        self.waiting: tuple[str, Answer, Acks, int] | None = None
        self.leader = 0  # of whom it was asked

    def lost(self, politely: bool) -> None:
        """The connection ends, or the session does."""
        sim = self.sim
        self.hear_out()
        sim.queue.unheard += self.waiting is not None
        if politely and self.epoch:
            self._send("ShareAcknowledge", -1, [])
        if self.waiting is not None and self.waiting[1].waiting is not None:
            self.waiting[1].waiting.cancel()
        sim.world.broker.event(self.peer.lost)
        sim.queue.left(self.id)
        self.holds = []
        self.begin()

    def hear_out(self) -> None:
        """Takes an answer that is there; of one that will not come it is not known what became."""
        if self.waiting is None:
            return
        name, answer, acks, asked_ms = self.waiting
        if answer.done:
            self.waiting = None
            self._take(name, answer.reply, acks, asked_ms)
            return
        for first, last, _ in acks:
            self.sim.queue.maybe_acknowledged(first, last)

    def is_slow(self) -> bool:
        return self.waiting is not None and self.sim.now_ms >= self.waiting[3] + LOCK_MS

    def step(self) -> None:
        if self.waiting is not None:
            if self.waiting[1].done:
                self.hear_out()
            return
        dice = self.sim.chance.random()
        acks = self._decide() if self.epoch else []
        if self.epoch and acks and dice < 0.5:
            self._ask("ShareAcknowledge", acks)
        elif dice < 0.9 or not self.sim.trouble:
            self._ask("ShareFetch", acks)

    def _decide(self) -> Acks:
        """What is said of some of the records it believes to hold, and sometimes of others."""
        chance, acks = self.sim.chance, []
        if not self.sim.trouble:
            acks, self.holds = [(first, last, ACCEPT) for first, last, _ in self.holds], []
            return acks
        for _ in range(chance.randint(0, 3)):
            if not self.holds:
                break
            first, last, _ = self.holds.pop(chance.randrange(len(self.holds)))
            kind = chance.choices((ACCEPT, RELEASE, REJECT, GAP, RENEW), (6, 4, 1, 1, 1))[0]
            if last > first and chance.random() < 0.4:
                cut = chance.randint(first, last - 1)
                self.holds.append((cut + 1, last, 0))
                last = cut
            if kind == RENEW:
                self.holds.append((first, last, 0))
            acks.append((first, last, kind))
        if chance.random() < 0.05 and self.sim.queue.end:
            offset = chance.randrange(self.sim.queue.end)
            acks.append((offset, offset, ACCEPT))
        acks.sort()
        return [one for n, one in enumerate(acks) if n == 0 or one[0] > acks[n - 1][1]]

    def _send(self, name: str, epoch: int, acks: Acks) -> Answer:
        request = (self._fetch if name == "ShareFetch" else self._acknowledge)(epoch, acks)
        return self.sim.world.send(name, 2, request, self.peer)

    def _acknowledge(self, epoch: int, acks: Acks) -> Any:
        r = m.ShareAcknowledgeRequest
        rows = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[kind]) for a, b, kind in acks]
        part = r.AcknowledgePartition(partition_index=0, acknowledgement_batches=rows)
        topics = [r.AcknowledgeTopic(topic_id=self.sim.topic_id, partitions=[part])]
        return r(group_id=GROUP, member_id=self.id, share_session_epoch=epoch, is_renew_ack=_renews(acks), topics=topics)

    def _fetch(self, epoch: int, acks: Acks) -> Any:
        r, chance = m.ShareFetchRequest, self.sim.chance
        rows = [r.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[kind]) for a, b, kind in acks]
        topics = [r.FetchTopic(topic_id=self.sim.topic_id, partitions=[r.FetchPartition(partition_index=0, acknowledgement_batches=rows)])]
        request = r(group_id=GROUP, member_id=self.id, share_session_epoch=epoch, is_renew_ack=_renews(acks), topics=topics)
        if not request.is_renew_ack:
            request.max_wait_ms, request.min_bytes = chance.choice((0, 50, 1000)), 1
            request.max_bytes, request.max_records = chance.choice((200, 1 << 20)), chance.choice((1, 3, 20))
            request.batch_size, request.share_acquire_mode = chance.choice((1, 4, 100)), chance.randint(0, 1)
        return request

    def _ask(self, name: str, acks: Acks) -> None:
        if name == "ShareAcknowledge" and not acks:
            return
        self.wrong, self.sure = self.sim.queue.acknowledging(self.id, acks, self.sim.now_ms)
        self.leader = self.sim.queue.leaders
        self.waiting = name, self._send(name, self.epoch, acks), acks, self.sim.now_ms

    def _take(self, name: str, reply: Any, acks: Acks, asked_ms: int) -> None:
        queue, now_ms = self.sim.queue, self.sim.now_ms
        if reply is None or reply.error_code:
            for first, last, _ in acks:
                queue.maybe_acknowledged(first, last)
            self.lost(politely=False)
            return
        self.epoch += 1
        parts = [p for t in reply.responses for p in t.partitions]
        codes = [p.acknowledge_error_code if name == "ShareFetch" else p.error_code for p in parts]
        for first, last, kind in acks:
            if codes and not any(codes):
                assert not self.wrong, f"{self.id} acknowledged what others hold: {acks}"
                if kind != RENEW or self.leader == queue.leaders:
                    queue.acknowledged(self.id, first, last, kind, asked_ms, self.sure)
            else:
                queue.maybe_acknowledged(first, last)
        if now_ms >= asked_ms + LOCK_MS or self.leader != queue.leaders:
            queue.unheard += 1
            late = [range(one.first_offset, one.last_offset + 1) for part in parts for one in getattr(part, "acquired_records", ())]
            queue.late.update(offset for found in late for offset in found)
        elif name == "ShareFetch":
            slow = sum(one.is_slow() for one in self.sim.members)
            for part in parts:
                for one in part.acquired_records:
                    queue.delivered(self.id, one.first_offset, one.last_offset, one.delivery_count, asked_ms, now_ms, slow)
                    self.holds.append((one.first_offset, one.last_offset, 0))


def _renews(acks: Acks) -> bool:
    return any(kind == RENEW for _, _, kind in acks)


class Sim:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(copy.deepcopy(_files()), seed, **SETTINGS)
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
    def host(self) -> Host[ShareShard]:
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
            self.host.partition.isr_size = 0
            self.failing_until_ms = self.now_ms + self.chance.randint(1, 6000)
        elif dice < 0.52:
            self.world.broker.event(lambda: self.world.broker.share_states.reload(self.host.partition))
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
            self.host.partition.isr_size, self.failing_until_ms = 1, 0

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
        self.world.broker.event(self.world.broker.partitions.configure)

    def reload_leader(self) -> None:
        """As when the partition's leader moves away and back."""
        for one in self.members:
            one.hear_out()
        partition = self.world.broker.partition(TOPIC, 0)
        self.world.broker.event(lambda: self.world.broker.sharing.reload(partition))
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
        self.queue.deleted = self.world.broker.partition(TOPIC, 0).open_log().start_offset  # its checkpoint may be older

    def delete_records(self) -> None:
        offset = self.chance.randint(0, self.world.broker.partition(TOPIC, 0).high_watermark)
        r = m.DeleteRecordsRequest
        parts = [r.DeleteRecordsPartition(partition_index=0, offset=offset)]
        self.world.send("DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name=TOPIC, partitions=parts)]))
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
        shared = self.world.broker.sharing.partitions.get(self.key)
        if shared is not None and shared.engine.state.value == "active":
            check_engine(shared.engine, self.queue, state)
        assert self.host.runtime.bugs == 0, "a handler failed"
        assert self.world.broker.metrics.bugs == 0, "an API failed"

    def settle(self) -> None:
        """The trouble stops: within minutes everything has been delivered, and is accepted or was delivered often enough."""
        self.trouble = False
        for topic in list(self.held_until_ms):
            self.release(topic)
        self.host.partition.isr_size = 1
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
            assert offset in queue.most or offset in queue.late or queue.at_most(offset) >= LIMIT, f"{offset} was never delivered"
        check_replay(self.host)

    def is_over(self, offset: int) -> bool:
        queue = self.queue
        return offset in queue.done or offset in queue.unsure or offset < queue.gone or queue.at_most(offset) >= LIMIT

    def lag(self) -> int:
        """What is left; what has gone from the log is not, which the share coordinator hears with the next write."""
        high_watermark = self.world.broker.partition(TOPIC, 0).high_watermark
        shared = self.world.broker.sharing.partitions.get(self.key)
        state = shared.engine if shared is not None else self.host.shard.states.get(self.key)
        return high_watermark - (state.start_offset + state.complete_count if state is not None else 0)


def check_engine(engine: SharePartition, queue: Queue, state: PartitionState | None) -> None:
    """The engine's counts are those of its records, its spans are apart, all that was promised to be done lies behind it or is marked,
    and the share coordinator knows of every acknowledgement that counts."""
    written = [batch for batch in state.batches if batch.state == state_batches.ACKNOWLEDGED] if state is not None else []
    previous = -1
    complete = 0
    for span in engine.spans:
        assert span.first > previous, "spans overlap"
        previous = span.last
        for offset in range(span.first, span.last + 1):
            record = span.at(offset)
            terminal = state_batches.is_terminal(record.state)
            complete += terminal and offset >= engine.start_offset
            if offset in queue.done and not record.in_transition:
                assert terminal or offset < queue.deleted, f"{offset} is done, and {record.state.name}"
            assert record.state is not state_batches.ACQUIRED or record.member_id, f"{offset} is held by nobody"
            if record.state is state_batches.ACKNOWLEDGED and record.is_settled and state is not None and offset >= max(state.start_offset, 0):
                assert any(batch.first <= offset <= batch.last for batch in written), f"{offset} is acknowledged, and that is not written"
    assert complete == engine.complete_count, f"{engine.complete_count} records are said to be complete, {complete} are"


def _files() -> Any:
    if not _created:
        world = World(None, 0, **SETTINGS)
        r = m.CreateTopicsRequest
        world.ask("CreateTopics", 5, r(topics=[r.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)], timeout_ms=1000))
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
        c = m.IncrementalAlterConfigsRequest
        configs = [c.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")]
        world.ask("IncrementalAlterConfigs", 1, c(resources=[c.AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=configs)]))
        h = m.ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m0", member_epoch=0, subscribed_topic_names=[TOPIC])
        world.ask("ShareGroupHeartbeat", 1, h)
        world.pass_ms(1000)
        world.broker.stop()
        _created.append(world.files)
    return _created[0]


def check_replay(host: Host[ShareShard]) -> None:
    """What lives in memory is what the log would give."""
    fresh = replayed(ShareShard(Timeline(), Timers(), host.shard.env), host)
    for name in ("states", "leader_epochs", "state_epochs"):
        mine, theirs = dict(getattr(host.shard, name).items()), dict(getattr(fresh, name).items())
        assert mine == theirs, f"{name}: {mine} lives, the log has {theirs}"


def run(seed: int, steps: int = 60) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)


# Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code with each of them.
BUGS: tuple[Bug, ...] = (
    (InFlight, "acquire", "self.delivery_count += 1", "self.delivery_count += 0"),
    (InFlight, "complete", "if not commit and not self.archived:", "if not commit and self.archived:"),
    (InFlight, "is_held_by", "and self.member_id == member_id", "and member_id"),
    (SharePartition, "_expire", "record.leave(self._released_state(last), step.max_count, step.has_dlq)", "record.member_id = ''"),
    (SharePartition, "lock", "deadline = now_ms + self.limits.lock_duration_ms", "deadline = now_ms + 1"),
    (SharePartition, "_last_settled", "if not span.whole.is_settled:", "if not span.whole.state:"),
    (SharePartition, "counted", "max(self.start_offset, first)", "first"),
    (ShareShard, "_written", "start = max(start, state.start_offset)", "start = start"),
    (ShareShard, "_replay_update", "before.updated(value) if before is not None else", "before is not None and"),
    (
        state_batches,
        "_sweep",
        "heappush(open_, (-one.delivery_count, -one.state, one.last))",
        "heappush(open_, (-one.delivery_count, one.state, one.last))",
    ),
    (Shared, "_write", "later.settle(None, error)", "later.finish(None)"),
)
