"""Retention takes segments out of a log some at a time, and their files are removed in a thread."""

from __future__ import annotations

import errno
from collections import Counter
from typing import Any

import pytest
from ottla.broker.replica import ageing
from ottla.broker.steps import STEP_ELEMENTS
from ottla.protocol import messages as m

from ..support.ask import batch, produce_message
from ..support.failing_files import FailingFiles
from ..support.memory_files import MemFiles
from ..support.topic_world import create, produced
from ..support.world import World

SEGMENTS = STEP_ELEMENTS + 50
SETTINGS = {"log_segment_delete_delay_ms": "1000", "log_initial_task_delay_ms": "1000"}


def aged(world: World) -> Any:
    """A log of many segments that retention is to remove."""
    assert create(world, "t") == 0
    log = world.broker.partitions.get("t", 0).open_log()
    for _ in range(SEGMENTS):
        answer = world.send("Produce", 9, produce_message("t", batch(b"x")))
        assert produced(answer.reply).error_code == 0
        log.roll(world.schedule.now_ms())
    world.pass_ms(10)
    log.advance_start(log.end_offset)
    return log


def test_segments_leave_a_log_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(**SETTINGS)
    log = aged(world)
    monkeypatch.setattr(world.schedule, "soon", lambda call: world.schedule.later(1, call))
    removed: Counter[int] = Counter()
    remove = log.remove_segments

    def noted(gone: Any, now_ms: int) -> None:
        removed[world.schedule.monotonic_ms()] += len(gone)
        remove(gone, now_ms)

    monkeypatch.setattr(log, "remove_segments", noted)
    world.broker.replicas.apply_retention()
    world.pass_ms(50)
    assert sum(removed.values()) == SEGMENTS
    assert max(removed.values()) <= STEP_ELEMENTS + ageing.SEGMENTS_STEP
    assert len(log.segments) == 1


class ThreadedFiles(MemFiles):
    """Counts the files that are removed on the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.is_thread = False
        self.on_the_loop: list[str] = []

    def remove(self, path: str) -> None:
        if not self.is_thread and path.endswith(".deleted"):
            self.on_the_loop.append(path)
        super().remove(path)


def test_files_are_removed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ThreadedFiles()
    world = World(files, **SETTINGS)
    log = aged(world)
    world.broker.replicas.apply_retention()
    run = world.schedule.in_thread

    def in_thread(work: Any, done: Any) -> None:
        def threaded() -> Any:
            files.is_thread = True
            try:
                return work()
            finally:
                files.is_thread = False

        run(threaded, done)

    monkeypatch.setattr(world.schedule, "in_thread", in_thread)
    world.pass_ms(30_000)
    assert not log.removed
    assert files.on_the_loop == []
    assert not [name for name in files.names("/data/t-0") if name.endswith(".deleted")]


def test_a_file_that_cannot_be_removed_is_tried_again() -> None:
    files = FailingFiles()
    world = World(files, **SETTINGS)
    log = aged(world)
    fault = files.fail("remove", ".log.deleted", errno.EMFILE, times=1)
    world.broker.replicas.apply_retention()
    world.pass_ms(15_000)
    assert fault.hits == 1
    world.pass_ms(15_000)
    assert not log.removed
    assert not [name for name in files.names("/data/t-0") if name.endswith(".deleted")]


@pytest.mark.parametrize(("delay_ms", "is_left"), [(5_000, False), (1_000_000, True)])
def test_directories_of_an_earlier_process_wait_as_long_as_was_set_while_it_ran(delay_ms: int, is_left: bool) -> None:
    """`log.segment.delete.delay.ms` is 60 s, and is changed without a restart."""
    world = World(log_initial_task_delay_ms="1000")
    assert create(world, "t") == 0
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name="log.segment.delete.delay.ms", value=str(delay_ms))
    resource = r.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    assert world.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0].error_code == 0
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    world.broker.stop()
    again = World(world.files, 0, world.schedule.now_ms(), log_initial_task_delay_ms="1000")

    def left() -> list[str]:
        return [name for name in again.files.names("/data") if name.endswith("-delete")]

    assert len(left()) == 1
    again.pass_ms(59_000)
    assert bool(left()) is is_left
