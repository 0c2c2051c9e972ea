"""Share sessions: the partitions that a member of a share group fetches over a connection (KIP-932).

A session belongs to a group's member and to the connection that opened it. When the connection closes, the member's
records are released. Unlike fetch sessions, share sessions are not evicted: beyond `group.share.max.share.sessions` a
new one is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors
from ...protocol.session_epochs import FIRST_EPOCH, next_epoch
from ..peer import Peer

OWN_WAIT_MS = 2  # the first wait of a fetch for its own member; the next ones are twice as long each
OWN_WAITS_MAX = 30  # doublings
ENTRIES_MAX = 500_000  # share-partitions in all sessions; Kafka bounds only the number of sessions


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class Wanted(NamedTuple):
    """A partition of a session. `topic` is its name when it was added; None for an unknown topic id."""

    topic_id: bytes
    partition: int
    topic: str | None


TopicPartition = tuple[bytes, int]


class ShareSession:
    """The partitions that one member fetches. `news`: the partitions that the next reply contains even without records.
    `own_waits`: how many fetches in a row have waited for acknowledgements of the member itself, since its last one.
    """

    __slots__ = ("entries", "epoch", "key", "news", "own_waits", "peer")

    def __init__(self, key: SessionKey, peer: Peer, wanted: Iterable[Wanted]) -> None:
        self.key = key
        self.peer = peer
        self.epoch = FIRST_EPOCH
        self.entries: dict[TopicPartition, Wanted] = {(one.topic_id, one.partition): one for one in wanted}
        self.news: set[TopicPartition] = set()
        self.own_waits = 0

    def next_own_wait_ms(self) -> int:
        """How long a fetch waits that only the member itself could satisfy, over the connection that the wait blocks: a
        few milliseconds, and longer each time, while the member acknowledges nothing.
        """
        self.own_waits = min(self.own_waits + 1, OWN_WAITS_MAX)
        return OWN_WAIT_MS << (self.own_waits - 1)

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[TopicPartition]) -> None:
        for one in wanted:
            key = one.topic_id, one.partition
            if key not in self.entries:
                self.entries[key] = one
                self.news.add(key)
        for key in forgotten:
            self.entries.pop(key, None)
            self.news.discard(key)

    def has_news(self, key: TopicPartition, has_records: bool, error_code: int) -> bool:
        """Whether a reply contains a partition."""
        return has_records or error_code != 0 or key not in self.entries or key in self.news

    def is_news(self, key: TopicPartition, has_records: bool, error_code: int) -> bool:
        """Like `has_news`, for a reply that is sent: partitions with records go to the end of the order."""
        is_in_reply = self.has_news(key, has_records, error_code)
        if key not in self.entries:
            return True
        self.news.discard(key)
        if error_code:
            self.news.add(key)
        if has_records:
            self.entries[key] = self.entries.pop(key)
        return is_in_reply


class ShareSessions:
    """The sessions of a broker. `on_leave(key, entries)` releases a member's records; `on_empty(group)` is called after
    a group's last session.
    """

    def __init__(
        self,
        limit: Callable[[], int],
        on_leave: Callable[[ShareSession], None],
        on_empty: Callable[[str], None],
    ) -> None:
        self.limit = limit
        self._on_leave = on_leave
        self._on_empty = on_empty
        self.sessions: dict[SessionKey, ShareSession] = {}
        self.entries = 0  # share-partitions in all sessions
        self.entries_max = ENTRIES_MAX
        self._of_group: Counter[str] = Counter()  # sessions by group
        self._of_peer: dict[Peer, ShareSession] = {}  # the last session that each connection opened
        self._stale: set[Peer] = set()  # connections of which a session has ended since
        self.evictions = 0

    def begin(self, key: SessionKey, peer: Peer, wanted: Iterable[Wanted]) -> None:
        """Opens a session, in place of the member's old one. Raises ApiError: SHARE_SESSION_LIMIT_REACHED,
        UNKNOWN_SERVER_ERROR if a partition is wanted twice, which Kafka's set of them takes with an exception.
        """
        self.end(key)
        wanted = list(wanted)
        session = ShareSession(key, peer, wanted)
        if len(session.entries) < len(wanted):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        if len(self.sessions) >= self.limit():
            raise ApiError(Errors.SHARE_SESSION_LIMIT_REACHED)
        self._check_room(len(wanted))
        self.sessions[key] = session
        self.entries += len(session.entries)
        self._of_group[key.group_id] += 1
        if peer not in self._of_peer:
            peer.on_lost.append(lambda: self._lost(peer))
        self._of_peer[peer] = session
        self._stale.discard(peer)

    def change(self, session: ShareSession, wanted: Sequence[Wanted], forgotten: Iterable[TopicPartition]) -> None:
        """Adds partitions to a session, and takes some out of it. Raises ApiError(SHARE_SESSION_LIMIT_REACHED)."""
        self._check_room(len(wanted))
        before = len(session.entries)
        session.update(wanted, forgotten)
        self.entries += len(session.entries) - before

    def _check_room(self, more: int) -> None:
        """Checks whether the sessions can hold `more` share-partitions. Raises
        ApiError(SHARE_SESSION_LIMIT_REACHED).
        """
        if more and self.entries + more > self.entries_max:
            raise ApiError(Errors.SHARE_SESSION_LIMIT_REACHED)

    def get(self, key: SessionKey) -> ShareSession:
        """Raises ApiError(SHARE_SESSION_NOT_FOUND)."""
        found = self.sessions.get(key)
        if found is None:
            raise ApiError(Errors.SHARE_SESSION_NOT_FOUND)
        return found

    def take(self, key: SessionKey, epoch: int) -> ShareSession:
        """Returns the session of a request and advances its epoch.
        Raises ApiError(SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH).
        """
        session = self.get(key)
        if session.epoch != epoch:
            raise ApiError(Errors.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(session.epoch)
        return session

    def end(self, key: SessionKey) -> ShareSession | None:
        session = self.sessions.pop(key, None)
        if session is not None:
            if session.peer in self._of_peer:
                self._stale.add(session.peer)
            self.entries -= len(session.entries)
            self._of_group[key.group_id] -= 1
            if not self._of_group[key.group_id]:
                del self._of_group[key.group_id]
        return session

    def clear(self) -> None:
        self.sessions.clear()
        self._of_group.clear()
        self.entries = 0

    def _lost(self, peer: Peer) -> None:
        """Ends the session that a lost connection has opened last, unless one of its sessions has ended since: Kafka
        notes for a connection that its session is over, also if that was another one.
        """
        session, is_stale = self._of_peer.pop(peer), peer in self._stale
        self._stale.discard(peer)
        found = None if is_stale else self.end(session.key)
        if found is not None:
            self.evictions += 1
            self._on_leave(found)
        if session.key.group_id not in self._of_group:
            self._on_empty(session.key.group_id)
