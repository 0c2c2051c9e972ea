"""The timers of a shard: what the heap holds, and what is due."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest
from ottla.coordinator.journal import Journal
from ottla.coordinator.timers import OLD_MAX, Timer, Timers

from ..support.seeds import seeds


def test_cancelled_timers_leave_nothing() -> None:
    """Member ids that are given out have a timer each, of which most are cancelled."""
    timers = Timers()
    for number in range(10_000):
        timers.set(Timer(("heartbeat", number), 300_000, lambda now: None))
        timers.cancel(("heartbeat", number - 10))
        assert len(timers._heap) <= 2 * len(timers) + OLD_MAX
        assert len(timers._queued) <= len(timers._heap)
    assert [timer.key for timer in timers.due(300_000)] == [("heartbeat", number) for number in range(9_990, 10_000)]


@pytest.mark.parametrize("seed", seeds(30, quick=10))
def test_timers_are_due_in_time_whatever_was_cancelled_or_taken_back(seed: int) -> None:
    chance, journal = random.Random(seed), Journal()
    timers = Timers(journal)
    model: dict[Hashable, int] = {}
    now = 0
    for _ in range(300):
        before, journal.is_open = dict(model), True
        for _ in range(chance.randrange(60)):
            key = chance.randrange(200)
            if chance.random() < 0.6:
                timers.cancel(key)
                model.pop(key, None)
            elif chance.random() < 0.2:
                delays = [(one, chance.randrange(-5, 500)) for one in chance.choices(range(200), k=9)]
                assert timers.move_each(now, delays) == [one for one in delays if one[0] not in model]
                model.update({one: now + max(0, delay) for one, delay in delays if one in model})
            elif chance.random() < 0.5:
                deadline_ms = now + chance.randrange(1, 500)
                assert timers.move(key, deadline_ms) == (key in model)
                if key in model:
                    model[key] = deadline_ms
            else:
                model[key] = now + chance.randrange(1, 500)
                timers.set(Timer(key, model[key], lambda now: None))
        if chance.random() < 0.5:
            journal.revert()
            model = before
        else:
            journal.close()
        now += chance.randrange(5)
        due = [key for key, deadline_ms in model.items() if deadline_ms <= now]
        found = timers.due(now)
        assert {timer.key for timer in found} == set(due)
        for timer in found:
            assert timers.is_due(timer, now)
            if chance.random() < 0.2:  # by what another one caused that was due
                model[timer.key] = now + 100
                timers.move(timer.key, now + 100)
            else:
                timers.cancel(timer.key)
                del model[timer.key]
            assert not timers.is_due(timer, now)
        assert len(timers) == len(model)
