"""Where the proxy sends what: which node of B stands for which of A, and B's coordinators. Pure.

Requests about partitions go to the node of B that stands for the one of A that the client has asked: new topics are
placed at B as at A (`placing.py`). Each cluster spreads its coordinators by itself, so requests to one go to B's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..addresses import Address
from ..comparing.identities import NODE, Identities
from ..protocol import messages as m
from ..protocol.structs import Struct
from .addresses import nodes

GROUPS, TRANSACTIONS = 0, 1  # the types of keys of FindCoordinator
KEYS_MAX: Final = 100_000
OF_TRANSACTIONS: Final = frozenset(
    ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "DescribeTransactions")
)
OF_LEADERS: Final = frozenset(("Produce", "Fetch", "ShareFetch", "ShareAcknowledge"))
"""APIs whose requests name a group or a transactional id, and go to the leaders of partitions."""
OF_EACH_NODE: Final = frozenset(("ListGroups", "ListTransactions"))
"""APIs to which each node replies what it coordinates."""
Key = tuple[int, str]
"""The type of the key, and the group or transactional id."""


class Nodes:
    """The nodes of both clusters, as far as replies have told."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._of_a: dict[Address, int] = {}
        self._of_b: dict[int, Address] = {}
        self._coordinators: dict[Key, Address] = {}

    @property
    def are_several(self) -> bool:
        return len(self._of_a) > 1 or len(self._of_b) > 1

    def take(self, a: Struct, b: Struct) -> None:
        """Learns of two replies where nodes are. The lowest ids of two lists of the same length stand for each other,
        and so on; what was learned before counts.
        """
        mine, theirs = list(nodes(a)), list(nodes(b))
        self._of_a.update((one.address, one.node_id) for one in mine)
        self._of_b.update((one.node_id, one.address) for one in theirs)
        if not isinstance(a, m.MetadataResponse | m.DescribeClusterResponse):
            return
        ids = [sorted({one.node_id for one in side}) for side in (mine, theirs)]
        if len(ids[0]) == len(ids[1]):
            for pair in zip(*ids, strict=True):
                self._identities.match(NODE, {}, *pair)

    def take_coordinators(self, request: Struct | None, b: Struct) -> None:
        """Learns from B's reply to a FindCoordinator who coordinates what."""
        if not isinstance(request, m.FindCoordinatorRequest) or not isinstance(b, m.FindCoordinatorResponse):
            return
        for one in b.coordinators:
            self.note((request.key_type, one.key), one.error_code, Address(one.host, one.port))
        if not b.coordinators:
            self.note((request.key_type, request.key), b.error_code, Address(b.host, b.port))

    def of_b(self, node_id: int) -> int:
        """B's node that stands for one of A."""
        found = self._identities.of_b(NODE, {}, node_id)
        assert isinstance(found, int)
        return found

    def note(self, key: Key, error_code: int, address: Address) -> None:
        """B has said where a coordinator is."""
        if not error_code:
            self._coordinators[key] = address
            if len(self._coordinators) > KEYS_MAX:
                del self._coordinators[next(iter(self._coordinators))]

    def place_for(self, api: str, request: Struct | None, node_id: int | None, address_of_a: Address) -> Address | None:
        """B's node for a request that a client has sent to a node of A; None if nothing is known of it."""
        for key in keys_of(api, request):
            if key in self._coordinators:
                return self._coordinators[key]
        if node_id is None:
            node_id = self._of_a.get(address_of_a)
        return None if node_id is None else self._of_b.get(self.of_b(node_id))


def keys_of(api: str, request: Struct | None) -> Iterator[Key]:
    """The keys of the coordinators that a request is for."""
    if request is None or api in OF_LEADERS:
        return
    names: tuple[str, ...]
    if api in OF_TRANSACTIONS:
        kind, names = TRANSACTIONS, ("transactional_id", "v3_and_below_transactional_id", "transactional_ids")
    else:
        kind, names = GROUPS, ("group_id", "group_ids", "groups_names", "groups")
    for name in names:
        yield from ((kind, one) for one in _texts(getattr(request, name, None)) if one)
    for one in getattr(request, "transactions" if kind == TRANSACTIONS else "groups", None) or ():
        if isinstance(one, Struct):
            yield kind, str(getattr(one, names[0]))


def _texts(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
