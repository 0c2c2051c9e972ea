"""Values of fields for requests of administrators and of those who look at a cluster (`chance_requests.py`).

Values that are right for one API are wrong for most others: a resource type of access control entries, a key of a
quota, an operation. `VALUES` has them by API and field, and `fitted` makes values right that depend on others: a topic
has a number of partitions or replicas that are named, and a configuration has keys of its resource.
"""

from __future__ import annotations

import math
import random
from typing import Any, Final

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
USERS: Final = ("User:alice", "User:alice", "User:bob", "User:*", "Group:x", "alice", "User:", "user:alice", "", ":")
HOSTS: Final = ("*", "*", "*", "127.0.0.1", "10.0.0.1", "", "127.0.0.0/8", "::1")
NAMES: Final = ("t@", "t@", "u@", "t", "*", "g@", "tx@", "kafka-cluster", "", "alice", "User:alice")
OPERATIONS: Final = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 3, 8, 2, 1, 0, 16, -1, 100)
RESOURCES: Final = (2, 2, 2, 3, 3, 4, 5, 6, 7, 0, 1, 8, -1)
ACL: Final[dict[str, tuple[Any, ...]]] = {
    "resource_type": RESOURCES,
    "resource_name": NAMES,
    "resource_pattern_type": (3, 3, 3, 3, 4, 4, 0, 1, 2, 5, -1),
    "principal": USERS,
    "host": HOSTS,
    "operation": OPERATIONS,
    "permission_type": (3, 3, 3, 2, 2, 0, 1, 4, -1),
}
FILTER: Final[dict[str, tuple[Any, ...]]] = {
    "resource_type_filter": (1, 1, 1, *RESOURCES),
    "resource_name_filter": NAMES,
    "pattern_type_filter": (1, 1, 2, 2, 3, 3, 4, 4, 0, 5, -1),
    "principal_filter": USERS,
    "host_filter": HOSTS,
    "operation": (1, 1, 1, 1, 1, *OPERATIONS),
    "permission_type": (1, 1, 1, 1, 3, 2, 0, 4, -1),
}
SCRAM: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("bob@", "bob@", "eve@", "a,b=c", "Ö@", "", " "),
    "mechanism": (1, 1, 1, 2, 2, 0, 3, -1),
    "iterations": (4096, 4096, 8192, 16_384, 4095, 16_385, 0, -1),
    "salt": (b"salt", b"salt", b"pepper", b""),
    "salted_password": (b"password", b"password", b"p", b""),
}
ENTITY: Final[dict[str, tuple[Any, ...]]] = {
    "entity_type": ("user", "user", "client-id", "client-id", "ip", "bogus", "", "USER"),
    **dict.fromkeys(
        ("entity_name", "match"), ("bob@", "bob@", "e@", "10.1.2.3", "10.1.2.4", "::1", "", "not.a host", "<default>")
    ),
    "match_type": (0, 0, 0, 1, 1, 2, 2, 3, -1),
    "key": (
        "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
        "connection_creation_rate", "SCRAM-SHA-256", "bogus", "",
    ),
    # those that are allowed do not let our own requests wait
    "value": (1e9, 1e9, 2e9, 1e9 + 0.5, 1e18, 1e300, 0.0, -0.0, -1.0, math.inf, -math.inf, math.nan),
}  # fmt: skip
TOKEN: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("owner_principal_type", "principal_type"), ("User", "User", "User", "Group", "", "user")),
    **dict.fromkeys(("owner_principal_name", "principal_name"), ("alice", "alice", "bob", "admin", "n@", "")),
    "max_lifetime_ms": (-1, -1, 600_000, 300_000, 0, -2, 1 << 50, (1 << 63) - 1),
    **dict.fromkeys(("renew_period_ms", "expiry_time_period_ms"), (-1, 300_000, 90_000, 0, -2, 1 << 50, 400_000)),
}
PLACED: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("n@", "n@", "o@", "p.q@", "p_q@", "t@", "u@", "", ".", "..", "a b", "x" * 249, "x" * 250, "__n@"),
    "num_partitions": (1, 1, 2, 3, -1, -1, 0, -2, 20_000),
    "count": (1, 2, 3, 4, 5, 0, -1, 20_000),
    "replication_factor": (1, 1, 1, 1, -1, -1, 0, 2, -2, 32_767),
    "partition_index": (0, 0, 0, 1, 1, 2, -1),
}
VALUES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "CreateAcls": ACL,
    "DeleteAcls": FILTER,
    "DescribeAcls": FILTER,
    "AlterUserScramCredentials": SCRAM,
    "DescribeUserScramCredentials": SCRAM,
    "AlterClientQuotas": ENTITY,
    "DescribeClientQuotas": ENTITY,
    **dict.fromkeys(
        ("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken"), TOKEN
    ),
    "CreateTopics": PLACED,
    "CreatePartitions": {**PLACED, "name": ("t@", "t@", "u@", "u@", "n@", "missing@", "")},
    "UpdateFeatures": {
        "feature": (
            "transaction.version", "group.version", "share.version", "streams.version", "metadata.version",
            "kraft.version", "eligible.leader.replicas.version", "bogus", "",
        ),
        "max_version_level": (0, 1, 2, 1, 3, 7, 29, 30, 32_767, -1),
        "upgrade_type": (1, 1, 1, 2, 3, 0, 4, -1),
    },
    "ElectLeaders": {"election_type": (0, 0, 1, 1, 2, -1)},
    "AddRaftVoter": {"name": ("CONTROLLER", "controller", "x@"), "host": ("127.0.0.1", "h@")},
    "DescribeCluster": {"endpoint_type": (1, 1, 2, 0, 3, -1)},
    "ListConfigResources": {"resource_types": (2, 4, 8, 16, 32, 0, 1, 3, 64, -1, -128)},
    "ListTransactions": {
        "state_filters": ("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareAbort", "Dead", "ongoing", ""),
        "duration_filter": (-1, -1, -1, 0, -2, 1 << 40),
        "transactional_id_pattern": ("tx@", "t.*@", ".*", "", "[", "(?i)TX@", "a{2,1}", "^tx@$"),
    },
    "DescribeTransactions": {"transactional_ids": ("tx@", "tx@", "ty@", "none@", "", "x" * 300)},
    "DescribeTopicPartitions": {"response_partition_limit": (1, 2, 3, 100, 0, -1, 2000, 1 << 30)},
    "FindCoordinator": {
        **dict.fromkeys(
            ("key", "coordinator_keys"),
            ("g@", "tx@", "", f"g@:{'A' * 22}:0", f"g@:{'A' * 21}:0", "g@:x:0", ":", f"a:b:{'A' * 22}:1",
             f"g@:{'A' * 22}:-1", f"g@:{'A' * 22}:x", f":{'A' * 22}:0"),
        ),
        "key_type": (0, 1, 2, 2, 3, -1),
    },
}  # fmt: skip
CONFIGS: Final[dict[int, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]]] = {
    TOPIC: (
        ("t@", "t@", "u@", "n@", "missing@", "", "a b", "__consumer_offsets"),
        {
            "cleanup.policy": ("compact", "delete", "compact,delete", "bogus", "", "delete,bogus"),
            "retention.ms": ("1000", "-1", "-2", "+7", "1.5", "9223372036854775808"),
            "segment.bytes": ("1048576", "14", "1", "2147483648"),
            "min.insync.replicas": ("1", "2", "0"),
            "compression.type": ("zstd", "producer", "bogus", "GZIP"),
            "compression.gzip.level": ("-1", "9", "10", "0"),
            "local.retention.ms": ("-2", "100", "-3"),
            "local.retention.bytes": ("-2", "100", "1048576"),
            "remote.storage.enable": ("true", "false", "bogus"),
            "remote.log.copy.disable": ("true", "false"),
            "max.compaction.lag.ms": ("1", "100", "0"),
            "min.compaction.lag.ms": ("0", "100", "-1"),
            "leader.replication.throttled.replicas": ("*", "0:1", "none", "", "0:x", "1:1,0:1"),
            "min.cleanable.dirty.ratio": ("0.5", "1.5", "NaN", "1e-1"),
            "unclean.leader.election.enable": ("true", "false", " TRUE "),
            "errors.deadletterqueue.topic.name": ("x",),
        },
    ),
    BROKER: (
        ("1", "1", "", "2", "x", "01"),
        {
            "background.threads": ("10", "12", "0", "21", "bogus"),
            "log.retention.ms": ("3600000", "-1", "-5"),
            "log.cleaner.backoff.ms": ("15000", "-1"),
            "message.max.bytes": ("2000000", "-1"),
            "compression.type": ("gzip", "bogus"),
            "node.id": ("1", "2"),
            "follower.replication.throttled.rate": ("100", "-1"),
            "num.partitions": ("1", "2"),
            "log.cleanup.policy": ("delete", "compact,delete", "bogus"),
            "unclean.leader.election.enable": ("false", "bogus"),
            "ssl.keystore.password": ("secret",),
            "my.own.key": ("1", ""),
        },
    ),
    LOGGER: (
        ("1", "1", "2", "", "x"),
        {"none": ("WARN",), "no.such.logger": ("WARN", "ERROR", "bogus", "warn")},  # both have others at other levels
    ),
    METRICS: (
        ("m@", "m@", "k@", "", "m" * 300),
        {
            "metrics": ("*", "org.apache.kafka.producer.", "", "a,b", ",", "a,,b"),
            "interval.ms": ("100", "60000", "99", "3600001", "bogus"),
            "match": ("client_id=x", "client_id=[", "bogus=1", "client_id", "", "client_source_port=1,client_id=b"),
        },
    ),
    GROUP: (
        ("g@", "g@", "h@", "", "g" * 300),
        {
            "consumer.session.timeout.ms": ("45000", "1000", "999", "60001", "bogus"),
            "consumer.heartbeat.interval.ms": ("5000", "15001", "45000", "500"),
            "share.session.timeout.ms": ("45000", "1"),
            "share.record.lock.duration.ms": ("30000", "1000", "999"),
            "share.auto.offset.reset": ("earliest", "latest", "bogus", "by_duration:PT1H", "by_duration:-PT1H", "none"),
            "share.isolation.level": ("read_committed", "bogus"),
            "share.delivery.count.limit": ("5", "1", "100"),
            "streams.num.standby.replicas": ("0", "1", "3"),
            "streams.session.timeout.ms": ("45000", "1"),
            "streams.heartbeat.interval.ms": ("5000", "1"),
        },
    ),
}
RIGHT: Final = 0.75  # of the values that depend on others
NAMED: Final = {2: ("t@", "u@", "t", "*", "n@"), 3: ("g@", "h@", "*"), 4: ("kafka-cluster",), 5: ("tx@", "*")}
NAMED_AT_ALL: Final = ("*", "alice", "User:alice", "User:bob")  # resources of other types: tokens and users
GRANTED: Final = (2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14)


