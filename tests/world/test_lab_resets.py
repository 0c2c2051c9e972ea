"""Setting the committed offsets of a group in the lab. Start offsets of share groups are in test_lab_share_resets."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.later import Later
from ottla.protocol import messages as m

from ..support.group_world import beat, commit, world
from ..support.lab import LabWorld
from ..support.topic_world import create
from ..support.world import World


@pytest.fixture
def site() -> LabWorld:
    """A topic `t` with four partitions; ten records in the first one."""
    found = LabWorld(world())
    for number in range(10):
        found.ask("POST /v1/records/t", value=str(number), timestamp=1000 * number)
    return found


def committed(site: LabWorld, group: str = "s") -> dict[int, int]:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(group_id=group, topics=None)
    reply = site.world.ask("OffsetFetch", 9, r(groups=[asked])).groups[0]
    return {one.partition_index: one.committed_offset for topic in reply.topics for one in topic.partitions}


@pytest.mark.parametrize(
    ("wanted", "offset"),
    [
        ({"to": "earliest"}, 0),
        ({"to": "latest"}, 10),
        ({"offset": 4}, 4),
        ({"offset": 99}, 10),
        ({"timestamp": 2500}, 3),
        ({"timestamp": 99_000}, 10),
        ({"by": -2}, 3),
        ({"by": 3}, 8),
        ({"by": -99}, 0),
    ],
)
def test_the_committed_offset_of_a_partition_is_set(site: LabWorld, wanted: Any, offset: int) -> None:
    commit(site.world, 5)
    done = site.ask("PUT /v1/groups/s/offsets", topic="t", partition=0, **wanted)
    assert done["offsets"] == [{"topic": "t", "partition": 0, "before": 5, "committed_offset": offset}]
    assert committed(site) == {0: offset}


def test_a_new_group_begins_with_offsets_in_all_partitions(site: LabWorld) -> None:
    done = site.ask("PUT /v1/groups/new/offsets", topic="t", to="latest")
    assert [(one["before"], one["committed_offset"]) for one in done["offsets"]] == [
        *[(None, 10)],
        *[(None, 0)] * 3,
    ]
    assert committed(site, "new") == {0: 10, 1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("group", ["s", "new"])
def test_offsets_are_set_while_time_stands_still(site: LabWorld, group: str) -> None:
    commit(site.world, 5)
    answer = site.send(f"PUT /v1/groups/{group}/offsets", {"topic": "t", "to": "latest"})
    site.world.pass_ms(0)
    assert isinstance(answer, Later)
    assert answer.done
    assert committed(site, group)[0] == 10


def test_the_first_group_of_a_broker_begins_with_offsets() -> None:
    site = LabWorld(World())
    create(site.world, "t", 1)
    site.ask("POST /v1/records/t", value="one")
    done = site.ask("PUT /v1/groups/first/offsets", topic="t", to="latest")
    assert done["offsets"] == [{"topic": "t", "partition": 0, "before": None, "committed_offset": 1}]
    assert committed(site, "first") == {0: 1}


def test_a_group_with_members_is_refused(site: LabWorld) -> None:
    beat(site.world, "one", 0, "t")
    status, words = site.refused("PUT /v1/groups/g/offsets", {"topic": "t", "to": "earliest"})
    assert (status, "has members" in words) == (409, True)


def test_a_plan_sets_nothing(site: LabWorld) -> None:
    commit(site.world, 5)
    done = site.ask("PUT /v1/groups/s/offsets", topic="t", partition=0, by=2, plan=True)
    assert done == {
        "group": "s",
        "is_plan": True,
        "offsets": [{"topic": "t", "partition": 0, "before": 5, "committed_offset": 7}],
    }
    assert committed(site) == {0: 5}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"topic": "absent", "to": "earliest"}, 404, "topic absent does not exist"),
        ({"topic": "t", "partition": 9, "to": "earliest"}, 404, "partition t-9 does not exist"),
        ({"topic": "t"}, 400, "exactly one of to, offset, timestamp and by"),
        ({"topic": "t", "to": "latest", "offset": 1}, 400, "exactly one of to, offset, timestamp and by"),
    ],
)
def test_what_is_refused_says_why(site: LabWorld, body: Any, status: int, words: str) -> None:
    found, text = site.refused("PUT /v1/groups/s/offsets", body)
    assert found == status
    assert words in text
