"""Requests that are made up at random, of names and ids that are often right: what two brokers are asked in turn
(`chance.py`).

A `Maker` makes the same request for both brokers from the same seed, with the ids that each of them has given.
"""

from __future__ import annotations

import random
from typing import Any, Final

from ottla.broker.net.api import Api
from ottla.protocol import schema
from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, StructSchema

from ..support.ask import batch
from .chance_values import fitted, values_of

IDS: Final = (
    "member_id", "topic_id", "producer_id", "producer_epoch", "generation_id", "member_epoch", "session_id",
    "leader_epoch", "epoch", "state_epoch", "log_dir", "hmac", "token_id",
)  # fmt: skip
RANDOM_IDS: Final = ("member_id", "topic_id", "producer_id", "session_id", "hmac", "token_id")
_VIEWS: Final = (
    "Metadata Metadata DescribeTopicPartitions DescribeCluster DescribeConfigs ListConfigResources DescribeLogDirs "
    "DescribeProducers ListOffsets ListOffsets OffsetForLeaderEpoch ListTransactions DescribeTransactions "
    "FindCoordinator "
)
_CHANGES: Final = (
    "CreateTopics CreateTopics CreatePartitions DeleteTopics DeleteRecords IncrementalAlterConfigs "
    "IncrementalAlterConfigs AlterConfigs AlterPartitionReassignments ListPartitionReassignments ElectLeaders "
    "UpdateFeatures AlterReplicaLogDirs AlterClientQuotas DescribeClientQuotas AlterUserScramCredentials "
    "DescribeUserScramCredentials "
)
_TOKENS: Final = "CreateDelegationToken RenewDelegationToken ExpireDelegationToken DescribeDelegationToken "
FAMILIES: Final = {
    "classic": "JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit OffsetFetch DescribeGroups ListGroups "
    "DeleteGroups OffsetDelete ConsumerGroupDescribe ConsumerGroupHeartbeat",
    "consumer": "ConsumerGroupHeartbeat ConsumerGroupHeartbeat ConsumerGroupHeartbeat ConsumerGroupDescribe "
    "OffsetCommit OffsetFetch LeaveGroup ListGroups DescribeGroups DeleteGroups Heartbeat ShareGroupHeartbeat",
    "transactions": "InitProducerId InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit Produce "
    "Produce DescribeTransactions DescribeProducers ListOffsets Fetch OffsetFetch",
    "share": "ShareGroupHeartbeat ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareFetch ShareAcknowledge "
    "DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets Produce DeleteGroups ListGroups",
    "streams": "StreamsGroupHeartbeat StreamsGroupHeartbeat StreamsGroupHeartbeat StreamsGroupDescribe ListGroups "
    "DeleteGroups OffsetCommit OffsetFetch",
    "records": "Produce Produce Fetch Fetch ListOffsets OffsetForLeaderEpoch DeleteRecords DescribeProducers Metadata "
    "DescribeTopicPartitions",
    "topics": "CreateTopics CreateTopics DeleteTopics CreatePartitions Metadata DescribeTopicPartitions AlterConfigs "
    "IncrementalAlterConfigs DescribeConfigs ElectLeaders AlterPartitionReassignments ListPartitionReassignments "
    "ListConfigResources",
    "cluster": "DescribeCluster DescribeClientQuotas AlterClientQuotas DescribeUserScramCredentials DescribeAcls "
    "AlterUserScramCredentials CreateAcls DeleteAcls DescribeQuorum UpdateFeatures FindCoordinator ApiVersions "
    "GetTelemetrySubscriptions ListConfigResources DescribeConfigs IncrementalAlterConfigs CreateDelegationToken "
    "DescribeDelegationToken AlterReplicaLogDirs SaslHandshake",
    "states": "InitializeShareGroupState InitializeShareGroupState ReadShareGroupState ReadShareGroupState "
    "WriteShareGroupState WriteShareGroupState ReadShareGroupStateSummary DeleteShareGroupState "
    "DescribeShareGroupOffsets",
    "markers": "InitProducerId Produce Produce WriteTxnMarkers WriteTxnMarkers DescribeProducers ListOffsets Fetch",
    "seldom": "DescribeLogDirs RenewDelegationToken ExpireDelegationToken UnregisterBroker PushTelemetry AddRaftVoter "
    "GetTelemetrySubscriptions RemoveRaftVoter SaslAuthenticate UnregisterController AlterReplicaLogDirs",
    "views": f"{_VIEWS} InitProducerId InitProducerId AddPartitionsToTxn Produce Produce DeleteRecords EndTxn",
    "administrators": f"{_CHANGES} {_VIEWS} Produce",
    "acls": "CreateAcls CreateAcls CreateAcls DeleteAcls DescribeAcls DescribeAcls",
    "tokens": f"{_TOKENS} {_TOKENS} CreateAcls DeleteAcls",
    "rights": f"CreateAcls CreateAcls CreateAcls CreateAcls DeleteAcls DescribeAcls {_VIEWS} {_CHANGES} {_TOKENS} "
    "Produce Fetch InitProducerId OffsetCommit OffsetFetch DescribeGroups ListGroups DeleteGroups OffsetDelete",
}
ADMINISTRATION: Final = (
    "topics",
    "cluster",
    "records",
    "seldom",
    "views",
    "administrators",
    "acls",
    "tokens",
    "rights",
)
SECURED: Final = ("acls", "tokens", "rights")  # families whose users log in, and have rights
KEYS: Final = (
    "retention.ms", "cleanup.policy", "min.insync.replicas", "bogus", "segment.bytes", "consumer.session.timeout.ms",
    "share.auto.offset.reset", "log.retention.ms", "compression.type", "max.message.bytes",
)  # fmt: skip
KEY_FIELDS: Final = (
    "name", "topic", "topic_name", "group_id", "transactional_id", "topic_id", "partition_index", "partition", "index",
    "subtopology_id", "member_id", "entity_type", "feature",
)  # fmt: skip
NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(
        ("partition", "partition_index", "partitions", "partition_indexes", "index"), (0, 0, 0, 1, 1, 1, 2, -1, 7)
    ),
    **dict.fromkeys(("current_leader_epoch", "leader_epoch", "last_fetched_epoch"), (-1, -1, -1, 0, 0, 1, 5)),
    "committed_leader_epoch": (-1, -1, 0, 5),
    "session_epoch": (0, 0, -1, 1, 2),
    "share_session_epoch": (0, 0, 1, 2, 3, -1),
    "session_timeout_ms": (10_000, 10_000, 45_000, 1, 10_000_000),
    "rebalance_timeout_ms": (3000, 60_000, 60_000, -1, 0),
    **dict.fromkeys(("max_wait_ms", "min_bytes"), (0, 0, 1)),
    **dict.fromkeys(("max_bytes", "partition_max_bytes"), (1 << 20, 1 << 20, 100, 0, -1, 1)),
    **dict.fromkeys(("max_records", "batch_size"), (100, 1, 0, -1, 10)),
    "acks": (1, -1, -1, -1, 2, -2),
    "replica_id": (-1, -1, -1, -2),
    "timestamp": (-1, -2, -3, -4, -5, -6, 0, 1, -7, 1 << 50),
    **dict.fromkeys(
        ("fetch_offset", "offset", "committed_offset", "start_offset", "first_offset", "base_offset"),
        (0, 0, 1, 2, 3, 10, -1, -2, 4),
    ),
    "last_offset": (0, 1, 3, 2, -1),
    "acknowledge_types": (1, 2, 3, 0, 4, 5, 1),
    **dict.fromkeys(("num_partitions", "count"), (1, 2, 3, -1, 0, 2, 20_000)),
    "replication_factor": (1, 1, 1, -1, 0, 2),
    **dict.fromkeys(("replicas", "broker_ids", "brokers"), (1, 1, 1, 2, -1)),
    "key_type": (0, 0, 1, 2, 3, -1),
    "resource_type": (2, 2, 4, 32, 16, 8, 1, 0, 3, 99),
    "config_operation": (0, 0, 1, 2, 3, 9),
    "isolation_level": (0, 1, 1, 2),
    **dict.fromkeys(("broker_id", "controller_id", "voter_id"), (0, 2, 3, -1, 100)),  # not the one that is asked
    **dict.fromkeys(("topology_epoch", "endpoint_information_epoch"), (0, 0, 1, -1)),
}  # fmt: skip
PORTS: Final = (0, 9092, 65_535)  # which has no sign
ANY_NUMBER: Final = (0, 1, 1, -1, 2, 3, 100)


