"""In which order a broker answers for several groups: by Java's hash tables of the coordinators' partitions."""

from __future__ import annotations

from functools import partial
from string import ascii_lowercase

import pytest
from ottla.coordinator.hashing import partition_for
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import commit_request
from ..support.stories.topics import topic

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers({"offsets.topic.num.partitions": "50"})
GROUPS = [f"{letter}-order" for letter in ascii_lowercase[:17]]  # in as many partitions: their table grows
ASKED = [*GROUPS[9:], "", *GROUPS[:9], GROUPS[3]]


def _commit(group_id: str, name: str, ids: tuple[bytes, bytes], side: int) -> m.OffsetCommitRequest:
    made: m.OffsetCommitRequest = commit_request(8, group_id, [(name, ids[side], [(0, 1, "")])])
    return made


def committed(pair: Pair, name: str) -> None:
    """Each group has an offset in a new topic."""
    ids = topic(pair, name, 1)
    for group_id in GROUPS:
        pair.both("OffsetCommit", 8, partial(_commit, group_id, name, ids))


def test_groups_are_listed_by_partition(pair: Pair) -> None:
    committed(pair, "listed")
    for reply in pair.ask("ListGroups", 5, m.ListGroupsRequest()):
        assert {one.group_id for one in reply.groups} == set(GROUPS)


def test_groups_of_one_partition_are_listed_as_in_the_table_of_their_coordinator(pair: Pair) -> None:
    """It grows with the groups, and stays as large as it was."""
    ids = topic(pair, "of-one", 1)
    groups = [name for name in (f"one-{number}" for number in range(3000)) if partition_for(name, 50) == 7][:40]

    def listed() -> None:
        pair.ask("ListGroups", 5, m.ListGroupsRequest())

    for group_id in groups:
        pair.both("OffsetCommit", 8, partial(_commit, group_id, "of-one", ids))
        listed()
    for some in (groups[3:30], groups[:3] + groups[30:38]):
        pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=some))
        listed()
    pair.both("OffsetCommit", 8, partial(_commit, groups[5], "of-one", ids))
    listed()
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=groups))


def test_groups_are_described_by_partition(pair: Pair) -> None:
    committed(pair, "described")
    for asked in (ASKED, ASKED[:5]):
        pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=asked))
        pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=asked))
        pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=asked))
        pair.ask("StreamsGroupDescribe", 1, m.StreamsGroupDescribeRequest(group_ids=asked))


def test_groups_are_deleted_by_partition_and_those_of_one_by_name(pair: Pair) -> None:
    committed(pair, "deleted")
    absent = [f"absent-{number}" for number in range(150)]
    for asked in (ASKED[:5], ASKED, absent):
        pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=asked))
