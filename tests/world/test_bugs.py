"""An exception that nothing expects: it is counted and logged, and only its cause notices."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from ottla.broker import bugs
from ottla.broker.config.config import ConfigError
from ottla.broker.later import Later, after, drive
from ottla.broker.replica.directories import DirectoryError
from ottla.broker.replica.partition import Partition
from ottla.broker.turn import RETRY_MS
from ottla.coordinator.share.acknowledge_types import ACCEPT
from ottla.coordinator.share.partition import SharePartition
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.protocol.records import Record
from ottla.storage.log import Log

from ..support.ask import batch, fetch_message, produce_message
from ..support.group_world import world as group_world
from ..support.share_world import Consumer, produce
from ..support.share_world import world as share_world
from ..support.topic_world import create, produced, read
from ..support.transaction_world import Writer, state
from ..support.transaction_world import world as transaction_world
from ..support.world import World


def commit(world: World, offset: int) -> Any:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = r(
        group_id="g", generation_id_or_member_epoch=-1, topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    return world.ask("OffsetCommit", 8, request)


def committed(world: World) -> int:
    r = m.OffsetFetchRequest
    wanted = r.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    reply = world.ask("OffsetFetch", 7, r(group_id="g", topics=[wanted]))
    return int(reply.topics[0].partitions[0].committed_offset)


def fails(*_: Any) -> Any:
    raise RuntimeError("of a test")


def test_the_log_has_the_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    def breaks() -> None:
        raise RuntimeError("of a test")

    before = bugs.count()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert not bugs.guarded("something", breaks)
    assert bugs.count() == before + 3
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False]
    assert "something failed: RuntimeError: of a test" in caplog.records[-1].message


def test_one_who_waits_takes_no_other_with_it() -> None:
    later: Later[int] = Later()
    told: list[int | None] = []
    later.when_done(fails)
    later.when_done(fails)
    later.when_done(lambda done: told.append(done.result))
    later.finish(7)
    later.when_done(fails)
    later.when_done(lambda done: told.append(done.result))
    assert told == [7, 7]


def test_what_follows_from_a_wait_fails_with_its_exception() -> None:
    later: Later[int] = Later()
    outcome = after(later, fails)
    later.finish(7)
    assert isinstance(outcome.error, RuntimeError)


def test_what_ends_early_ends_whatever_its_end_raises() -> None:
    later: Later[int] = Later()
    later.on_cancel = fails

    async def steps() -> None:
        try:
            await later
        finally:
            fails()

    driven = drive(steps())
    driven.cancel()
    assert driven.done
    assert later.done


def test_a_partition_whose_high_watermark_cannot_be_moved_leaves_others_alone() -> None:
    world = World()
    create(world, "a")
    create(world, "b")
    world.broker.partitions.get("a", 0).on_committed = fails
    together = world.together(*(("Produce", 9, produce_message(name, batch(b"x"))) for name in "ab"))
    assert [produced(one.reply).error_code for one in together] == [0, 0]
    assert world.broker.metrics.bugs == 1


def test_a_high_watermark_that_could_not_be_moved_is_moved_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    create(world, "t")
    turn = world.broker.turn
    move = turn.move
    failed: list[Partition] = []

    def fails_once(partition: Partition) -> None:
        if not failed:
            failed.append(partition)
            raise RuntimeError("broken on purpose")
        move(partition)

    monkeypatch.setattr(turn, "move", fails_once)
    waiting = world.send("Produce", 9, produce_message("t", batch(b"x")))
    assert failed
    assert not waiting.done
    world.pass_ms(RETRY_MS)
    assert produced(waiting.reply).error_code == 0


def test_a_fetch_that_fails_when_it_goes_on_is_answered_and_others_are_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    create(world, "t")
    waiting = [world.send("Fetch", 11, fetch_message("t", 0, wait_ms=5000)) for _ in range(2)]
    first = next(iter(world.broker.partitions.get("t", 0).waiters))
    monkeypatch.setattr(first, "resolve", fails)
    world.ask("Produce", 9, produce_message("t", batch(b"x")))
    assert [one.done for one in waiting] == [True, True]
    assert waiting[0].reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    assert len(waiting[1].reply.responses[0].partitions[0].records)


def test_a_flush_that_fails_leaves_other_coordinators_alone() -> None:
    class Broken:
        flush = fails

    world = World()
    world.broker.turn.wrote(Broken())
    assert create(world, "t") == 0
    assert world.broker.metrics.bugs == 1


def test_an_event_that_fails_carries_out_what_it_caused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    create(world, "t")
    partition = world.broker.partitions.get("t", 0)

    def event() -> None:
        partition.follower.replicated = 0
        world.broker.turn.wrote(partition)  # type: ignore[arg-type]
        fails()

    flushed: list[bool] = []
    monkeypatch.setattr(partition, "flush", lambda: flushed.append(True), raising=False)
    world.broker.turn.event(event)
    assert flushed == [True]


def test_rounds_go_on_after_one_that_failed() -> None:
    world = World()
    rounds: list[int] = []

    def round() -> None:
        rounds.append(len(rounds))
        fails()

    world.broker.turn.every(lambda: 100, round)
    world.pass_ms(1000)
    assert len(rounds) == 10
    world.broker.turn.stopped = True
    world.pass_ms(1000)
    assert len(rounds) == 10


@pytest.mark.parametrize("where", ["handle", "failed", "reply"])
def test_a_request_whose_handler_or_reply_fails_is_answered_or_ends_its_connection(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    create(world, "t")
    api = world.dispatcher.apis[20]  # DeleteTopics, which makes replies to requests that fail as a whole
    assert api.handle is not None
    if where == "reply":
        monkeypatch.setattr("ottla.protocol.headers.start_response", fails)
    else:
        monkeypatch.setattr(api, "_handle", fails)
    if where == "failed":
        monkeypatch.setattr(api, "_failed", fails)
    answer = world.send("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    world.pass_ms(10)
    assert answer.done
    if where == "handle":
        assert answer.reply.responses[0].error_code == Errors.UNKNOWN_SERVER_ERROR
    else:
        assert answer.closed
    monkeypatch.undo()
    assert create(world, "u") == 0


def test_what_ends_with_a_connection_ends_whatever_one_of_it_raises() -> None:
    world = World()
    ended: list[bool] = []
    world.peer.on_lost += [fails, lambda: ended.append(True)]
    world.broker.turn.event(world.peer.lost)
    assert ended == [True]


# what is opened or loaded again


def halfway(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Has the next append to a partition fail when its bytes are in the file."""
    log = world.broker.partitions.get(name, 0).open_log()
    note = log._note_producer

    def fail(*arguments: Any) -> None:
        monkeypatch.setattr(log, "_note_producer", note)
        raise RuntimeError("of a test")

    monkeypatch.setattr(log, "_note_producer", fail)
    return log


