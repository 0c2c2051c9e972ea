"""What the broker reads of ZooKeeper, with watches, in the session's thread: topics, and what tools ask for.

A watch fires once; then only what it was set on is read again. Everything is read again after a new connection, because
watches can be lost with the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ...protocol import zookeeper_paths as paths
from ...protocol import zookeeper_values as values
from ...protocol.zookeeper_json import Malformed
from ...protocol.zookeeper_values import BrokerRegistration, TopicAssignment
from . import rights, tokens
from .forms import form_of
from .found import Entity, FoundConfig, FoundTopic, Values

if TYPE_CHECKING:
    from kazoo.protocol.states import WatchedEvent, ZnodeStat

logger = logging.getLogger("ottla.kafka.zookeeper.ZooKeeperClient")
PIPELINED = 256  # requests that wait for their replies at once
CHANGES_KEPT_MS = 15 * 60_000  # as by Kafka
_ENTITIES = (paths.CLIENTS, paths.USERS, paths.BROKERS, paths.IPS)
T = TypeVar("T")


@dataclass(slots=True)
class Seen:
    """What was found that is new. `topics`: all names; `assignments`: of topics that are new or have changed. `tree`:
    if everything was read, the transaction that made the node of all topics, by which ZooKeepers are told apart.
    `brokers`: those that are registered, if one has come, gone or changed.
    """

    topics: set[str] = field(default_factory=set)
    assignments: dict[str, FoundTopic] = field(default_factory=dict)
    configs: dict[Entity, FoundConfig] = field(default_factory=dict)
    deletions: list[str] = field(default_factory=list)
    elections: list[tuple[str, int]] | None = None
    reassignments: dict[tuple[str, int], tuple[int, ...]] | None = None
    tree: int | None = None
    brokers: dict[int, BrokerRegistration] | None = None
    next_producer_id: int = 0


class Tree:
    """`touched`: called in any thread when a watch has fired. `has_rights`, `has_tokens`: whether rights on
    resources and delegation tokens are read. `learn`: called in the session's thread with each configuration.
    """

    def __init__(
        self, touched: Callable[[], None], has_rights: bool, has_tokens: bool, learn: Callable[[Entity, Values], None]
    ) -> None:
        self._touched = touched
        self._learn = learn
        self._fired: SimpleQueue[str] = SimpleQueue()
        self._topics: dict[str, tuple[bytes, int]] = {}  # values, and the transactions that made the nodes
        self._changes = [Changes(paths.CONFIG_CHANGES, paths.CONFIG_CHANGE_PREFIX, values.config_change_of)]
        if has_rights:
            self._changes += [
                Changes(paths.ACL_CHANGES, paths.ACL_CHANGE_PREFIX, rights.changed),
                Changes(paths.PREFIXED_ACL_CHANGES, paths.ACL_CHANGE_PREFIX, rights.prefixed_changed),
            ]
        if has_tokens:
            self._changes.append(Changes(paths.TOKEN_CHANGES, paths.TOKEN_CHANGE_PREFIX, tokens.changed))
        self._has_rights, self._has_tokens = has_rights, has_tokens
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
        """Reads what has changed. Raises what kazoo raises: what changed is not known then, before `again`."""
        is_new, self._is_new = self._is_new, False
        stale: set[str] = set()
        with suppress(Empty):  # all that have fired until now
            while True:
                stale.add(self._fired.get_nowait())
        return self._read(client, now_ms, is_new, stale)

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
        if is_new or paths.BROKER_IDS in stale or any(one.startswith(f"{paths.BROKER_IDS}/") for one in stale):
            seen.brokers = self._brokers(client)
        if is_new or paths.PRODUCER_IDS in stale:
            for path, data, _ in self._values(client, [paths.PRODUCER_IDS], str, watch=self._watch):
                seen.next_producer_id = _parsed(path, data, values.next_producer_id) or 0
        asked = self._asked(client, paths.PREFERRED_ELECTION)
        seen.elections = None if asked is None else list(asked)
        seen.reassignments = self._asked(client, paths.REASSIGN_PARTITIONS)
        return seen

    def _brokers(self, client: KazooClient) -> dict[int, BrokerRegistration]:
        """Returns the brokers that are registered, this one among them."""
        found: dict[int, BrokerRegistration] = {}
        names = [one for one in self._children(client, paths.BROKER_IDS) if one.isdecimal() and one.isascii()]
        for path, data, stat in self._values(client, map(paths.broker_path, map(int, names)), str, watch=self._watch):
            parsed = _parsed(path, data, BrokerRegistration.decode)
            if parsed is not None:
                found[int(path.rpartition("/")[2])] = replace(parsed, epoch=stat.czxid)
        return found

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
                except NoNodeError:
                    continue  # it has gone since it was listed
                yield name, data, stat

    def _asked(self, client: KazooClient, path: str) -> dict[tuple[str, int], tuple[int, ...]] | None:
        """Returns what a tool asks for in a node that it makes; None if there is none."""
        if client.exists(path, watch=self._watch) is None:
            return None
        for _, data, _ in self._values(client, [path], str):
            return _parsed(path, data, values.partitions_named) or {}
        return None

    # configurations

    def _changed_configs(self, client: KazooClient, now_ms: int) -> dict[Entity, FoundConfig]:
        """Returns what the entities have that changes name."""
        wanted: dict[Entity, None] = {}
        for changes in self._changes:
            for name in changes.new(client, self._children(client, changes.path), now_ms):
                for _, data, _ in self._values(client, [name], str):
                    entity = _parsed(name, data, changes.parse)
                    if entity is not None:
                        wanted[entity] = None
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
        for above in (paths.ACLS, paths.PREFIXED_ACLS) if self._has_rights else ():
            for kind in self._children(client, above, is_watched=False):
                below = self._children(client, f"{above}/{kind}", is_watched=False)
                wanted |= {(above, f"{kind}/{name}"): None for name in below}
        found = self._children(client, paths.TOKENS, is_watched=False) if self._has_tokens else []
        wanted |= {(paths.TOKENS, name): None for name in found}
        return self._configs(client, wanted)

    def _configs(self, client: KazooClient, wanted: Iterable[Entity]) -> dict[Entity, FoundConfig]:
        """Returns what entities have there. What goes when it is empty has none, in no node."""
        by_path = {paths.entity_path(*one): one for one in wanted if _is_possible(one)}
        found = {entity: FoundConfig({}, None) for entity in by_path.values() if form_of(entity).goes_when_empty}
        for path, data, stat in self._values(client, by_path, str):
            entity = by_path[path]
            parsed = _parsed(path, data, form_of(entity).values_of)
            found[entity] = FoundConfig(parsed, stat.version)
            if parsed is not None:
                self._learn(entity, parsed)
        return found


class Changes:
    """The nodes below one, in which tools name what they have changed. `parse`: of their values; raises Malformed."""

    def __init__(self, path: str, prefix: str, parse: Callable[[bytes], Entity]) -> None:
        self.path = path
        self.parse = parse
        self._prefix = prefix
        self._last = -1  # the number of the last one that was read
        self._made_ms: int | None = None  # when the node was made

    def new(self, client: KazooClient, names: Iterable[str], now_ms: int) -> Iterator[str]:
        """Yields the paths of those that are new. Old ones are removed, as by Kafka."""
        above = client.exists(self.path)
        made_ms = None if above is None else int(above.ctime)
        if made_ms != self._made_ms:  # ZooKeeper has lost its data, and counts changes from 0 again
            self._made_ms, self._last = made_ms, -1
        for name in names:
            number = self._number(name)
            if number is None:
                continue
            path = f"{self.path}/{name}"
            if number > self._last:
                yield path
            self._last = max(self._last, number)
            stat = client.exists(path)
            if stat is not None and stat.ctime < now_ms - CHANGES_KEPT_MS:
                with suppress(NoNodeError):  # another broker has removed it meanwhile
                    client.delete(path)

    def _number(self, name: str) -> int | None:
        """Returns the number of a change; None if the name is not one of a change."""
        digits = name.removeprefix(self._prefix)
        return int(digits) if digits != name and digits.isdecimal() and digits.isascii() else None


def _is_possible(entity: Entity) -> bool:
    """Whether ZooKeeper can have the node of an entity that a change names."""
    return all(map(paths.is_node_name, paths.entity_path(*entity)[1:].split("/")))


def _parsed(path: str, data: bytes, parse: Callable[[bytes], T]) -> T | None:
    """Returns the value of a node; None, with a warning, if it is malformed."""
    try:
        return parse(data)
    except Malformed as error:
        logger.warning("%s is ignored: %s", path, error)
        return None
