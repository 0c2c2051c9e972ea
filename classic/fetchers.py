"""Fetches the partitions of a connector into its streams: a thread for each broker that leads some of them, and one
that finds leaders.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence

from ..protocol.errors import MalformedMessage
from .cluster import Address, Cluster
from .connection import Connection
from .consumer_config import SMALLEST, ConsumerConfig
from .errors import OFFSET_OUT_OF_RANGE, BrokerUnreachable, KafkaError
from .message import MessageSet
from .requests import EARLIEST_TIME, LATEST_TIME, FetchRequest, fetched, offsets_before
from .simple_consumer import MESSAGE_BYTES_MAX
from .streams import PartitionPosition

_log = logging.getLogger(__name__)
NOT_REACHED = (OSError, MalformedMessage, BrokerUnreachable, KafkaError)


class Fetching:
    """Runs from a rebalance to the next one."""

    def __init__(self, config: ConsumerConfig, cluster: Cluster, positions: Sequence[PartitionPosition]) -> None:
        self._config, self._cluster = config, cluster
        self.positions = positions
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._without_leader = list(positions)
        self._fetchers: dict[Address, _Fetcher] = {}
        self._finder = threading.Thread(target=self._find_leaders, name="ottla-classic-leader-finder", daemon=True)
        self._finder.start()

    def stop(self) -> None:
        """Returns when no thread fetches any more; what is in the streams is forgotten."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        self._finder.join()
        for one in self._fetchers.values():
            one.wake()
        for position in self.positions:
            position.stream.clear()
        for one in self._fetchers.values():
            one.join()
        for position in self.positions:  # what a thread had put before it saw that it is stopped
            position.stream.clear()

    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def give_back(self, positions: Sequence[PartitionPosition]) -> None:
        """Lets the leaders of partitions be found again, after a pause."""
        if positions and not self._stopped.wait(self._config.refresh_leader_backoff_ms / 1000):
            with self._changed:
                self._without_leader += positions
                self._changed.notify_all()

    def _find_leaders(self) -> None:
        while not self.is_stopped():
            with self._changed:
                self._changed.wait_for(lambda: self._without_leader or self.is_stopped())
                wanted, self._without_leader = self._without_leader, []
            if self.is_stopped():
                return
            left = self._assigned(wanted)
            self.give_back(left)

    def _assigned(self, wanted: list[PartitionPosition]) -> list[PartitionPosition]:
        """Gives partitions to the fetchers of their leaders; returns those that have none."""
        try:
            self._cluster.refresh({one.place.topic for one in wanted})
        except BrokerUnreachable as error:
            _log.warning("no broker says who leads: %s", error)
            return wanted
        left = []
        for one in wanted:
            try:
                address = self._cluster.address_of(self._cluster.leaders(one.place.topic).get(one.place.partition, -1))
            except BrokerUnreachable:  # there is no leader, or one that no broker has an address of
                left.append(one)
                continue
            if address not in self._fetchers:
                self._fetchers[address] = _Fetcher(self, self._config, self._cluster.new_connection(address))
                self._fetchers[address].start()
            self._fetchers[address].add(one)
        return left


class _Fetcher(threading.Thread):
    """Asks one broker for all partitions that it leads."""

    def __init__(self, fetching: Fetching, config: ConsumerConfig, connection: Connection) -> None:
        super().__init__(name=f"ottla-classic-fetcher-{connection.host}:{connection.port}", daemon=True)
        self.connection = connection
        self._fetching, self._config = fetching, config
        self._positions: list[PartitionPosition] = []
        self._sizes: dict[PartitionPosition, int] = {}  # of the buffers that had to grow
        self._changed = threading.Condition()

    def add(self, position: PartitionPosition) -> None:
        with self._changed:
            self._positions.append(position)
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets it see that it is stopped."""
        with self._changed:
            self._changed.notify_all()
        self.connection.interrupt()

    def run(self) -> None:
        while not self._fetching.is_stopped():
            with self._changed:
                self._changed.wait_for(lambda: self._positions or self._fetching.is_stopped())
                positions = list(self._positions)
            try:
                failed = self._fetched(positions)
            except NOT_REACHED as error:
                if self._fetching.is_stopped():
                    break
                _log.warning("broker %s:%d: %s", self.connection.host, self.connection.port, error)
                failed = positions
            if failed:
                with self._changed:
                    self._positions = [one for one in self._positions if one not in failed]
                self._fetching.give_back(failed)
        self.connection.close()

    def _fetched(self, positions: list[PartitionPosition]) -> list[PartitionPosition]:
        """Does one fetch; returns the partitions that this broker does not serve."""
        for one in positions:
            if one.fetched is None:
                self._reset(one)
        size = self._config.fetch_message_max_bytes
        wanted = [
            FetchRequest(one.place.topic, one.place.partition, one.fetched or 0, self._sizes.get(one, size))
            for one in positions
        ]
        sets = fetched(self.connection, wanted, self._config.fetch_wait_max_ms, self._config.fetch_min_bytes)
        return [one for one, found in zip(positions, sets, strict=True) if not self._took(one, found)]

    def _took(self, position: PartitionPosition, found: MessageSet) -> bool:
        if found.error_code == OFFSET_OUT_OF_RANGE:
            _log.warning("%s-%d has no offset %s", *position.place, position.fetched)
            self._reset(position)
            return True
        if found.error_code:
            return False
        if found.is_partial:
            size = self._sizes.get(position, self._config.fetch_message_max_bytes)
            self._sizes[position] = min(2 * size, MESSAGE_BYTES_MAX)
            return True
        messages = deque(found)
        if messages and not position.stream.put((position, messages), self._fetching.is_stopped):
            return True
        position.fetched = found.next_offset
        self._sizes.pop(position, None)
        return True

    def _reset(self, position: PartitionPosition) -> None:
        """Begins where `auto_offset_reset` says. Raises KafkaError, OSError and MalformedMessage."""
        time = EARLIEST_TIME if self._config.auto_offset_reset == SMALLEST else LATEST_TIME
        offsets = offsets_before(self.connection, *position.place, time, 1)
        if not offsets:
            raise MalformedMessage("old_style_offsets", "the broker names no offset")
        position.consumed = position.fetched = offsets[0]
