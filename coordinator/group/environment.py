"""What the group coordinator gets injected: time, ids, topics, configurations, and a place for slow work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, TypeVar

Partitions = dict[bytes, dict[int, int]]
"""Partitions by topic id, each with the epoch at which it was assigned."""
Target = dict[bytes, frozenset[int]]
"""A target assignment: partitions by topic id."""

T = TypeVar("T")


class Client(NamedTuple):
    """The client of a request, and the API version. `may_describe`: whether it may know of a topic; None if every
    client may know of all.
    """

    id: str
    host: str
    version: int
    may_describe: Callable[[str], bool] | None = None


class TopicImage(Protocol):
    """The committed metadata of the cluster as groups see it."""

    def topic_id(self, name: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def partition_count(self, topic_id: bytes) -> int:
        """Returns the number of partitions; -1 for a topic that does not exist."""

    def partition_racks(self, topic_id: bytes) -> list[frozenset[str]]:
        """The racks of each partition's replicas."""

    def topic_hash(self, name: str) -> int:
        """Returns the topic's hash; 0 for a topic that does not exist."""

    def topic_names(self) -> Iterable[str]: ...

    @property
    def version(self) -> int:
        """The offset of the last metadata record."""

    @property
    def version_with_new_topics(self) -> int:
        """The version at which a topic was created last."""


class OffsetExpiry(Enum):
    """From when the retention time of committed offsets counts, and whose offsets expire."""

    BY_COMMIT = auto()  # from the commit, whether the group has members or not: Kafka before 2.1
    WITHOUT_MEMBERS = auto()  # from when the group has none; before 2.4
    UNSUBSCRIBED = auto()  # those of a group with members, too, if none is subscribed to the topic


class Environment(Protocol):
    """Injected; the broker's is `broker.coordinators`, tests have their own."""

    @property
    def offset_expiry(self) -> OffsetExpiry: ...

    @property
    def image(self) -> TopicImage: ...

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def new_id(self) -> bytes: ...

    def config(self, name: str) -> Any:
        """A broker key's value."""

    def group_config(self, group_id: str, name: str) -> Any:
        """A GROUP key's value for a group, capped by the broker's bounds (KIP-1240)."""

    def background(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """Runs `work` off the loop and `done` back on it, as an input event."""

    def in_steps(self, steps: Iterator[None]) -> None:
        """Runs `steps` to their end on the loop, some milliseconds at a time, between other input events."""
