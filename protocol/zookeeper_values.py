"""What Kafka 0.8 to 3.9 and their consumers keep in ZooKeeper: the values of nodes as bytes.

The order of the keys and the versions of values are what brokers of these releases wrote. Values of every version are
read; what is written for a release has only what that release knows. Pure: nothing here speaks with a ZooKeeper.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from .zookeeper_paths import TOPICS, Number


class Malformed(ValueError):
    """The value of a node is not what it has to be. The message says what is wrong, without the path."""


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _decoded(data: bytes | None) -> object:
    """Raises Malformed."""
    try:
        found: object = json.loads((data or b"").decode())
    except (ValueError, RecursionError):
        raise Malformed("the value is not JSON") from None
    return found


def _object(data: bytes | None) -> dict[str, object]:
    """Raises Malformed."""
    found = _decoded(data)
    if not isinstance(found, dict):
        raise Malformed("the value is not a JSON object")
    return found


# parts of values; each raises TypeError or ValueError for what is something else


def _int(value: object) -> int:
    if not isinstance(value, int | str):
        raise TypeError(value)
    return int(value)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(value)
    return value


def _ints(value: object) -> tuple[int, ...]:
    return tuple(map(_int, _list(value)))


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _ordered(values: Mapping[str, object], order: str) -> dict[str, object]:
    return {name: values[name] for name in order.split() if name in values}


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
    """`/brokers/ids/[id]`, ephemeral."""

    endpoints: tuple[EndPoint, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1

    @property
    def plaintext(self) -> EndPoint | None:
        """Where clients that know of no listeners find the broker: those of 0.8.2."""
        return next((one for one in self.endpoints if one.security_protocol == "PLAINTEXT"), None)

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
        return _encoded(_ordered(values, order))

    @classmethod
    def decode(cls, data: bytes | None) -> BrokerRegistration:
        """Raises Malformed."""
        found = _object(data)
        rack = found.get("rack")
        try:
            protocols = _mapping(found.get("listener_security_protocol_map", {}))
            endpoints = tuple(_end_point(_text(one), protocols) for one in _list(found.get("endpoints", [])))
            if not endpoints and found.get("host"):
                endpoints = (EndPoint("PLAINTEXT", "PLAINTEXT", _text(found["host"]), _int(found["port"])),)
            timestamp = _int(found.get("timestamp") or 0)
            made = cls(endpoints, timestamp, None if rack is None else _text(rack), _int(found.get("jmx_port", -1)))
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the registration of a broker") from None
        if not endpoints:
            raise Malformed("the value names no place where a broker listens")
        return made


def _end_point(text: str, protocols: Mapping[str, object]) -> EndPoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return EndPoint(listener, _text(protocols.get(listener, listener)), host or None, int(port))


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """`/brokers/topics/[topic]`: the replicas of each partition. `topic_id`: 16 bytes, since 2.8."""

    partitions: dict[int, tuple[int, ...]]
    topic_id: bytes | None = None
    adding: dict[int, tuple[int, ...]] = field(default_factory=dict)  # while partitions are reassigned
    removing: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def encode(self, release: Number) -> bytes:
        if release < (2, 4):
            return _encoded({"version": 1, "partitions": _by_partition(self.partitions)})
        moves = {"adding_replicas": _by_partition(self.adding), "removing_replicas": _by_partition(self.removing)}
        if release < (2, 8) or self.topic_id is None:
            return _encoded({"version": 2, "partitions": _by_partition(self.partitions), **moves})
        named = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        return _encoded({"partitions": _by_partition(self.partitions), "topic_id": named, **moves, "version": 3})

    @classmethod
    def decode(cls, data: bytes | None) -> TopicAssignment:
        """Raises Malformed."""
        found = _object(data)
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
    found = {int(partition): _ints(replicas) for partition, replicas in _mapping(value).items()}
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
        return _encoded({**values, "leader_epoch": self.leader_epoch, "isr": list(self.isr)})

    @classmethod
    def decode(cls, data: bytes | None) -> PartitionState:
        """Raises Malformed."""
        found = _object(data)
        try:
            leader, epoch, by = (_int(found[name]) for name in ("leader", "leader_epoch", "controller_epoch"))
            return cls(leader, epoch, _ints(found["isr"]), by)
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not the state of a partition") from None


def controller(broker_id: int, timestamp_ms: int, release: Number) -> bytes:
    """Returns the value of `/controller`, ephemeral."""
    if release < (3, 4):
        return _encoded({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp_ms)})
    values = {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    return _encoded(values)


def controller_id(data: bytes | None) -> int:
    """Returns the id of the active controller. Raises Malformed."""
    try:
        return _int(_object(data)["brokerid"])
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value does not name a controller") from None


def cluster_id(name: str) -> bytes:
    return _encoded({"version": "1", "id": name})


def cluster_id_of(data: bytes | None) -> str:
    """Raises Malformed."""
    found = _object(data).get("id")
    if not isinstance(found, str) or not found:
        raise Malformed("the value does not name a cluster")
    return found


def producer_ids(broker_id: int, next_id: int, count: int) -> bytes:
    """Returns the value of `/latest_producer_id_block` (0.11 and later): the last block of `count` ids that a broker
    got. `next_id`: the id after it.
    """
    block = {"block_start": str(next_id - count), "block_end": str(next_id - 1)}
    return _encoded({"version": 1, "broker": broker_id, **block})


def next_producer_id(data: bytes | None) -> int:
    """Returns the id after those that were given to brokers; 0 before the first. Raises Malformed."""
    if not data:
        return 0
    try:
        return _int(_object(data)["block_end"]) + 1
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value is not a block of producer ids") from None


def feature(release: Number) -> bytes:
    """Returns the value of `/feature` (2.7 and later, KIP-584): features are enabled, and there are none."""
    return _encoded({"features": {}, "version": 1 if release < (3, 3) else 2, "status": 1})


def config(values: Mapping[str, str]) -> bytes:
    """Returns the value of an entity's configuration."""
    return _encoded({"version": 1, "config": dict(values)})


