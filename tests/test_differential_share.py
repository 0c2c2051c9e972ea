"""Share groups, told the same stories by ottla and by Apache Kafka: leases, sessions, states and administration, compared field by field."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ottla.coordinator.format import share_format
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record
from ottla.protocol.schema import NO_UUID

from .ask import fetch_message
from .differential import Pair, differences, own_brokers
from .test_differential import batch, creatable, create, produce, topic
from .wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {
    "group.share.assignment.interval.ms": 0,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.max.share.sessions": 8,
    "group.share.max.size": 3,
    "share.coordinator.snapshot.update.records.per.snapshot": 5,
    "share.coordinator.state.topic.num.partitions": 2,
    "errors.deadletterqueue.auto.create.topics.enable": True,
    "log.retention.ms": -1,  # what is produced bears times long ago
}
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Ids = tuple[bytes, bytes]
F = m.ShareFetchRequest


oracle, ours, coordinators = own_brokers(SETTINGS)


# requests


def heartbeat(pair: Pair, group: str, epoch: int, names: list[str] | None = None, member: str = "m1", **more: Any) -> Any:
    request = m.ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=names, **more)
    return pair.ask("ShareGroupHeartbeat", 1, request)[0]


def configure(pair: Pair, group: str, **values: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [r.AlterableConfig(name=k.replace("_", "."), config_operation=0, value=v) for k, v in values.items()]
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[r.AlterConfigsResource(resource_type=32, resource_name=group, configs=configs)]))


def summary(group: str, ids: Ids, side: int, partitions: int) -> Any:
    r = m.ReadShareGroupStateSummaryRequest
    parts = [r.PartitionData(partition=p) for p in range(partitions)]
    return r(group_id=group, topics=[r.ReadStateSummaryData(topic_id=ids[side], partitions=parts)])


def began(pair: Pair, name: str, partitions: int = 1, group: str | None = None, **config: str) -> Ids:
    """A topic, and a group of its name with one member whose share-partitions are initialised."""
    ids = topic(pair, name, partitions)
    configure(pair, group or name, share_auto_offset_reset="earliest", **config)
    heartbeat(pair, group or name, 0, [name])
    initialized(pair, group or name, ids, partitions)
    return ids


def initialized(pair: Pair, group: str, ids: Ids, partitions: int = 1) -> None:
    """Waits until the share coordinators know the share-partitions, and the group coordinators know that they do."""
    d = m.DescribeShareGroupOffsetsRequest
    request = d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    for wire, topic_id in ((pair.ours, ids[0]), (pair.theirs, ids[1])):
        for _ in range(5000):
            found = wire.ask("DescribeShareGroupOffsets", 1, request).groups[0]
            if any(t.topic_id == topic_id and len(t.partitions) == partitions for t in found.topics):
                break
        else:
            raise AssertionError("not initialised")


Acks = list[tuple[int, int, list[int]]]


def fetched(
    pair: Pair,
    group: str,
    ids: Ids,
    epoch: int,
    acks: Acks | None = None,
    *,
    version: int = 2,
    partitions: tuple[int, ...] = (0,),
    named: bool = True,
    forgotten: tuple[int, ...] = (),
    member: str | None = "m1",
    **more: Any,
) -> Any:
    limits: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}

    def make(side: int) -> Any:
        parts = [F.FetchPartition(partition_index=p, acknowledgement_batches=batches(F, acks)) for p in partitions]
        request = F(group_id=group, member_id=member, share_session_epoch=epoch, **{**limits, **more})
        if named:
            request.topics = [F.FetchTopic(topic_id=ids[side], partitions=parts)]
        if forgotten:
            request.forgotten_topics_data = [F.ForgottenTopic(topic_id=ids[side], partitions=list(forgotten))]
        return request

    return pair.both("ShareFetch", version, make)[0]


def batches(request: Any, acks: Acks | None) -> list[Any]:
    return [request.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=types) for a, b, types in acks or []]


def acknowledged(
    pair: Pair, group: str, ids: Ids, epoch: int, acks: Acks, *, version: int = 2, member: str | None = "m1", index: int = 0, **more: Any
) -> Any:
    r = m.ShareAcknowledgeRequest

    def make(side: int) -> Any:
        part = r.AcknowledgePartition(partition_index=index, acknowledgement_batches=batches(r, acks))
        request = r(group_id=group, member_id=member, share_session_epoch=epoch, **more)
        request.topics = [r.AcknowledgeTopic(topic_id=ids[side], partitions=[part])]
        return request

    return pair.both("ShareAcknowledge", version, make)[0]


def acquired(reply: Any) -> list[tuple[int, int, int]]:
    return [(a.first_offset, a.last_offset, a.delivery_count) for t in reply.responses for p in t.partitions for a in p.acquired_records]


def released(pair: Pair, group: str, ids: Ids, last: int) -> None:
    """Waits until each has written what a closed session gave back; Kafka answers before it has."""
    r = m.ReadShareGroupStateRequest
    for side, wire in enumerate((pair.ours, pair.theirs)):
        request = r(group_id=group, topics=[r.ReadStateData(topic_id=ids[side], partitions=[r.PartitionData(partition=0, leader_epoch=0)])])
        for _ in range(5000):
            (found,) = wire.ask("ReadShareGroupState", 0, request).results[0].partitions
            if found.state_batches and found.state_batches[-1].last_offset >= last:
                break
        else:
            raise AssertionError("not given back")


def offsets(pair: Pair, group: str, version: int = 1) -> Any:
    r = m.DescribeShareGroupOffsetsRequest
    request = r(groups=[r.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    return pair.ask("DescribeShareGroupOffsets", version, request)[0]


# membership


def test_members_come_stay_and_go(pair: Pair) -> None:
    ids = topic(pair, "sm")
    heartbeat(pair, "sm", 0, ["sm"])
    initialized(pair, "sm", ids)
    epoch = heartbeat(pair, "sm", 2).member_epoch
    for wrong in (epoch + 5, epoch - 2, 1):
        heartbeat(pair, "sm", wrong)
    heartbeat(pair, "sm", epoch)
    for member in ("m2", "m3", "m4"):
        heartbeat(pair, "sm", 0, ["sm", "nothing"], member=member)
    heartbeat(pair, "sm", epoch, [])
    heartbeat(pair, "sm", epoch + 1, ["sm"], rack_id="r1")
    describe = m.ShareGroupDescribeRequest(group_ids=["sm", "none", ""], include_authorized_operations=True)
    pair.ask("ShareGroupDescribe", 1, describe)
    for filters in ([], ["Stable"], ["Empty"]):
        pair.ask("ListGroups", 5, m.ListGroupsRequest(states_filter=filters, types_filter=["share"]))
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["sm"]))
    for member in ("m2", "m1", "m1", "m9"):
        heartbeat(pair, "sm", -1, member=member)
    pair.ask("ShareGroupDescribe", 1, describe)
    heartbeat(pair, "sm", -1, member="m3")
    pair.ask("ShareGroupDescribe", 1, describe)
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["sm", "none"]))
    pair.ask("ShareGroupDescribe", 1, describe)


def test_heartbeats_that_no_group_takes(pair: Pair) -> None:
    heartbeat(pair, "sx", 0, None)
    heartbeat(pair, "sx", 0, [])
    heartbeat(pair, "", 0, ["t"])
    heartbeat(pair, " ", 0, ["t"])
    heartbeat(pair, "sx", 0, ["t"], member="")
    heartbeat(pair, "sx", 0, ["t"], member=" ")
    heartbeat(pair, "sx", 0, ["t"], member="m" * 37)
    heartbeat(pair, "sx", 0, ["t"], rack_id=" ")
    heartbeat(pair, "sx", -2)
    heartbeat(pair, "sx", -1)
    heartbeat(pair, "sx", 5)


def test_groups_of_one_kind_are_not_of_another(pair: Pair) -> None:
    began(pair, "sk")
    r = m.ConsumerGroupHeartbeatRequest
    pair.ask(
        "ConsumerGroupHeartbeat",
        1,
        r(group_id="sk", member_id="c", member_epoch=0, rebalance_timeout_ms=1000, topic_partitions=[], subscribed_topic_names=["sk"]),
    )
    j = m.JoinGroupRequest
    pair.ask(
        "JoinGroup",
        9,
        j(
            group_id="sk",
            session_timeout_ms=10000,
            rebalance_timeout_ms=1000,
            protocol_type="consumer",
            protocols=[j.JoinGroupRequestProtocol(name="range")],
        ),
    )
    pair.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="sk", member_id="c", generation_id=1))
    pair.ask("SyncGroup", 5, m.SyncGroupRequest(group_id="sk", member_id="c", generation_id=1))
    pair.ask("LeaveGroup", 5, m.LeaveGroupRequest(group_id="sk", members=[m.LeaveGroupRequest.MemberIdentity(member_id="c")]))
    c = m.OffsetCommitRequest
    parts = [c.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    pair.ask("OffsetCommit", 9, c(group_id="sk", topics=[c.OffsetCommitRequestTopic(name="sk", partitions=parts)]))
    f = m.OffsetFetchRequest
    for topics in (None, [f.OffsetFetchRequestTopics(name="sk", partition_indexes=[0])]):
        pair.ask("OffsetFetch", 9, f(groups=[f.OffsetFetchRequestGroup(group_id="sk", topics=topics)]))
    d = m.OffsetDeleteRequest
    pair.ask(
        "OffsetDelete",
        0,
        d(group_id="sk", topics=[d.OffsetDeleteRequestTopic(name="sk", partitions=[d.OffsetDeleteRequestPartition(partition_index=0)])]),
    )
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=["sk"]))
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["sk"]))
    h = r(group_id="sc", member_id="c", member_epoch=0, rebalance_timeout_ms=1000, topic_partitions=[], subscribed_topic_names=["sk"])
    pair.ask("ConsumerGroupHeartbeat", 1, h)
    heartbeat(pair, "sc", 0, ["sk"])
    heartbeat(pair, "sc", -1)
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["sc"]))


# sessions


def test_sessions(pair: Pair) -> None:
    ids = began(pair, "ss", 2)
    fetched(pair, "ss", ids, 1)
    fetched(pair, "ss", ids, -1)
    acknowledged(pair, "ss", ids, 0, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, 1, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, -1, [(0, 0, [ACCEPT])])
    fetched(pair, "ss", ids, 0, [(0, 0, [ACCEPT])])
    fetched(pair, "ss", ids, 0, partitions=(0, 1, 7))
    fetched(pair, "ss", ids, 2)
    fetched(pair, "ss", ids, 1)
    produce(pair, "ss", ids, batch("a", "b", "c"))
    fetched(pair, "ss", ids, 2, named=False)
    fetched(pair, "ss", ids, 2, named=False)
    fetched(pair, "ss", ids, 3, named=False, forgotten=(1,))
    acknowledged(pair, "ss", ids, 3, [(0, 2, [ACCEPT])])
    acknowledged(pair, "ss", ids, 4, [(0, 2, [ACCEPT])])
    fetched(pair, "ss", ids, 5, partitions=(1,))
    fetched(pair, "ss", ids, 0)
    fetched(pair, "ss", ids, 0)
    unknown = (b"\x01" * 16, b"\x01" * 16)
    fetched(pair, "ss", unknown, 1)
    fetched(pair, "ss", unknown, 2, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", unknown, 3, [(0, 0, [ACCEPT])])
    acknowledged(pair, "ss", ids, 4, [(0, 0, [ACCEPT])], index=9)
    acknowledged(pair, "ss", ids, -1, [])
    fetched(pair, "ss", ids, 5)
    for member in (None, "", "m" * 37):
        fetched(pair, "ss", ids, 0, member=member) if member is not None else None
        acknowledged(pair, "ss", ids, 0, [], member=member) if member is not None else None
    pair.both("ShareFetch", 2, lambda side: F(group_id=None, member_id="m", share_session_epoch=0))
    pair.ask("ShareAcknowledge", 2, m.ShareAcknowledgeRequest(group_id=None, member_id="m", share_session_epoch=0))


def test_there_are_only_so_many_sessions(pair: Pair) -> None:
    ids = began(pair, "sl")
    for number in range(10):
        fetched(pair, "sl", ids, 0, member=f"m{number}", max_wait_ms=20)
    for number in range(10):
        fetched(pair, "sl", ids, -1, member=f"m{number}")


def test_a_lost_connection_gives_back_what_was_held(pair: Pair) -> None:
    ids = began(pair, "sd")
    produce(pair, "sd", ids, batch("a", "b"))
    other = pair.beside("other")
    fetched(other, "sd", ids, 0, member="m2", max_wait_ms=5000)
    other.close()
    reply = fetched(pair, "sd", ids, 0, max_wait_ms=5000)
    assert acquired(reply) == [(0, 1, 2)]
    fetched(pair, "sd", ids, -1)


# leases


def test_what_members_say_of_records(pair: Pair) -> None:
    ids = began(pair, "sa")
    fetched(pair, "sa", ids, 0)
    produce(pair, "sa", ids, batch(*"abcdefghij"))
    fetched(pair, "sa", ids, 1)
    acknowledged(pair, "sa", ids, 2, [(0, 1, [ACCEPT]), (2, 2, [RELEASE]), (3, 3, [REJECT]), (4, 5, [ACCEPT, RELEASE])])
    fetched(pair, "sa", ids, 3)
    fetched(pair, "sa", ids, 4, [(2, 2, [ACCEPT]), (5, 9, [GAP])])
    offsets(pair, "sa")
    fetched(pair, "sa", ids, 5, [(0, 0, [ACCEPT])])
    fetched(pair, "sa", ids, -1)


WRONG: dict[str, Acks] = {
    "not held": [(20, 20, [ACCEPT])],
    "reaches past what was acquired": [(5, 30, [ACCEPT])],
    "backwards": [(5, 4, [ACCEPT])],
    "overlapping": [(0, 3, [ACCEPT]), (2, 5, [ACCEPT])],
    "touching": [(0, 3, [ACCEPT]), (3, 5, [ACCEPT])],
    "descending": [(4, 5, [ACCEPT]), (0, 1, [ACCEPT])],
    "no types": [(0, 1, [])],
    "too few types": [(0, 5, [ACCEPT, ACCEPT])],
    "unknown type": [(0, 0, [5])],
    "negative type": [(0, 0, [-1])],
    "renew without saying so": [(0, 0, [RENEW])],
    "nothing": [],
}


@pytest.mark.parametrize("version", [1, 2])
def test_acknowledgements_that_are_wrong(pair: Pair, version: int) -> None:
    name = f"sw{version}"
    ids = began(pair, name)
    produce(pair, name, ids, batch(*"abcdefghij"))
    fetched(pair, name, ids, 0, version=version)
    epoch = 1
    for acks in WRONG.values():
        acknowledged(pair, name, ids, epoch, acks, version=version)
        fetched(pair, name, ids, epoch + 1, acks, version=version, max_wait_ms=1)
        epoch += 2
    other = pair.beside("other")
    fetched(other, name, ids, 0, version=version, member="m2", max_wait_ms=1)
    for number, acks in enumerate(([(0, 9, [ACCEPT])], [(3, 3, [ACCEPT])])):
        acknowledged(other, name, ids, 1 + number, acks, version=version, member="m2")
    acknowledged(pair, name, ids, epoch, [(3, 3, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 1, [(0, 9, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 2, [(3, 4, [ACCEPT])], version=version)
    acknowledged(other, name, ids, 3, [(4, 4, [ACCEPT])], version=version, member="m2")
    acknowledged(pair, name, ids, epoch + 3, [(0, 2, [ACCEPT]), (4, 9, [ACCEPT])], version=version)
    acknowledged(pair, name, ids, epoch + 4, [(0, 9, [ACCEPT])], version=version)
    fetched(other, name, ids, -1, version=version, member="m2")
    fetched(pair, name, ids, -1, version=version)
    other.close()


def test_renewing(pair: Pair) -> None:
    ids = began(pair, "sr")
    produce(pair, "sr", ids, batch(*"abcde"))
    fetched(pair, "sr", ids, 0)
    fetched(pair, "sr", ids, 1, [(0, 4, [RENEW])], is_renew_ack=True)
    nothing: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    fetched(pair, "sr", ids, 1, [(0, 4, [RENEW])], is_renew_ack=True, **nothing)
    acknowledged(pair, "sr", ids, 2, [(0, 1, [RENEW]), (2, 2, [ACCEPT])], is_renew_ack=True)
    acknowledged(pair, "sr", ids, 3, [(0, 2, [RENEW])], is_renew_ack=True)
    configure(pair, "sr", share_renew_acknowledge_enable="false")
    for wire in (pair.ours, pair.theirs):
        wire.ask("DescribeCluster", 2, m.DescribeClusterRequest())
    acknowledged(pair, "sr", ids, 4, [(0, 1, [ACCEPT])])
    fetched(pair, "sr", ids, -1)


def deliver_until_gone(pair: Pair, name: str, ids: Ids, epoch: int, release: int = RELEASE, **more: Any) -> list[list[tuple[int, int, int]]]:
    """Fetches and gives back until nothing comes any more; what came each time."""
    came: list[list[tuple[int, int, int]]] = []
    for _ in range(60):
        got = acquired(fetched(pair, name, ids, epoch, named=epoch == 0, max_wait_ms=60 if epoch else 5000, **more))
        epoch += 1
        if not got:
            return came
        came.append(got)
        acknowledged(pair, name, ids, epoch, [(first, last, [release]) for first, last, _ in got])
        epoch += 1
    raise AssertionError("it never ends")


@pytest.mark.parametrize("limit", [2, 3, 5, 8])
def test_records_are_delivered_so_often(pair: Pair, limit: int) -> None:
    name = f"sdl{limit}"
    ids = began(pair, name, share_delivery_count_limit=str(limit))
    produce(pair, name, ids, batch(*"abcdefgh"))
    produce(pair, name, ids, batch("i"))
    came = deliver_until_gone(pair, name, ids, 0)
    assert max(count for got in came for _, _, count in got) == limit
    offsets(pair, name)
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, -1)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(("records_max", "batch_size"), [(1, 1), (3, 2), (7, 5), (10, 100), (500, 4)])
def test_how_many_records_come(pair: Pair, mode: int, records_max: int, batch_size: int) -> None:
    name = f"sn{mode}-{records_max}-{batch_size}"
    ids = began(pair, name)
    for count in (1, 5, 2, 9, 3):
        produce(pair, name, ids, batch(*"abcdefghi"[:count]))
    epoch = last = 0
    for _ in range(8):
        reply = fetched(
            pair, name, ids, epoch, max_records=records_max, batch_size=batch_size, share_acquire_mode=mode, max_wait_ms=60 if epoch else 5000
        )
        last = max([last, *(end for _, end, _ in acquired(reply))])
        epoch += 1
    acknowledged(pair, name, ids, epoch, [(0, 0, [RELEASE])])
    for _ in range(3):
        epoch += 1
        fetched(pair, name, ids, epoch, max_records=records_max, batch_size=batch_size, share_acquire_mode=mode, max_wait_ms=60)
    fetched(pair, name, ids, -1)
    released(pair, name, ids, last)
    for epoch in range(4):
        fetched(pair, name, ids, epoch, max_records=records_max, batch_size=batch_size, share_acquire_mode=mode, max_wait_ms=60)
    fetched(pair, name, ids, -1)


def test_only_so_many_records_are_in_flight(pair: Pair) -> None:
    ids = began(pair, "sf", share_partition_max_record_locks="100")
    for _ in range(15):
        produce(pair, "sf", ids, batch(*"abcdefghij"))
    for epoch in range(4):
        fetched(pair, "sf", ids, epoch, max_records=45, max_wait_ms=60 if epoch else 5000)
    acknowledged(pair, "sf", ids, 4, [(10, 19, [ACCEPT]), (20, 29, [RELEASE])])
    fetched(pair, "sf", ids, 5, max_wait_ms=60)
    acknowledged(pair, "sf", ids, 6, [(0, 9, [ACCEPT])])
    for epoch in range(7, 10):
        fetched(pair, "sf", ids, epoch, max_wait_ms=60)
    offsets(pair, "sf")
    fetched(pair, "sf", ids, -1)


def test_limits_of_a_fetch(pair: Pair) -> None:
    ids = began(pair, "sb", 2)
    fetched(pair, "sb", ids, 0, max_records=0)
    fetched(pair, "sb", ids, 1, max_bytes=0)
    fetched(pair, "sb", ids, 2, min_bytes=0)
    for index in (0, 1):
        produce(pair, "sb", ids, batch("a" * 300), partition=index)
        produce(pair, "sb", ids, batch("b" * 300), partition=index)
    fetched(pair, "sb", ids, 3, max_bytes=400, max_wait_ms=60)
    fetched(pair, "sb", ids, 4, min_bytes=100_000, max_wait_ms=60)
    fetched(pair, "sb", ids, 5, max_wait_ms=60)
    fetched(pair, "sb", ids, -1)


def test_locks_run_out(pair: Pair) -> None:
    ids = began(pair, "st", share_record_lock_duration_ms="1000")
    produce(pair, "st", ids, batch(*"abcd"))
    fetched(pair, "st", ids, 0)
    reply = fetched(pair, "st", ids, 1, max_wait_ms=5000)
    assert acquired(reply) == [(0, 3, 2)]
    acknowledged(pair, "st", ids, 2, [(0, 3, [ACCEPT])])
    acknowledged(pair, "st", ids, 3, [(0, 3, [ACCEPT])])
    offsets(pair, "st")
    fetched(pair, "st", ids, -1)


def test_records_are_deleted_under_a_group(pair: Pair) -> None:
    ids = began(pair, "sz")
    for _ in range(3):
        produce(pair, "sz", ids, batch(*"abcd"))
    fetched(pair, "sz", ids, 0, max_records=4)
    fetched(pair, "sz", ids, 1, max_records=4)
    r = m.DeleteRecordsRequest
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=6)]
    pair.ask("DeleteRecords", 2, r(timeout_ms=1000, topics=[r.DeleteRecordsTopic(name="sz", partitions=parts)]))
    acknowledged(pair, "sz", ids, 2, [(0, 3, [RELEASE])])
    for epoch in range(3, 6):
        fetched(pair, "sz", ids, epoch, max_wait_ms=60)
    acknowledged(pair, "sz", ids, 6, [(4, 7, [RELEASE])])
    for epoch in range(7, 10):
        fetched(pair, "sz", ids, epoch, max_wait_ms=60)
    offsets(pair, "sz")
    fetched(pair, "sz", ids, -1)


def test_a_topic_that_is_deleted(pair: Pair) -> None:
    ids = began(pair, "sq")
    produce(pair, "sq", ids, batch(*"abcd"))
    fetched(pair, "sq", ids, 0)
    pair.ask("DeleteTopics", 6, m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="sq")], timeout_ms=5000))
    pair.until("DescribeTopicPartitions", 0, _partitions_of("sq"), lambda r: r.topics[0].error_code != 0)
    acknowledged(pair, "sq", ids, 1, [(0, 3, [ACCEPT])])
    fetched(pair, "sq", ids, 2, named=False, max_wait_ms=60)
    fetched(pair, "sq", ids, -1)


def _partitions_of(name: str) -> Any:
    r = m.DescribeTopicPartitionsRequest
    return r(topics=[r.TopicRequest(name=name)])


# states and administration


@pytest.mark.parametrize("start", [-(1 << 63), -(1 << 63) + 5, (1 << 63) - 1, 1 << 40])
def test_the_lag_behind_a_start_offset_that_no_log_has(pair: Pair, start: int) -> None:
    """Java's numbers go round."""
    name = f"lag{start}"
    ids = began(pair, name)
    r, w, d = m.InitializeShareGroupStateRequest, m.WriteShareGroupStateRequest, m.DescribeShareGroupOffsetsRequest
    part = r.PartitionData(partition=0, state_epoch=9, start_offset=start)
    pair.both("InitializeShareGroupState", 0, lambda s: r(group_id=name, topics=[r.InitializeStateData(topic_id=ids[s], partitions=[part])]))
    written = w.PartitionData(partition=0, state_epoch=9, leader_epoch=0, start_offset=start, delivery_complete_count=2)
    pair.both("WriteShareGroupState", 1, lambda s: w(group_id=name, topics=[w.WriteStateData(topic_id=ids[s], partitions=[written])]))
    asked = d.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
    for topics in (None, [asked]):
        pair.ask("DescribeShareGroupOffsets", 1, d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=topics)]))


