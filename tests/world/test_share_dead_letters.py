"""Dead-letter queues of share groups (KIP-1191): what goes there, where it goes, and what keeps it from going."""

from __future__ import annotations

import errno

import pytest
from ottla.broker.share.dead_letters import DeadLetterRefused
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE
from ottla.coordinator.share.partition import Acknowledgement
from ottla.coordinator.share.state import PartitionKey
from ottla.protocol.errors import Errors

from ..support.dead_letters import AUTO, QUEUE, letters, ready
from ..support.failing_files import FailingFiles
from ..support.share_world import (
    Consumer,
    configure,
    create,
    engine,
    hold,
    records_of,
    state,
    topic_id,
    written,
)
from ..support.world import World

FLAG = {"errors.deadletterqueue.group.enable": "true"}


def test_a_rejected_record_goes_to_the_queue() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    assert one.acknowledge((0, 0, ACCEPT), (1, 1, REJECT)) == 0
    w.pass_ms(10)
    assert letters(w) == [
        {
            "topic": "t",
            "partition": "0",
            "offset": "1",
            "group": "q",
            "delivery.count": "1",
            "message": "Offset rejected by client.",
        }
    ]
    (record,) = records_of(w.broker.partitions.get(QUEUE, 0))
    assert (record.key, record.value) == (None, None), "the record itself is copied only where the group says so"
    assert engine(w).window.start_offset == 2


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager"])
def test_a_manager_that_writes_nothing(name: str) -> None:
    """`group.share.dlq.manager.class.name`: the record is archived, and no queue has it."""
    w, one = ready(group_share_dlq_manager_class_name=name)
    create(w, QUEUE, 1, FLAG)
    assert one.acknowledge((0, 0, ACCEPT), (1, 1, REJECT)) == 0
    w.pass_ms(10)
    assert letters(w) == []
    assert engine(w).window.start_offset == 2


def test_a_record_that_was_delivered_too_often_goes_to_the_queue() -> None:
    w, one = ready(1, group={"share.delivery.count.limit": "2"})
    create(w, QUEUE, 1, FLAG)
    assert one.acknowledge((0, 0, RELEASE)) == 0
    assert one.got() == [(0, 0, 2)]
    w.pass_ms(30_000)
    assert [(one["delivery.count"], one["message"]) for one in letters(w)] == [
        ("2", "Offset delivery count exceeded the threshold.")
    ]
    assert engine(w).window.start_offset == 1


def test_records_are_copied_where_the_group_wants_that() -> None:
    w, one = ready(group={"errors.deadletterqueue.copy.record.enable": "true"})
    create(w, QUEUE, 1, FLAG)
    one.acknowledge((0, 1, REJECT))
    w.pass_ms(10)
    assert [(found.key, found.value) for found in records_of(w.broker.partitions.get(QUEUE, 0))] == [
        (b"k0", b"0"),
        (b"k1", b"1"),
    ]


@pytest.mark.parametrize("error_number", [errno.EMFILE, errno.EIO])
def test_records_that_cannot_be_read_go_to_the_queue_without_their_values(error_number: int) -> None:
    """And those of other partitions, which go in the same batch, with theirs."""
    files, copies = FailingFiles(), {"errors.deadletterqueue.copy.record.enable": "true"}
    w, _ = ready(1, 2, copies, files=files, log_dirs="/data,/second")
    create(w, QUEUE, 1, FLAG)
    lost = next(p for p in w.broker.partitions.of_topic("t") if p.open_log().directory.startswith("/second/"))
    files.fail("read", f"/t-{lost.index}/{0:020}.log", error_number)
    both = [w.broker.share_partitions.partitions[PartitionKey("q", topic_id(w), index)] for index in (0, 1)]
    w.broker.turn.event(lambda: [p.acknowledge("m", [Acknowledgement(0, 0, [REJECT])]) for p in both])
    w.pass_ms(10)
    values = [record.value for record in records_of(w.broker.partitions.get(QUEUE, 0))]
    assert values == [None if index == lost.index else b"0" for index in (0, 1)]
    assert w.broker.metrics.bugs == 0
    assert [one.failed for one in w.broker.log_directories.all] == [False, error_number == errno.EIO]


def test_a_record_that_is_gone_from_the_log_cannot_be_copied() -> None:
    w, one = ready(group={"errors.deadletterqueue.copy.record.enable": "true"})
    create(w, QUEUE, 1, FLAG)
    w.broker.partitions.get("t", 0).open_log().advance_start(3)
    one.acknowledge((0, 1, REJECT))
    w.pass_ms(10)
    assert [(found.key, found.value) for found in records_of(w.broker.partitions.get(QUEUE, 0))] == [
        (None, None),
        (None, None),
    ]


def test_a_queue_has_the_records_of_a_partition_in_one_of_its_own() -> None:
    """`partition % partitions of the queue`."""
    w, one = ready(partitions=3)
    create(w, QUEUE, 2, FLAG)
    for index in range(3):
        one.partitions = [index, *(p for p in range(3) if p != index)]
        assert one.acknowledge((0, 0, REJECT)) == 0
    w.pass_ms(10)
    assert [[found["partition"] for found in letters(w, partition=p)] for p in (0, 1)] == [["0", "2"], ["1"]]


def test_what_one_event_sends_is_one_batch() -> None:
    w, one = ready(5)
    create(w, QUEUE, 1, FLAG)
    one.acknowledge((0, 0, REJECT), (2, 2, REJECT), (4, 4, REJECT))
    w.pass_ms(10)
    log = w.broker.partitions.get(QUEUE, 0).open_log()
    assert [(info.base_offset, info.last_offset) for _, info in log.batches_from(0)] == [(0, 2)]


