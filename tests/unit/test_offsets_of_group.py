"""The committed offsets of a group, which are kept together where they are committed together."""

from __future__ import annotations

import random

import pytest
from ottla.coordinator.group.format import NO_EXPIRY, CommitKeys, Commits, Key, Stored
from ottla.coordinator.group.offsets.long_commits import LongCommits
from ottla.coordinator.group.offsets.of_group import TOGETHER_MAX, OffsetsOfGroup
from ottla.coordinator.timeline import Timeline

from ..support.seeds import seeds

TOPIC_ID = bytes(16)
SETS = (range(4), range(2, 7), range(1), (5, 3, 5, 4), range(8, 8 + TOGETHER_MAX + 1), (6, 2, 3, 5, 4))
KEPT = [CommitKeys("g", topic, TOPIC_ID, of) for of in SETS for topic in ("t", "u")]


def commits_of(chance: random.Random) -> Commits:
    of = chance.choice(KEPT)
    if chance.random() < 0.5:  # as of another connection
        of = CommitKeys("g", of.keys[0][0], TOPIC_ID, of.partitions)
    made = of, chance.randrange(99), [chance.randrange(99) for _ in of.keys], [chance.randrange(9) for _ in of.keys]
    return Commits(*made) if chance.random() < 0.9 else LongCommits(*made, ["m"] * len(of.keys), NO_EXPIRY)


def one_of(chance: random.Random, offset: int) -> tuple[Key, Stored]:
    key = chance.choice("tu"), chance.randrange(9)
    return key, (offset, chance.randrange(99), 0, "", 0, TOPIC_ID, NO_EXPIRY)


def put(model: dict[Key, Stored], values: dict[Key, Stored]) -> None:
    model.update({at: one for at, one in values.items() if at not in model or model[at][0] < one[0]})


@pytest.mark.parametrize("seed", seeds(200, quick=40))
def test_they_are_those_that_one_by_one_would_be_there(seed: int) -> None:
    """Against a dict of single commits, and copies of it, one for each snapshot."""
    chance = random.Random(seed)
    timeline = Timeline()
    offsets, now = OffsetsOfGroup(timeline), dict[Key, Stored]()
    timeline.snapshot(0)
    before: dict[int, dict[Key, Stored]] = {0: {}}
    offset = 0
    for _ in range(80):
        offset += 100
        action = chance.random()
        if action < 0.5:
            commits = commits_of(chance)
            offsets.put_all(offset, commits)
            now.update(commits.stored(offset))
        elif action < 0.65:
            key, stored = one_of(chance, chance.choice((offset, offset - 1000)))
            offsets.put(key, stored)
            put(now, {key: stored})
        elif action < 0.75:
            ended = dict(one_of(chance, chance.choice((offset, offset - 1000))) for _ in range(3))
            offsets.put_each(ended)
            put(now, ended)
        elif action < 0.85:
            key, _ = one_of(chance, offset)
            offsets.pop(key)
            now.pop(key, None)
        elif action < 0.95:
            timeline.snapshot(offset)
            before[offset] = dict(now)
        else:
            back = chance.choice([at for at in before if at in timeline.offsets])
            timeline.revert(back)
            now, before = dict(before[back]), {at: one for at, one in before.items() if at <= back}
        assert offsets.at() == now
        assert list(offsets) == list(offsets.at())
        assert len(offsets) == len(now)
        whole = {one for one in offsets._each.values() if isinstance(one, CommitKeys)}
        assert set(offsets._together) == whole, "nothing is kept of what was taken apart"
        keys = {*now, ("t", 0), ("u", 99)}
        assert {key: offsets.get(key) for key in sorted(keys) if key in offsets} == now
        at = chance.choice(sorted(before))
        assert offsets.at(at) == before[at], "as of an earlier offset"
        assert {key: one for key in sorted(keys) if (one := offsets.get(key, at)) is not None} == {
            key: one for key, one in before[at].items() if key in keys
        }


def test_a_request_like_the_last_one_changes_one_entry_whatever_it_commits() -> None:
    """What its partitions have in memory stays as it is."""
    timeline = Timeline()
    offsets = OffsetsOfGroup(timeline)
    of = CommitKeys("g", "t", TOPIC_ID, range(TOGETHER_MAX))
    offsets.put_all(0, Commits(of, 0, range(64), [0] * 64))
    timeline.snapshot(64)
    offsets.put_all(64, Commits(of, 0, range(64), [0] * 64))
    assert sum(map(len, timeline._snapshots[-1].before.values())) == 1
    assert offsets["t", 63] == (127, 63, 0, "", 0, TOPIC_ID, NO_EXPIRY)
