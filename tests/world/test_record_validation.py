"""What a Produce request's records are checked for, and that looking at them holds nothing up (Kafka's
LogValidator).
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker import steps as work_steps
from ottla.protocol import opening, records
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from ottla.protocol.errors import Errors
from ottla.protocol.records import BatchAt, Record, Template
from ottla.storage.settings import LogSettings
from ottla.storage.validation import CLOCK_SKEW_MS, ERRORS_KEPT, InvalidRecords, check_records

from ..support.ask import claimed, fetch_message, produce_message
from ..support.seeds import slow
from ..support.topic_world import create, produced
from ..support.world import World

MANY = 2**31 - 1
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


def batch_of(*made: Record, codec: int = NONE, **fields: Any) -> bytes:
    return bytes(records.encode(list(made), Template(codec=codec, **fields)))


def with_max_timestamp(data: bytes, timestamp: int) -> bytes:
    out = bytearray(data)
    records.set_max_timestamp(out, 0, records.header_at(out), False, timestamp)
    return bytes(out)


def ask(world: World, data: bytes, name: str = "t", acks: int = -1) -> Any:
    answer = world.send("Produce", 9, produce_message(name, data, acks=acks))
    world.pass_ms(1000)
    assert answer.done
    return produced(answer.reply)


def header_of(world: World, name: str = "t") -> records.BatchHeader:
    log = world.broker.partitions.get(name, 0).open_log()
    (_, batch), *_ = log.batches_from(0)
    assert batch.header is not None
    return batch.header


def test_records_without_keys_and_out_of_time_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes of the records without keys are not gone through for each record with a wrong timestamp."""
    compared = 0

    class Index(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    count = 1000
    keyless: list[int] = [Index(index) for index in range(count)]
    shapes = opening.Shapes(0, [1] * count, list(range(count)), keyless)
    monkeypatch.setattr(opening, "shapes", lambda *_: iter([shapes]))
    data = batch_of(*(Record(None, b"", 1) for _ in range(count)))
    at, settings = BatchAt(0, records.header_at(data)), LogSettings(cleanup_policy=("compact",))
    with pytest.raises(InvalidRecords) as refused:
        list(check_records(at, data, "t-0", settings, (10, 20), len(data)))
    assert [index for index, _ in refused.value.errors] == list(range(count))
    assert {text.partition(" without")[0] for _, text in refused.value.errors} == {
        "Compacted topic cannot accept message"
    }
    assert compared < 10 * count


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [0, -5, MANY, 200])
def test_counts_that_cannot_be_are_refused_with_records_closed(codec: int, count: int) -> None:
    world = World()
    create(world, "t")
    answer = ask(world, claimed(batch_of(Record(b"k", b"v", 1), codec=codec), count))
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (Errors.INVALID_RECORD, -1, 0)
    assert world.broker.partitions.get("t", 0).end_offset == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [2, 4])
def test_full_validation_counts(codec: int, count: int) -> None:
    world = World(ottla_record_validation="full")
    create(world, "t")
    assert (
        ask(world, claimed(batch_of(*[Record(b"k", b"v", 1)] * 3, codec=codec), count)).error_code
        == Errors.INVALID_RECORD
    )


@pytest.mark.parametrize(("mode", "code"), [("header", Errors.NONE), ("full", Errors.INVALID_RECORD)])
def test_records_are_checked_in_full_when_asked(mode: str, code: int) -> None:
    world = World(ottla_record_validation=mode)
    create(world, "t")
    data = bytearray(batch_of(Record(b"k", b"abc", 1)))
    data[-5] = 0x7E  # a record that claims more than there is
    data[17:21] = records.computed_crc(data, 0, len(data)).to_bytes(4, "big")
    assert ask(world, bytes(data)).error_code == code


@pytest.mark.parametrize("codec", CODECS)
def test_a_false_largest_timestamp_does_not_get_into_the_log(codec: int) -> None:
    world = World()
    create(world, "t", segment_ms="60000")
    now = world.schedule.now_ms()
    for ahead in (CLOCK_SKEW_MS + 1, 10**12, 2**62):
        data = with_max_timestamp(
            batch_of(Record(b"k", b"v", now), Record(b"k", b"v", now + 5), codec=codec), now + ahead
        )
        assert ask(world, data).error_code == 0
    for _, batch in world.broker.partitions.get("t", 0).open_log().batches_from(0):
        assert batch.max_timestamp == now + 5
        stored = batch.header and world.broker.partitions.get("t", 0).open_log().active.read_batch(batch)
        assert stored
        assert records.computed_crc(stored, 0, len(stored)) == records.header_at(stored).crc
    assert len(world.broker.partitions.get("t", 0).open_log().segments) == 1


def test_a_largest_timestamp_before_the_first_one_is_corrected() -> None:
    world = World()
    create(world, "t")
    now = world.schedule.now_ms()
    assert ask(world, with_max_timestamp(batch_of(Record(b"k", b"v", now)), 5)).error_code == 0
    assert header_of(world).max_timestamp == now


def test_a_batch_that_says_log_append_time_is_given_its_records_time() -> None:
    world = World()
    create(world, "t")
    now = world.schedule.now_ms()
    assert ask(world, batch_of(Record(b"k", b"v", now), append_time=now - 7)).error_code == 0
    assert (header_of(world).is_append_time, header_of(world).max_timestamp) == (False, now - 7)
    create(world, "log", message_timestamp_type="LogAppendTime")
    answer = ask(world, batch_of(Record(b"k", b"v", now), append_time=now), "log")
    assert (answer.error_code, len(answer.record_errors)) == (Errors.INVALID_TIMESTAMP, 1)


