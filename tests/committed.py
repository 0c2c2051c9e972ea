"""What readers of committed records get of a topic, through librdkafka."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition


def committed(servers: str, topic: str, partitions: int) -> list[Message]:
    """Every committed record, each partition's in order."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True, "log_level": 2})
    reader.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    found: list[Message] = []
    ended: set[int | None] = set()
    while len(ended) < partitions:
        got = reader.consume(500, 20)
        assert got, "reading takes too long"
        for one in got:
            if one.error() is None:
                found.append(one)
            else:
                ended.add(one.partition())
    reader.close()
    return found
