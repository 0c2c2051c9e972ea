"""What administrators hear instead of the error: of rights, users, reassignments, and coordinators."""

from __future__ import annotations

from typing import Final

from .error_clients import Heard
from .error_differences import NO_CODE, NOTHING, each

_OF_RIGHTS: Final = ("CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST", "SECURITY_DISABLED")

INSTEAD: dict[tuple[str, str], dict[str, Heard]] = {
    # it reads the error, and takes the reply for one without any right (rdkafka_admin.c,
    # rd_kafka_DescribeAclsResponse_parse)
    ("librdkafka", "DescribeAcls"): each(_OF_RIGHTS, NOTHING),
    # the group may be a classic one (rdkafka_admin.c, rd_kafka_admin_describe_consumer_group_do_fallback_to_classic)
    ("librdkafka", "ConsumerGroupDescribe"): each(("UNSUPPORTED_VERSION", "GROUP_ID_NOT_FOUND"), NOTHING),
    # of a user's error only the words, which a reply to a request that failed as a whole has not (admin/_users.py)
    ("kafka-python", "DescribeUserScramCredentials"): each(("RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE"), NOTHING),
    ("kafka-python", "AlterUserScramCredentials"): each(
        (
            *("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE"),
            "UNACCEPTABLE_CREDENTIAL",
        ),
        NOTHING,
    ),
    # an error that it does not know (errors.py)
    ("aiokafka", "FindCoordinator"): {"TRANSACTION_ABORTABLE": NO_CODE},
    # it drops what each of the brokers says, and says that none knew the coordinator (brokerPool.js, withBroker, and
    # cluster/index.js, findGroupCoordinatorMetadata)
    ("kafkajs", "FindCoordinator"): each(
        (
            *("COORDINATOR_LOAD_IN_PROGRESS", "INVALID_GROUP_ID", "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST"),
            *("CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "TRANSACTION_ABORTABLE"),
        ),
        "Failed to find group coordinator",
    ),
    # it asks for metadata and again, whatever the error (client.go, GetOffset)
    ("sarama", "ListOffsets"): each(
        (
            *("TOPIC_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST"),
            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        ),
        NOTHING,
    ),
    # it does not look at the error of the whole reply, or of a filter (admin.go, ListAcls, DeleteACL and
    # ListPartitionReassignments)
    **{("sarama", api): each(_OF_RIGHTS, NOTHING) for api in ("DescribeAcls", "DeleteAcls")},
    ("sarama", "ListPartitionReassignments"): each(("CLUSTER_AUTHORIZATION_FAILED",), NOTHING),
}