def config_of(data: bytes | None) -> dict[str, str]:
    """Returns an entity's configuration; empty if the node has no value. Raises Malformed."""
    if not data:
        return {}
    found = _object(data).get("config")
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise Malformed("the value is not a configuration")
    return cast("dict[str, str]", found)


def config_change(kind: str, name: str, release: Number) -> bytes:
    """Returns what says that a configuration has changed, in a new sequential node below CONFIG_CHANGES. `name`: as a
    node has it; with several parts for a client of a user.
    """
    if release < (0, 9):
        return _encoded(name)
    if release < (0, 10, 1):
        return _encoded({"version": 1, "entity_type": kind, "entity_name": name})
    return _encoded({"version": 2, "entity_path": f"{kind}/{name}"})


def config_change_of(data: bytes | None) -> tuple[str, str]:
    """Returns the kind and the name of the entity whose configuration has changed. Raises Malformed."""
    found = _decoded(data)
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
    found = _object(data)
    try:
        named = map(_mapping, _list(found["partitions"]))
        return {(_text(one["topic"]), _int(one["partition"])): _ints(one.get("replicas", [])) for one in named}
    except (KeyError, TypeError, ValueError):
        raise Malformed("the value does not name partitions") from None


def reassignment(wanted: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """Returns the value of REASSIGN_PARTITIONS for the replicas that partitions get."""
    named = [{"topic": name, "partition": index, "replicas": list(one)} for (name, index), one in wanted.items()]
    return _encoded({"version": 1, "partitions": named})


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
        return _encoded({**values, "timestamp": str(self.timestamp_ms)})

    @classmethod
    def decode(cls, data: bytes | None) -> ConsumerRegistration:
        """Raises Malformed."""
        found = _object(data)
        try:
            subscription = {topic: _int(streams) for topic, streams in _mapping(found["subscription"]).items()}
            pattern = _text(found["pattern"])
            if pattern not in (STATIC, WHITE_LIST, BLACK_LIST):
                raise ValueError(pattern)
            return cls(subscription, pattern, _int(found.get("timestamp") or 0))
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
class AclEntry:
    """An entry of a resource below ACLS or PREFIXED_ACLS, with names as Kafka writes them: `ClusterAction`."""

    principal: str
    permission: str
    operation: str
    host: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} for {self.principal} from {self.host}"


def acl_entries_of(data: bytes | None) -> list[AclEntry]:
    """Returns the entries of a resource; none if the node has no value. Raises Malformed."""
    if not data:
        return []
    names = ("principal", "permissionType", "operation", "host")
    try:
        entries = map(_mapping, _list(_object(data)["acls"]))
        return [AclEntry(*(_text(one[name]) for name in names)) for one in entries]
    except (KeyError, TypeError):
        raise Malformed("the value is not a list of access control entries") from None


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

    @classmethod
    def decode(cls, data: bytes | None) -> Token:
        """Raises Malformed."""
        found = _object(data)
        try:
            named = _text(found["tokenId"]), _text(found["owner"]), _text(found.get("tokenRequester", ""))
            renewers = tuple(map(_text, _list(found.get("renewers", []))))
            issued, expires, latest = (_int(found[f"{one}Timestamp"]) for one in ("issue", "expiry", "max"))
            return cls(*named, renewers, issued, expires, latest)
        except (KeyError, TypeError, ValueError):
            raise Malformed("the value is not a delegation token") from None
