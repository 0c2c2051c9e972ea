"""A Fetch of very many partitions is put together, read, answered and encoded in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ottla.broker.apis import k01_fetch
from ottla.broker.apis._reply_size import LENGTH_BYTES
from ottla.broker.client_quotas import Usage
from ottla.broker.net import large_replies
from ottla.broker.replica import opening
from ottla.broker.replica.fetch_sessions import Fetch
from ottla.broker.steps import STEP_ELEMENTS
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.encoded import Encoded
from ottla.protocol.errors import Errors
from ottla.protocol.session_epochs import FINAL_EPOCH, INITIAL_EPOCH

from ..support.ask import batch, produce_message
from ..support.event_counts import EventCounts
from ..support.step_work import longest_step_of
from ..support.topic_world import create
from ..support.turns import Turns

pytestmark = pytest.mark.long

COUNT, STEP, WITH_RECORDS = 600, 100, 6
WAIT_MS = 500


def _world(count: int) -> Turns:
    made = Turns()
    c = m.CreateTopicsRequest
    topic = c.CreatableTopic(name="t", num_partitions=count, replication_factor=1)
    made.ask("CreateTopics", 7, c(topics=[topic], timeout_ms=10_000))
    made.ask("Fetch", 12, fetching(FINAL_EPOCH, count=count, max_wait_ms=0))  # opens the logs
    made.pass_ms(1000)
    return made


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """A broker whose steps are small."""
    monkeypatch.setattr(k01_fetch, "LARGE", STEP)
    monkeypatch.setattr(large_replies, "STEP_ENCODED", STEP)
    return _world(COUNT)


def fetching(epoch: int, session_id: int = 0, count: int = COUNT, max_wait_ms: int = WAIT_MS) -> Any:
    """A Fetch of all partitions, from their beginning."""
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(count)]
    message = r(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=epoch)
    message.topics = [r.FetchTopic(topic="t", partitions=parts)] if count else []
    return message


def produce(world: Turns, index: int) -> None:
    assert (
        not world.ask("Produce", 9, produce_message("t", batch(b"v"), index))
        .responses[0]
        .partition_responses[0]
        .error_code
    )


def holds(world: Turns) -> int:
    logs = [partition.log for partition in world.broker.partitions.by_name.values() if partition.topic == "t"]
    return sum(segment.holds for log in logs if log is not None for segment in log.segments)


def test_no_step_of_a_fetch_does_something_for_every_partition() -> None:
    count = 3 * k01_fetch.LARGE
    assert longest_step_of(_world(count), "Fetch", 12, fetching(INITIAL_EPOCH, count=count)) < 50 * count


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_record_that_comes_to_a_partition_which_has_been_read_ends_the_fetch(world: Turns, epoch: int) -> None:
    """Though other partitions are still to be read, and none has a record."""
    answer = world.send("Fetch", 12, fetching(epoch))
    entry = _first_read(world)
    produce(world, 0)
    assert entry.partition.high_watermark == 1
    world.pass_ms(1)
    assert answer.done
    assert {one.high_watermark for one in answer.reply.responses[0].partitions} == {0}
    assert not entry.partition.waiters or epoch == INITIAL_EPOCH


def _run_until(world: Turns, condition: Callable[[], object]) -> None:
    """Runs the steps of long requests until something is so."""
    while not condition():
        assert world.broker.turn.has_steps
        world.broker.turn._next_step()


def _first_read(world: Turns) -> Any:
    """Runs steps until the first entry of the fetch has been read."""
    partition = world.broker.partitions.by_name["t", 0]
    _run_until(world, lambda: partition.waiters)
    (fetch,) = partition.waiters
    return fetch.listening[partition]  # type: ignore[attr-defined]


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_fetch_that_waits_is_answered_when_a_record_comes(world: Turns, epoch: int) -> None:
    answer = world.send("Fetch", 12, fetching(epoch))
    world.pass_ms(10)
    assert not answer.done
    produce(world, 7)
    world.pass_ms(1)
    found = {one.partition_index: bytes(one.records) for one in answer.reply.responses[0].partitions}
    assert [index for index, records in found.items() if records] == [7]
    assert len(found) == COUNT
    assert not holds(world)


@pytest.fixture
def replies(world: Turns, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replies as they are when their bytes are put together."""
    seen: list[Any] = []
    put_together = world.dispatcher._reply

    def noted(api: Any, context: Any, outcome: Any) -> Any:
        seen.append(outcome)
        return put_together(api, context, outcome)

    monkeypatch.setattr(world.dispatcher, "_reply", noted)
    return seen


