"""Asks two brokers the same and compares what they say, field by field.

A `Script` is a sequence of requests that mean the same to both: topic ids, node addresses and session ids are translated by name.
What may differ is a list with a reason for each entry (`ALLOWED`); error codes, messages, throttle times and defaults are never on it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from .oracle.kafka import Kafka
from .wire import Closed, Wire

WITHIN_S = 60

# API.field: why it may differ. `*` stands for any API.
ALLOWED = {
    "*.port": "two brokers have two ports",
    "*.topic_id": "ids are random",
    "*.cluster_id": "two clusters",
    "ApiVersions.finalized_features_epoch": "an offset of the metadata log, which Kafka fills with no-ops",
    "ApiVersions.api_keys": "what is not built is not listed; the ranges of what is are compared by themselves",
    "Fetch.session_id": "random",
    "Metadata.topics[].topic_id": "ids are random",
    "InitProducerId.producer_id": "blocks of ids are fetched at different moments",
    "DescribeProducers.last_timestamp": "the moment of the append",
    "DescribeConfigs.documentation": "our own words",
    "Produce.log_append_time_ms": "the moment of the append",
    "*.member_id": "ids are random, as far as a coordinator makes them; their shape is not",
    "*.leader": "the id of a member",
    "EndTxn.producer_id": "blocks of ids are fetched at different moments",
    "DescribeTransactions.producer_id": "blocks of ids are fetched at different moments",
    "ListTransactions.producer_id": "blocks of ids are fetched at different moments",
    "WriteTxnMarkers.producer_id": "blocks of ids are fetched at different moments",
    "DescribeProducers.producer_id": "blocks of ids are fetched at different moments",
    "DescribeTransactions.transaction_start_time_ms": "the moment of its first partition",
    "ListOffsets.timestamp": "the moment of the append, where the topic's time is the log's",
}
_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}$")
MOMENTS = {
    ("Produce", "log_append_time_ms"),
    ("DescribeProducers", "last_timestamp"),
    ("ListOffsets", "timestamp"),
    ("EndTxn", "producer_id"),
    ("InitProducerId", "producer_id"),
    ("DescribeTransactions", "producer_id"),
    ("DescribeTransactions", "transaction_start_time_ms"),
}


@dataclass
class Tally:
    """What has been compared."""

    replies: int = 0
    differences: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


class Pair:
    """Two brokers and a connection to each."""

    def __init__(self, ours: str, theirs: str, tally: Tally, client_id: str = "wire") -> None:
        self.addresses = (ours, theirs)
        self.tally = tally
        self.client_id = client_id
        self.ours, self.theirs = Wire(ours, client_id=client_id), Wire(theirs, client_id=client_id)

    def beside(self, client_id: str) -> Pair:
        """Another connection to each, of another client."""
        return Pair(*self.addresses, self.tally, client_id)

    def say(self, name: str, version: int, make: Callable[[int], Any]) -> None:
        """Sends to both what `make` makes for ours (0) and theirs (1); the replies are compared by `hear`."""
        self.ours.say(name, version, make(0))
        self.theirs.say(name, version, make(1))

    def hear(self, name: str, version: int) -> tuple[Any, Any]:
        mine, other = self.ours.reply(name, version), self.theirs.reply(name, version)
        self._compare(name, version, mine, other, "said before")
        return mine, other

    def both(self, name: str, version: int, make: Callable[[int], Any]) -> tuple[Any, Any]:
        """Asks both what `make` makes for ours (0) and theirs (1), and compares the replies."""
        return self.ask(name, version, make(1), make(0))

    def ask(self, name: str, version: int, message: Any, ours: Any = None) -> tuple[Any, Any]:
        """Sends `message` to both (`ours` to ours where it must differ) and compares the replies."""
        mine = self._one(self.ours, 0, name, version, message if ours is None else ours)
        other = self._one(self.theirs, 1, name, version, message)
        self._compare(name, version, mine, other, message)
        return mine, other

    def until(self, name: str, version: int, message: Any, done: Callable[[Any], bool]) -> None:
        """Asks each by itself, as often as it takes: what was said on another connection reaches each in its own time."""
        for side, wire in enumerate((self.ours, self.theirs)):
            while not done(self._one(wire, side, name, version, message)):
                continue

    def _compare(self, name: str, version: int, mine: Any, other: Any, message: Any) -> None:
        self.tally.replies += 1
        for path, a, b in differences(mine, other):
            allowed = self._allowed(name, path, a, b)
            if allowed:
                self.tally.used.add(allowed)
            else:
                self.tally.differences.append(f"{name} v{version} {path}: ottla {_short(a)}, Kafka {_short(b)}; request {message!r}"[:600])

    def _one(self, wire: Wire, side: int, name: str, version: int, message: Any) -> Any:
        try:
            return wire.ask(name, version, message)
        except Closed:
            wire.close()
            fresh = Wire(self.addresses[side], client_id=self.client_id)
            if side == 0:
                self.ours = fresh
            else:
                self.theirs = fresh
            return "closed"

    def _allowed(self, name: str, path: str, ours: Any, theirs: Any) -> str | None:
        last = path.rpartition(".")[2].partition("[")[0]
        if (name, last) in MOMENTS and (ours == -1) != (theirs == -1):
            return None
        if last in ("member_id", "leader") and shape(ours) != shape(theirs):
            return None
        for entry in (f"*.{last}", f"{name}.{last}"):
            if entry in ALLOWED:
                return entry
        return None

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two messages differ."""
    if hasattr(a, "unknown_tags") and type(a) is type(b):
        for name in a.__slots__:
            yield from differences(getattr(a, name), getattr(b, name), f"{path}.{name}")
    elif isinstance(a, list) and isinstance(b, list):
        a, b = _ordered(a), _ordered(b)
        if len(a) != len(b):
            yield f"{path}[]", a, b
            return
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif isinstance(a, memoryview) and isinstance(b, memoryview):
        if bytes(a) != bytes(b):
            yield path, bytes(a), bytes(b)
    elif a != b:
        yield path, a, b


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]}… ({len(value) if hasattr(value, '__len__') else len(text)} long)"


