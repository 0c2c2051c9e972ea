"""Stories over nodes: three of ottla in memory, whose time is virtual, and three brokers of Apache Kafka, or what they
said. Kafka's three start once for all stories, and each story finds them whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ottla.broker.net.dispatch import Refused
from ottla.broker.peer import Peer
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..oracle.cluster import KafkaCluster
from .at_once import AT_ONCE
from .differential import Pair, Tally
from .node_world import happens
from .poll import until
from .transcripts import Asks, Transcript
from .wire import Closed, Wire
from .world import Answer, World

NODES = (1, 2, 3)
RACKS = ("a", "b", "c")
SESSION_MS = 12_000
SETTINGS: dict[str, object] = {
    "broker.session.timeout.ms": SESSION_MS,
    "broker.heartbeat.interval.ms": 1000,
    "auto.leader.rebalance.enable": "false",
    "group.consumer.assignment.interval.ms": 0,
    "group.initial.rebalance.delay.ms": 0,
    "group.share.assignment.interval.ms": 0,
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 3,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "share.coordinator.state.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 3,
}
COMPACTED = {"cleanup.policy": "compact"}
INTERNAL: dict[str, tuple[Sequence[list[int]], dict[str, str]]] = {
    "__consumer_offsets": (([1, 2, 3], [2, 3, 1], [3, 1, 2]), COMPACTED),
    "__transaction_state": (([1, 2, 3], [2, 3, 1], [3, 1, 2]), {**COMPACTED, "min.insync.replicas": "2"}),
    "__share_group_state": (([2, 3, 1],), {"min.insync.replicas": "2"}),
}
AFTERWARDS_MS = 3 * SESSION_MS
WITHIN_S = 60.0
WITHIN_MS = 120_000
NEW = {"start": "begin"}  # what ottla calls what happens to a node
Make = Callable[[int], Any]


class WorldWire:
    """A connection to a node of a world. Time passes until a reply is there, and a millisecond for each request: who
    asks again and again finds what takes time.
    """

    def __init__(self, world: World, node: int) -> None:
        self.world = world
        self.node = node
        self.peer = Peer("PLAINTEXT", "127.0.0.1:1")
        self.answers: list[Answer] = []

    def ask(self, name: str, version: int, message: Any) -> Any:
        self.say(name, version, message)
        return self.reply(name, version)

    def say(self, name: str, version: int, message: Any) -> None:
        self.world.pass_ms(1)
        self.world.dispatcher = self.world.dispatchers[self.node]
        try:
            self.answers.append(self.world.send(name, version, message, self.peer))
        except Refused:
            self.answers.append(Answer.of_closed())

    def reply(self, name: str, version: int) -> Any:
        answer = self.answers.pop(0)
        for _ in range(WITHIN_MS):
            if answer.done:
                break
            self.world.pass_ms(1)
        assert answer.done, f"node {self.node} does not answer {name} v{version}"
        if answer.closed:
            raise Closed
        return answer.reply

    def close(self) -> None:
        self.peer.lost()


class AtNode(Pair):
    """A connection to a node, of ours and of theirs."""

    def __init__(self, story: Story, node: int) -> None:
        self.story = story
        self.node = node
        address = story.kafka.address(node) if story.kafka else ""
        super().__init__("", address, story.tally, story.transcript)
        self.heard = story.heard
        self.trims = story.trims

    def _dial_ours(self) -> Asks:
        return WorldWire(self.story.world, self.node)

    def _wait_until_ours_has_read(self) -> None:
        """A node of a world reads what it is sent at once."""

    def until(self, name: str, version: int, message: Any, done: Callable[[Any], bool]) -> None:
        """Asks each until `done` says so of its reply. The last replies are compared."""
        self.awaited(name, version, message, done)

    def awaited(self, name: str, version: int, message: Any, done: Callable[[Any], bool]) -> Any:
        """As `until`; returns what ours said."""
        make, found = _made(message), list[Any]()

        def is_done() -> bool:
            self.story.world.pass_ms(10)
            found[:] = [self._one(self.ours, 0, name, version, make(0))]
            return done(found[0])

        until(is_done, f"{name} v{version} of ours", within=10)
        self._compare(name, version, found[0], self._awaited(name, version, make(1), done), message)
        return found[0]

    def agree(self, name: str, version: int, message: Any) -> None:
        """Waits until Kafka answers what ours does: each of its brokers hears of a change in its own time. `message`
        may be a function of the side.
        """
        self.agreed(name, version, message)

    def agreed(self, name: str, version: int, message: Any) -> tuple[Any, Any]:
        """As `agree`; returns both replies."""
        make = _made(message)
        mine = self._one(self.ours, 0, name, version, make(0))
        other = self._awaited(name, version, make(1), lambda said: not self.unlike(name, mine, said))
        self._compare(name, version, mine, other, message)
        assert not self.unlike(name, mine, other), f"node {self.node} does not agree on {name} v{version}"
        return mine, other

    def _awaited(self, name: str, version: int, message: Any, done: Callable[[Any], bool]) -> Any:
        """What Kafka says in the end; only that is written down."""
        written = self.transcript.written
        before, ends = len(written), time.monotonic() + WITHIN_S
        while True:
            other = self._one(self.theirs, 1, name, version, message)
            if self.transcript.playing or done(other) or time.monotonic() > ends:
                return other
            del written[before:]
            time.sleep(0.05)  # another process can only be polled


class Story:
    """Requests to nodes, and what happens to the nodes."""

    def __init__(self, kafka: KafkaCluster | None, tally: Tally, transcript: Transcript, **settings: str) -> None:
        """`kafka` is None where the transcript is played. `settings`: of ours."""
        self.kafka = kafka
        self.tally = tally
        self.transcript = transcript
        self.heard: dict[str, set[str]] = {}
        self.trims: dict[str, Callable[[Any], None]] = {"Metadata": of_one_life, "DescribeTopicPartitions": of_one_life}
        self.running = set(NODES)
        self.world = World(
            None,
            0,
            **{"ottla.nodes": "3", "ottla.nodes.racks": ",".join(RACKS)},
            **{key: str(value) for key, value in (AT_ONCE | SETTINGS).items()} | settings,
        )
        self._at: dict[int, AtNode] = {}
        for name, (placed, configs) in INTERNAL.items():
            assert self.at(1).ours.ask("CreateTopics", 7, creation(name, *placed, **configs)).topics[0].error_code == 0

    def at(self, node: int) -> AtNode:
        """The connection to a node."""
        if node not in self._at:
            self._at[node] = self.beside(node)
        return self._at[node]

    def beside(self, node: int) -> AtNode:
        """Another connection."""
        return AtNode(self, node)

    def errors(self, name: str) -> set[str]:
        """The errors that Kafka's replies to this API had in the story."""
        return self.heard.get(name, set())

    def happens(self, what: str, node: int, then_ms: int = AFTERWARDS_MS) -> None:
        """`stop`, `kill`, `pause`, `resume` or `start`. Then so much time passes for ours, and sessions expire."""
        if what in ("stop", "kill") and node in self._at:
            self._at.pop(node).close()
        happens(self.world, NEW.get(what, what), node)
        if self.kafka:
            self.kafka.happens(what, node)
        if what in ("start", "resume"):
            self.running.add(node)
        else:
            self.running.discard(node)
        self.world.pass_ms(then_ms)

    def topic(self, name: str, *placed: list[int], **configs: str) -> tuple[bytes, bytes]:
        """Creates a topic whose partitions have these replicas; its id here and there."""
        configs = {key.replace("_", "."): value for key, value in configs.items()}
        at = min(self.running)
        mine, other = self.at(at).ask("CreateTopics", 7, creation(name, *placed, **configs))
        assert other.topics[0].error_code == 0, other
        self.knows(name)
        return mine.topics[0].topic_id, other.topics[0].topic_id

    def knows(self, *topics: str) -> None:
        """Waits until each node that runs knows what the controller has decided of topics, and serves it."""
        for node in sorted(self.running):
            for topic in topics:
                self.at(node).agree("DescribeTopicPartitions", 0, description(topic))
                mine, _ = self.at(node).agreed("Metadata", 13, metadata(topic))
                indexes = [one.partition_index for one in mine.topics[0].partitions]
                if topic not in INTERNAL:
                    self.at(node).agree("ListOffsets", 7, ends(topic, *indexes))

    def state(self, topic: str, index: int = 0) -> tuple[int, int, list[int], list[int], list[int]]:
        """The leader of a partition, its epoch, the replicas in sync, the eligible ones and those that were last: what
        each node that runs says.
        """
        self.knows(topic)
        reply = self.at(min(self.running)).ours.ask("DescribeTopicPartitions", 0, description(topic))
        found = reply.topics[0].partitions[index]
        lists = found.isr_nodes, found.eligible_leader_replicas or [], found.last_known_elr or []
        isr, eligible, last = (sorted(nodes) for nodes in lists)
        return found.leader_id, found.leader_epoch, isr, eligible, last

    def close(self) -> None:
        for one in self._at.values():
            one.close()


