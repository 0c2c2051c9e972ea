"""Compactions at the rate of `log.cleaner.io.max.bytes.per.second`: each goes on slowly."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from ottla.broker import bugs
from ottla.broker.replica import cleaning_pace
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.storage import cleaning
from ottla.storage.cleaning_pieces import Compaction, close_in_worker, go_on_in_worker
from ottla.storage.files import HandlePool, OsFiles
from ottla.storage.layout import CLEANED
from ottla.storage.log import Log
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.ask import produce_message
from ..support.dynamic import set_broker
from ..support.logs import append
from ..support.topic_world import create, produced
from ..support.world import World

RATE = "log.cleaner.io.max.bytes.per.second"
ROUND_MS = 1000
BATCHES = 21  # one of them in the active segment, and each in its own


def world_of(rate: float | str, **settings: str) -> World:
    return World(log_cleaner_backoff_ms=str(ROUND_MS), log_cleaner_io_max_bytes_per_second=str(rate), **settings)


def fill(world: World, topic: str = "keys", policy: str = "compact") -> Log:
    """Makes a log in which nearly nothing stays."""
    create(world, topic, cleanup_policy=policy, internal_segment_bytes="200", min_cleanable_dirty_ratio="0.1")
    for n in range(BATCHES):
        data = records.encode([records.Record(b"k", b"%d" % n * 50, world.schedule.now_ms())])
        assert produced(world.ask("Produce", 9, produce_message(topic, bytes(data)))).error_code == 0
    return log_of(world, topic)


def log_of(world: World, topic: str = "keys") -> Log:
    log = world.broker.partitions.by_name[topic, 0].log
    assert log is not None
    return log


def is_compacted(world: World, topic: str = "keys") -> bool:
    return log_of(world, topic).first_dirty_offset == BATCHES - 1


def cleaned_files(world: World) -> list[str]:
    return [path for path in world.files.paths() if path.endswith(CLEANED)]


def bytes_of(log: Log) -> int:
    return sum(segment.size for segment in log.segments[:-1])


def test_a_compaction_reads_and_writes_at_the_rate() -> None:
    """It reads all twice, for the last offsets of the keys and for what stays, and writes what stays."""
    world = world_of(100)
    log = fill(world)
    least_ms = 2 * bytes_of(log) * 1000 // 100
    world.pass_ms(ROUND_MS + 10)
    assert not cleaned_files(world), "it reads the keys first"
    world.pass_ms(least_ms // 2)
    assert cleaned_files(world)
    world.pass_ms(least_ms // 2 - 2 * ROUND_MS)
    assert not is_compacted(world)
    world.pass_ms(4 * ROUND_MS)
    assert is_compacted(world)
    assert not cleaned_files(world)


@pytest.mark.parametrize("rate", [1e9, "1.7976931348623157E308"])
def test_a_high_rate_holds_nothing_up(rate: float | str) -> None:
    world = world_of(rate)
    fill(world)
    world.pass_ms(ROUND_MS + 10)
    assert is_compacted(world)


def test_the_next_compaction_pays_for_the_last_one() -> None:
    """As the rate is of the node, and not of one log."""
    world = world_of(100)
    fill(world, "one")
    paid_ms = 2 * bytes_of(fill(world, "two")) * 1000 // 100
    world.pass_ms(paid_ms + 4 * ROUND_MS)
    assert sorted([is_compacted(world, "one"), is_compacted(world, "two")]) == [False, True]
    world.pass_ms(paid_ms + 4 * ROUND_MS)
    assert is_compacted(world, "one")
    assert is_compacted(world, "two")


@pytest.mark.parametrize("slow", ["1", "0", "-1"])
def test_another_rate_takes_effect_while_a_compaction_waits(slow: str) -> None:
    """With a rate that allows nothing it waits for another one."""
    world = world_of(1e9)
    set_broker(world, RATE, slow)
    fill(world)
    world.pass_ms(20 * ROUND_MS)
    assert not is_compacted(world)
    set_broker(world, RATE, "1e9")
    world.pass_ms(cleaning_pace.LOOK_AGAIN_MS + 10)
    assert is_compacted(world)


def test_a_stop_does_not_wait_for_a_compaction() -> None:
    """Nothing of it is left, and the next start begins again."""
    world = world_of(100)
    least_ms = 2 * bytes_of(fill(world)) * 1000 // 100
    world.pass_ms(ROUND_MS + 3 * least_ms // 4)
    assert cleaned_files(world)
    world.broker.stop()
    assert not cleaned_files(world)
    again = World(world.files, log_cleaner_backoff_ms=str(ROUND_MS))
    again.pass_ms(2 * ROUND_MS)
    assert is_compacted(again)


def test_a_log_that_is_deleted_is_left() -> None:
    """The compaction of another one goes on."""
    before = bugs.count()
    world = world_of(100)
    fill(world)
    world.pass_ms(2 * ROUND_MS)
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["keys"], timeout_ms=1000))
    fill(world, "other")
    set_broker(world, RATE, "1e9")
    world.pass_ms(3 * ROUND_MS)
    assert is_compacted(world, "other")
    assert bugs.count() == before


def test_a_log_that_lost_a_segment_is_compacted_in_another_round(caplog: pytest.LogCaptureFixture) -> None:
    """DeleteRecords takes what would have been read next: that is no failure of the disk."""
    world = world_of(100, log_retention_check_interval_ms="1000")
    fill(world, policy="compact,delete")
    world.pass_ms(2 * ROUND_MS)
    r = m.DeleteRecordsRequest
    part = r.DeleteRecordsPartition(partition_index=0, offset=BATCHES - 2)
    world.ask("DeleteRecords", 2, r(topics=[r.DeleteRecordsTopic(name="keys", partitions=[part])], timeout_ms=1000))
    world.pass_ms(2 * ROUND_MS)
    assert log_of(world).bases[0] == BATCHES - 2
    set_broker(world, RATE, "1e9")
    world.pass_ms(3 * ROUND_MS)
    assert is_compacted(world)
    assert not caplog.records


def test_a_move_of_the_log_does_not_wait_for_a_compaction() -> None:
    world = world_of(100, log_dirs="/a,/b")
    log = fill(world)
    world.pass_ms(2 * ROUND_MS)
    source = log.directory.rpartition("/")[0]
    target = "/b" if source == "/a" else "/a"
    r = m.AlterReplicaLogDirsRequest
    dirs = [r.AlterReplicaLogDir(path=target, topics=[r.AlterReplicaLogDirTopic(name="keys", partitions=[0])])]
    world.ask("AlterReplicaLogDirs", 2, r(dirs=dirs))
    world.pass_ms(5 * ROUND_MS)
    assert log_of(world).directory == f"{target}/keys-0"
    set_broker(world, RATE, "1e9")
    world.pass_ms(2 * ROUND_MS)
    assert is_compacted(world)


def test_a_worker_goes_on_with_the_compactions_that_it_has(tmp_path: Path) -> None:
    """Each in its pieces, with the same result as in one piece."""
    jobs, outcomes = [], []
    for number in range(2):
        log = on_disk(tmp_path / str(number))
        plan = cleaning.plan(log, log.end_offset, 0)
        assert plan is not None
        jobs.append(plan.job(log.end_offset))
        outcomes.append(Compaction(OsFiles(), jobs[-1]).go_on(math.inf).outcome)
    pieces = [[go_on_in_worker(number, job, 1)] for number, job in enumerate(jobs)]
    while pieces[0][-1].outcome is None:
        for number, found in enumerate(pieces):
            found.append(go_on_in_worker(number, None, 1))
    assert [found[-1].outcome for found in pieces] == outcomes
    assert len(pieces[0]) > BATCHES
    with pytest.raises(KeyError):
        go_on_in_worker(0, None, 1)
    go_on_in_worker(0, jobs[0], 1)
    close_in_worker(0)
    with pytest.raises(KeyError):
        go_on_in_worker(0, None, 1)


def on_disk(directory: Path) -> Log:
    directory.mkdir()
    settings = LogSettings(segment_bytes=200, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    log = open_now(HandlePool(OsFiles(), 8), str(directory), settings, 0, clean=True, recovery_point=0)
    for n in range(BATCHES):
        append(log, b"%d" % n * 50, keys=[b"%d" % (n % 2)])
    log.flush_now()
    return log
