"""The stories of the earliest releases, told by ottla as it emulates them, and by Kafka 0.8.2.2 and 0.10.2.2.

What Kafka said was written down once (`tests.oracle.old_kafka`), and is compared always, byte by byte where records are
not compressed.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from ottla.protocol import compression, legacy
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, SNAPPY
from ottla.protocol.legacy import Message
from ottla.protocol.trees import tree

from ..support.differential import Pair
from ..support.stories.earlier import earlier_brokers, fetch, produce, sent, topic

pytestmark = pytest.mark.slow
HEAD = struct.Struct(">hhih")

release, kafka, ours, settled = earlier_brokers(("0.8.2", "0.10.2"))


def newest_of(release: str) -> tuple[int, int, int]:
    """The latest versions of Produce and Fetch, and of messages."""
    return (0, 0, 0) if release == "0.8.2" else (2, 3, 1)


def opened(reply: Any) -> None:
    """Puts messages in place of compressed ones: two libraries compress to other bytes, and 0.10.2 makes one compressed
    message of all that it converts for a client.
    """
    for found in reply.responses:
        for part in found.partitions:
            data = bytes(part.records)
            entries = list(legacy.entries(data))
            if any(one.codec for one in entries):
                codecs = [(one.offset, one.codec, one.timestamp) for one in entries if one.magic]
                part.records = repr((codecs, legacy.decode(data))).encode()


def test_produce_and_fetch(pair: Pair, release: str) -> None:
    topic(pair, "plain")
    for version in range(newest_of(release)[0] + 1):
        produce(pair, "plain", sent(b"a", b"b" * 50, b"", magic=0), version)
        produce(pair, "plain", legacy.encode([Message(7, None, None, 0), Message(8, b"", b"c", 0)]), version)
        if version == 2:
            produce(pair, "plain", sent(b"timed", b"too", magic=1), version)
    for version in range(newest_of(release)[1] + 1):
        for offset in (0, 1, 3, 4, 5, 6, 1000, -1, -7):
            fetch(pair, "plain", offset, version)
        if release == "0.8.2" or version > 1:  # 0.10.2 cuts before it converts
            for size in (0, 1, 12, 30, 31, 100, 120):
                fetch(pair, "plain", 0, version, bytes_max=size)
        fetch(pair, "plain", 0, version, partition=1)
        fetch(pair, "plain", 0, version, partition=9)
        fetch(pair, "absent", 0, version)
    assert pair.errors("Fetch") == {"NONE", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_compressed_messages(pair: Pair, release: str) -> None:
    topic(pair, "compressed")
    pair.trims["Fetch"] = opened
    _, newest, magic_max = newest_of(release)
    for magic in range(magic_max + 1):
        version = 2 if magic else 0
        for codec in (GZIP, SNAPPY):
            produce(pair, "compressed", sent(b"a" * 100, b"b" * 100, magic=magic, codec=codec), version)
        produce(pair, "compressed", sent(b"plain", magic=magic) + sent(b"x", b"y", magic=magic, codec=GZIP), version)
    for version in range(newest + 1):
        for offset in (0, 1, 2, 3, 5):
            fetch(pair, "compressed", offset, version)


def test_what_is_wrong_with_messages(pair: Pair, release: str) -> None:
    topic(pair, "wrong")
    good = sent(b"a" * 20, b"b" * 20)
    produce(pair, "wrong", b"")
    produce(pair, "wrong", good[:-1] + b"x")
    produce(pair, "wrong", good[:-5])
    produce(pair, "wrong", sent(b"x" * 10_001))
    produce(pair, "wrong", good, partition=7)
    if release != "0.8.2":  # which waits in vain for the second replica
        produce(pair, "wrong", good, acks=2)
    produce(pair, "wrong", sent(b"after", b"wards"), acks=-1)
    fetch(pair, "wrong", 0)
    inner = compression.compress(GZIP, sent(b"inner")[:-1] + b"x")
    produce(pair, "wrong", legacy.entry_of(Message(0, None, inner, 0), 0, GZIP))
    twice = legacy.entry_of(Message(0, None, compression.compress(GZIP, sent(b"inner")), 0), 0, GZIP)
    if release != "0.8.2":  # which stores it, and whose consumers cannot read it
        produce(pair, "wrong", legacy.entry_of(Message(0, None, compression.compress(GZIP, twice), 0), 0, GZIP))
    produce(pair, "wrong", legacy.entry_of(Message(0, None, b"nonsense", 0), 0, GZIP))
    assert pair.errors("Produce") >= {"NONE", "CORRUPT_MESSAGE", "MESSAGE_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_offsets_before_a_time(pair: Pair) -> None:
    topic(pair, "offsets")
    wanted_class = tree("ListOffsetsRequest", 0).at("topics.partitions").cls

    def ask(name: str, time: int, count: int, partition: int = 0) -> None:
        r = m.ListOffsetsRequest
        wanted = wanted_class(partition_index=partition, timestamp=time, max_num_offsets=count)
        pair.ask("ListOffsets", 0, r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[wanted])]))

    for _ in range(2):
        for time in (-1, -2, 0, 2**62):
            for count in (0, 1, 5):
                ask("offsets", time, count)
        produce(pair, "offsets", sent(b"a", b"b"))
    ask("offsets", -1, 1, partition=9)
    ask("absent", -1, 1)
    assert pair.errors("ListOffsets") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_offsets_of_groups(pair: Pair) -> None:
    topic(pair, "grouped")
    find = m.FindCoordinatorRequest(key="g")
    pair.until("FindCoordinator", 0, find, lambda reply: not reply.error_code)
    pair.ask("FindCoordinator", 0, find)
    r, q = m.OffsetCommitRequest, m.OffsetFetchRequest
    commit_class = tree("OffsetCommitRequest", 1).at("topics.partitions").cls
    asked = q(group_id="g", topics=[q.OffsetFetchRequestTopic(name="grouped", partition_indexes=[0, 1])])
    pair.until("OffsetFetch", 1, asked, lambda reply: not reply.topics[0].partitions[0].error_code)
    for offset, metadata in ((5, "m"), (7, ""), (8, "x" * 5000)):
        part = commit_class(
            partition_index=0, committed_offset=offset, committed_metadata=metadata, commit_timestamp=-1
        )
        topics = [r.OffsetCommitRequestTopic(name="grouped", partitions=[part])]
        pair.ask("OffsetCommit", 1, r(group_id="g", generation_id_or_member_epoch=-1, topics=topics))
        if len(metadata) < 100:  # 0.8.2 keeps what it refuses
            pair.ask("OffsetFetch", 1, asked)
    assert pair.errors("OffsetCommit") == {"NONE", "OFFSET_METADATA_TOO_LARGE"}


def test_what_the_release_does_not_know(pair: Pair, release: str) -> None:
    for key in (18, 36, 50, 200):
        if release == "0.10.2" and key == 18:
            continue
        mine, theirs = pair.raw(HEAD.pack(key, 0, 7, 1) + b"x")
        assert mine == theirs == "closed", key


def test_the_bytes_of_a_reply(pair: Pair) -> None:
    """Size, correlation id, one topic with one partition, its error, its high watermark, and a set of messages."""
    topic(pair, "bytes")
    produce(pair, "bytes", legacy.encode([Message(0, None, b"v", 0)]))
    body = struct.pack(">iiiih5siiqi", -1, 0, 0, 1, 5, b"bytes", 1, 0, 0, 1000)
    mine, theirs = pair.raw(HEAD.pack(1, 0, 7, 1) + b"x" + body)
    message = b"\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\1v"
    entry = struct.pack(">qiI", 0, 4 + len(message), zlib.crc32(message)) + message
    assert mine == theirs
    assert isinstance(mine, bytes)
    assert mine.endswith(struct.pack(">ihqi", 0, 0, 1, len(entry)) + entry)
