"""Streams groups, told the same stories by ottla and by Apache Kafka: offsets, and what administers groups."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import commit_request, join_request
from ..support.stories.offsets import fetch_request
from ..support.stories.streams import (
    SETTINGS,
    beat,
    describe,
    info,
    join,
    part,
    same_records,
    source,
    tasks,
)
from ..support.stories.topics import topic_ids, versions
from ..support.stories.transactions import ABORTED, COMMITTED, Writer, ended, initialized, offsets_added

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)

MEMBERS = ("m1", "m2", "nobody", "")
EPOCHS = (-1, 0, 1, 2, 3, 99)  # before the group was there, of m1, of m2, of the future
Ids = tuple[bytes, bytes]


def group_of_two(pair: Pair, name: str) -> Ids:
    """A group whose member m1 has the partitions 0 and 1 since epoch 2 and m2 is to get 2 and 3, which m1 still has.

    Returns the ids of the topic.
    """
    source(pair, name, 4)
    parts = (part("0", name),)
    join(pair, name, *parts)
    join(pair, name, *parts, member="m2", instance_id="i2")
    beat(pair, name, 2, has=tasks(s0=[0, 1, 2, 3]))
    return topic_ids(pair, name)


def hand_over(pair: Pair, name: str) -> None:
    """m1 has given up its partitions 2 and 3, and m2 has them."""
    beat(pair, name, 2, has=tasks(s0=[0, 1]))
    beat(pair, name, 3, "m2", instance_id="i2")
    beat(pair, name, 3, "m2", instance_id="i2", has=tasks(s0=[2, 3]))


def all_leave(pair: Pair, name: str) -> None:
    beat(pair, name, -1)
    beat(pair, name, -1, "m2", instance_id="i2")


def commit(
    pair: Pair,
    version: int,
    group: str,
    ids: Ids,
    member: str = "",
    epoch: int = -1,
    *,
    parts: tuple[int, ...] = (0, 2, 7),
    name: str = "",
    metadata: str = "",
    **more: Any,
) -> None:
    """Commits the offset 5 in partitions of the topic that has the group's name, or of another one."""

    def make(side: int) -> Any:
        rows = [(number, 5, metadata) for number in parts]
        return commit_request(version, group, [(name or group, ids[side], rows)], member, epoch, **more)

    pair.both("OffsetCommit", version, make)


def fetch(pair: Pair, version: int, group: str, ids: Ids | None, **more: Any) -> None:
    """Fetches the offsets of the topic that has the group's name, or of all."""

    def make(side: int) -> Any:
        return fetch_request(version, group, None if ids is None else [(group, ids[side], [0, 2, 7])], **more)

    pair.both("OffsetFetch", version, make)


# commits


@pytest.mark.parametrize("version", versions("OffsetCommit"))
def test_members_commit(pair: Pair, version: int) -> None:
    """With the epochs of their group, and with others."""
    name = f"oc-{version}"
    ids = group_of_two(pair, name)
    for member in MEMBERS:
        for epoch in EPOCHS:
            commit(pair, version, name, ids, member, epoch)
    if version >= 7:
        for instance in ("i2", "i9", ""):
            commit(pair, version, name, ids, "m2", 3, group_instance_id=instance)
    commit(pair, version, name, ids, "m1", 2, parts=())
    commit(pair, version, name, ids, "m1", 2, metadata="x" * 4097)
    commit(pair, version, name, (bytes(15) + b"\x07",) * 2, "m1", 2, name="absent")
    hand_over(pair, name)
    for epoch in EPOCHS:
        for number in (0, 2):
            commit(pair, version, name, ids, "m1", epoch, parts=(number,))
            commit(pair, version, name, ids, "m2", epoch, parts=(number,))
    fetch(pair, version=9, group=name, ids=None)
    all_leave(pair, name)
    for member in MEMBERS:
        for epoch in EPOCHS:
            commit(pair, version, name, ids, member, epoch)
    fetch(pair, version=9, group=name, ids=None)
    if version >= 9:
        same_records(pair, name)
    assert pair.errors("OffsetCommit") >= {"NONE", "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PARTITION"}
    assert ("UNSUPPORTED_VERSION" in pair.errors("OffsetCommit")) is (version < 9)
    assert ("STALE_MEMBER_EPOCH" in pair.errors("OffsetCommit")) is (version >= 9)


