"""Requests of every API for the stories of rights, by version and topic id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol import messages as m

from .topics import batch, creatable, produce_request


def named(kind: Any, name: str, version: int, since: int, topic_id: bytes, field: str = "name", **more: Any) -> Any:
    return kind(**({"topic_id": topic_id} if version >= since else {field: name}), **more)


def fetch(v: int, i: bytes) -> Any:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    return r(max_wait_ms=0, session_epoch=-1, topics=[named(r.FetchTopic, "t", v, 13, i, "topic", partitions=parts)])


def list_offsets(v: int, i: bytes) -> Any:
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    return r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=parts) for name in ("t", "ghost")])


def metadata(v: int, i: bytes, *names: str, by_id: bool = False, creates: bool = False) -> Any:
    r = m.MetadataRequest
    topics = [r.MetadataRequestTopic(name=name) for name in names]
    if by_id:
        topics = [r.MetadataRequestTopic(topic_id=i, name=None)]
    extra: dict[str, Any] = {"include_topic_authorized_operations": True} if v >= 8 else {}
    if 8 <= v <= 10:
        extra["include_cluster_authorized_operations"] = True
    if v >= 4:
        extra["allow_auto_topic_creation"] = creates
    return r(topics=topics or None, **extra)


def offset_commit(v: int, i: bytes) -> Any:
    r = m.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [named(r.OffsetCommitRequestTopic, "t", v, 10, i, partitions=parts)]
    if v < 10:
        topics.append(r.OffsetCommitRequestTopic(name="ghost", partitions=parts))
    return r(group_id="g", topics=topics)


def offset_fetch(v: int, i: bytes, named_topics: bool = True) -> Any:
    r = m.OffsetFetchRequest
    if v < 8:
        topics = [r.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in ("t", "ghost")]
        return r(group_id="g", topics=topics if named_topics else None)
    wanted = [named(r.OffsetFetchRequestTopics, "t", v, 10, i, partition_indexes=[0])] if named_topics else None
    groups = [r.OffsetFetchRequestGroup(group_id=name, topics=wanted) for name in ("g", "h")]
    return r(groups=groups)


def find(kind: int, *keys: str) -> Callable[[int, bytes], Any]:
    def make(v: int, i: bytes) -> Any:
        if v < 4:
            return m.FindCoordinatorRequest(key_type=kind, key=keys[0])
        return m.FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))

    return make


def join(v: int, i: bytes) -> Any:
    return m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=1000, member_id="nobody")


def create_topics(v: int, i: bytes) -> Any:
    return m.CreateTopicsRequest(topics=[creatable("new"), creatable("other")], timeout_ms=5000, validate_only=True)


def delete_topics(v: int, i: bytes) -> Any:
    r = m.DeleteTopicsRequest
    if v < 6:
        return r(topic_names=["ghost"], timeout_ms=5000)
    return r(topics=[r.DeleteTopicState(name="ghost"), r.DeleteTopicState(name="doomed")], timeout_ms=5000)


def delete_records(v: int, i: bytes) -> Any:
    r = m.DeleteRecordsRequest
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=0)]
    return r(topics=[r.DeleteRecordsTopic(name=name, partitions=parts) for name in ("t", "ghost")], timeout_ms=5000)


def epochs(v: int, i: bytes) -> Any:
    r = m.OffsetForLeaderEpochRequest
    parts = [r.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    return r(replica_id=-2, topics=[r.OffsetForLeaderTopic(topic=name, partitions=parts) for name in ("t", "ghost")])


def add_partitions(v: int, i: bytes) -> Any:
    r = m.AddPartitionsToTxnRequest
    topics = [r.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "u")]
    if v < 4:
        return r(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=99999,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
    one = r.AddPartitionsToTxnTransaction(transactional_id="x", producer_id=99999, producer_epoch=0, topics=topics)
    return r(transactions=[one])


def markers(v: int, i: bytes) -> Any:
    r = m.WriteTxnMarkersRequest
    topics = [r.WritableTxnMarkerTopic(name="ghost", partition_indexes=[0])]
    return r(
        markers=[r.WritableTxnMarker(producer_id=99999, producer_epoch=0, transaction_result=False, topics=topics)]
    )


def txn_offsets(v: int, i: bytes) -> Any:
    r = m.TxnOffsetCommitRequest
    parts = [r.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    topics = [named(r.TxnOffsetCommitRequestTopic, "t", v, 6, i, partitions=parts)]
    return r(transactional_id="x", group_id="g", producer_id=99999, producer_epoch=0, topics=topics)


def configs(request: Any, resource: str, config: Callable[..., Any]) -> Callable[[int, bytes], Any]:
    def make(v: int, i: bytes) -> Any:
        one = getattr(request, resource)
        changes = {"configs": [config()]} if config is not none else {"configuration_keys": ["retention.ms"]}
        named_ = ((2, "t"), (32, "g"), (4, "1"))
        resources = [one(resource_type=kind, resource_name=name, **changes) for kind, name in named_]
        more = {"validate_only": True} if config is not none else {}
        return request(resources=resources, **more)

    return make


def none() -> None:
    return None


def producers(v: int, i: bytes) -> Any:
    r = m.DescribeProducersRequest
    return r(topics=[r.TopicRequest(name=name, partition_indexes=[0]) for name in ("t", "ghost", "no topic!")])


def share_offsets(v: int, i: bytes) -> Any:
    r = m.DescribeShareGroupOffsetsRequest
    topics = [r.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in ("t", "ghost")]
    return r(groups=[r.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=topics)])


def states(request: Any, topic: str) -> Callable[[int, bytes], Any]:
    return lambda v, i: request(
        group_id="z", topics=[getattr(request, topic)(topic_id=ID, partitions=[request.PartitionData(partition=0)])]
    )


def assignment() -> Any:
    r = m.AlterPartitionReassignmentsRequest
    parts = [r.ReassignablePartition(partition_index=0, replicas=None)]
    return r(timeout_ms=5000, topics=[r.ReassignableTopic(name="ghost", partitions=parts)])


def partitions() -> Any:
    r = m.CreatePartitionsRequest
    topics = [r.CreatePartitionsTopic(name=name, count=5, assignments=None) for name in ("t", "ghost")]
    return r(topics=topics, timeout_ms=5000, validate_only=True)


def leaders() -> Any:
    r = m.ElectLeadersRequest
    return r(election_type=0, timeout_ms=5000, topic_partitions=[r.TopicPartitions(topic="ghost", partitions=[0])])


def offset_delete() -> Any:
    r = m.OffsetDeleteRequest
    parts = [r.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [r.OffsetDeleteRequestTopic(name=name, partitions=parts) for name in ("t", "ghost")]
    return r(group_id="g", topics=topics)


def alter_share() -> Any:
    r = m.AlterShareGroupOffsetsRequest
    parts = [r.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)]
    topics = [r.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=parts) for name in ("t", "ghost")]
    return r(group_id="absent", topics=topics)


def delete_share() -> Any:
    r = m.DeleteShareGroupOffsetsRequest
    topics = [r.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("t", "ghost")]
    return r(group_id="absent", topics=topics)


def topic_partitions(*names: str) -> Callable[[int, bytes], Any]:
    r = m.DescribeTopicPartitionsRequest
    return lambda v, i: r(topics=[r.TopicRequest(name=name) for name in names])


def same(request: Any) -> Callable[[int, bytes], Any]:
    return lambda v, i: request


ID = b"?" * 16


HEARTBEAT = m.ConsumerGroupHeartbeatRequest(
    group_id="c", member_id="B" * 22, member_epoch=-1, subscribed_topic_names=["t", "u"]
)


SHARE_HEARTBEAT = m.ShareGroupHeartbeatRequest(
    group_id="s", member_id="B" * 22, member_epoch=-1, subscribed_topic_names=["t", "u"]
)


STREAMS_HEARTBEAT = m.StreamsGroupHeartbeatRequest(
    group_id="st",
    member_id="D" * 22,
    member_epoch=-1,
    topology=m.StreamsGroupHeartbeatRequest.Topology(
        subtopologies=[
            m.StreamsGroupHeartbeatRequest.Subtopology(
                subtopology_id="0", source_topics=["t"], repartition_sink_topics=["u"]
            )
        ]
    ),
)


SCRAM = m.AlterUserScramCredentialsRequest(
    deletions=[m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="nobody", mechanism=1)]
)


QUOTAS = m.AlterClientQuotasRequest(
    entries=[
        m.AlterClientQuotasRequest.EntryData(
            entity=[m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="nobody")],
            ops=[m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", remove=True)],
        )
    ]
)


FEATURES = m.UpdateFeaturesRequest(
    feature_updates=[m.UpdateFeaturesRequest.FeatureUpdateKey(feature="nothing", max_version_level=1, upgrade_type=1)],
    timeout_ms=5000,
    validate_only=True,
)


def replica_fetch(v: int, i: bytes) -> Any:
    """The Fetch of a follower that is none, of the topic `fetched`."""
    request = fetch(v, i)
    if v < 13:
        request.topics[0].topic = "fetched"
    if v >= 15:
        request.replica_state = m.FetchRequest.ReplicaState(replica_id=7)
    else:
        request.replica_id = 7
    return request


def transactional_produce(v: int, i: bytes) -> Any:
    """Records of a transaction that was not begun."""
    data = batch("a", producer_id=99999, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_request(v, "t", i, data)
    request.transactional_id = "x"
    return request


def share_fetch(v: int, i: bytes) -> Any:
    """The first Fetch of a member that is none, whose session is over at once."""
    r = m.ShareFetchRequest
    topics = [r.FetchTopic(topic_id=i, partitions=[r.FetchPartition(partition_index=0)])]
    return r(group_id="s", member_id="A" * 22, share_session_epoch=-1, topics=topics)


def share_acknowledge(v: int, i: bytes) -> Any:
    r = m.ShareAcknowledgeRequest
    taken = r.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    topics = [
        r.AcknowledgeTopic(
            topic_id=i, partitions=[r.AcknowledgePartition(partition_index=0, acknowledgement_batches=[taken])]
        )
    ]
    return r(group_id="s", member_id="A" * 22, share_session_epoch=1, topics=topics)
