"""Which fetch session is evicted for a new one (KIP-227)."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.broker.replica.fetch_sessions import NO_SESSION, Entry, Fetch, SessionCache
from ottla.broker.replica.partitions import Partitions
from ottla.broker.turn import Turn

EVICTION_MS = 1000


class Entries(dict[Any, Any]):
    """The entries of a session; counts how often their number is asked."""

    asked = 0

    def __len__(self) -> int:
        Entries.asked += 1
        return super().__len__()


def fetch(size: int) -> Fetch:
    schedule: Any = SimpleNamespace(monotonic_ms=lambda: 0)
    image: Any = SimpleNamespace()
    made = Fetch(Turn(schedule), Partitions(image, image), False)
    resize(made, size)
    return made


def resize(session: Fetch, size: int) -> None:
    keys = [("t", index) for index in range(size)]
    session.entries = Entries({key: Entry(key, "t", bytes(16), 0) for key in keys})
    session.bytes = size


def victims(cache: SessionCache, newcomer: Fetch, now_ms: int) -> list[Fetch]:
    """The sessions of which one is evicted for a newcomer to a full cache, by Kafka's rules."""
    sessions = list(cache.sessions.values())
    if now_ms - sessions[0].used_ms > EVICTION_MS:
        return sessions[:1]
    established = [one for one in sessions if one.used_ms - one.created_ms > EVICTION_MS]
    least = min((len(one.entries) for one in established), default=len(newcomer.entries))
    return [one for one in established if len(one.entries) == least < len(newcomer.entries)]


@pytest.mark.parametrize("seed", range(20))
def test_a_session_is_evicted_by_its_age_and_size(seed: int) -> None:
    chance = random.Random(seed)
    cache = SessionCache(5, EVICTION_MS, random.Random(seed))
    now, evicted = 0, 0
    for _ in range(400):
        now += chance.choice((0, 50, 300))
        known = list(cache.sessions.values())
        if known and chance.random() < 0.75:
            session = chance.choice(known)
            cache.touch(session, now)
            if chance.random() < 0.3:
                resize(session, chance.randrange(5))
            cache.changed(session)
            continue
        newcomer = fetch(chance.randrange(1, 6))
        may_go = victims(cache, newcomer, now) if len(known) == 5 else []
        cache.add(newcomer, now)
        gone = [one for one in known if one.id == NO_SESSION]
        assert len(gone) == bool(may_go)
        assert not gone or gone[0] in may_go
        assert (newcomer.id != NO_SESSION) == (len(known) < 5 or bool(may_go))
        evicted += len(gone)
    assert evicted == cache.evictions > 5


def test_a_full_cache_does_not_look_at_all_sessions() -> None:
    cache = SessionCache(1000, EVICTION_MS, random.Random(1))
    made = [fetch(2) for _ in range(1000)]
    for one in made:
        cache.add(one, 0)
    for now in (EVICTION_MS, 2 * EVICTION_MS):
        for one in made:
            cache.touch(one, now)
            cache.changed(one)
    Entries.asked = 0
    for size in (1, 3):
        cache.add(fetch(size), 2 * EVICTION_MS)
    assert cache.evictions == 1
    assert Entries.asked < 20
