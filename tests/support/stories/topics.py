"""Topics in the differential stories: made and written on both sides."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records, schema
from ottla.protocol.records import Record, Template

from ..differential import Pair
from ..poll import until

T = 1_700_000_000_000


def versions(name: str) -> range:
    """The released versions of a request."""
    loaded = schema.load(f"{name}Request")
    return range(loaded.valid.low, loaded.valid.high + (0 if loaded.unstable else 1))


def creatable(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Any:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    topic.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    return topic


def create(pair: Pair, *topics: Any, version: int = 7, validate_only: bool = False) -> None:
    pair.ask(
        "CreateTopics",
        version,
        m.CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only),
    )


def topic_ids(pair: Pair, name: str) -> tuple[bytes, bytes]:
    """The topic's id here and there, waiting until both tell it."""
    request = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )

    def ids() -> tuple[bytes, bytes] | None:
        found = [w.ask("Metadata", 12, request).topics[0] for w in pair.wires]
        if all(f.error_code == 0 and f.partitions for f in found) and all(_leads(w, found[0]) for w in pair.wires):
            return found[0].topic_id, found[1].topic_id
        return None

    return until(ids, f"both brokers serve {name}")


def _leads(wire: Any, topic_known: Any) -> bool:
    """Whether the broker serves the topic already, and does not only know of it."""
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=p.partition_index, timestamp=-1) for p in topic_known.partitions]
    topic = r.ListOffsetsTopic(name=topic_known.name, partitions=parts)
    answer = wire.ask("ListOffsets", 5, r(replica_id=-1, topics=[topic]))
    return all(p.error_code == 0 for p in answer.topics[0].partitions)


def batch(*values: str | None, codec: int = 0, keys: list[str] | None = None, **template: Any) -> bytes:
    rows = [
        Record(keys[i].encode() if keys else None, None if v is None else v.encode(), T + i)
        for i, v in enumerate(values)
    ]
    return bytes(records.encode(rows, Template(codec=codec, **template)))


def produce_request(version: int, name: str, topic_id: bytes, data: Any, partition: int = 0, acks: int = -1) -> Any:
    r = m.ProduceRequest
    part = r.PartitionProduceData(index=partition, records=data)
    topic = r.TopicProduceData(partition_data=[part])
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.name = name
    return r(acks=acks, timeout_ms=5000, topic_data=[topic])


def produce(pair: Pair, name: str, ids: tuple[bytes, bytes], data: Any, version: int = 9, **more: Any) -> Any:
    theirs = produce_request(version, name, ids[1], data, **more)
    mine = produce_request(version, name, ids[0], data, **more)
    return pair.ask("Produce", version, theirs, mine)[0]


def topic(pair: Pair, name: str, partitions: int = 1, **configs: str) -> tuple[bytes, bytes]:
    create(pair, creatable(name, partitions, 1, **configs))
    return topic_ids(pair, name)
