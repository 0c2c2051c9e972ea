"""The order of lists in replies is Kafka's own, except for what Kafka takes from tables whose order follows from random
ids, or from what was there before.
"""

from __future__ import annotations

import re
from typing import Any

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}$")
_INDEX = re.compile(r"\[\d+\]")
BY_ID = "in the order of random ids"
BY_PARTITION = "in the order of a table of Scala, of the shards that Kafka holds"
OF_MEMBERS = "in the order of a hash table whose size tells its past"
BY_THREAD = "in the order of hash tables of Scala or of several threads"
OF_PAST = "as replicas left and came back, in Kafka also before the story"
REFUSED_APART = "Kafka has refused partitions before or after the others"
REFUSED_LAST = "Kafka has what the principal may not see last"
ANY_ORDER = {
    "AddPartitionsToTxn.results_by_topic_v3_and_below.results_by_partition": REFUSED_APART,
    "AddPartitionsToTxn.results_by_transaction.topic_results.results_by_partition": REFUSED_APART,
    "ConsumerGroupDescribe.groups.members": OF_MEMBERS,
    "ConsumerGroupDescribe.groups.members.assignment.topic_partitions": BY_ID,
    "ConsumerGroupDescribe.groups.members.target_assignment.topic_partitions": BY_ID,
    "DeleteAcls.filter_results.matching_acls": BY_ID,
    "DeleteRecords.topics": REFUSED_LAST,
    "DeleteShareGroupOffsets.responses": BY_ID,
    "DeleteShareGroupState.results.partitions": REFUSED_APART,
    "DeleteTopics.responses": BY_ID,
    "DescribeClientQuotas.entries": "those of one bucket are as they came, in Kafka from another table",
    "DescribeConfigs.results": REFUSED_LAST,
    "DescribeDelegationToken.tokens": BY_ID,
    "DescribeGroups.groups.members": BY_ID,
    "DescribeLogDirs.results.topics.partitions": BY_THREAD,
    "DescribeProducers.topics.partitions.active_producers": BY_ID,
    "DescribeTopicPartitions.topics.partitions.isr_nodes": OF_PAST,
    "DescribeTransactions.transaction_states.topics.partitions": BY_THREAD,
    "InitializeShareGroupState.results.partitions": REFUSED_APART,
    "ListConfigResources.config_resources": "in the order of persistent maps",
    "ListTransactions.transaction_states": BY_PARTITION,
    "Metadata.topics": REFUSED_LAST,
    "Metadata.topics.partitions.isr_nodes": OF_PAST,
    "Metadata.topics.partitions": "sorted since 0.11",
    "OffsetFetch.groups.topics": OF_MEMBERS,
    "OffsetFetch.groups.topics.partitions": OF_MEMBERS,
    "OffsetFetch.topics": OF_MEMBERS,
    "Produce.responses.partition_responses": REFUSED_APART,
    "ReadShareGroupState.results.partitions": REFUSED_APART,
    "ReadShareGroupStateSummary.results.partitions": REFUSED_APART,
    "ShareFetch.responses.partitions": REFUSED_APART,
    "ShareGroupDescribe.groups.members": OF_MEMBERS,
    "ShareGroupDescribe.groups.members.assignment.topic_partitions": BY_ID,
    "StreamsGroupDescribe.groups.members": OF_MEMBERS,
    "StreamsGroupHeartbeat.partitions_by_user_endpoint.active_partitions": BY_ID,
    "WriteShareGroupState.results.partitions": REFUSED_APART,
    "WriteTxnMarkers.markers.topics.partitions": BY_THREAD,
}
"""By API and path: why the order of a list may differ."""


def may_be_in_any_order(api: str, path: str) -> bool:
    return api + _INDEX.sub("", path) in ANY_ORDER


def shape(member_id: Any) -> Any:
    """A member's id without what is random in it."""
    return _RANDOM.sub("*", member_id) if isinstance(member_id, str) else member_id


def ordered(items: list[Any]) -> list[Any]:
    """Returns a list that may be in any order, with named things by name and partitions by number."""
    if items and all(isinstance(i, int) for i in items):
        return sorted(items)
    for keys in (
        ("token_requester_principal_name", "principal_name", "renewers"),
        ("name",),
        ("group_id",),
        ("transactional_id",),
        ("client_id", "member_id"),
        ("topic",),
        ("topic_name",),
        ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
        ("resource_type", "resource_name"),
        ("partition_index",),
        ("producer_id",),
        ("index",),
        ("partition",),
        ("entity_type",),
        ("entity",),
    ):
        if items and all(hasattr(i, "unknown_tags") and all(hasattr(i, k) for k in keys) for i in items):
            return sorted(items, key=lambda i: tuple((getattr(i, k) is not None, _key(getattr(i, k))) for k in keys))
    return items


def _key(value: Any) -> Any:
    """What a list is ordered by; an entity of a quota is a list by itself."""
    return repr(ordered(value)) if isinstance(value, list) else shape(value)
