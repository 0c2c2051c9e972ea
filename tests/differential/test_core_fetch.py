"""Fetch, offsets and epochs, told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.core import fetch_request, offsets_topic_made
from ..support.stories.topics import (
    T,
    batch,
    produce,
    topic,
    versions,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", versions("Fetch"))
def test_fetch(pair: Pair, version: int) -> None:
    name = f"fe-{version}"
    ids = topic(pair, name, 2)
    for n in range(4):
        produce(pair, name, ids, batch(*[f"{n}-{i}" for i in range(5)]))

    def fetch(offset: int, wanted: str = name, **more: Any) -> None:
        unknown = b"?" * 16
        theirs = fetch_request(version, wanted, ids[1] if wanted == name else unknown, offset, **more)
        mine = fetch_request(version, wanted, ids[0] if wanted == name else unknown, offset, **more)
        pair.ask("Fetch", version, theirs, mine)

    for offset in (0, 1, 5, 7, 19, 20, 21, -1, 1000):
        fetch(offset)
    for size in (0, 1, 100, 200):
        fetch(3, partition_max_bytes=size)
        fetch(3, max_bytes=size)
    fetch(0, partition=1)
    fetch(0, partition=9)
    fetch(0, wanted="absent")
    fetch(0, isolation_level=1)
    if version >= 9:
        for epoch in (0, 1, 5, -2):
            fetch(0, current_leader_epoch=epoch)
    if version >= 12:
        for epoch in (0, 1, 5, -2):
            fetch(3, last_fetched_epoch=epoch)
            fetch(50, last_fetched_epoch=epoch)
            fetch(50, last_fetched_epoch=epoch, isolation_level=1)
    fetch(20, max_wait_ms=50, min_bytes=10)
    assert pair.errors("Fetch") >= {"NONE", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION"}


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_an_isolation_level_that_does_not_exist(pair: Pair, version: int) -> None:
    name = f"il-{version}"
    ids = topic(pair, name)
    produce(pair, name, ids, batch("a"))

    def fetch(wanted: str, level: int, **more: Any) -> None:
        known = ids if wanted == name else (b"?" * 16, b"?" * 16)
        mine, theirs = (fetch_request(version, wanted, one, 0, isolation_level=level, **more) for one in known)
        pair.ask("Fetch", version, theirs, mine)

    for level in (2, -1):
        fetch(name, level)
        fetch(name, level, partition=9)
        fetch("absent", level)
    assert pair.errors("Fetch") == {
        "NONE",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
        *(["UNKNOWN_TOPIC_ID"] if version >= 13 else []),
    }


@pytest.mark.parametrize("version", versions("Fetch"))
def test_a_first_batch_that_does_not_fit_is_left_out(pair: Pair, version: int) -> None:
    """Of every partition but the first one that has records: what it has of the bytes goes to the next one."""
    r, name = m.FetchRequest, f"fits-{version}"
    ids = topic(pair, name, 4)
    for partition in range(4):
        for values in (("a" * 200,), ("b",)):
            produce(pair, name, ids, batch(*values), partition=partition)

    def ask(bytes_max: int, *sizes: int, level: int = 1, offsets: tuple[int, ...] = (0, 0, 0, 0)) -> None:
        def make(side: int) -> Any:
            parts = [
                r.FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=size)
                for p, (size, offset) in enumerate(zip(sizes, offsets, strict=True))
            ]
            known = {"topic_id": ids[side]} if version >= 13 else {"topic": name}
            wanted = [r.FetchTopic(partitions=parts, **known)]
            return r(topics=wanted, min_bytes=0, max_bytes=bytes_max, isolation_level=level)

        pair.both("Fetch", version, make)

    for level in (0, 1):
        for sizes in ((1, 1, 1, 1), (0, 200, 0, 1 << 20), (1 << 20, 100, 300, 269), (1, 268, 267, 0)):
            ask(1 << 20, *sizes, level=level)
    for bytes_max in (0, 1, 300, 340, 341, 500, 700):
        ask(bytes_max, *[1 << 20] * 4)
    ask(1 << 20, 1, 1, 70, 1 << 20, offsets=(2, 1, 1, 2))
    ask(1 << 20, 1, 1, 1, 1, offsets=(2, 2, 2, 0))


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_partitions_that_do_not_exist_come_last(pair: Pair, version: int) -> None:
    r, name = m.FetchRequest, f"last-{version}"
    ids = topic(pair, name, 2)
    produce(pair, name, ids, batch("a"))

    def named(side: int, wanted: str) -> dict[str, Any]:
        topic_id = ids[side] if wanted == name else b"?" * 16
        return {"topic_id": topic_id} if version >= 13 else {"topic": wanted}

    def ask(session: tuple[int, int], epoch: int, *places: tuple[str, int]) -> tuple[Any, Any]:
        def make(side: int) -> Any:
            asked = r(session_id=session[side], session_epoch=epoch, min_bytes=0, max_bytes=1 << 20)
            for wanted, index in places:
                part = r.FetchPartition(partition=index, partition_max_bytes=1 << 20)
                asked.topics.append(r.FetchTopic(partitions=[part], **named(side, wanted)))
            return asked

        return pair.both("Fetch", version, make)

    begun = ask((0, 0), 0, ("absent", 0), (name, 9), (name, 0), ("gone", 1), (name, 1))
    if version >= 7:
        session = (begun[0].session_id, begun[1].session_id)
        ask(session, 1)
        produce(pair, name, ids, batch("b"), partition=1)
        ask(session, 2, ("late", 0), (name, 0))
    assert pair.errors("Fetch") >= {"UNKNOWN_TOPIC_OR_PARTITION", *(["UNKNOWN_TOPIC_ID"] if version >= 13 else [])}


@pytest.mark.parametrize("version", versions("ListOffsets"))
def test_list_offsets(pair: Pair, version: int) -> None:
    name = f"lo-{version}"
    ids = topic(pair, name)
    r = m.ListOffsetsRequest

    def ask(timestamp: int, wanted: str = name, **more: Any) -> None:
        part = r.ListOffsetsPartition(timestamp=timestamp, **more)
        for isolation in (0, 1) if version >= 2 else (0,):
            pair.ask(
                "ListOffsets",
                version,
                r(
                    replica_id=-1,
                    isolation_level=isolation,
                    topics=[r.ListOffsetsTopic(name=wanted, partitions=[part])],
                ),
            )

    for _ in range(2):
        for timestamp in range(-8, 0):
            ask(timestamp)
        for timestamp in (0, T, T + 1, T + 2, T + 3, T + 100):
            ask(timestamp)
        produce(pair, name, ids, batch("a", "b", "c"))
        produce(pair, name, ids, batch("a", "b", "c", codec=4))
    ask(-1, wanted="absent")
    ask(-1, partition_index=5)
    if version >= 4:
        for epoch in (0, 1, 9, -2):
            ask(-1, current_leader_epoch=epoch)
    part = r.ListOffsetsPartition(timestamp=-1)
    pair.ask("ListOffsets", version, r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=[part, part])]))
    assert pair.errors("ListOffsets") >= {
        "INVALID_REQUEST",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNSUPPORTED_VERSION",
    }


@pytest.mark.parametrize("version", [2, 5, 11])
def test_offsets_of_an_isolation_level_that_does_not_exist(pair: Pair, version: int) -> None:
    name = f"lil-{version}"
    topic(pair, name)
    r = m.ListOffsetsRequest

    def ask(level: int, *topics: tuple[str, int, int]) -> None:
        wanted = [
            r.ListOffsetsTopic(
                name=name, partitions=[r.ListOffsetsPartition(partition_index=index, timestamp=timestamp)]
            )
            for name, index, timestamp in topics
        ]
        pair.ask("ListOffsets", version, r(replica_id=-1, isolation_level=level, topics=wanted))

    for level in (2, -1):
        ask(level, (name, 0, -1))
        ask(level, (name, 9, -9), ("absent", 0, -1))
        ask(level)
    empty = r.ListOffsetsTopic(name=name)
    pair.ask("ListOffsets", version, r(replica_id=-1, topics=[empty]))
    assert pair.errors("ListOffsets") == {"UNKNOWN_SERVER_ERROR"}


def test_leader_epochs(pair: Pair) -> None:
    ids = topic(pair, "ep")
    r = m.OffsetForLeaderEpochRequest
    for _ in range(2):
        for version in versions("OffsetForLeaderEpoch"):
            for wanted in ("ep", "absent"):
                for epoch in (-1, 0, 1, 7):
                    for current in (-2, -1, 0, 1):
                        part = r.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
                        pair.ask(
                            "OffsetForLeaderEpoch",
                            version,
                            r(topics=[r.OffsetForLeaderTopic(topic=wanted, partitions=[part])]),
                        )
        produce(pair, "ep", ids, batch("a", "b"))
    assert pair.errors("OffsetForLeaderEpoch") >= {"FENCED_LEADER_EPOCH", "NONE", "UNKNOWN_LEADER_EPOCH"}


def test_delete_records(pair: Pair) -> None:
    offsets_topic_made(pair)
    ids = topic(pair, "dr")
    topic(pair, "dr-compacted", cleanup_policy="compact")
    r = m.DeleteRecordsRequest

    def ask(version: int, offset: int, name: str = "dr", partition: int = 0) -> None:
        part = r.DeleteRecordsPartition(partition_index=partition, offset=offset)
        pair.ask(
            "DeleteRecords", version, r(topics=[r.DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000)
        )

    for version in versions("DeleteRecords"):
        for _ in range(3):
            produce(pair, "dr", ids, batch("a", "b", "c"))
        base = 9 * version
        for offset in (base + 1, base + 1, base, base + 5, 10_000, -2):
            ask(version, offset)
        fetch = [fetch_request(12, "dr", i, base + 2) for i in ids]
        pair.ask("Fetch", 12, fetch[1], fetch[0])
        list_request = m.ListOffsetsRequest
        part = list_request.ListOffsetsPartition(timestamp=-2)
        pair.ask(
            "ListOffsets",
            7,
            list_request(replica_id=-1, topics=[list_request.ListOffsetsTopic(name="dr", partitions=[part])]),
        )
        ask(version, -1)
        ask(version, 0, name="absent")
        ask(version, 0, partition=4)
        ask(version, 0, name="dr-compacted")
        ask(version, 0, name="__consumer_offsets", partition=1)
    none = r.DeleteRecordsTopic(name="dr")
    for topics in ([none], [none, r.DeleteRecordsTopic(name="absent")]):
        pair.ask("DeleteRecords", 2, r(topics=topics, timeout_ms=5000))
    assert pair.errors("DeleteRecords") == {
        "INVALID_TOPIC_EXCEPTION",
        "NONE",
        "OFFSET_OUT_OF_RANGE",
        "POLICY_VIOLATION",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("Fetch") == {"NONE", "OFFSET_OUT_OF_RANGE"}
