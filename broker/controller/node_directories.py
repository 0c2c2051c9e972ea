"""Log directories that fail for one node: its replicas in them go offline, and others lead. The log stays, which
the nodes share.
"""

from __future__ import annotations

import errno
import logging
from functools import partial

from ...coordinator.metadata import brokers
from ..config.nodes import Node, NodeRefused, Nodes
from ..replica.directories import LogDirectory
from ..replica.replica_manager import ReplicaManager
from .controller import MetadataController

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogManager")


class NodeDirectories:
    """The log directories of all nodes, as the lab lets them fail."""

    def __init__(self, metadata: MetadataController, replicas: ReplicaManager, nodes: Nodes) -> None:
        self.metadata = metadata
        self.replicas = replicas
        self.log_directories = replicas.log_directories
        self.nodes = nodes

    def find(self, path: str) -> LogDirectory:
        """Raises LookupError."""
        for one in self.log_directories.all:
            if path in (one.path, self.log_directories.files.absolute(one.path)):
                return one
        raise LookupError(f"there is no log directory {path}")

    async def fail(self, node: Node, directory: LogDirectory) -> None:
        """Takes a log directory from a node, until the node starts again. Raises NodeRefused or ApiError."""
        if directory.has_failed(node.id):
            raise NodeRefused(f"{directory.path} has failed already")
        if len(self.log_directories.ids_of(node.id)) == 1:
            raise NodeRefused(f"{directory.path} is the last log directory of node {node.id}: stop or kill the node")
        if len(self.nodes) == 1:
            return self._fail_for_all(directory)
        homes, by_name = self.replicas.homes, self.replicas.partitions.by_name
        lost = [one for one in by_name.values() if node.id in one.replicas and homes.of(one, node.id) is directory]
        logger.error("log directory %s of node %d failed, as the lab asks", directory.path, node.id)
        directory.failed_nodes.add(node.id)
        for one in lost:
            self.replicas.partitions.lose_replica(one, node.id)
        self.replicas.moves.drop_into(directory, node.id)
        self.replicas.leaders.stop_replicas(node.id, lost)
        left, controller = self.log_directories.ids_of(node.id), self.metadata.controller
        await self.metadata.submit(
            partial(brokers.lose_directory, controller, node.id, directory.node_ids[node.id], left)
        )
        self.replicas.leaders.stop_replicas(node.id, lost)  # those that led until now

    def _fail_for_all(self, directory: LogDirectory) -> None:
        if directory is self.log_directories.all[0]:
            raise NodeRefused(f"{directory.path} has the metadata log: the broker would end")
        self.log_directories.io_failed(directory, OSError(errno.EIO, "the lab lets it fail", directory.path))
