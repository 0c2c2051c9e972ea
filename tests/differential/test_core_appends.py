"""Produce, told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair
from ..support.stories.core import fetch_request, offsets_topic_made
from ..support.stories.topics import (
    batch,
    produce,
    produce_request,
    topic,
    topic_ids,
    versions,
)

pytestmark = pytest.mark.slow


# produce


@pytest.mark.parametrize("version", versions("Produce"))
def test_produce(pair: Pair, version: int) -> None:
    name = f"pr-{version}"
    ids = topic(pair, name, 2)
    for acks in (-1, 1):
        produce(pair, name, ids, batch("a", "b"), version, acks=acks)
    for codec in range(5):
        produce(pair, name, ids, batch("a" * 500, "b", codec=codec), version)
    produce(pair, name, ids, batch("a"), version, acks=5)
    produce(pair, name, ids, batch("a"), version, partition=9)
    produce(pair, "absent", (b"?" * 16, b"?" * 16), batch("a"), version)
    good = batch("a")
    for data in (
        b"",
        good[:40],
        good + good,
        good[:-1] + bytes([good[-1] ^ 1]),
        good[:16] + b"\x01" + good[17:],
        good[:16] + b"\x00" + good[17:],
        good[:16] + b"\x03" + good[17:],
        b"\0\0\0\0\0\0\0\x05" + good[8:],
        good[:8] + b"\0\0\0\x05" + good[12:],
        good[:8] + b"\xff\xff\xff\xff" + good[12:],
        good[:8] + b"\0\0\0\x2a" + good[12:],
    ):
        produce(pair, name, ids, data, version)
    produce(pair, name, ids, batch("x" * 1_100_000), version)
    produce(pair, name, ids, batch("c", control=True), version)
    assert pair.errors("Produce") >= {
        "CORRUPT_MESSAGE",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "MESSAGE_TOO_LARGE",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize("version", versions("Produce"))
def test_internal_topics_are_not_for_producers(pair: Pair, version: int) -> None:
    offsets_topic_made(pair)
    produce(pair, "__consumer_offsets", topic_ids(pair, "__consumer_offsets"), batch("x", keys=["k"]), version=version)
    produce(pair, "__transaction_state", (b"x" * 16, b"x" * 16), batch("x", keys=["k"]), version=version)
    assert pair.errors("Produce") >= {"INVALID_TOPIC_EXCEPTION"}


def test_an_internal_topic_is_the_last_that_is_wrong(pair: Pair) -> None:
    offsets_topic_made(pair)
    good = batch("x", keys=["k"])
    for data, partition, acks in ((good, 1, 5), (b"", 1, -1), (good + good, 1, -1), (good, 99, -1), (good, 1, -1)):
        produce(pair, "__consumer_offsets", (NO_UUID, NO_UUID), data, 9, partition=partition, acks=acks)
    assert pair.errors("Produce") == {
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TOPIC_EXCEPTION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_records_that_are_no_batch_refuse_all_of_a_request(pair: Pair) -> None:
    topic(pair, "garbage", 2)
    good, bad, short = batch("a"), b"garbage" * 9, batch("a")[:8] + b"\0\0\0\5" + batch("a")[12:]

    def ask(*topics: tuple[str, list[tuple[int, bytes | None]]], acks: int = -1) -> None:
        r = m.ProduceRequest
        wanted = [
            r.TopicProduceData(
                name=name, partition_data=[r.PartitionProduceData(index=index, records=data) for index, data in parts]
            )
            for name, parts in topics
        ]
        pair.ask("Produce", 9, r(acks=acks, timeout_ms=10_000, topic_data=wanted))

    for data in (bad, short):
        ask(("garbage", [(0, good), (1, data)]))
        ask(("garbage", [(0, data), (1, good), (9, good)]), acks=7)
        ask(("absent", [(0, data)]))
        ask(("garbage", [(9, data)]))
    ask(("absent", [(0, b"")]))
    ask(("garbage", [(0, good[:10]), (1, good)]))
    for rest in (bad, bad[:16], short, good[:40], good[:16] + b"\1" + good[17:], b"\0"):
        ask(("garbage", [(0, good + rest), (1, good)]))
    pair.ask("Fetch", 11, fetch_request(11, "garbage", NO_UUID, 0))
    assert pair.errors("Produce") == {
        "CORRUPT_MESSAGE",
        "INVALID_RECORD",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_what_is_refused_at_once_is_answered_last(pair: Pair) -> None:
    """Partitions that do not exist, and then records that are no batch; several without an id are in the order of
    hash tables.
    """
    found, other = topic(pair, "last"), topic(pair, "other")
    missing = [f"missing-{n}" for n in range(7)]
    r = m.ProduceRequest

    def ask(*names: str, data: dict[str, bytes] | None = None, **more: Any) -> None:
        for version in (9, 13):
            ids = {name: (bytes([n + 1]) * 16,) * 2 for n, name in enumerate(missing)} | {"last": found, "other": other}

            def request(side: int, version: int = version, ids: Any = ids) -> Any:
                topics = []
                for name in names:
                    part = r.PartitionProduceData(index=0, records=(data or {}).get(name, batch(name)))
                    named = {"name": name} if version < 13 else {"topic_id": ids[name][side]}
                    topics.append(r.TopicProduceData(partition_data=[part], **named))
                return r(acks=-1, timeout_ms=10_000, topic_data=topics, **more)

            pair.both("Produce", version, request)

    ask(missing[0], "last")
    ask("other", missing[0], "last", data={"other": b""})
    ask(missing[1], "last", missing[0], data={"last": b"", missing[1]: b""})
    ask(*missing[:4])
    ask(*missing)
    transactional = batch("t", transactional=True)
    ask(missing[0], missing[1], data={missing[0]: transactional, missing[1]: b"garbage" * 9}, transactional_id="x")
    assert pair.errors("Produce") == {"INVALID_RECORD", "NONE", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_partition_counts_once(pair: Pair) -> None:
    """What is given for it last is appended, and topics without partitions are not in the reply."""
    topic(pair, "repeated")
    topic(pair, "beside")
    r = m.ProduceRequest

    def named(name: str, *values: str) -> Any:
        parts = [r.PartitionProduceData(index=0, records=batch(value)) for value in values]
        return r.TopicProduceData(name=name, partition_data=parts)

    for topics in (
        [named("repeated", "a", "b")],
        [named("repeated", "c"), named("repeated", "d")],
        [named("beside"), named("repeated", "e")],
        [named("beside"), named("absent")],
        [],
    ):
        pair.ask("Produce", 9, r(acks=-1, timeout_ms=10_000, topic_data=topics))
    pair.ask("Fetch", 11, fetch_request(11, "repeated", NO_UUID, 0))


def crafted(data: bytes, place: int, value: bytes) -> bytes:
    """A batch with other bytes at a place, and a CRC that fits."""
    changed = bytearray(data)
    changed[place : place + len(value)] = value
    changed[17:21] = records.computed_crc(changed, 0, len(changed)).to_bytes(4, "big")
    return bytes(changed)


def test_batches_that_lie(pair: Pair) -> None:
    ids = topic(pair, "lies")
    good = batch("a", "b", "c")
    for place, value in (
        (23, b"\0\0\0\x09"),  # last offset delta
        (23, b"\xff\xff\xff\xff"),
        (57, b"\0\0\0\0"),  # record count
        (57, b"\0\0\0\x09"),
        (57, b"\xff\xff\xff\xff"),
        (21, b"\0\x05"),  # a codec that does not exist
        (21, b"\0\x07"),
        (43, b"\0\0\0\0\0\0\0\x07"),  # a producer id without epoch and sequence
    ):
        produce(pair, "lies", ids, crafted(good, place, value))
    assert pair.errors("Produce") == {"INVALID_RECORD", "UNKNOWN_SERVER_ERROR"}


def test_idempotent_producers(pair: Pair) -> None:
    ids = topic(pair, "idem")

    def send(pid: int, epoch: int, sequence: int, *values: str, version: int = 9) -> None:
        data = batch(*values, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        produce(pair, "idem", ids, data, version)

    for version in (3, 8, 13):
        pid = 5000 + version
        send(pid, 0, 0, "a", "b", version=version)
        send(pid, 0, 2, "c", version=version)
        send(pid, 0, 2, "c", version=version)  # once more
        send(pid, 0, 0, "a", "b", version=version)
        send(pid, 0, 5, "too", "far", version=version)
        send(pid, 0, 1, "b", version=version)
        for n in range(3, 10):
            send(pid, 0, n, "x", version=version)
        send(pid, 0, 2, "c", version=version)  # no longer remembered
        send(pid, 1, 4, "new epoch", version=version)
        send(pid, 1, 0, "new epoch", version=version)
        send(pid, 0, 10, "old epoch", version=version)
        send(pid + 100, 0, 77, "anywhere", version=version)
        send(pid + 200, 0, 2**31 - 2, "to", "the", "end", version=version)
        send(pid + 200, 0, 1, "and on", version=version)
    pair.ask("DescribeProducers", 0, describe_producers("idem", 0))
    pair.ask("DescribeProducers", 0, describe_producers("idem", 7))
    for name in ("absent", ".", "", "in valid", "x" * 250):
        pair.ask("DescribeProducers", 0, describe_producers(name, 0))
    assert pair.errors("Produce") == {"INVALID_PRODUCER_EPOCH", "NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER"}
    assert pair.errors("DescribeProducers") == {"INVALID_TOPIC_EXCEPTION", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_timestamps_that_are_out_of_bounds(pair: Pair) -> None:
    """What is said of them holds the bounds, which are of the moment."""
    topic(pair, "bounds", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    for version in (7, 8, 9):
        told = []
        for side, wire in enumerate(pair.wires):
            request = produce_request(version, "bounds", topic_ids(pair, "bounds")[side], batch("a", "b"))
            answer = wire.ask("Produce", version, request).responses[0].partition_responses[0]
            text = re.sub(r"\d{10,}", "N", repr(answer))
            told.append(text)
        assert told[0] == told[1]
        assert ("out of range" in told[0]) is (version >= 8)


def describe_producers(name: str, partition: int) -> Any:
    r = m.DescribeProducersRequest
    return r(topics=[r.TopicRequest(name=name, partition_indexes=[partition])])


def test_topic_configs_have_their_effect_on_produce(pair: Pair) -> None:
    ids = topic(pair, "compacted", cleanup_policy="compact")
    for version in (7, 9):
        produce(pair, "compacted", ids, batch("no key"), version)
        produce(pair, "compacted", ids, batch("k", keys=["a"]), version)
        produce(pair, "compacted", ids, batch("1", "2", "3", "4", "5"), version)
    ids = topic(pair, "small-inside", max_decompressed_message_bytes="2000", cleanup_policy="compact")
    for codec in (0, 1, 2, 3, 4):
        produce(pair, "small-inside", ids, batch("x" * 3000, codec=codec, keys=["k"]))
    ids = topic(pair, "appendtime", message_timestamp_type="LogAppendTime")
    produce(pair, "appendtime", ids, batch("a", "b"))
    ids = topic(pair, "small", max_message_bytes="200")
    produce(pair, "small", ids, batch("x" * 300))
    produce(pair, "small", ids, batch("x"))
    ids = topic(pair, "two-of-one", min_insync_replicas="2")
    produce(pair, "two-of-one", ids, batch("x"))
    produce(pair, "two-of-one", ids, batch("x"), acks=1)
    for kind in ("gzip", "uncompressed", "zstd", "lz4", "snappy"):
        ids = topic(pair, f"as-{kind}", compression_type=kind)
        produce(pair, f"as-{kind}", ids, batch("x" * 1000, codec=0))
        produce(pair, f"as-{kind}", ids, batch("x" * 1000, codec=2))
        fetched = [
            next(records.batches(data)).header.codec
            for data in (
                w.ask("Fetch", 4, fetch_request(4, f"as-{kind}", NO_UUID, 0)).responses[0].partitions[0].records
                for w in pair.wires
            )
        ]
        assert fetched[0] == fetched[1]


def test_batches_that_no_segment_holds(pair: Pair) -> None:
    """They are refused, whatever is wrong with their sequence numbers, once their records are known to be good."""
    name, segment_bytes = "segments", 1 << 20
    ids = topic(pair, name, segment_bytes=str(segment_bytes), max_message_bytes="3000000")
    fitting = segment_bytes - len(batch("", keys=["k"])) - 4  # the lengths of the record and of its value grow
    for version in (4, 7, 12, 13):
        for size in (fitting, fitting + 1, 2 * segment_bytes):
            produce(pair, name, ids, batch("x" * size, keys=["k"]), version)
    known: dict[str, Any] = {"producer_id": 1000, "producer_epoch": 0}
    for sequence in (0, 5, 0):
        produce(pair, name, ids, batch("x" * 2 * segment_bytes, keys=["k"], base_sequence=sequence, **known))
        produce(pair, name, ids, batch("x", base_sequence=sequence, **known))
    produce(pair, name, ids, batch("x" * 2 * segment_bytes, codec=1))
    ids = topic(
        pair,
        "unpacked",
        segment_bytes=str(segment_bytes),
        compression_type="uncompressed",
        max_message_bytes="3000000",
        cleanup_policy="compact",
    )
    produce(pair, "unpacked", ids, batch("x" * 2 * segment_bytes, codec=1, keys=["k"]))
    produce(pair, "unpacked", ids, batch("x" * 2 * segment_bytes, codec=1))
    assert pair.errors("Produce") >= {"NONE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"}


def test_producer_ids(pair: Pair) -> None:
    r = m.InitProducerIdRequest
    for version in versions("InitProducerId"):
        pair.ask("InitProducerId", version, r(transactional_id=None, transaction_timeout_ms=60_000))
        pair.ask("InitProducerId", version, r(transactional_id="", transaction_timeout_ms=60_000))
    assert pair.errors("InitProducerId") == {"INVALID_REQUEST", "NONE"}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_a_topic_compresses_has_the_same_bytes(pair: Pair, codec: str) -> None:
    levels = {"snappy": (), "gzip": (1, 9), "lz4": (3, 9, 12), "zstd": (-5, 1, 12)}[codec]
    for level in (None, *levels):
        name = f"squeezed-{codec}-{level}"
        configs: dict[str, Any] = {"compression.type": codec}
        if level is not None:
            configs[f"compression.{codec}.level"] = str(level)
        ids = topic(pair, name, **configs)
        few = "".join(chr(65 + n * n % 23) for n in range(3000))
        for value in ("", "ab", "a" * 100_000, few, few * 40):
            produce(pair, name, ids, batch(value, value[:50]))
        pair.ask("Fetch", 11, fetch_request(11, name, ids[0], 0))
    assert pair.errors("Fetch") == {"NONE"}
