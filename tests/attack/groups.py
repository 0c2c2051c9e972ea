"""Large groups: what is computed for many members at once."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.wire import Wire
from .harness import Site, attack

MEMBERS, TOPICS = 1000, 400


@attack(memory_mib_max=400, settings={"group.consumer.assignors": "range,uniform", "offsets.topic.num.partitions": 1})
def a_thousand_members_of_four_hundred_topics(site: Site) -> None:
    """Each member that joins asks for another assignment, which takes half a second; then all of them reach the
    last.
    """
    names = [f"many-{n}" for n in range(TOPICS)]
    r, h = m.CreateTopicsRequest, m.ConsumerGroupHeartbeatRequest
    with site.wire() as wire:
        for name in names:
            wire.ask(
                "CreateTopics",
                5,
                r(topics=[r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=60_000),
            )
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["large"]))
        epochs: dict[str, int] = {}

        def beat(member: str, **more: Any) -> Any:
            reply = wire.ask(
                "ConsumerGroupHeartbeat",
                1,
                h(group_id="large", member_id=member, member_epoch=epochs.get(member, 0), **more),
            )
            assert reply.error_code == 0, reply.error_message
            epochs[member] = reply.member_epoch
            return reply

        for n in range(MEMBERS):
            beat(f"member-{n}", subscribed_topic_names=names, topic_partitions=[], rebalance_timeout_ms=60_000)
        rounds = 0
        while len(set(epochs.values())) > 1 or min(epochs.values()) <= MEMBERS:
            rounds += 1
            assert rounds < 50, f"the group does not settle: {min(epochs.values())} to {max(epochs.values())}"
            for member in epochs:
                beat(member)
        site.note(f"settled at epoch {max(epochs.values())} after {rounds} rounds")


LONGEST = 32767
PENDING, COMMITS = 3000, 1000


@attack(quick=True, memory_mib_max=60, settings={"offsets.topic.num.partitions": 1})
def ids_of_the_greatest_length(site: Site) -> None:
    """Member ids that are given out, and not used again; members beyond the size of a group; offsets with more
    metadata than they may have. What is kept of them is bounded.
    """
    j, c, h = m.JoinGroupRequest, m.OffsetCommitRequest, m.ConsumerGroupHeartbeatRequest
    protocol = j.JoinGroupRequestProtocol(name="p" * LONGEST, metadata=b"m" * LONGEST)
    join = j(
        group_id="g", session_timeout_ms=300_000, rebalance_timeout_ms=300_000, protocol_type="c", protocols=[protocol]
    )
    with site.wire() as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    with Wire(site.broker.bootstrap_servers, 60.0, client_id="c" * (LONGEST - 40)) as wire:
        for _ in range(PENDING):
            assert wire.ask("JoinGroup", 5, join).error_code == Errors.MEMBER_ID_REQUIRED
    part = c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="x" * LONGEST)
    topic = c.OffsetCommitRequestTopic(name="t", partitions=[part])
    with site.wire() as wire:
        for number in range(COMMITS):
            commit = c(group_id=f"{number}-{'x' * (LONGEST - 10)}", topics=[topic])
            (found,) = wire.ask("OffsetCommit", 8, commit).topics[0].partitions
            assert found.error_code in (Errors.OFFSET_METADATA_TOO_LARGE, Errors.UNKNOWN_TOPIC_OR_PARTITION)
        for number in range(COMMITS):
            beat = h(group_id="h", member_id=f"{number}", member_epoch=0, rebalance_timeout_ms=5000)
            beat.server_assignor, beat.topic_partitions = "a" * LONGEST, []
            beat.subscribed_topic_names = ["x" * LONGEST]
            assert wire.ask("ConsumerGroupHeartbeat", 1, beat).error_code != 0
