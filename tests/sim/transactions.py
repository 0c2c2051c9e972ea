"""Transactions under trouble: fenced zombies, lost, doubled and late requests, power failures, held watermarks, failed
appends, reloads.

    python -m tests.sim transactions [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory. Clients of both versions of transactions write records and
offsets; a reader of committed records follows every partition as a real one does. Whatever it sees must be of a
transaction whose commit was asked for; at the end the trouble stops, every partition's last stable offset must come to
its end, and of each transaction everything or nothing is there.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from ottla.broker.replica.partition import Partition
from ottla.broker.shards.host import ShardHost
from ottla.broker.transaction import markers
from ottla.broker.transaction.completion import Completion
from ottla.broker.transaction.coordinators import TOPIC_NAME, TransactionCoordinators
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.group.offsets.store import Offsets
from ottla.coordinator.shard import Result
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers
from ottla.coordinator.transaction.shard import TransactionShard
from ottla.coordinator.transaction.state import EXHAUSTED_FROM, State, Transaction, unborn
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.storage import aborted
from ottla.storage.producers import Producers

from ..support.ask import fetch_message
from ..support.bugs import Bug
from ..support.failing_appends import fail_appends
from ..support.world import Answer, World, replayed, told_with
from .producers import (
    NAMES,
    TIMEOUT_MS,
    Client,
    Reader,
    Txn,
)

PARTITIONS = 3


SETTINGS = {
    "transaction_state_log_num_partitions": "2",
    "offsets_topic_num_partitions": "1",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "1000",
    "log_flush_interval_messages": "1",
}


_created: list[Any] = []  # a world with its topics, of which every history begins with a copy


class Sim:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.trouble = True
        self.world = _world()
        self.clients: list[Client] = []
        self.txns: dict[int, Txn] = {}
        self.readers = [Reader(p) for p in range(PARTITIONS)]
        self.held_until: dict[str, int] = {}
        self.failing: dict[Partition, int] = {}
        self.raising = self.chance.random() < 0.8  # else no producer speaks version 2 of transactions
        if not self.raising:
            self._lower()
        if self.chance.random() < 0.3:
            self._wear_out(self.chance.choice(NAMES))

    @property
    def now_ms(self) -> int:
        return self.world.schedule.monotonic_ms()

    def begin(self, name: str) -> Txn:
        number = len(self.txns) + 1
        made = self.txns[number] = Txn(number, name)
        return made

    def _lower(self) -> None:
        u = m.UpdateFeaturesRequest
        update = u.FeatureUpdateKey(
            feature="transaction.version", max_version_level=self.chance.choice((0, 1)), upgrade_type=3
        )
        assert self.world.ask("UpdateFeatures", 1, u(feature_updates=[update])).error_code == 0

    def _wear_out(self, name: str) -> None:
        """A transactional id whose producer has next to no epochs left."""
        broker = self.world.broker
        worn = unborn(10**6, TIMEOUT_MS, broker.schedule.now_ms())._replace(
            epoch=EXHAUSTED_FROM - self.chance.randint(0, 4)
        )
        host = broker.transactions.host(name)
        broker.turn.event(lambda: host.write_later("test", lambda: Result([(name, worn)])))
        self.world.pass_ms(50)

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.act()
            self.world.pass_ms(self.chance.choice((1, 5, 50, 400)))
            self.clients = [one for one in self.clients if one.step()]
            self.check()
        self.settle()

    def act(self) -> None:
        dice = self.chance.random()
        if dice < 0.15 and len(self.clients) < 4:
            self.clients.append(Client(self, self.chance.choice(NAMES), self.raising and self.chance.random() < 0.6))
        elif dice < 0.17 and self.clients:
            self._drop(self.chance.choice(self.clients))
        elif dice < 0.21:
            self._hold(self.chance.choice(("t", TOPIC_NAME, "__consumer_offsets")))
        elif dice < 0.24:
            partition = self.chance.choice(list(self.world.broker.partitions.by_name.values()))
            self.failing[partition] = self.now_ms + self.chance.randint(1, 1500)
            self._let_appends_fail()
        elif dice < 0.26:
            self._reload()
        elif dice < 0.275:
            self.world.pass_ms(self.chance.randint(1000, 20_000))
        elif dice < 0.29:
            self._fail()
        for topic, until in list(self.held_until.items()):
            if self.now_ms >= until:
                self._policy(topic, "immediate")
                del self.held_until[topic]
        for partition, until in list(self.failing.items()):
            if self.now_ms >= until:
                del self.failing[partition]
                self._let_appends_fail()

    def _let_appends_fail(self) -> None:
        """Too few replicas are in sync for acks=all; a coordinator of groups needs only its log, which fails."""
        for one in self.world.broker.partitions.by_name.values():
            one.isr_size = 0 if one in self.failing else 1
        fail_appends(self.world, *(one for one in self.failing if one.topic == "__consumer_offsets"))

    def _drop(self, one: Client) -> None:
        """A client that ends without a word: what it has not asked to be committed will be aborted."""
        self.clients.remove(one)
        if one.txn is not None and one.txn.outcome == "open":
            one.txn.outcome = "aborted"

    def _hold(self, topic: str) -> None:
        self._policy(topic, "held")
        self.held_until[topic] = self.now_ms + self.chance.randint(10, 5000)

    def _policy(self, topic: str, text: str) -> None:
        self.world.broker.policies.set(topic, None, parse_policy(text))
        self.world.broker.turn.event(self.world.broker.replicas.configure)

    def _reload(self) -> None:
        broker = self.world.broker
        family = self.chance.choice((broker.transactions, broker.groups))
        host = self.chance.choice(list(family.hosts.values()))
        broker.turn.event(lambda: family.reload(host.partition))  # type: ignore[attr-defined]

    def _fail(self) -> None:
        """The power fails, or the broker is stopped and started again."""
        if self.chance.random() < 0.3:
            self.world.broker.stop()
        now_ms = self.world.schedule.now_ms() + 1000
        self.world = World(self.world.lose_power(), self.chance.randrange(1 << 30), now_ms, **SETTINGS)
        self.held_until.clear()
        self.failing.clear()
        for one in self.clients:
            if one.waiting is not None:
                one.waiting, one.since_ms = Answer(), 0  # there will be no answer
        for reader in self.readers:
            reader.stable = 0  # a high watermark is reported again only when it is known again

    # what must hold

    def check(self) -> None:
        for reader in self.readers:
            for value in reader.read(self.world):
                txn = self.txns[int(value.split(b".")[0])]
                assert txn.outcome in ("committed", "unknown"), (
                    f"{value!r} of a transaction that is {txn.outcome} can be read"
                )
        if self.chance.random() < 0.1:
            for partition in range(PARTITIONS):
                self._check_decided(partition)
        broker = self.world.broker
        assert broker.metrics.bugs == 0, "an API failed"
        for host in broker.hosts():
            assert host.runtime.bugs.count == 0, "a handler failed"
        if self.chance.random() < 0.03:
            for one in broker.transactions.hosts.values():
                if one.runtime.state.value == "active" and one.runtime.describe(0)["uncommitted_records"] == 0:
                    check_replay(one)

    def _check_decided(self, partition: int) -> None:
        """Whatever lies below the last stable offset has its marker below the high watermark."""
        log = self.world.broker.partitions.by_name["t", partition].log
        if log is None:
            return
        open_ids: dict[int, int] = {}
        offset = 0
        while True:
            (part,) = self.world.send("Fetch", 11, fetch_message("t", offset, partition)).reply.responses[0].partitions
            batches = [at.header for at in records.batches(part.records)]
            for header in batches:
                if header.is_control:
                    open_ids.pop(header.producer_id, None)
                else:
                    open_ids.setdefault(header.producer_id, header.base_offset)
                offset = max(offset, header.next_offset)
            if not batches:
                break
        first = min(open_ids.values(), default=offset)
        assert part.last_stable_offset <= first, (
            f"the last stable offset of {partition} is {part.last_stable_offset}, and {first} is open"
        )

    def settle(self) -> None:
        """The trouble stops: within two minutes nothing is open any more, and of every transaction there is everything
        or nothing.
        """
        self.trouble = False
        for topic in self.held_until:
            self._policy(topic, "immediate")
        self.failing.clear()
        self._let_appends_fail()
        for one in list(self.clients):
            self._drop(one)
        for _ in range(240):
            self.world.pass_ms(500)
            self.check()
            if self._is_settled():
                break
        else:
            raise AssertionError(f"does not settle: {self._situation()}")
        for reader in self.readers:
            again = Reader(reader.partition)
            while again.offset < reader.offset:
                again.read(self.world)
            assert again.rows == reader.rows, f"partition {reader.partition} read from its start is another one"
        self._check_transactions()
        self._check_offsets()

    def _is_settled(self) -> bool:
        partitions = [p for (topic, _), p in self.world.broker.partitions.by_name.items() if topic == "t"]
        if any(p.log is None or p.last_stable_offset < p.end_offset for p in partitions):
            return False
        hosts = self.world.broker.transactions.hosts.values()
        states = [found.state for host in hosts for found in host.shard.transactions.values()]
        return all(state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT) for state in states) and all(
            reader.offset >= partition.end_offset for reader, partition in zip(self.readers, partitions, strict=True)
        )

    def _situation(self) -> str:
        partitions = [
            (p, p.last_stable_offset) for (topic, _), p in self.world.broker.partitions.by_name.items() if topic == "t"
        ]
        hosts = self.world.broker.transactions.hosts.values()
        return f"{partitions}; {[dict(host.shard.transactions.items()) for host in hosts]}"

    def _check_transactions(self) -> None:
        seen: dict[bytes, int] = {}
        for reader in self.readers:
            last: dict[str, int] = {}
            for _, value in reader.rows:
                assert value not in seen, f"{value!r} is there twice"
                seen[value] = reader.partition
                txn = self.txns[int(value.split(b".")[0])]
                assert txn.number >= last.get(txn.name, 0), f"{value!r} stands after a later transaction of {txn.name}"
                last[txn.name] = txn.number
        for txn in self.txns.values():
            there = [value in seen for _, value in txn.rows]
            if txn.outcome == "committed":
                assert all(there), f"transaction {txn.number} was committed, and {txn.rows} are not all there"
            elif txn.outcome == "unknown":
                assert all(there) or not any(there), f"transaction {txn.number} is there in part: {txn.rows} {there}"
        self.seen = seen

    def _check_offsets(self) -> None:
        """The last committed transaction of each transactional id has the last word on its offset."""
        f = m.OffsetFetchRequest
        wanted = f.OffsetFetchRequestGroup(
            group_id="g", topics=[f.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1, 2])]
        )
        reply = self.world.ask("OffsetFetch", 8, f(groups=[wanted], require_stable=True))
        found = {p.partition_index: (p.error_code, p.committed_offset) for p in reply.groups[0].topics[0].partitions}
        for index, name in enumerate(NAMES):
            code, offset = found[index]
            assert code == 0, f"the offset of {name} is pending for ever"
            with_offset = [t for t in self.txns.values() if t.name == name and t.offset]
            certain = [
                t.number for t in with_offset if t.outcome == "committed" or any(v in self.seen for _, v in t.rows)
            ]
            possible = [t.number for t in with_offset if t.outcome == "unknown" and not t.rows]
            least = max(certain, default=-1)
            assert offset == least or (offset in possible and offset > least), (
                f"the offset of {name} is {offset} and not {least}"
            )


def _world() -> World:
    """A world with its topics: made once, then begun again from its files."""
    if not _created:
        world = World(**SETTINGS)
        r = m.CreateTopicsRequest
        made = r.CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        made.configs = [
            r.CreatableTopicConfig(name="internal.segment.bytes", value="700"),
            r.CreatableTopicConfig(name="index.interval.bytes", value="10"),
        ]
        world.ask("CreateTopics", 5, r(topics=[made], timeout_ms=1000))
        for kind in (0, 1):
            world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"]))
        world.broker.stop()
        _created.append(world.files)
    world = World(copy.deepcopy(_created[0]), **SETTINGS)
    world.pass_ms(100)
    return world


def check_replay(host: ShardHost[TransactionShard]) -> None:
    """What lives in memory is what the log would give, but for what records do not tell."""
    fresh = replayed(TransactionShard(Timeline(), Timers(), host.shard.env), host)
    live, logged = ({name: _told(found) for name, found in shard.transactions.items()} for shard in (host.shard, fresh))
    assert live == logged, f"{live} lives, the log has {logged}"
    assert dict(host.shard.prepared.items()) == dict(fresh.prepared.items())


def _told(found: Transaction) -> Transaction:
    """What every version of the record tells."""
    return found._replace(last_epoch=-1, previous_producer_id=-1, next_producer_id=-1, client_version=0)


def run(seed: int, steps: int = 80) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed).run(steps)


# Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
# with each of them.
BUGS: tuple[Bug, ...] = (
    (Transaction, "ended", "min(self.epoch + 1, PRODUCER_EPOCH_MAX), self.epoch", "self.epoch, self.epoch"),
    (
        Transaction,
        "completed",
        "producer_id=self.next_producer_id if rotates else self.producer_id,",
        "producer_id=self.producer_id,",
    ),
    (
        TransactionShard,
        "_fence",
        "epoch=min(found.epoch + 1, PRODUCER_EPOCH_MAX), last_epoch=NO_EPOCH",
        "last_epoch=NO_EPOCH",
    ),
    (TransactionShard, "replay", "self.newly_prepared.append((offset, key))", "self.newly_prepared"),
    (
        TransactionShard,
        "abort_overdue",
        "if found.is_overdue(now) and transactional_id not in self.pending",
        "if False",
    ),
    (Completion, "_ended", "if self.remaining:", "if not self.remaining:"),
    (Completion, "_written", "if error is None:", "if self.remaining:"),
    (TransactionCoordinators, "_carry_out", "made.write_markers()", "made._complete()"),
    (markers, "marker_record", "ControlType.COMMIT if marker.committed else ControlType.ABORT", "ControlType.COMMIT"),
    (Producers, "first_unstable_offset", "if not ended:", "if ended is not None:"),
    (aborted, "some_aborted", "found += some.found", "found = some.found"),
    (Offsets, "replay_marker", "if committed:", "if self.pending is not None:"),
    (Partition, "read_limit", "if stable < self.high_watermark:", "if stable < 0:"),
)
