"""Share sessions: which partitions a member of a share group fetches, over which connection (KIP-932).

A session belongs to a group's member and to the connection that opened it. When that connection ends, what the member holds is released.
Unlike fetch sessions none makes room for another: beyond `group.share.max.share.sessions` a new one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..protocol.errors import ApiError, Errors
from .context import Peer

INITIAL_EPOCH, FINAL_EPOCH = 0, -1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class Wanted(NamedTuple):
    """A partition of a session. `topic` is the name it had when it was added; None for an id that nobody knew."""

    topic_id: bytes
    partition: int
    topic: str | None


TopicPartition = tuple[bytes, int]


class ShareSession:
    """What one member fetches. `news`: the partitions that are told of even if they bring nothing."""

    __slots__ = ("entries", "epoch", "key", "news", "peer")

    def __init__(self, key: SessionKey, peer: Peer, wanted: Iterable[Wanted]) -> None:
        self.key = key
        self.peer = peer
        self.epoch = 1
        self.entries: dict[TopicPartition, Wanted] = {(one.topic_id, one.partition): one for one in wanted}
        self.news: set[TopicPartition] = set()

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[TopicPartition]) -> None:
        for one in wanted:
            key = one.topic_id, one.partition
            if key not in self.entries:
                self.entries[key] = one
                self.news.add(key)
        for key in forgotten:
            self.entries.pop(key, None)
            self.news.discard(key)

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == 2**31 - 1 else self.epoch + 1

    def is_news(self, key: TopicPartition, has_records: bool, error_code: int) -> bool:
        """Whether a partition is to be told of. Those that brought something go to the end of the line."""
        if key not in self.entries:
            return True
        told = has_records or error_code != 0 or key in self.news
        self.news.discard(key)
        if error_code:
            self.news.add(key)
        if has_records:
            self.entries[key] = self.entries.pop(key)
        return told


class ShareSessions:
    """The sessions of a broker. `on_leave(key, entries)` releases what a member holds; `on_empty(group)` ends a group's last one."""

    def __init__(self, limit: Callable[[], int], on_leave: Callable[[ShareSession], None], on_empty: Callable[[str], None]) -> None:
        self._limit = limit
        self._on_leave = on_leave
        self._on_empty = on_empty
        self.sessions: dict[SessionKey, ShareSession] = {}
        self._of_peer: dict[Peer, ShareSession] = {}  # the last session that each connection opened
        self.evictions = 0

    def begin(self, key: SessionKey, peer: Peer, wanted: Iterable[Wanted]) -> None:
        """A new session in the place of the member's old one. ApiError(SHARE_SESSION_LIMIT_REACHED)."""
        self.sessions.pop(key, None)
        if len(self.sessions) >= self._limit():
            raise ApiError(Errors.SHARE_SESSION_LIMIT_REACHED)
        self.sessions[key] = session = ShareSession(key, peer, wanted)
        if peer not in self._of_peer:
            peer.on_lost.append(lambda: self._lost(peer))
        self._of_peer[peer] = session

    def get(self, key: SessionKey) -> ShareSession:
        """ApiError(SHARE_SESSION_NOT_FOUND)."""
        found = self.sessions.get(key)
        if found is None:
            raise ApiError(Errors.SHARE_SESSION_NOT_FOUND)
        return found

    def take(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request with its epoch. ApiError(SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH)."""
        session = self.get(key)
        if session.epoch != epoch:
            raise ApiError(Errors.INVALID_SHARE_SESSION_EPOCH)
        session.next_epoch()
        return session

    def end(self, key: SessionKey) -> ShareSession | None:
        return self.sessions.pop(key, None)

    def clear(self) -> None:
        self.sessions.clear()

    def _lost(self, peer: Peer) -> None:
        session = self._of_peer.pop(peer)
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
            self.evictions += 1
            self._on_leave(session)
        if not any(key.group_id == session.key.group_id for key in self.sessions):
            self._on_empty(session.key.group_id)
