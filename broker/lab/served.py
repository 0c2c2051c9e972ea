"""The part of the server that the lab uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from ..broker import Broker
from ..config.config import Config
from ..machine import MachineTime
from ..peer import Peer
from .seam import AskedApi, Attached

if TYPE_CHECKING:
    from .clock.clock import LabClock


class Connected(Protocol):
    """A client's connection. `last_active_ms`: when its last request came; monotonic time."""

    @property
    def peer(self) -> Peer: ...

    @property
    def last_active_ms(self) -> int: ...

    def buffered_bytes(self) -> int: ...


class Counts(Protocol):
    """How many connections a node has, in all and of each address, and how many it may have."""

    def all(self) -> Iterable[Counts]:
        """Returns those of each node to which clients have connected."""

    @property
    def open(self) -> int: ...

    @property
    def connections_max(self) -> int: ...

    @property
    def per_address(self) -> Mapping[str, int]: ...

    @property
    def per_address_max(self) -> int: ...


class Served(Protocol):
    """A server."""

    @property
    def broker(self) -> Broker: ...

    @property
    def config(self) -> Config: ...

    @property
    def machine(self) -> MachineTime: ...

    def clock(self) -> LabClock: ...

    @property
    def connections(self) -> Collection[Connected]: ...

    @property
    def counts(self) -> Counts: ...

    @property
    def buffered_bytes(self) -> int:
        """What connections hold of incomplete requests and of replies that are not read."""

    @property
    def buffered_bytes_max(self) -> int: ...

    def intercept(self, one: Attached) -> None:
        """Shows the requests and replies of all connections to an interceptor or a watcher from now on."""

    def release(self, one: Attached) -> None:
        """Removes an interceptor or a watcher."""

    def at_end(self, call: Callable[[], None]) -> None:
        """Calls when the server has ended and no thread works any more."""

    def api_keys(self) -> Collection[int]:
        """The keys of the APIs that are served."""

    def api(self, key: int) -> AskedApi:
        """An API that is served."""

    def dropped_lines(self) -> int:
        """How many lines the request log dropped."""
