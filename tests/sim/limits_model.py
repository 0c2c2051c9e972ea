"""Quotas of the simulator of security: which limit is whose, as KIP-55 and KIP-257 say, and what a throttle time can be
at most.
"""

from __future__ import annotations

from collections import Counter

CLIENT_ID = "wire"
RATES = {"Produce": "producer_byte_rate", "Fetch": "consumer_byte_rate"}
MUTATIONS = "controller_mutation_rate"
MUTATING = ("CreateTopics", "DeleteTopics", "CreatePartitions", "Metadata")
TIME = "request_percentage"
WINDOW_MS = 1000
Entity = tuple[tuple[str, str | None], ...]
CLIENT, USER = "client-id", "user"


PARTITIONS_MAX = 8  # that one request of the simulator creates or deletes


class Allowances:
    """The limits that are set, by entity and key."""

    def __init__(self) -> None:
        self.values: dict[tuple[Entity, str], float] = {}
        self.windows = 11
        self._used: Counter[str] = Counter()  # by all clients since the first start: bytes and partitions

    def of(self, user: str, key: str) -> float | None:
        """The limit of a user: the one of the most specific entity."""
        users: tuple[Entity, ...] = tuple(
            entity
            for name in (user, None)
            for entity in (((CLIENT, CLIENT_ID), (USER, name)), ((CLIENT, None), (USER, name)), ((USER, name),))
        )
        clients: tuple[Entity, ...] = (((CLIENT, CLIENT_ID),), ((CLIENT, None),))
        return next((self.values[one, key] for one in (*users, *clients) if (one, key) in self.values), None)

    def check(self, api: str, user: str, throttle_ms: int, sent_bytes: int, readable_bytes: int) -> None:
        """AssertionError for a throttle time that cannot be. `sent_bytes`: of the request with its length;
        `readable_bytes`: what a Fetch could have returned.
        """
        assert throttle_ms >= 0, f"{api} has the throttle time {throttle_ms}"
        key = RATES.get(api, MUTATIONS if api in MUTATING else "")
        self._used[key] += {"Produce": sent_bytes, "Fetch": readable_bytes}.get(api, PARTITIONS_MAX)
        own = self.of(user, key)
        longest_ms = 0.0 if own is None else 1000 * self._used[key] / own + WINDOW_MS
        if self.of(user, TIME) is not None or api == "AlterClientQuotas":  # it may be what sets the limit
            longest_ms = max(longest_ms, WINDOW_MS)
        assert throttle_ms <= longest_ms, f"{api} of {user} is throttled for {throttle_ms} ms, {longest_ms} at most"
        if api == "Produce" and own is not None and sent_bytes - 4 > own * (self.windows + 1) * WINDOW_MS / 1000:
            assert throttle_ms > 0, f"{user} produces {sent_bytes} bytes at {own} a second, and is not throttled"
