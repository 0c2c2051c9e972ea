"""What a connection has asked for, kept for the lab while it is on."""

from __future__ import annotations

from collections import Counter

from ..protocol.structs import Struct

OF_GROUPS = frozenset((8, 11, 12, 13, 14, 28, 68, 76, 78, 79, 88))
"""The keys of APIs whose requests name one group."""
GROUPS_MAX = 16
INIT_PRODUCER_ID = 22


class ClientActivity:
    """The requests of a connection. `requests`: their number by API key and version. `groups`: by name, the last member
    id that the client gave. Times are monotonic, in ms.
    """

    __slots__ = ("client_id", "groups", "last", "opened_ms", "requests", "transactional_id")

    def __init__(self, opened_ms: int) -> None:
        self.opened_ms = opened_ms
        self.client_id: str | None = None
        self.requests: Counter[tuple[int, int]] = Counter()
        self.last: tuple[int, int] | None = None
        self.groups: dict[str, str] = {}
        self.transactional_id: str | None = None

    def note(self, key: int, version: int, client_id: str | None, request: Struct) -> None:
        """Counts a request."""
        self.client_id = client_id
        self.last = at = (key, version)
        self.requests[at] += 1
        if key in OF_GROUPS:
            group_id = getattr(request, "group_id", None)
            if group_id and (group_id in self.groups or len(self.groups) < GROUPS_MAX):
                self.groups[group_id] = getattr(request, "member_id", None) or self.groups.get(group_id, "")
        elif key == INIT_PRODUCER_ID:
            self.transactional_id = getattr(request, "transactional_id", None)
