"""Which rights the APIs need, as stories: a request, and the rights that are granted for it and taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from ottla.coordinator.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m

from ..acls import creations
from ..differential import Pair
from .rights_requests import (
    FEATURES,
    HEARTBEAT,
    QUOTAS,
    SCRAM,
    SHARE_HEARTBEAT,
    STREAMS_HEARTBEAT,
    add_partitions,
    alter_share,
    assignment,
    configs,
    create_topics,
    delete_records,
    delete_share,
    delete_topics,
    epochs,
    fetch,
    find,
    join,
    leaders,
    list_offsets,
    markers,
    metadata,
    none,
    offset_commit,
    offset_delete,
    offset_fetch,
    partitions,
    producers,
    same,
    share_acknowledge,
    share_fetch,
    share_offsets,
    states,
    topic_partitions,
    transactional_produce,
    txn_offsets,
)
from .topics import batch, produce_request, versions

HERE, THERE = "127.0.0.1", "127.0.0.2"


OP, R = Operation, ResourceType


CLUSTER = (R.CLUSTER, CLUSTER_NAME)


T, G, X = (R.TOPIC, "t"), (R.GROUP, "g"), (R.TRANSACTIONAL_ID, "x")


Right = tuple[Operation, tuple[ResourceType, str]]


def acl(right: Right, host: str) -> Acl:
    operation, (kind, name) = right
    return Acl(kind, name, PatternType.LITERAL, "User:ANONYMOUS", host, operation, Permission.ALLOW)


def everything(host: str) -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": host,
        "operation": 1,
        "permission_type": 1,
    }


def grant(pair: Pair, *rights: Right) -> None:
    """Gives the other address these rights only, and waits until both brokers know them."""
    f, d = m.DeleteAclsRequest, m.DescribeAclsRequest
    pair.ask("DeleteAcls", 3, f(filters=[f.DeleteAclsFilter(**everything(THERE))]))
    if rights:
        pair.ask("CreateAcls", 3, creations([acl(right, THERE) for right in rights]))
    wanted = len(set(rights))
    pair.until(
        "DescribeAcls",
        3,
        d(**everything(THERE)),
        lambda reply: sum(len(resource.acls) for resource in reply.resources) == wanted,
    )


class Story(NamedTuple):
    """A request, and the rights that it needs. `make` gets the version, and the id of the topic on that side."""

    api: str
    versions: tuple[int, ...]
    make: Callable[[int, bytes], Any]
    rights: tuple[Right, ...]


def story(api: str, make: Callable[[int, bytes], Any], *rights: Right, at: tuple[int, ...] | None = None) -> Story:
    return Story(api, at or (versions(api)[-1],), make, rights)


GHOST, U, WRONG = (R.TOPIC, "ghost"), (R.TOPIC, "u"), (R.TOPIC, "no topic!")


READ_G, READ_T = (OP.READ, G), (OP.READ, T)


DESCRIBE_T, DESCRIBE_G, DESCRIBE_C = (OP.DESCRIBE, T), (OP.DESCRIBE, G), (OP.DESCRIBE, CLUSTER)


ALTER_C, ACTION_C = (OP.ALTER, CLUSTER), (OP.CLUSTER_ACTION, CLUSTER)


WRITE_X = (OP.WRITE, X)


STORIES = (
    story("Produce", lambda v, i: produce_request(v, "t", i, batch("a")), (OP.WRITE, T), at=(9, 13)),
    story("Fetch", fetch, READ_T, at=(12, 17)),
    story("ListOffsets", list_offsets, DESCRIBE_T, (OP.DESCRIBE, GHOST)),
    story(
        "Metadata", lambda v, i: metadata(v, i, "t", "ghost"), DESCRIBE_T, (OP.DESCRIBE, GHOST), DESCRIBE_C, at=(8, 13)
    ),
    story("Metadata", metadata, DESCRIBE_T, (OP.WRITE, U), DESCRIBE_C, at=(1, 10, 13)),
    story("Metadata", lambda v, i: metadata(v, i, by_id=True), DESCRIBE_T, (OP.ALTER_CONFIGS, T), at=(12, 13)),
    story("OffsetCommit", offset_commit, READ_G, READ_T, (OP.READ, GHOST), at=(9, 10)),
    story("OffsetFetch", offset_fetch, DESCRIBE_G, DESCRIBE_T, (OP.DESCRIBE, (R.GROUP, "h")), at=(5, 9, 10)),
    story("OffsetFetch", lambda v, i: offset_fetch(v, i, False), DESCRIBE_G, DESCRIBE_T, at=(5, 9, 10)),
    story("FindCoordinator", find(0, "g", "h"), DESCRIBE_G, at=(3, 6)),
    story("FindCoordinator", find(1, "x", "y"), (OP.DESCRIBE, X), at=(3, 6)),
    story("JoinGroup", join, READ_G, at=(1, 9)),
    story("Heartbeat", same(m.HeartbeatRequest(group_id="g", member_id="nobody")), READ_G),
    story("LeaveGroup", same(m.LeaveGroupRequest(group_id="g")), READ_G),
    story(
        "SyncGroup",
        same(m.SyncGroupRequest(group_id="g", member_id="nobody", protocol_type="a", protocol_name="b")),
        READ_G,
    ),
    story(
        "DescribeGroups",
        same(m.DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)),
        DESCRIBE_G,
        (OP.DELETE, G),
    ),
    story("ListGroups", same(m.ListGroupsRequest()), DESCRIBE_C, DESCRIBE_G),
    story(
        "CreateTopics",
        create_topics,
        (OP.CREATE, CLUSTER),
        (OP.CREATE, (R.TOPIC, "new")),
        (OP.DESCRIBE_CONFIGS, (R.TOPIC, "new")),
        at=(4, 7),
    ),
    story(
        "DeleteTopics",
        delete_topics,
        (OP.DESCRIBE, (R.TOPIC, "doomed")),
        (OP.DESCRIBE, GHOST),
        (OP.DELETE, (R.TOPIC, "doomed")),
        at=(5, 6),
    ),
    story("DeleteRecords", delete_records, (OP.DELETE, T), (OP.DELETE, GHOST)),
    story("InitProducerId", same(m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)), WRITE_X),
    story(
        "InitProducerId",
        same(m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)),
        (OP.IDEMPOTENT_WRITE, CLUSTER),
        (OP.WRITE, U),
    ),
    story("OffsetForLeaderEpoch", epochs, DESCRIBE_T, ACTION_C),
    story("AddPartitionsToTxn", add_partitions, WRITE_X, (OP.WRITE, T), (OP.WRITE, U), at=(3,)),
    story("AddPartitionsToTxn", add_partitions, ACTION_C, at=(5,)),
    story(
        "AddOffsetsToTxn",
        same(m.AddOffsetsToTxnRequest(transactional_id="x", producer_id=99999, producer_epoch=0, group_id="g")),
        WRITE_X,
        READ_G,
    ),
    story("EndTxn", same(m.EndTxnRequest(transactional_id="x", producer_id=99999, producer_epoch=0)), WRITE_X),
    story("WriteTxnMarkers", markers, ALTER_C, ACTION_C),
    story("TxnOffsetCommit", txn_offsets, WRITE_X, READ_G, READ_T),
    story("DescribeAcls", same(m.DescribeAclsRequest(**everything("no host"))), DESCRIBE_C),
    story("CreateAcls", same(creations([acl((OP.ANY, T), "h")])), ALTER_C),
    story(
        "DeleteAcls",
        same(m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**everything("no host"))])),
        ALTER_C,
    ),
    story(
        "DescribeConfigs",
        configs(m.DescribeConfigsRequest, "DescribeConfigsResource", none),
        (OP.DESCRIBE_CONFIGS, T),
        (OP.ALTER_CONFIGS, G),
        (OP.DESCRIBE_CONFIGS, CLUSTER),
    ),
    story(
        "AlterConfigs",
        configs(
            m.AlterConfigsRequest,
            "AlterConfigsResource",
            lambda: m.AlterConfigsRequest.AlterableConfig(name="nothing", value="1"),
        ),
        (OP.ALTER_CONFIGS, T),
        (OP.ALTER_CONFIGS, G),
        (OP.ALTER_CONFIGS, CLUSTER),
    ),
    story(
        "IncrementalAlterConfigs",
        configs(
            m.IncrementalAlterConfigsRequest,
            "AlterConfigsResource",
            lambda: m.IncrementalAlterConfigsRequest.AlterableConfig(name="nothing", config_operation=0, value="1"),
        ),
        (OP.ALTER_CONFIGS, T),
        (OP.ALTER_CONFIGS, G),
        (OP.ALTER_CONFIGS, CLUSTER),
    ),
    story("CreatePartitions", same(partitions()), (OP.ALTER, T), (OP.ALTER, GHOST)),
    story("DeleteGroups", same(m.DeleteGroupsRequest(groups_names=["h", "absent"])), (OP.DELETE, (R.GROUP, "absent"))),
    story("ElectLeaders", same(leaders()), ALTER_C),
    story("AlterPartitionReassignments", same(assignment()), ALTER_C),
    story(
        "ListPartitionReassignments",
        same(m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)),
        DESCRIBE_C,
    ),
    story("OffsetDelete", lambda v, i: offset_delete(), (OP.DELETE, G), READ_T, (OP.READ, GHOST)),
    story(
        "DescribeUserScramCredentials",
        same(
            m.DescribeUserScramCredentialsRequest(users=[m.DescribeUserScramCredentialsRequest.UserName(name="nobody")])
        ),
        DESCRIBE_C,
    ),
    story("AlterUserScramCredentials", same(SCRAM), ALTER_C),
    story("UpdateFeatures", same(FEATURES), ALTER_C, at=(1, 2)),
    story(
        "DescribeCluster",
        same(m.DescribeClusterRequest(include_cluster_authorized_operations=True)),
        DESCRIBE_C,
        (OP.ALTER_CONFIGS, CLUSTER),
        (OP.CREATE, CLUSTER),
    ),
    story("DescribeProducers", producers, READ_T, (OP.READ, GHOST)),
    story(
        "DescribeTransactions",
        same(m.DescribeTransactionsRequest(transactional_ids=["x", "absent"])),
        (OP.DESCRIBE, X),
    ),
    story("ListTransactions", same(m.ListTransactionsRequest()), (OP.DESCRIBE, X)),
    story("ConsumerGroupHeartbeat", same(HEARTBEAT), (OP.READ, (R.GROUP, "c")), DESCRIBE_T, (OP.DESCRIBE, U)),
    story(
        "ConsumerGroupDescribe",
        same(m.ConsumerGroupDescribeRequest(group_ids=["g", "absent"], include_authorized_operations=True)),
        DESCRIBE_G,
        (OP.DESCRIBE, (R.GROUP, "absent")),
    ),
    story(
        "ListConfigResources", same(m.ListConfigResourcesRequest(resource_types=[2])), (OP.DESCRIBE_CONFIGS, CLUSTER)
    ),
    story("DescribeTopicPartitions", topic_partitions("t", "ghost"), DESCRIBE_T, (OP.WRITE, T), (OP.DESCRIBE, GHOST)),
    story("DescribeTopicPartitions", topic_partitions(), DESCRIBE_T, (OP.DESCRIBE, U)),
    story("ShareGroupHeartbeat", same(SHARE_HEARTBEAT), (OP.READ, (R.GROUP, "s")), DESCRIBE_T, (OP.DESCRIBE, U)),
    story(
        "ShareGroupDescribe",
        same(m.ShareGroupDescribeRequest(group_ids=["g", "absent"], include_authorized_operations=True)),
        DESCRIBE_G,
        (OP.DESCRIBE, (R.GROUP, "absent")),
    ),
    story(
        "ShareAcknowledge",
        same(m.ShareAcknowledgeRequest(group_id="s", member_id="C" * 22, share_session_epoch=1)),
        (OP.READ, (R.GROUP, "s")),
    ),
    story("InitializeShareGroupState", states(m.InitializeShareGroupStateRequest, "InitializeStateData"), ACTION_C),
    story("ReadShareGroupState", states(m.ReadShareGroupStateRequest, "ReadStateData"), ACTION_C),
    story("WriteShareGroupState", states(m.WriteShareGroupStateRequest, "WriteStateData"), ACTION_C),
    story("DeleteShareGroupState", states(m.DeleteShareGroupStateRequest, "DeleteStateData"), ACTION_C),
    story("ReadShareGroupStateSummary", states(m.ReadShareGroupStateSummaryRequest, "ReadStateSummaryData"), ACTION_C),
    story("DescribeShareGroupOffsets", share_offsets, DESCRIBE_G, DESCRIBE_T, (OP.DESCRIBE, GHOST)),
    story(
        "AlterShareGroupOffsets", lambda v, i: alter_share(), (OP.READ, (R.GROUP, "absent")), READ_T, (OP.READ, GHOST)
    ),
    story("DeleteShareGroupOffsets", lambda v, i: delete_share(), (OP.DELETE, (R.GROUP, "absent")), READ_T),
    story(
        "DescribeClientQuotas",
        same(m.DescribeClientQuotasRequest(components=[], strict=False)),
        (OP.DESCRIBE_CONFIGS, CLUSTER),
    ),
    story("AlterClientQuotas", same(QUOTAS), (OP.ALTER_CONFIGS, CLUSTER)),
    story("Produce", transactional_produce, WRITE_X, (OP.WRITE, T), at=(9, 13)),
    story(
        "Metadata",
        lambda v, i: metadata(v, i, "t", WRONG[1], creates=True),
        (OP.DESCRIBE, WRONG),
        (OP.CREATE, CLUSTER),
        (OP.CREATE, WRONG),
    ),
    story("DeleteTopics", delete_topics, (OP.DELETE, CLUSTER), (OP.DESCRIBE, GHOST)),
    story(
        "InitProducerId",
        same(m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000, enable2_pc=True)),
        WRITE_X,
        (OP.TWO_PHASE_COMMIT, X),
        at=(6,),
    ),
    story(
        "DescribeConfigs",
        configs(m.DescribeConfigsRequest, "DescribeConfigsResource", none),
        (OP.DESCRIBE_CONFIGS, G),
        (OP.DESCRIBE_CONFIGS, T),
    ),
    story("ShareFetch", share_fetch, (OP.READ, (R.GROUP, "s")), READ_T),
    story("ShareAcknowledge", share_acknowledge, (OP.READ, (R.GROUP, "s")), READ_T),
    story("StreamsGroupHeartbeat", same(STREAMS_HEARTBEAT), (OP.READ, (R.GROUP, "st")), DESCRIBE_T, (OP.DESCRIBE, U)),
    story(
        "StreamsGroupDescribe",
        same(m.StreamsGroupDescribeRequest(group_ids=["g", "absent"], include_authorized_operations=True)),
        DESCRIBE_G,
        (OP.DESCRIBE, (R.GROUP, "absent")),
    ),
    story(
        "StreamsGroupTopologyDescriptionUpdate",
        same(m.StreamsGroupTopologyDescriptionUpdateRequest(group_id="st", member_id="m")),
        (OP.READ, (R.GROUP, "st")),
    ),
    story("AddRaftVoter", same(m.AddRaftVoterRequest(cluster_id=None, voter_id=-1, timeout_ms=1000)), ALTER_C),
    story("RemoveRaftVoter", same(m.RemoveRaftVoterRequest(cluster_id=None, voter_id=-1)), ALTER_C),
    story("UnregisterController", same(m.UnregisterControllerRequest(controller_id=77)), ALTER_C),
    story("UnregisterBroker", same(m.UnregisterBrokerRequest(broker_id=77)), ALTER_C),
    story("AlterReplicaLogDirs", same(m.AlterReplicaLogDirsRequest(dirs=[])), ALTER_C),
)


def subsets(rights: tuple[Right, ...]) -> Iterator[tuple[Right, ...]]:
    """The subsets of some rights, the smallest first, so that what changes anything happens last."""
    for count in range(len(rights) + 1):
        yield from combinations(rights, count)
