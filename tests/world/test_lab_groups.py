"""Groups as the lab shows them: who waits for whom and until when, for each kind of group, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab import group_views
from ottla.broker.lab.http import Response
from ottla.coordinator.group import views
from ottla.coordinator.group.consumer_protocol import build_assignment
from ottla.coordinator.group.group import Group
from ottla.coordinator.group.views import GroupSummaryView

from ..support import share_world
from ..support.group_world import alive, beat, commit, given, join, owned, policy, stable, sync, world
from ..support.lab import LabWorld
from ..support.world import World

ALL = build_assignment({"t": [0, 1, 2, 3]}, 0)


def shown(w: World, group: str = "g") -> Any:
    return LabWorld(w).ask(f"GET /v1/groups/{group}")


def waits(w: World, group: str = "g") -> list[tuple[str | None, str]]:
    return [(one["member"], one["action"]) for one in shown(w, group)["waits"]]


def members(found: Any) -> dict[str, Any]:
    return {one["member"]: one for one in found["members"]}


def left(timers: list[Any], name: str) -> int:
    (found,) = [one["remaining_ms"] for one in timers if one["timer"] == name]
    return int(found)


# classic groups


def test_a_rebalance_waits_for_the_members_that_have_not_joined_again() -> None:
    w = world()
    first = stable(w, ALL)
    found = shown(w)
    assert (found["state"], found["epoch"], found["assignor"], found["leader"]) == ("Stable", 1, "range", first)
    assert found["waits"] == []
    assert members(found)[first]["assigned"] == [{"topic": "t", "partitions": [0, 1, 2, 3]}]
    assert members(found)[first]["topics"] == ["t"]
    second = join(w, version=3)
    w.pass_ms(400)
    found = shown(w)
    assert (found["state"], [one["state"] for one in found["members"]]) == (
        "PreparingRebalance",
        ["must join", "joined"],
    )
    assert waits(w) == [(first, "join")]
    assert found["waits"][0]["remaining_ms"] == left(found["timers"], "rebalance") == 19_600
    assert left(members(found)[first]["timers"], "session") == 9_600
    again = join(w, first, version=3)
    assert second.done
    assert again.done
    assert waits(w) == [(first, "sync"), (second.reply.member_id, "sync")]
    waiting = sync(w, second.reply.member_id, 2)
    assert waits(w) == [(first, "sync")]
    sync(w, first, 2, **{first: ALL})
    assert waiting.done
    assert waits(w) == []


def test_the_first_rebalance_waits_for_time_only() -> None:
    w = world(group_initial_rebalance_delay_ms="3000")
    join(w, version=3)
    w.pass_ms(1000)
    found = shown(w)
    assert [(one["action"], one["remaining_ms"]) for one in found["waits"]] == [("gather", 2000)]
    assert left(found["timers"], "initial delay") == 2000


def test_a_member_id_that_was_given_out_is_waited_for() -> None:
    w = world()
    first = stable(w, ALL)
    join(w, version=3)
    asked = join(w)
    assert shown(w)["pending"] == [asked.reply.member_id]
    assert waits(w) == [(first, "join"), (asked.reply.member_id, "join")]


def test_an_assignment_that_is_not_committed_is_waited_for() -> None:
    w = world()
    first = join(w, version=3)
    w.pass_ms(300)
    policy(w, "held")
    sync(w, first.reply.member_id, 1, **{first.reply.member_id: ALL})
    assert waits(w) == [(None, "commit")]
    policy(w, "immediate")
    assert waits(w) == []


def test_a_static_member_that_joins_again_is_shown_by_its_instance() -> None:
    w = world()
    first = join(w, version=5, group_instance_id="one")
    w.pass_ms(300)
    member = first.reply.member_id
    sync(w, member, 1, **{member: ALL})
    again = join(w, version=5, group_instance_id="one")
    assert again.done
    found = shown(w)
    assert [(one["instance_id"], one["member"]) for one in found["members"]] == [("one", again.reply.member_id)]


def test_a_session_that_is_about_to_end_is_counted_down() -> None:
    w = world()
    member = stable(w)
    w.pass_ms(9_000)
    assert left(shown(w)["members"][0]["timers"], "session") == 1_000
    assert alive(w, member, 1) == 0
    assert left(shown(w)["members"][0]["timers"], "session") == 10_000
    w.pass_ms(10_000)
    assert (shown(w)["state"], shown(w)["members"]) == ("Empty", [])


# consumer groups


def test_an_owed_revocation_names_who_holds_and_who_waits() -> None:
    w = world()
    beat(w, "a", 0, "t")
    assert waits(w) == []
    beat(w, "b", 0, "t")
    found = shown(w)
    assert (found["epoch"], found["assignment_epoch"], found["state"]) == (3, 3, "Reconciling")
    a, b = members(found)["a"], members(found)["b"]
    moving = b["target"][0]["partitions"]
    assert (a["state"], b["state"]) == ("behind", "waits for partitions")
    assert b["awaited"] == [{"topic": "t", "partition": p, "held_by": "a"} for p in moving]
    (wait,) = found["waits"]
    assert (wait["member"], wait["action"], wait["awaited_by"]) == ("a", "heartbeat", ["b"])
    assert wait["partitions"] == [{"topic": "t", "partitions": moving}]
    beat(w, "a", 2)
    w.pass_ms(1_500)
    (wait,) = shown(w)["waits"]
    assert (wait["member"], wait["action"], wait["awaited_by"], wait["remaining_ms"]) == ("a", "revoke", ["b"], 8_500)
    beat(w, "a", 2, topic_partitions=owned(w, *(set(range(4)) - set(moving))))
    assert waits(w) == [("b", "heartbeat")]
    assert given(beat(w, "b", 3)) == moving
    assert (waits(w), shown(w)["state"]) == ([], "Stable")


def test_a_static_member_that_is_away_is_waited_for() -> None:
    w = world()
    beat(w, "a", 0, "t", instance_id="one")
    beat(w, "a", -2, instance_id="one")
    found = shown(w)
    assert members(found)["a"]["state"] == "away"
    assert (waits(w), found["waits"][0]["remaining_ms"]) == ([("a", "rejoin")], 45_000)


def test_a_migrated_group_is_shown_with_the_protocol_of_each_member() -> None:
    w = world()
    old = stable(w, ALL)
    beat(w, "new", 0, "t")
    found = shown(w)
    assert found["kind"] == "consumer"
    assert {one["member"]: one["protocol"] for one in found["members"]} == {old: "classic", "new": "consumer"}
    assert waits(w) == [(old, "join")]
    assert shown(w)["waits"][0]["awaited_by"] == ["new"]
    assert alive(w, old, 1) == 27
    assert left(members(shown(w))[old]["timers"], "join") == 20_000


def test_a_regular_expression_is_shown_with_its_topics() -> None:
    w = world()
    beat(w, "a", 0, subscribed_topic_names=None, subscribed_topic_regex="t.*")
    w.pass_ms(100)
    (found,) = shown(w)["regexes"]
    assert (found["regex"], found["members"], found["topics"]) == ("t.*", 1, ["t"])
    assert found["resolved_ms"] is not None


def test_offsets_are_shown_with_their_lag() -> None:
    w = world()
    assert commit(w, 3).done
    (found,) = shown(w, "s")["offsets"]
    partition = w.broker.partitions.by_name["t", 0]
    assert (found["committed_offset"], found["high_watermark"], found["lag"]) == (3, partition.high_watermark, 0)
    assert (shown(w, "s")["kind"], shown(w, "s")["members"]) == ("classic", [])


# share groups


def test_a_share_group_is_shown_with_its_share_partitions() -> None:
    w = share_world.world()
    found = shown(w, "q")
    assert (found["kind"], [one["member"] for one in found["members"]]) == ("share", ["m"])
    assert [one["href"] for one in found["share_partitions"]] == ["/v1/share/q/t/0"]
    share_world.beat(w, "m", found["members"][0]["epoch"])
    share_world.beat(w, "n")
    found = shown(w, "q")
    assert waits(w, "q") == [("m", "heartbeat")]
    assert members(found)["m"]["state"] == "behind"
    assert members(found)["n"]["assigned"] == [{"topic": "t", "partitions": [0]}]


# lists


@pytest.fixture(scope="module")
def many() -> World:
    w = world()
    beat(w, "a", 0, "t")
    for number in range(600):
        commit(w, 1, f"simple-{number:03}")
    return w


@pytest.mark.parametrize(
    ("query", "count"),
    [
        *[("", 601), ("type=consumer", 1), ("type=share", 0), ("state=stable", 1), ("state=Empty", 600)],
        *[("name=simple-0*", 100), ("name=simple-0*&type=consumer", 0), ("name=g", 1), ("name=[", 0)],
    ],
)
def test_groups_are_listed_by_kind_state_and_name(many: World, query: str, count: int) -> None:
    status, found = LabWorld(many).reply("GET /v1/groups", query=query)
    assert (status, len(found["groups"]), found["loading"]) == (200, count, [])


def test_a_kind_that_does_not_exist_is_refused(many: World) -> None:
    words = "type: must be one of classic, consumer, share, streams, found 'x'"
    assert LabWorld(many).refused("GET /v1/groups", query="type=x") == (400, words)


def test_a_walk_over_pages_finds_each_group_once(many: World) -> None:
    names: list[str] = []
    query = "limit=100"
    while True:
        page = LabWorld(many).reply("GET /v1/groups", query=query)[1]
        names += [one["group"] for one in page["groups"]]
        if page["next"] is None:
            break
        query = f"limit=100&after={page['next']}"
    assert names == sorted({"g", *(f"simple-{number:03}" for number in range(600))})


def test_pages_of_ten_thousand_groups_look_at_some_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    beat(w, "a", 0, "t")
    LabWorld(w).ask("GET /v1/groups")  # opens all partitions
    hosts = list(w.broker.groups.hosts.values())
    for number in range(9_999):
        hosts[number % len(hosts)].shard.put_simple(f"x{number:04}")
    sizes = [len(host.shard.groups) for host in hosts]
    assert sum(sizes) == 10_000
    in_turns = sum(-(-size // group_views.STEP_GROUPS) for size in sizes)
    assert sum(1 for _ in group_views.every(w.broker, group_views.EVERY)) == in_turns
    described: list[str] = []
    summary = views.summary

    def counted(group: Group) -> GroupSummaryView:
        described.append(group.id)
        return summary(group)

    monkeypatch.setattr(views, "summary", counted)
    page = LabWorld(w).reply("GET /v1/groups", query="limit=1000&after=g")[1]
    assert (len(page["groups"]), page["groups"][0]["group"], page["next"]) == (1000, "x0000", "x0999")
    assert len(described) == 1000


def test_a_group_that_does_not_exist_is_not_found() -> None:
    assert LabWorld(world()).refused("GET /v1/groups/absent") == (404, "group absent does not exist")
    assert LabWorld(World()).refused("GET /v1/groups/absent")[0] == 404


@pytest.mark.slow
def test_a_large_group_is_shown_in_steps_and_pieces_in_proportion_to_its_members() -> None:
    w = world(group_consumer_max_size="400")
    totals = []
    for number in range(400):
        beat(w, f"m{number}", 0, "t")
        if number in (199, 399):
            found = LabWorld(w).send("GET /v1/groups/g")
            assert isinstance(found, Response)
            assert not isinstance(found.body, bytes)
            sizes = [len(piece) for piece in found.body]
            assert max(sizes) < 32 << 10
            totals.append(sum(sizes))
    assert 1.8 < totals[1] / totals[0] < 2.2
