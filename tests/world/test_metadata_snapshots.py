"""A snapshot of the metadata has the image of one moment, is encoded in steps and stored in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.controller import metadata_log
from ottla.coordinator.metadata.state import GROUP
from ottla.coordinator.shard import Result
from ottla.protocol import messages as m
from ottla.protocol import records

from ..support.threaded import ThreadedFiles, threaded
from ..support.topic_world import create
from ..support.world import World

GROUPS = 4 * metadata_log.SNAPSHOT_STEP
DIRECTORY = "/data/__cluster_metadata-0"
LIMIT = "20000"


class NotedFiles(ThreadedFiles):
    """Notes the snapshots that are stored, and whether in a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[tuple[str, bool]] = []
        self.before_storing: Callable[[], None] = lambda: None

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        if path.endswith(".checkpoint"):
            self.before_storing()
            self.stored.append((path, self.is_thread))
        super().replace(path, data, durable)


def config(group: str) -> m.ConfigRecord:
    return m.ConfigRecord(resource_type=GROUP, resource_name=group, name="consumer.session.timeout.ms", value="50000")


def configured(world: World) -> None:
    """Writes the configurations of many groups, together."""
    found = [config(f"g{n}") for n in range(GROUPS)]
    world.broker.metadata.submit(lambda: Result(found))
    world.broker.turn.settle()
    world.pass_ms(100)


def test_a_snapshot_is_taken_in_steps_while_the_metadata_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    files = NotedFiles()
    world = World(files, metadata_log_max_record_bytes_between_snapshots=LIMIT)
    threaded(world, files, monkeypatch)
    files.stored.clear()
    encoded: list[int] = []
    encode = records.encode
    image = world.broker.image

    def counted(some: Any, template: Any = None) -> Any:
        if len(some) == metadata_log.SNAPSHOT_STEP:
            image.apply(config(f"later{len(encoded)}"))
        encoded.append(len(some))
        return encode(some, template)

    monkeypatch.setattr(records, "encode", counted)
    configured(world)
    (path, in_thread), *more = files.stored
    assert in_thread
    assert not more
    found, wrong = metadata_log.read_snapshot(files.read(path))
    assert wrong is None
    assert encoded.count(metadata_log.SNAPSHOT_STEP) == GROUPS // metadata_log.SNAPSHOT_STEP
    assert max(encoded) == metadata_log.SNAPSHOT_STEP
    kept = [one.resource_name for one in found if isinstance(one, m.ConfigRecord) and one.resource_name]
    assert kept == [f"g{n}" for n in range(GROUPS)]
    again = World(world.lose_power())
    assert len(again.broker.image.configs) == GROUPS + 1 < len(image.configs)
    assert again.broker.metadata.snapshots.offset == metadata_log.snapshots(files.names(DIRECTORY))[0][0]


def test_a_snapshot_that_cannot_be_stored_leaves_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without descriptors for a file, for example; the next commit tries again."""
    files = NotedFiles()
    world = World(files, metadata_log_max_record_bytes_between_snapshots=LIMIT)
    files.stored.clear()

    def fail() -> None:
        raise OSError(24, "Too many open files", path)

    path = f"{DIRECTORY}/x.checkpoint"
    files.before_storing = fail
    configured(world)
    assert not files.stored
    assert not world.fatal
    assert World(files.copy()).broker.image.configs[GROUP, "g7"]
    files.before_storing = lambda: None
    assert create(world, "another") == 0
    world.pass_ms(100)
    assert len(files.stored) == 1
    assert list(World(world.lose_power()).broker.image.topics) == ["another"]


def test_a_snapshot_is_taken_in_each_interval_that_has_new_records() -> None:
    files = NotedFiles()
    world = World(files, metadata_log_max_snapshot_interval_ms="60000")
    world.pass_ms(60_100)
    files.stored.clear()
    world.pass_ms(180_000)
    assert files.stored == [], "there is nothing new"
    create(world, "new")
    world.pass_ms(61_000)
    assert len(files.stored) == 1
    again = World(world.lose_power(), metadata_log_max_snapshot_interval_ms="0")
    assert list(again.broker.image.topics) == ["new"]
