"""What Kafka 0.8 to 3.9 and their consumers keep in ZooKeeper: the values of nodes as bytes.

The order of the keys and the versions of values are what brokers of these releases wrote. Values of every version are
read; what is written for a release has only what that release knows. Pure: nothing here speaks with a ZooKeeper.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from .zookeeper_json import (
    Malformed,
    decoded,
    decoded_object,
    encoded,
    int_of,
    ints_of,
    list_of,
    mapping_of,
    ordered,
    text_of,
)
from .zookeeper_paths import TOPICS, Number


@dataclass(frozen=True, slots=True)
class EndPoint:
    """Where a broker listens. `host`: None if none is named."""

    listener: str
    security_protocol: str
    host: str | None
    port: int

    def __str__(self) -> str:
        host = self.host or ""
        return f"{self.listener}://{f'[{host}]' if ':' in host else host}:{self.port}"


_BROKER_VERSIONS: tuple[tuple[Number, int, str], ...] = (
    ((0,), 1, "jmx_port timestamp host version port"),
    ((0, 9), 2, "jmx_port timestamp endpoints host version port"),
    ((0, 10, 0), 3, "jmx_port timestamp endpoints host version port rack"),
    ((0, 10, 2), 4, "listener_security_protocol_map endpoints rack jmx_port host timestamp port version"),
    ((2, 7), 5, "features listener_security_protocol_map endpoints rack jmx_port port host version timestamp"),
)


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """`/brokers/ids/[id]`, ephemeral. `epoch`: the transaction that made the node, which its value does not have."""

    endpoints: tuple[EndPoint, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    epoch: int = -1

    @property
    def plaintext(self) -> EndPoint | None:
        """Where clients that know of no listeners find the broker: those of 0.8.2."""
        return next((one for one in self.endpoints if one.security_protocol == "PLAINTEXT"), None)

    def listening(self, listener: str) -> EndPoint | None:
        """Returns where the broker listens under a name."""
        return next((one for one in self.endpoints if one.listener == listener), None)

    def encode(self, release: Number) -> bytes:
        number, order = next((n, order) for since, n, order in reversed(_BROKER_VERSIONS) if release >= since)
        plain = self.plaintext
        values: dict[str, object] = {
            "version": number,
            "host": plain.host if plain else None,
            "port": plain.port if plain else -1,
            "jmx_port": self.jmx_port,
            "timestamp": str(self.timestamp_ms),
            "endpoints": [str(one) for one in self.endpoints],
            "listener_security_protocol_map": {one.listener: one.security_protocol for one in self.endpoints},
            "features": {},
        }
        if self.rack is not None:
            values["rack"] = self.rack
        return encoded(ordered(values, order))

    @classmethod
    def decode(cls, data: bytes | None) -> BrokerRegistration:
        """Raises Malformed."""
        found = decoded_object(data)
        rack = found.get("rack")
        try:
            protocols = mapping_of(found.get("listener_security_protocol_map", {}))
            endpoints = tuple(_end_point(text_of(one), protocols) for one in list_of(found.get("endpoints", [])))
            if not endpoints and found.get("host"):
                endpoints = (EndPoint("PLAINTEXT", "PLAINTEXT", text_of(found["host"]), int_of(found["port"])),)
            timestamp = int_of(found.get("timestamp") or 0)
            made = cls(endpoints, timestamp, None if rack is None else text_of(rack), int_of(found.get("jmx_port", -1)))
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the registration of a broker") from None
        if not endpoints:
            raise Malformed("the value names no place where a broker listens")
        return made


def _end_point(text: str, protocols: Mapping[str, object]) -> EndPoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return EndPoint(listener, text_of(protocols.get(listener, listener)), host or None, int(port))


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """`/brokers/topics/[topic]`: the replicas of each partition. `topic_id`: 16 bytes, since 2.8."""

    partitions: dict[int, tuple[int, ...]]
    topic_id: bytes | None = None
    adding: dict[int, tuple[int, ...]] = field(default_factory=dict)  # while partitions are reassigned
    removing: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def encode(self, release: Number) -> bytes:
        if release < (2, 4):
            return encoded({"version": 1, "partitions": _by_partition(self.partitions)})
        moves = {"adding_replicas": _by_partition(self.adding), "removing_replicas": _by_partition(self.removing)}
        if release < (2, 8) or self.topic_id is None:
            return encoded({"version": 2, "partitions": _by_partition(self.partitions), **moves})
        named = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        return encoded({"partitions": _by_partition(self.partitions), "topic_id": named, **moves, "version": 3})

    @classmethod
    def decode(cls, data: bytes | None) -> TopicAssignment:
        """Raises Malformed."""
        found = decoded_object(data)
        try:
            named = found.get("topic_id")
            topic_id = None if named is None else base64.b64decode(f"{named}==", b"-_", validate=True)
            parts = (found["partitions"], found.get("adding_replicas", {}), found.get("removing_replicas", {}))
            partitions, adding, removing = map(_replicas, parts)
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the assignment of a topic's partitions") from None
        return cls(partitions, topic_id, adding, removing)


def _by_partition(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(replicas[partition]) for partition in sorted(replicas)}


def _replicas(value: object) -> dict[int, tuple[int, ...]]:
    found = {int(partition): ints_of(replicas) for partition, replicas in mapping_of(value).items()}
    return {partition: found[partition] for partition in sorted(found)}


@dataclass(frozen=True, slots=True)
class PartitionState:
    """`/brokers/topics/[topic]/partitions/[partition]/state`. `leader`: -1 for none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int

    def encode(self) -> bytes:
        values: dict[str, object] = {"controller_epoch": self.controller_epoch, "leader": self.leader, "version": 1}
        return encoded({**values, "leader_epoch": self.leader_epoch, "isr": list(self.isr)})

    @classmethod
    def decode(cls, data: bytes | None) -> PartitionState:
        """Raises Malformed."""
        found = decoded_object(data)
        try:
            leader, epoch, by = (int_of(found[name]) for name in ("leader", "leader_epoch", "controller_epoch"))
            return cls(leader, epoch, ints_of(found["isr"]), by)
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the state of a partition") from None


