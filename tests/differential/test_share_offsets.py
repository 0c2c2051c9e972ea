"""Start offsets of share groups that are set and deleted: in ottla by the lab, in Kafka as its tool does it. Clients
are told the same before and after.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from ottla.coordinator.share.acknowledge_types import ACCEPT
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.lab_client import LabRefused
from ottla.testing import Broker

from ..support.differential import Pair, own_brokers
from ..support.stories.leases import SETTINGS, acknowledged, acquired, fetched, offsets
from ..support.stories.share import Ids, began, heartbeat, initialized, joined
from ..support.stories.topics import batch, produce, topic

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers({**SETTINGS, "ottla.lab.port": 0})


def altering(group: str, name: str, places: dict[int, int]) -> Any:
    r = m.AlterShareGroupOffsetsRequest
    wanted = r.AlterShareGroupOffsetsRequestTopic(topic_name=name)
    wanted.partitions = [
        r.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in places.items()
    ]
    return r(group_id=group, topics=[wanted])


def deleting(group: str, *names: str) -> Any:
    r = m.DeleteShareGroupOffsetsRequest
    return r(group_id=group, topics=[r.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names])


def set_offset(pair: Pair, broker: Broker, name: str, offset: int) -> None:
    """Sets the offset of the first partition of the topic and group of a name."""
    told = offsets(pair, name)
    wanted = {"topic": name, "partition": 0, "offset": offset}
    plan = broker.lab.put(f"groups/{name}/offsets", wanted, plan=True)
    assert offsets(pair, name) == told
    assert broker.lab.put(f"groups/{name}/offsets", wanted) == {**plan, "is_plan": False}
    reply = pair.theirs.ask("AlterShareGroupOffsets", 0, altering(name, name, {0: offset}))
    assert (reply.error_code, reply.responses[0].partitions[0].error_code) == (0, 0)


def half_done(pair: Pair, name: str) -> Ids:
    """A group without members that has taken the first three of six records. Its member's connections are closed."""
    ids = topic(pair, name, 2)
    member = pair.beside("member")
    joined(member, name, name, ids, 2)
    produce(pair, name, ids, batch(*"abcdef"))
    fetched(member, name, ids, 0, max_wait_ms=5000)
    acknowledged(member, name, ids, 1, [(0, 2, [ACCEPT])])
    fetched(member, name, ids, -1)
    heartbeat(member, name, -1)
    member.close()
    return ids


def read_on(pair: Pair, name: str, ids: Ids) -> list[tuple[int, int, int]]:
    """What another member gets first; it takes one record, and is told of the rest."""
    heartbeat(pair, name, 0, [name], member="m2")
    initialized(pair, name, ids, 2)
    found = acquired(fetched(pair, name, ids, 0, member="m2", max_wait_ms=5000))
    first = found[0][0]
    acknowledged(pair, name, ids, 1, [(first, first, [ACCEPT])], member="m2")
    fetched(pair, name, ids, 2, acks=[(first, first, [ACCEPT])], member="m2")
    fetched(pair, name, ids, 3, member="m2")
    fetched(pair, name, ids, -1, member="m2")
    heartbeat(pair, name, -1, member="m2")
    offsets(pair, name)
    return found


@pytest.mark.parametrize("offset", [0, 1, 5, 6])
def test_a_group_goes_on_where_it_was_set(pair: Pair, ours: Broker, offset: int) -> None:
    name = f"so-{offset}"
    ids = half_done(pair, name)
    set_offset(pair, ours, name, offset)
    offsets(pair, name)
    if offset == 6:
        produce(pair, name, ids, batch(*"gh"))
    assert read_on(pair, name, ids)[0][0] == offset


def test_a_leader_that_has_the_old_offset_finds_out_when_it_writes(pair: Pair, ours: Broker) -> None:
    """The member's connection stays, so the share-partition stays loaded."""
    name = "so-loaded"
    ids = began(pair, name, 2)
    produce(pair, name, ids, batch(*"abcdef"))
    fetched(pair, name, ids, 0, max_wait_ms=5000)
    acknowledged(pair, name, ids, 1, [(0, 2, [ACCEPT])])
    fetched(pair, name, ids, -1)
    heartbeat(pair, name, -1)
    set_offset(pair, ours, name, 1)
    (first, _) = ours.lab.group(name)["share_partitions"]
    assert (first["start_offset"], first["lag"]) == (1, 5)
    assert read_on(pair, name, ids)[0][0] == 3
    assert pair.errors("ShareAcknowledge") == {"NONE", "NOT_LEADER_OR_FOLLOWER"}


def test_a_fetch_acquires_before_it_is_known_that_its_acknowledgements_come_too_late(pair: Pair, ours: Broker) -> None:
    name = "so-late"
    ids = began(pair, name, 2)
    for value in "abcdef":
        produce(pair, name, ids, batch(value))
    fetched(pair, name, ids, 0, max_wait_ms=5000, max_records=3, batch_size=1)
    acknowledged(pair, name, ids, 1, [(0, 2, [ACCEPT])])
    fetched(pair, name, ids, -1)
    heartbeat(pair, name, -1)
    set_offset(pair, ours, name, 1)
    heartbeat(pair, name, 0, [name], member="m2")
    initialized(pair, name, ids, 2)
    few: dict[str, Any] = {"max_records": 1, "batch_size": 1, "member": "m2"}
    assert acquired(fetched(pair, name, ids, 0, max_wait_ms=5000, **few)) == [(3, 3, 1)]
    reply = fetched(pair, name, ids, 1, [(3, 3, [ACCEPT])], **few)
    assert acquired(reply) == [(4, 4, 1)]
    assert reply.responses[0].partitions[0].acknowledge_error_code == Errors.NOT_LEADER_OR_FOLLOWER
    fetched(pair, name, ids, 2, **few)
    fetched(pair, name, ids, -1, member="m2")
    heartbeat(pair, name, -1, member="m2")


