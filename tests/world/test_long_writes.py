"""Long writes of coordinators are decided, replayed and encoded in steps; the other writes of the shard wait."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.batch import STEP_RECORDS
from ottla.coordinator.group.format import Commits
from ottla.coordinator.group.offsets.long_commits import LongCommits
from ottla.protocol import messages as m

from ..support.event_counts import EventCounts
from ..support.world import World

PARTITIONS = 4000


def commit(group: str = "g", offset: int = 1, metadata: str = "", partitions: int = PARTITIONS) -> Any:
    r = m.OffsetCommitRequest
    parts = [
        r.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index in range(partitions)
    ]
    return r(group_id=group, topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts)])


@pytest.fixture
def world() -> World:
    made = World(offsets_topic_num_partitions="1")
    topic = m.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    made.ask("CreateTopics", 7, m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    return made


@pytest.mark.parametrize("metadata", ["", "metadata"])
def test_many_commits_are_encoded_in_steps(world: World, monkeypatch: pytest.MonkeyPatch, metadata: str) -> None:
    kind = LongCommits if metadata else Commits
    counts = EventCounts(world, monkeypatch, kind, "pack", lambda commits, index: len(commits))
    (topic,) = world.ask("OffsetCommit", 9, commit(metadata=metadata)).topics
    assert [one.error_code for one in topic.partitions] == [0] * PARTITIONS
    assert counts.count == PARTITIONS
    assert counts.most <= STEP_RECORDS
