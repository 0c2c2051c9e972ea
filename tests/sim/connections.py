"""Connections under trouble: requests in pieces and together, of all kinds of answers, while faults and holds come and
go, connections freeze and thaw, peers do not read, quotas throttle, and connections end in all ways.

    python -m tests.sim connections [seeds=20000] [seed=N]

A whole broker in memory serves a few connections; its limits are small, so that they matter. Requests with the client
id `plain` are spared by faults and holds: they get their answers. Of the others it counts what the faults make of their
replies: these bytes arrive, once, whole and in order. At the end the trouble stops. Then every request is answered, or
its connection is closed for a reason; nothing is held, parked or waiting, and every connection serves another request.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ottla.broker import bugs
from ottla.broker.lab.faults.byte_actions import CorrelationId, Flip, Trickle, Truncate, Twice
from ottla.broker.lab.faults.content_actions import DamageRecords, StaleLeader, Vanish
from ottla.broker.lab.faults.error_action import Fail
from ottla.broker.lab.faults.inner_actions import AppendFails, InnerAction, Loading, SlowSync
from ottla.broker.lab.faults.request_actions import Close, Delay, NoReply, Throttle
from ottla.broker.lab.faults.rules import AnyAction, Fault, Faults, Rule
from ottla.broker.lab.requests.holds import HoldAsked, Holds
from ottla.broker.net import ahead, connection, intercepting, pacing
from ottla.broker.peer import SecurityProtocol
from ottla.protocol import messages as m

from ..support.ask import batch, produce_message
from ..support.lab import LabWorld
from ..support.memory_files import MemFiles
from ..support.topic_world import create
from ..support.world import World, told_with
from .connection_requests import CLIENT_IDS, KINDS, PLAIN, TOPIC, bad, login, request
from .connection_wire import Link, Served

LINKS_MAX = 3
STEPS = 100
QUIET_MS, QUIET_STEP_MS = 600_000, 2000
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,AUTH://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listener.name.auth.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.auth.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    ),
    "offsets_topic_num_partitions": "1",
    "group_initial_rebalance_delay_ms": "50",
}
LISTENERS = {"PLAINTEXT": SecurityProtocol.PLAINTEXT, "AUTH": SecurityProtocol.SASL_PLAINTEXT}


@cache
def _files() -> MemFiles:
    """Returns what each history begins with a copy of: a topic, a coordinator and a quota."""
    world = World(**SETTINGS)
    create(world, TOPIC)
    for _ in range(8):
        world.ask("Produce", 9, produce_message(TOPIC, batch(bytes(300))))
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    a = m.AlterClientQuotasRequest
    entity = [a.EntityData(entity_type="client-id", entity_name="quota")]
    ops = [a.OpData(key=key, value=300.0) for key in ("producer_byte_rate", "consumer_byte_rate")]
    world.ask("AlterClientQuotas", 1, a(entries=[a.EntryData(entity=entity, ops=ops)]))
    world.broker.stop()
    return world.files


@contextmanager
def _small_limits(chance: random.Random) -> Iterator[None]:
    """Makes limits small that tests would not reach otherwise."""
    limits = {
        (connection, "AHEAD_BYTES"): chance.choice((100, 1000, connection.AHEAD_BYTES)),
        (connection, "FRAMES_AT_ONCE"): chance.choice((2, 5, connection.FRAMES_AT_ONCE)),
        (connection, "TOGETHER_BYTES"): chance.choice((1, 100, connection.TOGETHER_BYTES)),
        (ahead, "PRIVATE_BYTES"): chance.choice((8, 300, ahead.PRIVATE_BYTES)),
        (pacing, "LARGE_REPLY_BYTES"): chance.choice((50, 1000, pacing.LARGE_REPLY_BYTES)),
        (intercepting, "WAITING_MAX"): chance.choice((1, *[intercepting.WAITING_MAX] * 5)),
    }
    before = {(module, name): getattr(module, name) for module, name in limits}
    try:
        for (module, name), value in limits.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


class Sim:
    """One history, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        sessions = {"connections_max_reauth_ms": chance.choice(("0", "0", "2000"))}
        self.world = Served(copy.deepcopy(_files()), seed, chance, **SETTINGS, **sessions)
        self.world.pass_ms(100)
        self.world.buffered_bytes_max = chance.choice((3000, *[1 << 30] * 5))
        lab = LabWorld(self.world).lab
        self.faults, self.holds = lab.part(Faults), lab.part(Holds)
        self.rules: list[Rule] = []
        self.links: list[Link] = []
        self.made = 0
        self.bugs = bugs.count()
        self.weights = {name: chance.choice((0, 1, 1, 3)) for name in ACTIONS}  # some never happen
        self.weights |= {name: chance.choice((0, 0, 1)) for name in ("lose", "mend", "unhold", "hold", "read")}
        self.weights |= {"ask": 12, "wait": 12}
        self.client_ids = [PLAIN, *chance.choices(CLIENT_IDS, k=3)]
        self.kinds = [*chance.sample(sorted(KINDS), chance.randint(1, 4)), "fetch"]
        self.actions = [*chance.choices(FAULTS, k=chance.randint(1, 4)), *FAULTS[: chance.randrange(2)]]
        self.bad_share = chance.choice((0, 0, 0.02))
        self.wire = (
            chance.choice((10, 60, 300, 1 << 20)),
            chance.choice(((1 << 20,), (1 << 20,), (1, 5, 40, 1 << 20), (3, 1000))),
            chance.choice(((0,), (0, 1), (0, 0, 30))),
        )

    def run(self, steps: int) -> None:
        for _ in range(self.chance.randrange(3)):
            self.fault()
        for _ in range(steps):
            (name,) = self.chance.choices(list(self.weights), list(self.weights.values()))
            ACTIONS[name](self)
            self.check()
        self.end_trouble()
        self.check_quiet()

    def check(self) -> None:
        for link in self.links:
            link.check()
        complaints = self.world.complaints
        assert not complaints, complaints[0]
        assert bugs.count() == self.bugs, "the broker has a bug"
        held = sum(link.connection.held_bytes for link in self.links)
        assert self.world.buffered_bytes == held, f"{self.world.buffered_bytes} bytes are counted, {held} are held"
        self.links = [link for link in self.links if not link.wire.is_lost]

    def link(self) -> Link | None:
        """Returns one of the open connections; often the same one."""
        found = [link for link in self.links if link.is_open]
        return found[min(self.chance.choice((0, 0, 1, 2)), len(found) - 1)] if found else None

    # what happens

    def connect(self) -> None:
        if len(self.links) < LINKS_MAX:
            self.made += 1
            name = self.chance.choice(("PLAINTEXT", "PLAINTEXT", "AUTH"))
            link = Link(self.world, self.made, name, LISTENERS[name], self.wire)
            link.connection.chunk_bytes = self.chance.choice((50, 1000, 1 << 18))
            self.links.append(link)
            if link.has_sasl:
                link.send(login(self.chance, self.client_ids))

    def ask(self) -> None:
        link = self.link()
        if link is None:
            return self.connect()
        for _ in range(self.chance.choice((1, 1, 2, 3, 8))):
            number = len(link.asked)
            if self.chance.random() < self.bad_share:
                asked = bad(self.chance, number)
            else:
                kind, client_id = self.chance.choice(self.kinds), self.chance.choice(self.client_ids)
                asked = request(self.world, self.chance, kind, number, client_id)
            link.send([asked])

    def wait(self) -> None:
        self.world.pass_ms(self.chance.choice((0, 0, 1, 2, 10, 50, 300)))

    def produce(self) -> None:
        """Another client makes those go on that poll."""
        self.world.send("Produce", 9, produce_message(TOPIC, batch(self.chance.randbytes(100))))

    def read_slowly(self) -> None:
        link = self.link()
        if link is not None:
            link.wire.take(self.chance.choice((0, 1, 20, 100, 1000)))

    def read(self) -> None:
        for link in self.links:
            link.wire.take(None)

    def freeze(self) -> None:
        link = self.link()
        if link is not None:
            link.connection.freeze()
            link.is_frozen = True

    def thaw(self) -> None:
        for link in self.links:
            if link.is_frozen and not link.wire.is_lost:
                link.thaw()

    def interrupt(self) -> None:
        """Something happens in the middle of a request, as a scenario does that waits for it."""
        link = self.link()
        if link is not None:
            link.at_request = self.chance.choice((_freeze, _freeze_and_thaw, _close, _drop))

    def fault(self) -> None:
        action = self.chance.choice(self.actions)(self.chance)
        asked = _asked(action, self.chance)
        times = self.chance.choice((None, None, 1, 3))
        self.rules.append(self.faults.add(Fault(action=action, times=times, seed=self.chance.randrange(100), **asked)))

    def mend(self) -> None:
        rules = list(self.faults)
        if rules:
            self.faults.remove(self.chance.choice(rules).number)

    def hold(self) -> None:
        at: Any = self.chance.choice(("request", "reply"))
        times = self.chance.choice((None, 1, 2))
        self.holds.add(HoldAsked(client_id="*h", at=at, times=times, every=self.chance.choice((None, 2))))

    def unhold(self) -> None:
        holds = list(self.holds)
        if holds:
            self.holds.remove(self.chance.choice(holds).number)

    def release(self) -> None:
        held = [one.number for one in self.holds.held()]
        if held:
            then: Any = self.chance.choice(("go-on", "go-on", "go-on", "close"))
            self.holds.release(self.chance.sample(held, self.chance.randint(1, len(held))), then)

    def lose(self) -> None:
        """The client goes, or the server closes the connection or drops it."""
        link = self.link()
        if link is not None:
            end = self.chance.choice((link.wire.lose, link.wire.finish, link.connection.close, link.connection.drop))
            link.end(end.__name__)
            end()

    def sweep(self) -> None:
        for link in self.links:
            link.connection.shrink()

    # the end

    def end_trouble(self) -> None:
        """Ends faults and holds; lets everything go on, until it is done or a client has waited for too long."""
        self.faults.clear()
        self.holds.reset()
        for link in self.links:
            link.at_request = None
        self.thaw()
        self.read()
        for _ in range(0, QUIET_MS, QUIET_STEP_MS):
            self.world.pass_ms(QUIET_STEP_MS)
            self.check()
            self.holds.release([one.number for one in self.holds.held()], "go-on")
            for link in self.links:
                if self._is_silenced(link):
                    link.end("the client gives up")
                    link.wire.lose()
            if all(link.is_settled for link in self.links):
                return
        stuck = next(link for link in self.links if not link.is_settled)
        raise AssertionError(f"connection {stuck.number} is stuck: {stuck.situation()}")

    def _is_silenced(self, link: Link) -> bool:
        """Whether a fault says that the request in hand gets no reply, and the connection none until its end."""
        if link.in_hand is None:
            return False
        about = f" {link.in_hand.number} of {link.in_hand.client_id} at {link.address}"
        silences = (one for one in self.rules if isinstance(one.action, NoReply) and one.action.then == "wait")
        return any(event.what.endswith(about) for one in silences for event in one.events)

    def check_quiet(self) -> None:
        """Nothing is left of what was in hand, and the connections that are open serve another request."""
        world = self.world
        for link in self.links:
            link.connection.shrink()
        self.check_left()
        for link in self.links:
            asked = request(world, self.chance, "groups", len(link.asked), PLAIN)
            link.send([asked])
        world.pass_ms(QUIET_STEP_MS)
        self.check()
        for link in self.links:
            assert link.is_settled, f"connection {link.number} answers no more: {link.situation()}"
            link.end("the end")
            self.chance.choice((link.wire.lose, link.connection.close))()
        world.pass_ms(0)
        self.check()
        self.check_left()
        assert not world.connections, f"{len(world.connections)} connections are left"

    def check_left(self) -> None:
        world = self.world
        segments = [one for (topic, _), p in world.broker.partitions.by_name.items() if p.log for one in p.log.segments]
        left = {
            "bytes that are held": world.buffered_bytes,
            "segments that are read": sum(segment.holds for segment in segments),
            "exchanges that wait": world.seam.waiting,
            "bytes that wait": world.seam.waiting_bytes,
            "parked requests": sum(times.parked for times in world.broker.metrics.apis.values()),
            "what the lab holds": len(self.holds.held()),
        }
        assert not any(left.values()), f"left at the end: {left}"