def test_a_log_whose_append_failed_halfway_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    create(world, "t")
    for name in ("t", "u"):
        create(world, name)
    first = world.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1))
    producer = {"producer_id": first.producer_id, "producer_epoch": first.producer_epoch}

    def produce(sequence: int) -> int:
        answer = world.ask(
            "Produce", 9, produce_message("t", batch(b"%d" % sequence, base_sequence=sequence, **producer))
        )
        return int(produced(answer).error_code)

    assert produce(0) == 0
    log = halfway(world, "t", monkeypatch)
    assert produce(1) == Errors.UNKNOWN_SERVER_ERROR
    assert produced(world.ask("Produce", 9, produce_message("u", batch(b"x")))).error_code == 0
    world.pass_ms(10)
    partition = world.broker.partitions.get("t", 0)
    assert partition.log not in (None, log)
    assert produce(1) == 0, "a duplicate of what is in the log"
    assert produce(2) == 0
    assert read(world, "t") == [b"0", b"1", b"2"]
    assert partition.high_watermark == 3
    assert world.broker.metrics.bugs == 1


def test_a_shard_beside_which_something_wrote_is_loaded_again_once() -> None:
    """Many requests come meanwhile: each is answered, and the shard is made again once."""
    world = group_world(1, offsets_topic_num_partitions="1")
    host = world.broker.groups.hosts[0]
    made: list[Any] = []
    make = world.broker.groups.make_shard
    world.broker.groups.make_shard = lambda *of: (made.append(of), make(*of))[1]  # type: ignore[method-assign, func-returns-value]
    data = records.encode([Record(b"\0\x63", b"x")])
    world.broker.appender.store(host.partition, data, list(records.batches(data)), 1)
    codes = [commit(world, 5).topics[0].partitions[0].error_code for _ in range(20)]
    assert set(codes) == {Errors.NOT_COORDINATOR}
    world.pass_ms(1000)
    assert len(made) == 1
    assert commit(world, 6).topics[0].partitions[0].error_code == 0
    assert committed(world) == 6


def test_a_codec_that_cannot_be_had_answers_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = group_world(1, offsets_topic_num_partitions="1")
    with monkeypatch.context() as patch:
        patch.setattr("ottla.coordinator.runtime.encode_batch", fails)
        assert commit(world, 5).topics[0].partitions[0].error_code == Errors.UNKNOWN_SERVER_ERROR
    assert committed(world) == -1
    assert commit(world, 6).topics[0].partitions[0].error_code == 0
    assert committed(world) == 6


