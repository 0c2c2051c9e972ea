"""What a metadata log says of a cluster that is handed over."""

from __future__ import annotations

import pytest
from ottla.coordinator.metadata.state import MetadataState
from ottla.protocol import messages as m

from ottla.handover.source import ZOOKEEPER_DECIDES, replay

BEGIN, END, ABORT = m.BeginTransactionRecord(), m.EndTransactionRecord(), m.AbortTransactionRecord()


def topic(name: str) -> m.TopicRecord:
    return m.TopicRecord(name=name, topic_id=name.encode() * 16)


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([BEGIN, topic("a"), topic("b"), END, topic("c")], {"a", "b", "c"}),
        ([BEGIN, topic("a"), ABORT, topic("b")], {"b"}),
        ([BEGIN, topic("a"), ABORT, BEGIN, topic("b"), END], {"b"}),
        ([topic("a"), BEGIN, topic("b")], {"a"}),
        ([topic("a"), END, topic("b")], {"a", "b"}),
    ],
    ids=["committed", "aborted", "begun again", "open", "begun before the snapshot"],
)
def test_of_a_transaction_what_was_committed_counts(records: list[m.Struct], names: set[str]) -> None:
    image = MetadataState()
    replay(image, records)
    assert set(image.topics) == names


def test_how_far_a_migration_came_is_known() -> None:
    begun, done = (m.ZkMigrationStateRecord(zk_migration_state=state) for state in (ZOOKEEPER_DECIDES, 1))
    assert replay(MetadataState(), [topic("a")]) == 0
    assert replay(MetadataState(), [begun]) == ZOOKEEPER_DECIDES
    assert replay(MetadataState(), [begun, BEGIN, done]) == ZOOKEEPER_DECIDES
    assert replay(MetadataState(), [begun, BEGIN, done, END]) == 1
