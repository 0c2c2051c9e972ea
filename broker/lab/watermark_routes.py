"""Control of high watermarks: hold, release, step and policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from ...storage.segment import IndexDamaged
from ..internal_topics import is_internal
from ..replica.partition import Partition
from ..watermark_policies import EVERY_TOPIC, Policy, parse_policy
from .encode import Turns
from .lab import Lab
from .routes import route
from .shapes import Invalid, Range
from .state_routes import PartitionView, describe

STEP_MOVES = 100  # of high watermarks, per turn of the loop
ABSENT = {404: "the topic or the partition does not exist"}


class TopicPartitionView(PartitionView):
    """A partition with its topic."""

    topic: str


class PartitionsView(TypedDict):
    """The partitions that were chosen, afterwards."""

    partitions: Iterable[TopicPartitionView]


def check_place(topic: str | None, partition: int | None) -> None:
    """Raises Invalid for a partition of no topic in particular."""
    if partition is not None and topic in (None, EVERY_TOPIC):
        raise Invalid("partition", "needs the name of its topic")


@dataclass(frozen=True)
class Place:
    """Partitions to control."""

    topic: Annotated[str | None, "The topic; default: all that are not internal; `*`: internal topics too."] = None
    partition: Annotated[int | None, "Only this partition; default: all partitions of the topic."] = None

    def __post_init__(self) -> None:
        check_place(self.topic, self.partition)

    def partitions(self, lab: Lab) -> list[Partition]:
        """Raises LookupError if the topic or the partition does not exist."""
        found = [
            p
            for p in lab.broker.partitions.by_name.values()
            if self.topic == EVERY_TOPIC
            or (self.topic is None and not is_internal(p.topic))
            or (p.topic == self.topic and self.partition in (None, p.index))
        ]
        if self.topic is not None and not found:
            place = f"topic {self.topic}" if self.partition is None else f"partition {self.topic}-{self.partition}"
            raise LookupError(f"{place} does not exist")
        return found


@dataclass(frozen=True)
class Followers(Place):
    """Partitions, or the followers of these partitions on a node."""

    node: Annotated[int | None, "Only the replicas on this node; default: all that have no policy of their own."] = None


@dataclass(frozen=True)
class Steps(Place):
    """Partitions, and how far their high watermarks move."""

    batches: Annotated[int, "How many whole batches.", Range(0)] = 1


@dataclass(frozen=True)
class PlacePolicy(Followers):
    """Partitions, and how their high watermarks follow their logs."""

    policy: Annotated[str, "immediate, held, lag=20ms, lag=20ms±5ms or bytes=4096."] = field(kw_only=True)


@route("POST /v1/hold", example=Followers("orders"), errors=ABSENT)
def hold(lab: Lab, asked: Followers) -> PartitionsView:
    """Freezes high watermarks."""
    return _set(lab, asked, parse_policy("held"))


@route("POST /v1/release", example=Followers("orders"), errors=ABSENT)
def release(lab: Lab, asked: Followers) -> PartitionsView:
    """Lets high watermarks follow their logs again, at once, also where a partition was held alone. With a node: its
    replicas have no policy of their own any more.
    """
    return _set(lab, asked, None)


@route("POST /v1/policy", example=PlacePolicy("orders", policy="lag=50ms±10ms"), errors=ABSENT)
def policy(lab: Lab, asked: PlacePolicy) -> PartitionsView:
    """Sets how high watermarks follow their logs."""
    try:
        wanted = parse_policy(asked.policy)
    except ValueError as error:
        raise Invalid("policy", str(error)) from None
    return _set(lab, asked, wanted)


def _set(lab: Lab, asked: Followers, wanted: Policy | None) -> PartitionsView:
    """Sets a policy, or takes it away."""
    found, policies = asked.partitions(lab), lab.broker.policies
    if asked.node is not None:
        node = lab.broker.node_lives.find(asked.node).id
        if wanted is None:
            policies.release_follower(asked.topic, asked.partition, node)
        else:
            policies.set_follower(asked.topic, asked.partition, node, wanted)
    elif wanted is None:
        policies.release(asked.topic, asked.partition)
    else:
        policies.set(asked.topic, asked.partition, wanted)
    lab.broker.turn.event(lab.broker.replicas.configure)
    return _view(found)


def _view(found: list[Partition]) -> PartitionsView:
    return {"partitions": ({"topic": p.topic, **describe(p)} for p in found)}


@route("POST /v1/step", example=Steps("orders", batches=2), errors=ABSENT)
def step(lab: Lab, asked: Steps) -> Turns[PartitionsView]:
    """Moves high watermarks forward by whole batches. A request that is aborted stops the steps."""
    return _steps(lab, asked.partitions(lab), asked.batches)


def _steps(lab: Lab, found: list[Partition], batches: int) -> Turns[PartitionsView]:
    moves = 0
    for _ in range(batches):
        before = moves
        for partition in found:
            moves += _step(lab, partition)
            if moves % STEP_MOVES == 0:
                yield
        if moves == before:
            break
    return _view(found)


def _step(lab: Lab, partition: Partition) -> bool:
    """Advances a high watermark by one batch; returns False if it is at the log end."""
    try:
        end = None if partition.log is None else partition.next_batch_end()
    except IndexDamaged:  # it is being rebuilt
        end = None
    if end is None:
        return False
    partition.follower.replicated = max(partition.follower.replicated, end)
    if partition.isr_by_hand is not None:  # as in the moment in which replicas leave
        lab.broker.turn.event(lambda: partition.advance(min(end, partition.leader_bound())))
    lab.broker.turn.event(lambda: lab.broker.turn.moved(partition))
    return True
