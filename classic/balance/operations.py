"""What the algorithm asks for: operations on ZooKeeper, on the consumer's own streams, and on an offset manager.

A step of the algorithm is a generator. It yields an operation, and is sent what that gave. Two errors are thrown into
it: `Lost` and `SessionExpired`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .assignment import TopicPartition

T = TypeVar("T")
Offsets = Mapping[TopicPartition, int]


class Lost(Exception):
    """The connection is lost: the operation may have been done, or not. The session goes on."""


class SessionExpired(Exception):
    """The session is over, and with it all ephemeral nodes."""


@dataclass(frozen=True, slots=True)
class Node:
    value: bytes
    is_mine: bool  # it is an ephemeral node of this session


@dataclass(frozen=True, slots=True)
class Children:
    """Gives the names of the nodes below a path, none if there is no such path. `watch`: tell of the next change."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Get:
    """Gives the Node, or None. `watch`: tell of the next change."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Makes an ephemeral node, with the nodes above it; gives whether it was made, which it is not if there is one."""

    path: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """Sets the value of a persistent node, which is made if it does not exist."""

    path: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a node, if there is one."""

    path: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Stops the streams: what they have not handed out is forgotten. Gives the offsets that they have come to, by
    partition; empty if they were stopped.
    """


@dataclass(frozen=True, slots=True)
class Resume:
    """Lets the streams go on with these partitions: by each the thread, and the offset (None: none is committed)."""

    starts: Mapping[TopicPartition, tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class CommitToKafka:
    """Commits offsets at the group's offset manager; gives whether it took all."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class FetchFromKafka:
    """Gives the offsets that the group's offset manager has of these partitions; None if it does not say."""

    partitions: tuple[TopicPartition, ...]


Operation = Children | Get | Create | Put | Delete | Suspend | Resume | CommitToKafka | FetchFromKafka
Steps = Generator[Operation, object, T]


def children(path: str, watch: bool = False) -> Steps[list[str]]:
    found = yield Children(path, watch)
    assert isinstance(found, list)
    return found


def get(path: str, watch: bool = False) -> Steps[Node | None]:
    found = yield Get(path, watch)
    assert found is None or isinstance(found, Node)
    return found


def create(path: str, value: bytes) -> Steps[bool]:
    """Makes an ephemeral node. Gives whether this session has it now, which may have made it before."""
    if (yield Create(path, value)):
        return True
    node = yield from get(path)
    return node is not None and node.is_mine


def delete_own(path: str) -> Steps[None]:
    """Removes an ephemeral node if it is one of this session; never that of another consumer."""
    node = yield from get(path)
    if node is not None and node.is_mine:
        yield Delete(path)


def suspend() -> Steps[dict[TopicPartition, int]]:
    found = yield Suspend()
    assert isinstance(found, dict)
    return found
