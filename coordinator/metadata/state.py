"""The metadata of the cluster: the state that the records of `__cluster_metadata` describe.

`MetadataState` is used twice: the controller's shard has one on a timeline, ahead of the commit; the broker has one
with plain dicts, to which committed records are applied, and answers from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from ...protocol import messages
from ...protocol.features import METADATA_VERSION
from ..security.acls import Acl, acl_of
from ..timeline import TimelineDict
from .registration import Broker, Endpoint

K = TypeVar("K")
V = TypeVar("V")
Table = dict[K, V] | TimelineDict[K, V]
NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE, RECOVERED, RECOVERING = -1, 0, 1  # of the leader, after an unclean election (KIP-704)
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32  # config resource types


class Topic(NamedTuple):
    name: str
    id: bytes


@dataclass(slots=True)
class Partition:
    """A partition as the controller knows it; never changed."""

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
    adding: tuple[int, ...] = ()  # while the partition is reassigned: those of its replicas that are new
    removing: tuple[int, ...] = ()  # and those that leave it at the end
    is_recovering: bool = False  # an unclean election chose its leader, which has asked for no replicas in sync since

    @property
    def is_reassigned(self) -> bool:
        return bool(self.adding or self.removing)


class NewPartitions(Protocol):
    """New partitions of one topic, in the order of their numbers; at least one."""

    partitions: list[Partition]


class Shown(Protocol):
    def show(self) -> None: ...


class ManyRecords(Protocol):
    """Records that were applied to a state over this one."""

    staged: Shown


class Quota(NamedTuple):
    """What a client quota is for: pairs of entity type and name in order of the types, and the key of the limit."""

    entity: tuple[tuple[str, str | None], ...]
    key: str


class MetadataState:
    """Topics, partitions, configs, brokers, features and the next producer id. `make_dict` creates its tables."""

    def __init__(self, make_dict: Callable[[], Any] = dict) -> None:
        self.topics: Table[str, Topic] = make_dict()  # by name
        self.topic_names: Table[bytes, str] = make_dict()  # by id
        self.folded_names: Table[str, dict[str, None]] = (
            make_dict()
        )  # names that may collide, by the name with "_" for each "."
        self.partitions: Table[tuple[bytes, int], Partition] = make_dict()  # by topic id and index
        self.partition_counts: Table[bytes, int] = make_dict()  # by topic id
        self.reassigned: Table[tuple[bytes, int], None] = make_dict()  # the partitions whose reassignment goes on
        self.configs: Table[tuple[int, str], dict[str, str]] = make_dict()  # values by key, by resource type and name
        self.brokers: Table[int, Broker] = make_dict()  # by id
        self.features: Table[str, int] = make_dict()  # levels
        self.controllers: Table[int, messages.RegisterControllerRecord] = make_dict()  # by id
        self.acls: Table[bytes, messages.AccessControlEntryRecord] = make_dict()  # by id
        self.acl_ids: Table[Acl, bytes] = make_dict()  # ids of those, by content
        self.credentials: Table[tuple[str, int], messages.UserScramCredentialRecord] = (
            make_dict()
        )  # by user and mechanism
        self.tokens: Table[str, messages.DelegationTokenRecord] = make_dict()  # by id
        self.token_counts: Table[str, int] = make_dict()  # of those, by owner
        self.quotas: Table[Quota, messages.ClientQuotaRecord] = make_dict()
        self.order: Table[tuple[str, Hashable], None] = (
            make_dict()
        )  # the table and key of each record of those five, in order of arrival
        self.scalars: Table[str, int] = make_dict()  # next_producer_id

    def tables(self) -> list[Table[Hashable, object]]:
        """Returns all tables, in the order in which they were made."""
        return list(vars(self).values())

    @property
    def next_producer_id(self) -> int:
        return self.scalars.get("next_producer_id", 0)

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    def partitions_of(self, topic_id: bytes) -> Iterator[Partition]:
        for index in range(self.partition_counts.get(topic_id, 0)):
            yield self.partitions[topic_id, index]

    def config_of(self, kind: int, name: str) -> dict[str, str]:
        return self.configs.get((kind, name), {})

    def topic_value(self, topic: str, key: str) -> str | None:
        """Returns the value of a key as a topic, or else the cluster, configures it; None if neither does."""
        return self.config_of(TOPIC, topic).get(key, self.config_of(BROKER, "").get(key))

    def apply(self, record: object) -> None:
        """Applies a metadata record; a record without a meaning in ottla is stored under its identifying fields."""
        handler = _REPLAYS.get(type(record).__name__)
        if handler is not None:
            handler(self, record)

    def _to_change(self, table: Table[K, dict[str, V]], key: K) -> dict[str, V]:
        """Returns a value of a table, to be changed and put back: a copy, because values are never changed."""
        return dict(table.get(key, {}))

    def _remove_all(self, table: Table[K, V], keys: list[K]) -> None:
        """Removes those of very many keys that are there."""
        known = table.keys()
        there = [key for key in keys if key in known]
        if isinstance(table, TimelineDict):
            table.remove_all(there)
        else:
            for key in there:
                del table[key]

    # one method per record type

    def replay_topic(self, r: messages.TopicRecord) -> None:
        self.topics[r.name] = Topic(r.name, r.topic_id)
        self.topic_names[r.topic_id] = r.name
        folded = folded_name(r.name)
        if folded is not None:
            names = self._to_change(self.folded_names, folded)
            names[r.name] = None
            self.folded_names[folded] = names
        self.partition_counts[r.topic_id] = 0

    def replay_remove_topic(self, r: messages.RemoveTopicRecord) -> None:
        name = self.topic_names.pop(r.topic_id, None)
        if name is None:
            return
        del self.topics[name]
        folded = folded_name(name)
        if folded is not None:
            names = self._to_change(self.folded_names, folded)
            names.pop(name, None)
            _put_or_remove(self.folded_names, folded, names)
        gone = [(r.topic_id, index) for index in range(self.partition_counts.pop(r.topic_id, 0))]
        self._remove_all(self.partitions, gone)
        if self.reassigned:
            for key in gone:
                self.reassigned.pop(key, None)
        self.configs.pop((TOPIC, name), None)

    def replay_partition(self, r: messages.PartitionRecord) -> None:
        key = (r.topic_id, r.partition_id)
        if key not in self.partitions:
            self.partition_counts[r.topic_id] = max(self.partition_counts.get(r.topic_id, 0), r.partition_id + 1)
        made = self.partitions[key] = partition_of(r)
        if made.is_reassigned:
            self.reassigned[key] = None

    def replay_new_partitions(self, new: NewPartitions) -> None:
        topic_id, last = new.partitions[-1].topic_id, new.partitions[-1].index
        self.partition_counts[topic_id] = max(self.partition_counts.get(topic_id, 0), last + 1)
        self.partitions.update({(topic_id, one.index): one for one in new.partitions})

    def replay_many(self, many: ManyRecords) -> None:
        many.staged.show()

    def replay_partition_change(self, r: messages.PartitionChangeRecord) -> None:
        before = self.partitions.get((r.topic_id, r.partition_id))
        if before is None:
            return
        changes: dict[str, Any] = {"partition_epoch": before.partition_epoch + 1}
        said = {
            "isr": r.isr,
            "replicas": r.replicas,
            "directories": r.directories,
            "elr": r.eligible_leader_replicas,
            "last_known_elr": r.last_known_elr,
            "adding": r.adding_replicas,
            "removing": r.removing_replicas,
        }
        changes |= {name: tuple(value) for name, value in said.items() if value is not None}
        if r.leader_recovery_state != NO_RECOVERY_CHANGE:
            changes["is_recovering"] = r.leader_recovery_state == RECOVERING
        if r.leader != NO_LEADER_CHANGE:
            changes |= {"leader": r.leader, "leader_epoch": before.leader_epoch + 1}
        made = self.partitions[r.topic_id, r.partition_id] = replace(before, **changes)
        if made.is_reassigned:
            self.reassigned[r.topic_id, r.partition_id] = None
        elif before.is_reassigned:
            self.reassigned.pop((r.topic_id, r.partition_id), None)

    def with_elr(self, r: messages.ClearElrRecord) -> list[Partition]:
        """Returns the partitions of a topic, or of all without a name, that have eligible replicas or had them last."""
        topic = self.topics.get(r.topic_name)
        found = self.partitions.values() if not r.topic_name else () if topic is None else self.partitions_of(topic.id)
        return [one for one in found if one.elr or one.last_known_elr]

    def replay_clear_elr(self, r: messages.ClearElrRecord) -> None:
        for one in self.with_elr(r):
            changed = replace(one, elr=(), last_known_elr=(), partition_epoch=one.partition_epoch + 1)
            self.partitions[one.topic_id, one.index] = changed

    def replay_config(self, r: messages.ConfigRecord) -> None:
        key = (r.resource_type, r.resource_name)
        values = self._to_change(self.configs, key)
        if r.value is None:
            values.pop(r.name, None)
        else:
            values[r.name] = r.value
        _put_or_remove(self.configs, key, values)

    def replay_register_broker(self, r: messages.RegisterBrokerRecord) -> None:
        self.brokers[r.broker_id] = Broker(
            r.broker_id,
            r.broker_epoch,
            r.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in r.end_points),
            r.rack,
            r.fenced,
            r.in_controlled_shutdown,
            tuple(r.log_dirs),
            tuple(r.cordoned_log_dirs or ()),
        )

    def replay_broker_registration_change(self, r: messages.BrokerRegistrationChangeRecord) -> None:
        before = self.brokers.get(r.broker_id)
        if before is None:
            return
        fenced = before.fenced if r.fenced == 0 else r.fenced == 1
        shutdown = before.in_controlled_shutdown or r.in_controlled_shutdown == 1
        log_dirs = tuple(r.log_dirs) or before.log_dirs
        cordoned = before.cordoned if r.cordoned_log_dirs is None else tuple(r.cordoned_log_dirs)
        self.brokers[r.broker_id] = before._replace(
            fenced=fenced, in_controlled_shutdown=shutdown, log_dirs=log_dirs, cordoned=cordoned
        )

    def replay_unregister_broker(self, r: messages.UnregisterBrokerRecord) -> None:
        self.brokers.pop(r.broker_id, None)

    def replay_feature_level(self, r: messages.FeatureLevelRecord) -> None:
        if r.feature_level:
            self.features[r.name] = r.feature_level
        else:
            self.features.pop(r.name, None)

    def replay_producer_ids(self, r: messages.ProducerIdsRecord) -> None:
        self.scalars["next_producer_id"] = r.next_producer_id

    def replay_acl(self, r: messages.AccessControlEntryRecord) -> None:
        self.keep("acls", r.id, r)
        self.acl_ids[acl_of(r)] = r.id

    def replay_remove_acl(self, r: messages.RemoveAccessControlEntryRecord) -> None:
        record = self.acls.get(r.id)
        if record is not None:
            self.acl_ids.pop(acl_of(record), None)
            self.drop("acls", r.id)

    def replay_token(self, r: messages.DelegationTokenRecord) -> None:
        self._uncount_token(r.token_id)
        self.token_counts[r.owner] = self.token_counts.get(r.owner, 0) + 1
        self.keep("tokens", r.token_id, r)

    def replay_remove_token(self, r: messages.RemoveDelegationTokenRecord) -> None:
        self._uncount_token(r.token_id)
        self.drop("tokens", r.token_id)

    def _uncount_token(self, token_id: str) -> None:
        before = self.tokens.get(token_id)
        if before is not None:
            left = self.token_counts[before.owner] - 1
            if left:
                self.token_counts[before.owner] = left
            else:
                del self.token_counts[before.owner]

    def keep(self, table: str, key: Hashable, r: messages.Struct) -> None:
        """Puts a record into one of the tables of records."""
        getattr(self, table)[key] = r
        self.order[table, key] = None

    def drop(self, table: str, key: Hashable) -> None:
        getattr(self, table).pop(key, None)
        self.order.pop((table, key), None)

    def copied(self) -> MetadataState:
        """Returns a copy. It shares the values of the tables, which are never changed."""
        made = MetadataState()
        for name, table in vars(self).items():
            setattr(made, name, dict(table))
        return made

    def as_records(self) -> Iterator[messages.Struct]:
        """Yields the records of a snapshot: they rebuild this state in this order."""
        for name, level in sorted(self.features.items(), key=lambda f: (f[0] != METADATA_VERSION, f[0])):
            yield messages.FeatureLevelRecord(name=name, feature_level=level)
        for broker in self.brokers.values():
            yield broker.record()
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
                broker_id=last.id if last else -1,
                broker_epoch=last.epoch if last else -1,
                next_producer_id=self.next_producer_id,
            )
        for table, kept in self.order:
            yield getattr(self, table)[kept]


def _put_or_remove(table: Table[K, dict[str, V]], key: K, values: dict[str, V]) -> None:
    """Puts a value into a table; removes an empty one."""
    if values:
        table[key] = values
    else:
        table.pop(key, None)


def folded_name(topic: str) -> str | None:
    """Returns the common form of names that collide in metrics, where "." becomes "_".
    None for a name without either.
    """
    return topic.replace(".", "_") if "." in topic or "_" in topic else None


def partition_of(r: messages.PartitionRecord) -> Partition:
    return Partition(
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
        tuple(r.adding_replicas),
        tuple(r.removing_replicas),
        r.leader_recovery_state == RECOVERING,
    )


def partition_record(p: Partition) -> messages.PartitionRecord:
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
        adding_replicas=list(p.adding),
        removing_replicas=list(p.removing),
        leader_recovery_state=RECOVERING if p.is_recovering else RECOVERED,
    )


def _kept(table: str, *fields: str) -> Callable[[MetadataState, Any], None]:
    """Returns a replay method that stores a record under its identifying fields."""
    key_of = attrgetter(*fields)
    return lambda state, r: state.keep(table, key_of(r), r)


def _dropped(table: str, *fields: str) -> Callable[[MetadataState, Any], None]:
    key_of = attrgetter(*fields)
    return lambda state, r: state.drop(table, key_of(r))


def quota_of(r: messages.ClientQuotaRecord) -> Quota:
    return Quota(tuple(sorted({e.entity_type: e.entity_name for e in r.entity}.items())), r.key)


def _keep_quota(state: MetadataState, r: messages.ClientQuotaRecord) -> None:
    key = quota_of(r)
    if r.remove:
        state.drop("quotas", key)
    else:
        state.keep("quotas", key, r)


_REPLAYS: dict[str, Callable[[MetadataState, Any], None]] = {
    "TopicRecord": MetadataState.replay_topic,
    "RemoveTopicRecord": MetadataState.replay_remove_topic,
    "PartitionRecord": MetadataState.replay_partition,
    "NewPartitions": MetadataState.replay_new_partitions,
    "ManyRecords": MetadataState.replay_many,
    "PartitionChangeRecord": MetadataState.replay_partition_change,
    "ClearElrRecord": MetadataState.replay_clear_elr,
    "ConfigRecord": MetadataState.replay_config,
    "RegisterBrokerRecord": MetadataState.replay_register_broker,
    "BrokerRegistrationChangeRecord": MetadataState.replay_broker_registration_change,
    "UnregisterBrokerRecord": MetadataState.replay_unregister_broker,
    "FeatureLevelRecord": MetadataState.replay_feature_level,
    "ProducerIdsRecord": MetadataState.replay_producer_ids,
    "RegisterControllerRecord": _kept("controllers", "controller_id"),
    "UnregisterControllerRecord": _dropped("controllers", "controller_id"),
    "AccessControlEntryRecord": MetadataState.replay_acl,
    "RemoveAccessControlEntryRecord": MetadataState.replay_remove_acl,
    "UserScramCredentialRecord": _kept("credentials", "name", "mechanism"),
    "RemoveUserScramCredentialRecord": _dropped("credentials", "name", "mechanism"),
    "DelegationTokenRecord": MetadataState.replay_token,
    "RemoveDelegationTokenRecord": MetadataState.replay_remove_token,
    "ClientQuotaRecord": _keep_quota,
}
