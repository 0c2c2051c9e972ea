"""Setting and deleting the start offsets of a share group in the lab."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.group_world import beat as consumer_beat
from ..support.lab import LabWorld
from ..support.share_world import Consumer, beat, create, produce, ready
from ..support.world import World

OFFSETS = "PUT /v1/groups/q/offsets"
DELETE = "DELETE /v1/groups/q/offsets"


@pytest.fixture
def site() -> LabWorld:
    """A share group without members that has taken two of six records."""
    w, consumer = ready(6)
    assert consumer.got() == [(0, 5, 1)]
    assert consumer.acknowledge((0, 1, 1)) == 0
    assert consumer.fetch(epoch=-1).error_code == 0
    consumer.lose_connection()
    leave(LabWorld(w))
    return LabWorld(w)


def leave(site: LabWorld) -> None:
    assert beat(site.world, "m", -1).error_code == 0


def start(site: LabWorld) -> int | None:
    """What clients are told; None without an offset."""
    r = m.DescribeShareGroupOffsetsRequest
    asked = r(groups=[r.DescribeShareGroupOffsetsRequestGroup(group_id="q", topics=None)])
    topics = site.world.ask("DescribeShareGroupOffsets", 1, asked).groups[0].topics
    return topics[0].partitions[0].start_offset if topics else None


def shown(site: LabWorld) -> list[Any]:
    return [(one["start_offset"], one["lag"]) for one in site.ask("GET /v1/groups/q")["share_partitions"]]


@pytest.mark.parametrize(
    ("wanted", "offset"),
    [({"to": "earliest"}, 0), ({"to": "latest"}, 6), ({"offset": 4}, 4), ({"offset": 99}, 6), ({"by": -1}, 1)],
)
def test_the_plan_sets_nothing_and_the_same_without_it_does(site: LabWorld, wanted: Any, offset: int) -> None:
    plan = site.ask(OFFSETS, topic="t", plan=True, **wanted)
    assert plan == {
        "group": "q",
        "is_plan": True,
        "offsets": [{"topic": "t", "partition": 0, "before": 2, "committed_offset": offset}],
    }
    assert (start(site), shown(site)) == (2, [(2, 4)])
    assert site.ask(OFFSETS, topic="t", **wanted) == {**plan, "is_plan": False}
    assert (start(site), shown(site)) == (offset, [(offset, 6 - offset)])


def test_members_begin_where_the_group_was_set(site: LabWorld) -> None:
    site.ask(OFFSETS, topic="t", offset=1)
    beat(site.world, "n")
    site.world.pass_ms(1000)
    assert Consumer(site.world, "n").got() == [(1, 5, 1)]


def test_a_topic_that_the_group_never_read_can_be_set(site: LabWorld) -> None:
    create(site.world, "new")
    produce(site.world, b"a", b"b", topic="new")
    done = site.ask(OFFSETS, topic="new", to="latest")
    assert done["offsets"] == [{"topic": "new", "partition": 0, "before": None, "committed_offset": 2}]
    assert (2, 0) in shown(site)


def test_a_topic_is_forgotten(site: LabWorld) -> None:
    status, plan = site.reply(DELETE, query="topic=t&plan=true")
    assert (status, plan) == (
        200,
        {"group": "q", "is_plan": True, "offsets": [{"topic": "t", "partition": 0, "before": 2}]},
    )
    assert start(site) == 2
    assert site.reply(DELETE, query="topic=t") == (200, {**plan, "is_plan": False})
    assert (start(site), shown(site)) == (None, [])
    assert site.refused(DELETE, query="topic=t") == (404, "the group q has no offsets of topic t")


def test_a_group_with_members_is_refused(site: LabWorld) -> None:
    beat(site.world, "n")
    for at, body, query in ((OFFSETS, {"topic": "t", "to": "earliest"}, ""), (DELETE, None, "topic=t")):
        assert site.refused(at, body, query) == (409, "the group q has members: stop them first")
    assert start(site) == 2


def test_a_broker_without_a_coordinator_has_no_group_to_delete_from() -> None:
    site = LabWorld(World())
    create(site.world, "t")
    assert site.refused("DELETE /v1/groups/absent/offsets", query="topic=t") == (404, "group absent does not exist")


def test_what_cannot_be_deleted_says_why(site: LabWorld) -> None:
    assert site.refused(DELETE, query="topic=absent") == (404, "topic absent does not exist")
    assert site.refused("DELETE /v1/groups/absent/offsets", query="topic=t") == (404, "group absent does not exist")
    consumer_beat(site.world, "one", 0, "t")
    status, words = site.refused("DELETE /v1/groups/g/offsets", query="topic=t")
    assert (status, words) == (409, "Group g is not a share group.")