def controller(broker_id: int, timestamp_ms: int, release: Number) -> bytes:
    """Returns the value of `/controller`, ephemeral."""
    if release < (3, 4):
        return encoded({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp_ms)})
    values = {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    return encoded(values)


def controller_id(data: bytes | None) -> int:
    """Returns the id of the active controller. Raises Malformed."""
    try:
        return int_of(decoded_object(data)["brokerid"])
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value does not name a controller") from None


def controller_epoch(data: bytes | None) -> int:
    """Returns how many controllers there were; 0 for an empty value. Raises Malformed."""
    try:
        return int((data or b"0").decode())
    except ValueError:
        raise Malformed("the value is not a number of controllers") from None


def cluster_id(name: str) -> bytes:
    return encoded({"version": "1", "id": name})


def cluster_id_of(data: bytes | None) -> str:
    """Raises Malformed."""
    found = decoded_object(data).get("id")
    if not isinstance(found, str) or not found:
        raise Malformed("the value does not name a cluster")
    return found


def producer_ids(broker_id: int, next_id: int, count: int) -> bytes:
    """Returns the value of `/latest_producer_id_block` (0.11 and later): the last block of `count` ids that a broker
    got. `next_id`: the id after it.
    """
    block = {"block_start": str(next_id - count), "block_end": str(next_id - 1)}
    return encoded({"version": 1, "broker": broker_id, **block})


def next_producer_id(data: bytes | None) -> int:
    """Returns the id after those that were given to brokers; 0 before the first. Raises Malformed."""
    if not data:
        return 0
    try:
        return int_of(decoded_object(data)["block_end"]) + 1
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value is not a block of producer ids") from None


def feature(release: Number) -> bytes:
    """Returns the value of `/feature` (2.7 and later, KIP-584): features are enabled, and there are none."""
    return encoded({"features": {}, "version": 1 if release < (3, 3) else 2, "status": 1})


def config(values: Mapping[str, str]) -> bytes:
    """Returns the value of an entity's configuration."""
    return encoded({"version": 1, "config": dict(values)})


def config_of(data: bytes | None) -> dict[str, str]:
    """Returns an entity's configuration; empty if the node has no value. Raises Malformed."""
    if not data:
        return {}
    found = decoded_object(data).get("config")
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise Malformed("the value is not a configuration")
    return cast("dict[str, str]", found)


def config_change(kind: str, name: str, release: Number) -> bytes:
    """Returns what says that a configuration has changed, in a new sequential node below CONFIG_CHANGES. `name`: as a
    node has it; with several parts for a client of a user.
    """
    if release < (0, 9):
        return encoded(name)
    if release < (0, 10, 1):
        return encoded({"version": 1, "entity_type": kind, "entity_name": name})
    return encoded({"version": 2, "entity_path": f"{kind}/{name}"})


def config_change_of(data: bytes | None) -> tuple[str, str]:
    """Returns the kind and the name of the entity whose configuration has changed. Raises Malformed."""
    found = decoded(data)
    if isinstance(found, str):
        return TOPICS, found
    if isinstance(found, dict):
        kind, name = found.get("entity_type"), found.get("entity_name")
        if "entity_path" in found:
            kind, _, name = str(found["entity_path"]).partition("/")
        if isinstance(kind, str) and isinstance(name, str) and name:
            return kind, name
    raise Malformed("the value does not name an entity")


def partitions_named(data: bytes | None) -> dict[tuple[str, int], tuple[int, ...]]:
    """Returns the partitions that PREFERRED_ELECTION or REASSIGN_PARTITIONS names; with the replicas that they get.
    Raises Malformed.
    """
    found = decoded_object(data)
    try:
        named = map(mapping_of, list_of(found["partitions"]))
        return {(text_of(one["topic"]), int_of(one["partition"])): ints_of(one.get("replicas", [])) for one in named}
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value does not name partitions") from None


def reassignment(wanted: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """Returns the value of REASSIGN_PARTITIONS for the replicas that partitions get."""
    named = [{"topic": name, "partition": index, "replicas": list(one)} for (name, index), one in wanted.items()]
    return encoded({"version": 1, "partitions": named})


STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"


@dataclass(frozen=True, slots=True)
class ConsumerRegistration:
    """`/consumers/[group]/ids/[consumer]`, ephemeral. `subscription`: the number of streams by topic, or by the one
    regular expression of a filter.
    """

    subscription: dict[str, int]
    pattern: str
    timestamp_ms: int

    def encode(self) -> bytes:
        values: dict[str, object] = {"version": 1, "subscription": self.subscription, "pattern": self.pattern}
        return encoded({**values, "timestamp": str(self.timestamp_ms)})

    @classmethod
    def decode(cls, data: bytes | None) -> ConsumerRegistration:
        """Raises Malformed."""
        found = decoded_object(data)
        try:
            subscription = {topic: int_of(streams) for topic, streams in mapping_of(found["subscription"]).items()}
            pattern = text_of(found["pattern"])
            if pattern not in (STATIC, WHITE_LIST, BLACK_LIST):
                raise ValueError(pattern)
            return cls(subscription, pattern, int_of(found.get("timestamp") or 0))
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the registration of a consumer") from None


def offset_of(data: bytes | None) -> int:
    """Returns the offset that a node has. Raises Malformed."""
    try:
        found = int((data or b"").decode())
    except ValueError:
        raise Malformed("the value is not an offset") from None
    if not -(1 << 63) <= found < 1 << 63:
        raise Malformed("the value is not an offset")
    return found


@dataclass(frozen=True, slots=True)
class Token:
    """`/delegation_token/tokens/[id]`. Principals are percent-encoded. `requester`: empty before 3.3 (KIP-373)."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    latest_ms: int

    def encode(self) -> bytes:
        """Returns the value of version 1, or of version 3 with a requester."""
        requester = {"tokenRequester": self.requester} if self.requester else {}
        values: dict[str, object] = {"issueTimestamp": self.issued_ms, "renewers": list(self.renewers), **requester}
        values |= {"tokenId": self.token_id, "owner": self.owner, "expiryTimestamp": self.expires_ms}
        return encoded({**values, "maxTimestamp": self.latest_ms, "version": 3 if requester else 1})

    @classmethod
    def decode(cls, data: bytes | None) -> Token:
        """Raises Malformed."""
        found = decoded_object(data)
        try:
            named = text_of(found["tokenId"]), text_of(found["owner"]), text_of(found.get("tokenRequester", ""))
            renewers = tuple(map(text_of, list_of(found.get("renewers", []))))
            issued, expires, latest = (int_of(found[f"{one}Timestamp"]) for one in ("issue", "expiry", "max"))
            return cls(*named, renewers, issued, expires, latest)
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not a delegation token") from None