def values_of(api: str, episode: str) -> dict[str, tuple[Any, ...]]:
    """The values of the fields of an API; `@` stands for the episode in them."""
    return {
        name: tuple(one.replace("@", episode) if isinstance(one, str) else one for one in some)
        for name, some in VALUES.get(api, {}).items()
    }


def fitted(api: str, request: Any, chance: random.Random, episode: str) -> Any:
    """The request, in which most of what depends on something else fits to it."""
    if api.endswith("Acls"):
        entries = getattr(request, "creations", getattr(request, "filters", [request]))
        for one in entries:
            if chance.random() < RIGHT:
                _grant(one, chance, episode) if api == "CreateAcls" else _know(one)
    elif api == "CreateTopics":
        for one in request.topics:
            if chance.random() < RIGHT:
                one.assignments = []
            elif chance.random() < RIGHT:
                one.num_partitions = one.replication_factor = -1
            _fit(one.configs, TOPIC, chance)
    elif api == "CreatePartitions":
        for one in request.topics:
            if chance.random() < RIGHT:
                one.assignments = None
    elif api in ("AlterConfigs", "IncrementalAlterConfigs", "DescribeConfigs"):
        for one in request.resources:
            if chance.random() > RIGHT:
                continue
            kind = chance.choice((TOPIC, TOPIC, TOPIC, BROKER, BROKER, LOGGER, METRICS, GROUP, GROUP))
            one.resource_type = kind
            one.resource_name = chance.choice(CONFIGS[kind][0]).replace("@", episode)
            if api != "DescribeConfigs":
                _fit(one.configs, kind, chance)
            elif one.configuration_keys is not None or kind in (BROKER, LOGGER):  # of which each has its own
                known = sorted(CONFIGS[kind][1])
                one.configuration_keys = chance.sample(known, min(len(known), chance.randint(1, 3)))
        if api == "AlterConfigs":  # which Kafka does not answer if it names a resource twice
            named = {(one.resource_type, one.resource_name): one for one in request.resources}
            request.resources = list(named.values())
    return request


