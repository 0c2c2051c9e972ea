"""What is parked is in proportion to what waits: requests whose time is over, or whose client went, leave nothing."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from ottla.broker.group.coordinators import TOPIC_NAME as OFFSETS
from ottla.coordinator.batch import Parked
from ottla.coordinator.parked import Bugs, ParkedReplies
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors

from ..support.ask import batch, produce_message
from ..support.connected import ConnectedWorld
from ..support.group_world import code, commit
from ..support.transaction_world import hold, partition, world
from ..support.world import World

TIMES = 50


def markers(w: World, topic: str, producer_id: int = 7) -> Any:
    r = m.WriteTxnMarkersRequest
    one = r.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
    marker = r.WritableTxnMarker(producer_id=producer_id, producer_epoch=0, transaction_result=False, topics=[one])
    return w.send("WriteTxnMarkers", 1, r(markers=[marker]))


@pytest.mark.parametrize("topic", ["t", OFFSETS])
def test_markers_that_waited_too_long_are_not_parked_any_more(topic: str) -> None:
    w = world(request_timeout_ms="1000")
    host = w.broker.groups.hosts[0]
    hold(w, topic)
    answers = [markers(w, topic) for _ in range(TIMES)]
    held = partition(w, topic).parked if topic == "t" else host.runtime._parked
    assert len(held) == TIMES
    w.pass_ms(1000)
    for answer in answers:
        assert answer.reply.markers[0].topics[0].partitions[0].error_code == Errors.REQUEST_TIMED_OUT
    assert len(partition(w, topic).parked) == len(host.runtime._parked) == 0
    hold(w, topic, "immediate")
    w.pass_ms(1)
    assert markers(w, topic).reply.markers[0].topics[0].partitions[0].error_code == 0


def test_commits_that_waited_too_long_are_not_parked_any_more() -> None:
    w = world(offsets_commit_timeout_ms="1000")
    runtime = w.broker.groups.hosts[0].runtime
    hold(w, OFFSETS)
    answers = [commit(w, offset) for offset in range(TIMES)]
    assert runtime.describe(w.schedule.now_ms())["parked_replies"] == len(runtime._parked) == TIMES
    w.pass_ms(500)
    later = commit(w, 1)
    w.pass_ms(500)
    assert {code(answer) for answer in answers} == {Errors.COORDINATOR_NOT_AVAILABLE}
    assert len(runtime._parked) == 1
    hold(w, OFFSETS, "immediate")
    assert code(later) == 0
    assert len(runtime._parked) == 0


def test_waits_for_a_high_watermark_that_were_cancelled_are_not_parked_any_more() -> None:
    w = world()
    hold(w, "t")
    part = partition(w)
    for _ in range(TIMES):
        part.wait_for(1).cancel()
    assert len(part.parked) == 0
    waiting = [part.wait_for(1) for _ in range(TIMES)]
    for one in waiting[: TIMES // 2 + 1]:
        one.cancel()
    assert len(part.parked) == TIMES // 2 - 1


def test_a_request_whose_client_went_is_not_counted_as_waiting() -> None:
    w = ConnectedWorld()
    client = w.connect()
    c = m.CreateTopicsRequest
    topic = c.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    client.ask("CreateTopics", 7, c(topics=[topic], timeout_ms=1000))
    hold(w, "t")
    number = client.send("Produce", 9, produce_message("t", batch(b"x")))
    times = w.broker.metrics.apis[0, 9]
    assert (times.parked, client.ids.count(number)) == (1, 0)
    client.lose()
    assert times.parked == 0


@pytest.mark.parametrize("seed", range(50))
def test_parked_writes_are_answered_in_their_order_or_at_their_deadlines(seed: int) -> None:
    chance, bugs = random.Random(seed), Bugs()
    parked = ParkedReplies(bugs)
    answered: list[tuple[int, bool]] = []
    model: dict[int, Parked] = {}
    end = committed = now = 0
    for number in range(200):
        answered.clear()
        action = chance.randrange(4)
        if action == 0:
            end += chance.randrange(2)
            deadline = now + chance.randrange(20) if chance.random() < 0.8 else None
            on_done = partial(lambda number, reply, error: answered.append((number, error is None)), number)
            model[number] = Parked("w", on_done, now, deadline)
            parked.park([model[number]], end)
        elif action == 1:
            committed = chance.randint(committed, end)
            parked.release(committed)
            due = [one for one, write in model.items() if write.offset <= committed]
            assert answered == [(one, True) for one in due]
            model = {one: write for one, write in model.items() if one not in due}
        elif action == 2:
            now += chance.randrange(10)
            parked.time_out(parked.late(now), ApiError(Errors.REQUEST_TIMED_OUT))
            due = [one for one, write in model.items() if write.deadline_ms is not None and write.deadline_ms <= now]
            assert sorted(answered) == [(one, False) for one in due]
            model = {one: write for one, write in model.items() if one not in due}
        elif model:
            parked.forget(model.pop(chance.choice(list(model))))
        assert list(parked.waiting()) == list(model.values())
        assert len(parked) <= 2 * len(model)
        deadlines = [write.deadline_ms for write in model.values() if write.deadline_ms is not None]
        assert parked.next_deadline_ms() == min(deadlines, default=None)
    assert bugs.count == 0
