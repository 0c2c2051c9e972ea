"""A broker in a ZooKeeper, as its clients see it: Kafka's (`OldKafka`), or ottla in its place."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from ottla.testing import Broker


class Installation(Protocol):
    @property
    def zookeeper(self) -> str:
        """`zookeeper.connect`, with the path."""

    @property
    def bootstrap_servers(self) -> str: ...

    def add_broker(self) -> int:
        """Adds a broker; returns its id."""


class RegisteredOttla:
    """ottla as Kafka 0.8.2, registered in a ZooKeeper; a context manager."""

    def __init__(self, zookeeper: str, settings: dict[str, object]) -> None:
        self.zookeeper = zookeeper
        own = {"ottla.emulate": "0.8.2", "zookeeper.connect": zookeeper, "offsets.topic.num.partitions": 1}
        self.broker = Broker({**own, "ottla.nodes": 2, **settings})  # one alone cannot get more

    @property
    def bootstrap_servers(self) -> str:
        """The first node alone, which names the others."""
        return self.broker.bootstrap_servers.partition(",")[0]

    def add_broker(self) -> int:
        nodes: list[int] = [one["node"] for one in self.broker.lab.post("nodes")["nodes"]]
        return max(nodes)

    def __enter__(self) -> RegisteredOttla:
        self.broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.close()
