"""The codec beside kafka-python's compiled protocol, on the same messages: microseconds and ratios."""

from __future__ import annotations

import time
import timeit
from typing import Any

from kafka.protocol.consumer import FetchResponse, OffsetCommitRequest
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.producer import ProduceRequest
from ottla.protocol import codec, messages


def offset_commit() -> Any:
    r = messages.OffsetCommitRequest
    part = [
        r.OffsetCommitRequestPartition(partition_index=p, committed_offset=10**10 + p, committed_leader_epoch=1)
        for p in range(10)
    ]
    topics = [r.OffsetCommitRequestTopic(name=f"topic-{t}", partitions=part) for t in range(5)]
    return r(group_id="g1", generation_id_or_member_epoch=3, member_id="m" * 30, topics=topics)


def fetch_response() -> Any:
    r = messages.FetchResponse
    parts = [r.PartitionData(partition_index=p, high_watermark=p, records=b"x" * 1000) for p in range(50)]
    return r(responses=[r.FetchableTopicResponse(topic="t", partitions=parts)])


def produce() -> Any:
    r = messages.ProduceRequest
    parts = [r.PartitionProduceData(index=p, records=b"x" * 1000) for p in range(50)]
    return r(acks=-1, timeout_ms=1000, topic_data=[r.TopicProduceData(name="t", partition_data=parts)])


def metadata() -> Any:
    r = messages.MetadataResponse
    parts = [
        r.MetadataResponsePartition(partition_index=i, leader_id=1, leader_epoch=3, replica_nodes=[1], isr_nodes=[1])
        for i in range(1000)
    ]
    return r(
        brokers=[r.MetadataResponseBroker(node_id=1, host="h", port=9092)],
        topics=[r.MetadataResponseTopic(name="t", partitions=parts)],
    )


def heartbeat() -> Any:
    r = messages.ConsumerGroupHeartbeatRequest
    owned = [r.TopicPartitions(topic_id=bytes(range(16)), partitions=list(range(10)))]
    return r(
        group_id="g", member_id="m" * 22, member_epoch=5, subscribed_topic_names=["a", "b"], topic_partitions=owned
    )


CASES = (
    ("OffsetCommitRequest", 9, offset_commit, OffsetCommitRequest),
    ("FetchResponse", 12, fetch_response, FetchResponse),
    ("ProduceRequest", 9, produce, ProduceRequest),
    ("MetadataResponse", 12, metadata, MetadataResponse),
    ("ConsumerGroupHeartbeatRequest", 0, heartbeat, None),  # kafka-python 3 has no such message
)


def micros(call: Any) -> float:
    call()
    count = max(5, int(0.02 / max(1e-7, timeit.timeit(call, number=3) / 3)))
    return min(timeit.repeat(call, number=count, repeat=7)) / count * 1e6


def main() -> None:
    began = time.perf_counter()
    for name, version, make, theirs in CASES:
        message = make()
        data = bytes(codec.build(name, version, message))
        ours_parse = micros(lambda n=name, v=version, d=data: codec.parse(n, v, d))
        ours_build = micros(lambda n=name, v=version, m=message: codec.build(n, v, m))
        if theirs is None:
            print(f"{name:30} parse {ours_parse:8.1f} us; build {ours_build:8.1f} us")
            continue
        other = theirs.decode(data, version=version)
        their_parse = micros(lambda t=theirs, v=version, d=data: t.decode(d, version=v))
        try:
            their_build = micros(lambda o=other, v=version: o.encode(version=v))
        except AttributeError:  # a decoded request has no header, and cannot be written again as it is
            other._header = None
            their_build = micros(lambda o=other, v=version: o.encode(version=v))
        print(
            f"{name:30} parse {ours_parse:8.1f} us, {ours_parse / their_parse:.2f} of kafka-python; "
            f"build {ours_build:8.1f} us, {ours_build / their_build:.2f}",
            flush=True,
        )
    print(f"({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
