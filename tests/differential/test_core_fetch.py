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
        for epoch in (0, 1, 5):
            fetch(0, current_leader_epoch=epoch)
    if version >= 12:
        for epoch in (0, 1, 5):
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


def test_fetch_sessions(pair: Pair) -> None:
    names = [f"se-{n}" for n in range(3)]
    ids = {n: topic(pair, n, 2) for n in names}
    r = m.FetchRequest

    def wanted(side: int, offsets: dict[str, int]) -> list[Any]:
        return [
            r.FetchTopic(
                topic_id=ids[n][side],
                partitions=[r.FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20) for p in (0, 1)],
            )
            for n, o in offsets.items()
        ]

    def ask(
        sessions: tuple[int, int], epoch: int, offsets: dict[str, int], forget: list[str] | None = None
    ) -> tuple[Any, Any]:
        requests = [
            r(
                session_id=sessions[side], session_epoch=epoch, topics=wanted(side, offsets), max_bytes=1 << 20,
                min_bytes=0,
                forgotten_topics_data=[r.ForgottenTopic(topic_id=ids[n][side], partitions=[0,
                1]) for n in forget or ()],
            )
            for side in (0, 1)
        ]  # fmt: skip
        return pair.ask("Fetch", 16, requests[1], requests[0])

    mine, other = ask((0, 0), 0, dict.fromkeys(names, 0))
    sessions = (mine.session_id, other.session_id)
    assert all(sessions)
    ask(sessions, 1, {})
    produce(pair, "se-1", ids["se-1"], batch("hello"))
    ask(sessions, 2, {})
    ask(sessions, 3, {})
    ask(sessions, 4, {"se-1": 1})
    ask(sessions, 5, {})
    ask(sessions, 5, {})  # an epoch that was
    ask(sessions, 6, {}, forget=["se-1"])
    produce(pair, "se-1", ids["se-1"], batch("unheard"))
    ask(sessions, 7, {})
    ask(sessions, 8, {"se-0": 99})
    ask(sessions, 9, {})
    ask((123456, 123456), 3, {})
    ask(sessions, -1, dict.fromkeys(names, 0))
    ask(sessions, 10, {})


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


def test_partitions_of_a_fetch_session_take_turns(pair: Pair) -> None:
    """One that got records is the last to be read, and one that did not stays where it was."""
    r, names = m.FetchRequest, ("turn-0", "turn-1")
    ids = {name: topic(pair, name, 2) for name in names}
    for name in (*names, *names):
        for partition in (0, 1):
            produce(pair, name, ids[name], batch("a" * 100), partition=partition)
    session, offsets = (0, 0), dict.fromkeys([(name, p) for p in (0, 1) for name in names], 0)

    def ask(epoch: int, *places: tuple[str, int], bytes_max: int = 1) -> tuple[Any, Any]:
        topics = []
        for name, index in places:
            part = r.FetchPartition(partition=index, fetch_offset=offsets[name, index], partition_max_bytes=1 << 20)
            topics.append(r.FetchTopic(topic=name, partitions=[part]))
        asked: dict[str, Any] = {"session_epoch": epoch, "topics": topics, "min_bytes": 0, "max_bytes": bytes_max}
        return pair.both("Fetch", 12, lambda side: r(session_id=session[side], **asked))

    first = ask(0, *offsets)
    session = (first[0].session_id, first[1].session_id)
    for epoch in range(1, 7):
        ask(epoch)
    offsets |= dict.fromkeys(offsets, 2)
    ask(7, *offsets)
    produce(pair, "turn-1", ids["turn-1"], batch("b"), partition=1)
    ask(8, bytes_max=1 << 20)
    produce(pair, "turn-0", ids["turn-0"], batch("b"), partition=1)
    produce(pair, "turn-1", ids["turn-1"], batch("b"), partition=0)
    for epoch in (9, 10, 11, 12):
        ask(epoch)
    ask(13, bytes_max=1 << 20)
    assert pair.errors("Fetch") == {"NONE"}