@pytest.mark.parametrize("start", [-1, 0, 5])
def test_the_states_of_share_partitions(pair: Pair, start: int) -> None:
    ids = topic(pair, f"sp{start}", 2)
    group = f"sp{start}"

    def initialize(epoch: int, partition: int = 0, offset: int = start, topic_id: bytes | None = None) -> None:
        r = m.InitializeShareGroupStateRequest
        part = r.PartitionData(partition=partition, state_epoch=epoch, start_offset=offset)
        pair.both(
            "InitializeShareGroupState",
            0,
            lambda s: r(group_id=group, topics=[r.InitializeStateData(topic_id=topic_id or ids[s], partitions=[part])]),
        )

    def read(epoch: int, partition: int = 0) -> None:
        r = m.ReadShareGroupStateRequest
        part = r.PartitionData(partition=partition, leader_epoch=epoch)
        pair.both("ReadShareGroupState", 0, lambda s: r(group_id=group, topics=[r.ReadStateData(topic_id=ids[s], partitions=[part])]))

    def write(
        state: int, leader: int, offset: int, found: list[tuple[int, int, int, int]], version: int = 1, partition: int = 0, done: int = 0
    ) -> None:
        r = m.WriteShareGroupStateRequest
        rows = [r.StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d) for a, b, c, d in found]
        part = r.PartitionData(partition=partition, state_epoch=state, leader_epoch=leader, start_offset=offset, state_batches=rows)
        if version:
            part.delivery_complete_count = done
        pair.both("WriteShareGroupState", version, lambda s: r(group_id=group, topics=[r.WriteStateData(topic_id=ids[s], partitions=[part])]))

    def summarize(version: int = 1) -> None:
        pair.both("ReadShareGroupStateSummary", version, lambda s: summary(group, ids, s, 3))

    def delete(partition: int) -> None:
        r = m.DeleteShareGroupStateRequest
        part = r.PartitionData(partition=partition)
        pair.both("DeleteShareGroupState", 0, lambda s: r(group_id=group, topics=[r.DeleteStateData(topic_id=ids[s], partitions=[part])]))

    read(0)
    write(0, 0, 0, [])
    summarize()
    initialize(3)
    initialize(2)
    initialize(-1)
    initialize(3, partition=-1)
    initialize(3, partition=7)
    initialize(3, topic_id=NO_UUID)
    initialize(3, topic_id=b"\x05" * 16)
    summarize(0)
    read(4)
    read(3)
    read(-1)
    read(0, partition=-1)
    write(3, 4, 0, [(0, 9, 0, 1), (10, 19, 2, 1), (20, 29, 4, 5)], done=20)
    write(3, 4, 5, [(5, 6, 2, 2), (8, 12, 0, 2), (30, 30, 0, 1)], done=3)
    write(3, 4, 4, [(7, 7, 2, 1)], version=0)
    write(2, 4, 5, [])
    write(3, 3, 5, [])
    write(-1, 4, 5, [])
    write(3, -1, 5, [])
    write(3, 4, 5, [], partition=7)
    write(4, 5, 6, [(6, 6, 2, 3)], done=2)
    read(4)
    read(5)
    summarize()
    for offset in range(7, 20):
        write(4, 5, offset, [(offset, offset + 3, offset % 2 * 2, 3)], done=1)
    read(5)
    summarize()
    initialize(9, offset=2)
    read(9)
    delete(0)
    delete(1)
    delete(-1)
    delete(7)
    summarize()
    group = ""
    initialize(1)
    read(1)
    write(1, 1, 1, [])
    delete(0)


