"""Old requests with message sets, for the fuzzer: real ones, nested ones, wrong checksums, and offsets that lie."""

from __future__ import annotations

import random
from typing import Any

from ottla.protocol import compression, legacy
from ottla.protocol import messages as m
from ottla.protocol.legacy import Message

BATCHES_SINCE = {0: 3, 1: 4}  # by API key: the first version without message sets


def messages(chance: random.Random, depth: int = 0) -> bytes:
    """A message set, perhaps with what no broker accepts."""
    made = []
    for _ in range(chance.choice((0, 1, 1, 2, 20))):
        offset = chance.choice((0, 1, -1, 2**62, -(2**63)))
        magic, codec = chance.choice((0, 1)), chance.choice((0, 0, 1, 2, 3, 4, 7))
        value = chance.choice((None, b"", b"v", chance.randbytes(50)))
        if codec and depth < 3:
            inner = messages(chance, depth + 1)
            value = compression.compress(codec, inner) if codec in range(1, 5) and chance.random() < 0.9 else inner
        data = legacy.entry_of(Message(offset, chance.choice((None, b"k")), value, magic, offset), offset, codec)
        if chance.random() < 0.1:
            data = data[:-1] + bytes([data[-1] ^ 1])
        made.append(data)
    return b"".join(made)


def request(key: int, topic: str, chance: random.Random) -> Any:
    """A Produce (0) or a Fetch (1) of a topic that exists."""
    if key == 0:
        r = m.ProduceRequest
        part = r.PartitionProduceData(index=0, records=messages(chance))
        return r(acks=1, timeout_ms=10, topic_data=[r.TopicProduceData(name=topic, partition_data=[part])])
    f = m.FetchRequest
    bytes_max = chance.choice((-1, 0, 1, 20, 1000, 2**31 - 1))
    wanted = f.FetchPartition(partition=0, fetch_offset=chance.randrange(-2, 50), partition_max_bytes=bytes_max)
    return f(replica_id=-1, max_wait_ms=0, topics=[f.FetchTopic(topic=topic, partitions=[wanted])])
