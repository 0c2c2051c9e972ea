"""What opens stored batches does so in steps, and makes no more objects than a share-partition may lease, whatever a
batch claims.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker import steps as work_steps
from ottla.broker.share import dead_letters
from ottla.broker.share.share_fetch import PART_OFFSETS_MAX
from ottla.coordinator.share.acknowledge_types import REJECT, RELEASE
from ottla.protocol import legacy, opening, records
from ottla.protocol import messages as m
from ottla.protocol.compression import CHUNK_BYTES, GZIP, NONE, ZSTD
from ottla.protocol.records import BatchAt, Record, Template
from ottla.storage import message_sets

from ..support.ask import claimed, produce_message
from ..support.dead_letters import AUTO, QUEUE, letters, ready
from ..support.seeds import slow
from ..support.share_world import Consumer, engine, produce, records_of, world
from ..support.topic_world import create, produced
from ..support.world import World

CLAIMED = 2**31 - 1


def first_at(timestamp: int, *topics: str) -> Any:
    r = m.ListOffsetsRequest
    partitions = [r.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)]
    return r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=partitions) for name in topics])


@pytest.mark.parametrize(("codec", "timestamp"), [(ZSTD, 1), (ZSTD, -3), *slow([(GZIP, 1), (GZIP, -3)])])
def test_a_stored_bomb_is_looked_at_in_steps(codec: int, timestamp: int, monkeypatch: pytest.MonkeyPatch) -> None:
    w = World()
    create(w, "t")
    create(w, "other")
    now = w.schedule.now_ms()
    data = bytes(records.encode([Record(None, bytes(40 << 20), now)], Template(codec=codec)))
    assert produced(w.send("Produce", 9, produce_message("t", data)).reply).error_code == 0
    steps = 0
    original = opening.shapes

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        for some in original(*arguments):
            steps += 1
            yield some

    monkeypatch.setattr(opening, "shapes", counted)
    answer = w.send("ListOffsets", 7, first_at(timestamp, "t", "other"))
    assert not answer.done
    assert steps == work_steps.STEPS_AT_ONCE
    assert w.send("ListOffsets", 7, first_at(-1, "t")).reply.topics[0].partitions[0].offset == 1
    w.pass_ms(5000)
    assert answer.done
    assert [t.partitions[0].offset for t in answer.reply.topics] == [0, -1]  # the header is all that could be read


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_an_old_kafka_are_looked_at_in_steps(
    magic: int, codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such files come from a directory that Kafka has written before 0.11."""
    count = 5000
    w = World()
    create(w, "t")
    assert w.broker.stop() is None
    rows = [legacy.Message(n, None, None, magic, 1000 + n if magic else -1) for n in range(count)]
    handle = w.files.open("/data/t-0/00000000000000000000.log")
    handle.write_at(0, legacy.encode(rows, codec))
    w = World(w.files)
    w.pass_ms(10)
    assert w.broker.partitions.get("t", 0).end_offset == count
    found: list[int] = []
    contents = legacy.contents

    def counted(*arguments: Any) -> Any:
        for some in contents(*arguments):
            found.append(len(some))
            yield some

    monkeypatch.setattr(message_sets, "contents", counted)
    answer = w.send("ListOffsets", 7, first_at(1000 + count - 2, "t"))
    assert answer.done != bool(magic and codec)
    w.pass_ms(100)
    assert answer.reply.topics[0].partitions[0].offset == (count - 2 if magic else -1)
    if magic and codec:
        assert sum(found) >= count - 1
        assert max(found) <= CHUNK_BYTES // 34 + 1
    else:
        assert len(found) == magic


def test_the_largest_timestamp_is_one_of_a_record() -> None:
    w = World()
    create(w, "t")
    now = w.schedule.now_ms()
    data = bytearray(records.encode([Record(None, b"1", now), Record(None, b"2", now + 5)]))
    records.set_max_timestamp(data, 0, records.header_at(data), False, now + 999)
    assert produced(w.send("Produce", 9, produce_message("t", bytes(data))).reply).error_code == 0
    found = w.ask("ListOffsets", 7, first_at(-3, "t")).topics[0].partitions[0]
    assert (found.timestamp, found.offset) == (now + 5, 1)


def store_claim(w: World, count: int) -> None:
    """A batch as an older version, or another broker, may have left it."""
    partition = w.broker.partitions.get("t", 0)
    data = bytearray(claimed(bytes(records.encode([Record(b"k", b"v", w.schedule.now_ms())])), count))
    partition.append(data, [BatchAt(0, records.header_at(data))], w.schedule.now_ms())
    w.broker.turn.event(lambda: w.broker.high_watermarks.appended(partition))


def test_a_batch_that_claims_two_billion_records_is_leased_in_parts() -> None:
    w = world()
    one = Consumer(w)
    one.got()
    store_claim(w, CLAIMED)
    assert [(first, last) for first, last, _ in one.got()] == [(0, PART_OFFSETS_MAX - 1)]
    assert one.acknowledge((0, 0, REJECT), (1, 10, RELEASE)) == 0
    made = sum(len(span.each) for span in engine(w).window.spans)
    assert made <= PART_OFFSETS_MAX
    assert engine(w).window.end_offset == PART_OFFSETS_MAX - 1


def test_batches_that_are_not_larger_are_leased_whole() -> None:
    w = world()
    one = Consumer(w)
    one.got()
    produce(w, *[b"v"] * PART_OFFSETS_MAX)
    assert [(first, last) for first, last, _ in one.got()] == [(0, PART_OFFSETS_MAX - 1)]


def test_letters_are_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "LETTERS_AT_ONCE", 10)
    w, one = ready(95, group={"errors.deadletterqueue.copy.record.enable": "true"}, **AUTO)
    turns = 0
    next_turn = w.broker.turn.next

    def counted() -> Any:
        nonlocal turns
        turns += 1
        return next_turn()

    monkeypatch.setattr(w.broker.turn, "next", counted)
    one.acknowledge((0, 94, REJECT))
    w.pass_ms(1000)
    assert [found["offset"] for found in letters(w)] == [str(offset) for offset in range(95)]
    assert [record.value for record in records_of(w.broker.partitions.get(QUEUE, 0))] == [b"%d" % n for n in range(95)]
    assert turns == 9
    assert engine(w).window.start_offset == 95


def test_a_state_with_more_letters_than_could_have_been_leased_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "LETTERS_MAX", 10)
    w, one = ready(20, **AUTO)
    one.acknowledge((0, 19, REJECT))
    w.pass_ms(1000)
    assert engine(w).window.start_offset == 20
    assert w.broker.topic(QUEUE) is None
