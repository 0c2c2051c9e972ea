"""What readers of committed records get of a topic, through librdkafka."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition

from .poll import until


def committed(servers: str, topic: str, partitions: int) -> list[Message]:
    """Every committed record, each partition's in order."""
    reader = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True, "log_level": 2}
    )
    reader.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    found: list[Message] = []
    ended: set[int | None] = set()

    def is_read() -> bool:
        for one in reader.consume(500, 0.2):
            if one.error() is None:
                found.append(one)
            else:
                ended.add(one.partition())
        return len(ended) >= partitions

    until(is_read, f"{topic} is read to its end")
    reader.close()
    return found