def test_offsets_are_described_altered_and_deleted(pair: Pair) -> None:
    ids = began(pair, "so", 2)
    produce(pair, "so", ids, batch(*"abcdef"))
    fetched(pair, "so", ids, 0)
    acknowledged(pair, "so", ids, 1, [(0, 1, [ACCEPT]), (4, 4, [ACCEPT])])
    d = m.DescribeShareGroupOffsetsRequest

    def described() -> None:
        for version in (0, 1):
            offsets(pair, "so", version)
            for name, partitions in (("so", [0, 1]), ("none", [0]), ("so", [])):
                topics = [d.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)]
                pair.ask("DescribeShareGroupOffsets", version, d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id="so", topics=topics)]))
            pair.ask("DescribeShareGroupOffsets", version, d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id="so", topics=[])]))
            offsets(pair, "nobody", version)

    def altered(group: str, *wanted: tuple[str, int, int]) -> None:
        a = m.AlterShareGroupOffsetsRequest
        topics = [
            a.AlterShareGroupOffsetsRequestTopic(
                topic_name=name, partitions=[a.AlterShareGroupOffsetsRequestPartition(partition_index=p, start_offset=o)]
            )
            for name, p, o in wanted
        ]
        pair.ask("AlterShareGroupOffsets", 0, a(group_id=group, topics=topics))

    def deleted(group: str, *names: str) -> None:
        x = m.DeleteShareGroupOffsetsRequest
        topics = [x.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        pair.ask("DeleteShareGroupOffsets", 0, x(group_id=group, topics=topics))

    described()
    altered("so", ("so", 0, 3))
    deleted("so", "so")
    fetched(pair, "so", ids, -1)
    heartbeat(pair, "so", -1)
    altered("so", ("so", 0, 3), ("none", 0, 1))
    altered("so", ("so", 9, 3))
    altered("so")
    altered("", ("so", 0, 3))
    described()
    fetched(pair, "so", ids, 0)
    fetched(pair, "so", ids, -1)
    deleted("", "so")
    deleted("nobody", "so")
    deleted("so", "none")
    deleted("so", "so", "none")
    deleted("so", "so")
    described()
    altered("so2", ("so", 0, 2))
    offsets(pair, "so2")
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["so", "so2"]))
    described()


