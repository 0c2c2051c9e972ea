"""In which log directory each replica is, and where new ones come to be.

A partition has one log, in one directory: its home. The metadata names a directory for each of its replicas, and each
node has ids of its own for the directories. With one node both are the same; with several, a replica may be said to be
in another directory than the log (`log_moves.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ...coordinator.metadata.directories import UNASSIGNED
from ...coordinator.metadata.state import Partition as PartitionState
from ...protocol.errors import ApiError, Errors
from ..config.nodes import Nodes
from ..later import Later
from .directories import LogDirectories, LogDirectory
from .partition import Partition
from .partitions import Partitions

logger = logging.getLogger("ottla.org.apache.kafka.server.AssignmentsManager")
Key = tuple[str, int]  # a topic and a partition
Assigned = dict[tuple[bytes, int], dict[int, bytes]]
"""The ids of directories that replicas are in: by topic id and partition, and by node."""
PREFERRED_MAX = 100_000  # partitions for which a directory is remembered before they exist


class Homes:
    """The directories of all replicas. `assign` has the controller write directories of replicas into the metadata."""

    def __init__(self, log_directories: LogDirectories, partitions: Partitions, nodes: Nodes) -> None:
        self.log_directories = log_directories
        self.partitions = partitions
        self.nodes = nodes
        self.found: dict[str, set[Key]] = {}  # by path: the partition directories when the broker started
        self.assign: Callable[[Assigned], Later[None]] | None = None
        self._preferred: dict[tuple[int, Key], LogDirectory] = {}  # by node, until the partition is created
        self.unassigned: Assigned = {}  # what the controller is to write

    # where replicas are

    def of(self, partition: Partition, node: int) -> LogDirectory:
        """Returns the directory in which the replica of a node is."""
        home = self.partitions.directory_of[partition]
        if len(self.nodes) == 1 or node not in partition.replicas:
            return home
        state = self.partitions.image.partitions.get((partition.topic_id, partition.index))
        return home if state is None else self._named(state, node) or home

    def _named(self, state: PartitionState, node: int) -> LogDirectory | None:
        """Returns the directory that the metadata names for the replica of a node."""
        at = state.replicas.index(node)
        named = state.directories[at] if at < len(state.directories) else UNASSIGNED
        return next((one for one in self.log_directories.all if one.node_ids.get(node) == named), None)

    def beside(self, partition: Partition, node: int) -> list[int]:
        """Returns the nodes whose replicas are in the directory of the log, without one of them."""
        home = self.partitions.directory_of[partition]
        here = [one for one in partition.replicas if one in self.nodes.by_id and self.of(partition, one) is home]
        return [one for one in here if one != node]

    # where new ones come to be

    def online(self, path: str, node: int) -> LogDirectory:
        """Returns a directory into which replicas of a node may go, as clients name it. Raises ApiError."""
        for one in self.log_directories.all:
            if self.log_directories.files.absolute(one.path) == path:
                if one.has_failed(node):
                    raise ApiError(Errors.KAFKA_STORAGE_ERROR)
                if self.is_cordoned(one, node):
                    raise ApiError(Errors.INVALID_REPLICA_ASSIGNMENT)
                return one
        raise ApiError(Errors.LOG_DIR_NOT_FOUND)

    def is_cordoned(self, directory: LogDirectory, node: int) -> bool:
        """Whether a node places no new replicas in a directory (KIP-1066)."""
        broker = self.partitions.image.brokers.get(node)
        return broker is not None and directory.node_ids.get(node) in broker.cordoned

    def prefer(self, node: int, key: Key, directory: LogDirectory) -> None:
        """Remembers, until the broker stops, where a partition is to be that does not exist yet."""
        self._preferred.pop((node, key), None)
        while len(self._preferred) >= PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[node, key] = directory

    def choose(self, state: PartitionState, topic: str, created: bool) -> LogDirectory:
        """Returns the log directory of a partition: the one that the metadata names, unless only another one contains
        the partition. A new partition gets the directory with the fewest partitions.

        A partition that no usable directory contains may be in a directory that failed.
        """
        key = topic, state.index
        if len(self.log_directories.all) == 1:
            home = self.log_directories.all[0]
            self._correct(state, home, key)
            return home
        usable = self.log_directories.online or self.log_directories.all
        named = [d for d in usable if not d.ids.isdisjoint(state.directories)]
        for directory in (*named, *usable):
            if key in self.found.get(directory.path, ()):
                self._correct(state, directory, key)
                return directory
        failed = [d for d in self.log_directories.all if d.failed]
        if failed and not named and not created:
            return failed[0]
        home = named[0] if named else self._least(state.replicas, usable, key)
        self._correct(state, home, key)
        return home

    def _least(self, replicas: Iterable[int], usable: list[LogDirectory], key: Key) -> LogDirectory:
        """Returns the directory for the log of a new partition."""
        here = [node for node in replicas if node in self.nodes.by_id]
        for node in here:
            wanted = self._preferred.get((node, key))
            if wanted is not None and not wanted.failed:
                return wanted
        free = [d for d in usable if not all(self.is_cordoned(d, node) for node in here)]
        return min(free or usable, key=lambda d: d.partitions)

    def _correct(self, state: PartitionState, home: LogDirectory, key: Key) -> None:
        """Notes the replicas whose directories the metadata does not have."""
        if len(self.log_directories.all) == 1 and UNASSIGNED not in state.directories:
            return
        for node in state.replicas:
            if node in self.nodes.by_id and self._named(state, node) is None:
                directory = self._of_new(node, home, key)
                self.unassigned.setdefault((state.topic_id, state.index), {})[node] = directory.node_ids[node]

    def _of_new(self, node: int, home: LogDirectory, key: Key) -> LogDirectory:
        wanted = self._preferred.pop((node, key), None)
        if wanted is not None and not wanted.failed and len(self.nodes) > 1:
            return wanted
        if not self.is_cordoned(home, node) and not home.has_failed(node):
            return home
        others = [d for d in self.log_directories.online if not self.is_cordoned(d, node) and not d.has_failed(node)]
        return min(others, key=lambda d: d.partitions) if others and len(self.nodes) > 1 else home

    def check(self, partition: Partition, state: PartitionState) -> None:
        """Takes over a change of the metadata: a new replica may need a directory."""
        if UNASSIGNED in state.directories:
            self._correct(state, self.partitions.directory_of[partition], (partition.topic, partition.index))

    def assign_all(self) -> None:
        """Has the controller write what `choose` has found."""
        found, self.unassigned = self.unassigned, {}
        if found and self.assign is not None:
            self.assign(found).when_done(_warn)


def _warn(written: Later[None]) -> None:
    if written.error is not None:
        logger.warning("the controller does not take the directories of new replicas: %s", written.error)
