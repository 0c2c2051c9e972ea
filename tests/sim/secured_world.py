"""The broker of the simulator of security, what it should hold, and its clients: each logs in through the real gate of
a SASL listener, and of each reply it is checked that it shows nothing that its reader may not see.
"""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache
from typing import Any

from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.peer import Peer, SecurityProtocol
from ottla.coordinator.security.acls import CLUSTER_NAME, Operation
from ottla.coordinator.security.acls import ResourceType as R
from ottla.protocol import messages as m

from ..support.memory_files import MemFiles
from ..support.scram import ScramClient
from ..support.secured import MODULES
from ..support.wire import request_frame
from ..support.world import World
from .limits_model import Allowances
from .rights import SUPER_USER, Rights

PASSWORDS = {name: f"{name}'s secret" for name in ("admin", "alexandra", "barbara", "caroline")}
USERS = ("alexandra", "barbara", "caroline", "dominic")  # dominic has no password but what SCRAM gives him
HOSTS = ("127.0.0.1", "10.0.0.5", "10.9.9.9")
TOPICS = ("alpha-one", "alpha-two", "beta-one", "gamma")
GROUPS = ("crew-red", "crew-blue", "squad")
MEMBERS_GROUP = "line"
TRANSACTIONS = ("pay-one", "pay-two")
MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS, SALT = 4096, b"salt"
LISTENER = "listener.name.auth"
USERS_OF_PLAIN = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": SUPER_USER,
    "listeners": "AUTH://127.0.0.1:9092",
    "listener.security.protocol.map": "AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
    f"{LISTENER}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {USERS_OF_PLAIN};",
    **{
        f"{LISTENER}.{name.lower()}.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;"
        for name in MECHANISMS
    },
    "connection.failed.authentication.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.flush.interval.messages": "1",  # what is acknowledged survives a power failure
    "group.consumer.assignment.interval.ms": "0",
}
SHOWING_ALL = {
    "DescribeAcls": Operation.DESCRIBE,
    "DeleteAcls": Operation.ALTER,
    "CreateAcls": Operation.ALTER,
    "DescribeClientQuotas": Operation.DESCRIBE_CONFIGS,
    "DescribeUserScramCredentials": Operation.DESCRIBE,
    "DeleteTopics": Operation.DELETE,
}
"""APIs that show every name to those who may do this operation on the cluster."""


class Expected:
    """What the broker should hold."""

    def __init__(self) -> None:
        self.rights = Rights()
        self.limits = Allowances()
        self.topics: dict[str, int] = {}  # partitions, by name
        self.ids: dict[str, bytes] = {}
        self.retention: dict[str, str] = {}  # what was set for a topic, by name
        self.rows: dict[str, list[bytes]] = {}  # of the first partition
        self.starts: dict[str, int] = {}  # log start offsets of the first partition
        self.offsets: dict[str, dict[str, int]] = {group: {} for group in GROUPS}  # by topic
        self.transactions: set[str] = set()  # transactional ids
        self.passwords: dict[tuple[str, int], str] = {}  # of SCRAM, by user and mechanism

    def made(self, name: str, topic_id: bytes, partitions: int) -> None:
        self.topics[name], self.ids[name] = partitions, topic_id
        self.rows[name], self.starts[name] = [], 0

    def gone(self, name: str) -> None:
        for table in (self.topics, self.ids, self.retention, self.rows, self.starts, *self.offsets.values()):
            table.pop(name, None)  # type: ignore[attr-defined]

    def forget_starts(self, world: World) -> None:
        """After an end that was no stop: log start offsets are only written down from time to time."""
        for name in self.starts:
            found = world.broker.partitions.get(name, 0).open_log().start_offset
            assert found <= self.starts[name], f"the log of {name} begins later than it was said"
            self.starts[name] = found

    def check(self, world: World) -> None:
        """AssertionError where the broker holds anything else."""
        broker, image = world.broker, world.broker.image
        counts = {
            name: image.partition_counts[one.id] for name, one in image.topics.items() if not name.startswith("__")
        }
        _same("topics", counts, self.topics)
        _same("ids of topics", {name: image.topics[name].id for name in counts}, self.ids)
        retention = {name: image.config_of(2, name).get("retention.ms") for name in counts}
        _same("configs", {name: value for name, value in retention.items() if value}, self.retention)
        logs = {name: broker.partitions.get(name, 0).open_log() for name in counts}
        ends = {name: (log.start_offset, log.end_offset) for name, log in logs.items()}
        _same("logs", ends, {name: (self.starts[name], len(rows)) for name, rows in self.rows.items()})
        found: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
        for host in broker.groups.hosts.values():
            for group, offsets in host.shard.offsets.by_group.items():
                found[group] = {topic: stored[1] for (topic, _), stored in offsets.at().items()}
        _same("offsets", found, self.offsets)
        _same("entries", set(image.acl_ids), self.rights.acls)
        _same("credentials", set(image.credentials), set(self.passwords))
        _same("limits", {(q.entity, q.key): r.value for q, r in image.quotas.items()}, self.limits.values)


