"""What the broker writes to ZooKeeper, in the session's thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from ...coordinator.metadata.controller import PRODUCER_ID_BLOCK
from ...protocol import zookeeper_paths as paths
from ...protocol.zookeeper_json import Malformed
from ...protocol.zookeeper_values import (
    TopicAssignment,
    controller_epoch,
    controller_id,
    next_producer_id,
    producer_ids,
)
from ..config.config import ZooKeeperError
from .found import Entity
from .tree import PIPELINED


@dataclass(frozen=True, slots=True)
class Put:
    """A value that a node gets; None makes a node without one, and leaves the value of one that is there."""

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class PutTopic:
    """A topic's node. `known`: the partitions that it may have there; with others it is left as it is (`Conflict`)."""

    topic: str
    data: bytes
    known: frozenset[int]

    @property
    def path(self) -> str:
        return paths.topic_path(self.topic)


@dataclass(frozen=True, slots=True)
class PutConfig:
    """The value of a configuration. `version`: of the value that it replaces, None for a new node. With another one
    there it is left as it is (`Conflict`). `is_first`: it may replace what an earlier topic of the name left.
    """

    entity: Entity
    data: bytes
    version: int | None
    is_first: bool = False

    @property
    def path(self) -> str:
        return paths.entity_path(*self.entity)


@dataclass(frozen=True, slots=True)
class RemoveConfig:
    """The node of rights, or of a token, that are gone. With another version than the one that was read it stays
    (`Conflict`).
    """

    entity: Entity
    version: int


@dataclass(frozen=True, slots=True)
class Remove:
    """A node that goes, with all below it."""

    path: str


@dataclass(frozen=True, slots=True)
class Append:
    """A node with the next number."""

    prefix: str
    data: bytes


Write = Put | PutTopic | PutConfig | RemoveConfig | Remove | Append
Made = Put | PutTopic | PutConfig


@dataclass(frozen=True, slots=True)
class Written:
    """What the nodes that were written are now: the transactions that made those of topics (`FoundTopic`), and the
    versions of configurations.
    """

    topics: dict[str, int] = field(default_factory=dict)
    versions: dict[Entity, int] = field(default_factory=dict)


class Conflict(KazooException):  # type: ignore[misc]
    """A tool has written what was about to be written."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An ephemeral node that belongs to another session."""

    path: str
    data: bytes


def write_all(client: KazooClient, writes: Sequence[Write]) -> Written:
    """Writes in order, many values at a time: ZooKeeper keeps the order of a session. Raises Conflict and what kazoo
    raises.
    """
    written = Written()
    for is_made, some in groupby(writes, lambda one: isinstance(one, Made)):
        if is_made:
            _make_all(client, (one for one in some if isinstance(one, Made)), written)
            continue
        for one in some:
            if isinstance(one, Remove):
                client.delete(one.path, recursive=True)
            elif isinstance(one, RemoveConfig):
                _remove_config(client, one)
            elif isinstance(one, Append):
                client.create(one.prefix, one.data, sequence=True, makepath=True)
    return written


def _make_all(client: KazooClient, made: Iterator[Made], written: Written) -> None:
    while some := list(islice(made, PIPELINED)):
        asked = [(one, client.create_async(one.path, one.data or b"")) for one in some if not _is_there(one)]
        for one, waiting in asked:
            version = 0
            try:
                waiting.get()
            except NodeExistsError:
                version = _replace(client, one)
            except NoNodeError:
                client.ensure_path(one.path.rpartition("/")[0])
                client.ensure_path(one.path) if one.data is None else client.create(one.path, one.data)
            if isinstance(one, PutConfig):
                written.versions[one.entity] = version
        _replace_configs(client, [one for one in some if isinstance(one, PutConfig) and _is_there(one)], written)
        topics = [one for one in some if isinstance(one, PutTopic)]
        for topic, waiting in [(one.topic, client.exists_async(one.path)) for one in topics]:
            stat = waiting.get()
            if stat is not None:
                written.topics[topic] = stat.czxid


def _is_there(made: Made) -> bool:
    return isinstance(made, PutConfig) and made.version is not None


