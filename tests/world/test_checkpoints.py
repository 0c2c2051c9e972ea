"""The checkpoints of offsets are written in a thread, in the order in which their offsets were collected."""

from __future__ import annotations

import errno

import pytest
from ottla.broker.replica import checkpointing, directories
from ottla.protocol import messages as m
from ottla.storage.checkpoints import read_offsets
from ottla.storage.layout import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS

from ..support.ask import batch, produce_message
from ..support.failing_files import FailingFiles
from ..support.memory_files import MemFiles
from ..support.threaded import ThreadedFiles, threaded
from ..support.topic_world import create
from ..support.turns import Turns
from ..support.world import World

NAMES = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)


class NotedFiles(ThreadedFiles):
    """Notes the checkpoints that are written, and whether in a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, bool]] = []

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        name = path.rpartition("/")[2]
        if name in NAMES:
            self.written.append((name, self.is_thread))
        super().replace(path, data, durable)


def produce(world: World) -> None:
    assert world.send("Produce", 9, produce_message("t", batch(b"v"))).done


def high_watermark(files: MemFiles) -> int:
    return read_offsets(files, f"/data/{HIGH_WATERMARKS}")["t", 0]


def test_checkpoints_are_written_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    files = NotedFiles()
    world = Turns(files)
    threaded(world, files, monkeypatch)
    assert create(world, "t", 5) == 0
    produce(world)
    monkeypatch.setattr(checkpointing, "ROUND_STEP", 2)
    files.written.clear()
    world.turns = 0
    world.broker.replicas.checkpoints.begin_round()
    assert not files.written
    world.broker.replicas.checkpoints.begin_round()
    world.pass_ms(100)
    assert files.written == [(name, True) for name in NAMES], "the second round has nothing new"
    assert world.turns >= 4
    assert high_watermark(files) == 1
    produce(world)
    world.broker.replicas.checkpoints.begin_round()
    world.pass_ms(100)
    assert files.written[len(NAMES) :] == [(HIGH_WATERMARKS, True)]
    assert high_watermark(files) == 2


def test_a_checkpoint_whose_write_failed_is_written_again() -> None:
    files = FailingFiles()
    world = World(files)
    assert create(world, "t") == 0
    world.broker.replicas.save_checkpoints()
    produce(world)
    files.fail("write", HIGH_WATERMARKS, errno.EMFILE, times=1)
    world.broker.replicas.save_checkpoints()
    assert high_watermark(files) == 0
    world.broker.replicas.save_checkpoints()
    assert high_watermark(files) == 1


def test_earlier_offsets_do_not_replace_later_ones() -> None:
    """A thread may be late: the cleaner's recovery point, or the last one of a broker that stops, must stay."""
    world = World()
    assert create(world, "t") == 0
    produce(world)
    (directory,) = world.broker.log_directories.all
    world.broker.replicas.save_checkpoints()
    early = directories.checkpoint_job(directory)
    produce(world)
    world.broker.replicas.save_checkpoints()
    assert high_watermark(world.files) == 2
    directories.store(world.files, directory, early)
    assert high_watermark(world.files) == 2
    world.broker.replicas.checkpoints.begin_round()
    assert world.broker.stop() is None
    files = world.files.copy()
    world.pass_ms(1000)
    assert {name: world.files.read(f"/data/{name}") for name in NAMES} == {
        name: files.read(f"/data/{name}") for name in NAMES
    }


def test_a_new_topic_does_not_begin_where_a_deleted_one_of_its_name_did() -> None:
    """Checkpoints name topics by their names only."""
    world = World(MemFiles())
    create(world, "t")
    produce(world)
    d = m.DeleteRecordsRequest
    topic = d.DeleteRecordsTopic(name="t", partitions=[d.DeleteRecordsPartition(partition_index=0, offset=-1)])
    world.ask("DeleteRecords", 2, d(topics=[topic], timeout_ms=1000))
    world.broker.replicas.save_checkpoints()
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    world.pass_ms(20)
    create(world, "t")
    world.pass_ms(20)
    again = World(world.files)  # the process ended
    again.pass_ms(20)
    log = again.broker.partitions.get("t", 0).open_log()
    assert (log.start_offset, log.end_offset) == (0, 0)
