"""Floods: requests that repeat the elements of an array as often as a frame holds them, for every array of every API.

A flood is made of an API's schema: each of its arrays is repeated once with the same element and once with elements of
different names, while every other array has one element. `python -m tests.support.floods [NAME_PART ...]` sends them
to a broker in memory and prints the longest time that one event took, in milliseconds of processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.broker.apis import apis
from ottla.broker.net.api import Api
from ottla.broker.net.dispatch import Refused
from ottla.broker.net.limits import elements_max
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.messages import struct_class
from ottla.protocol.schema import FieldSchema, Schema, StructSchema

from .ask import batch
from .wire import request_frame
from .world import Answer, World

TOPIC, PARTITIONS = "flooded", 3
GROUP, CONSUMER_GROUP, SHARE_GROUP, TRANSACTION = "classic", "consumer", "sharing", "transacting"
MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
FRAME_BYTES = 4 << 20
SAMPLE = 64  # elements by which the size of one is measured
NUMBERS: dict[str, Any] = {
    "acks": -1, "timeout_ms": 1000, "num_partitions": 1, "replication_factor": 1, "resource_type": 2,
    "endpoint_type": 1, "key_type": 0,
    "producer_id": 0, "member_epoch": 0, "generation_id": -1, "generation_id_or_member_epoch": -1, "replica_id": -1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20, "max_records": 100, "batch_size": 100, "current_leader_epoch": -1,
    "leader_epoch": -1, "timestamp": -1,
    "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "mechanism": 1, "iterations": 4096,
    "retention_time_ms": -1,
    "response_partition_limit": 2000, "transaction_timeout_ms": 60_000, "last_fetched_epoch": -1, "match_type": 0,
    "count": 4,
}  # fmt: skip
TEXTS = {
    "transactional_id": TRANSACTION, "transactional_ids": TRANSACTION, "v3_and_below_transactional_id": TRANSACTION,
    "member_id": MEMBER_ID,
    "protocol_type": "consumer", "mechanism": "PLAIN", "states_filter": "Stable", "types_filter": "classic",
    "state_filters": "Ongoing",
    "committed_metadata": "", "log_dir": "/data", "path": "/data",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flood:
    """A request with many elements in one array. `path` names the array; `distinct`: its elements have different
    names; `make`: makes the message, which is large.
    """

    api: str
    version: int
    path: str
    distinct: bool
    count: int
    make: Callable[[], Any]

    @property
    def name(self) -> str:
        return f"{self.api} v{self.version} {self.path} {'distinct' if self.distinct else 'same'}"

    @property
    def frame(self) -> bytes:
        return request_frame(self.api, self.version, self.make())


class Maker:
    """Makes the floods of one request and version; `topic_id` is that of a topic that is there."""

    def __init__(self, request: str, version: int, topic_id: bytes) -> None:
        self.schema: Schema = schema.load(request)
        self.version = version
        self.topic_id = topic_id

    def paths(self) -> list[tuple[str, ...]]:
        """The arrays of the request."""
        return list(self._paths(self.schema.root, ()))

    def _paths(self, struct: StructSchema, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for f in struct.fields:
            if self.version in f.versions and f.is_array:
                yield (*before, f.name)
            if self.version in f.versions and f.struct is not None:
                yield from self._paths(f.struct, (*before, f.name))

    def message(self, path: tuple[str, ...], count: int, distinct: bool) -> Any:
        """The request with `count` elements in the array at `path`."""
        return self._struct(self.schema.root, path, count, distinct, -1)

    def _struct(self, struct: StructSchema, path: tuple[str, ...], count: int, distinct: bool, number: int) -> Any:
        """A struct; `number` is that of the repeated element in it, -1 where nothing around it is repeated."""
        made = struct_class(self.schema, struct)()
        for f in struct.fields:
            if self.version not in f.versions or (self.version in f.tagged and path[:1] != (f.name,)):
                continue
            inner = path[1:] if path[:1] == (f.name,) else ()
            here = path == (f.name,)
            setattr(made, f.name, self._field(f, inner, count, distinct, number, here))
        return made

    def _field(self, f: FieldSchema, path: tuple[str, ...], count: int, distinct: bool, number: int, here: bool) -> Any:
        if f.is_array and here:
            if distinct:
                return [self._value(f, (), 0, distinct, i) for i in range(count)]
            return [self._value(f, (), 0, distinct, -1)] * count
        value = self._value(f, path, count, distinct, number)
        return [value] if f.is_array else value

    def _value(self, f: FieldSchema, path: tuple[str, ...], count: int, distinct: bool, number: int) -> Any:
        kind = f.element_type
        if f.struct is not None:
            if self.version in f.nullable and not f.is_array and not path:
                return None
            return self._struct(f.struct, path, count, distinct, number)
        if kind == "string":
            return self._text(f) + (f"-{number}" if number >= 0 else "")
        if kind == "uuid":
            return self.topic_id if number < 0 else number.to_bytes(16, "big")
        if kind in ("bytes", "records"):
            return batch(b"v") if kind == "records" else b""
        if kind == "bool":
            return False
        if kind == "float64":
            return 0.0
        if number >= 0 and ("partition" in f.name or "index" in f.name or f.name == "producer_id"):
            return number
        return NUMBERS.get(f.name, 0)

    def _text(self, f: FieldSchema) -> str:
        api = self.schema.name
        if "group" in f.name or (f.name in ("key", "coordinator_keys") and "Coordinator" in api):
            return SHARE_GROUP if "Share" in api else CONSUMER_GROUP if api.startswith("ConsumerGroup") else GROUP
        return TEXTS.get(f.name, TOPIC)


def versions_of(api: Api) -> list[int]:
    return sorted({api.low, api.high})


def floods(api: Api, topic_id: bytes, elements: int | None = None) -> Iterator[Flood]:
    """The floods of an API: as many elements as fit into a frame, and as are allowed unless `elements` says something
    else.
    """
    most = elements_max(api.key) if elements is None else elements
    for version in versions_of(api):
        maker = Maker(api.request, version, topic_id)
        for path in maker.paths():
            sizes = [len(codec.build(api.request, version, maker.message(path, n, True))) for n in (1, 1 + SAMPLE)]
            each = (sizes[1] - sizes[0]) / SAMPLE + 3  # the names become longer
            counted = [counted_elements(maker.message(path, n, False)) for n in (1, 2)]
            per_element = counted[1] - counted[0]
            count = min(int((FRAME_BYTES - sizes[0]) / each), (most - counted[0]) // per_element)
            for distinct in (False, True):
                make = partial(maker.message, path, count, distinct)
                yield Flood(api.name, version, ".".join(path), distinct, count, make)


def counted_elements(message: Any) -> int:
    """How many elements a message has in its arrays."""
    found = 0
    for name in message.__slots__:
        value = getattr(message, name)
        if isinstance(value, list):
            found += len(value) + sum(counted_elements(one) for one in value if hasattr(one, "unknown_tags"))
        elif hasattr(value, "unknown_tags"):
            found += counted_elements(value)
    return found


def prepare(ask: Callable[[str, int, Any], Any]) -> bytes:
    """Makes the topic, groups and transaction that floods name; returns the topic's id."""
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    topic_id: bytes = ask("CreateTopics", 7, r(topics=[topic], timeout_ms=10_000)).topics[0].topic_id
    for kind, group in ((0, GROUP), (1, TRANSACTION)):
        ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[group]))
    c = m.ConsumerGroupHeartbeatRequest
    joined = c(
        group_id=CONSUMER_GROUP,
        member_id=MEMBER_ID,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    ask("ConsumerGroupHeartbeat", 1, joined)
    ask(
        "ShareGroupHeartbeat",
        1,
        m.ShareGroupHeartbeatRequest(group_id=SHARE_GROUP, member_id=MEMBER_ID, subscribed_topic_names=[TOPIC]),
    )
    ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000))
    join = m.JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer"
    )
    join.protocols = [m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(10))]
    ask("JoinGroup", 3, join)
    return topic_id