def _replace(client: KazooClient, made: Made) -> int:
    """Writes the value of a node that is there; returns its version."""
    if isinstance(made, PutTopic):
        return _replace_topic(client, made)
    if isinstance(made, PutConfig) and not made.is_first:
        raise Conflict(f"{made.path} was not read yet")
    return 0 if made.data is None else int(client.set(made.path, made.data).version)


def _replace_topic(client: KazooClient, put: PutTopic) -> int:
    """Writes the assignment of a topic over the one that is there, unless that has partitions which are not known."""
    while True:
        before, stat = client.get(put.path)
        try:
            found = set(TopicAssignment.decode(before).partitions)
        except Malformed:
            found = set()  # nothing there that the broker could lose
        if not found <= put.known:
            raise Conflict(f"{put.path} has partitions that were not read yet")
        try:
            return int(client.set(put.path, put.data, version=stat.version).version)
        except BadVersionError:
            continue  # a tool was faster: what it wrote is looked at first


def _replace_configs(client: KazooClient, puts: Sequence[PutConfig], written: Written) -> None:
    """Writes configurations over those that were read."""
    for put, waiting in [(one, client.set_async(one.path, one.data, version=one.version)) for one in puts]:
        try:
            written.versions[put.entity] = waiting.get().version
        except (BadVersionError, NoNodeError):
            raise Conflict(f"{put.path} was changed after it was read") from None


def _remove_config(client: KazooClient, gone: RemoveConfig) -> None:
    path = paths.entity_path(*gone.entity)
    try:
        client.delete(path, version=gone.version)
    except BadVersionError:
        raise Conflict(f"{path} was changed after it was read") from None
    except NoNodeError:
        return  # a tool has removed it, too


def hold(client: KazooClient, wanted: dict[str, bytes], held: Iterable[str]) -> list[Taken]:
    """Makes the ephemeral nodes that are wanted, and removes those of `held` that are not. Returns those that another
    session has, which are left alone.
    """
    for path in held:
        if path not in wanted:
            with suppress(NoNodeError):  # it has gone with its session
                client.delete(path)
    return [taken for path, data in wanted.items() if (taken := _hold(client, path, data)) is not None]


def _hold(client: KazooClient, path: str, data: bytes) -> Taken | None:
    with suppress(NodeExistsError):  # whose it is says the node itself
        client.create(path, data, ephemeral=True, makepath=True)
        return None
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
    """Counts the controllers, as each new one of Kafka does; returns the number of the new one. Raises ZooKeeperError
    if the number before is none.
    """
    while True:
        try:
            before, stat = client.get(paths.CONTROLLER_EPOCH)
            epoch = controller_epoch(before) + 1
            client.set(paths.CONTROLLER_EPOCH, b"%d" % epoch, version=stat.version)
            return epoch
        except NoNodeError:
            with suppress(NodeExistsError):  # another broker has made it meanwhile, and is counted first
                client.create(paths.CONTROLLER_EPOCH, b"1")
                return 1
        except BadVersionError:
            continue  # another one was counted meanwhile
        except Malformed as error:
            raise ZooKeeperError(f"{paths.CONTROLLER_EPOCH}: {error}") from None


def reserve_producer_ids(client: KazooClient, broker_id: int, next_id: int) -> None:
    """Says which producer ids are given away, up to `next_id`. Larger ones that are said to be stay. Kafka reads the
    node at its start and ends if the value is empty, which kazoo gives it; before the first id it is null.
    """
    data = producer_ids(broker_id, next_id, PRODUCER_ID_BLOCK) if next_id else None
    while True:
        before, stat = client.get(paths.PRODUCER_IDS)
        try:
            if before == data or (before and next_producer_id(before) >= next_id):
                return
        except Malformed:
            pass  # Kafka could not read it either
        try:
            client.set(paths.PRODUCER_IDS, data, version=stat.version)
            return
        except BadVersionError:
            continue  # another broker has taken ids meanwhile


def foreign_controller(taken: Taken, own: Iterable[int]) -> int | None:
    """Returns the id of the controller of another cluster; None if what is taken is something else."""
    if taken.path != paths.CONTROLLER:
        return None
    try:
        found = controller_id(taken.data)
    except Malformed:
        return -1
    return None if found in own else found
