"""Log directories that take no new replicas (`cordoned.log.dirs`, KIP-1066): the controller hears of them when the
configuration of a node changes, as from heartbeats in Kafka.
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.directories import cordon
from ...coordinator.metadata.state import BROKER
from ..config.nodes import Nodes
from ..replica.directories import LogDirectories
from ..settings import Settings
from .controller import MetadataController


class Cordons:
    """Follows the configurations of all nodes."""

    def __init__(
        self, metadata: MetadataController, settings: Settings, log_directories: LogDirectories, nodes: Nodes
    ) -> None:
        self.metadata = metadata
        self.settings = settings
        self.log_directories = log_directories
        self.nodes = nodes

    def metadata_changed(self, delta: MetadataDelta) -> None:
        if delta.has_config_of(BROKER):
            self.metadata.turn.soon(self._tell)

    def _tell(self) -> None:
        """Sends the controller what has changed."""
        metadata = self.metadata
        for node in self.nodes:
            named = self.settings.of_node(node.config).value("cordoned.log.dirs")
            wanted = self.log_directories.cordoned(named, node.id)
            known = metadata.image.brokers.get(node.id)
            if known is not None and set(known.cordoned) != set(wanted) and not metadata.turn.stopped:
                metadata.submit(partial(cordon, metadata.controller.state, node.id, wanted))
