"""Streams groups, told the same stories by ottla and by Apache Kafka: what the simulator's threads met."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import SETTINGS, R, beat, describe, info, join, part, source, tasks

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def delete(pair: Pair, name: str) -> None:
    r = m.DeleteTopicsRequest
    pair.ask("DeleteTopics", 6, r(topics=[r.DeleteTopicState(name=name)], timeout_ms=10_000))
    found = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    pair.until("Metadata", 12, found, lambda reply: reply.topics[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_reply_that_is_lost_is_not_said_again(pair: Pair) -> None:
    """Neither tasks that a member gets nor those that it must give up are in the reply to the same heartbeat."""
    source(pair, "lost", 4)
    join(pair, "sx1", part("0", "lost"))
    join(pair, "sx1", part("0", "lost"), member="m2")
    everything, half = tasks(s0=[0, 1, 2, 3]), tasks(s0=[0, 1])
    assert beat(pair, "sx1", 2, has=everything).active_tasks is not None
    assert beat(pair, "sx1", 2, has=everything).active_tasks is None
    beat(pair, "sx1", 2, has=half)
    assert beat(pair, "sx1", 3, "m2", has=[]).active_tasks is not None
    assert beat(pair, "sx1", 3, "m2", has=[]).active_tasks is None
    assert beat(pair, "sx1", 3, "m2").active_tasks is None
    assert beat(pair, "sx1", 3, "m2", has=[]).active_tasks is None


def test_a_repartition_topic_goes_while_endpoints_are_due(pair: Pair) -> None:
    """Another member is told of an unknown error, which ends its thread."""
    source(pair, "gone-in", 2)
    source(pair, "gone-mid", 2)
    parts = part("0", "gone-in", sinks=["gone-mid"]), part("1", repartitions=[info("gone-mid")])
    join(pair, "sx2", *parts, user_endpoint=R.Endpoint(host="h", port=1))
    join(pair, "sx2", *parts, member="m2")
    delete(pair, "gone-mid")
    asks = R(group_id="sx2", member_id="m2", member_epoch=3, endpoint_information_epoch=-1)
    pair.until("StreamsGroupHeartbeat", 1, asks, lambda reply: reply.error_code == Errors.UNKNOWN_SERVER_ERROR)


def test_a_member_has_a_task_for_which_its_topic_is_too_small_now(pair: Pair) -> None:
    source(pair, "small", 3)
    join(pair, "sx3", part("0", "small"))
    delete(pair, "small")
    source(pair, "small", 1)
    reply = beat(pair, "sx3", 2, has=tasks(s0=[0, 1, 2]))
    assert reply.error_code == Errors.INVALID_REQUEST


def test_what_a_heartbeat_says_counts_although_it_fails(pair: Pair) -> None:
    """Offsets at once, and that the topics do not fit any more with the next write."""
    for name in ("said", "said-mid"):
        source(pair, name, 2)
    parts = part("0", "said", sinks=["said-mid"]), part("1", repartitions=[info("said-mid")])
    join(pair, "sx4", *parts, user_endpoint=R.Endpoint(host="h", port=1))
    join(pair, "sx4", *parts, member="m2")
    delete(pair, "said")
    asks = R(group_id="sx4", member_id="m2", member_epoch=3, endpoint_information_epoch=-1)
    asks.task_offsets = asks.task_end_offsets = [R.TaskOffset(subtopology_id="0", partition=1, offset=7)]
    pair.until("StreamsGroupHeartbeat", 1, asks, lambda reply: reply.error_code == Errors.UNKNOWN_SERVER_ERROR)

    def repartitioned(reply: Any) -> int:
        return int(reply.groups[0].topology.subtopologies[1].repartition_source_topics[0].partitions)

    before = describe(pair, "sx4")
    offsets = [one.offset for member in before.groups[0].members for one in member.task_offsets]
    assert (offsets, repartitioned(before)) == ([7], 2)
    beat(pair, "sx4", -1)
    assert repartitioned(describe(pair, "sx4")) == 0
