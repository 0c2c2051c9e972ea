"""Partitions and their replicas: how far each is, who leads and why, and what the lab lets happen to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypedDict

from ...coordinator.metadata import brokers
from ...coordinator.metadata.elections import Kind
from ...coordinator.metadata.state import NO_LEADER
from ...coordinator.metadata.state import Partition as PartitionState
from ..internal_topics import is_internal
from ..later import Later, after
from ..replica.partition import Partition
from ..watermark_policies import EVERY_TOPIC, parse_policy
from .lab import Lab
from .routes import Nothing, Refused, route
from .shapes import Range
from .watermark_routes import check_place

HELD = parse_policy("held")


class ReplicaView(TypedDict):
    """A replica. `end_offset`: how far it has the log; `lag`: what it lacks of the leader's. `follows`: false while its
    node is stopped, paused, cut off or held. `alive`: whether its node may lead. `policy`: its own; null: that of the
    partition.
    """

    node: int
    end_offset: int
    lag: int
    in_sync: bool
    follows: bool
    alive: bool
    policy: str | None


class ReplicatedView(TypedDict):
    """A partition with its replicas. `leader`: -1 without one. `why`: why that replica leads. `preferred`: the replica
    that comes first. `elr` and `last_known_elr`: the replicas that may lead when none is in sync (KIP-966).
    `isr_size`: how many replicas are said to be in sync by hand; null: as many as are. `problems`: what is not as it
    should be.
    """

    topic: str
    partition: int
    leader: int
    why: str
    preferred: int
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    elr: list[int]
    last_known_elr: list[int]
    min_insync_replicas: int
    isr_size: int | None
    high_watermark: int
    log_end_offset: int
    policy: str
    replicas: list[ReplicaView]
    problems: list[str]


class ReplicatedPartitionsView(TypedDict):
    partitions: Iterable[ReplicatedView]


class LossView(TypedDict):
    """What a log lost when a replica was elected that had less. `first_offset` and `end_offset`: the offsets that are
    gone, the last one not included. `committed`: how many of them were below the high watermark: more than none only
    after an unclean election. `records`: how many of each producer id, -1 without one; `is_whole`: false if there were
    too many batches to count all. `leader_before`: null if that is not known. `at_ms`: when.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    committed: int
    records: dict[str, int]
    is_whole: bool
    leader: int
    leader_before: int | None
    leader_epoch: int
    at_ms: int


class LossesView(TypedDict):
    """`records` and `committed_records`: of all losses since the start, also of those that are not listed any more."""

    records: int
    committed_records: int
    losses: list[LossView]


@dataclass(frozen=True)
class Listed:
    """Which partitions to show."""

    topic: Annotated[str | None, "Only those of this topic."] = None
    problems: Annotated[bool, "Only those that have a problem."] = False
    internal: Annotated[bool, "Whether those of internal topics are shown too."] = True


@dataclass(frozen=True)
class OnePartition:
    """A partition."""

    topic: Annotated[str, "The name of the topic."]
    partition: Annotated[int, "The number of the partition."]

    def find(self, lab: Lab) -> Partition:
        """Raises LookupError."""
        found = lab.broker.partitions.by_name.get((self.topic, self.partition))
        if found is None:
            raise LookupError(f"partition {self.topic}-{self.partition} does not exist")
        return found


@dataclass(frozen=True)
class Move(OnePartition):
    """A partition, and who is to lead it."""

    node: Annotated[int | None, "The node, which must be in sync; default: the next replica in sync."] = None


@dataclass(frozen=True)
class Elect(OnePartition):
    """A partition, and the kind of its election."""

    election: Annotated[
        Literal["preferred", "unclean"],
        "`preferred`: the replica that comes first. `unclean`: any that is alive, although records may be lost.",
    ] = "preferred"


@dataclass(frozen=True)
class Shrink(OnePartition):
    """A partition, and the replica that is to leave those in sync."""

    node: Annotated[int | None, "The node; default: all but the leader."] = None


@dataclass(frozen=True)
class InSyncSize:
    """How many replicas are said to be in sync."""

    size: Annotated[int | None, "How many; null: as many as are.", Range(0, 1000)]
    topic: Annotated[str | None, "The topic; default: all that are not internal; `*`: internal topics too."] = None
    partition: Annotated[int | None, "Only this partition; default: all partitions of the topic."] = None

    def __post_init__(self) -> None:
        check_place(self.topic, self.partition)