def _same(what: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{what} are {found}, not {wanted}"


def secured_world(files: MemFiles | None, seed: int, now_ms: int, expected: Expected, chance: random.Random) -> World:
    """A broker whose clients log in, on these files."""
    expected.limits.windows = chance.choice((2, 11))
    world = World(
        files,
        seed,
        now_ms,
        **SETTINGS,
        **{
            "allow.everyone.if.no.acl.found": str(expected.rights.is_open).lower(),
            "quota.window.num": str(expected.limits.windows),
            "metadata.log.max.record.bytes.between.snapshots": chance.choice(("400", "2000", "20971520")),
        },
    )
    spent_ns, times = 0, random.Random(seed)

    def work_ns() -> int:
        nonlocal spent_ns
        spent_ns += times.choice((0, 0, 10_000, 2_000_000, 50_000_000))
        return spent_ns

    world.schedule.work_ns = work_ns  # type: ignore[method-assign]
    return world


class Connection:
    """One connection of a user who has logged in. Raises Refused if the password is wrong."""

    def __init__(
        self, world: World, expected: Expected, user: str, host: str, mechanism: str = "PLAIN", password: str = ""
    ) -> None:
        self.world = world
        self.expected = expected
        self.user = user
        self.principal = f"User:{user}"
        self.host = host
        self.muted_until_ms = 0
        self.peer = Peer("AUTH", f"{host}:{1000 + len(user)}", SecurityProtocol.SASL_PLAINTEXT)
        self._server = world.dispatcher
        self._dispatcher: Dispatcher = SaslGate(self._server, world.broker.sasl["AUTH"], self.peer, self._opened)
        self.is_in = False
        self._log_in(mechanism, password or PASSWORDS[user])
        assert self.peer.throttle_ms == 0, "who logs in is throttled"

    def _opened(self, dispatcher: Dispatcher) -> None:
        self._dispatcher, self.is_in = dispatcher, True

    def _log_in(self, mechanism: str, password: str) -> None:
        self._said("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
        if mechanism == "PLAIN":
            self._say(f"\0{self.user}\0{password}".encode())
            return
        digest = MECHANISMS[mechanism][1]
        client = ScramClient(mechanism, self.user, password, salted=salted(digest, password))
        answer = self._say(client.first())
        if not answer.error_code:
            answer = self._say(client.final(answer.auth_bytes))
            if not answer.error_code:
                client.verify(answer.auth_bytes)

    def _say(self, token: bytes) -> Any:
        return self._said("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))

    def _said(self, name: str, version: int, message: Any) -> Any:
        before, self.world.dispatcher = self.world.dispatcher, self._dispatcher
        try:
            answer = self.world.send(name, version, message, self.peer)
        finally:
            self.world.dispatcher = before
        for _ in range(60_000):
            if answer.done:
                self._data = answer.data
                return answer.reply
            self.world.pass_ms(1)
        raise AssertionError(f"{name} is not answered")

    def may(self, operation: Operation, kind: R, name: str = CLUSTER_NAME) -> bool:
        """Whether the model lets the user do this now."""
        return self.expected.rights.allow(self.principal, self.host, operation, kind, name)

    @property
    def is_muted(self) -> bool:
        return self.muted_until_ms > self.world.schedule.monotonic_ms()

    def ask(self, name: str, version: int, message: Any, *, shown: tuple[str, ...] = ()) -> Any:
        """The reply, which shows nothing but what the user may see. `shown`: topics that it may show nevertheless."""
        assert not self.is_muted
        frame = request_frame(name, version, message)
        hidden = self._hidden(name, frame, shown)
        reply = self._said(name, version, message)
        for what, text in hidden:
            assert text not in self._data, f"{name} v{version} shows {self.principal} the {what} {text!r}"
        throttle_ms, self.peer.throttle_ms = self.peer.throttle_ms, 0
        assert throttle_ms == getattr(reply, "throttle_time_ms", throttle_ms)
        readable_bytes = 1000 + sum(100 + len(row) for rows in self.expected.rows.values() for row in rows)
        self.expected.limits.check(name, self.user, throttle_ms, len(frame), readable_bytes)
        self.muted_until_ms = self.world.schedule.monotonic_ms() + throttle_ms
        return reply

    def _hidden(self, api: str, frame: bytes, shown: tuple[str, ...]) -> list[tuple[str, bytes]]:
        """What may not be in the reply to a request."""
        if api in SHOWING_ALL and self.may(SHOWING_ALL[api], R.CLUSTER):
            return []
        kinds: tuple[tuple[R, tuple[str, ...]], ...] = (
            (R.TOPIC, TOPICS),
            (R.GROUP, GROUPS),
            (R.TRANSACTIONAL_ID, TRANSACTIONS),
        )
        if self.may(Operation.DESCRIBE, R.CLUSTER) and api == "ListGroups":
            kinds = kinds[:1]
        found = [
            (kind.name, name.encode())
            for kind, names in kinds
            for name in names
            if name not in shown and not self.may(Operation.DESCRIBE, kind, name)
        ]
        ids = self.expected.ids
        found += [("id of", ids[name.decode()]) for kind, name in found if kind == "TOPIC" and name.decode() in ids]
        found += [("user", name.encode()) for name in USERS if name != self.user]
        return [(what, text) for what, text in found if text not in frame]


@lru_cache
def salted(digest: str, password: str) -> bytes:
    return hashlib.pbkdf2_hmac(digest, password.encode(), SALT, ITERATIONS)


def enters(world: World, expected: Expected, user: str, host: str, mechanism: str, password: str) -> Connection | None:
    """A connection, or None if the broker does not let the user in."""
    try:
        made = Connection(world, expected, user, host, mechanism, password)
    except Refused:
        return None
    return made if made.is_in else None