def _freeze(link: Link) -> None:
    def frozen() -> None:
        link.is_frozen = link.connection._frozen

    link.connection.freeze()
    link.world.schedule.soon(frozen)  # the replies to requests before this one are written now


def _freeze_and_thaw(link: Link) -> None:
    if not link.is_frozen:
        link.connection.freeze()
        link.connection.thaw()


def _close(link: Link) -> None:
    link.end("closed in a request")
    link.connection.close()


def _drop(link: Link) -> None:
    link.end("dropped in a request")
    link.connection.drop()


FAULTS: tuple[Callable[[random.Random], AnyAction], ...] = (
    lambda chance: Trickle(piece_bytes=chance.choice((1, 10, 200)), interval_ms=chance.choice((0, 1, 5))),
    lambda chance: Trickle(piece_bytes=chance.choice((1, 10, 200)), interval_ms=chance.choice((0, 1, 5))),
    lambda chance: Truncate(keep_bytes=chance.choice((None, 0, 10))),
    lambda chance: Flip(),
    lambda chance: Twice(),
    lambda chance: CorrelationId(),
    lambda chance: Delay(ms=chance.choice((0, 1, 100)), at=chance.choice(("request", "reply"))),
    lambda chance: Delay(ms=5, at="reply", distribution="exponential"),
    lambda chance: NoReply(at=chance.choice(("request", "reply")), then=chance.choice(("wait", "go-on", "go-on"))),
    lambda chance: Close(
        at=chance.choice(("request", "before-reply", "middle", "after-reply")), after_bytes=chance.choice((None, 0, 9))
    ),
    lambda chance: Throttle(ms=chance.choice((0, 1, 40)), mutes=chance.random() < 0.8),
    lambda chance: DamageRecords(damage=chance.choice(("crc", "offsets", "codec"))),
    lambda chance: Vanish(),
    lambda chance: StaleLeader(leader=9),
    lambda chance: Fail(error="NOT_LEADER_OR_FOLLOWER", at=chance.choice(("request", "reply"))),
    lambda chance: Fail(error="UNSUPPORTED_VERSION"),
    lambda chance: AppendFails(),
    lambda chance: SlowSync(ms=20),
    lambda chance: Loading(ms=30, coordinator="group"),
)


