"""Share sessions: their partitions, what replies contain, and what ends with a connection."""

from __future__ import annotations

import pytest
from ottla.broker.peer import Peer
from ottla.broker.share.sessions import (
    OWN_WAIT_MS,
    OWN_WAITS_MAX,
    SessionKey,
    ShareSession,
    ShareSessions,
    TopicPartition,
    Wanted,
)
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.session_epochs import FIRST_EPOCH

TOPIC = b"t" * 16
KEY, OTHER = SessionKey("g", "m"), SessionKey("g", "n")


def wanted(*partitions: int) -> list[Wanted]:
    return [Wanted(TOPIC, partition, "topic") for partition in partitions]


def key(partition: int) -> TopicPartition:
    return TOPIC, partition


def connection() -> Peer:
    return Peer("PLAINTEXT", "127.0.0.1:50000")


def lose(peer: Peer) -> None:
    for call in list(peer.on_lost):
        call()


class Sessions(ShareSessions):
    """Sessions that note whose records are released, and which groups have no session any more."""

    def __init__(self, limit: int = 10) -> None:
        self.released: list[str] = []
        self.emptied: list[str] = []
        super().__init__(
            lambda: limit, lambda session: self.released.append(session.key.member_id), self.emptied.append
        )


def refused(code: int) -> pytest.RaisesExc[ApiError]:
    return pytest.raises(ApiError, check=lambda error: error.code == code)


def test_a_session_is_taken_with_its_epoch_only() -> None:
    sessions = Sessions()
    with refused(Errors.SHARE_SESSION_NOT_FOUND):
        sessions.take(KEY, FIRST_EPOCH)
    sessions.begin(KEY, connection(), wanted(0))
    assert sessions.take(KEY, FIRST_EPOCH).epoch == FIRST_EPOCH + 1
    with refused(Errors.INVALID_SHARE_SESSION_EPOCH):
        sessions.take(KEY, FIRST_EPOCH)


def test_a_new_session_takes_the_place_of_the_members_old_one() -> None:
    sessions = Sessions(limit=1)
    sessions.begin(KEY, connection(), wanted(0, 1))
    sessions.begin(KEY, connection(), wanted(2))
    assert list(sessions.get(KEY).entries) == [key(2)]
    assert sessions.entries == 1
    with refused(Errors.SHARE_SESSION_LIMIT_REACHED):
        sessions.begin(OTHER, connection(), wanted(0))


def test_the_partitions_of_all_sessions_are_bounded() -> None:
    sessions = Sessions()
    sessions.entries_max = 3
    sessions.begin(KEY, connection(), wanted(0, 1))
    sessions.begin(OTHER, connection(), wanted(2))
    session = sessions.get(KEY)
    with refused(Errors.SHARE_SESSION_LIMIT_REACHED):
        sessions.change(session, wanted(3), [])
    sessions.entries_max = 2
    sessions.change(session, [], [key(0)])  # can only make room
    sessions.entries_max = 3
    sessions.change(session, wanted(3), [])
    assert (list(session.entries), sessions.entries) == ([key(1), key(3)], 3)


def test_without_share_groups_there_are_no_sessions() -> None:
    sessions = Sessions()
    peer = connection()
    sessions.begin(KEY, peer, wanted(0, 1))
    sessions.clear()
    assert (sessions.sessions, sessions.entries) == ({}, 0)
    lose(peer)
    assert (sessions.released, sessions.emptied, sessions.evictions) == ([], ["g"], 0)


def test_a_reply_contains_records_errors_and_what_is_new() -> None:
    session = ShareSession(KEY, connection(), wanted(0, 1))
    assert [session.is_news(key(n), False, 0) for n in (0, 1)] == [False, False]
    session.update(wanted(2), [])
    assert [session.is_news(key(2), False, 0) for _ in range(2)] == [True, False]
    assert session.is_news(key(0), True, 0)
    assert list(session.entries) == [key(1), key(2), key(0)], "partitions with records are fetched last the next time"
    assert [session.is_news(key(1), False, code) for code in (Errors.KAFKA_STORAGE_ERROR, 0, 0)] == [True, True, False]
    assert session.is_news(key(9), False, 0), "it is not in the session"


def test_a_partition_that_was_forgotten_is_not_news_when_it_comes_again_in_the_same_request() -> None:
    session = ShareSession(KEY, connection(), wanted(0))
    session.update(wanted(1), [key(1)])
    assert (list(session.entries), session.news) == ([key(0)], set())


def test_waits_for_the_member_itself_double_to_a_bound() -> None:
    session = ShareSession(KEY, connection(), wanted(0))
    waits = [session.next_own_wait_ms() for _ in range(OWN_WAITS_MAX + 5)]
    assert waits[:3] == [OWN_WAIT_MS, 2 * OWN_WAIT_MS, 4 * OWN_WAIT_MS]
    assert waits[-1] == OWN_WAIT_MS << (OWN_WAITS_MAX - 1)


def test_a_lost_connection_ends_the_session_that_it_opened_last() -> None:
    sessions = Sessions()
    peer, second = connection(), connection()
    sessions.begin(KEY, peer, wanted(0))
    sessions.begin(KEY, peer, wanted(1))
    sessions.begin(OTHER, second, wanted(0))
    assert len(peer.on_lost) == 1
    lose(peer)
    assert (sessions.released, sessions.emptied, sessions.evictions, sessions.entries) == (["m"], [], 1, 1)
    lose(second)
    assert (sessions.released, sessions.emptied, sessions.evictions, sessions.entries) == (["m", "n"], ["g"], 2, 0)


def test_a_lost_connection_leaves_the_session_that_another_one_opened() -> None:
    sessions = Sessions()
    peer = connection()
    sessions.begin(KEY, peer, wanted(0))
    sessions.begin(KEY, connection(), wanted(1))
    lose(peer)
    assert (sessions.released, sessions.emptied, sessions.evictions) == ([], [], 0)
    assert list(sessions.get(KEY).entries) == [key(1)]


def test_a_lost_connection_leaves_its_last_session_if_another_one_of_it_has_ended() -> None:
    sessions = Sessions()
    peer, second = connection(), connection()
    for one in (peer, second):
        sessions.begin(OTHER, one, wanted(1))
        sessions.begin(KEY, one, wanted(0))
        sessions.end(OTHER)
    sessions.begin(OTHER, second, wanted(1))
    lose(peer)
    assert (sessions.released, sessions.evictions) == ([], 0)
    lose(second)
    assert (sessions.released, list(sessions.sessions)) == (["n"], [KEY])
