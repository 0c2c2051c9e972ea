"""Flushes, rounds and stops of a broker whose disk fails, or whose process has no descriptors."""

from __future__ import annotations

import errno

import pytest
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.failing_files import FailingFiles
from ..support.failing_world import (
    create,
    produce,
    read,
)
from ..support.world import World


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


# flushes


@pytest.mark.parametrize(("operation", "ending"), [("write", ".index"), ("open", ".log"), ("write", ".timeindex")])
def test_a_flush_that_found_no_descriptor_is_done_a_moment_later(
    files: FailingFiles, operation: str, ending: str
) -> None:
    world = World(files, flush="")
    assert create(world, "t") == 0
    assert produce(world, "t", b"a") == 0
    fault = files.fail(operation, ending, errno.EMFILE, times=2)
    code = produce(world, "t", b"b")
    assert fault.hits
    assert code in (0, Errors.KAFKA_STORAGE_ERROR)
    world.pass_ms(3000)
    assert produce(world, "t", b"c") == 0
    assert not world.fatal
    assert read(world, "t") == [b"a", *([b"b"] if code == 0 else []), b"c"]


@pytest.mark.parametrize(
    ("operation", "ending"), [("write", ".index"), ("sync", ".log"), ("sync", "/t-0"), ("open", ".log")]
)
def test_a_disk_that_fails_in_a_flush_answers_what_waits_for_it(
    files: FailingFiles, operation: str, ending: str
) -> None:
    world = World(files)
    assert create(world, "t") == 0
    fault = files.fail(operation, ending)
    assert produce(world, "t", b"a") == Errors.KAFKA_STORAGE_ERROR
    assert produce(world, "t", b"b") == Errors.KAFKA_STORAGE_ERROR
    assert fault.hits == 1, "what failed is not tried again"
    assert world.fatal


