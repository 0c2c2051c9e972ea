"""Brokers on what `ottla adopt` made of directories that Kafkas with ZooKeeper wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.adoption.catalog import from_described, from_zookeeper
from ottla.adoption.plan import Given
from ottla.adoption.work import Order, prepared

from ..support.ask import batch, fetch_message, produce_message
from ..support.old_directories import KINDS, VERSIONS, DumpedNodes, OldDirectories, committed, in_memory, read, rows_of
from ..support.poll import until
from ..support.world import World

pytestmark = pytest.mark.long

MINUTE_MS = 60_000
LATER_MS = 1_900_000_000_000  # years after the directories were written
WITH_TRANSACTIONS = VERSIONS[2:]
Open = Callable[[str], OldDirectories]


@pytest.fixture
def old(tmp_path: Path) -> Open:
    return lambda version: OldDirectories(version, tmp_path / version)


def given(old: OldDirectories, **fields: Any) -> Given:
    return Given(from_described(old.described.read_text()), new_cluster_id="new", **fields)


def adopted(*paths: Path, to: Path | None = None, given: Given, start_ms: int = LATER_MS, **settings: str) -> World:
    """A world on what was made: of a directory, or in the first one."""
    with prepared(Order(tuple(map(str, paths)), None if to is None else str(to), given), LATER_MS) as adoption:
        adoption.carry_out(sync=lambda: None)
    return World(in_memory(to or paths[0]), 0, start_ms, **settings)


def offsets(world: World, old: OldDirectories, kind: str) -> dict[str, dict[str, int]]:
    """What the groups of the directory have committed now."""
    found = {}
    for group, known in old.offsets(kind).items():
        topics = [name.rpartition("-")[0] for name in known]
        found[group] = until(lambda g=group, t=topics: committed(world, g, t), f"{group} is loaded")  # type: ignore[misc]
    return found


def records(world: World, old: OldDirectories, kind: str) -> dict[str, list[list[Any]]]:
    names = [name.rpartition("-") for name in old.records(kind)]
    return {f"{topic}-{n}": read(world, topic, int(n)) for topic, _, n in names}


@pytest.mark.parametrize("place", ["of its own", "in place"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_there_years_later(version: str, kind: str, place: str, old: Open, tmp_path: Path) -> None:
    """Retention would have deleted all of it: that of records is switched off, that of offsets begins again."""
    release = old(version)
    to = tmp_path / "data" if place == "of its own" else None
    world = adopted(release.data(kind), to=to, given=given(release))
    world.pass_ms(60 * MINUTE_MS)
    assert records(world, release, kind) == release.records(kind)
    assert offsets(world, release, kind) == release.offsets(kind)


@pytest.mark.parametrize("version", ["0.10.2.2", "3.9.1"])
def test_offsets_of_a_compaction_that_a_kill_interrupted_are_there_years_later(version: str, old: Open) -> None:
    """Its segment was ready (`.swap`), and those that it replaces were put away (`.deleted`) already."""
    release = old(version)
    for one in release.data("killed").glob("__consumer_offsets-*"):
        (log,) = one.glob("*.log")
        last = one / f"{1000:020d}.log"
        last.touch()
        shutil.copy(log, f"{log}.deleted")
        for file in (log, log.with_suffix(".index"), log.with_suffix(".timeindex")):
            if file.exists():
                file.rename(f"{file}.swap")
    (release.data("killed") / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    world = adopted(release.data("killed"), given=given(release))
    world.pass_ms(60 * MINUTE_MS)
    assert offsets(world, release, "killed") == release.offsets("killed")


def test_the_retention_of_offsets_begins_at_the_adoption(old: Open) -> None:
    release = old("0.10.2.2")
    world = adopted(release.data("clean"), given=given(release), offsets_retention_minutes="30")
    world.pass_ms(29 * MINUTE_MS)
    assert offsets(world, release, "clean") == release.offsets("clean")
    world.pass_ms(15 * MINUTE_MS)
    assert {offset for found in offsets(world, release, "clean").values() for offset in found.values()} == {-1}


def test_retention_can_be_left_as_it_was(old: Open) -> None:
    release = old("0.10.2.2")
    world = adopted(release.data("clean"), given=given(release, lets_expire=True))
    world.pass_ms(60 * MINUTE_MS)
    assert {offset for found in offsets(world, release, "clean").values() for offset in found.values()} == {-1}
    left = {name for name in release.records("clean") if _offset(world, name, -2) < _offset(world, name, -1)}
    assert left == {"kept-0"}, "the compacted one; the others' segments are older than a week"


def _offset(world: World, name: str, time: int) -> int:
    """Where a partition starts (-2) or ends (-1)."""
    r, (topic, _, index) = m.ListOffsetsRequest, name.rpartition("-")
    wanted = r.ListOffsetsPartition(partition_index=int(index), timestamp=time)
    asked = r(replica_id=-1, topics=[r.ListOffsetsTopic(name=topic, partitions=[wanted])])
    return int(world.ask("ListOffsets", 7, asked).topics[0].partitions[0].offset)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_goes_on_where_it_was(version: str, old: Open) -> None:
    """With today's requests: a member joins, and commits an offset of its own."""
    release = old(version)
    world = adopted(release.data("clean"), given=given(release))
    j = m.JoinGroupRequest
    protocol = j.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
    asked = j(group_id="simple", protocol_type="consumer", protocols=[protocol], session_timeout_ms=30_000)
    asked.rebalance_timeout_ms = 30_000

    def joined() -> Any:
        reply = world.ask("JoinGroup", 9, asked)
        asked.member_id = reply.member_id
        return reply if not reply.error_code else None

    member = until(joined, "the member joins")
    assert member.leader == asked.member_id
    c = m.OffsetCommitRequest
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=13)
    topic = c.OffsetCommitRequestTopic(name="plain", partitions=[part])
    mine = {"generation_id_or_member_epoch": member.generation_id, "member_id": asked.member_id}
    s = m.SyncGroupRequest
    assignment = s.SyncGroupRequestAssignment(member_id=asked.member_id, assignment=b"")
    sync = s(group_id="simple", generation_id=member.generation_id, member_id=asked.member_id)
    sync.assignments = [assignment]
    assert world.ask("SyncGroup", 3, sync).error_code == 0
    answer = world.ask("OffsetCommit", 8, c(group_id="simple", **mine, topics=[topic]))
    assert answer.topics[0].partitions[0].error_code == 0
    assert committed(world, "simple", ["plain", "packed"]) == {"plain-0": 13, "packed-0": 7}