ABSENT = {404: "the partition does not exist"}
SHRINKS = {404: "the partition does not exist", 409: "the node leads it, or has no replica of it"}
CHANGES = {404: "the partition does not exist", 409: "no replica may lead it now, or none needs to"}


@route("GET /v1/partitions", example=Listed(problems=True), errors={404: "the topic does not exist"})
def partitions(lab: Lab, asked: Listed) -> ReplicatedPartitionsView:
    """Lists partitions with their replicas: who leads and why, what is in sync, and what is wrong."""
    if asked.topic is not None and asked.topic not in lab.broker.image.topics:
        raise LookupError(f"topic {asked.topic} does not exist")
    return {"partitions": _listed(lab, asked)}


def _listed(lab: Lab, asked: Listed) -> Iterator[ReplicatedView]:
    names = [asked.topic] if asked.topic is not None else sorted(lab.broker.image.topics)
    for name in names:
        if not asked.internal and is_internal(name):
            continue
        for one in list(lab.broker.partitions.of_topic(name)):
            view = described(lab, one)
            if view["problems"] or not asked.problems:
                yield view


@route("GET /v1/partitions/{topic}/{partition}", example=OnePartition("orders", 0), errors=ABSENT)
def partition_replicas(lab: Lab, asked: OnePartition) -> ReplicatedView:
    """Shows a partition with its replicas."""
    return described(lab, asked.find(lab))


@route("POST /v1/partitions/{topic}/{partition}/move", example=Move("orders", 0), errors=CHANGES)
def move_leader(lab: Lab, asked: Move) -> Later[ReplicatedView]:
    """Lets another replica in sync lead a partition; answers when it does."""
    controller = lab.broker.metadata.controller
    asked.find(lab)
    return _changed(lab, asked, partial(brokers.lead, controller, asked.topic, asked.partition, asked.node))


@route("POST /v1/partitions/{topic}/{partition}/elect", example=Elect("orders", 0), errors=CHANGES)
def elect_leader(lab: Lab, asked: Elect) -> Later[ReplicatedView]:
    """Elects the leader of a partition, as ElectLeaders does; answers when it leads."""
    controller, kind = lab.broker.metadata.controller, Kind[asked.election.upper()]
    asked.find(lab)
    elected = lab.broker.metadata.submit(lambda: brokers.elect(controller, kind, [(asked.topic, asked.partition)]))
    lab.broker.turn.settle_soon()

    def shown(done: Later[list[brokers.Elected]]) -> ReplicatedView:
        for _, _, error in done.get():
            if error is not None:
                raise error
        return described(lab, asked.find(lab))

    return after(elected, shown)


@route("POST /v1/partitions/{topic}/{partition}/shrink", example=Shrink("orders", 0), errors=SHRINKS)
def shrink_isr(lab: Lab, asked: Shrink) -> Later[ReplicatedView]:
    """Takes replicas of a partition out of those in sync. They are held until their policy changes: `POST /v1/release`
    with the node.
    """
    found, broker = asked.find(lab), lab.broker
    left = [one for one in found.replicas if one != found.leader and asked.node in (None, one)]
    if asked.node is not None and not left:
        why = "leads it" if asked.node == found.leader else "has no replica of it"
        raise Refused(409, f"{asked.topic}-{asked.partition}: node {asked.node} {why}")
    for one in left:
        broker.policies.set_follower(asked.topic, asked.partition, one, HELD)
    broker.turn.event(broker.replicas.configure)
    controller = broker.metadata.controller
    return _changed(lab, asked, partial(brokers.shrink, controller, asked.topic, asked.partition, left))


@route("POST /v1/isr-size", example=InSyncSize(1, "orders"), errors=ABSENT)
def isr_size(lab: Lab, asked: InSyncSize) -> ReplicatedPartitionsView:
    """Says how many replicas are in sync, so that one broker alone can answer NOT_ENOUGH_REPLICAS: `acks=all` is
    refused where they are fewer than `min.insync.replicas`, and high watermarks stand still.
    """
    every = lab.broker.partitions.by_name.values()
    found = [
        one
        for one in every
        if asked.topic == EVERY_TOPIC
        or (asked.topic is None and not is_internal(one.topic))
        or (one.topic == asked.topic and asked.partition in (None, one.index))
    ]
    if asked.topic is not None and not found:
        raise LookupError(f"topic {asked.topic} does not exist, or has no such partition")
    lab.broker.policies.set_in_sync(asked.topic, asked.partition, asked.size)
    lab.broker.turn.event(lab.broker.replicas.configure)
    return {"partitions": (described(lab, one) for one in found)}