def test_a_bug_in_a_flush_is_counted_and_the_flush_done_later(
    files: FailingFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(files)
    assert create(world, "t") == 0
    log = world.broker.partitions.get("t", 0).open_log()
    job = log.flush_job
    monkeypatch.setattr(log, "flush_job", lambda: 1 // 0)
    answer = world.send("Produce", 9, produce_message("t", batch(b"a")))
    world.pass_ms(100)
    assert not answer.done
    assert world.broker.metrics.bugs == 1
    monkeypatch.setattr(log, "flush_job", job)
    world.pass_ms(2000)
    assert answer.reply.responses[0].partition_responses[0].error_code == 0


def test_a_bug_after_a_sync_is_counted_and_the_flush_done_later(
    files: FailingFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(files)
    assert create(world, "t") == 0
    log = world.broker.partitions.get("t", 0).open_log()
    monkeypatch.setattr(log, "flushed", lambda job, now_ms: 1 // 0)
    answer = world.send("Produce", 9, produce_message("t", batch(b"a")))
    world.pass_ms(100)
    assert not answer.done
    assert world.broker.metrics.bugs == 1
    monkeypatch.undo()
    world.pass_ms(2000)
    assert answer.reply.responses[0].partition_responses[0].error_code == 0


def test_flush_ms_holds_no_reply_as_in_kafka(files: FailingFiles) -> None:
    """It is the schedule of a background flush; `flush.messages` is what a reply waits for."""
    world = World(files)
    assert create(world, "t", **{"flush.messages": "9223372036854775807", "flush.ms": "5000"}) == 0
    partition = world.broker.partitions.get("t", 0)
    answer = world.send("Produce", 9, produce_message("t", batch(b"a")))
    assert answer.done
    assert partition.open_log().recovery_point == 0
    world.pass_ms(4900)
    assert partition.open_log().recovery_point == 0
    world.pass_ms(2000)
    assert partition.open_log().recovery_point == 1


def test_acks_wait_for_flush_ms_too_where_that_is_asked_for(files: FailingFiles) -> None:
    world = World(files, ottla_flush_ms_holds_acks="true", log_flush_interval_ms="5000")
    assert create(world, "t", **{"flush.messages": "9223372036854775807"}) == 0
    partition = world.broker.partitions.get("t", 0)
    of_leader = world.send("Produce", 9, produce_message("t", batch(b"a"), acks=1))
    of_all = world.send("Produce", 9, produce_message("t", batch(b"b"), acks=-1))
    assert of_leader.done
    world.pass_ms(4900)
    assert (of_all.done, partition.high_watermark, partition.open_log().recovery_point) == (False, 0, 0)
    world.pass_ms(2000)
    assert of_all.reply.responses[0].partition_responses[0].error_code == 0
    assert (partition.high_watermark, partition.open_log().recovery_point) == (2, 2)
    third = world.send("Produce", 9, produce_message("t", batch(b"c"), acks=-1))
    world.pass_ms(4000)
    assert not third.done
    world.pass_ms(2500)
    assert third.reply.responses[0].partition_responses[0].error_code == 0


def test_what_comes_first_of_flush_messages_and_flush_ms_is_what_acks_wait_for(files: FailingFiles) -> None:
    world = World(files, ottla_flush_ms_holds_acks="true")
    assert create(world, "t", **{"flush.messages": "2", "flush.ms": "60000"}) == 0
    first = world.send("Produce", 9, produce_message("t", batch(b"a"), acks=-1))
    world.pass_ms(9_000)
    assert not first.done
    second = world.send("Produce", 9, produce_message("t", batch(b"b"), acks=-1))
    world.pass_ms(100)
    for one in (first, second):
        assert one.reply.responses[0].partition_responses[0].error_code == 0
    late = world.send("Produce", 9, produce_message("t", batch(b"c"), acks=-1))  # its time-out is below a minute
    world.pass_ms(40_000)
    assert late.reply.responses[0].partition_responses[0].error_code == Errors.REQUEST_TIMED_OUT


def test_coordinators_do_not_wait_for_flush_ms(files: FailingFiles) -> None:
    world = World(files, ottla_flush_ms_holds_acks="true", log_flush_interval_ms="3600000")
    assert create(world, "t") == 0
    settings = world.broker.settings
    assert settings.of_log("t").waits_for_flush_ms
    assert not settings.of_log("__consumer_offsets").waits_for_flush_ms
    assert not World(files, 1, log_flush_interval_ms="1000").broker.settings.of_log("t").waits_for_flush_ms


def test_what_an_attempt_to_open_a_log_has_written_is_made_durable(files: FailingFiles) -> None:
    """The next attempt, or the next process, finds it in the files and cannot know whether it was synced."""
    world = World(files)
    fault = files.fail("open", "/t-0/leader-epoch-checkpoint", errno.EMFILE, times=1)
    assert create(world, "t") == 0
    world.pass_ms(2000)
    assert fault.hits == 1
    assert produce(world, "t", b"a") == 0
    assert "/data/t-0/partition.metadata" in files.synced
    files.synced.clear()
    again = World(files, 1)  # after a crash
    again.pass_ms(100)
    assert again.broker.stop() is None
    assert {"/data/t-0/partition.metadata", "/data/t-0/leader-epoch-checkpoint"} <= set(files.synced)


def test_one_partition_in_which_a_round_fails_does_not_keep_it_from_the_others(
    files: FailingFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(files)
    for name in ("a", "b", "c"):
        assert create(world, name, **{"retention.ms": "1000"}) == 0
        assert produce(world, name, b"x") == 0
    log = world.broker.partitions.get("b", 0).open_log()
    monkeypatch.setattr(log, "remove_segments", lambda gone, now: 1 // 0)
    for round in (1, 2):
        world.pass_ms(300_000)
        assert world.broker.metrics.bugs == round, "and the next round comes"
    assert [world.broker.partitions.get(name, 0).start_offset for name in ("a", "b", "c")] == [1, 0, 1]
