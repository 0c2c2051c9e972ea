"""What the controller registers with, and new registrations after the metadata version was raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.metadata.delta import MetadataDelta
from ...protocol import messages
from ...protocol.features import METADATA_VERSION, supported
from ..config.config import Config

if TYPE_CHECKING:
    from .controller import MetadataController


def record_of(config: Config, incarnation_id: bytes) -> messages.RegisterControllerRecord:
    """Returns the registration of the controller of this process."""
    r = messages.RegisterControllerRecord
    listener = config.controller_listener
    return r(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        end_points=[r.ControllerEndpoint(name=listener.name, host=listener.host, port=listener.port)],
        features=[
            r.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported().items()
        ],
    )


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