def _fit(configs: list[Any], kind: int, chance: random.Random) -> None:
    keys = CONFIGS[kind][1]
    for one, name in zip(configs, chance.sample(sorted(keys), min(len(configs), len(keys))), strict=False):
        if chance.random() < RIGHT:
            one.name = name
            one.value = chance.choice(keys[name]) if one.value is not None else None


def _grant(entry: Any, chance: random.Random, episode: str) -> None:
    """Makes an entry that gives rights, or takes them."""
    entry.resource_type = kind = chance.choice((2, 2, 2, 3, 3, 4, 4, 5, 6, 7))
    entry.resource_name = chance.choice(NAMED.get(kind, NAMED_AT_ALL)).replace("@", episode)
    entry.resource_pattern_type = chance.choice((3, 3, 3, 4))
    entry.principal = chance.choice(("User:alice", "User:alice", "User:bob", "User:*"))
    entry.host = chance.choice(("*", "*", "127.0.0.1", "10.0.0.1"))
    entry.operation, entry.permission_type = chance.choice(GRANTED), chance.choice((3, 3, 3, 3, 2))


def _know(wanted: Any) -> None:
    """Leaves no code in a filter that is unknown."""
    for name in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        if getattr(wanted, name) <= 0:
            setattr(wanted, name, 1)
