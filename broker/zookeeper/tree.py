"""What the broker reads of ZooKeeper, with watches, in the session's thread: topics, and what tools ask for.

A watch fires once; then only what it was set on is read again. Everything is read again after a new connection, because
watches can be lost with the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.zookeeper_values import Malformed, TopicAssignment

if TYPE_CHECKING:
    from kazoo.protocol.states import WatchedEvent, ZnodeStat

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
PIPELINED = 256  # requests that wait for their replies at once
CHANGES_KEPT_MS = 15 * 60_000  # as by Kafka
_ENTITIES = (paths.CLIENTS, paths.USERS)
T = TypeVar("T")
Entity = tuple[str, str]
"""The kind of an entity with a configuration, and its name as nodes have it."""
Values = dict[str, str]
"""A configuration."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic's node. `created`: the transaction that made the node (czxid)."""

    assignment: TopicAssignment
    created: int


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A configuration's node, and the version of its value. `values`: None if they are malformed."""

    values: Values | None
    version: int


@dataclass(slots=True)
class Seen:
    """What was found that is new. `topics`: all names; `assignments`: of topics that are new or have changed. `tree`:
    if everything was read, the transaction that made the node of all topics, which tells one ZooKeeper from another.
    """

    topics: set[str] = field(default_factory=set)
    assignments: dict[str, FoundTopic] = field(default_factory=dict)
    configs: dict[Entity, FoundConfig] = field(default_factory=dict)
    deletions: list[str] = field(default_factory=list)
    elections: list[tuple[str, int]] | None = None
    reassignments: dict[tuple[str, int], tuple[int, ...]] | None = None
    tree: int | None = None


