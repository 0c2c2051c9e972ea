"""A broker as it is registered with the controller."""

from __future__ import annotations

from typing import NamedTuple

from ...protocol import messages
from ...protocol.features import CORDONED_SINCE, DIRECTORIES_SINCE, supported


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int = 0


class Broker(NamedTuple):
    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]
    cordoned: tuple[bytes, ...] = ()  # those of them that take no new replicas (KIP-1066)

    @property
    def is_active(self) -> bool:
        """Whether it may lead."""
        return not self.fenced and not self.in_controlled_shutdown

    def at(self, metadata_version: int) -> Broker:
        """Returns the registration without what this metadata version does not have."""
        if metadata_version < DIRECTORIES_SINCE:
            return self._replace(log_dirs=(), cordoned=())
        return self if metadata_version >= CORDONED_SINCE else self._replace(cordoned=())

    def record(self) -> messages.RegisterBrokerRecord:
        """Returns its registration, with the features that this version supports."""
        r = messages.RegisterBrokerRecord
        return r(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                r.BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                r.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in supported().items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs),
            cordoned_log_dirs=list(self.cordoned) or None,
        )
