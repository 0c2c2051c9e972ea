"""Fetch sessions (KIP-227), told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.stories.core import fetch_request
from ..support.stories.topics import batch, produce, topic

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(
    ("epoch", "has_id"), [(2, True), (0, True), (-1, True), (0, False)], ids=["next", "anew", "ended", "another"]
)
def test_a_session_is_used_on_another_connection_while_a_fetch_of_it_waits(
    pair: Pair, epoch: int, has_id: bool
) -> None:
    """The one that waits is answered when its time is over: that it is overtaken, or as if the session went on."""
    name = f"se-used-{epoch}-{has_id}"
    topic(pair, name)
    part = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    wanted = [m.FetchRequest.FetchTopic(topic=name, partitions=[part])]
    begun = pair.both("Fetch", 12, lambda _: m.FetchRequest(session_epoch=0, min_bytes=0, topics=wanted))

    def at(epoch: int, side: int, wait_ms: int, topics: list[Any], has_id: bool = True) -> Any:
        session_id = begun[side].session_id if has_id else 0
        return m.FetchRequest(
            session_id=session_id, session_epoch=epoch, max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, topics=topics
        )

    pair.say("Fetch", 12, lambda side: at(1, side, 1000, []))
    other = pair.beside("other")
    other.both("Fetch", 12, lambda side: at(epoch, side, 0, [] if epoch == 2 else wanted, has_id))
    waited = pair.hear("Fetch", 12)
    assert [reply.session_id for reply in waited] == [reply.session_id for reply in begun]
    other.both("Fetch", 12, lambda side: at(3 if epoch == 2 else 2, side, 0, []))
    other.close()
    overtaken = {"INVALID_FETCH_SESSION_EPOCH"} if epoch == 2 else set()
    ended = {"FETCH_SESSION_ID_NOT_FOUND"} if has_id and epoch != 2 else set()
    assert pair.errors("Fetch") == {"NONE", *overtaken, *ended}


@pytest.mark.parametrize("version", [7, 12])
def test_an_id_that_no_cache_of_sessions_has_fails_a_fetch(pair: Pair, version: int) -> None:
    """Kafka has eight caches, each with a range of ids."""
    name, ids = f"se-range-{version}", (2**31 - 1) // 8
    topic(pair, name)
    part = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    wanted = [m.FetchRequest.FetchTopic(topic=name, partitions=[part])]
    for session_id in (-(2**31), -ids, 1 - ids, -1, 8 * ids - 1, 8 * ids, 2**31 - 1):
        for epoch in (-1, 0, 3):
            request = m.FetchRequest(session_id=session_id, session_epoch=epoch, min_bytes=0, topics=wanted)
            pair.ask("Fetch", version, request)
    assert pair.errors("Fetch") == {"NONE", "FETCH_SESSION_ID_NOT_FOUND", "UNKNOWN_SERVER_ERROR"}


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