@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_an_open_transaction_is_aborted_at_its_timeout(version: str, old: Open) -> None:
    release = old(version)
    world = adopted(release.data("killed"), given=given(release))
    before = _read_committed(world)
    world.pass_ms(120_000)
    assert produce(world, "exact", b"last") == 0
    assert _read_committed(world) == [*release.truth["killed"]["committed"], "last"]
    assert before == release.truth["killed"]["committed"], "those after the open one had to wait"


def _read_committed(world: World) -> list[str]:
    """The values that a consumer of committed records gets."""
    found: list[str] = []
    offset = 0
    while True:
        message = fetch_message("exact", offset, isolation=1)
        (part,) = world.ask("Fetch", 11, message).responses[0].partitions
        some = rows_of(bytes(part.records))
        aborted = {one.first_offset for one in part.aborted_transactions or ()}
        if not some or some[-1][0][0] < offset:
            return found
        open_since: int | None = None
        for row, is_data in some:
            if row[0] in aborted:
                open_since = row[0]
            if is_data and open_since is None and row[0] >= offset:
                found.append(row[2])
            if not is_data:
                open_since = None
        offset = some[-1][0][0] + 1


def produce(world: World, topic: str, *values: bytes, **template: Any) -> int:
    message = produce_message(topic, batch(*values, **template))
    return int(world.ask("Produce", 9, message).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_new_producers_get_other_ids_than_the_old_ones(version: str, old: Open) -> None:
    """Producer 0 has written to `exact`: what another producer 0 sent would be taken for a repetition, or refused."""
    release = old(version)
    world = adopted(release.data("clean"), given=given(release))
    made = world.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None))
    assert (made.error_code, made.producer_id) == (0, 1000)
    before = len(read(world, "exact", 0))
    sent = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch, "base_sequence": 0}
    assert produce(world, "exact", b"new", **sent) == 0
    assert len(read(world, "exact", 0)) == before + 1


