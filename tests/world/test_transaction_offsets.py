"""Offsets in a transaction, while the log that they are written to is not there."""

from __future__ import annotations

import pytest
from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.topic_world import create
from ..support.world import World


@pytest.mark.parametrize("version", range(6))
def test_a_log_that_is_opened_again_has_moved_for_clients(version: int) -> None:
    """A group's coordinator never names the errors of partitions, on which clients such as aiokafka give up."""
    world = World(transaction_state_log_num_partitions="1", offsets_topic_num_partitions="1")
    create(world, "t", 1)
    for kind, name in enumerate(("g", "x")):
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[name]))
    world.pass_ms(100)
    asked = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    producer = world.ask("InitProducerId", 4, asked)
    world.pass_ms(100)
    who = {"transactional_id": "x", "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    add = m.AddOffsetsToTxnRequest(group_id="g", **who)
    assert world.ask("AddOffsetsToTxn", 3, add).error_code == Errors.NONE
    r = m.TxnOffsetCommitRequest
    part = r.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = r(group_id="g", topics=[r.TxnOffsetCommitRequestTopic(name="t", partitions=[part])], **who)

    log = world.broker.partitions.by_name[TOPIC_NAME, 0]
    world.broker.replicas.reopen(log)
    (topic,) = world.ask("TxnOffsetCommit", version, request).topics
    assert topic.partitions[0].error_code == Errors.NOT_COORDINATOR
    world.pass_ms(1000)
    (topic,) = world.ask("TxnOffsetCommit", version, request).topics
    assert topic.partitions[0].error_code == Errors.NONE
