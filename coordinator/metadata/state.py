"""The metadata of the cluster: what the records of `__cluster_metadata` add up to.

`MetadataState` is used twice. The controller's shard has one on a timeline, ahead of the commit; the broker has one of plain
dicts, to which committed records are applied, and serves from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...protocol import messages

NO_LEADER = -1
NO_LEADER_CHANGE = -2
TOPIC, BROKER, GROUP = 2, 4, 32  # config resource types


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: bytes


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as the controller knows it."""

    topic_id: bytes
    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]


class MetadataState:
    """Topics, partitions, configs, brokers, features and the next producer id. `make_dict` makes its tables."""

    def __init__(self, make_dict: Callable[[], Any] = dict) -> None:
        self.topics: Any = make_dict()  # name: Topic
        self.topic_names: Any = make_dict()  # id: name
        self.partitions: Any = make_dict()  # (topic id, index): Partition
        self.partition_counts: Any = make_dict()  # topic id: how many
        self.configs: Any = make_dict()  # (resource type, name): values by key
        self.brokers: Any = make_dict()  # id: Broker
        self.features: Any = make_dict()  # name: level
        self.others: Any = make_dict()  # what later issues give a meaning: kept, so that snapshots hold it
        self.scalars: Any = make_dict()  # next_producer_id

    @property
    def next_producer_id(self) -> int:
        value: int = self.scalars.get("next_producer_id", 0)
        return value

    def partitions_of(self, topic_id: bytes) -> Iterator[Partition]:
        for index in range(self.partition_counts.get(topic_id, 0)):
            yield self.partitions[topic_id, index]

    def config_of(self, kind: int, name: str) -> dict[str, str]:
        found: dict[str, str] = self.configs.get((kind, name), {})
        return found

    def apply(self, record: Any) -> None:
        """Applies a metadata record; those without a meaning yet are kept by what identifies them."""
        handler = _REPLAYS.get(type(record).__name__)
        if handler is not None:
            handler(self, record)

    # one method per record type

    def replay_topic(self, r: Any) -> None:
        self.topics[r.name] = Topic(r.name, r.topic_id)
        self.topic_names[r.topic_id] = r.name
        self.partition_counts[r.topic_id] = 0

    def replay_remove_topic(self, r: Any) -> None:
        name = self.topic_names.pop(r.topic_id, None)
        if name is None:
            return
        del self.topics[name]
        for index in range(self.partition_counts.pop(r.topic_id, 0)):
            self.partitions.pop((r.topic_id, index), None)
        self.configs.pop((TOPIC, name), None)

    def replay_partition(self, r: Any) -> None:
        key = (r.topic_id, r.partition_id)
        if key not in self.partitions:
            self.partition_counts[r.topic_id] = max(self.partition_counts.get(r.topic_id, 0), r.partition_id + 1)
        self.partitions[key] = Partition(
            r.topic_id,
            r.partition_id,
            tuple(r.replicas),
            tuple(r.isr),
            r.leader,
            r.leader_epoch,
            r.partition_epoch,
            tuple(r.directories),
            tuple(r.eligible_leader_replicas or ()),
            tuple(r.last_known_elr or ()),
        )

    def replay_partition_change(self, r: Any) -> None:
        before = self.partitions.get((r.topic_id, r.partition_id))
        if before is None:
            return
        changes: dict[str, Any] = {"partition_epoch": before.partition_epoch + 1}
        if r.isr is not None:
            changes["isr"] = tuple(r.isr)
        if r.replicas is not None:
            changes["replicas"] = tuple(r.replicas)
        if r.directories is not None:
            changes["directories"] = tuple(r.directories)
        if r.eligible_leader_replicas is not None:
            changes["elr"] = tuple(r.eligible_leader_replicas)
        if r.last_known_elr is not None:
            changes["last_known_elr"] = tuple(r.last_known_elr)
        if r.leader != NO_LEADER_CHANGE:
            changes |= {"leader": r.leader, "leader_epoch": before.leader_epoch + 1}
        self.partitions[r.topic_id, r.partition_id] = replace(before, **changes)

    def replay_config(self, r: Any) -> None:
        key = (r.resource_type, r.resource_name)
        values = dict(self.configs.get(key, ()))
        if r.value is None:
            values.pop(r.name, None)
        else:
            values[r.name] = r.value
        if values:
            self.configs[key] = values
        else:
            self.configs.pop(key, None)

    def replay_register_broker(self, r: Any) -> None:
        self.brokers[r.broker_id] = Broker(
            r.broker_id,
            r.broker_epoch,
            r.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port) for e in r.end_points),
            r.rack,
            r.fenced,
            r.in_controlled_shutdown,
            tuple(r.log_dirs),
        )

    def replay_broker_registration_change(self, r: Any) -> None:
        before = self.brokers.get(r.broker_id)
        if before is None:
            return
        fenced = before.fenced if r.fenced == 0 else r.fenced == 1
        shutdown = before.in_controlled_shutdown or r.in_controlled_shutdown == 1
        self.brokers[r.broker_id] = replace(before, fenced=fenced, in_controlled_shutdown=shutdown)

    def replay_unregister_broker(self, r: Any) -> None:
        self.brokers.pop(r.broker_id, None)

    def replay_feature_level(self, r: Any) -> None:
        if r.feature_level:
            self.features[r.name] = r.feature_level
        else:
            self.features.pop(r.name, None)

    def replay_producer_ids(self, r: Any) -> None:
        self.scalars["next_producer_id"] = r.next_producer_id

    def keep(self, key: tuple[Any, ...], r: Any) -> None:
        self.others[key] = r

    def drop(self, key: tuple[Any, ...]) -> None:
        self.others.pop(key, None)

    def as_records(self) -> Iterator[Any]:
        """Records that make this state anew, in an order in which they can be applied: a snapshot."""
        for name, level in sorted(self.features.items(), key=lambda f: (f[0] != "metadata.version", f[0])):
            yield messages.FeatureLevelRecord(name=name, feature_level=level)
        for broker in self.brokers.values():
            yield broker_record(broker)
        for topic in self.topics.values():
            yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
            for partition in self.partitions_of(topic.id):
                yield partition_record(partition)
        for (kind, name), values in self.configs.items():
            for key, value in values.items():
                yield messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        if self.next_producer_id:
            last = next(iter(self.brokers.values()), None)
            yield messages.ProducerIdsRecord(
                broker_id=last.id if last else -1, broker_epoch=last.epoch if last else -1, next_producer_id=self.next_producer_id
            )
        yield from self.others.values()