@pytest.mark.parametrize("version", range(7))
def test_coordinators_of_share_partitions_are_found(pair: Pair, version: int) -> None:
    uuid = "A" * 21 + "Q"
    for key in ("g", f"g:{uuid}:0", f"a:b:{uuid}:3", f":{uuid}:0", f"g:{uuid}", f"g:{uuid}:x", f"g:{uuid}:-1", "g:short:0", f" :{uuid}:0"):
        request = m.FindCoordinatorRequest(key_type=2)
        if version >= 4:
            request.coordinator_keys = [key]
        else:
            request.key = key
        if version >= 1:
            pair.ask("FindCoordinator", version, request)


# features


FEATURES: tuple[list[tuple[str, int, int]], ...] = (
    [("share.version", 1, 1)],
    [("share.version", 1, 2)],
    [("share.version", 1, 3)],
    [("share.version", 9, 1)],
    [("share.version", -1, 1)],
    [("share.version", 2, 1)],
    [("share.version", 1, 0)],
    [("share.version", 1, 7)],
    [("share.version", 1, 2), ("nope", 3, 1)],
    [("share.version", 1, 2), ("share.version", 2, 1)],
    [("nope", 1, 1)],
    [("", 1, 1)],
    [],
    [("kraft.version", 1, 1)],
    [("kraft.version", 0, 2)],
    [("metadata.version", 5, 2)],
    [("metadata.version", 28, 2)],
    [("metadata.version", 28, 3)],
    [("group.version", 0, 2), ("transaction.version", 1, 2)],
)


