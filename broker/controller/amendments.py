"""New registrations after the metadata version was raised: earlier ones have no log directories, and no controllers."""

from __future__ import annotations

from ...coordinator.metadata.delta import MetadataDelta
from ...protocol.features import METADATA_VERSION
from .controller import MetadataController
from .registering import record_of


class Amendments:
    """Registers the nodes and the controller again when the metadata version has more of them than before."""

    def __init__(self, metadata: MetadataController) -> None:
        self.metadata = metadata

    def metadata_changed(self, delta: MetadataDelta) -> None:
        if METADATA_VERSION in delta.features:
            self.metadata.turn.soon(self._register_again)

    def _register_again(self) -> None:
        metadata = self.metadata
        if metadata.turn.stopped:
            return
        requests = [metadata.registration(node, -1) for node in metadata.nodes]
        own = record_of(metadata.config, metadata.log_directories.new_id())
        metadata.submit(lambda: metadata.controller.amend_registrations(requests, own))