def test_copies_that_are_too_large_for_one_batch_go_in_several() -> None:
    w, one = ready(20, group={"errors.deadletterqueue.copy.record.enable": "true"})
    create(w, QUEUE, 1, FLAG | {"max.message.bytes": "1000"})
    one.acknowledge((0, 19, REJECT))
    w.pass_ms(10)
    log = w.broker.partitions.get(QUEUE, 0).open_log()
    assert len(list(log.batches_from(0))) > 1
    assert [found["offset"] for found in letters(w)] == [str(offset) for offset in range(20)]
    assert engine(w).window.start_offset == 20


# what keeps a record from its queue: it is archived all the same


def check_lost(w: World, one: Consumer) -> None:
    assert one.acknowledge((0, 0, REJECT)) == 0
    w.pass_ms(100)
    assert engine(w).window.start_offset == 1
    assert state(w).start_offset <= 1


def test_a_topic_without_the_flag_is_not_written() -> None:
    w, one = ready()
    create(w, QUEUE)
    check_lost(w, one)
    assert letters(w) == []


def test_a_topic_that_is_not_there_is_not_made_by_itself() -> None:
    w, one = ready()
    check_lost(w, one)
    assert w.broker.topic(QUEUE) is None


def test_a_topic_is_made_where_the_broker_may() -> None:
    w, one = ready(num_partitions="3", **AUTO)
    check_lost(w, one)
    assert [found["offset"] for found in letters(w)] == ["0"]
    configs = w.broker.settings.of_topic(QUEUE)
    assert (configs["errors.deadletterqueue.group.enable"], configs["message.timestamp.type"]) == (True, "CreateTime")
    found = w.broker.topic(QUEUE)
    assert found is not None
    assert w.broker.image.partition_counts[found.id] == 3


def test_a_queue_has_the_brokers_prefix() -> None:
    w, one = ready(errors_deadletterqueue_topic_name_prefix="dead.", **AUTO)
    check_lost(w, one)
    assert w.broker.topic(QUEUE) is None


def test_an_internal_topic_is_no_queue() -> None:
    """A group may not name one; one that did, in another broker's data, does not write there."""
    w, _ = ready(**AUTO)
    assert configure(w, 32, "q", {"errors.deadletterqueue.topic.name": "__dlq"}) == Errors.INVALID_CONFIG
    with pytest.raises(DeadLetterRefused, match="internal"):
        w.broker.share_partitions.dead_letters._check("__dlq")


def test_a_group_without_a_queue_archives_at_once() -> None:
    w, one = ready(group={"errors.deadletterqueue.topic.name": ""})
    check_lost(w, one)
    assert [batch.delivery_state for _, value in written(w) for batch in value.state_batches] == [4]


def test_a_record_goes_through_archiving() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    one.acknowledge((0, 0, REJECT))
    w.pass_ms(10)
    assert [batch.delivery_state for _, value in written(w) for batch in value.state_batches] == [3, 4]


# trouble


def test_a_record_waits_while_its_queue_cannot_be_read() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    hold(w, QUEUE)
    one.acknowledge((0, 0, REJECT))
    w.pass_ms(20_000)
    assert engine(w).window.start_offset == 0
    hold(w, QUEUE, "immediate")
    w.pass_ms(10)
    assert engine(w).window.start_offset == 1


def test_a_queue_that_stays_unreadable_is_given_up() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    hold(w, QUEUE)
    one.acknowledge((0, 0, REJECT))
    w.pass_ms(30_001)
    assert engine(w).window.start_offset == 1
    assert w.broker.share_partitions.dead_letters.failed["q"] == 1


def test_a_queue_with_too_few_replicas_loses_the_record() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    w.broker.partitions.get(QUEUE, 0).isr_size = 0
    check_lost(w, one)


def test_a_broker_that_ended_before_the_queue_was_written_resumes() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    hold(w, QUEUE)
    one.acknowledge((1, 1, REJECT))
    w.pass_ms(10)
    assert state(w).batches[-1].state == 3
    before = len(letters(w))
    again = World(w.files, 1, offsets_topic_num_partitions="1", share_coordinator_state_topic_num_partitions="1")
    again.pass_ms(100)
    assert Consumer(again, "other").got() == [(0, 0, 1), (2, 2, 1)]
    again.pass_ms(100)
    assert len(letters(again)) == before + 1, "once more, as it is not known to have been written"
    assert state(again).batches[-1].state == 4


def test_a_share_partition_that_is_loaded_again_does_not_send_what_is_on_its_way() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    hold(w, QUEUE)
    one.acknowledge((1, 1, REJECT))
    w.pass_ms(10)
    source = w.broker.partitions.get("t", 0)
    w.broker.share_partitions.reload(source)
    assert Consumer(w, "other").got() == [(0, 0, 1), (2, 2, 1)]
    w.pass_ms(10)
    hold(w, QUEUE, "immediate")
    w.pass_ms(100)
    assert len(letters(w)) == 1
    assert state(w).batches[-1].state == 4


def test_a_letter_that_was_archived_is_not_sent_after_a_restart() -> None:
    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    one.acknowledge((1, 1, REJECT))
    w.pass_ms(10)
    assert len(letters(w)) == 1
    again = World(w.files, 1, offsets_topic_num_partitions="1", share_coordinator_state_topic_num_partitions="1")
    again.pass_ms(100)
    assert Consumer(again, "other").got() == [(0, 0, 1), (2, 2, 1)]
    again.pass_ms(1000)
    assert len(letters(again)) == 1


def test_without_share_version_2_there_are_no_queues() -> None:
    from ..support.share_world import update_feature

    w, one = ready()
    create(w, QUEUE, 1, FLAG)
    assert update_feature(w, 1) == 0
    check_lost(w, one)
    assert letters(w) == []