def feature_request(version: int, updates: list[tuple[str, int, int]], try_only: bool = True) -> Any:
    u = m.UpdateFeaturesRequest
    request = u(timeout_ms=5000)
    for name, level, kind in updates:
        one = u.FeatureUpdateKey(feature=name, max_version_level=level)
        if version == 0:
            one.allow_downgrade = kind > 1
        else:
            one.upgrade_type = kind
        request.feature_updates.append(one)
    if version >= 1:
        request.validate_only = try_only
    return request


@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_go_up_and_down(pair: Pair, version: int) -> None:
    for updates in FEATURES:
        pair.ask("UpdateFeatures", version, feature_request(version, updates))


def test_share_groups_follow_their_feature(pair: Pair) -> None:
    """At level 0 share groups are refused, with live members and records in flight; at level 2 they begin anew."""
    ids = began(pair, "sv")
    produce(pair, "sv", ids, batch(*"abcd"))
    fetched(pair, "sv", ids, 0, max_wait_ms=5000)

    def level(wanted: int, kind: int) -> None:
        pair.ask("UpdateFeatures", 2, feature_request(2, [("share.version", wanted, kind)], try_only=False))
        for wire in (pair.ours, pair.theirs):
            for _ in range(5000):
                listed = wire.ask("ApiVersions", 4, m.ApiVersionsRequest(client_software_name="w", client_software_version="1"))
                if {f.name: f.max_version_level for f in listed.finalized_features}.get("share.version", 0) == wanted:
                    break
            else:
                raise AssertionError("the level does not change")

    level(1, 2)
    acknowledged(pair, "sv", ids, 1, [(0, 0, [ACCEPT])])
    level(0, 2)
    fetched(pair, "sv", ids, 2)
    acknowledged(pair, "sv", ids, 2, [(1, 1, [ACCEPT])])
    heartbeat(pair, "sv", 0, ["sv"])
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["sv"]))
    offsets(pair, "sv")
    pair.ask("AlterShareGroupOffsets", 0, m.AlterShareGroupOffsetsRequest(group_id="sv"))
    pair.ask("DeleteShareGroupOffsets", 0, m.DeleteShareGroupOffsetsRequest(group_id="sv"))
    level(2, 1)
    fetched(pair, "sv", ids, 2)
    fetched(pair, "sv", ids, 0, max_wait_ms=5000)
    fetched(pair, "sv", ids, -1)