@route("GET /v1/losses", example=Nothing())
def losses(lab: Lab, asked: Nothing) -> LossesView:
    """Lists which records were lost in elections, the last thousand times that a log was cut."""
    leaders = lab.broker.replicas.leaders
    return {
        "records": leaders.records_cut,
        "committed_records": leaders.committed_records_cut,
        "losses": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "first_offset": one.first_offset,
                "end_offset": one.end_offset,
                "committed": one.committed,
                "records": {str(producer): count for producer, count in one.records.items()},
                "is_whole": one.is_whole,
                "leader": one.leader,
                "leader_before": one.leader_before,
                "leader_epoch": one.leader_epoch,
                "at_ms": one.at_ms,
            }
            for one in leaders.losses
        ],
    }


def _changed(lab: Lab, asked: OnePartition, handler: brokers.Handler) -> Later[ReplicatedView]:
    done = lab.broker.metadata.submit(handler)
    lab.broker.turn.settle_soon()

    def shown(done: Later[None]) -> ReplicatedView:
        done.get()
        return described(lab, asked.find(lab))

    return after(done, shown)


# views


def described(lab: Lab, partition: Partition) -> ReplicatedView:
    """Raises LookupError if the partition was deleted meanwhile."""
    state = lab.broker.image.partitions.get((partition.topic_id, partition.index))
    if state is None:
        raise LookupError(f"partition {partition.name} does not exist")
    return {
        "topic": partition.topic,
        "partition": partition.index,
        "leader": state.leader,
        "why": _why(lab, state),
        "preferred": state.replicas[0],
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "isr": list(state.isr),
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "min_insync_replicas": partition.min_insync_replicas,
        "isr_size": partition.isr_by_hand,
        "high_watermark": partition.high_watermark,
        "log_end_offset": partition.end_offset,
        "policy": str(partition.follower.policy),
        "replicas": [_replica(lab, partition, state, node) for node in state.replicas],
        "problems": list(_problems(lab, partition, state)),
    }


def _replica(lab: Lab, partition: Partition, state: PartitionState, node: int) -> ReplicaView:
    end, replicas = partition.end_offset, partition.replica_set
    own, follows, policy = end, True, None
    if replicas is not None:
        own = replicas.end_of(node, end, min(end, partition.follower.replicated))
        follows = lab.broker.nodes.follows(node, state.leader)
        policy = replicas.policy_of(node)
    return {
        "node": node,
        "end_offset": own,
        "lag": end - own,
        "in_sync": node in state.isr,
        "follows": follows,
        "alive": _is_alive(lab, node),
        "policy": None if policy is None else str(policy),
    }


def _is_alive(lab: Lab, node: int) -> bool:
    found = lab.broker.image.brokers.get(node)
    return found is not None and found.is_active


def _why(lab: Lab, state: PartitionState) -> str:
    """Says why the leader leads."""
    preferred = state.replicas[0]
    if state.leader == NO_LEADER:
        wanted = state.isr or state.elr or state.last_known_elr
        awaited = " or ".join(map(str, wanted)) or "none"
        return f"no leader: of the replicas that have all committed records ({awaited}) none is alive"
    if state.leader == preferred:
        return "it is the preferred replica"
    if not _is_alive(lab, preferred):
        return f"the preferred replica {preferred} is not alive"
    if preferred not in state.isr:
        return f"the preferred replica {preferred} is not in sync"
    return f"the preferred replica {preferred} has not been elected again"


def _problems(lab: Lab, partition: Partition, state: PartitionState) -> Iterator[str]:
    if partition.offline:
        yield "its log directory is offline"
    if state.leader == NO_LEADER:
        yield "no leader"
    elif not lab.broker.nodes.serves(state.leader):
        yield f"node {state.leader}, which leads, does not answer"
    if partition.unheard is not None and partition.leader != state.leader:
        yield f"node {partition.leader}, which is cut off, leads on in epoch {partition.leader_epoch}"
    for node, stale in partition.stale.items():
        yield f"node {node}, which is cut off, leads on in epoch {stale.leader_epoch}: what it takes is lost"
    if len(state.isr) < len(state.replicas):
        yield f"{len(state.isr)} of {len(state.replicas)} replicas are in sync"
    if partition.is_under_min_isr:
        yield f"fewer in sync than min.insync.replicas={partition.min_insync_replicas}: acks=all is refused"
    if state.leader not in (NO_LEADER, state.replicas[0]):
        yield "not led by the preferred replica"