@pytest.mark.parametrize("codec", [*slow([GZIP]), ZSTD])
def test_a_bomb_is_refused_and_others_are_served_meanwhile(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    create(world, "t", cleanup_policy="compact")
    create(world, "other")
    steps = 0
    original = opening.shapes

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        for some in original(*arguments):
            steps += 1
            yield some

    monkeypatch.setattr(opening, "shapes", counted)
    data = batch_of(Record(b"k", bytes(40 << 20), 1), codec=codec)
    answer = world.send("Produce", 9, produce_message("t", data))
    assert not answer.done
    assert steps == work_steps.STEPS_AT_ONCE  # then the loop goes on
    before = steps
    assert (
        produced(world.send("Produce", 9, produce_message("other", batch_of(Record(None, b"v", 1)))).reply).error_code
        == 0
    )
    assert steps == before
    world.pass_ms(1000)
    refusal = produced(answer.reply)
    assert refusal.error_code == Errors.INVALID_RECORD
    assert steps > 1000


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_what_takes_long_to_check_is_appended_in_the_end(acks: int) -> None:
    world = World()
    create(world, "t", cleanup_policy="compact")
    data = batch_of(*[Record(b"key", b"value" * 10, 1)] * 20_000, codec=ZSTD)
    answer = world.send("Produce", 9, produce_message("t", data, acks=acks))
    assert not answer.done
    world.pass_ms(1000)
    assert answer.done
    assert (answer.reply is None) is (acks == 0)
    assert world.broker.partitions.get("t", 0).end_offset == 20_000


def test_a_refusal_after_a_long_check_ends_a_connection_without_replies() -> None:
    world = World()
    create(world, "t", cleanup_policy="compact")
    data = batch_of(*[Record(b"key", b"value" * 10, 1)] * 20_000, Record(None, b"v", 1), codec=ZSTD)
    answer = world.send("Produce", 9, produce_message("t", data, acks=0))
    world.pass_ms(1000)
    assert answer.closed


def test_a_topic_that_goes_while_its_batch_is_checked() -> None:
    world = World()
    create(world, "t", cleanup_policy="compact")
    data = batch_of(*[Record(b"key", b"value" * 10, 1)] * 20_000, codec=ZSTD)
    answer = world.send("Produce", 9, produce_message("t", data))
    del world.broker.partitions.by_name["t", 0]
    world.pass_ms(2000)
    assert produced(answer.reply).error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_many_wrong_records_are_counted_and_the_first_ones_named() -> None:
    world = World()
    create(world, "t", cleanup_policy="compact")
    answer = ask(world, batch_of(*[Record(None, b"v", 1)] * 5_000))
    assert answer.error_code == Errors.INVALID_RECORD
    assert "rejected due to 5000 record errors in total" in answer.error_message
    assert [error.batch_index for error in answer.record_errors] == list(range(ERRORS_KEPT))


def test_batches_for_internal_topics_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    data = claimed(batch_of(Record(b"k", b"v", 1), Record(b"k", b"v" * 40, 1)), 3)
    create(world, "t")
    assert ask(world, data).error_code == 0  # closed, it could be so many
    monkeypatch.setattr("ottla.broker.internal_topics.INTERNAL_TOPICS", frozenset(("t",)))
    answer = world.send("Produce", 9, produce_message("t", data))
    assert produced(answer.reply).error_code in (Errors.INVALID_RECORD, Errors.INVALID_TOPIC_EXCEPTION)


@pytest.mark.parametrize("kind", ["uncompressed", "gzip", "zstd"])
def test_another_codec_makes_a_batch_of_the_same_records(kind: str) -> None:
    world = World()
    create(world, "t", compression_type=kind)
    now = world.schedule.now_ms()
    wanted = [Record(b"k%d" % n, b"v" * 50, now + n % 3, n, [("h", b"1")]) for n in range(5_000)]
    answer = ask(world, batch_of(*wanted, codec=LZ4))
    assert answer.error_code == 0
    found = world.ask("Fetch", 11, fetch_message("t", 0)).responses[0].partitions[0].records
    opened = records.decode(found, BatchAt(0, records.header_at(found)))
    assert [(r.key, r.value, r.timestamp, r.offset) for r in opened] == [
        (r.key, r.value, r.timestamp, r.offset) for r in wanted
    ]


def test_what_is_too_large_without_compression_is_refused_before_it_is_made() -> None:
    world = World()
    create(world, "t", compression_type="uncompressed")
    assert ask(world, batch_of(Record(b"k", bytes(20 << 20), 1), codec=ZSTD)).error_code == Errors.MESSAGE_TOO_LARGE


def test_producer_fields_that_cannot_be() -> None:
    world = World()
    create(world, "t")
    for epoch, sequence, code in (
        (0, -7, Errors.INVALID_RECORD),
        (0, -1, Errors.INVALID_RECORD),
        (-5, 0, Errors.INVALID_PRODUCER_EPOCH),
    ):
        data = batch_of(Record(b"k", b"v", 1), producer_id=4000, producer_epoch=epoch, base_sequence=sequence)
        assert ask(world, data).error_code == code


def test_the_limit_of_decompressed_bytes_is_for_compressed_batches() -> None:
    world = World()
    create(world, "t", cleanup_policy="compact", max_decompressed_message_bytes="2000")
    for codec, code in ((NONE, 0), (ZSTD, Errors.INVALID_RECORD), (SNAPPY, Errors.INVALID_RECORD)):
        answer = ask(world, batch_of(Record(b"k", bytes(3000), 1), codec=codec))
        assert answer.error_code == code