def test_a_deleted_topic_begins_again(pair: Pair, ours: Broker) -> None:
    ids = half_done(pair, "so-deleted")
    told = offsets(pair, "so-deleted")
    assert ours.lab.delete("groups/so-deleted/offsets", topic="so-deleted", plan="true")["is_plan"]
    assert offsets(pair, "so-deleted") == told
    ours.lab.delete("groups/so-deleted/offsets", topic="so-deleted")
    reply = pair.theirs.ask("DeleteShareGroupOffsets", 0, deleting("so-deleted", "so-deleted"))
    assert (reply.error_code, reply.responses[0].error_code) == (0, 0)
    assert offsets(pair, "so-deleted").groups[0].topics == []
    pair.ask("DeleteShareGroupOffsets", 0, deleting("so-deleted", "so-deleted", "absent"))
    assert read_on(pair, "so-deleted", ids)[0][0] == 0
    assert pair.errors("DeleteShareGroupOffsets") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_group_with_members_is_left_alone(pair: Pair, ours: Broker) -> None:
    name = "so-members"
    began(pair, name)
    words = "the group so-members has members: stop them first"
    with pytest.raises(LabRefused, match=words):
        ours.lab.put(f"groups/{name}/offsets", topic=name, to="latest")
    with pytest.raises(LabRefused, match=words):
        ours.lab.delete(f"groups/{name}/offsets", topic=name)
    pair.ask("AlterShareGroupOffsets", 0, altering(name, name, {0: 1}))
    pair.ask("DeleteShareGroupOffsets", 0, deleting(name, name))
    offsets(pair, name)
    assert pair.errors("AlterShareGroupOffsets") == pair.errors("DeleteShareGroupOffsets") == {"NON_EMPTY_GROUP"}


def test_what_cannot_be_set_is_refused_in_the_same_words(pair: Pair) -> None:
    topic(pair, "so-refused", 2)
    for places in ({2: 0}, {0: 3, 9: 1}):
        pair.ask("AlterShareGroupOffsets", 0, altering("so-none", "so-refused", places))
    pair.ask("AlterShareGroupOffsets", 0, altering("so-none", "absent", {0: 0}))
    pair.ask("AlterShareGroupOffsets", 0, altering("", "so-refused", {0: 0}))
    pair.ask("DeleteShareGroupOffsets", 0, deleting("so-absent", "so-refused"))
    words = [wire.ask("AlterShareGroupOffsets", 0, altering("so-none", "so-refused", {-1: 0})) for wire in pair.wires]
    assert {one.error_code for one in words} == {-1}
    assert len({re.sub(r" [\w-]{22} ", " TOPIC ", one.error_message) for one in words}) == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in pair.errors("AlterShareGroupOffsets")
    assert "GROUP_ID_NOT_FOUND" in pair.errors("DeleteShareGroupOffsets")


def test_offsets_are_described_topic_by_topic(pair: Pair) -> None:
    """The partitions of a topic are together and in order, and one that cannot be fails its group."""
    topic(pair, "so-told", 3)
    places = {0: 1, 1: 2, 2: 3}
    pair.ask("AlterShareGroupOffsets", 0, altering("so-told", "so-told", places))
    d = m.DescribeShareGroupOffsetsRequest

    def described(*topics: tuple[str, list[int]], group: str = "so-told") -> None:
        wanted = [d.DescribeShareGroupOffsetsRequestTopic(topic_name=n, partitions=p) for n, p in topics]
        asked = d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted)
        pair.ask("DescribeShareGroupOffsets", 1, d(groups=[asked]))

    described(("so-told", [2, 0, 1]))
    described(("so-told", [1, 1]), ("absent", [1, 0, -1]), ("so-told", [0]))
    for group in ("so-told", "so-nobody"):
        described(("so-told", [0, -1]), group=group)
        described(("so-told", [0]), ("so-told", [-1]), group=group)
    for topics in ([("so-told", [0])], [("absent", [0])], []):
        described(*topics, group="")
    assert pair.errors("DescribeShareGroupOffsets") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_offsets_are_set_topic_by_topic(pair: Pair) -> None:
    topic(pair, "so-parts", 2)
    a = m.AlterShareGroupOffsetsRequest
    known = [altering("so-parts", "so-parts", {index: 1}).topics[0] for index in (1, 0)]
    absent = altering("so-parts", "absent", {0: 1}).topics[0]
    for topics in (
        [known[0], a.AlterShareGroupOffsetsRequestTopic(topic_name="none"), absent, known[1]],
        [a.AlterShareGroupOffsetsRequestTopic(topic_name="none")],
        [a.AlterShareGroupOffsetsRequestTopic(topic_name="so-parts"), absent],
    ):
        pair.ask("AlterShareGroupOffsets", 0, a(group_id="so-parts", topics=topics))
    assert pair.errors("AlterShareGroupOffsets") == {"NONE", "UNKNOWN_TOPIC_OR_PARTITION"}
