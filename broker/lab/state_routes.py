"""Views of the broker: state, topics, share groups, transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypedDict

from ...coordinator.metadata import topics as topic_changes
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..later import Later, after
from ..replica.partition import Partition
from . import share_views, transaction_views
from .lab import Lab
from .pages import Page
from .routes import Nothing, route


class StateView(TypedDict):
    """The broker. `coordinators`: the state of each shard."""

    cluster_id: str
    node_id: int
    ready: bool
    connections: int
    buffered_bytes: int
    loop_lag_ms_max: float
    features: Mapping[str, int]
    coordinators: Mapping[str, Mapping[str, object]]


class PartitionView(TypedDict):
    """A partition. `parked_produces` and `waiting_fetches`: the requests that wait for it."""

    partition: int
    leader_epoch: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    policy: str
    parked_produces: int
    waiting_fetches: int
    size_bytes: int
    state: str


class TopicView(TypedDict):
    """A topic. `topic_id`: 32 hexadecimal digits."""

    topic: str
    topic_id: str
    partitions: Iterable[PartitionView]


class TopicsView(TypedDict):
    """Topics by name. `next`: what `after` must be for the next page; null for the last one."""

    topics: Iterable[TopicView]
    next: str | None


class DeletedView(TypedDict):
    """The name of the topic that is deleted."""

    deleted: str


@dataclass(frozen=True)
class Topic:
    """A topic by its name."""

    topic: str


@dataclass(frozen=True)
class ShareGroup:
    """A share group by its name."""

    group: str


@dataclass(frozen=True)
class ShareTopic(ShareGroup):
    """A topic of a share group."""

    topic: str


@dataclass(frozen=True)
class SharePartition(ShareTopic):
    """A share-partition."""

    partition: Annotated[int, "The number of the partition."]


@route("GET /v1/state", example=Nothing())
def state(lab: Lab, asked: Nothing) -> StateView:
    """Shows cluster and node id, connections, features, and the state of each coordinator's shard."""
    broker, connections = lab.broker, lab.server.connections
    now = broker.schedule.monotonic_ms()
    return {
        "cluster_id": broker.cluster_id,
        "node_id": broker.config.node_id,
        "ready": broker.replicas.ready,
        "connections": len(connections),
        "buffered_bytes": sum(c.buffered_bytes() for c in connections),
        "loop_lag_ms_max": round(broker.metrics.loop_lag_ms_max, 3),
        "features": dict(broker.image.features.items()),
        "coordinators": {"__cluster_metadata-0": broker.metadata.runtime.describe(now)}
        | {host.partition.name: host.runtime.describe(now) for host in broker.hosts()},
    }


@route("GET /v1/topics", example=Page())
def topics(lab: Lab, asked: Page) -> TopicsView:
    """Lists topics and their partitions, with offsets, policies, and the number of requests that wait for them."""
    by_topic: dict[str, list[Partition]] = {}
    for (name, _), partition in lab.broker.partitions.by_name.items():
        by_topic.setdefault(name, []).append(partition)
    names, following = asked.of(by_topic)
    in_order = (sorted(by_topic[name], key=lambda p: p.index) for name in names)
    return {"topics": (_described(found[0].topic, found) for found in in_order), "next": following}


@route("GET /v1/topics/{topic}", example=Topic("orders"), errors={404: "the topic does not exist"})
def topic(lab: Lab, asked: Topic) -> TopicView:
    """Shows a topic and its partitions."""
    found = [p for (name, _), p in lab.broker.partitions.by_name.items() if name == asked.topic]
    if not found:
        raise LookupError(f"topic {asked.topic} does not exist")
    return _described(asked.topic, sorted(found, key=lambda p: p.index))


def _described(name: str, partitions: list[Partition]) -> TopicView:
    return {
        "topic": name,
        "topic_id": partitions[0].topic_id.hex(),
        "partitions": (describe(p) for p in partitions),
    }


def describe(partition: Partition) -> PartitionView:
    return {
        "partition": partition.index,
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": partition.start_offset,
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset,
        "log_end_offset": partition.end_offset,
        "policy": str(partition.follower.policy),
        "parked_produces": len(partition.parked),
        "waiting_fetches": len(partition.waiters),
        "size_bytes": partition.log.size if partition.log else 0,
        "state": "offline" if partition.offline else "opening" if partition.log is None else "online",
    }


@route(
    "DELETE /v1/topics/{topic}",
    example=Topic("seeded"),
    errors={404: "the topic does not exist", 409: "the topic cannot be deleted"},
)
def delete_topic(lab: Lab, asked: Topic) -> Later[DeletedView]:
    """Deletes a topic with its records."""
    metadata, name = lab.broker.metadata, asked.topic
    if name not in lab.broker.image.topics:
        raise LookupError(f"topic {name} does not exist")
    if not lab.broker.config["delete.topic.enable"]:
        raise ApiError(Errors.TOPIC_DELETION_DISABLED)
    outcome = metadata.submit(partial(topic_changes.delete_topics, metadata.controller, [(name, NO_UUID)]))
    lab.broker.turn.settle()

    def shown(done: Later[list[topic_changes.Deleted]]) -> DeletedView:
        for _, _, error in done.get():
            if error is not None:
                raise error
        return {"deleted": name}

    return after(outcome, shown)


NOT_LOADED = {404: "no member of the group has fetched from it"}


@route("GET /v1/share", example=Nothing())
def share_groups(lab: Lab, asked: Nothing) -> share_views.GroupsView:
    """Lists the share groups that have share-partitions in memory."""
    return share_views.groups(lab.broker)


@route("GET /v1/share/{group}", example=ShareGroup("orders"), errors=NOT_LOADED)
def share_group(lab: Lab, asked: ShareGroup) -> share_views.SharePartitionsView:
    """Shows the share-partitions of a group: offsets, lag, records in flight with their holders and locks, events."""
    return share_views.group(lab.broker, asked.group)


@route("GET /v1/share/{group}/{topic}", example=ShareTopic("orders", "orders"), errors=NOT_LOADED)
def share_topic(lab: Lab, asked: ShareTopic) -> share_views.SharePartitionsView:
    """Shows the share-partitions of a topic."""
    return share_views.group(lab.broker, asked.group, asked.topic)


@route("GET /v1/share/{group}/{topic}/{partition}", example=SharePartition("orders", "orders", 0), errors=NOT_LOADED)
def share_partition(lab: Lab, asked: SharePartition) -> share_views.SharePartitionsView:
    """Shows a share-partition, with all its records in flight."""
    return share_views.group(lab.broker, asked.group, asked.topic, asked.partition)


@route("GET /v1/transactions", example=Nothing())
def transactions(lab: Lab, asked: Nothing) -> transaction_views.TransactionsView:
    """Shows open transactions, and the partitions whose last stable offset is held back, with the producer that does
    it.
    """
    return transaction_views.transactions(lab.broker)


@route("GET /v1/transactions/all", example=Nothing())
def all_transactions(lab: Lab, asked: Nothing) -> transaction_views.TransactionsView:
    """Shows every transactional id, and the partitions whose last stable offset is held back."""
    return transaction_views.transactions(lab.broker, everything=True)