def test_leader_epochs_go_on(old: Open) -> None:
    release = old("3.9.1")
    (release.data("clean") / "plain-0" / "leader-epoch-checkpoint").write_text("0\n1\n57 0\n")
    world = adopted(release.data("clean"), given=given(release))
    r = m.MetadataRequest
    (plain,) = world.ask("Metadata", 12, r(topics=[r.MetadataRequestTopic(name="plain")])).topics
    assert [one.leader_epoch for one in plain.partitions] == [58, 1]


@pytest.mark.parametrize("version", VERSIONS)
def test_configurations_are_carried_over(version: str, old: Open) -> None:
    """From ZooKeeper; those that Kafka 4.4 does not take are left out, and said."""
    release = old(version)
    known = Given(from_zookeeper(DumpedNodes(release.zookeeper)), new_cluster_id="new")
    with prepared(Order((str(release.data("clean")),), None, known)) as adoption:
        dropped = adoption.plan.dropped
        adoption.carry_out(sync=lambda: None)
    world = World(in_memory(release.data("clean")))
    assert _configs(world, "kept") == {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    assert _configs(world, "plain") == {"retention.ms": "900000000"}
    said = [one.partition(": ")[2] for one in dropped if one.startswith("plain")]
    assert said[0].startswith("segment.bytes=400: "), said
    removed = [one for one in dropped if one.endswith("Kafka 4.4 does not know it")]
    assert len(dropped) == 2 + len(removed), "segment.bytes of two topics"
    assert [one.partition("=")[0] for one in removed] == (
        [] if version in ("0.8.2.2", "3.9.1") else ["older: message.format.version"]
    )


def _configs(world: World, topic: str) -> dict[str, str]:
    """The configurations of a topic that are its own."""
    r = m.DescribeConfigsRequest
    asked = r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)])
    (found,) = world.ask("DescribeConfigs", 4, asked).results
    return {one.name: one.value for one in found.configs if one.config_source == 1}


def test_what_no_directory_has_is_offline_or_begins_anew(old: Open, tmp_path: Path) -> None:
    release = old("1.1.1")
    for name in ("plain-0", "__consumer_offsets-3", "packed-0"):
        (release.data("clean") / name).rename(tmp_path / name)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        path = release.data("clean") / name
        lines = [one for one in path.read_text().splitlines()[2:] if not one.startswith(("plain 0", "packed"))]
        path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    with prepared(Order((str(release.data("clean")),), None, Given(new_cluster_id="new"))) as adoption:
        missing = [(one.topic_id, one.index) for one in adoption.choice.missing]
        names = adoption.plan.source.image.topic_names
        assert [(names[topic_id], index) for topic_id, index in missing] == [("plain", 0)]
        assert adoption.plan.emptied == ["__consumer_offsets-3"], "packed is not known at all"
        adoption.carry_out(sync=lambda: None)
    world = World(in_memory(release.data("clean")))
    r = m.MetadataRequest
    (plain,) = world.ask("Metadata", 12, r(topics=[r.MetadataRequestTopic(name="plain")])).topics
    assert [one.leader_id for one in plain.partitions] == [-1, 1]
    assert read(world, "plain", 1) == release.records("clean")["plain-1"]
    assert until(lambda: committed(world, "group-20", ["plain"]), "partition 3 is led") == {"plain-0": -1}