def test_a_shard_that_cannot_be_loaded_is_tried_again_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = group_world(1, offsets_topic_num_partitions="1")
    assert commit(world, 5).topics[0].partitions[0].error_code == 0
    attempts: list[int] = []

    def on_loaded(*_: Any) -> Any:
        attempts.append(world.schedule.monotonic_ms())
        raise RuntimeError("of a test")

    with monkeypatch.context() as patch:
        patch.setattr(type(world.broker.groups.hosts[0].shard), "on_loaded", on_loaded)
        world.broker.turn.event(lambda: world.broker.groups.reload(world.broker.groups.hosts[0].partition))
        assert commit(world, 6).topics[0].partitions[0].error_code == Errors.NOT_COORDINATOR
        world.pass_ms(200_000)
    gaps = [after - before for before, after in zip(attempts, attempts[1:], strict=False)]
    assert gaps[:4] == [100, 200, 400, 800]
    assert max(gaps) == 30_000
    world.pass_ms(31_000)
    assert committed(world) == 5


def test_a_marker_that_fails_with_anything_is_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    w = transaction_world()
    one = Writer(w)
    assert one.init() == 0
    assert one.write(b"x") == 0
    with monkeypatch.context() as patch:
        patch.setattr("ottla.broker.transaction.markers.check_replicas", fails)
        assert one.end() == 0
        w.pass_ms(1000)
        assert state(w)[0] == "PrepareCommit"
    w.pass_ms(1000)
    assert state(w)[0] == "CompleteCommit"
    assert one.write(b"y") == 0


def test_the_end_of_a_transaction_whose_markers_cannot_be_made_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    w = transaction_world()
    one = Writer(w)
    one.init()
    one.write(b"x")
    with monkeypatch.context() as patch:
        patch.setattr("ottla.broker.transaction.markers.TransactionEnd.batch", fails)
        assert one.end() == 0
    w.pass_ms(1000)
    assert state(w)[0] == "CompleteCommit"


@pytest.mark.parametrize("where", ["acknowledge", "complete", "acquire", "expire"])
def test_a_share_partition_whose_engine_fails_is_read_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    w = share_world(group={"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "15000"})
    one = Consumer(w)
    one.got()
    produce(w, b"0", b"1", b"2")
    if where != "acquire":
        assert one.got() == [(0, 2, 1)]
    with monkeypatch.context() as patch:
        patch.setattr(SharePartition, where, fails)
        if where == "acquire":
            reply = one.fetch()
            assert reply.error_code == Errors.UNKNOWN_SERVER_ERROR
        elif where == "expire":
            w.pass_ms(20_000)
        else:
            assert one.acknowledge((0, 2, ACCEPT)) == Errors.UNKNOWN_SERVER_ERROR
    w.pass_ms(1000)
    found = [one.got() for _ in range(2)]
    # what was written before the failure counts; all else is delivered again
    assert [gaps for gaps in found if gaps] == (
        [] if where == "complete" else [[(0, 2, found[0][0][2] if found[0] else found[1][0][2])]]
    )
    assert w.broker.metrics.bugs == 1


def test_an_assignor_that_cannot_be_loaded_is_known_at_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raises_at_import.py").write_text("raise KeyError('of a test')")
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("no_such:thing", "json:no_such", "json:__doc__", "raises_at_import:x", "exits_at_import:x", "unknown"):
        with pytest.raises(ConfigError, match=r"group\.consumer\.assignors"):
            World(None, 0, group_consumer_assignors=f"{name},uniform")


def test_a_coordinator_that_failed_to_follow_a_commit_follows_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = group_world(1, offsets_topic_num_partitions="1")
    partition = world.broker.groups.hosts[0].partition
    advance, failures = partition.on_committed, [1, 2]

    def on_committed(high_watermark: int) -> None:
        if failures:
            failures.pop()
            fails()
        assert advance is not None
        advance(high_watermark)

    partition.on_committed = on_committed
    assert commit(world, 5).topics[0].partitions[0].error_code == 0
    assert world.broker.metrics.bugs == 2
    assert committed(world) == 5


def test_a_partition_that_is_made_again_writes_to_its_own_files() -> None:
    """Its first directory was set aside, with a file that was open."""
    world = World()
    world.files.make_directory("/data/t-0")
    log_of_another = world.broker.log_directories.pool.open("/data/t-0/00000000000000000000.log", create=True)
    assert create(world, "t", flush_messages="1") == 0
    assert produced(world.ask("Produce", 9, produce_message("t", batch(b"x")))).error_code == 0
    assert log_of_another.size() == 0
    again = World(world.lose_power())
    again.pass_ms(10)
    assert read(again, "t") == [b"x"]


def test_a_metadata_log_that_cannot_be_written_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.runtime.encode_batch", fails)
    with pytest.raises(DirectoryError, match="cannot be written"):
        World()
