"""Where Kafka 0.8 to 3.9 and their consumers keep what in ZooKeeper: paths of nodes."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

Number = tuple[int, ...]
"""The number of a release: (0, 8, 2), (1, 1), …"""

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
BROKER_SEQUENCE = "/brokers/seqid"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "config_change_"
DELETE_TOPICS = "/admin/delete_topics"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PRODUCER_IDS = "/latest_producer_id_block"
FEATURE = "/feature"
CONSUMERS = "/consumers"
ACLS = "/kafka-acl"
ACL_CHANGES = "/kafka-acl-changes"
PREFIXED_ACL_CHANGES = "/kafka-acl-extended-changes"
ACL_CHANGE_PREFIX = "acl_changes_"
PREFIXED_ACLS = "/kafka-acl-extended/prefixed"
TOKENS = "/delegation_token/tokens"
TOKEN_CHANGES = "/delegation_token/token_changes"
TOKEN_CHANGE_PREFIX = "token_change_"

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"  # below CONFIG
DEFAULT_ENTITY = "<default>"

_PERSISTENT: tuple[tuple[Number, tuple[str, ...]], ...] = (
    ((0,), (CONSUMERS, BROKER_IDS, BROKER_TOPICS, CONFIG_CHANGES, f"{CONFIG}/{TOPICS}", DELETE_TOPICS)),
    ((0, 9), (BROKER_SEQUENCE, f"{CONFIG}/{CLIENTS}", ISR_CHANGES)),
    ((0, 11), (PRODUCER_IDS,)),
    ((1, 0), (LOG_DIR_EVENTS,)),
    ((1, 1), (f"{CONFIG}/{USERS}", f"{CONFIG}/{BROKERS}")),
    ((2, 7), (f"{CONFIG}/{IPS}",)),
)


def persistent_paths(release: Number) -> list[str]:
    """Returns the paths that a broker of a release makes at its start, with those above them."""
    return [path for since, paths in _PERSISTENT if release >= since for path in paths]


_RESOURCE_TYPES: tuple[tuple[Number, str], ...] = (
    ((1, 0), "Topic"),
    ((1, 0), "Group"),
    ((1, 0), "Cluster"),
    ((1, 0), "TransactionalId"),
    ((1, 1), "DelegationToken"),
    ((3, 3), "User"),
)


def acl_paths(release: Number) -> list[str]:
    """Returns the paths that the authorizer of a release makes at its start, with those above them."""
    types = [name for since, name in _RESOURCE_TYPES if release >= since]
    found = [ACLS, ACL_CHANGES, *(f"{ACLS}/{name}" for name in types)]
    if release >= (2,):
        found += [PREFIXED_ACL_CHANGES, *(f"{PREFIXED_ACLS}/{name}" for name in types)]
    return found


# paths


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{topic_path(topic)}/partitions"


def state_path(topic: str, partition: int) -> str:
    """Returns the path of a partition's leader and in-sync replicas."""
    return f"{partitions_path(topic)}/{partition}/state"


def config_path(kind: str, name: str) -> str:
    """Returns the path of an entity's configuration. `name`: as a node has it (`sanitized`)."""
    return f"{CONFIG}/{kind}/{name}"


def entity_path(kind: str, name: str) -> str:
    """Returns the path of what an entity has: a configuration, a token (TOKENS), or the rights of a resource, whose
    `kind` is ACLS or PREFIXED_ACLS and whose name has the type: `Topic/orders`.
    """
    return f"{kind}/{name}" if kind in (ACLS, PREFIXED_ACLS, TOKENS) else config_path(kind, name)


def deletion_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def group_path(group: str) -> str:
    return f"{CONSUMERS}/{group}"


def consumers_path(group: str) -> str:
    return f"{group_path(group)}/ids"


def consumer_path(group: str, consumer: str) -> str:
    return f"{consumers_path(group)}/{consumer}"


def owners_path(group: str, topic: str) -> str:
    return f"{group_path(group)}/owners/{topic}"


def owner_path(group: str, topic: str, partition: int) -> str:
    """Returns the path of the thread that consumes a partition; its value is the thread's id."""
    return f"{owners_path(group, topic)}/{partition}"


def group_offsets_path(group: str) -> str:
    return f"{group_path(group)}/offsets"


def offsets_path(group: str, topic: str) -> str:
    return f"{group_offsets_path(group)}/{topic}"


def offset_path(group: str, topic: str, partition: int) -> str:
    """Returns the path of a committed offset; its value is the number as text."""
    return f"{offsets_path(group, topic)}/{partition}"


_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def is_node_name(name: str) -> bool:
    """Whether ZooKeeper can have a node of this name."""
    return name not in ("", ".", "..") and "/" not in name and _NOT_IN_NAMES.search(name) is None


def is_group(name: str) -> bool:
    """Whether ZooKeeper can have the nodes of a group. One that a client names may have slashes, as in Kafka."""
    return all(map(is_node_name, name.split("/")))


def sanitized(name: str) -> str:
    """Returns the name of a user or client as nodes have it since 0.10.1: percent-encoded, with %20 and %2A."""
    return name if name == DEFAULT_ENTITY else quote(name, safe="-._", encoding="utf-8").replace("~", "%7E")


def desanitized(name: str) -> str:
    return name if name == DEFAULT_ENTITY else unquote(name)