# what is written


def written(wire: Wire, partitions: int) -> list[tuple[Any, Any]]:
    """The records of `__share_group_state`, without what is random or a moment."""
    topics = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="__share_group_state")])
    (found,) = wire.ask("Metadata", 12, topics).topics
    pairs = []
    for index in range(partitions):
        r = m.FetchRequest
        part = r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 24)
        request = r(max_wait_ms=100, min_bytes=1, topics=[r.FetchTopic(topic_id=found.topic_id, partitions=[part])])
        (reply,) = wire.ask("Fetch", 16, request).responses[0].partitions
        for at in records.batches(bytes(reply.records)):
            for record in records.decode(bytes(reply.records), at):
                decoded = share_format().decode(record)
                assert decoded is not None
                pairs.append(decoded)
    for key, value in pairs:
        key.topic_id = NO_UUID
        if value is not None and hasattr(value, "create_timestamp"):
            value.create_timestamp = value.write_timestamp = value.create_timestamp == value.write_timestamp
    return pairs


def test_the_same_records_are_written(pair: Pair) -> None:
    """The whole history of a group, in Kafka's records: updates, and a snapshot after five of them."""
    ids = began(pair, "records")
    produce(pair, "records", ids, batch(*"abcdefghij"))
    fetched(pair, "records", ids, 0)
    for number, acks in enumerate(([(0, 0, [ACCEPT])], [(2, 3, [RELEASE])], [(1, 1, [REJECT])], [(4, 7, [ACCEPT])])):
        acknowledged(pair, "records", ids, number + 1, acks)
    fetched(pair, "records", ids, 5)
    for number, acks in enumerate(([(2, 2, [ACCEPT])], [(3, 3, [ACCEPT])], [(8, 8, [ACCEPT])])):
        acknowledged(pair, "records", ids, number + 6, acks)
    fetched(pair, "records", ids, -1)
    mine, other = ([p for p in written(wire, 2) if p[0].group_id == "records"] for wire in (pair.ours, pair.theirs))
    assert len(mine) == len(other) > 8
    found = [(n, d) for n, (a, b) in enumerate(zip(mine, other, strict=True)) for one, two in zip(a, b, strict=True) for d in differences(one, two)]
    assert not found, found


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT30M", "by_duration:PT1M", "by_duration:P30D"])
def test_where_a_group_begins(pair: Pair, reset: str) -> None:
    """Records of an hour and of ten minutes ago; within the last minute there are none."""
    name = f"sr-{reset.replace(':', '-')}"
    ids = topic(pair, name)
    now_ms = int(time.time() * 1000)
    for minutes in (60, 10):
        produce(pair, name, ids, bytes(records.encode([Record(value=b"v", timestamp=now_ms - minutes * 60_000)])))
    configure(pair, name, share_auto_offset_reset=reset)
    heartbeat(pair, name, 0, [name])
    initialized(pair, name, ids)
    for epoch in (0, 1):
        fetched(pair, name, ids, epoch)
    offsets(pair, name)
    produce(pair, name, ids, batch())
    fetched(pair, name, ids, 2)