class Measured:
    """The longest event of a broker in memory, in seconds of processor time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.longest = 0.0

    def run(self, frame: bytes, within_ms: int = 20_000) -> tuple[str, int]:
        """Serves a frame; returns how it ended, and the size of the reply."""
        world, answer = self.world, Answer()
        size = 0

        def take(reply: Any, end: bool) -> None:
            nonlocal size
            answer.done, answer.closed = True, end
            if reply is not None:
                size = reply.size

        try:
            self._timed(lambda: self._begin(frame, take))
        except Refused as error:
            return f"refused: {str(error)[:60]}", 0
        until = world.schedule.monotonic_ms() + within_ms
        while not answer.done and world.schedule.monotonic_ms() < until:
            self._next_event()
        for _ in range(50):
            self._next_event()
        return "closed" if answer.closed else "answered" if answer.done else "no answer", size

    def _begin(self, frame: bytes, take: Any) -> None:
        self.world.dispatcher.handle(self.world.peer, memoryview(bytearray(frame))[4:], take)
        self.world.broker.turn.settle()

    def _next_event(self) -> None:
        self._timed(self.world.schedule.take_next())

    def _timed(self, call: Any) -> None:
        began = time.process_time()
        try:
            call()
        finally:
            self.longest = max(self.longest, time.process_time() - began)


def measured(api: Api, elements: int | None = None) -> Iterator[tuple[Flood, float, str, int]]:
    """Each flood of an API, with the milliseconds of its longest event, how it ended, and the size of the reply."""
    topic_id = prepare(World().ask)
    for flood in floods(api, topic_id, elements):
        world = World()
        prepare(world.ask)
        measuring = Measured(world)
        outcome, size = measuring.run(flood.frame)
        yield flood, measuring.longest * 1000, outcome, size


def main(arguments: list[str]) -> None:
    for api in apis().values():
        if not arguments or any(word in api.name for word in arguments):
            for flood, ms, outcome, size in measured(api):
                print(f"{ms:8.0f} ms  {flood.count:7} {size / 2**20:7.1f} MiB  {flood.name}  {outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