class Known:
    """The ids that one broker has given, the last ones last. Those of the other are at the same places."""

    def __init__(self, episode: str) -> None:
        self.episode = episode
        self.ids: dict[str, list[Any]] = {name: [] for name in IDS}


class Maker:
    """Makes one request. `at_ms`: the time of its records; `repeats`: whether an array may name the same twice."""

    def __init__(
        self, api: Api, version: int, known: Known, seed: int, at_ms: int, *, family: str, repeats: bool = False
    ) -> None:
        self._api, self._version, self._known, self._at_ms = api, version, known, at_ms
        self._family, self._repeats = family, repeats
        self._chance = random.Random(seed)
        self._schema = schema.load(api.request)
        self._texts = self._pools()
        self._values = values_of(api.name, known.episode)

    def make(self) -> Any:
        return fitted(self._api.name, self._struct(self._schema.root, ""), self._chance, self._known.episode)

    def _pools(self) -> dict[str, tuple[str, ...]]:
        e = self._known.episode
        topics: tuple[str, ...] = (f"t{e}", f"t{e}", f"t{e}", f"u{e}", f"missing{e}")
        odd = ("", "a/b", "__consumer_offsets", "x" * 250, ".") if self._chance.random() < 0.25 else ()
        topics += odd
        groups = (*[f"g{e}"] * 5, *[f"h{e}"] * 2, f"none{e}", "")
        transactions = (f"tx{e}", f"tx{e}", f"ty{e}", "", f"none{e}")
        regexes = (f"t{e}.*", "[", "", "u.*")
        return {
            **dict.fromkeys(("group_id", "groups", "groups_names", "group_ids"), groups),
            **dict.fromkeys(("coordinator_keys", "key"), (*groups, f"tx{e}", f"g{e}:{'A' * 22}:0")),
            **dict.fromkeys(
                ("name", "topic", "topic_name", "topics", "topic_names", "subscribed_topic_names", "source_topics"),
                topics,
            ),
            "repartition_sink_topics": topics,
            **dict.fromkeys(("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), transactions),
            **dict.fromkeys(("group_instance_id", "instance_id"), (f"i{e}", f"j{e}", "")),
            "protocol_type": ("consumer", "consumer", "consumer", "connect", ""),
            "protocol_name": ("range", "range", "roundrobin", ""),
            "server_assignor": ("range", "uniform", "bogus", ""),
            **dict.fromkeys(("subscribed_topic_regex", "source_topic_regex", "transactional_id_pattern"), regexes),
            **dict.fromkeys(("states_filter", "state_filters"), ("Stable", "Empty", "stable", "bogus", "Ongoing")),
            "types_filter": ("classic", "consumer", "Share", "bogus"),
            "process_id": ("p1", "p2", ""),
            "subtopology_id": ("0", "1", ""),
            "reason": ("because", "x" * 300),
            **dict.fromkeys(("metadata", "committed_metadata"), ("", "meta", "y" * 5000)),
            "value": ("1000", "compact", "-5", "true", "bogus", "", "delete"),
            "configuration_keys": ("retention.ms", "cleanup.policy", "bogus", "min.insync.replicas"),
            "resource_name": (f"t{e}", f"u{e}", "1", "", f"g{e}", "bogus", "0"),
            "mechanism": ("PLAIN", "bogus", "SCRAM-SHA-256"),
            "feature": ("transaction.version", "bogus", "group.version", "metadata.version", "share.version"),
            "entity_type": ("user", "client-id", "ip", "bogus", ""),
            **dict.fromkeys(("entity_name", "match"), ("bob", f"e{e}", "127.0.0.1", "")),
            **dict.fromkeys(("client_software_name", "client_software_version"), ("a", "1.2", "", "b c")),
        }

    def _struct(self, struct: StructSchema, path: str) -> Any:
        made: Any = struct_class(self._schema, struct)()
        for field in struct.fields:
            if self._version not in field.versions:
                continue
            if self._version in field.tagged and self._chance.random() > 0.3:
                continue
            setattr(made, field.name, self._field(field, f"{path}.{field.name}"))
        return made

    def _field(self, field: FieldSchema, path: str) -> Any:
        # Kafka does not answer a Produce without records, and tells the sizes of all topics in the order of a hash
        is_needed = field.element_type == "records" or self._api.name == "DescribeLogDirs"
        if self._version in field.nullable and not is_needed and self._chance.random() < 0.3:
            return None
        if not field.is_array:
            return self._one(field, path)
        is_deep = path.count(".") >= 3
        made = [
            self._one(field, path)
            for _ in range(self._chance.choice((1, 1, 1, 2, 0) if is_deep else (0, 1, 1, 1, 2, 3)))
        ]
        return made if self._repeats else list({_key(one): one for one in made}.values())

    def _one(self, field: FieldSchema, path: str) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, path)
        kind, chance = field.element_type, self._chance
        if field.name in self._values and "configs" not in path:
            return chance.choice(self._values[field.name])
        if kind == "string":
            return self._text(field.name, path)
        if kind == "uuid":
            return self._given("topic_id", bytes(16), b"q" * 16)
        if kind == "records":
            return self._records()
        if field.name == "hmac":
            return self._given("hmac", b"", b"x" * 64)
        if kind == "bytes":
            return chance.choice((b"", b"\0\1", b"\0\0\0\0\0\0"))
        if kind == "bool":
            return chance.random() < 0.3
        if kind == "float64":
            return chance.choice((0.0, 1.0, -1.0, 1000.5))
        return self._number(field.name)

    def _given(self, name: str, *others: Any) -> Any:
        """Returns an id that the broker has given, or another one."""
        ids, chance = self._known.ids[name], self._chance
        luck, other = chance.random(), chance.choice(others)
        place = -1 if luck < 0.5 else -chance.randint(1, 6)
        return ids[max(place, -len(ids))] if ids and luck < 0.75 else other

    def _text(self, name: str, path: str) -> str:
        e, chance = self._known.episode, self._chance
        if name == "member_id":
            return str(self._given(name, "", "", "bogus", f"m{e}", "A" * 22))
        if name == "path":
            return str(self._given("log_dir", "", "/", "relative", "/absent/logs"))
        if name == "name" and "configs" in path:
            return chance.choice(KEYS)
        if name == "name" and self._api.name == "JoinGroup":
            return chance.choice(("range", "range", "roundrobin", ""))
        if name == "name" and "Scram" in self._api.name:
            return chance.choice(("bob", "eve", ""))
        return chance.choice(self._texts.get(name, (f"s{e}", "", "bogus", "User:bob", "127.0.0.1")))

    def _number(self, name: str) -> int:
        chance = self._chance
        if name == "producer_id":
            return int(self._given(name, -1, 7777))
        if name == "producer_epoch":
            return int(self._given(name, -1, 0, 1, 0))
        if name in ("generation_id", "generation_id_or_member_epoch"):
            return int(self._given(chance.choice(("generation_id", "member_epoch")), -1, 0, 1))
        if name in ("member_epoch", "session_id", "state_epoch"):
            return int(self._given(name, 0, 0, -1, -2, 5))
        if name in ("timeout_ms", "transaction_timeout_ms"):  # administration that is late is refused
            patient = self._family in ADMINISTRATION
            return chance.choice((15_000, 60_000) if patient else (5000, 5000, 60_000, 1, 0, -1, 10_000_000))
        return chance.choice(PORTS if name == "port" else NUMBERS.get(name, ANY_NUMBER))

    def _records(self) -> bytes:
        chance, now = self._chance, self._at_ms
        producer = {
            "producer_id": self._given("producer_id", -1, 7778),
            "producer_epoch": self._given("producer_epoch", -1, 0, 1),
            "base_sequence": chance.choice((0, 0, 1, 2, 5)),
        }
        good = batch(b"a", b"b", now=now)
        made = (
            lambda: good,
            lambda: good,
            lambda: batch(b"k", now=now, **producer),
            lambda: batch(b"t", b"u", now=now, transactional=True, **producer),
            lambda: batch(b"t", b"u", now=now, transactional=True, **producer),
            lambda: chance.choice((b"", b"garbage" * 9, good[:-3], good + good, good + b"\0" * 5, batch(b"o", now=-1))),
        )
        return bytes(chance.choice(made)())


def _key(one: Any) -> Any:
    """What tells an element of an array from the others."""
    names = [name for name in KEY_FIELDS if name in getattr(one, "__slots__", ())]
    if not names:
        return repr(one)
    return repr([getattr(one, name) for name in names if getattr(one, name) not in (None, bytes(16))][:1])


def _by_name(items: list[Any]) -> list[Any]:
    named = all(isinstance(getattr(one, "name", None), str) for one in items)
    return sorted(items, key=lambda one: str(one.name)) if named else items


def learn(known: tuple[Known, Known], mine: Any, other: Any) -> None:
    """Notes the ids that two replies have at the same places, and where these have names, with the same name."""
    if isinstance(mine, list) and isinstance(other, list):
        if len(mine) == len(other):
            for one, another in zip(_by_name(mine), _by_name(other), strict=True):
                learn(known, one, another)
        return
    if type(mine) is not type(other) or not hasattr(mine, "unknown_tags"):
        return
    for name in mine.__slots__:
        a, b = getattr(mine, name), getattr(other, name)
        if name == "tokens":  # in the order of random ids
            continue
        if name not in IDS:
            learn(known, a, b)
        elif type(a) is type(b) and _is_given(a) and _is_given(b) and not _are_others(known, name, a, b):
            known[0].ids[name].append(a)
            known[1].ids[name].append(b)


def _is_given(value: Any) -> bool:
    return value not in ("", bytes(16), -1)


def _are_others(known: tuple[Known, Known], name: str, a: Any, b: Any) -> bool:
    """Whether two ids are known and belong to others: lists may have the order of a hash."""
    places = [
        one.ids[name].index(value) if value in one.ids[name] else -1 for one, value in zip(known, (a, b), strict=True)
    ]
    return name in RANDOM_IDS and places[0] != places[1]
