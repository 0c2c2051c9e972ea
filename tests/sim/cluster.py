"""A cluster under trouble: nodes that stop, crash, pause, fall behind, are drained, fenced and cut off, a network that
is parted, controllers that fail, elections of all kinds, topics that come and go, replicas that move, slow followers, a
process that starts again, and clients that find their way.

    python -m tests.sim cluster [seeds=20000] [seed=N]

The whole broker runs under virtual time on files in memory, with 3 to 5 nodes. `cluster_invariants` says what holds
after every step; at the end the trouble stops, and the cluster must heal. A failure prints its seed; `seed=N` repeats
it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from ottla.broker import bugs
from ottla.broker.config.nodes import Node, NodeRefused, NodeState
from ottla.broker.later import Later, drive
from ottla.broker.watermark_policies import parse_policy
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError

from ..support.world import World, told_with
from .cluster_clients import Client, Committer, Consumer, OfPartition, Producer
from .cluster_invariants import ALWAYS, SOMETIMES, Invariant
from .cluster_moves import MOVES, mend, reassign, turn_back
from .cluster_network import Check, Network
from .cluster_nodes import NODES
from .cluster_restarts import lose_tails, restart
from .cluster_sides import CONTROLLERS, SIDES, control, part
from .cluster_sides import NODES as NODES_WITH_SIDES
from .cluster_truth import Told, Truth

SETTINGS = {
    "offsets_topic_num_partitions": "2",
    "transaction_state_log_num_partitions": "1",
    "broker_session_timeout_ms": "3000",
    "broker_heartbeat_interval_ms": "500",
    "replica_lag_time_max_ms": "4000",
    "auto_leader_rebalance_enable": "true",
    "leader_imbalance_check_interval_seconds": "30",
}
POLICIES = ("immediate", "immediate", "held", "lag=50ms", "lag=300ms±200ms", "lag=6000ms", "bytes=100")
GROUPS = ("g", "h")
HEAL_MS = 120_000
_created: dict[int, Any] = {}  # by number of nodes, files with the topics, of which every history begins with a copy


class Sim:
    """One history, determined by its seed. In every second one the network is parted, and the controller may be at a
    node. `is_early`: one of those before there were sides of the network, with the actions of then.
    """

    def __init__(self, seed: int, is_early: bool = False) -> None:
        self.chance = random.Random(seed)
        self.trouble = True
        self.has_sides = seed % 2 == 0 and not is_early
        self.nodes = self.chance.choice(NODES_WITH_SIDES if self.has_sides else (3, 3, 3, 4, 5))
        self.settings = {**SETTINGS, "ottla_nodes": str(self.nodes)}
        if self.has_sides:
            self.settings["ottla_controller_node"] = str(self.chance.choice(CONTROLLERS))
        self.world = _world(self.nodes, self.chance.randrange(1, 1 << 30), self.settings)
        self.past_ms = 0
        self.is_any_cut = False  # a node may have said what is not true any more
        self.producers: list[Producer] = []
        self.clients: list[Client] = []
        self.unclean_topics: set[str] = set()
        self.asks_unclean = False
        self.made = 0
        self.changes: list[Later[None]] = []
        self.truth = Truth(self.world)
        self.truth.followed = self._followed
        self.always: list[Invariant] = [one(self) for one in (*ALWAYS, *MOVES, *NODES, *SIDES)]
        self.sometimes: list[Invariant] = [one(self) for one in SOMETIMES]
        self.network = Network(self.world, self._delivered)
        self.bugs = bugs.count()
        for group in GROUPS:
            self.clients.append(Committer(self, group))
        left_out = (*(() if self.has_sides else OF_SIDES), *(LATER if is_early else ()))
        actions = [name for name in ACTIONS if name not in left_out]
        self.weights = {name: self.chance.choice((0, 1, 1, 3)) for name in actions}  # some never happen
        self.weights["client"] = 6
        self.weights["restart"] = min(self.weights["restart"], 1)

    @property
    def now_ms(self) -> int:
        return self.past_ms + self.world.schedule.monotonic_ms()

    @property
    def every(self) -> tuple[Invariant, ...]:
        return (*self.always, *self.sometimes)

    def _followed(self, told: Told, before: Any, after: Any) -> None:
        for one in self.every:
            one.followed(told, before, after)

    def _delivered(self, node: int, name: str, message: Any) -> Check:
        checks = [one.delivered(node, name, message) for one in self.always]

        def passes(reply: Any) -> None:
            for check in filter(None, checks):
                check(reply)

        return passes

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.chance.random() < 0.5:
                names = list(self.weights)
                (name,) = self.chance.choices(names, list(self.weights.values()))
                ACTIONS[name](self)
            self._pass(self.chance.choice((1, 5, 20, 100, 700, 3000)))
        self.heal()

    def _pass(self, ms: int) -> None:
        self.world.pass_ms(ms)
        for one in self.clients:
            one.step()
        self.clients = [one for one in self.clients if not one.is_done]
        self.check()

    def check(self) -> None:
        self.truth.read()
        for one in self.always:
            one.holds()
        if self.chance.random() < 0.1:
            for one in self.sometimes:
                one.holds()
        assert bugs.count() == self.bugs, "the broker has a bug"
        for change in self.changes:
            if change.done and change.error is not None:
                assert isinstance(change.error, NodeRefused | ApiError), change.error
        self.changes = [change for change in self.changes if not change.done]

    def happens(self, what: str, *about: Any) -> None:
        """Something happens to a node, or to the network."""
        lives = self.world.broker.node_lives
        self.changes.append(drive(getattr(lives, what)(*about)))
        self.is_any_cut |= what in ("cut", "part")
        self.truth.note_cuts()
        self.world.broker.turn.settle()

    def any_node(self) -> Node:
        return self.chance.choice(list(self.world.broker.nodes))

    def a_topic(self) -> str:
        return self.chance.choice([name for name in self.world.broker.image.topics if not name.startswith("__")])

    def admin(self, name: str, version: int, message: Any) -> None:
        """A request whose reply is not waited for; if it is there at once, it is judged."""
        up = self.network.up()
        if up:
            self.network.send(self.chance.choice(up), name, version, message).reply()

    def client(self) -> None:
        if len(self.clients) > 6:
            return
        chance, topic = self.chance, self.a_topic()
        found = self.world.broker.image.topics[topic]
        index = chance.randrange(self.world.broker.image.partition_counts[found.id])
        if chance.random() < 0.4:
            self.clients.append(Consumer(self, topic, index, chance.random() < 0.7))
            return
        self.made += 1
        is_idempotent = chance.random() < 0.7
        acks = -1 if is_idempotent or chance.random() < 0.5 else 1
        one = Producer(self, topic, index, self.made, acks, is_idempotent)
        self.producers.append(one)
        self.clients.append(one)

    def live(self) -> None:
        """Something happens to a node that can happen to it now."""
        node = self.any_node()
        may = {
            NodeState.RUNNING: ("stop", "kill", "pause", "hold", "release", "fence", "unfence", "drain"),
            NodeState.STOPPED: ("begin", "begin", "hold", "release"),
            NodeState.PAUSED: ("resume", "resume", "kill"),
        }
        what = self.chance.choice(may.get(node.state, ("hold", "release")))
        # a node registers as soon as it begins, unless it is cut off; until then it counts as a replica in sync
        broker = self.world.broker
        has_crashed = node.id in broker.log_directories.crashed
        if what == "begin" and has_crashed and not node.is_cut and not broker.metadata.quorum.missing:
            lose_tails(self.world, node, self.chance)
        self.happens(what, node)

    def cut(self) -> None:
        """A node is cut off, or healed; or it is healed while it pauses, and goes on."""
        node = self.any_node()
        self.happens("heal" if node.is_cut else "cut", node)
        if node.is_cut and self.chance.random() < 0.3:
            for what in ("pause", "heal", "resume"):
                self.happens(what, node)
                self._pass(self.chance.choice((1, 100, 700)))

    def revive(self) -> None:
        self._mend(self.any_node())

    def slow(self) -> None:
        self._policy(self.a_topic(), self.chance.choice(POLICIES))

    def slow_coordinators(self) -> None:
        self._policy("__consumer_offsets", self.chance.choice(POLICIES))

    def _policy(self, topic: str, text: str) -> None:
        self.world.broker.policies.set(topic, None, parse_policy(text))
        self.world.broker.turn.event(self.world.broker.replicas.configure)

    def elect(self) -> None:
        kind = self.chance.choice((0, 0, 1))
        r = m.ElectLeadersRequest
        wanted = None
        if kind:
            self.asks_unclean = True
            wanted = [r.TopicPartitions(topic=self.a_topic(), partitions=[0])]
        self.admin("ElectLeaders", 2, r(election_type=kind, topic_partitions=wanted, timeout_ms=1000))

    def configure(self) -> None:
        topic, r = self.a_topic(), m.IncrementalAlterConfigsRequest
        if self.chance.random() < 0.7:
            name, value = "min.insync.replicas", self.chance.choice(("1", "2", "3"))
        else:
            name, value = "unclean.leader.election.enable", self.chance.choice(("true", "false"))
            self.unclean_topics.add(topic)
        config = r.AlterableConfig(name=name, config_operation=0, value=value)
        resource = r.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
        self.admin("IncrementalAlterConfigs", 1, r(resources=[resource]))

    def create(self) -> None:
        self.made += 1
        r = m.CreateTopicsRequest
        topic = r.CreatableTopic(
            name=f"x{self.made}",
            num_partitions=self.chance.randint(1, 3),
            replication_factor=self.chance.randint(1, 3),
        )
        self.admin("CreateTopics", 7, r(topics=[topic], timeout_ms=1000))

    def delete(self) -> None:
        topic = self.a_topic()
        if topic.startswith("x"):
            d = m.DeleteTopicsRequest
            self.admin("DeleteTopics", 6, d(topics=[d.DeleteTopicState(name=topic)], timeout_ms=1000))

    def add_partitions(self) -> None:
        topic = self.a_topic()
        count = self.world.broker.image.partition_counts[self.world.broker.image.topics[topic].id]
        r = m.CreatePartitionsRequest
        more = r.CreatePartitionsTopic(name=topic, count=count + 1, assignments=None)
        if count < 4:
            self.admin("CreatePartitions", 3, r(topics=[more], timeout_ms=1000))

    def stale(self) -> None:
        """A client with any epoch asks any node."""
        chance, topic = self.chance, self.a_topic()
        found = self.world.broker.image.topics[topic]
        state = self.world.broker.image.partitions[found.id, 0]
        epoch = state.leader_epoch + chance.choice((-1, 0, 0, 1))
        node = state.leader if state.leader >= 0 and chance.random() < 0.5 else self.any_node().id
        if chance.random() < 0.5:
            r = m.ListOffsetsRequest
            part = r.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
            call = self.network.send(
                node, "ListOffsets", 6, r(topics=[r.ListOffsetsTopic(name=topic, partitions=[part])])
            )
        else:
            o = m.OffsetForLeaderEpochRequest
            asked = o.OffsetForLeaderPartition(
                partition=0, current_leader_epoch=epoch, leader_epoch=chance.randint(0, state.leader_epoch)
            )
            wanted = o(topics=[o.OffsetForLeaderTopic(topic=topic, partitions=[asked])], replica_id=-1)
            call = self.network.send(node, "OffsetForLeaderEpoch", 4, wanted)
        call.reply()

    # the end

    def heal(self) -> None:
        """The trouble stops: all nodes are there, all replicas are in sync, and each client gets what it is owed."""
        self.trouble = False
        for topic in (*self.world.broker.image.topics, "__consumer_offsets"):
            self._policy(topic, "immediate")
        for one in self.clients:
            if isinstance(one, Producer):
                one.is_finishing = True
        for healing_ms in range(0, HEAL_MS, 500):
            for node in self.world.broker.nodes:
                self._mend(node)
            mend(self, healing_ms)
            self._pass(500)
            if self._is_healed():
                break
        else:
            raise AssertionError(f"does not heal: {self._situation()}")
        for invariant in self.sometimes:
            invariant.holds()

    def _mend(self, node: Node) -> None:
        lives = self.world.broker.node_lives
        if node.is_cut:
            self.happens("heal", node)
        if node.state is NodeState.STOPPED:
            self.happens("begin", node)
        elif node.state is NodeState.PAUSED:
            self.happens("resume", node)
        elif node.state is NodeState.RUNNING:
            if node.is_held:
                self.happens("release", node)
            if lives.is_fenced(node) or lives.is_drained(node):
                self.happens("unfence", node)

    def _is_healed(self) -> bool:
        for state in self.world.broker.image.partitions.values():
            if state.leader < 0 or set(state.isr) != set(state.replicas) or state.is_reassigned:
                return False
        for told, partition in self.truth.open():
            if partition.high_watermark < partition.end_offset or len(told.rows) < partition.end_offset:
                return False
        return all(self._is_settled(one) for one in self.clients)

    def _is_settled(self, one: Client) -> bool:
        if isinstance(one, Producer):
            return False
        if isinstance(one, Consumer):
            told = self.truth.partitions.get((one.topic_id, one.index))
            return told is None or one.rows == told.rows  # None: a node that was cut off told it of a topic of before
        return True

    def _situation(self) -> str:
        states = [
            told.state
            for told in self.truth.partitions.values()
            if len(told.state.isr) < len(told.state.replicas) or told.state.is_reassigned
        ]
        waiting = [vars(one) for one in self.clients if isinstance(one, OfPartition) and not self._is_settled(one)]
        return f"{states}; {waiting}"


ACTIONS: dict[str, Callable[[Sim], None]] = {
    one.__name__: one
    for one in (
        Sim.client,
        Sim.live,
        Sim.cut,
        Sim.revive,
        Sim.slow,
        Sim.slow_coordinators,
        Sim.elect,
        Sim.configure,
        Sim.create,
        Sim.delete,
        Sim.add_partitions,
        Sim.stale,
        reassign,
        restart,
        part,
        control,
        turn_back,
    )
}
OF_SIDES = ("part", "control")
LATER = ("turn_back",)


def _world(nodes: int, seed: int, settings: dict[str, str]) -> World:
    """A world with its topics: made once, then begun again from its files."""
    if nodes not in _created:
        world = World(**{**settings, "ottla_controller_node": "-1"})
        r = m.CreateTopicsRequest
        for name, partitions, factor in (("t", 2, 3), ("u", 1, 2), ("v", 1, 3)):
            made = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
            assert world.ask("CreateTopics", 7, r(topics=[made], timeout_ms=1000)).topics[0].error_code == 0
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        world.ask("FindCoordinator", 4, find)
        world.broker.stop()
        _created[nodes] = world.files
    world = World(copy.deepcopy(_created[nodes]), seed, **settings)  # ids that the copy does not have
    world.pass_ms(100)
    return world


def run(seed: int, steps: int = 50, is_early: bool = False) -> None:
    """One history. AssertionError with the seed."""
    with told_with(seed):
        Sim(seed, is_early).run(steps)
