"""The timelines of groups: what happens live, the same from the log, and equal to what the pipeline derives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ottla.broker.group import chronicle as chronicles
from ottla.broker.group import coordinators
from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.broker.later import Later
from ottla.broker.shards.loader import log_entries
from ottla.coordinator.described import describer
from ottla.coordinator.group.consumer_protocol import build_assignment
from ottla.coordinator.group.events import WORDS
from ottla.pipeline.jobs.timeline import Change, Timeline
from ottla.protocol.errors import Errors

from ottla.group_history import timeline as from_directory

from ..support import share_world
from ..support.group_world import alive, beat, commit, join, owned, stable, sync, world
from ..support.lab import LabWorld
from ..support.world import World

ALL = build_assignment({"t": [0, 1, 2, 3]}, 0)
LAB: dict[str, Any] = {"ottla_lab_port": "0"}


def events(w: World, group: str = "g", query: str = "") -> list[Any]:
    status, found = LabWorld(w).reply(f"GET /v1/groups/{group}/timeline", query=query)
    assert status == 200, found
    return list(found["events"])


def told(w: World, group: str = "g") -> list[tuple[str, str | None]]:
    return [(one["what"], one["member"]) for one in events(w, group)]


def classic(w: World) -> None:
    """A member, another one, and one that is too late."""
    first = stable(w, ALL)
    second = join(w, version=3)
    join(w, first, version=3)
    sync(w, first, 2, **{first: build_assignment({"t": [0, 1]}, 0)})
    join(w, second.reply.member_id, version=3)
    w.pass_ms(60_000)


def consumer(w: World) -> None:
    """A member that must revoke for another one, and does; then its session ends."""
    beat(w, "a", 0, "t")
    beat(w, "b", 0, "t")
    beat(w, "a", 2)
    beat(w, "a", 2, topic_partitions=owned(w, 0, 1))
    beat(w, "b", 3)
    commit(w, 1, "g", "b", 3)
    w.pass_ms(50_000)


def migration(w: World) -> None:
    """A classic member, a consumer member, and a static one that goes away."""
    old = stable(w, ALL)
    beat(w, "new", 0, "t")
    assert alive(w, old, 1) == 27
    beat(w, "new", -1)


def static(w: World) -> None:
    beat(w, "a", 0, "t", instance_id="one")
    beat(w, "a", -2, instance_id="one")
    beat(w, "c", 0, "t", instance_id="one")


STORIES: list[Callable[[World], None]] = [classic, consumer, migration, static]


def test_a_classic_group_tells_whom_it_waited_for_and_who_was_too_late() -> None:
    w = world(**LAB)
    classic(w)
    found = told(w)
    kinds = [what for what, _ in found]
    first = found[kinds.index("joined")][1]
    assert kinds.count("rebalance") >= 2
    second = [one for one in events(w) if one["what"] == "rebalance"][1]
    assert second["members"] == [first]
    assert second["words"].startswith("a rebalance began, because ")
    assert {"all-joined", "synced", "generation", "assigned", "session-ended", "emptied"} <= set(kinds)


def test_a_consumer_group_tells_the_steps_of_a_revocation() -> None:
    w = world(**LAB)
    consumer(w)
    found = told(w)
    order = [("must-revoke", "a"), ("revoked", "a"), ("assigned", "b"), ("session-ended", "a"), ("revoked", "a")]
    assert [one for one in found if one in order] == order
    assert ("waits", "b") in found
    moved = next(one for one in events(w) if one["what"] == "must-revoke")
    assert (moved["partitions"], moved["epoch"], moved["source"]) == ([{"topic": "t", "partitions": [2, 3]}], 2, "log")
    assert moved["words"] == "a must give up t:2,3"


def test_a_member_that_does_not_revoke_in_time_is_named() -> None:
    w = world(**LAB)
    beat(w, "a", 0, "t")
    beat(w, "b", 0, "t")
    beat(w, "a", 2)
    w.pass_ms(11_000)
    late = next(one for one in events(w) if one["what"] == "late")
    assert late["words"] == "a was too late: it did not revoke its partitions"
    assert late["monotonic_ms"] is not None


def test_a_member_that_is_fenced_is_named() -> None:
    w = world(**LAB)
    beat(w, "a", 0, "t")
    assert beat(w, "a", 7).reply.error_code == Errors.FENCED_MEMBER_EPOCH
    assert events(w)[-1]["words"] == "a was refused: FENCED_MEMBER_EPOCH, with the epoch 7"


def test_a_group_that_changes_its_kind_says_so_once() -> None:
    w = world(**LAB)
    migration(w)
    found = [one for one in events(w) if one["what"] in ("created", "converted", "ended")]
    assert [(one["what"], one["kind"], one["why"]) for one in found] == [
        *[("created", "classic", ""), ("converted", "consumer", "classic"), ("converted", "classic", "consumer")]
    ]


def test_a_share_group_has_a_timeline() -> None:
    w = share_world.world(**LAB)
    assert {"created", "epoch", "member-added", "assignment", "target"} <= {what for what, _ in told(w, "q")}


def test_removed_offsets_and_the_end_of_a_group_are_told() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000", **LAB)
    commit(w, 1)
    w.pass_ms(70_000)
    assert {("offsets-removed", None), ("offsets-expired", None)} <= set(told(w, "s"))


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__)
def test_a_data_directory_tells_what_the_broker_told(story: Callable[[World], None], tmp_path: Path) -> None:
    w = world(**LAB)
    story(w)
    write(w, tmp_path)
    live = [{**one, "number": 0, "monotonic_ms": None} for one in events(w) if one["source"] == "log"]
    read = [{**one, "number": 0} for one in from_directory(str(tmp_path), "g")]
    assert read == live
    assert read


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__)
def test_a_broker_that_starts_tells_what_the_one_before_told(story: Callable[[World], None]) -> None:
    w = world(**LAB)
    story(w)
    before = [one["words"] for one in events(w) if one["source"] == "log"]
    again = World(w.files.copy(), 1, w.schedule.now_ms(), offsets_topic_num_partitions="3", **LAB)
    LabWorld(again).ask("GET /v1/groups")
    again.pass_ms(10)
    assert [one["words"] for one in events(again) if one["source"] == "log"][: len(before)] == before


def test_what_happens_while_the_log_is_read_is_told_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    w = world(**LAB)
    consumer(w)
    monkeypatch.setattr(coordinators, "STEP_NS", -1)
    again = World(w.files.copy(), 1, w.schedule.now_ms(), offsets_topic_num_partitions="3", **LAB)
    LabWorld(again).ask("GET /v1/groups")
    groups = again.broker.groups
    host = groups.hosts[groups.partition_for("g")]
    beat(again, "c", 0, "t")
    again.broker.turn.event(lambda: groups.reload(host.partition))
    beat(again, "d", 0, "t")
    again.pass_ms(100)
    beat(again, "e", 0, "t")
    write(again, tmp_path)
    told_live = [one["words"] for one in events(again) if one["source"] == "log"]
    assert told_live == [one["words"] for one in from_directory(str(tmp_path), "g")]


@pytest.mark.parametrize("story", [classic, consumer, static], ids=lambda one: one.__name__)
def test_the_pipeline_tells_the_same_owners(story: Callable[[World], None], tmp_path: Path) -> None:
    w = world(**LAB)
    story(w)
    topic_id = w.broker.image.topics["t"].id.hex()
    derived, describe = Timeline(), describer(TOPIC_NAME)
    assert describe is not None
    partition = w.broker.partitions.by_name[TOPIC_NAME, w.broker.groups.partition_for("g")]
    owners = []
    for entry in log_entries(partition.open_log()):
        assert entry.record is not None
        found = describe(entry.record)
        assert found is not None
        for step in derived.feed(found.type, found.key, found.value, 0):
            if isinstance(step, Change) and step.owner is not None:
                owners.append((step.topic.replace(topic_id, "t"), step.partition, step.owner))
    assigned = [one for one in events(w) if one["what"] == "assigned"]
    live = [(of["topic"], p, one["member"]) for one in assigned for of in one["partitions"] for p in of["partitions"]]
    assert sorted(live) == sorted(owners)


# the route


def test_a_timeline_is_followed_by_the_number_of_the_last_event() -> None:
    w = world(**LAB)
    lab = LabWorld(w)
    beat(w, "a", 0, "t")
    status, found = lab.reply("GET /v1/groups/g/timeline", query="limit=1")
    assert (status, len(found["events"]), found["left_out"]) == (200, 1, False)
    rest = lab.reply("GET /v1/groups/g/timeline", query=f"after={found['last']}")[1]
    waiting = lab.send("GET /v1/groups/g/timeline", query=f"after={rest['last']}&wait=10s")
    assert isinstance(waiting, Later)
    w.pass_ms(5_000)
    assert not waiting.done
    beat(w, "b", 0, "t")
    w.pass_ms(0)
    assert waiting.done
    (ended, nothing) = lab.reply("GET /v1/groups/g/timeline", query="after=1000&wait=2s", within_ms=2_001)
    assert (ended, nothing["events"]) == (200, [])
    assert nothing["last"] == 0, "it is the number of a broker before this one: what follows is all that there is"
    newest = lab.reply("GET /v1/groups/g/timeline")[1]["last"]
    (ended, nothing) = lab.reply("GET /v1/groups/g/timeline", query=f"after={newest}&wait=2s", within_ms=2_001)
    assert (ended, nothing["events"], nothing["last"]) == (200, [], newest)


def test_a_client_that_goes_away_ends_its_wait() -> None:
    w = world(**LAB)
    chronicle = w.broker.groups.chronicle
    assert chronicle is not None
    waiting = LabWorld(w).send("GET /v1/groups/g/timeline", query="wait=10s")
    assert isinstance(waiting, Later)
    assert chronicle.waiting == 1
    waiting.cancel()
    assert chronicle.waiting == 0


def test_a_timeline_keeps_the_last_events() -> None:
    w = world(ottla_lab_group_events="5", **LAB)
    consumer(w)
    status, found = LabWorld(w).reply("GET /v1/groups/g/timeline")
    assert (status, len(found["events"]), found["left_out"]) == (200, 5, True)


def test_all_timelines_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicles, "WEIGHT_MAX", 40)
    w = world(**LAB)
    for number in range(20):
        beat(w, "a", 0, "t", group=f"g{number}")
    kept = [len(events(w, f"g{number}")) for number in range(20)]
    assert 0 < sum(kept) <= 40
    assert (kept[0], kept[19] > 0) == (0, True)


@pytest.mark.parametrize("settings", [{}, {**LAB, "ottla_lab_group_events": "0"}])
def test_without_timelines_nothing_is_noted(settings: dict[str, Any]) -> None:
    w = world(**settings)
    assert w.broker.groups.chronicle is None
    assert all(host.runtime.on_appended is None for host in w.broker.groups.hosts.values())
    assert LabWorld(w).refused("GET /v1/groups/g/timeline")[0] == 409


def test_each_event_has_words() -> None:
    assert all(words.islower() or "{" in words for words in WORDS.values())


def write(w: World, root: Path) -> None:
    """Writes the files of a world."""
    for path in w.files.paths():
        file = root / path.removeprefix("/data/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(w.files.read(path))