def test_a_fetch_session_may_begin_without_partitions(pair: Pair) -> None:
    ids, r = topic(pair, "se-empty"), m.FetchRequest
    for topics in ([], [r.FetchTopic(topic="se-empty")]):
        begun = pair.ask("Fetch", 12, r(session_epoch=0, min_bytes=0, topics=topics))
        assert all(reply.session_id for reply in begun)
        produce(pair, "se-empty", ids, batch("a"))
        part = r.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        wanted = [r.FetchTopic(topic="se-empty", partitions=[part])]
        for epoch, added in ((1, []), (2, wanted), (3, [])):
            pair.both(
                "Fetch",
                12,
                lambda side: r(
                    session_id=begun[side].session_id,  # noqa: B023
                    session_epoch=epoch,  # noqa: B023
                    topics=added,  # noqa: B023
                    min_bytes=0,
                    max_bytes=1 << 20,
                ),
            )


def test_a_fetch_session_goes_on_as_it_began(pair: Pair) -> None:
    """With names or with ids."""
    ids = topic(pair, "se-kind")

    def ask(version: int, sessions: tuple[int, int], epoch: int) -> tuple[Any, Any]:
        def make(side: int) -> Any:
            return fetch_request(version, "se-kind", ids[side], 0, session_id=sessions[side], session_epoch=epoch)

        return pair.both("Fetch", version, make)

    for first, then in ((12, 13), (13, 12)):
        mine, other = ask(first, (0, 0), 0)
        sessions = (mine.session_id, other.session_id)
        ask(then, sessions, 1)
        ask(first, sessions, 1)
    assert pair.errors("Fetch") == {"FETCH_SESSION_TOPIC_ID_ERROR", "NONE"}


@pytest.mark.parametrize("version", [12, 13, 18])
def test_a_fetch_session_knows_the_names_of_its_topics(pair: Pair, version: int) -> None:
    """With ids, a topic that was deleted is not unknown as one that the session never knew."""
    name, sessions = f"se-gone-{version}", [0, 0]
    ids = topic(pair, name)

    def ask(epoch: int, ids: tuple[bytes, bytes] | None = None, in_session: bool = True) -> None:
        def make(side: int) -> Any:
            of = (b"?" * 16 if ids is None else ids[side], sessions[side] if in_session else 0)
            made = fetch_request(version, name, of[0], 0, session_id=of[1], session_epoch=epoch)
            made.topics = made.topics if ids else []
            return made

        sessions[:] = [reply.session_id or sessions[n] for n, reply in enumerate(pair.both("Fetch", version, make))]

    ask(0, ids, in_session=False)
    ask(1)
    delete(pair, name)
    ask(2)
    ask(3, ids)
    ask(-1, ids, in_session=False)
    new_ids = topic(pair, name)
    produce(pair, name, new_ids, batch("new"))
    ask(4)
    ask(5, ids)
    ask(6, new_ids)
    ask(7)


@pytest.mark.parametrize("version", [13, 18])
def test_a_fetch_session_knows_the_name_of_a_topic_without_the_partition(pair: Pair, version: int) -> None:
    name, sessions = f"se-part-{version}", [0, 0]
    ids = topic(pair, name)

    def ask(epoch: int) -> None:
        def make(side: int) -> Any:
            made = fetch_request(version, name, ids[side], 0, session_id=sessions[side], session_epoch=epoch)
            made.topics[0].partitions[0].partition = 7
            made.topics = [] if epoch else made.topics
            return made

        sessions[:] = [reply.session_id or sessions[n] for n, reply in enumerate(pair.both("Fetch", version, make))]

    ask(0)
    ask(1)
    delete(pair, name)
    ask(2)


def delete(pair: Pair, name: str) -> None:
    """Deletes a topic, and waits until both brokers have heard of it."""
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000))
    r = m.MetadataRequest
    asked = r(topics=[r.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    pair.until("Metadata", 9, asked, is_absent)


def is_absent(metadata: Any) -> bool:
    return bool(metadata.topics[0].error_code)


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
        for epoch in (0, 1, 9):
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
                    for current in (-1, 0, 1):
                        part = r.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
                        pair.ask(
                            "OffsetForLeaderEpoch",
                            version,
                            r(topics=[r.OffsetForLeaderTopic(topic=wanted, partitions=[part])]),
                        )
        produce(pair, "ep", ids, batch("a", "b"))
    assert pair.errors("OffsetForLeaderEpoch") == {"NONE", "UNKNOWN_LEADER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION"}


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