class Tree:
    """`touched`: called in any thread when a watch has fired."""

    def __init__(self, touched: Callable[[], None]) -> None:
        self._touched = touched
        self._fired: SimpleQueue[str] = SimpleQueue()
        self._topics: dict[str, tuple[bytes, int]] = {}  # values, and the transactions that made the nodes
        self._change = -1  # the last change of a configuration that was read
        self._changes_made_ms: int | None = None  # when the node with the changes was made
        self._is_new = True  # nothing was read over this connection
        self._first = True  # and over none

    def reconnected(self) -> None:
        """Everything is read again, because watches may be lost."""
        self._is_new = True

    def again(self) -> None:
        """Everything is new again: what was read had no effect, or ZooKeeper may have something else."""
        self._topics.clear()
        self._is_new = self._first = True

    def read(self, client: KazooClient, now_ms: int) -> Seen:
        """Reads what has changed. Raises what kazoo raises."""
        is_new, self._is_new = self._is_new, False
        stale: set[str] = set()
        try:
            while True:
                stale.add(self._fired.get_nowait())
        except Empty:
            pass
        try:
            return self._read(client, now_ms, is_new, stale)
        except BaseException:
            self._is_new = True
            raise

    def _read(self, client: KazooClient, now_ms: int, is_new: bool, stale: set[str]) -> Seen:
        seen = Seen()
        if is_new or paths.BROKER_TOPICS in stale:
            found = set(self._children(client, paths.BROKER_TOPICS))
            wanted = [one for one in sorted(found) if is_new or one not in self._topics]
            created = [one for one in wanted if one not in self._topics]
            self._topics = {name: data for name, data in self._topics.items() if name in found}
        else:
            wanted, created = [], []
        wanted += [name for name in self._topics if paths.topic_path(name) in stale and name not in wanted]
        for name, data, stat in self._values(client, wanted, paths.topic_path, watch=self._watch):
            if self._topics.get(name) != (data, stat.czxid):
                self._topics[name] = data, stat.czxid
                parsed = _parsed(paths.topic_path(name), data, TopicAssignment.decode)
                if parsed is not None:
                    seen.assignments[name] = FoundTopic(parsed, stat.czxid)
        seen.topics = set(self._topics)
        seen.deletions = self._children(client, paths.DELETE_TOPICS) if is_new or stale else []
        seen.configs = self._changed_configs(client, now_ms)
        if self._first:
            above = client.exists(paths.BROKER_TOPICS)
            seen.tree = 0 if above is None else int(above.czxid)
            seen.configs |= self._all_configs(client, seen.topics)
            self._first = False
        elif created:
            seen.configs |= self._configs(client, [(paths.TOPICS, name) for name in created])
        asked = self._asked(client, paths.PREFERRED_ELECTION)
        seen.elections = None if asked is None else list(asked)
        seen.reassignments = self._asked(client, paths.REASSIGN_PARTITIONS)
        return seen

    def _watch(self, event: WatchedEvent) -> None:
        """In a thread of kazoo. A session that ends fires all watches, which are set again then."""
        if event.path:
            self._fired.put(event.path)
        self._touched()

    def _children(self, client: KazooClient, path: str, *, is_watched: bool = True) -> list[str]:
        try:
            found: list[str] = client.get_children(path, watch=self._watch if is_watched else None)
        except NoNodeError:
            return []
        return sorted(found)

    def _values(
        self,
        client: KazooClient,
        names: Iterable[str],
        path_of: Callable[[str], str],
        watch: Callable[[WatchedEvent], None] | None = None,
    ) -> Iterator[tuple[str, bytes, ZnodeStat]]:
        """Yields the values of the nodes that are there, many requests at a time."""
        rest = iter(names)
        while some := list(islice(rest, PIPELINED)):
            for name, waiting in [(one, client.get_async(path_of(one), watch=watch)) for one in some]:
                try:
                    data, stat = waiting.get()
                    yield name, data, stat
                except NoNodeError:
                    continue

    def _asked(self, client: KazooClient, path: str) -> dict[tuple[str, int], tuple[int, ...]] | None:
        """Returns what a tool asks for in a node that it makes; None if there is none."""
        if client.exists(path, watch=self._watch) is None:
            return None
        for _, data, _ in self._values(client, [path], str):
            return _parsed(path, data, values.partitions_named) or {}
        return None

    # configurations

    def _changed_configs(self, client: KazooClient, now_ms: int) -> dict[Entity, FoundConfig]:
        """Returns the configurations that changes name. Changes that are old are removed, as by Kafka."""
        wanted: dict[Entity, None] = {}
        above = client.exists(paths.CONFIG_CHANGES)
        made_ms = None if above is None else int(above.ctime)
        if made_ms != self._changes_made_ms:  # ZooKeeper has lost its data, and counts changes from 0 again
            self._changes_made_ms, self._change = made_ms, -1
        for name in self._children(client, paths.CONFIG_CHANGES):
            number = _sequence(name)
            if number is None:
                continue
            path = f"{paths.CONFIG_CHANGES}/{name}"
            if number > self._change:
                for _, data, _ in self._values(client, [path], str):
                    entity = _parsed(path, data, values.config_change_of)
                    if entity is not None:
                        wanted[entity] = None
            self._change = max(self._change, number)
            stat = client.exists(path)
            if stat is not None and stat.ctime < now_ms - CHANGES_KEPT_MS:
                client.delete(path)
        return self._configs(client, wanted)

    def _all_configs(self, client: KazooClient, topics: set[str]) -> dict[Entity, FoundConfig]:
        wanted = dict.fromkeys((paths.TOPICS, name) for name in sorted(topics))
        for kind in _ENTITIES:
            for name in self._children(client, f"{paths.CONFIG}/{kind}", is_watched=False):
                wanted[kind, name] = None
                if kind == paths.USERS:
                    clients = f"{name}/{paths.CLIENTS}"
                    below = self._children(client, paths.config_path(kind, clients), is_watched=False)
                    wanted |= {(kind, f"{clients}/{one}"): None for one in below}
        return self._configs(client, wanted)

    def _configs(self, client: KazooClient, wanted: Iterable[Entity]) -> dict[Entity, FoundConfig]:
        by_path = {paths.config_path(*one): one for one in wanted}
        found: dict[Entity, FoundConfig] = {}
        for path, data, stat in self._values(client, by_path, str):
            found[by_path[path]] = FoundConfig(_parsed(path, data, values.config_of), stat.version)
        return found


def _sequence(name: str) -> int | None:
    """Returns the number of a change; None if the name is not one of a change."""
    digits = name.removeprefix(paths.CONFIG_CHANGE_PREFIX)
    return int(digits) if digits != name and digits.isdecimal() and digits.isascii() else None


def _parsed(path: str, data: bytes, parse: Callable[[bytes], T]) -> T | None:
    """Returns the value of a node; None, with a warning, if it is malformed."""
    try:
        return parse(data)
    except Malformed as error:
        logger.warning("%s is ignored: %s", path, error)
        return None