def _asked(action: AnyAction, chance: random.Random) -> dict[str, Any]:
    """Returns for which requests a fault is: with `f` in the client id, of some APIs or of all."""
    if isinstance(action, InnerAction):
        return {}
    if isinstance(action, Fail):
        return {"client_id": "f*", "api": "Fetch" if action.at == "reply" else "Fetch,Heartbeat,ListGroups"}
    apis = {} if action.apis else chance.choice(({}, {}, {"api": "ListGroups"}, {"api": "Fetch,Metadata,JoinGroup"}))
    return {"client_id": "f*", **apis}


ACTIONS: dict[str, Callable[[Sim], None]] = {
    one.__name__: one
    for one in (
        Sim.ask,
        Sim.wait,
        Sim.connect,
        Sim.produce,
        Sim.read_slowly,
        Sim.read,
        Sim.freeze,
        Sim.thaw,
        Sim.interrupt,
        Sim.fault,
        Sim.mend,
        Sim.hold,
        Sim.unhold,
        Sim.release,
        Sim.lose,
        Sim.sweep,
    )
}


def run(seed: int, steps: int = STEPS) -> None:
    """One history. AssertionError with the seed."""
    chance = random.Random(seed)
    with told_with(seed), _small_limits(chance):
        Sim(seed).run(steps)
