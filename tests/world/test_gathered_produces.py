"""Produce requests that come at once, and whose batches are written together: replies and logs are the same as if each
had come alone.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from ottla.broker.replica.appender import Appender
from ottla.broker.replica.followers import Replicas
from ottla.broker.replica.partition import Partition
from ottla.broker.watermark_policies import parse_policy
from ottla.protocol import compression
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.storage.gathered import Gathered

from ..support.ask import batch, fetch_message, values
from ..support.failing_appends import fail_appends
from ..support.failing_files import FailingFiles
from ..support.memory_files import MemHandle
from ..support.producing import NOW, VERSION, Producing
from ..support.repeated import Refusing
from ..support.topic_world import set_policy
from ..support.wire import request_frame


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were written together, where there were several."""
    found: list[int] = []
    write = MemHandle.write_all_at

    def noted(self: MemHandle, position: int, pieces: Sequence[Any]) -> None:
        if len(pieces) > 1:
            found.append(len(pieces))
        write(self, position, pieces)

    monkeypatch.setattr(MemHandle, "write_all_at", noted)
    return found


def numbered(sequence: int, value: bytes = b"v", **more: Any) -> bytes:
    return batch(value, now=NOW, producer_id=5, producer_epoch=0, base_sequence=sequence, **more)


def test_batches_that_come_at_once_are_written_at_once(written: list[int]) -> None:
    one = Producing()
    assert one.produce(*(batch(b"%d" % n, now=NOW) for n in range(4))) == [(0, 2), (0, 3), (0, 4), (0, 5)]
    assert written == [4]
    data = one.client.ask("Fetch", 4, fetch_message("t", 0)).responses[0].partitions[0].records
    assert values(data)[2:] == [b"0", b"1", b"2", b"3"]


def test_one_that_comes_alone_is_not_gathered(written: list[int]) -> None:
    one = Producing()
    assert [one.produce(batch(b"v", now=NOW)) for _ in range(2)] == [[(0, 2)], [(0, 3)]]
    assert written == []


def test_replies_come_in_order_and_another_request_ends_the_gathering(written: list[int]) -> None:
    one = Producing()
    metadata = request_frame("Metadata", 9, m.MetadataRequest(topics=[]), 3, "client")
    frames = [one.frame(batch(b"v", now=NOW), number, partition=partition) for number, partition in ((1, 0), (2, 0))]
    before = len(one.client.ids)
    one.client.feed(
        b"".join([*frames, metadata, *(one.frame(batch(b"w", now=NOW), 4 + n, partition=1) for n in (0, 1))])
    )
    assert one.client.ids[before:] == [1, 2, 3, 4, 5]
    assert written == [2, 2]


def test_what_waits_behind_them_is_answered_before_the_next_request_is_taken(written: list[int]) -> None:
    one = Producing()
    fetch = request_frame("Fetch", 4, fetch_message("t", 4, wait_ms=100), 3, "client")
    before = len(one.client.ids)
    frames = [one.frame(batch(b"v", now=NOW), number) for number in (1, 2)]
    one.client.feed(b"".join([*frames, fetch, one.frame(batch(b"w", now=NOW), 4)]))
    assert (one.client.ids[before:], one.log().end_offset) == ([1, 2], 4)
    one.world.pass_ms(100)
    assert (one.client.ids[before:], one.log().end_offset) == ([1, 2, 3, 4], 5)
    assert written == [2]


def test_a_waiting_consumer_gets_all_in_one_reply(written: list[int]) -> None:
    one = Producing()
    reader = one.world.connect()
    number = reader.send("Fetch", 4, fetch_message("t", 2, wait_ms=10_000))
    one.produce(*(batch(b"%d" % n, now=NOW) for n in range(3)))
    assert written == [3]
    assert values(reader.reply(number).responses[0].partitions[0].records) == [b"0", b"1", b"2"]