# dead letters


def dead_letters(pair: Pair, name: str, count: int) -> None:
    """Waits until each queue has so many records, and compares them but for their times."""
    found = []
    for wire in (pair.ours, pair.theirs):
        for _ in range(3000):
            request = fetch_message(name, 0, wait_ms=20)
            part = wire.ask("Fetch", 12, request).responses[0].partitions[0]
            data = part.records or b""
            rows = [r for at in records.batches(data) for r in records.decode(data, at)] if not part.error_code else []
            if len(rows) >= count:
                break
        else:
            raise AssertionError(f"{len(rows)} dead letters, {count} were due")
        found.append([(r.offset, r.key, r.value, [(k, v) for k, v in r.headers]) for r in rows])
    assert found[0] == found[1]


@pytest.mark.parametrize("copied", ["false", "true"])
def test_dead_letters(pair: Pair, copied: str) -> None:
    """One record is rejected, one released until that is once too often, and one is held for too long as often."""
    name, queue = f"sd-{copied}", f"dlq.sd-{copied}"
    create(pair, creatable(queue, 1, 1, **{"errors.deadletterqueue.group.enable": "true"}))
    more = {"errors_deadletterqueue_topic_name": queue, "errors_deadletterqueue_copy_record_enable": copied, "share_delivery_count_limit": "2"}
    ids = began(pair, name, 1, None, share_record_lock_duration_ms="4000", **more)
    fetched(pair, name, ids, 0)
    produce(pair, name, ids, batch("a", "b", "c", "d", keys=["1", "2", "3", "4"]))
    fetched(pair, name, ids, 1)
    acknowledged(pair, name, ids, 2, [(0, 0, [REJECT]), (1, 1, [RELEASE]), (3, 3, [ACCEPT])])
    fetched(pair, name, ids, 3, max_wait_ms=3000)
    acknowledged(pair, name, ids, 4, [(1, 1, [RELEASE])])
    dead_letters(pair, queue, 2)
    for epoch in (5, 6):
        assert acquired(fetched(pair, name, ids, epoch, max_wait_ms=6000)) == ([(2, 2, 2)] if epoch == 5 else [])
    dead_letters(pair, queue, 3)
    offsets(pair, name)


