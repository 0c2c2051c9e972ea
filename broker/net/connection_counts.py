"""How many connections a node has, in all, of each listener and of each address, and how many it may have.

The limits follow `max.connections`, also of single listeners (KIP-402), `max.connections.per.ip` and its overrides
while the broker runs. As in Kafka, connections that are open stay when a limit becomes lower. What open files allow is
shared by all nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.state import BROKER
from ..addresses import addresses_of
from ..broker import Broker
from ..config.relations import OVERRIDES, overrides
from ..limits import CONNECTIONS, CONNECTIONS_PER_IP, Limit
from .descriptors import connections_per_address


class ConnectionCounts:
    """The connections of the first node, and those of the others (`at`). `possible`: how many connections the limit of
    open files allows.
    """

    def __init__(self, broker: Broker, possible: int) -> None:
        self._turn = broker.turn
        self._settings = settings = broker.settings
        self._possible = possible
        self._of_nodes = {settings.config.node_id: self}  # of all; each has this table
        self._begin()
        self._overrides: str = settings.value(OVERRIDES)
        self._per_address_own = _resolved_overrides({OVERRIDES: self._overrides})  # limits of single addresses
        self._read()

    def _begin(self) -> None:
        self.per_address: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()

    def at(self, broker: Broker) -> ConnectionCounts:
        """Returns those of a node. `broker`: as this node sees it."""
        node = broker.config.node_id
        found = self._of_nodes.get(node)
        if found is None:
            found = self._of_nodes[node] = copy(self)
            found._settings = broker.settings
            found._begin()
            found.load()
        return found

    def all(self) -> Iterable[ConnectionCounts]:
        """Returns those of the first node, and of each other to which clients have connected."""
        return self._of_nodes.values()

    @property
    def open(self) -> int:
        return self._per_listener.total()

    def _read(self) -> None:
        value = self._settings.value
        self.connections_max = min(value("max.connections"), self._possible)
        own = connections_per_address(value("ottla.connections.per.ip.max"), self.connections_max)
        self.per_address_max = min(value("max.connections.per.ip"), own)
        listeners = [one.name for one in self._settings.config.listeners]
        limits = {name: self._settings.of_listener(name).own("max.connections") for name in listeners}
        self._per_listener_max: dict[str, int] = {name: most for name, most in limits.items() if most is not None}

    def metadata_changed(self, delta: MetadataDelta) -> None:
        if delta.has_config_of(BROKER):
            for one in self.all():
                one.load()

    def load(self) -> None:
        """Takes over the limits of the metadata. The hosts of overrides are looked up in a thread."""
        self._read()
        text = self._settings.value(OVERRIDES)
        if text != self._overrides:
            self._overrides = text

            def done(found: dict[str, int] | None, error: BaseException | None) -> None:
                if found is not None and text == self._overrides:
                    self._per_address_own = found

            self._turn.in_thread(lambda: _resolved_overrides({OVERRIDES: text}), done)

    def opened(self, listener: str, address: str) -> Limit | None:
        """Counts a new connection; returns the limit that it goes beyond, if it does."""
        self.per_address[address] += 1
        self._per_listener[listener] += 1
        if self.open > self.connections_max or sum(one.open for one in self._of_nodes.values()) > self._possible:
            return CONNECTIONS
        if self._per_listener[listener] > self._per_listener_max.get(listener, self.connections_max):
            return CONNECTIONS
        if self.per_address[address] > self._per_address_own.get(address, self.per_address_max):
            return CONNECTIONS_PER_IP
        return None

    def closed(self, listener: str, address: str) -> None:
        self._per_listener[listener] -= 1
        self.per_address[address] -= 1
        if self.per_address[address] <= 0:
            del self.per_address[address]


def _resolved_overrides(values: Mapping[str, str]) -> dict[str, int]:
    return {str(one): most for host, most in overrides(values).items() for one in addresses_of(host)}
