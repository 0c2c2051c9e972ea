"""What a Fetch waits for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ottla.broker.peer import Peer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.topic_world import create
from ..support.world import Answer, World

WAIT_MS = 500
EVICTION_MS = 120_000  # for so long a session stays although another one wants its place
OTHER = Peer("PLAINTEXT", "127.0.0.1:2")


def in_session(session_id: int, epoch: int, wait_ms: int) -> m.FetchRequest:
    return m.FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, session_id=session_id, session_epoch=epoch, topics=[]
    )


def fetch(*places: tuple[str, int]) -> m.FetchRequest:
    r = m.FetchRequest
    topics = [
        r.FetchTopic(topic=n, partitions=[r.FetchPartition(partition=p, partition_max_bytes=99)]) for n, p in places
    ]
    return r(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1000, topics=topics)


@pytest.mark.parametrize("absent", [("absent", 0), ("t", 9)])
def test_a_fetch_waits_for_partitions_beside_one_that_does_not_exist(absent: tuple[str, int]) -> None:
    w = World()
    create(w, "t", 1)
    waiting = w.send("Fetch", 12, fetch(absent, ("t", 0)))
    alone = w.send("Fetch", 12, fetch(absent))
    assert alone.done, "there is nothing to wait for"
    assert not waiting.done
    w.ask("Produce", 9, produce_message("t", batch(b"v"), 0))
    assert waiting.done
    codes = [part.error_code for topic in waiting.reply.responses for part in topic.partitions]
    assert codes == [0, Errors.UNKNOWN_TOPIC_OR_PARTITION]


def opened(w: World) -> int:
    """Opens a session with the partition of a new topic; returns its id."""
    create(w, "t", 1)
    opening = fetch(("t", 0))
    opening.session_epoch, opening.max_wait_ms = 0, 0
    session_id = w.ask("Fetch", 12, opening).session_id
    assert session_id
    return int(session_id)


@pytest.mark.parametrize("ends", [lambda w, first: first.waiting.cancel(), lambda w, first: w.pass_ms(WAIT_MS)])
def test_a_session_that_fetches_over_another_connection_is_woken_when_the_first_fetch_has_ended(
    ends: Callable[[World, Answer], None],
) -> None:
    """The connection of the first fetch is lost later, or the fetch has waited for long enough."""
    w = World()
    session_id = opened(w)
    first = w.send("Fetch", 12, in_session(session_id, 1, WAIT_MS))
    second = w.send("Fetch", 12, in_session(session_id, 2, 100 * WAIT_MS), OTHER)
    ends(w, first)
    assert not second.done
    w.ask("Produce", 9, produce_message("t", batch(b"v"), 0))
    assert second.done
    assert len(second.reply.responses[0].partitions[0].records)
    if first.done:
        assert (first.reply.error_code, first.reply.responses) == (Errors.INVALID_FETCH_SESSION_EPOCH, [])


@pytest.mark.parametrize("is_in_time", [True, False])
def test_a_fetch_whose_session_is_evicted_goes_on_waiting(is_in_time: bool) -> None:
    """Its client hears at the next fetch that the session is gone, as in Kafka."""
    w = World(max_incremental_fetch_session_cache_slots="1")
    session_id = opened(w)
    w.pass_ms(EVICTION_MS + 1)
    waiting = w.send("Fetch", 12, in_session(session_id, 1, EVICTION_MS + WAIT_MS))
    w.pass_ms(EVICTION_MS + 1)
    larger = fetch(("t", 0), ("t", 1))
    larger.session_epoch, larger.max_wait_ms = 0, 0
    assert w.send("Fetch", 12, larger, OTHER).reply.session_id
    assert not waiting.done
    if is_in_time:
        w.ask("Produce", 9, produce_message("t", batch(b"v"), 0))
    else:
        w.pass_ms(WAIT_MS)
    assert waiting.done
    found = [len(part.records) > 0 for topic in waiting.reply.responses for part in topic.partitions]
    assert (waiting.reply.session_id, found) == (session_id, [True] if is_in_time else [])
    gone = w.ask("Fetch", 12, in_session(session_id, 2, 0))
    assert gone.error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    (partition,) = w.broker.partitions.of_topic("t")
    assert len(partition.waiters) == 1, "only the session that is there listens"
