"""A broker in memory with a topic `t` and the coordinators of groups, and short ways to ask for groups."""

from __future__ import annotations

from typing import Any

from ottla.broker.group.coordinators import TOPIC_NAME
from ottla.broker.shards.loader import log_entries
from ottla.broker.watermark_policies import parse_policy
from ottla.coordinator.group.format import GroupFormat
from ottla.coordinator.packing import encode_batch
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Template

from .world import Answer, World


def world(partitions: int = 4, **settings: str) -> World:
    """A broker with a topic `t` and a topic of groups."""
    made = World(None, 0, **{"offsets_topic_num_partitions": "3", **settings})
    r = m.CreateTopicsRequest
    made.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)], timeout_ms=1000),
    )
    found = made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators[0]
    assert found.error_code == 0
    return made


def beat(w: World, member: str, epoch: int, *topics: str, group: str = "g", **more: Any) -> Answer:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.topic_partitions = 10_000, []
        request.subscribed_topic_names = list(topics)
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("ConsumerGroupHeartbeat", 1, request)


def owned(w: World, *partitions: int) -> list[Any]:
    topic_id = w.broker.image.topics["t"].id
    return [m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=list(partitions))]


def given(answer: Answer) -> list[int] | None:
    """The partitions of an assignment; None where the reply has none."""
    assignment = answer.reply.assignment
    return None if assignment is None else [p for t in assignment.topic_partitions for p in t.partitions]


def commit(
    w: World,
    offset: int,
    group: str = "s",
    member: str = "",
    epoch: int = -1,
    metadata: str = "",
    version: int = 9,
    **more: Any,
) -> Answer:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    request = r(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])],
    )
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("OffsetCommit", version, request)


def code(answer: Answer) -> int:
    return int(answer.reply.topics[0].partitions[0].error_code)


def fetched(w: World, group: str = "s", stable: bool = False) -> Any:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(
        group_id=group, topics=[r.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    found = w.send("OffsetFetch", 9, r(groups=[asked], require_stable=stable))
    return found.reply.groups[0].topics[0].partitions[0] if found.done else None


def policy(w: World, text: str) -> None:
    w.broker.policies.set(TOPIC_NAME, None, parse_policy(text))
    w.broker.turn.event(w.broker.replicas.configure)


def written(w: World, group: str = "g") -> list[tuple[str, Any]]:
    """Types and values of the records of a group's partition, in order."""
    partition = w.broker.partitions.by_name[TOPIC_NAME, w.broker.groups.partition_for(group)]
    found = []
    for entry in log_entries(partition.open_log()):
        decoded = GroupFormat().decode(entry.record) if entry.record is not None else None
        assert decoded is not None
        found.append((type(decoded[0]).__name__.removesuffix("Key"), decoded[1]))
    return found


def by_kafka(w: World, *written_records: Any, group: str = "g") -> None:
    """Appends records as another Kafka wrote them, and loads the shard again."""
    host = w.broker.groups.host(group)
    now = w.schedule.now_ms()
    batch = encode_batch([GroupFormat().encode(one) for one in written_records], now, Template())
    w.broker.appender.store(host.partition, batch, list(records.batches(batch)), now)
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    w.pass_ms(1)


def shard(w: World, group: str = "g") -> Any:
    return w.broker.groups.host(group).shard


def join(w: World, member: str = "", version: int = 9, **more: Any) -> Answer:
    r = m.JoinGroupRequest
    request = r(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id=member, protocol_type="consumer"
    )
    request.protocols = [r.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")]
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("JoinGroup", version, request)


def sync(w: World, member: str, generation: int, **assignments: bytes) -> Answer:
    return sync_in(w, "g", member, generation, assignments)


def sync_in(w: World, group: str, member: str, generation: int, assignments: dict[str, bytes]) -> Answer:
    s = m.SyncGroupRequest
    request = s(
        group_id=group, generation_id=generation, member_id=member, protocol_type="consumer", protocol_name="range"
    )
    request.assignments = [s.SyncGroupRequestAssignment(member_id=i, assignment=a) for i, a in assignments.items()]
    return w.send("SyncGroup", 5, request)


def alive(w: World, member: str, generation: int) -> int:
    return int(
        w.send(
            "Heartbeat", 4, m.HeartbeatRequest(group_id="g", generation_id=generation, member_id=member)
        ).reply.error_code
    )


def stable(w: World, assignment: bytes = b"all") -> str:
    """A classic group of one member, stable in its first generation."""
    first = join(w, version=3)
    w.pass_ms(300)
    member: str = first.reply.member_id
    assert sync(w, member, 1, **{member: assignment}).reply.assignment == assignment
    return member


def own(group: str, **values: object) -> Any:
    i = m.IncrementalAlterConfigsRequest
    changes = [i.AlterableConfig(name=k.replace("_", "."), value=str(v)) for k, v in values.items()]
    return i(resources=[i.AlterConfigsResource(resource_type=32, resource_name=group, configs=changes)])
