"""Users, rights and quotas in a whole broker: random requests of users who logged in, while entries, credentials and
limits are created and deleted, and while the broker stops, ends or loses power.

    python -m tests.sim security [seeds=20000] [seed=N]

After each request the broker holds what a plain model of Kafka's rules says (`rights.py`, `secured_world.Expected`):
nobody did what the entries of that moment forbid, everybody did what they allow, in parts of requests too; nothing is
shown to a user who may not see it; throttle times are possible ones, and throttled members stay in their groups.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.broker.apis import (
    _offset_commits,
    k00_produce,
    k01_fetch,
    k03_metadata,
    k09_offset_fetch,
    k16_list_groups,
    k19_create_topics,
    k20_delete_topics,
    k22_init_producer_id,
    k68_consumer_group_heartbeat,
)
from ottla.broker.client_quotas import QuotaLimits
from ottla.broker.net.dispatch import Dispatcher
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.security.authorizing import AclFollower
from ottla.coordinator.quota.clients import RateQuota
from ottla.coordinator.security.acls import Operation
from ottla.coordinator.security.acls import ResourceType as R
from ottla.coordinator.security.authorizer import Authorizer, _Pattern, _Patterns, _Rules
from ottla.coordinator.security.scram import ScramServer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.bugs import Bug
from ..support.memory_files import MemFiles
from ..support.world import World, told_with
from . import cluster_requests, topic_requests
from .secured_world import (
    HOSTS,
    MECHANISMS,
    MEMBERS_GROUP,
    PASSWORDS,
    TOPICS,
    USERS,
    Connection,
    Expected,
    enters,
    secured_world,
)

LIVES = (1, 2, 2, 3)
SESSION_MS = 45_000
BEAT_MS = 5_000
REQUESTS = (*topic_requests.REQUESTS, *cluster_requests.REQUESTS)


def run(seed: int) -> None:
    """One history of up to three lives. AssertionError with the seed."""
    with told_with(seed):
        _run(random.Random(seed), seed)


def _run(chance: random.Random, seed: int) -> None:
    expected, files, now_ms, is_clean = Expected(), None, 1_700_000_000_000, True
    for life in range(chance.choice(LIVES)):
        expected.rights.is_open = chance.random() < 0.3
        world = secured_world(files, seed * 10 + life, now_ms, expected, chance)
        world.pass_ms(10)
        if not is_clean:
            expected.forget_starts(world)
        expected.check(world)
        Life(world, expected, chance).go_on(chance.randint(5, 40))
        now_ms = world.schedule.now_ms()
        files, is_clean = _end(world, chance)


def _end(world: World, chance: random.Random) -> tuple[MemFiles, bool]:
    """Stops the broker, ends it, or takes its power. Returns its files, and whether it was stopped."""
    end = chance.choice(("stop", "end", "lose power"))
    if end == "stop":
        world.broker.stop()
    return world.lose_power() if end == "lose power" else world.files, end == "stop"


class Member:
    """A member of a consumer group on a connection of its own, which only sends heartbeats."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.id = f"member-{number}"
        self.epoch = 0  # 0: it is not in the group
        self.heard_ms = 0
        self.topics: tuple[str, ...] = ()
        self.owned: dict[bytes, list[int]] = {}  # partitions by topic id, as the last assignment says

    def beat(self, chance: random.Random) -> None:
        """Joins, or says that it is there."""
        c, now_ms = self.connection, self.connection.world.schedule.monotonic_ms()
        if c.is_muted:
            return
        joins = self.epoch == 0
        if joins:
            self.topics, self.owned = tuple(chance.sample(TOPICS, 2)), {}
        r = m.ConsumerGroupHeartbeatRequest
        request = r(
            group_id=MEMBERS_GROUP,
            member_id=self.id,
            member_epoch=self.epoch,
            subscribed_topic_names=list(self.topics) if joins else None,
            rebalance_timeout_ms=60_000 if joins else -1,
            topic_partitions=[r.TopicPartitions(topic_id=i, partitions=parts) for i, parts in self.owned.items()],
        )
        reply = c.ask("ConsumerGroupHeartbeat", 1, request, shown=self.topics)
        if not c.may(Operation.READ, R.GROUP, MEMBERS_GROUP):
            wanted = int(Errors.GROUP_AUTHORIZATION_FAILED)
        elif joins and not all(c.may(Operation.DESCRIBE, R.TOPIC, name) for name in self.topics):
            wanted = int(Errors.TOPIC_AUTHORIZATION_FAILED)
        else:
            wanted = 0
        code = reply.error_code
        if code == Errors.UNKNOWN_MEMBER_ID and now_ms - self.heard_ms >= SESSION_MS:
            self.epoch = 0  # it was not allowed to speak for too long
            return
        assert code == wanted, f"a heartbeat of {c.principal}: {code}, not {wanted}"
        if code == 0:
            self.epoch, self.heard_ms = reply.member_epoch, now_ms
            if reply.assignment is not None:
                self.owned = {bytes(one.topic_id): one.partitions for one in reply.assignment.topic_partitions}