def test_queues_that_make_themselves(pair: Pair) -> None:
    name, queue = "sdm", "dlq.sdm"
    ids = began(pair, name, errors_deadletterqueue_topic_name=queue)
    produce(pair, name, ids, batch("a"))
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, 1, [(0, 0, [REJECT])])
    dead_letters(pair, queue, 1)
    r = m.DescribeConfigsRequest
    pair.ask("DescribeConfigs", 4, r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name=queue, configuration_keys=None)]))


@pytest.mark.parametrize("queue", ["__dlq", "other", "dlq.unflagged", "bad name", "."])
def test_queues_that_may_not_be_written(pair: Pair, queue: str) -> None:
    """The record is archived all the same."""
    name = f"sdx-{queue.encode().hex()}"
    if queue == "dlq.unflagged":
        create(pair, creatable(queue, 1, 1))
    ids = began(pair, name, errors_deadletterqueue_topic_name=queue)
    produce(pair, name, ids, batch("a", "b"))
    fetched(pair, name, ids, 0)
    fetched(pair, name, ids, 1)
    acknowledged(pair, name, ids, 2, [(0, 0, [REJECT]), (1, 1, [ACCEPT])])
    fetched(pair, name, ids, 3)
    pair.ask("Metadata", 12, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=queue)], allow_auto_topic_creation=False))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share.record.lock.duration.ms", "60001"),
        ("share.record.lock.duration.ms", "999"),
        ("share.delivery.count.limit", "1"),
        ("share.delivery.count.limit", "many"),
        ("share.partition.max.record.locks", "4001"),
        ("share.auto.offset.reset", "none"),
        ("share.auto.offset.reset", "by_duration:-PT1S"),
        ("share.isolation.level", "serializable"),
        ("share.renew.acknowledge.enable", "perhaps"),
        ("share.session.timeout.ms", "5000"),
        ("errors.deadletterqueue.topic.name", "__x"),
        ("errors.deadletterqueue.copy.record.enable", "yes"),
        ("streams.num.standby.replicas", "3"),
        ("streams.num.warmup.replicas", "1000"),
        ("streams.task.offset.interval.ms", "1"),
        ("streams.assignor.name", "none"),
    ],
)
def test_values_that_a_group_may_not_have(pair: Pair, name: str, value: str) -> None:
    configure(pair, "sv", **{name: value})
    r = m.DescribeConfigsRequest
    pair.ask("DescribeConfigs", 4, r(resources=[r.DescribeConfigsResource(resource_type=32, resource_name="sv", configuration_keys=[name])]))
