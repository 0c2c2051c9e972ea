"""What the broker writes to ZooKeeper, in the session's thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from ...protocol import zookeeper_paths as paths
from ...protocol.zookeeper_values import Malformed, TopicAssignment, controller_id
from .tree import PIPELINED


@dataclass(frozen=True, slots=True)
class Put:
    """A value that a node gets; None makes a node without one, and leaves the value of one that is there.

    `known`: of a topic, the partitions that it may have there; with others it is left as it is (`Conflict`).
    """

    path: str
    data: bytes | None
    known: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """A node that goes, with all below it."""

    path: str


@dataclass(frozen=True, slots=True)
class Append:
    """A node with the next number."""

    prefix: str
    data: bytes


Write = Put | Remove | Append


class Conflict(KazooException):  # type: ignore[misc]
    """A tool has added partitions to a topic that was about to be written."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An ephemeral node that belongs to another session."""

    path: str
    data: bytes


def write_all(client: KazooClient, writes: Sequence[Write]) -> None:
    """Writes in order, many values at a time: ZooKeeper keeps the order of a session. Raises Conflict and what kazoo
    raises.
    """
    for kind, some in groupby(writes, type):
        if kind is Put:
            _put_all(client, (one for one in some if isinstance(one, Put)))
            continue
        for one in some:
            if isinstance(one, Remove):
                client.delete(one.path, recursive=True)
            elif isinstance(one, Append):
                client.create(one.prefix, one.data, sequence=True, makepath=True)


def _put_all(client: KazooClient, puts: Iterator[Put]) -> None:
    while some := list(islice(puts, PIPELINED)):
        for put, waiting in [(one, client.create_async(one.path, one.data or b"")) for one in some]:
            try:
                waiting.get()
            except NodeExistsError:
                if put.known is not None:
                    _put_topic(client, put, put.known)
                elif put.data is not None:
                    client.set(put.path, put.data)
            except NoNodeError:
                client.ensure_path(put.path.rpartition("/")[0])
                client.ensure_path(put.path) if put.data is None else client.create(put.path, put.data)


def _put_topic(client: KazooClient, put: Put, known: frozenset[int]) -> None:
    """Writes the assignment of a topic over the one that is there, unless that has partitions which are not known."""
    while True:
        before, stat = client.get(put.path)
        try:
            found = set(TopicAssignment.decode(before).partitions)
        except Malformed:
            found = set()
        if not found <= known:
            raise Conflict(f"{put.path} has partitions that were not read yet")
        try:
            client.set(put.path, put.data, version=stat.version)
            return
        except BadVersionError:
            continue


def hold(client: KazooClient, wanted: dict[str, bytes], held: Iterable[str]) -> Taken | None:
    """Makes the ephemeral nodes that are wanted, and removes those of `held` that are not. Returns the first one that
    another session has.
    """
    for path in held:
        if path not in wanted:
            try:
                client.delete(path)
            except NoNodeError:
                continue
    for path, data in wanted.items():
        taken = _hold(client, path, data)
        if taken is not None:
            return taken
    return None


def _hold(client: KazooClient, path: str, data: bytes) -> Taken | None:
    try:
        client.create(path, data, ephemeral=True, makepath=True)
        return None
    except NodeExistsError:
        pass
    try:
        before, stat = client.get(path)
        session, _ = client.client_id or (None, None)
        if stat.ephemeralOwner != session:
            return Taken(path, before)
        if before != data:
            client.set(path, data)
        return None
    except NoNodeError:  # it has gone meanwhile
        return _hold(client, path, data)


def next_controller_epoch(client: KazooClient) -> int:
    """Counts the controllers, as each new one of Kafka does; returns the number of the new one."""
    while True:
        try:
            before, stat = client.get(paths.CONTROLLER_EPOCH)
            epoch = int(before or b"0") + 1
            client.set(paths.CONTROLLER_EPOCH, b"%d" % epoch, version=stat.version)
            return epoch
        except NoNodeError:
            try:
                client.create(paths.CONTROLLER_EPOCH, b"1")
                return 1
            except NodeExistsError:
                continue


def foreign_controller(taken: Taken, own: Iterable[int]) -> int | None:
    """Returns the id of the controller of another cluster; None if what is taken is something else."""
    if taken.path != paths.CONTROLLER:
        return None
    try:
        found = controller_id(taken.data)
    except Malformed:
        return -1
    return None if found in own else found