class Life:
    """A broker between a start and its end."""

    def __init__(self, world: World, expected: Expected, chance: random.Random) -> None:
        self.world = world
        self.expected = expected
        self.chance = chance
        self.admin = Connection(world, expected, "admin", chance.choice(HOSTS))
        self.clients = [Connection(world, expected, user, chance.choice(HOSTS)) for user in USERS if user in PASSWORDS]
        users = chance.sample(sorted(PASSWORDS), 2)
        self.members = [
            Member(Connection(world, expected, user, chance.choice(HOSTS)), n) for n, user in enumerate(users)
        ]

    def go_on(self, count: int) -> None:
        if not self.world.broker.image.topics:
            self._tell(self.admin, cluster_requests.begin_groups)
            self._tell(self.admin, cluster_requests.begin_transactions)
        if not self.expected.topics:
            for _ in range(3):
                self._tell(self.admin, topic_requests.create)
        for _ in range(count):
            what = self.chance.random()
            if what < 0.25:
                self._tell(self.admin, self.chance.choice(cluster_requests.CHANGES))
            elif what < 0.85:
                self._tell(self.chance.choice((*self.clients, self.admin)), self.chance.choice(REQUESTS))
            elif what < 0.92:
                self._log_in()
            else:
                self._pass_ms(self.chance.choice((10, 1000, 20_000)))
            self.expected.check(self.world)

    def _tell(self, c: Connection, request: Callable[[Connection, random.Random], None]) -> None:
        if c.is_muted and c is self.admin:
            self._pass_ms(c.muted_until_ms - self.world.schedule.monotonic_ms())
        if not c.is_muted:
            request(c, self.chance)

    def _pass_ms(self, ms: int) -> None:
        """Lets time pass, in which members speak."""
        while ms > 0:
            for member in self.members:
                member.beat(self.chance)
            step = min(ms, BEAT_MS)
            self.world.pass_ms(step)
            ms -= step

    def _log_in(self) -> None:
        """Somebody tries a password: who has the right one is let in, and no one else."""
        user, chance = self.chance.choice(USERS), self.chance
        mechanism = chance.choice(("PLAIN", *MECHANISMS))
        if mechanism == "PLAIN":
            password = chance.choice((PASSWORDS.get(user, "x"), PASSWORDS["admin"]))
            is_right = PASSWORDS.get(user) == password
        else:
            password = f"password {chance.randint(0, 3)}"
            is_right = self.expected.passwords.get((user, MECHANISMS[mechanism][0])) == password
        made = enters(self.world, self.expected, user, chance.choice(HOSTS), mechanism, password)
        assert (made is not None) is is_right, f"{user} with {mechanism}: {made is not None}, not {is_right}"
        if made is not None:
            self.clients = [c for c in self.clients if c.user != user] + [made]


BUGS: tuple[Bug, ...] = (
    # the authorizer
    (Authorizer, "_allows", "not denied & _EXACT[operation] and ", ""),
    (Authorizer, "_allows", "return self.allows_uncovered", "return True"),
    (Authorizer, "drop", "self._memory.clear()", "pass"),
    (_Pattern, "of", "(principal, ANYONE)", "(principal,)"),
    (_Patterns, "of", "len(name))]", "len(name) - 1)]"),
    (_Patterns, "_count", "if count:", "if count > 0 and by > 0:"),
    (_Rules, "__init__", '"/" in host', '"/" == host'),
    # entries, credentials and limits that the metadata has
    (AclFollower, "load", "self.image.acls.items()", "()"),
    (AclFollower, "metadata_changed", "self.authorizer.drop(acl_id)", "pass"),
    (QuotaLimits, "load", "self._follow(quota)", "pass"),
    # who is who
    (SaslGate, "_complete", "self._peer.principal = principal", "self._peer.principal = 'User:alexandra'"),
    (ScramServer, "_end", "if not hmac.compare_digest(", "if () and not hmac.compare_digest("),
    # what requests do, and what replies show
    (k00_produce, "narrowed", "request.topic_data = allowed", "pass"),
    (k01_fetch, "_refused_at_once", "name is not None and not", "name is None and not"),
    (k03_metadata, "_allowed", "described, _ = await", "await"),
    (k03_metadata, "_create_allowed", "if not CREATES.allows(context):", "if False:"),
    (_offset_commits, "narrowed", "request.topics = allowed", "request.topics = asked"),
    (k09_offset_fetch, "_fetch", "found.topics, _ = await", "await"),
    (k16_list_groups, "handle", "if found is not None and (", "if found is not None or ("),
    (k19_create_topics, "narrowed", "left_out = frozenset(refused)", "left_out = frozenset()"),
    (k20_delete_topics, "_authorized", "if DESCRIBED.allows(context, known):", "if True:"),
    (k22_init_producer_id, "_initialized", "not IDEMPOTENT.allows(context) and", "not IDEMPOTENT.allows(context) or"),
    (k68_consumer_group_heartbeat, "handle", "if not may_describe_all(", "if () and not may_describe_all("),
    # quotas
    (Dispatcher, "take", "quotas.limits.is_used and self.has_quotas", "quotas.limits.is_used"),
    (RateQuota, "record", "min(throttle_ms, self._throttle_ms_max)", "throttle_ms"),
)