def test_sequences_are_checked_within_what_is_gathered(written: list[int]) -> None:
    """The batch after a gap is refused, and one that is sent again gets the offset that it has."""
    one = Producing()
    sent = [numbered(0), numbered(1), numbered(3), numbered(1), numbered(2)]
    assert one.produce(*sent) == [
        (0, 2),
        (0, 3),
        (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (0, 3),
        (0, 4),
    ]
    assert written == [3]


def test_what_is_refused_does_not_concern_the_others(written: list[int]) -> None:
    one = Producing(max_message_bytes="1000")
    damaged = bytearray(batch(b"v", now=NOW))
    damaged[-1] ^= 1
    sent = [batch(b"v", now=NOW), bytes(damaged), batch(b"x" * 2000, now=NOW), batch(b"w", now=NOW)]
    assert one.produce(*sent) == [(0, 2), (Errors.CORRUPT_MESSAGE, -1), (Errors.MESSAGE_TOO_LARGE, -1), (0, 3)]
    assert written == [2]


def test_a_new_segment_begins_within_what_came_at_once(written: list[int]) -> None:
    one, alone = Producing(segment_bytes="1048576"), Producing(alone=True, segment_bytes="1048576")
    for _ in range(30):
        sent = [batch(b"%d" % n * 12_000, now=NOW) for n in range(4)]
        assert one.produce(*sent) == alone.produce(*sent)
    assert one.content() == alone.content()
    assert [segment.base_offset for segment in one.log().segments] == [0, 88]
    assert written == [4] * 21 + [2] + [4] * 8  # the third of four begins the new segment


@pytest.mark.parametrize("error_number", [errno.EIO, errno.ENOSPC, errno.EAGAIN])
def test_if_they_cannot_be_written_the_log_is_as_it_was_and_each_gets_the_error(
    error_number: int, written: list[int]
) -> None:
    files = FailingFiles()
    one = Producing(files=files)
    assert one.produce(numbered(0), numbered(1)) == [(0, 2), (0, 3)]
    log = one.log()
    before = log.end_offset, log.producers.snapshot()
    files.fail("write", ".log", error_number, times=2)  # a write, and the truncation after it
    answers = one.produce(numbered(2), numbered(3), numbered(5))
    assert answers == [(Errors.KAFKA_STORAGE_ERROR, -1)] * 2 + [(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert written == [2, 2]
    assert (log.end_offset, log.producers.snapshot()) == before


def test_one_that_begins_a_new_segment_fails_with_those_before_it(written: list[int]) -> None:
    files = FailingFiles()
    one = Producing(files=files, segment_bytes="1048576")
    while one.log().active.size < 1_010_000:
        one.produce(*[batch(b"v" * 12_000, now=NOW)] * 2)
    end = one.log().end_offset
    files.fail("write", ".log", errno.EAGAIN, times=2)
    assert one.produce(*[batch(b"v" * 14_000, now=NOW)] * 3) == [(Errors.KAFKA_STORAGE_ERROR, -1)] * 3
    assert (one.log().end_offset, len(one.log().segments), written[-1]) == (end, 1, 2)
    assert one.produce(batch(b"v", now=NOW)) == [(0, end)]


def _held(partition: Partition) -> None:
    partition.follower.policy = parse_policy("held")


class Connected:
    """Nodes all of which reach each other."""

    def follows(self, node_id: int, leader: int) -> bool:
        return True

    def hears(self, node_id: int) -> bool:
        return True


def _replicated(partition: Partition) -> None:
    partition.replica_set = Replicas(Connected())


def _flushed_late(partition: Partition) -> None:
    log = partition.open_log()
    log.settings = log.settings._replace(waits_for_flush_ms=True)


def _behind(partition: Partition) -> None:
    partition.high_watermark -= 1


@pytest.mark.parametrize("change", [_held, _replicated, _flushed_late, _behind])
def test_only_where_high_watermarks_follow_at_once_batches_are_gathered(change: Callable[[Partition], None]) -> None:
    one = Producing()
    partition = one.world.broker.partitions.get("t", 0)
    assert one.world.broker.appender.gathers(partition)
    change(partition)
    assert not one.world.broker.appender.gathers(partition)


def test_if_the_high_watermark_does_not_follow_nothing_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Producing()
    monkeypatch.setattr(one.world.broker.turn, "move", lambda partition: None)
    frames = [one.frame(batch(b"v", now=NOW), number, partition=number // 2) for number in range(3)]
    assert one.answers(*frames) == []
    assert one.client.closed
    assert [one.log(partition).end_offset for partition in (0, 1)] == [4, 2], "and nothing more is taken"


def test_transactions_are_verified(written: list[int]) -> None:
    one = Producing()
    one.client.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]))
    begin = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=9000)
    ids = one.client.ask("InitProducerId", 4, begin)
    assert ids.error_code == 0
    numbers = {"producer_id": ids.producer_id, "producer_epoch": 0, "transactional": True}
    sent = [batch(b"v", now=NOW, base_sequence=sequence, **numbers) for sequence in range(8)]
    frames = [one.frame(data, number, transactional_id="x") for number, data in enumerate(sent)]
    _begin(one, ids.producer_id)
    assert [one.answers(frame)[0].error_code for frame in frames[:4]] == [0] * 4
    end = m.EndTxnRequest(transactional_id="x", producer_id=ids.producer_id, producer_epoch=0, committed=True)
    assert one.client.ask("EndTxn", 3, end).error_code == 0
    one.world.pass_ms(100)
    _begin(one, ids.producer_id)
    assert [answer.base_offset for answer in one.answers(*frames[4:])] == [7, 8, 9, 10]
    assert written == []


def _begin(one: Producing, producer_id: int) -> None:
    r = m.AddPartitionsToTxnRequest
    added = r(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[r.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    (topic,) = one.client.ask("AddPartitionsToTxn", 3, added).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == 0


def test_a_fault_while_one_is_checked_is_its_answer_after_those_before_it(
    written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, append, count = Producing(), Appender.append, Counter[str]()

    def second_fails(*arguments: Any) -> int:
        count["asked"] += 1
        if count["asked"] == 2:
            raise ValueError("a fault")
        return append(*arguments)

    monkeypatch.setattr(Appender, "append", second_fails)
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(0, 2), (Errors.UNKNOWN_SERVER_ERROR, -1), (0, 3)]
    assert written == []


def test_requests_of_the_next_turn_wait_for_it(written: list[int]) -> None:
    """More requests than one turn takes, then a fetch that waits, and one that comes before that turn."""
    one = Producing()
    connection = one.client.connection
    before = len(one.client.ids)
    fetch = request_frame("Fetch", 4, fetch_message("t", 130, wait_ms=100), 900, "client")
    metadata = request_frame("Metadata", 9, m.MetadataRequest(topics=[]), 901, "client")
    for data in (b"".join([one.frame(batch(b"v", now=NOW), n) for n in range(128)]) + fetch, metadata):
        view = connection.get_buffer(-1)
        view[: len(data)] = data
        connection.buffer_updated(len(data))
    one.world.pass_ms(50)
    assert (one.client.ids[before:], written) == ([*range(128)], [128])
    one.world.pass_ms(100)
    assert one.client.ids[before:] == [*range(128), 900, 901]


def test_what_rests_hears_of_them() -> None:
    one, rest = Producing(), Rest()
    frames = [one.frame(batch(b"v", now=NOW), number) for number in range(2)]
    one.world.broker.turn.resting[cast(Any, rest)] = None
    one.client.feed(b"".join(frames))
    assert rest.heard == 1


class Rest:
    """What looks again whether it has something to do as soon as something happens."""

    def __init__(self) -> None:
        self.heard = 0

    def wake(self) -> None:
        self.heard += 1


def test_where_replies_wait_no_request_is_taken_before_the_one_before_it_is_answered(written: list[int]) -> None:
    one = Producing()
    set_policy(one.world, "t", "held")
    assert one.answers(*(one.frame(batch(b"v", now=NOW), number, timeout_ms=60_000) for number in range(3))) == []
    assert one.log().end_offset == 3
    set_policy(one.world, "t", "immediate")
    one.world.pass_ms(5)
    assert one.log().end_offset == 5
    assert written == []


@pytest.mark.parametrize("config", [{"flush_messages": "2"}, {"flush_messages": "1"}])
def test_where_replies_wait_for_a_flush_each_is_alone(config: dict[str, Any], written: list[int]) -> None:
    one = Producing(**config)
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(0, 2), (0, 3), (0, 4)]
    assert written == []


def test_appends_that_the_lab_lets_fail_do(written: list[int]) -> None:
    one = Producing()
    fail_appends(one.world, one.world.broker.partitions.get("t", 0))
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(Errors.KAFKA_STORAGE_ERROR, -1)] * 3
    assert (one.log().end_offset, written) == (2, [])


def test_what_acts_on_requests_gets_each(written: list[int]) -> None:
    one, acting = Producing(), Refusing(0)
    one.world.seam.add(acting)
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(Errors.UNKNOWN_SERVER_ERROR, -1)] * 3
    assert (acting.struck, written) == (3, [])


