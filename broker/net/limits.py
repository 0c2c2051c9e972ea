"""The number of array elements that a request may have, at all levels together; more of them close the connection.

Time grows with the elements: 4 MiB hold a million partitions of four bytes, and each becomes an object, a result and
its bytes. A request is parsed at once, and requests without steps (`steps`) are handled at once too; so a limit allows
what takes some ten milliseconds. Real clients send far less: Kafka itself refuses commits whose records exceed one
batch (some 10,000 partitions), and topics with more than 10,000 partitions in one request.
"""

from __future__ import annotations

ELEMENTS_MAX = 10_000
PARTITIONS_MAX = 30_000  # for requests that may name all partitions of a cluster
ELEMENTS_MAX_BY_KEY = {
    1: 20_000,  # Fetch, in steps
    2: 20_000,  # ListOffsets, in steps
    3: 20_000,  # Metadata, in steps
    8: 15_000,  # OffsetCommit, which is one write
    9: 20_000,  # OffsetFetch
    10: PARTITIONS_MAX,  # FindCoordinator, in steps
    14: PARTITIONS_MAX,  # SyncGroup: the leader sends an assignment for each member
    15: PARTITIONS_MAX,  # DescribeGroups, in steps
    19: 20_000,  # CreateTopics, whose topics have configurations
    21: PARTITIONS_MAX,  # DeleteRecords, in steps
    23: PARTITIONS_MAX,  # OffsetForLeaderEpoch, in steps
    27: 1_000,  # WriteTxnMarkers: each is an append
    28: 15_000,  # TxnOffsetCommit, as OffsetCommit
    32: PARTITIONS_MAX,  # DescribeConfigs, in steps
    35: PARTITIONS_MAX,  # DescribeLogDirs
    37: 20_000,  # CreatePartitions, whose partitions may be placed by hand
    42: 5_000,  # DeleteGroups
    50: 5_000,  # DescribeUserScramCredentials
    51: 5_000,  # AlterUserScramCredentials
    57: 1_000,  # UpdateFeatures
    61: PARTITIONS_MAX,  # DescribeProducers, in steps
    65: PARTITIONS_MAX,  # DescribeTransactions, in steps
    68: PARTITIONS_MAX,  # ConsumerGroupHeartbeat, which names the partitions that a member has
    69: PARTITIONS_MAX,  # ConsumerGroupDescribe, in steps
    76: 5_000,  # ShareGroupHeartbeat, which names topics only
    77: PARTITIONS_MAX,  # ShareGroupDescribe, in steps
    78: 20_000,  # ShareFetch
    79: 20_000,  # ShareAcknowledge
    88: 5_000,  # StreamsGroupHeartbeat, whose topology is looked at as a whole
    90: PARTITIONS_MAX,  # DescribeShareGroupOffsets, in steps
}


def elements_max(api_key: int) -> int:
    """Returns how many elements a request of an API may have."""
    return ELEMENTS_MAX_BY_KEY.get(api_key, ELEMENTS_MAX)
