"""Offsets by time, and the time of commits, in earlier releases. Kafka's answers were written down once, as in
`test_earlier_releases`.
"""

from __future__ import annotations

import time

import pytest
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP
from ottla.protocol.trees import tree

from ..support.differential import Pair
from ..support.stories.earlier import SETTINGS, T, earlier_brokers, produce, sent, topic

pytestmark = pytest.mark.slow
OWN: dict[str, object] = {
    "offsets.retention.minutes": 1440,
    "offsets.retention.check.interval.ms": 200,
    "offsets.topic.num.partitions": 1,
}
release, kafka, ours, settled = earlier_brokers(("0.10.2", "1.1"), SETTINGS | OWN)
HOUR_MS = 3_600_000


def test_offsets_by_time(pair: Pair) -> None:
    """Where messages have no time, none is found by it."""
    r, c = m.ListOffsetsRequest, m.CreateTopicsRequest
    for name, version in (("f0", "0.9.0"), ("f1", "0.10.0")):
        config = c.CreatableTopicConfig(name="message.format.version", value=version)
        wanted = c.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[config])
        pair.ask("CreateTopics", 0, c(topics=[wanted], timeout_ms=5000))
        topic(pair, name)
        produce(pair, name, sent(b"a", b"b"), 0)
        produce(pair, name, sent(b"c", b"d", magic=1), 2)
        produce(pair, name, sent(b"e", b"f", magic=1, codec=GZIP), 2)
        for timestamp in (-2, -1, 0, T - 1, T, T + 1, T + 2, 2**62):
            part = r.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            asked = r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[part])])
            pair.ask("ListOffsets", 1, asked)
    assert pair.errors("ListOffsets") == {"NONE", "UNSUPPORTED_FOR_MESSAGE_FORMAT"}


def test_the_time_of_a_commit(pair: Pair) -> None:
    """From it the retention time of an offset counts, which is a day."""
    topic(pair, "timed")
    find = m.FindCoordinatorRequest(key="g")
    pair.until("FindCoordinator", 0, find, lambda reply: not reply.error_code)
    r, q = m.OffsetCommitRequest, m.OffsetFetchRequest
    commit_class = tree("OffsetCommitRequest", 1).at("topics.partitions").cls
    now = int(time.time() * 1000)

    def asked(group: str) -> m.OffsetFetchRequest:
        return q(group_id=group, topics=[q.OffsetFetchRequestTopic(name="timed", partition_indexes=[0, 1])])

    pair.until("OffsetFetch", 1, asked("g"), lambda reply: not reply.topics[0].partitions[0].error_code)
    for group, times in (
        ("now", (-1, now)),
        ("lately", (now - 23 * HOUR_MS, -1)),
        ("later", (now + HOUR_MS, now - 20 * HOUR_MS)),
        ("long ago", (now - 25 * HOUR_MS, -1)),
        ("never", (0, -7)),
    ):
        parts = [
            commit_class(partition_index=n, committed_offset=5, committed_metadata="m", commit_timestamp=one)
            for n, one in enumerate(times)
        ]
        topics = [r.OffsetCommitRequestTopic(name="timed", partitions=parts)]
        pair.ask("OffsetCommit", 1, r(group_id=group, generation_id_or_member_epoch=-1, topics=topics))

    def is_gone(reply: m.OffsetFetchResponse) -> bool:
        return all(one.committed_offset == -1 for one in reply.topics[0].partitions)

    pair.until("OffsetFetch", 1, asked("never"), is_gone)
    for group in ("now", "lately", "later", "long ago", "never"):
        pair.ask("OffsetFetch", 1, asked(group))
