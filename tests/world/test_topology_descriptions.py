"""Descriptions of the topologies of streams groups (KIP-1331): what takes longer than a story of tests/differential,
and the bounds, which Kafka does not have.
"""

from __future__ import annotations

import pytest
from ottla.broker.group import topology_descriptions
from ottla.broker.group.metrics import groups
from ottla.broker.group.topology_descriptions import BACKOFF_MAX_MS, BACKOFF_MS, DESCRIPTION_BYTES_MAX
from ottla.broker.later import drive
from ottla.broker.limits import TOPOLOGY_DESCRIPTIONS
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import group_world
from ..support.group_world import by_kafka, join, policy, shard, written
from ..support.stories.streams import R, joining, part
from ..support.world import Answer, World

PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
U = m.StreamsGroupTopologyDescriptionUpdateRequest
MINUTE_MS = 60_000
ROUND_MS = 10 * MINUTE_MS  # between two rounds in which groups expire
NOT_STORED, STORED = 1, 3
FAILED = Errors.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED


def world(**settings: str) -> World:
    given = {
        "group_streams_topology_description_plugin_class": PLUGIN,
        "group_streams_initial_rebalance_delay_ms": "0",
        **settings,
    }
    return group_world.world(2, **given)


def beat(w: World, epoch: int, group: str = "g", member: str = "m1") -> Answer:
    """A heartbeat; the first one has the topology."""
    request = joining(group, part("0", "t"), member=member) if epoch == 0 else R(group_id=group, member_id=member)
    request.member_epoch = epoch
    return w.send("StreamsGroupHeartbeat", 1, request)


def is_asked(w: World, epoch: int, **of: str) -> bool:
    reply = beat(w, epoch, **of).reply
    assert reply.error_code == 0, reply
    return bool(reply.topology_description_required)


def pushing(w: World, group: str = "g", name: str = "n", member: str = "m1") -> Answer:
    """A description with one node of this name."""
    node = U.TopologyDescriptionNode(name=name, node_type=1)
    description = U.TopologyDescription(
        subtopologies=[U.TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])]
    )
    request = U(group_id=group, member_id=member, topology_description=description)
    return w.send("StreamsGroupTopologyDescriptionUpdate", 0, request)


def push(w: World, group: str = "g", name: str = "n", member: str = "m1") -> int:
    return int(pushing(w, group, name, member).reply.error_code)


def status(w: World, group: str = "g") -> int:
    request = m.StreamsGroupDescribeRequest(group_ids=[group], include_topology_description=True)
    found = w.ask("StreamsGroupDescribe", 1, request).groups[0]
    return int(found.error_code or found.topology_description_status)


def epochs(w: World, group: str = "g") -> tuple[int, int]:
    """What the log says: of which topology the description is stored, and of which it was refused."""
    values = [value for name, value in written(w, group) if name == "StreamsGroupMetadata" and value is not None]
    return values[-1].stored_description_topology_epoch, values[-1].failed_description_topology_epoch


def counts(w: World) -> dict[str, float]:
    """The counts of descriptions that are not 0."""
    prefix = "kafka_server_group_coordinator_metrics_streams_group_topology_description_"
    samples = [sample for family in groups(w.broker.groups) for sample in family.samples]
    found = {one.name.removeprefix(prefix): one.value for one in samples if one.name.startswith(prefix)}
    return {name.removesuffix("_count_total"): n for name, n in found.items() if name.endswith("_total") and n}


def stored_bytes(w: World) -> int:
    assert w.broker.groups.descriptions is not None
    return w.broker.groups.descriptions.bytes


def test_members_that_do_not_answer_are_asked_at_growing_intervals() -> None:
    """30 seconds, a minute, and so on up to an hour, give or take a fifth."""
    w = world()
    assert is_asked(w, 0)
    asked_ms = [w.schedule.now_ms()]
    while len(asked_ms) < 11:
        w.pass_ms(5_000)
        if is_asked(w, 2):
            asked_ms.append(w.schedule.now_ms())
    waits = [b - a for a, b in zip(asked_ms, asked_ms[1:], strict=False)]
    for number, waited in enumerate(waits):
        wanted = min(BACKOFF_MS << number, BACKOFF_MAX_MS)
        assert 0.8 * wanted <= waited <= 1.2 * wanted + 5_000, waits
    assert max(waits) <= BACKOFF_MAX_MS + 5_000
    assert len({waited // 5_000 for waited in waits}) > 5


def test_a_description_that_is_too_large_is_refused_for_good() -> None:
    w = world()
    assert is_asked(w, 0)
    names = [f"{number:02}" * 15_000 for number in range(36)]
    node = U.TopologyDescriptionNode(name="n", node_type=1, successors=names)
    parts = [U.TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])]
    request = U(group_id="g", member_id="m1", topology_description=U.TopologyDescription(subtopologies=parts))
    found = w.ask("StreamsGroupTopologyDescriptionUpdate", 0, request)
    assert found.error_code == FAILED
    assert found.error_message.endswith(f"; at most {DESCRIPTION_BYTES_MAX} are stored.")
    assert epochs(w) == (-2, 0)
    assert w.broker.limits.counts[TOPOLOGY_DESCRIPTIONS.name] == 1
    assert counts(w) == {"set_error": 1}
    assert status(w) == NOT_STORED
    for _ in range(10):
        w.pass_ms(10_000)
        assert not is_asked(w, 2)
    assert push(w) == 0  # a smaller one may come all the same
    assert (status(w), epochs(w)) == (STORED, (0, 0))