def test_older_epochs_commit_what_the_member_had_then(pair: Pair) -> None:
    """The epoch at which a task was given to its member decides, in each subtopology by itself."""
    for name in ("oe", "oe-b", "oe-r", "oe-alone"):
        source(pair, name, 2)
    ids = topic_ids(pair, "oe")
    parts = (
        part("0", "oe", sinks=["oe-r"]),
        part("1", "oe-b", repartitions=[info("oe-r")]),
    )
    join(pair, "oe", *parts)
    join(pair, "oe", *parts, member="m2")
    beat(pair, "oe", 2, has=tasks(s0=[0, 1], s1=[0, 1]))
    describe(pair, "oe")

    def all_commit() -> None:
        for name in ("oe", "oe-b", "oe-r", "oe-alone"):
            for number in (0, 1):
                for member in ("m1", "m2"):
                    for epoch in (0, 1, 2, 3, 4, 5):
                        commit(pair, 9, "oe", ids, member, epoch, parts=(number,), name=name)

    all_commit()
    beat(pair, "oe", 2, has=tasks(s0=[0], s1=[0]))
    beat(pair, "oe", 3, "m2")
    all_commit()
    join(pair, "oe", *parts, member="m3")
    for member in ("m1", "m2"):
        beat(pair, "oe", 3, member, has=tasks(s0=[0, 1], s1=[0, 1]))
    all_commit()
    beat(pair, "oe", -1, "m3")
    for member in ("m1", "m2"):
        beat(pair, "oe", 3, member, has=[])
        beat(pair, "oe", 4, member, has=[])
    all_commit()
    fetch(pair, 9, "oe", None)
    same_records(pair, "oe")
    assert pair.errors("OffsetCommit") == {"NONE", "STALE_MEMBER_EPOCH"}


def test_one_request_commits_several_topics(pair: Pair) -> None:
    """One partition that is not the member's refuses all."""
    for name in ("os", "os-b"):
        source(pair, name, 2)
    ids, others = topic_ids(pair, "os"), topic_ids(pair, "os-b")
    parts = (part("0", "os", "os-b"),)
    join(pair, "os", *parts)
    join(pair, "os", *parts, member="m2")
    beat(pair, "os", 2, has=tasks(s0=[0]))
    own, foreign, missing = [(0, 5, "")], [(1, 5, "")], [(9, 5, "")]

    def both_topics(version: int, epoch: int, first: Any, second: Any) -> None:
        def make(side: int) -> Any:
            rows = [("os", ids[side], first), ("os-b", others[side], second)]
            return commit_request(version, "os", rows, "m1", epoch)

        pair.both("OffsetCommit", version, make)

    for version in (9, 10):
        for epoch in (1, 2, 3):
            for first, second in ((own, own), (own, foreign), (foreign, own), (own, missing), (missing, foreign)):
                both_topics(version, epoch, first, second)
    same_records(pair, "os")


def test_static_members_commit_before_and_after_their_break(pair: Pair) -> None:
    name = "ob"
    ids = group_of_two(pair, name)
    hand_over(pair, name)
    beat(pair, name, -2, "m2", instance_id="i2")
    for epoch in (-2, -1, 0, 2, 3):
        commit(pair, 9, name, ids, "m2", epoch, group_instance_id="i2", parts=(2,))
    join(pair, name, part("0", name), member="m3", instance_id="i2", process_id="p-m2")
    for member in ("m2", "m3"):
        for epoch in (-2, -1, 0, 2, 3):
            commit(pair, 9, name, ids, member, epoch, group_instance_id="i2", parts=(2,))
            fetch(pair, 9, name, ids, member_id=member, member_epoch=epoch)
    same_records(pair, name)


# fetches


@pytest.mark.parametrize("version", versions("OffsetFetch"))
def test_members_fetch(pair: Pair, version: int) -> None:
    name = f"of-{version}"
    ids = group_of_two(pair, name)
    commit(pair, 9, name, ids, "m1", 2, parts=(0,), metadata="why", group_instance_id=None)
    everything = (ids, None) if version >= 2 else (ids,)

    def all_fetch() -> None:
        for wanted in everything:
            fetch(pair, version, name, wanted)
            if version >= 7:
                fetch(pair, version, name, wanted, require_stable=True)
            for member in (None, *MEMBERS) if version >= 9 else ():
                for epoch in EPOCHS:
                    fetch(pair, version, name, wanted, member_id=member, member_epoch=epoch)

    all_fetch()
    hand_over(pair, name)
    all_fetch()
    all_leave(pair, name)
    all_fetch()
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[name]))
    all_fetch()


