"""Shards for tests of the runtime: a counter, its log, and a clock."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from ottla.coordinator.shard import Result
from ottla.coordinator.shard_runtime import ShardRuntime
from ottla.coordinator.timeline import Timeline, TimelineDict
from ottla.coordinator.timers import Timer
from ottla.protocol import records
from ottla.protocol.control import Marker
from ottla.protocol.errors import ApiError
from ottla.protocol.records import Record


class Counter:
    """A shard that counts by name: every record is `name=value`."""

    def __init__(self, timeline: Timeline) -> None:
        self.values = TimelineDict[str, int](timeline)
        self.markers: list[tuple[int, int, bool]] = []
        self.offsets: list[int] = []
        self.loaded = self.unloaded = False
        self.marker_steps = 1

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        if value == b"poison":
            raise RuntimeError("cannot be replayed")
        self.offsets.append(offset)
        self.values[key.decode()] = int(value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> Iterator[None]:
        self.markers.append((offset, producer_id, marker.committed))
        yield from repeat(None, self.marker_steps - 1)

    def on_loaded(self, now_ms: int) -> list[Timer]:
        self.loaded = True
        return [Timer("after-load", now_ms + 10, lambda now: Result([("timer", 1)]))]

    def on_unloaded(self) -> None:
        self.unloaded = True


class Pairs:
    def encode(self, record: tuple[str, Any]) -> Record:
        value = record[1]
        return Record(record[0].encode(), value if isinstance(value, bytes) else str(value).encode())

    def replayed(self, record: tuple[str, Any]) -> tuple[Any, Any]:
        encoded = self.encode(record)
        return encoded.key, encoded.value

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        return None if record.key == b"unknown" else (record.key, record.value)


class FakeLog:
    """A partition in memory, whose appends fail with `error` if it is set."""

    def __init__(self) -> None:
        self.batches: list[records.BatchHeader] = []
        self.end = 0
        self.error: ApiError | None = None
        self.limit = 1000
        self.wall_ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.wall_ms

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        if self.error is not None:
            raise self.error
        header = records.header_at(batch)
        self.batches.append(header)
        first = self.end
        self.end += header.record_count
        return first, self.end

    def max_batch_bytes(self) -> int:
        return self.limit


class World:
    """A loaded runtime and what came out of it."""

    def __init__(self) -> None:
        timeline = Timeline()
        self.shard = Counter(timeline)
        self.log = FakeLog()
        self.runtime = ShardRuntime("test-0", self.shard, Pairs(), self.log, timeline)
        self.replies: list[Any] = []
        for _ in self.runtime.load(iter(()), 1, 0, 0, 0):
            continue

    def write(self, *pairs: tuple[str, Any], reply: Any = "ok", **more: Any) -> None:
        self.runtime.write("test", lambda: Result(list(pairs), reply), self.answered, 0, **more)

    def answered(self, reply: Any, error: ApiError | None) -> None:
        self.replies.append(reply if error is None else error.code)
