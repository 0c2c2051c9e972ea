"""Members whose time runs out: locks of records, sessions, time to give partitions up; and expressions that are matched
with topics again after a while (`chance.py`).

They ask in bursts, between which time passes. A burst is so short, and a pause so long, that a lock or a session of one
burst still holds in the next one, and is over in the one after that if nothing has renewed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from ottla.protocol import messages as m

from .chance_clients import Asked, Client, configured
from .chance_members import Members, Owned, Queue, hear_beat
from .chance_shares import Leased

PAUSE: Final = 0.6  # of what a lock or a session lasts
BURST: Final = 0.15
FETCH_WAIT_MS: Final = 60
KEYS: Final = {
    "share.delivery.count.limit": ("2", "3", "5"),
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "share.auto.offset.reset": ("earliest", "latest"),
    "share.renew.acknowledge.enable": ("true", "false"),
}
REGEX_PAUSE_S: Final = 10.5  # Kafka matches the expressions of a group again after ten seconds
MATCHED_S: Final = 0.08  # until expressions have been matched, in another thread


class Bursts(Client):
    """`LASTS_MS`: of a lock or a session; `steps_left`: of the burst; `burst`: its number."""

    LASTS_MS: ClassVar[int] = 3000
    STEPS: ClassVar[tuple[int, int]] = (4, 12)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.burst, self.steps_left = 0, self.chance.randint(*self.STEPS)
        self.burst_s = self.LASTS_MS / 1000 * BURST

    def next(self) -> Asked:
        if self.steps_left == 0:
            self.burst, self.steps_left = self.burst + 1, self.chance.randint(*self.STEPS)
            self.pause_s = self.LASTS_MS / 1000 * PAUSE
            self.paused()
        self.steps_left -= 1
        return self.last() if self.steps_left == 0 and self.chance.random() < 0.5 else super().next()

    def paused(self) -> None:
        """A burst begins."""

    def last(self) -> Asked:
        """What takes effect some time later, and is asked before a pause."""
        return super().next()


class Locked(Bursts, Leased):
    """Members of a share group that do not answer for records in time, and at times do not beat in time."""

    PREFIX = "k"
    LASTS_MS = 5000
    STEPS = (3, 6)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.has_brief_sessions = self.chance.random() < 0.4
        self.since: dict[str, dict[int, int]] = {"m1": {}, "m2": {}}  # by offset the burst in which it was locked

    def configure(self) -> Asked:
        pairs = {key: self.chance.choice(values) for key, values in KEYS.items() if self.errs(0.5)}
        pairs |= {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(self.LASTS_MS)}
        if self.has_brief_sessions:
            pairs |= {"share.session.timeout.ms": str(self.LASTS_MS), "share.heartbeat.interval.ms": "1000"}
        return configured(self.group, pairs)

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.writer[0] < 0:
            return (self.begin,)
        transactions = (self.write_in_transaction, self.write_in_transaction, self.end)
        return (*Queue.steps.__get__(self), *transactions, self.lag, self.beat, *[self.renew] * 2)

    def paused(self) -> None:
        """Members forget most of the records whose locks have run out."""
        for member, held in self.held.items():
            for offset in [*held]:
                if self.since[member].get(offset, -2) < self.burst - 1 and self.chance.random() < 0.7:
                    del held[offset]

    def last(self) -> Asked:
        joined = [member for member in self.epochs if self.sessions.get(member)]
        steps = [self.configure_one, self.alter]
        steps += [lambda one=member: self.closed(one) for member in joined]  # type: ignore[misc]
        return self.chance.choice(steps)()

    def configure_one(self) -> Asked:
        key = self.chance.choice([*KEYS])
        return configured(self.group, {key: self.chance.choice(KEYS[key])})

    def session_epoch(self) -> int:
        epoch = self.sessions.get(self.now, 0)
        return self.chance.choice((epoch + 1, 0, max(epoch - 1, 1))) if self.errs(0.03) else epoch

    def fetch(self) -> Asked:
        name, version, request = super().fetch()
        request.max_wait_ms = FETCH_WAIT_MS
        return name, version, request

    def renew(self) -> Asked:
        """The locks of some records begin again."""
        name, _, request = self.acknowledge()
        request.is_renew_ack = True
        for topic in request.topics:
            for part in topic.partitions:
                for one in part.acknowledgement_batches:
                    one.acknowledge_types = [4]
        return name, 2, request

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        before = {member: dict(held) for member, held in self.held.items()}
        super().heard(name, version, request, reply)
        self.awaited.clear()
        if name not in ("ShareFetch", "ShareAcknowledge") or reply.error_code:
            return
        since, held = self.since[self.now], self.held[self.now]
        since.update(dict.fromkeys([one for one in held if one not in before[self.now]], self.burst))
        for topic in request.topics:
            for part in topic.partitions:
                for one in part.acknowledgement_batches:
                    if one.acknowledge_types == [4]:
                        since.update(dict.fromkeys(range(one.first_offset, one.last_offset + 1), self.burst))


class Brief(Bursts, Members):
    """Members of a consumer group that do not beat in time, or do not give partitions up in time."""

    PREFIX = "b"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.rebalance_ms = self.chance.choice((self.LASTS_MS, self.LASTS_MS, 60_000))

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        pairs = {"consumer.session.timeout.ms": str(self.LASTS_MS), "consumer.heartbeat.interval.ms": "1000"}
        ask(*configured(self.group, pairs))
        super().ready(ask)

    def join(self) -> Asked:
        api, version, request = super().join()
        request.rebalance_timeout_ms = self.rebalance_ms
        return api, version, request


class Patterns(Client):
    """Members of some consumer groups with expressions, beside topics that come, grow and go between bursts. `counts`:
    partitions by topic; `epochs`: of the members that have joined, by group and member.
    """

    GROUPS: ClassVar[int] = 4
    STEPS: ClassVar[tuple[int, int]] = (20, 40)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.fresh = (f"v{self.episode}a", f"v{self.episode}b")
        self.counts = {self.two: 2, self.one: 1, **dict.fromkeys(self.fresh, 0)}
        self.epochs: dict[tuple[int, str], int] = {}
        self.owned: dict[tuple[int, str], Owned] = {}
        self.now = (0, "m1")
        self.steps_left = self.chance.randint(*self.STEPS)

    def ready(self, ask: Callable[[str, int, Any], Any]) -> None:
        """Nothing is needed."""

    def next(self) -> Asked:
        self.steps_left -= 1
        if self.steps_left == 0:
            self.steps_left = self.chance.randint(*self.STEPS)
            self.pause_s = REGEX_PAUSE_S
        elif self.steps_left <= 2:  # the coordinators hear of topics in the pause
            return self.chance.choice((self.grow, self.delete, self.create))()
        return super().next()

    @property
    def steps(self) -> tuple[Callable[[], Asked], ...]:
        if self.chance.random() < 0.6:
            self.now = self.chance.randrange(self.GROUPS), self.chance.choice(("m1", "m2", "m3"))
        if self.now not in self.epochs:
            return (self.join,)
        return (*[self.beat] * 9, *[self.change] * 3, self.leave, self.describe, self.describe)

    # members

    def group(self, number: int) -> str:
        return f"r{number}{self.episode}"

    def request(self, epoch: int, **more: Any) -> Asked:
        r, (number, member) = m.ConsumerGroupHeartbeatRequest, self.now
        member_id = f"{member}{self.episode}".ljust(22, "A")[:22]
        request = r(group_id=self.group(number), member_id=member_id, member_epoch=epoch)
        if member == "m3":
            request.instance_id = f"i{self.episode}"
        for name, value in more.items():
            setattr(request, name, value)
        return "ConsumerGroupHeartbeat", 1, request

    def subscription(self) -> dict[str, Any]:
        e, chance = self.episode, self.chance
        found: dict[str, Any] = {}
        if chance.random() < 0.8:
            expressions = (
                f"[tu]{e}",
                f"v{e}.*",
                f"v{e}.*",
                f"u{e}|v{e}a",
                f".*{e}[ab]?",
                f".*{e}b?",
                f"no{e}",
                f"t{e}",
            )
            found["subscribed_topic_regex"] = chance.choice(("[", "")) if self.errs(0.1) else chance.choice(expressions)
        if not found or chance.random() < 0.3:
            found["subscribed_topic_names"] = chance.choice(
                ([self.two], [self.one, self.fresh[0]], [], [self.fresh[1]])
            )
        return found

    def join(self) -> Asked:
        more = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "server_assignor": "range"}
        return self.request(0, **more, **self.subscription())

    def beat(self) -> Asked:
        r, epoch = m.ConsumerGroupHeartbeatRequest, self.epochs[self.now]
        owned = None
        if self.chance.random() < 0.7:
            has = self.owned.get(self.now, [])
            owned = [r.TopicPartitions(topic_id=topic, partitions=list(parts)) for topic, parts in has]
        return self.request(epoch - self.errs(0.03), topic_partitions=owned)

    def change(self) -> Asked:
        return self.request(self.epochs[self.now], **self.subscription())

    def leave(self) -> Asked:
        return self.request(-2 if self.now[1] == "m3" and self.errs(0.5) else -1)

    def describe(self) -> Asked:
        groups = [self.group(self.now[0])]
        return "ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=groups)

    # administrators

    def grow(self) -> Asked:
        r, name = m.CreatePartitionsRequest, self.chance.choice([*self.counts])
        topics = [r.CreatePartitionsTopic(name=name, count=min(self.counts[name] + 1, 4), assignments=None)]
        return "CreatePartitions", self.chance.randint(0, 3), r(topics=topics, timeout_ms=30_000)

    def delete(self) -> Asked:
        name = self.chance.choice([name for name, count in self.counts.items() if count] or [self.one])
        return "DeleteTopics", self.chance.randint(1, 5), m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)

    def create(self) -> Asked:
        r = m.CreateTopicsRequest
        name = self.chance.choice([name for name, count in self.counts.items() if not count] or [self.one])
        topic = r.CreatableTopic(name=name, num_partitions=self.chance.choice((1, 1, 2)), replication_factor=1)
        return "CreateTopics", 7, r(topics=[topic], timeout_ms=30_000)

    # what they hear

    def heard(self, name: str, version: int, request: Any, reply: Any) -> None:
        if name == "ConsumerGroupHeartbeat":
            self.pause_s = MATCHED_S
            hear_beat(self.epochs, self.owned, self.now, reply)
        elif name == "CreatePartitions" and reply.results[0].error_code == 0:
            self.resized(request.topics[0].name, request.topics[0].count)
        elif name == "DeleteTopics" and reply.responses[0].error_code == 0:
            self.resized(request.topic_names[0], 0)
        elif name == "CreateTopics" and reply.topics[0].error_code == 0:
            self.resized(reply.topics[0].name, reply.topics[0].num_partitions)

    def resized(self, name: str, count: int) -> None:
        self.counts[name] = self.awaited[name] = count