def shape(member_id: Any) -> Any:
    """A member's id without what is random in it."""
    return _RANDOM.sub("*", member_id) if isinstance(member_id, str) else member_id


def _ordered(items: list[Any]) -> list[Any]:
    """Lists of named things are compared by name, and partitions by number: Kafka keeps them in hash tables."""
    if items and all(isinstance(i, int) for i in items):
        return sorted(items)
    for keys in (
        ("api_key",),
        ("name", "partition_index"),
        ("name",),
        ("group_id",),
        ("transactional_id",),
        ("client_id", "member_id"),
        ("group_instance_id", "member_id"),
        ("member_id",),
        ("topic",),
        ("topic_name",),
        ("resource_type", "resource_name"),
        ("partition_index",),
        ("producer_id",),
        ("index",),
        ("partition",),
    ):
        if items and all(hasattr(i, "unknown_tags") and all(hasattr(i, k) for k in keys) for i in items):
            return sorted(items, key=lambda i: tuple((getattr(i, k) is not None, shape(getattr(i, k))) for k in keys))
    return items


def await_coordinators(servers: str) -> None:
    """Returns when a broker has its topics of groups, of transactions and of share-partitions' states, and has loaded them."""
    with Wire(servers) as wire:
        for kind, key in ((0, "g"), (1, "t"), (2, f"g:{'A' * 22}:0")):
            until = time.monotonic() + WITHIN_S
            while True:
                found = wire.ask("FindCoordinator", 6, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators[0]
                loaded = ("ListTransactions", 0, m.ListTransactionsRequest()) if kind == 1 else ("ListGroups", 4, m.ListGroupsRequest())
                if found.error_code == 0 and wire.ask(*loaded).error_code == 0:
                    break
                assert time.monotonic() < until, f"no coordinator of type {kind}"


def own_brokers(settings: dict[str, object]) -> tuple[Any, Any, Any]:
    """A module's fixtures `oracle`, `ours` and `coordinators`: both brokers with these settings, and their coordinators loaded.

    Ours is strict: what ottla does otherwise to save time is off.
    """

    @pytest.fixture(scope="module")
    def oracle() -> Iterator[Kafka]:
        with Kafka(settings) as kafka:
            yield kafka

    @pytest.fixture(scope="module")
    def ours() -> Iterator[Broker]:
        with Broker({"ottla.group.settle": False, **settings}, lab=False) as broker:
            yield broker

    @pytest.fixture(scope="module", autouse=True)
    def coordinators(oracle: Kafka, ours: Broker, settled: None) -> None:
        for servers in (ours.bootstrap_servers, oracle.bootstrap_servers):
            await_coordinators(servers)

    return oracle, ours, coordinators
