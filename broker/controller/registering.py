"""What the controller registers with."""

from __future__ import annotations

from ...protocol import messages
from ...protocol.features import supported
from ..config.config import Config


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
