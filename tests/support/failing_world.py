"""A broker in memory whose files fail: requests to it."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m

from .ask import batch, fetch_message, produce_message, values
from .world import Answer, World

DURABLE = {"flush.messages": "1", "index.interval.bytes": "0", "segment.bytes": "1048576", "retention.ms": "-1"}


def ask(world: World, name: str, version: int, message: Any) -> Any:
    """The reply; None where the connection ends instead."""
    answer: Answer = world.send(name, version, message)
    for _ in range(600):
        if answer.done:
            return answer.reply
        world.pass_ms(100)
    raise AssertionError(f"{name} was not answered within a minute")


def create(world: World, name: str, **configs: str) -> int | None:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    topic.configs = [r.CreatableTopicConfig(name=k, value=v) for k, v in {**DURABLE, **configs}.items()]
    reply = ask(world, "CreateTopics", 5, r(topics=[topic], timeout_ms=10_000))
    return None if reply is None else int(reply.topics[0].error_code)


def produce(world: World, name: str, value: bytes, **template: Any) -> int | None:
    reply = ask(world, "Produce", 9, produce_message(name, batch(value, **template)))
    return None if reply is None else int(reply.responses[0].partition_responses[0].error_code)


def read(world: World, name: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        (answer,) = ask(world, "Fetch", 11, fetch_message(name, len(found))).responses[0].partitions
        assert answer.error_code == 0, answer
        if not answer.records:
            return found
        found += values(answer.records)


SETTINGS = {
    "transaction_partition_verification_enable": "false",  # a transaction needs no coordinator
    "metadata_log_max_record_bytes_between_snapshots": "1500",
    "log_retention_check_interval_ms": "60000",
}


def abortion(name: str, producer_id: int) -> Any:
    r = m.WriteTxnMarkersRequest
    topics = [r.WritableTxnMarkerTopic(name=name, partition_indexes=[0])]
    return r(markers=[r.WritableTxnMarker(producer_id=producer_id, producer_epoch=0, topics=topics)])
