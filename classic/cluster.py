"""Which brokers there are, and which of them leads a partition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..protocol import messages
from ..protocol.errors import MalformedMessage
from ..protocol.structs import Struct
from .balance.assignment import TopicPartition
from .connection import Connection
from .errors import BrokerUnreachable

Address = tuple[str, int]
Discovery = Callable[[], Sequence[Address]]


def addresses(broker_list: str) -> list[Address]:
    """Reads `host:port,host:port`. Raises ValueError."""
    found = []
    for one in broker_list.split(","):
        host, colon, port = one.strip().rpartition(":")
        if not colon or not port.isdigit():
            raise ValueError(f"{one.strip()!r} is not host:port")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return found


class Cluster:
    """`discover`: the brokers to ask. Connections are kept, one to each broker."""

    def __init__(self, discover: Discovery, client_id: str, timeout_s: float) -> None:
        self._discover, self._client_id, self._timeout_s = discover, client_id, timeout_s
        self._connections: dict[Address, Connection] = {}
        self._addresses: dict[int, Address] = {}
        self._leaders: dict[str, dict[int, int]] = {}  # by topic; -1: none
        self._lock = threading.Lock()

    def refresh(self, topics: Collection[str]) -> None:
        """Asks for the leaders of topics, which a broker may make then. Raises BrokerUnreachable."""
        r = messages.MetadataRequest
        request = r(topics=[r.MetadataRequestTopic(name=topic) for topic in sorted(topics)])
        reply = self.asked_any("Metadata", lambda _: request)
        with self._lock:
            self._addresses |= {one.node_id: (one.host, one.port) for one in reply.brokers}
            for topic in reply.topics:
                leaders = {one.partition_index: one.leader_id for one in topic.partitions}
                self._leaders[topic.name] = dict(sorted(leaders.items()))

    def all_partitions(self) -> list[TopicPartition]:
        """Returns the partitions of all topics. Raises BrokerUnreachable."""
        reply = self.asked_any("Metadata", lambda version: messages.MetadataRequest(topics=None if version else []))
        return [TopicPartition(topic.name, one.partition_index) for topic in reply.topics for one in topic.partitions]

    def leaders(self, topic: str) -> dict[int, int]:
        """Returns the leader of each partition, in their order, -1 for none; empty if the topic is not known."""
        with self._lock:
            return self._leaders.get(topic, {})

    def address_of(self, broker_id: int) -> Address:
        """Raises BrokerUnreachable for a broker that no reply has named."""
        with self._lock:
            address = self._addresses.get(broker_id)
        if address is None:
            raise BrokerUnreachable(f"broker {broker_id} is not known")
        return address

    def connection_at(self, address: Address) -> Connection:
        with self._lock:
            if address not in self._connections:
                self._connections[address] = self.new_connection(address)
            return self._connections[address]

    def new_connection(self, address: Address) -> Connection:
        """Returns a connection that no one shares."""
        return Connection(*address, self._client_id, self._timeout_s)

    def asked_any(self, name: str, request: Callable[[int], Struct]) -> Any:
        """Asks the first broker that answers; `request` makes the request for a version. Raises BrokerUnreachable."""
        with self._lock:
            known = list(self._addresses.values())
        reasons = []
        try:
            known = [*self._discover(), *known]
        except BrokerUnreachable as error:
            reasons.append(str(error))
        for address in dict.fromkeys(known):
            connection = self.connection_at(address)
            try:
                version = connection.version_of(name)
                return connection.ask(name, version, request(version))
            except (OSError, MalformedMessage) as error:
                reasons.append(f"{address[0]}:{address[1]}: {error}")
        raise BrokerUnreachable("; ".join(reasons) or "there is no broker")

    def close(self) -> None:
        with self._lock:
            for one in self._connections.values():
                one.close()
            self._connections.clear()
