"""The endpoints of the members of a streams group, with their partitions: each is computed again when it changes."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.group.streams import known_partitions
from ottla.protocol import messages as m

from ..support.group_world import world
from ..support.stories.streams import R, part, tasks, topology
from ..support.topic_world import create
from ..support.world import World

MEMBERS = 8


@pytest.fixture
def w() -> World:
    return world(2 * MEMBERS)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What members have, each time that their partitions are computed."""
    calls: list[object] = []
    real = known_partitions._held_by

    def held_by(*arguments: Any) -> Any:
        calls.append(arguments[0])
        return real(*arguments)

    monkeypatch.setattr(known_partitions, "_held_by", held_by)
    return calls


def beat(w: World, number: int, epoch: int, has: list[int] | None = None) -> Any:
    """A heartbeat of a member that knows no endpoints."""
    request = R(group_id="app", member_id=f"m{number}", member_epoch=epoch, endpoint_information_epoch=-1)
    if epoch == 0:
        request.rebalance_timeout_ms, request.process_id = 100_000, f"p{number}"
        request.user_endpoint = m.StreamsGroupHeartbeatRequest.Endpoint(host="h", port=number)
        request.topology = topology(part("0", "t"))
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    if has is not None:
        request.active_tasks, request.standby_tasks, request.warmup_tasks = tasks(s0=has), [], []
    return w.ask("StreamsGroupHeartbeat", 1, request)


def told(reply: Any) -> dict[int, list[int]]:
    return {
        one.user_endpoint.port: [number for each in one.active_partitions for number in each.partitions]
        for one in reply.partitions_by_user_endpoint
    }


def joined(w: World) -> dict[int, int]:
    """Lets all join and get their tasks; returns their epochs."""
    epochs = {number: beat(w, number, 0).member_epoch for number in range(MEMBERS)}
    has: dict[int, list[int]] = {}
    for number in 4 * [*range(MEMBERS)]:
        reply = beat(w, number, epochs[number], has.get(number, []))
        epochs[number] = reply.member_epoch
        if reply.active_tasks is not None:
            has[number] = [each for one in reply.active_tasks for each in one.partitions]
    assert sorted(task for of in has.values() for task in of) == list(range(2 * MEMBERS))
    return epochs


def test_members_that_ask_again_are_told_the_same_without_work(w: World, computed: list[object]) -> None:
    epochs = joined(w)
    first = told(beat(w, 0, epochs[0]))
    assert sorted(number for of in first.values() for number in of) == list(range(2 * MEMBERS))
    computed.clear()
    assert all(told(beat(w, number, epoch)) == first for number, epoch in epochs.items())
    assert computed == []


def test_what_a_member_gives_up_is_told_to_all(w: World, computed: list[object]) -> None:
    epochs = joined(w)
    beat(w, 0, epochs[0])
    computed.clear()
    beat(w, MEMBERS, 0)
    for number in list(epochs):
        epochs[number] = beat(w, number, epochs[number]).member_epoch
    left = told(beat(w, 0, epochs[0]))
    assert sorted(map(len, left.values())) == [0, 1, *[2] * (MEMBERS - 1)], "one gave up a task for the new member"
    assert len(computed) == 2, "of the new member, and of the one that gave up a task"


def test_a_change_of_the_metadata_has_all_computed_again(w: World, computed: list[object]) -> None:
    epochs = joined(w)
    first = told(beat(w, 0, epochs[0]))
    computed.clear()
    create(w, "another")
    assert told(beat(w, 0, epochs[0])) == first
    assert len(computed) == MEMBERS
