"""Groups under trouble, as the lab shows them: every view can be made after every step, and the timelines that were
noted live are those of the log.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest
from ottla.broker.group.chronicle import Chronicle
from ottla.broker.lab import group_views
from ottla.coordinator.group.events import words_of
from ottla.coordinator.group.story import Stories
from ottla.protocol import opening
from ottla.protocol.records import BatchAt
from ottla.storage.file_slice import read_whole

from ..support.world import told_with
from .groups import Sim

EVENTS_MAX = 100_000
T = TypeVar("T")


def made(steps: Generator[None, None, T]) -> T:
    """What a view returns after all of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


class Viewed(Sim):
    """A history that the lab looks at."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        groups = self.world.broker.groups
        self.chronicle = groups.chronicle = Chronicle(groups, EVENTS_MAX)
        self.chronicle.follow(self.host)

    def check(self) -> None:
        super().check()
        if self.host.runtime.state.value != "active":
            return
        for group_id in list(self.shard.groups):
            found = made(group_views.group(self.world.broker, group_id))
            members = [one["member"] for one in found["members"]]
            waits = [(one["member"], one["action"]) for one in found["waits"]]
            assert len(members) == len(set(members))
            assert {name for name, _ in waits if name is not None} <= {*members, *found["pending"]}
            assert len(waits) == len(set(waits)), waits
            assert all(one["lag"] is not None for one in found["offsets"])

    def in_log(self) -> list[tuple[str, str]]:
        """What the log of the groups tells."""
        stories = Stories(self.world.broker.groups.image.topic_name)
        found = []
        for segment, batch in self.host.partition.open_log().batches_from(0):
            assert batch.header is not None
            if not batch.header.is_control:
                chunks = opening.contents(read_whole(segment, batch), BatchAt(0, batch.header))
                told = stories.feed([record for some in chunks for record in some])
                found += [(group, words_of(event)) for group, event in told]
        return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_views_and_timelines_hold_under_trouble(seed: int) -> None:
    with told_with(seed):
        sim = Viewed(seed)
        sim.run(60)
        in_log = sim.in_log()
        assert in_log
        for group_id in {group for group, _ in in_log}:
            live = [one["words"] for one in sim.chronicle.events(group_id, 0, EVENTS_MAX) if one["source"] == "log"]
            assert live == [words for group, words in in_log if group == group_id]