# transactions


def commit_in_transaction(
    pair: Pair,
    version: int,
    writer: Writer,
    group: str,
    ids: Ids,
    member: str = "",
    epoch: int = -1,
    *,
    parts: tuple[int, ...] = (0,),
    instance: str | None = None,
) -> None:
    r = m.TxnOffsetCommitRequest

    def make(side: int) -> Any:
        rows = [r.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=7) for number in parts]
        named = r.TxnOffsetCommitRequestTopic(partitions=rows)
        if version >= 6:
            named.topic_id = ids[side]
        else:
            named.name = group
        request = r(transactional_id=writer.name, group_id=group, topics=[named])
        request.producer_id, request.producer_epoch = writer.ids[side], writer.epoch
        if version >= 3:
            request.member_id, request.generation_id_or_member_epoch = member, epoch
            request.group_instance_id = instance
        return request

    pair.both("TxnOffsetCommit", version, make)


@pytest.mark.parametrize("version", versions("TxnOffsetCommit"))
def test_members_commit_in_transactions(pair: Pair, version: int) -> None:
    name = f"ot-{version}"
    ids = group_of_two(pair, name)
    end = 5 if version >= 5 else 4
    writer = initialized(pair, name)

    def announced() -> None:
        if version < 5:
            offsets_added(pair, 3, writer, name)

    def all_commit() -> None:
        announced()
        for member in MEMBERS if version >= 3 else ("",):
            for epoch in EPOCHS if version >= 3 else (-1,):
                for number in (0, 2):
                    commit_in_transaction(pair, version, writer, name, ids, member, epoch, parts=(number,))

    all_commit()
    if version >= 3:
        for instance in ("i2", "i9"):
            commit_in_transaction(pair, version, writer, name, ids, "m2", 3, instance=instance)
    fetch(pair, 9, name, ids, require_stable=True)
    writer = ended(pair, end, writer, COMMITTED)
    fetch(pair, 9, name, ids, require_stable=True)
    hand_over(pair, name)
    all_commit()
    writer = ended(pair, end, writer, ABORTED)
    fetch(pair, 9, name, None, require_stable=True)
    all_leave(pair, name)
    all_commit()
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[name]))
    fetch(pair, 9, name, None, require_stable=True)
    writer = ended(pair, end, writer, COMMITTED)
    fetch(pair, 9, name, None, require_stable=True)
    describe(pair, name)
    if version >= 3:
        stale = "STALE_MEMBER_EPOCH" if version >= 6 else "ILLEGAL_GENERATION"
        assert pair.errors("TxnOffsetCommit") == {"NONE", stale, "UNKNOWN_MEMBER_ID"}


# what administers groups


def delete_offsets(pair: Pair, group: str, *topics: str, parts: tuple[int, ...] = (0, 7)) -> None:
    r = m.OffsetDeleteRequest
    rows = [r.OffsetDeleteRequestPartition(partition_index=number) for number in parts]
    named = [r.OffsetDeleteRequestTopic(name=name, partitions=rows) for name in topics]
    pair.ask("OffsetDelete", 0, r(group_id=group, topics=named))


def test_offsets_are_deleted(pair: Pair) -> None:
    """Those of topics that the topology reads only when no member is left; a topic that is written is not read."""
    for name in ("od", "od-b", "od-r", "od-sink", "od-log"):
        source(pair, name, 2)
    ids = topic_ids(pair, "od")
    parts = (
        part("0", "od", sinks=["od-r", "od-sink"], changelogs=[info("od-log")]),
        part("1", repartitions=[info("od-r")]),
    )
    every = ("od", "od-b", "od-r", "od-sink", "od-log", "od-absent")
    delete_offsets(pair, "od", *every)
    join(pair, "od", *parts)
    for name in every:
        commit(pair, 9, "od", ids, "m1", 2, parts=(0, 1), name=name)
    for names in (every, every[:1], every[1:2], every[2:3], (), ("od-b", "od-b")):
        delete_offsets(pair, "od", *names)
    fetch(pair, 9, "od", None)
    beat(pair, "od", -1)
    commit(pair, 9, "od", ids, parts=(0, 1), name="od-b")
    writer = initialized(pair, "od")
    commit_in_transaction(pair, 5, writer, "od", ids, parts=(0, 1))
    delete_offsets(pair, "od", *every)
    delete_offsets(pair, "od", "od", parts=())
    ended(pair, 5, writer, COMMITTED)
    fetch(pair, 9, "od", None)
    same_records(pair, "od")
    assert pair.errors("OffsetDelete") >= {"GROUP_SUBSCRIBED_TO_TOPIC", "NONE"}