def test_logs_that_are_not_open_are_found_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k01_fetch, "LARGE", STEP)
    monkeypatch.setattr(opening, "LOOKED_AT", STEP)
    made, count = Turns(), 2 * COUNT
    create(made, "t", count)
    assert made.broker.replicas.opening
    found = EventCounts(made, monkeypatch, Fetch, "find", lambda *_: 1)
    reply = made.ask("Fetch", 12, fetching(FINAL_EPOCH, count=count, max_wait_ms=0))
    assert [one.error_code for one in reply.responses[0].partitions] == [0] * count
    assert found.count == 2 * count, "to open, and to read"
    assert found.most <= STEP + STEP_ELEMENTS


def test_what_a_reply_with_records_had_is_freed_in_steps_after_it(
    world: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed, seen = large_replies._freed, []

    def noted(kept: list[list[Any]]) -> Iterator[None]:
        for _ in freed(kept):
            yield
            seen.append((answer.done, sum(map(len, kept))))

    monkeypatch.setattr(large_replies, "_freed", noted)
    answer = world.send("Fetch", 12, fetching(FINAL_EPOCH, max_wait_ms=0))
    world.pass_ms(1)
    assert seen == [(True, left) for left in (COUNT + 1, *range(COUNT, 0, -STEP))]  # the topic, and its partitions


def test_a_reply_with_records_of_files_is_encoded_in_steps(world: Turns, replies: list[Any]) -> None:
    for index in range(0, COUNT, COUNT // WITH_RECORDS):
        produce(world, index)
    del replies[:]
    answer = world.send("Fetch", 12, fetching(FINAL_EPOCH))
    world.pass_ms(1)
    (reply,) = replies
    assert isinstance(reply.responses, Encoded)
    assert not holds(world)
    found = {one.partition_index: bytes(one.records) for one in answer.reply.responses[0].partitions}
    assert [index for index, records in found.items() if records] == list(range(0, COUNT, COUNT // WITH_RECORDS))
    plain: Any = codec.as_plain(reply)
    assert plain["responses"][0]["partitions"][0]["records"] == f"<{len(found[0])} bytes of records>"


def test_the_records_of_a_reply_whose_connection_is_lost_while_it_is_encoded_are_released(
    world: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(0, COUNT, COUNT // WITH_RECORDS):
        produce(world, index)
    encoded: list[object] = []
    append = Encoded.append

    def appended(array: Encoded, element: object) -> None:
        encoded.append(element)
        append(array, element)

    monkeypatch.setattr(Encoded, "append", appended)
    answer = world.send("Fetch", 12, fetching(FINAL_EPOCH))
    _run_until(world, lambda: encoded)
    assert not answer.done
    assert holds(world) == WITH_RECORDS
    answer.waiting.cancel()
    assert not holds(world)


def test_a_connection_that_is_lost_in_any_turn_of_its_fetch_keeps_no_records(world: Turns) -> None:
    for index in range(0, COUNT, COUNT // WITH_RECORDS):
        produce(world, index)
    turns, is_answered = 0, False
    while not is_answered:
        answer, left = world.send("Fetch", 12, fetching(FINAL_EPOCH)), iter(range(turns))
        _run_until(world, lambda: next(left, None) is None)  # noqa: B023
        is_answered = answer.done
        answer.waiting.cancel()
        assert not holds(world), f"in turn {turns}"
        turns += 1
    assert turns > COUNT // STEP


def limit(world: Turns, limited: float, key: str = "consumer_byte_rate") -> None:
    """Limits the rate at which clients fetch."""
    q = m.AlterClientQuotasRequest
    entity = q.EntityData(entity_type="user", entity_name=None)
    entry = q.EntryData(entity=[entity], ops=[q.OpData(key=key, value=limited)])
    assert not world.ask("AlterClientQuotas", 1, q(entries=[entry])).entries[0].error_code


def test_no_step_of_a_fetch_of_a_client_with_a_quota_does_something_for_every_partition() -> None:
    count = 3 * k01_fetch.LARGE
    world = _world(count)
    limit(world, 1e12)
    assert longest_step_of(world, "Fetch", 12, fetching(FINAL_EPOCH, count=count, max_wait_ms=0)) < 60 * count


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_the_size_of_a_large_reply_counts_for_a_quota(
    world: Turns, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(0, COUNT, COUNT // WITH_RECORDS):
        produce(world, index)
    limit(world, 1e12)
    sizes: list[int] = []
    fetched = Usage.fetched

    def noted(usage: Usage, size_bytes: int) -> int:
        sizes.append(size_bytes)
        return fetched(usage, size_bytes)

    monkeypatch.setattr(Usage, "fetched", noted)
    answer = world.send("Fetch", 12, fetching(epoch))
    world.pass_ms(1)
    found = {one.partition_index: bytes(one.records) for one in answer.reply.responses[0].partitions}
    assert len([index for index, records in found.items() if records]) == WITH_RECORDS
    head = len(codec.build("FetchResponse", 12, answer.reply))
    assert sizes == [LENGTH_BYTES + head]
    assert not holds(world)


def test_the_time_in_which_a_large_fetch_waits_does_not_count_for_a_quota(world: Turns) -> None:
    """The clock for work is the world's, in which only waiting takes time."""
    limit(world, 0.01, "request_percentage")
    answer = world.send("Fetch", 12, fetching(FINAL_EPOCH))
    world.pass_ms(WAIT_MS - 1)
    assert not answer.done
    world.pass_ms(1)
    assert answer.reply.throttle_time_ms == 0


def test_a_large_reply_that_a_quota_holds_back_has_no_records(world: Turns) -> None:
    session_id = world.ask("Fetch", 12, fetching(INITIAL_EPOCH, max_wait_ms=0)).session_id
    for index in range(0, COUNT, COUNT // WITH_RECORDS):
        produce(world, index)
    limit(world, 1)
    answer = world.ask("Fetch", 12, fetching(FINAL_EPOCH))
    assert (answer.throttle_time_ms > 0, answer.responses) == (True, [])
    assert not holds(world)
    limit(world, 1e12)
    again = world.ask("Fetch", 12, fetching(1, session_id, count=0))
    assert len(again.responses[0].partitions) == WITH_RECORDS


def test_a_session_that_ends_while_partitions_are_put_into_it_is_not_found(world: Turns) -> None:
    session_id = world.ask("Fetch", 12, fetching(INITIAL_EPOCH, max_wait_ms=0)).session_id
    answer = world.send("Fetch", 12, fetching(1, session_id))
    sessions = world.broker.extensions["fetch_sessions"]
    _run_until(world, lambda: sessions.get(session_id).epoch == 2)
    sessions.remove(sessions.get(session_id))
    world.pass_ms(1)
    assert answer.reply.error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.bytes == 0


def test_a_session_whose_connection_is_lost_while_partitions_are_put_into_it_stays(world: Turns) -> None:
    session_id = world.ask("Fetch", 12, fetching(INITIAL_EPOCH, count=1, max_wait_ms=0)).session_id
    answer = world.send("Fetch", 12, fetching(1, session_id))
    sessions = world.broker.extensions["fetch_sessions"]
    session = sessions.get(session_id)
    _run_until(world, lambda: len(session.entries) > 1)
    answer.waiting.cancel()
    assert 1 < len(session.entries) < COUNT
    assert sessions.bytes == session.bytes
    world.pass_ms(100)
    assert not world.ask("Fetch", 12, fetching(2, session_id, count=0, max_wait_ms=0)).error_code