def of_one_life(reply: Any) -> None:
    """Brokers name any that is alive as the controller. The coordinators' topics of Kafka have been through many
    stories.
    """
    if hasattr(reply, "controller_id"):
        reply.controller_id = int(reply.controller_id > 0)
    for topic in reply.topics:
        for part in topic.partitions if topic.name in INTERNAL else ():
            part.leader_epoch = 0


def _made(message: Any) -> Make:
    return message if callable(message) else lambda side: message


# requests


def creation(name: str, *placed: list[int], **configs: str) -> Any:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    topic.assignments = [
        r.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(placed)
    ]
    topic.configs = [r.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    return r(topics=[topic], timeout_ms=10_000)


def description(*topics: str) -> Any:
    r = m.DescribeTopicPartitionsRequest
    return r(topics=[r.TopicRequest(name=name) for name in sorted(topics)])


def metadata(*topics: str) -> Any:
    r = m.MetadataRequest
    return r(topics=[r.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False)


def ends(
    topic: str, *indexes: int, timestamp: int = -1, epoch: int = -1, isolation: int = 0, replica_id: int = 0
) -> Any:
    """A request for offsets, by default as of a replica, which sees the whole log."""
    r = m.ListOffsetsRequest
    parts = [
        r.ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index in indexes
    ]
    topics = [r.ListOffsetsTopic(name=topic, partitions=parts)]
    return r(replica_id=replica_id, isolation_level=isolation, topics=topics)


def group_at(partition: int, name: str) -> str:
    """A group's or a transaction's id whose coordinator's partition is this one of three."""
    return next(found for n in range(100) if partition_for(found := f"{name}{n}", 3) == partition)


# Kafka's brokers between stories


def prepare(kafka: KafkaCluster) -> None:
    """Creates the coordinators' topics where the stories expect them."""
    with Wire(kafka.address(1)) as wire:
        for name, (placed, configs) in INTERNAL.items():
            asked = creation(name, *placed, **configs)

            def is_there(asked: Any = asked) -> bool:
                code = wire.ask("CreateTopics", 7, asked).topics[0].error_code
                return code in (0, Errors.TOPIC_ALREADY_EXISTS)

            until(is_there, name)
    lead_again(kafka)


def restore(kafka: KafkaCluster) -> None:
    """As `lead_again`, after brokers may have been stopped or paused."""
    for node, part in kafka.parts.items():
        kafka.happens("resume" if part.is_running else "start", node)
    lead_again(kafka)


def lead_again(kafka: KafkaCluster) -> None:
    """Waits until all brokers follow, and each leads what it led at the beginning."""
    e = m.ElectLeadersRequest
    named = [e.TopicPartitions(topic=name, partitions=list(range(len(INTERNAL[name][0])))) for name in INTERNAL]
    election = e(election_type=0, topic_partitions=named, timeout_ms=10_000)
    with Wire(kafka.address(1)) as wire:

        def is_whole() -> bool:
            wire.ask("ElectLeaders", 2, election)
            return all(_is_whole(kafka, node) for node in NODES)

        until(is_whole, "Kafka's brokers lead and follow as at the beginning", within=120, every=0.2)


def _is_whole(kafka: KafkaCluster, node: int) -> bool:
    with Wire(kafka.address(node)) as wire:
        found = wire.ask("DescribeTopicPartitions", 0, description(*INTERNAL))
        known = wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    return len(known.brokers) == len(NODES) and all(
        len(one.isr_nodes) == len(NODES) and one.leader_id == INTERNAL[topic.name][0][one.partition_index][0]
        for topic in found.topics
        for one in topic.partitions
    )