def test_offsets_of_nothing_are_deleted(pair: Pair) -> None:
    """The group is looked for also where none of the topics exists."""
    source(pair, "on", 2)
    join(pair, "on", part("0", "on"))
    for group in ("on", "on-absent", ""):
        for names in ((), ("on-absent",), ("on-absent", "on")):
            delete_offsets(pair, group, *names)
            delete_offsets(pair, group, *names, parts=())
    assert pair.errors("OffsetDelete") >= {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NONE"}


@pytest.mark.parametrize("version", versions("DeleteGroups"))
def test_groups_are_deleted(pair: Pair, version: int) -> None:
    name = f"og-{version}"
    ids = group_of_two(pair, name)
    commit(pair, 9, name, ids, "m1", 2, parts=(0, 1))
    request = m.DeleteGroupsRequest(groups_names=[name, "", f"{name}-absent", name])
    pair.ask("DeleteGroups", version, request)
    beat(pair, name, -1)
    beat(pair, name, -2, "m2", instance_id="i2")
    pair.ask("DeleteGroups", version, request)
    beat(pair, name, -1, "m2", instance_id="i2")
    describe(pair, name)
    pair.ask("DeleteGroups", version, request)
    describe(pair, name)
    fetch(pair, 9, name, None)
    join(pair, name, part("0", name))
    describe(pair, name)
    if version == 3:
        same_records(pair, name)
    assert pair.errors("DeleteGroups") == {"GROUP_ID_NOT_FOUND", "NONE", "NON_EMPTY_GROUP"}


@pytest.mark.parametrize("version", versions("ListGroups"))
def test_groups_are_listed(pair: Pair, version: int) -> None:
    """In each of their states, by states and types."""
    name = f"ol-{version}"
    r = m.ListGroupsRequest

    def all_list() -> None:
        pair.ask("ListGroups", version, r())
        for state in ("Empty", "NotReady", "notready", "ASSIGNING", "Reconciling", "Stable", "Dead") * (version >= 4):
            pair.ask("ListGroups", version, r(states_filter=[state]))
        for kind in ("streams", "Streams", "classic", "consumer", "none") * (version >= 5):
            pair.ask("ListGroups", version, r(types_filter=[kind], states_filter=["Stable", "Empty"]))

    def own(reply: Any) -> None:
        reply.groups = [one for one in reply.groups if one.group_id == name]

    pair.trims["ListGroups"] = own
    join(pair, name, part("0", f"{name}-missing"))
    all_list()
    beat(pair, name, -1)
    all_list()
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[name]))
    group_of_two(pair, name)
    all_list()
    hand_over(pair, name)
    all_list()
    all_leave(pair, name)
    all_list()


def test_streams_groups_are_not_described_as_others(pair: Pair) -> None:
    """Nor do members of another kind of group get to know of them."""
    group_of_two(pair, "ox")
    for version in versions("DescribeGroups"):
        pair.ask("DescribeGroups", version, m.DescribeGroupsRequest(groups=["ox", "ox-absent"]))
    for version in versions("ConsumerGroupDescribe"):
        pair.ask("ConsumerGroupDescribe", version, m.ConsumerGroupDescribeRequest(group_ids=["ox", "ox-absent"]))
    share = m.DescribeShareGroupOffsetsRequest
    pair.ask("DescribeShareGroupOffsets", 0, share(groups=[share.DescribeShareGroupOffsetsRequestGroup(group_id="ox")]))
    pair.ask("JoinGroup", 9, join_request(9, "ox"))
    alter = m.AlterShareGroupOffsetsRequest(group_id="ox")
    pair.ask("AlterShareGroupOffsets", 0, alter)
    pair.ask("DeleteShareGroupOffsets", 0, m.DeleteShareGroupOffsetsRequest(group_id="ox"))
    all_leave(pair, "ox")
    for version in versions("DescribeGroups"):
        pair.ask("DescribeGroups", version, m.DescribeGroupsRequest(groups=["ox"]))