def test_a_fault_of_the_broker_ends_in_an_answer_to_each(
    written: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = Producing()
    monkeypatch.setattr(Gathered, "write", _raises)
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(Errors.UNKNOWN_SERVER_ERROR, -1)] * 3
    assert "an append to t-0" in caplog.text
    monkeypatch.undo()
    assert one.produce(*[batch(b"v", now=NOW)] * 3) == [(0, 2), (0, 3), (0, 4)]


def _raises(self: Gathered, now_ms: int) -> None:
    raise ValueError("a fault")


def test_without_acknowledgements_and_with_times_of_the_broker_each_is_alone(written: list[int]) -> None:
    one = Producing()
    assert one.answers(*(one.frame(batch(b"v", now=NOW), number, acks=0) for number in range(9))) == []
    assert one.log().end_offset == 11
    assert Producing(message_timestamp_type="LogAppendTime").produce(*[batch(b"v", now=NOW)] * 3) == [
        (0, 2),
        (0, 3),
        (0, 4),
    ]
    assert written == []


def test_a_connection_that_is_lost_in_between_has_appended_what_it_sent() -> None:
    one = Producing()
    short = one.frame(batch(b"w", now=NOW), 9)[:-1]
    one.client.feed(one.frame(batch(b"v", now=NOW), 1) + one.frame(batch(b"v", now=NOW), 2) + short)
    assert one.log().end_offset == 4
    assert one.client.ids[-2:] == [1, 2]
    for bad in ((3).to_bytes(4, "big") + b"bad", b"\xff" * 4):
        other = one.connected()
        end = one.log().end_offset
        other.feed(one.frame(batch(b"v", now=NOW), 1) + one.frame(batch(b"v", now=NOW), 2) + bad)
        assert other.closed
        assert other.ids[-2:] == [1, 2]
        assert one.log().end_offset == end + 2


