"""The broker under virtual time: the high watermark, deadlines, power failures and failing disks, the same in every
run.
"""

from __future__ import annotations

import errno
import gc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.broker.lab.exposition import _cleaner
from ottla.broker.replies import Reply
from ottla.broker.watermark_policies import parse_policy
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.storage import cleaning_pieces

from ..support.ask import batch, fetch_message, produce_message
from ..support.topic_world import create, produced, read, set_policy
from ..support.wire import request_frame
from ..support.world import World


@pytest.mark.parametrize("policy", ["immediate", "lag=30ms", "lag=30ms±20ms", "held"])
def test_the_same_records_and_replies_under_every_policy(policy: str) -> None:
    world = World()
    assert create(world, "t") == 0
    set_policy(world, "t", policy)
    answers = [world.send("Produce", 9, produce_message("t", batch(b"%d" % n))) for n in range(5)]
    assert all(a.done for a in answers) is (policy == "immediate")
    world.pass_ms(100)
    if policy == "held":
        assert not any(a.done for a in answers)
        set_policy(world, "t", "immediate")
    assert [produced(a.reply).base_offset for a in answers] == list(range(5))
    assert read(world, "t") == [b"0", b"1", b"2", b"3", b"4"]


def test_acks_all_waits_exactly_as_long_as_the_lag() -> None:
    world = World()
    create(world, "t")
    set_policy(world, "t", "lag=40ms")
    answer = world.send("Produce", 9, produce_message("t", batch(b"x")))
    world.pass_ms(39)
    assert not answer.done
    world.pass_ms(1)
    assert answer.done


def test_a_produce_that_times_out_leaves_its_records() -> None:
    world = World()
    create(world, "t")
    set_policy(world, "t", "held")
    answer = world.send("Produce", 9, produce_message("t", batch(b"x"), timeout_ms=500))
    world.pass_ms(499)
    assert not answer.done
    world.pass_ms(1)
    assert produced(answer.reply).error_code == Errors.REQUEST_TIMED_OUT
    set_policy(world, "t", "immediate")
    assert read(world, "t") == [b"x"]


def test_a_fetch_waits_its_time_and_no_longer() -> None:
    world = World()
    create(world, "t")
    answer = world.send("Fetch", 11, fetch_message("t", 0, wait_ms=300))
    world.pass_ms(299)
    assert not answer.done
    world.pass_ms(1)
    assert answer.done
    assert len(answer.reply.responses[0].partitions[0].records) == 0
    partition = world.broker.partitions.get("t", 0)
    assert not partition.waiters, "nothing waits any more"


def test_a_lagging_metadata_log_delays_the_reply_and_times_out() -> None:
    world = World()
    world.broker.policies.set("__cluster_metadata", None, parse_policy("lag=200ms"))
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    slow = world.send("CreateTopics", 5, r(topics=[topic], timeout_ms=10_000))
    world.pass_ms(150)
    assert not slow.done
    assert "t" not in world.broker.image.topics
    world.pass_ms(60)
    assert slow.done
    assert "t" in world.broker.image.topics


def test_the_metadata_log_cannot_be_held() -> None:
    with pytest.raises(ValueError, match="not be held"):
        World().broker.policies.set("__cluster_metadata", None, parse_policy("held"))


def test_a_failing_disk_ends_the_broker_as_it_ends_kafka() -> None:
    world = World()
    create(world, "t")
    world.files.fail_writes = OSError(errno.ENOSPC, "No space left on device")
    answer = produced(world.ask("Produce", 9, produce_message("t", batch(b"x"))))
    assert answer.error_code == Errors.KAFKA_STORAGE_ERROR
    assert world.fatal
    assert "No space left" in world.fatal[0]


def test_a_failed_fsync_is_not_tried_again() -> None:
    world = World()
    create(world, "t", flush_messages="1")
    world.files.fail_syncs = OSError(errno.EIO, "Input/output error")
    answer = produced(world.ask("Produce", 9, produce_message("t", batch(b"x"))))
    assert answer.error_code == Errors.KAFKA_STORAGE_ERROR
    assert world.fatal


def test_retention_and_compaction_run_by_themselves() -> None:
    world = World(log_retention_check_interval_ms="1000", log_cleaner_backoff_ms="1000")
    create(world, "short", retention_ms="5000", internal_segment_bytes="200")
    create(world, "keys", cleanup_policy="compact", internal_segment_bytes="200", min_cleanable_dirty_ratio="0.1")
    for n in range(20):
        world.ask("Produce", 9, produce_message("short", batch(b"x" * 50, now=world.schedule.now_ms())))
        data = records.encode([records.Record(b"k", b"%d" % n * 20, world.schedule.now_ms())])
        world.ask("Produce", 9, produce_message("keys", bytes(data)))
    world.pass_ms(20_000)
    assert world.broker.partitions.get("short", 0).start_offset > 15
    log = world.broker.partitions.get("keys", 0).log
    assert log is not None
    assert log.first_dirty_offset > 15
    assert log.segments[0].size < 300


def test_the_cleaner_tells_how_it_fares_and_leaves_alone_what_it_cannot_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of Kafka's metrics; a topic that is created again is tried again."""
    world = World(log_cleaner_backoff_ms="1000")

    def told() -> dict[str, float]:
        families = _cleaner(SimpleNamespace(broker=world.broker))
        return {
            sample.name.partition("LogCleaner")[2]: sample.value for family in families for sample in family.samples
        }

    def fill(topic: str) -> None:
        create(
            world,
            topic,
            cleanup_policy="compact",
            internal_segment_bytes="200",
            min_cleanable_dirty_ratio="0.1",
            max_compaction_lag_ms="3000",
        )
        for n in range(20):
            data = records.encode([records.Record(b"k", b"%d" % n * 20, world.schedule.now_ms() - 10_000)])
            assert produced(world.ask("Produce", 9, produce_message(topic, bytes(data)))).error_code == 0

    fill("keys")
    dirty = told()
    assert (dirty["_cleaner_recopy_percent"], dirty["Manager_uncleanable_partitions_count"]) == (0, 0)
    world.pass_ms(2500)
    cleaned = told()
    assert 0 < cleaned["_cleaner_recopy_percent"] < 50
    assert cleaned["_max_compaction_delay_secs"] >= 7
    assert cleaned["Manager_max_dirty_percent"] == 0, "the second round found nothing"
    assert 400 < cleaned["Manager_time_since_last_run_ms"] < 600

    def fails(*_: object) -> Iterator[int]:
        yield 1
        raise ValueError("of a test")

    monkeypatch.setattr(cleaning_pieces, "steps", fails)
    fill("odd")
    world.pass_ms(2500)
    failed = told()
    assert failed["Manager_uncleanable_partitions_count"] == 1
    assert failed["Manager_uncleanable_bytes"] > 1000
    monkeypatch.undo()
    world.pass_ms(5000)
    assert told()["Manager_uncleanable_partitions_count"] == 1, "it is not tried again"
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["odd"], timeout_ms=1000))
    fill("odd")
    world.pass_ms(2500)
    assert told()["Manager_uncleanable_partitions_count"] == 0
    log = world.broker.partitions.get("odd", 0).log
    assert log is not None
    assert log.first_dirty_offset > 15


def test_a_snapshot_of_the_metadata_replaces_the_log_before_it() -> None:
    world = World()
    for n in range(20):
        create(world, f"t{n}", 3, retention_ms="1000")
    world.broker.metadata.snapshots.take_now()
    world.broker.stop()
    again = World(world.files)
    assert sorted(again.broker.image.topics) == sorted(f"t{n}" for n in range(20))
    assert again.broker.metadata.snapshots.offset > 60
    assert again.broker.image.config_of(2, "t7") == {"retention.ms": "1000"}
    assert create(again, "one-more") == 0


def cycles_left(serve: Callable[[], None]) -> int:
    """How many objects are left after a request is served 20 times: the least of three counts, because threads of the
    test runner may leave some, too.
    """
    found = []
    for _ in range(3):
        for _ in range(20):
            serve()
        found.append(gc.collect())
    return min(found)


def test_what_a_request_made_goes_with_its_reply() -> None:
    """Without waiting for the garbage collector, whose rounds would be the slow replies: nothing on the ways that are
    gone often is a cycle.
    """
    world = World()
    create(world, "t")
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    c, h = m.OffsetCommitRequest, m.ConsumerGroupHeartbeatRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = c(
        group_id="g", generation_id_or_member_epoch=-1, topics=[c.OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    join = h(
        group_id="of consumers",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    joined = world.ask("ConsumerGroupHeartbeat", 1, join)
    beat = h(group_id="of consumers", member_id="m", member_epoch=joined.member_epoch)
    requests = {
        "Produce": (9, produce_message("t", batch(b"x"))),
        "Fetch": (11, fetch_message("t", 0)),
        "Fetch that waits": (11, fetch_message("t", 21, wait_ms=50)),  # of the Produces above
        "Fetch out of range": (11, fetch_message("t", 1_000)),
        "OffsetCommit": (8, commit),
        "OffsetFetch": (7, m.OffsetFetchRequest(group_id="g", topics=None)),
        "ConsumerGroupHeartbeat": (1, beat),
        "Heartbeat of a member that is unknown": (
            4,
            m.HeartbeatRequest(group_id="g", member_id="nobody", generation_id=1),
        ),
    }

    def release(reply: Reply | None, end: bool) -> None:
        assert reply is not None
        for _, part in reply.parts:
            part.release()

    gc.collect()
    gc.freeze()  # what was there before need not be looked at each time
    try:
        for what, (version, message) in requests.items():
            name = what.partition(" ")[0]
            frame = request_frame(name, version, message)[4:]

            def serve(frame: bytes = frame) -> None:
                world.dispatcher.handle(world.peer, memoryview(bytearray(frame)), release)
                world.broker.turn.settle()
                world.pass_ms(100)

            serve()
            gc.collect()
            assert cycles_left(serve) == 0, what
    finally:
        gc.unfreeze()


def test_fetch_sessions_give_way_to_others_when_there_are_too_many() -> None:
    """One that was not used for two minutes, or a smaller one that has been in use for longer than that (KIP-227)."""
    world = World(max_incremental_fetch_session_cache_slots="2")
    create(world, "t", 3)
    r = m.FetchRequest

    def fetch(count: int, session_id: int = 0, epoch: int = 0) -> Any:
        parts = [r.FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=100) for n in range(count)]
        topics = [r.FetchTopic(topic="t", partitions=parts)] if parts else []
        return world.ask("Fetch", 11, r(session_id=session_id, session_epoch=epoch, topics=topics, max_bytes=100))

    one, two = fetch(1).session_id, fetch(2).session_id
    assert 0 not in (one, two)
    assert fetch(3).session_id == 0, "both are new"
    world.pass_ms(110_000)
    assert fetch(0, two, 1).error_code == 0
    world.pass_ms(10_001)
    three = fetch(1).session_id
    assert three != 0, "the first one was not used for two minutes"
    assert fetch(0, one, 1).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    world.pass_ms(110_000)
    for session, epoch in ((two, 2), (three, 1)):
        assert fetch(0, session, epoch).error_code == 0
    assert fetch(2).session_id == 0, "one is as large, the other new"
    assert fetch(3).session_id != 0
    assert fetch(0, two, 3).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(0, three, 2).error_code == 0


def test_credentials_are_kept_as_kafka_keeps_them() -> None:
    """The keys are those that Kafka 4.4.0 wrote; the broker has them after a restart."""
    world = World()
    a, d = m.AlterUserScramCredentialsRequest, m.DescribeUserScramCredentialsRequest
    alice = a.ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"pw")
    assert world.ask("AlterUserScramCredentials", 0, a(upsertions=[alice])).results[0].error_code == 0
    record = world.broker.image.credentials["alice", 1]
    assert record.stored_key.hex() == "5678ee9d1077eaf019eebd2995dfcf6abcb00e7dbfcc7999826a101285ca578d"
    assert record.server_key.hex() == "ff96b365feaf2a3e2ce059cfc7988af8c5c00e9146121c75f9f8dad809a5984f"
    world.broker.stop()
    (told,) = World(world.files).ask("DescribeUserScramCredentials", 0, d(users=None)).results
    assert (told.user, [(info.mechanism, info.iterations) for info in told.credential_infos]) == ("alice", [(1, 4096)])


def _commit(offset: int) -> tuple[str, int, Any]:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return "OffsetCommit", 8, r(group_id="g", topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])])


def _codes(answers: list[Any]) -> list[int]:
    return [part.error_code for answer in answers for topic in answer.reply.topics for part in topic.partitions]


def test_what_requests_of_one_turn_write_is_one_batch_or_none_of_it() -> None:
    world = World(offsets_topic_num_partitions="1")
    create(world, "t")
    while world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"])).coordinators[0].error_code:
        world.pass_ms(10)
    log = world.broker.partitions.get("__consumer_offsets", 0).open_log()
    before = log.end_offset
    assert _codes(world.together(*map(_commit, (5, 6, 7)))) == [0, 0, 0]
    assert [batch.header.record_count for _, batch in log.batches_from(before) if batch.header is not None] == [3]
    world.files.fail_writes = OSError(errno.ENOSPC, "No space left on device")
    failed = world.together(*map(_commit, (8, 9)))
    assert _codes(failed) == [Errors.NOT_COORDINATOR] * 2


@pytest.mark.parametrize("length", [213, 214, 249])
def test_a_topic_with_the_longest_name_is_deleted(length: int) -> None:
    """Kafka cuts the topic in the name of the directory on its way out: `<topic>-0.<32 digits>-delete` has 255
    characters at most.
    """
    world = World()
    name = "n" * length
    assert create(world, name) == 0
    answer = world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000))
    assert answer.responses[0].error_code == 0
    assert not world.fatal
    (left,) = [n for n in world.files.names("/data") if n.startswith("nnn")]
    assert left.startswith("n" * 213 + "-0.")
    assert left.endswith("-delete")
    assert len(left) == 255


def test_an_error_that_is_not_the_disks_fails_one_append() -> None:
    world = World()
    create(world, "t")
    world.files.fail_writes = OSError(errno.EMFILE, "Too many open files")
    refused = world.ask("Produce", 9, produce_message("t", batch(b"x")))
    assert produced(refused).error_code == Errors.KAFKA_STORAGE_ERROR
    world.files.fail_writes = None
    assert produced(world.ask("Produce", 9, produce_message("t", batch(b"y")))).base_offset == 0
    assert read(world, "t") == [b"y"]
    assert not world.fatal
    assert world.broker.metrics.io_errors == 1


def test_a_directory_that_is_gone_is_a_failed_one() -> None:
    world = World()
    create(world, "t")
    world.files.remove_tree("/data")
    world.broker.replicas.save_checkpoints()
    world.files.fail_writes = OSError(errno.ENOENT, "No such file or directory")
    refused = world.ask("Produce", 9, produce_message("t", batch(b"x")))
    assert produced(refused).error_code == Errors.KAFKA_STORAGE_ERROR
    assert world.fatal


def test_a_partition_that_found_no_descriptor_is_opened_a_moment_later() -> None:
    world = World()
    create_one = world.files.open

    def out_of_descriptors(path: str, create: bool = False) -> Any:
        if path.endswith(".log") and "/t-0/" in path:
            raise OSError(errno.EMFILE, "Too many open files", path)
        return create_one(path, create)

    world.files.open = out_of_descriptors  # type: ignore[method-assign]
    create(world, "t")
    assert (
        produced(world.ask("Produce", 9, produce_message("t", batch(b"x")))).error_code == Errors.NOT_LEADER_OR_FOLLOWER
    )
    world.files.open = create_one  # type: ignore[method-assign]
    world.pass_ms(1000)
    assert produced(world.ask("Produce", 9, produce_message("t", batch(b"y")))).base_offset == 0
    assert not world.fatal