def partition_record(p: Partition) -> Any:
    return messages.PartitionRecord(
        partition_id=p.index,
        topic_id=p.topic_id,
        replicas=list(p.replicas),
        isr=list(p.isr),
        leader=p.leader,
        leader_epoch=p.leader_epoch,
        partition_epoch=p.partition_epoch,
        directories=list(p.directories),
        eligible_leader_replicas=list(p.elr) or None,
        last_known_elr=list(p.last_known_elr) or None,
    )


def broker_record(b: Broker) -> Any:
    endpoint = messages.RegisterBrokerRecord.BrokerEndpoint
    return messages.RegisterBrokerRecord(
        broker_id=b.id,
        incarnation_id=b.incarnation_id,
        broker_epoch=b.epoch,
        end_points=[endpoint(name=e.name, host=e.host, port=e.port) for e in b.endpoints],
        features=broker_features(messages.RegisterBrokerRecord.BrokerFeature),
        rack=b.rack,
        fenced=b.fenced,
        in_controlled_shutdown=b.in_controlled_shutdown,
        log_dirs=list(b.log_dirs),
    )


def broker_features(feature: Any) -> list[Any]:
    """The feature ranges that this broker supports, as registrations carry them."""
    from ...protocol.features import supported

    return [feature(name=name, min_supported_version=low, max_supported_version=high) for name, (low, high) in supported().items()]


def _kept(*fields: str) -> Callable[[MetadataState, Any], None]:
    """Replays a record by keeping it under its identifying fields."""

    def replay(state: MetadataState, r: Any) -> None:
        state.keep((type(r).__name__.removeprefix("Remove"), *(getattr(r, f) for f in fields)), r)

    return replay


def _dropped(of: str, *fields: str) -> Callable[[MetadataState, Any], None]:
    def replay(state: MetadataState, r: Any) -> None:
        state.drop((of, *(getattr(r, f) for f in fields)))

    return replay


def _keep_quota(state: MetadataState, r: Any) -> None:
    key = ("ClientQuotaRecord", tuple((e.entity_type, e.entity_name) for e in r.entity), r.key)
    if r.remove:
        state.drop(key)
    else:
        state.keep(key, r)


_REPLAYS: dict[str, Callable[[MetadataState, Any], None]] = {
    "TopicRecord": MetadataState.replay_topic,
    "RemoveTopicRecord": MetadataState.replay_remove_topic,
    "PartitionRecord": MetadataState.replay_partition,
    "PartitionChangeRecord": MetadataState.replay_partition_change,
    "ConfigRecord": MetadataState.replay_config,
    "RegisterBrokerRecord": MetadataState.replay_register_broker,
    "BrokerRegistrationChangeRecord": MetadataState.replay_broker_registration_change,
    "UnregisterBrokerRecord": MetadataState.replay_unregister_broker,
    "FeatureLevelRecord": MetadataState.replay_feature_level,
    "ProducerIdsRecord": MetadataState.replay_producer_ids,
    "RegisterControllerRecord": _kept("controller_id"),
    "UnregisterControllerRecord": _dropped("RegisterControllerRecord", "controller_id"),
    "AccessControlEntryRecord": _kept("id"),
    "RemoveAccessControlEntryRecord": _dropped("AccessControlEntryRecord", "id"),
    "UserScramCredentialRecord": _kept("name", "mechanism"),
    "RemoveUserScramCredentialRecord": _dropped("UserScramCredentialRecord", "name", "mechanism"),
    "DelegationTokenRecord": _kept("token_id"),
    "RemoveDelegationTokenRecord": _dropped("DelegationTokenRecord", "token_id"),
    "ClientQuotaRecord": _keep_quota,
}
