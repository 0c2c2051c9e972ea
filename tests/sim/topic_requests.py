"""Requests about topics in the simulator of security: what each may do, and what its reply must be."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ottla.coordinator.security.acls import Operation as O
from ottla.coordinator.security.acls import ResourceType as R
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors as E

from ..support.ask import batch, values
from ..support.stories.topics import creatable
from .limits_model import MUTATIONS
from .secured_world import TOPICS, Connection

DENIED, ABSENT, NO_ID = int(E.TOPIC_AUTHORIZATION_FAILED), int(E.UNKNOWN_TOPIC_OR_PARTITION), int(E.UNKNOWN_TOPIC_ID)
FULL = int(E.THROTTLING_QUOTA_EXCEEDED)
ROWS = (10, 10, 10, 3000)  # bytes of records


class Chosen:
    """Some topics of a request, by name or by id. Those that do not exist have an id, too, which no topic has."""

    def __init__(self, c: Connection, chance: random.Random, by_id: bool) -> None:
        self.names = chance.sample(TOPICS, chance.randint(1, 2))
        self.ids = {name: c.expected.ids.get(name) or chance.randbytes(16) for name in self.names}
        self.by_id = by_id

    def wanted(self, c: Connection, operation: O) -> dict[Any, int]:
        """The expected error codes, by name or id."""
        codes = {}
        for name in self.names:
            is_there = name in c.expected.topics
            if self.by_id and not is_there:
                codes[name] = NO_ID  # nothing is known that could be refused
            elif not c.may(operation, R.TOPIC, name):
                codes[name] = DENIED
            else:
                codes[name] = 0 if is_there else ABSENT
        return {self.key(name): code for name, code in codes.items()}

    def key(self, name: str) -> Any:
        return self.ids[name] if self.by_id else name

    def as_field(self, name: str, field: str = "name") -> dict[str, Any]:
        return {"topic_id": self.ids[name]} if self.by_id else {field: name}

    def allowed(self, found: dict[Any, int]) -> list[str]:
        """The names with code 0."""
        return [name for name in self.names if found[self.key(name)] == 0]


def _same(c: Connection, api: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{api} of {c.principal}: {found}, not {wanted}"


def produce(c: Connection, chance: random.Random) -> None:
    chosen = Chosen(c, chance, chance.random() < 0.4)
    rows = {name: chance.randbytes(chance.choice(ROWS)) for name in chosen.names}
    wanted = chosen.wanted(c, O.WRITE)
    r = m.ProduceRequest
    topics = [
        r.TopicProduceData(
            **chosen.as_field(name), partition_data=[r.PartitionProduceData(index=0, records=batch(rows[name]))]
        )
        for name in chosen.names
    ]
    reply = c.ask("Produce", 13 if chosen.by_id else 9, r(acks=-1, timeout_ms=10_000, topic_data=topics))
    found = {
        bytes(t.topic_id) if chosen.by_id else t.name: t.partition_responses[0].error_code for t in reply.responses
    }
    _same(c, "Produce", found, wanted)
    for name in chosen.allowed(found):
        c.expected.rows[name].append(rows[name])


def fetch(c: Connection, chance: random.Random) -> None:
    chosen = Chosen(c, chance, chance.random() < 0.4)
    wanted, r = chosen.wanted(c, O.READ), m.FetchRequest
    topics = [
        r.FetchTopic(
            **chosen.as_field(name, "topic"),
            partitions=[
                r.FetchPartition(partition=0, fetch_offset=c.expected.starts.get(name, 0), partition_max_bytes=1 << 20)
            ],
        )
        for name in chosen.names
    ]
    request = r(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=topics)
    reply = c.ask("Fetch", 16 if chosen.by_id else 12, request)
    if reply.throttle_time_ms:
        return
    parts = {bytes(t.topic_id) if chosen.by_id else t.topic: t.partitions[0] for t in reply.responses}
    _same(c, "Fetch", {key: part.error_code for key, part in parts.items()}, wanted)
    if c.expected.limits.of(c.user, "consumer_byte_rate") is not None:
        return  # it may be a part of the records
    for name in chosen.names:
        rows = c.expected.rows[name][c.expected.starts[name] :] if wanted[chosen.key(name)] == 0 else []
        _same(c, f"Fetch of {name}", values(parts[chosen.key(name)].records or b""), rows)


def list_offsets(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [r.ListOffsetsTopic(name=name, partitions=parts) for name in chosen.names]
    reply = c.ask("ListOffsets", 7, r(replica_id=-1, topics=topics))
    wanted = chosen.wanted(c, O.DESCRIBE)
    _same(c, "ListOffsets", {t.name: t.partitions[0].error_code for t in reply.topics}, wanted)
    found = {t.name: t.partitions[0].offset for t in reply.topics}
    ends = {name: len(c.expected.rows[name]) if wanted[name] == 0 else -1 for name in chosen.names}
    _same(c, "ListOffsets", found, ends)


def epochs(c: Connection, chance: random.Random) -> None:
    """Brokers may do this, too."""
    chosen, r = Chosen(c, chance, False), m.OffsetForLeaderEpochRequest
    wanted = chosen.wanted(c, O.DESCRIBE)
    if c.may(O.CLUSTER_ACTION, R.CLUSTER):
        wanted = {name: 0 if name in c.expected.topics else ABSENT for name in chosen.names}
    parts = [r.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    topics = [r.OffsetForLeaderTopic(topic=name, partitions=parts) for name in chosen.names]
    reply = c.ask("OffsetForLeaderEpoch", 4, r(replica_id=-2, topics=topics))
    found = {t.topic: t.partitions[0].error_code for t in reply.topics}
    _same(c, "OffsetForLeaderEpoch", found, wanted)


def producers(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.DescribeProducersRequest
    topics = [r.TopicRequest(name=name, partition_indexes=[0]) for name in chosen.names]
    reply = c.ask("DescribeProducers", 0, r(topics=topics))
    found = {t.name: t.partitions[0].error_code for t in reply.topics}
    _same(c, "DescribeProducers", found, chosen.wanted(c, O.READ))


def metadata_of_all(c: Connection, chance: random.Random) -> None:
    reply = c.ask("Metadata", 12, m.MetadataRequest(topics=None, include_topic_authorized_operations=True))
    found = {t.name: t.topic_authorized_operations for t in reply.topics if not t.name.startswith("__")}
    wanted = {
        name: c.expected.rights.bits(c.principal, c.host, R.TOPIC, name)
        for name in c.expected.topics
        if c.may(O.DESCRIBE, R.TOPIC, name)
    }
    _same(c, "Metadata", found, wanted)


def metadata_of_some(c: Connection, chance: random.Random) -> None:
    chosen, creates = Chosen(c, chance, chance.random() < 0.3), chance.random() < 0.3
    wanted, r = chosen.wanted(c, O.DESCRIBE), m.MetadataRequest
    new = []
    if creates and not chosen.by_id:
        for name in [name for name, code in wanted.items() if code == ABSENT]:
            if c.may(O.CREATE, R.CLUSTER) or c.may(O.CREATE, R.TOPIC, name):
                new.append(name)
            else:
                wanted[name] = DENIED
    topics = [r.MetadataRequestTopic(**({"name": None} | chosen.as_field(name))) for name in chosen.names]
    reply = c.ask("Metadata", 12, r(topics=topics, allow_auto_topic_creation=creates))
    found = {bytes(t.topic_id) if chosen.by_id else t.name: t.error_code for t in reply.topics}
    for name in new:  # whether it is there in time for the reply is not held against anyone
        found.pop(name)
        wanted.pop(name)
        c.world.pass_ms(50)
        made = c.world.broker.image.topics.get(name)
        if made is None:
            assert c.expected.limits.of(c.user, MUTATIONS) is not None, f"{name} was not created for {c.principal}"
        else:
            c.expected.made(name, made.id, 1)
    _same(c, "Metadata", found, wanted)


def topic_partitions(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.DescribeTopicPartitionsRequest
    is_all = chance.random() < 0.5
    topics = [] if is_all else [r.TopicRequest(name=name) for name in chosen.names]
    reply = c.ask("DescribeTopicPartitions", 0, r(topics=topics))
    found = {t.name: t.error_code for t in reply.topics if not t.name.startswith("__")}
    visible = {name: 0 for name in c.expected.topics if c.may(O.DESCRIBE, R.TOPIC, name)}
    _same(c, "DescribeTopicPartitions", found, visible if is_all else chosen.wanted(c, O.DESCRIBE))


def create(c: Connection, chance: random.Random) -> None:
    names = chance.sample(TOPICS, chance.randint(1, 2))
    counts = {name: chance.randint(1, 3) for name in names}
    all_ = c.may(O.CREATE, R.CLUSTER)
    wanted = {}
    for name in names:
        is_allowed = all_ or c.may(O.CREATE, R.TOPIC, name)
        wanted[name] = (int(E.TOPIC_ALREADY_EXISTS) if name in c.expected.topics else 0) if is_allowed else DENIED
    topics = [creatable(name, counts[name]) for name in names]
    reply = c.ask("CreateTopics", 7, m.CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    for name in _mutated(c, "CreateTopics", {t.name: t.error_code for t in reply.topics}, wanted):
        (topic,) = [t for t in reply.topics if t.name == name]
        c.expected.made(name, bytes(topic.topic_id), counts[name])
        may_read = c.may(O.DESCRIBE_CONFIGS, R.TOPIC, name)
        _same(c, f"configs of {name}", topic.topic_config_error_code, 0 if may_read else DENIED)
        _same(c, f"configs of {name}", bool(topic.configs), may_read)


def _mutated(c: Connection, api: str, found: dict[str, int], wanted: dict[str, int]) -> list[str]:
    """Compares the codes of a request that counts for the quota of mutations; returns the names with code 0."""
    if c.expected.limits.of(c.user, MUTATIONS) is not None:
        wanted = {name: FULL if found[name] == FULL and code == 0 else code for name, code in wanted.items()}
    _same(c, api, found, wanted)
    return [name for name, code in found.items() if code == 0]


def delete(c: Connection, chance: random.Random) -> None:
    chosen = Chosen(c, chance, chance.random() < 0.4)
    wanted = chosen.wanted(c, O.DESCRIBE)
    all_ = c.may(O.DELETE, R.CLUSTER)
    for name in chosen.names:
        is_there = name in c.expected.topics
        if all_:
            wanted[chosen.key(name)] = 0 if is_there else NO_ID if chosen.by_id else ABSENT
        elif wanted[chosen.key(name)] == 0 and not c.may(O.DELETE, R.TOPIC, name):
            wanted[chosen.key(name)] = DENIED
    r = m.DeleteTopicsRequest
    topics = [r.DeleteTopicState(**({"name": None} | chosen.as_field(name))) for name in chosen.names]
    reply = c.ask("DeleteTopics", 6, r(topics=topics, timeout_ms=10_000))
    names = {topic_id: name for name, topic_id in chosen.ids.items()}
    found = {(t.name or names[bytes(t.topic_id)]): t.error_code for t in reply.responses}
    for name in _mutated(c, "DeleteTopics", found, {name: wanted[chosen.key(name)] for name in chosen.names}):
        c.expected.gone(name)
    c.world.pass_ms(20)  # the offsets of deleted topics are deleted after the reply, as in Kafka


def grow(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.CreatePartitionsRequest
    counts = {name: c.expected.topics.get(name, 1) + chance.randint(1, 2) for name in chosen.names}
    wanted = chosen.wanted(c, O.ALTER)
    topics = [r.CreatePartitionsTopic(name=name, count=counts[name], assignments=None) for name in chosen.names]
    reply = c.ask("CreatePartitions", 3, r(topics=topics, timeout_ms=10_000))
    for name in _mutated(c, "CreatePartitions", {t.name: t.error_code for t in reply.results}, wanted):
        c.expected.topics[name] = counts[name]


def delete_records(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.DeleteRecordsRequest
    wanted = chosen.wanted(c, O.DELETE)
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=-1)]
    topics = [r.DeleteRecordsTopic(name=name, partitions=parts) for name in chosen.names]
    reply = c.ask("DeleteRecords", 2, r(topics=topics, timeout_ms=10_000))
    found = {t.name: t.partitions[0].error_code for t in reply.topics}
    _same(c, "DeleteRecords", found, wanted)
    for name in chosen.allowed(found):
        c.expected.starts[name] = len(c.expected.rows[name])


def alter_configs(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.IncrementalAlterConfigsRequest
    value = str(chance.randint(10**8, 10**9))
    wanted = chosen.wanted(c, O.ALTER_CONFIGS)
    one = r.AlterableConfig(name="retention.ms", config_operation=0, value=value)
    topics = [r.AlterConfigsResource(resource_type=2, resource_name=name, configs=[one]) for name in chosen.names]
    reply = c.ask("IncrementalAlterConfigs", 1, r(resources=topics))
    found = {t.resource_name: t.error_code for t in reply.responses}
    _same(c, "IncrementalAlterConfigs", found, wanted)
    c.expected.retention.update(dict.fromkeys(chosen.allowed(found), value))


def describe_configs(c: Connection, chance: random.Random) -> None:
    chosen, r = Chosen(c, chance, False), m.DescribeConfigsRequest
    wanted = chosen.wanted(c, O.DESCRIBE_CONFIGS)
    topics = [
        r.DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=["retention.ms"])
        for name in chosen.names
    ]
    reply = c.ask("DescribeConfigs", 4, r(resources=topics))
    _same(c, "DescribeConfigs", {t.resource_name: t.error_code for t in reply.results}, wanted)
    for name in [name for name, code in wanted.items() if code == 0]:
        (value,) = [one.configs[0].value for one in reply.results if one.resource_name == name]
        _same(c, "DescribeConfigs", value, c.expected.retention.get(name, "604800000"))


REQUESTS: tuple[Callable[[Connection, random.Random], None], ...] = (
    *(produce, produce, produce, fetch, fetch, list_offsets, epochs, producers),
    *(metadata_of_all, metadata_of_some, metadata_of_some, topic_partitions),
    *(create, create, delete, grow, delete_records, alter_configs, describe_configs),
)