@pytest.mark.parametrize("seed", range(6))
def test_the_effect_is_that_of_requests_that_came_alone(seed: int, written: list[int]) -> None:
    chance = random.Random(seed)
    settings = {"segment_bytes": "1048576", "index_interval_bytes": "1000", "max_message_bytes": "400000"}
    sides = [Producing(False, None, **settings), Producing(True, None, **settings)]
    sequences: Counter[int] = Counter()
    for _ in range(60):
        frames = [
            sides[0].frame(_some(chance, sequences), n, partition=_partition(chance))
            for n in range(chance.randint(1, 9))
        ]
        gathered, alone = ([_told(one) for one in side.answers(*frames)] for side in sides)
        assert gathered == alone
        if chance.random() < 0.2:
            for side in sides:
                side.world.pass_ms(10_000)
    assert sides[0].content() == sides[1].content()
    counts = [side.world.broker.metrics.apis[0, VERSION].count for side in sides]
    assert counts[0] == counts[1]
    assert max(written) > 3
    assert len(sides[0].log().segments) > 1


def _partition(chance: random.Random) -> int:
    return int(chance.random() < 0.1)


def _some(chance: random.Random, sequences: Counter[int]) -> bytes:
    """A batch of a producer without an id, or of one of two that have one, whose sequence is wrong at times."""
    value = chance.randbytes(1) * chance.choice((1, 10, 1000, 20_000, 390_000, 500_000))
    packed = chance.choice((compression.NONE, compression.NONE, compression.LZ4))
    count, producer_id = chance.randint(1, 3), chance.choice((-1, -1, 5, 6))
    if producer_id < 0:
        return batch(*[value] * count, now=NOW + chance.randrange(100), codec=packed)
    sequence = sequences[producer_id] + chance.choice((0, 0, 0, 0, 0, 1, -1))
    sequences[producer_id] = sequence + count
    numbers = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": max(sequence, 0)}
    return batch(*[value] * count, now=NOW, codec=packed, **numbers)


def _told(answer: Any) -> tuple[Any, ...]:
    return answer.index, answer.error_code, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset
