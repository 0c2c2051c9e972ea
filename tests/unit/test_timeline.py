"""The time line of a shard's state, and its timers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.coordinator.timeline import Timeline, TimelineDict
from ottla.coordinator.timers import Timer, Timers

from ..support.seeds import seeds

# timeline


@pytest.mark.parametrize("seed", seeds(300, quick=60))
def test_a_timeline_is_a_list_of_copies(seed: int) -> None:
    """Against the simplest model: a full copy of two dicts at every snapshot."""
    chance = random.Random(seed)
    timeline = Timeline()
    dicts = [TimelineDict[int, int](timeline), TimelineDict[int, int](timeline)]
    timeline.snapshot(0)
    model: dict[int, list[dict[int, int]]] = {0: [{}, {}]}
    offset = 0
    for _ in range(60):
        action = chance.random()
        if action < 0.6:
            one = chance.choice(dicts)
            key = chance.randrange(5)
            how = chance.random()
            if how < 0.2:
                one.pop(key)
            elif how < 0.3:
                one.remove_all([present for present in one if chance.random() < 0.5])
            elif how < 0.6:
                one.update({chance.randrange(5): chance.randrange(100) for _ in range(3)})
            else:
                one[key] = chance.randrange(100)
        elif action < 0.8:
            offset += chance.randint(1, 3)
            timeline.snapshot(offset)
            model[offset] = [dict(d.items()) for d in dicts]
        elif action < 0.9:
            committed = chance.choice(timeline.offsets)
            timeline.commit(committed)
            model = {o: m for o, m in model.items() if o >= committed}
        else:
            offset = chance.choice(timeline.offsets)
            timeline.revert(offset)
            model = {o: m for o, m in model.items() if o <= offset}
            assert [dict(d.items()) for d in dicts] == model[offset]
        for known in timeline.offsets:
            for number, one in enumerate(dicts):
                assert dict(one.items(as_of=known)) == model[known][number], (seed, known)
                assert all(one.get(key, as_of=known) == model[known][number].get(key) for key in range(5))


def test_a_snapshot_costs_what_changed_and_not_what_exists() -> None:
    timeline = Timeline()
    big = TimelineDict[int, int](timeline)
    for n in range(100_000):
        big[n] = n
    timeline.snapshot(1)
    big[5] = 0
    assert sum(len(before) for before in timeline._snapshots[-1].before.values()) == 1


# timers


def test_timers_fire_in_order_once_and_move() -> None:
    timers = Timers()
    timers.set(Timer("a", 100, lambda now: None))
    timers.set(Timer("b", 50, lambda now: None))
    timers.set(Timer("c", 70, lambda now: None))
    timers.set(Timer("b", 500, lambda now: None))  # a heartbeat
    timers.set(Timer("c", None))  # cancelled

    def fired(now_ms: int) -> list[Any]:
        found = timers.due(now_ms)
        for timer in found:
            timers.set(Timer(timer.key, None))  # as the write does that runs it
        return [timer.key for timer in found]

    assert fired(99) == []
    assert fired(100) == ["a"]
    assert fired(499) == []
    assert fired(500) == ["b"]
    assert len(timers) == 0
    timers.set(Timer("d", 900, lambda now: None))
    timers.set(Timer("d", 600, lambda now: None))  # sooner
    assert timers.next_deadline_ms() == 600
    assert fired(600) == ["d"]
    assert fired(900) == []