def test_without_room_members_are_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_descriptions, "ALL_BYTES_MAX", 150)
    w = world()
    for name in ("a", "b"):
        assert is_asked(w, 0, group=name)
    assert push(w, "a", "n" * 40) == 0
    size = stored_bytes(w)
    assert push(w, "a", "n" * 40) == 0  # takes the place of the first
    assert stored_bytes(w) == size
    found = pushing(w, "b", "n" * 40).reply
    assert (found.error_code, found.error_message) == (
        FAILED,
        "The broker stores as many topology descriptions as it may: 150 bytes.",
    )
    assert (status(w, "a"), status(w, "b"), epochs(w, "b")) == (STORED, NOT_STORED, (-2, -1))
    beat(w, -1, "a")
    w.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["a"]))
    assert stored_bytes(w) == 0
    asked = False
    for _ in range(8):  # a minute and a fifth
        assert not asked
        w.pass_ms(10_000)
        asked = is_asked(w, 2, group="b")
        if asked:
            break
    assert asked
    assert push(w, "b", "n" * 40) == 0
    assert status(w, "b") == STORED
    assert counts(w) == {"set_success": 3, "set_error": 1, "delete_success": 1, "get_success": 2}


def test_an_unused_group_expires_after_its_description() -> None:
    w = world()
    beat(w, 0)
    assert push(w) == 0
    for _ in range(66):  # past the first round
        w.pass_ms(10_000)
        assert not is_asked(w, 2)
    assert status(w) == STORED
    assert counts(w) == {"cleanup_cycle": 1, "set_success": 1, "get_success": 1}
    w.pass_ms(2 * ROUND_MS)  # its member's session ends
    assert status(w) == Errors.GROUP_ID_NOT_FOUND
    assert (epochs(w), stored_bytes(w)) == ((-1, -1), 0)
    assert counts(w) == {
        "cleanup_cycle": 3,
        "cleanup_eligible": 1,
        "delete_success": 1,
        "set_success": 1,
        "get_success": 1,
    }


def test_an_unused_group_does_not_expire_before_its_description() -> None:
    """What looks for groups that expire may come first."""
    w = world()
    beat(w, 0)
    assert push(w) == 0
    beat(w, -1)
    w.broker.turn.event(w.broker.groups.expire)
    w.pass_ms(1)
    assert status(w) == STORED
    descriptions = w.broker.groups.descriptions
    assert descriptions is not None
    w.broker.turn.event(lambda: drive(descriptions.clean(w.broker.groups)))
    w.broker.turn.event(w.broker.groups.expire)
    w.pass_ms(1)
    assert status(w) == Errors.GROUP_ID_NOT_FOUND


def test_a_group_with_offsets_keeps_its_description() -> None:
    w = world()
    beat(w, 0)
    assert push(w) == 0
    beat(w, -1)
    group_world.commit(w, 1, "g")
    w.pass_ms(3 * ROUND_MS)
    assert status(w) == STORED


@pytest.mark.parametrize("plugin", ["", PLUGIN])
def test_a_group_that_kafka_described_expires(plugin: str) -> None:
    """At once without a plug-in; with one the description, which is not here, is deleted first."""
    w = group_world.world(2, **({"group_streams_topology_description_plugin_class": plugin} if plugin else {}))
    v = m.StreamsGroupTopologyValue
    by_kafka(
        w,
        (m.StreamsGroupTopologyKey(group_id="g"), v(subtopologies=[v.Subtopology(subtopology_id="0")])),
        (
            m.StreamsGroupMetadataKey(group_id="g"),
            m.StreamsGroupMetadataValue(epoch=3, stored_description_topology_epoch=0),
        ),
    )
    assert status(w) == NOT_STORED
    w.pass_ms(2 * ROUND_MS)
    assert "g" not in shard(w).groups
    assert epochs(w) == ((-1, -1) if plugin else (0, -1))


def test_descriptions_are_forgotten_with_the_process_and_not_asked_for_again() -> None:
    w = world()
    beat(w, 0)
    assert push(w) == 0
    w.broker.stop()
    again = World(w.files, 1, group_streams_topology_description_plugin_class=PLUGIN)
    again.pass_ms(1000)
    assert not is_asked(again, 2)
    assert (status(again), epochs(again)) == (NOT_STORED, (0, -1))
    assert push(again) == 0
    assert status(again) == STORED


def test_a_group_that_is_deleted_while_its_description_comes_leaves_nothing() -> None:
    w = world()
    beat(w, 0)
    policy(w, "held")
    found = pushing(w)
    beat(w, -1)
    deleted = w.send("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["g"]))
    assert not found.done
    assert not deleted.done
    for _ in range(20):
        policy(w, "immediate")
        w.pass_ms(1)
        policy(w, "held")
        w.pass_ms(1)
    assert (found.reply.error_code, deleted.reply.results[0].error_code) in ((0, 0), (Errors.GROUP_ID_NOT_FOUND, 0))
    assert stored_bytes(w) == 0
    assert "g" not in shard(w).groups


def test_members_that_come_while_a_classic_group_takes_the_place_are_asked_again() -> None:
    w = world()
    beat(w, 0)
    assert push(w) == 0
    beat(w, -1)
    policy(w, "held")
    classic = join(w)
    streams = beat(w, 0, member="m2")
    assert not classic.done
    assert not streams.done
    policy(w, "immediate")
    w.pass_ms(1)
    assert classic.reply.error_code == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert streams.reply.error_code == 0
    assert epochs(w) == (-1, -1)
    assert stored_bytes(w) == 0
    assert streams.reply.topology_description_required or is_asked(w, streams.reply.member_epoch, member="m2")
