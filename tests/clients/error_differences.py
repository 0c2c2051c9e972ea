"""What clients hear in groups, transactions and shares instead of the error, where Kafka does not call it retriable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .error_clients import Heard
from .error_transactions import APIS

NOTHING: Final = "what it hears without the error"
FENCED, FENCED_OF_LIBRDKAFKA, NETWORK = 90, -144, 13  # PRODUCER_FENCED, librdkafka's own code, NETWORK_EXCEPTION
FATAL_OF_LIBRDKAFKA = -150
INVALID_STATE = 48  # INVALID_TXN_STATE
EITHER: Final = "the error, or what it hears without one, whichever comes first"
NO_HEARTBEATS: Final = "no more heartbeats"
NO_CODE = -1  # an exception that names no error, or an error that the client does not know
KAFKA_EXCEPTION: Final = "org.apache.kafka.common.KafkaException"


def each(errors: Iterable[str], heard: Heard) -> dict[str, Heard]:
    return dict.fromkeys(errors, heard)


def fenced() -> dict[str, Heard]:
    return {"INVALID_PRODUCER_EPOCH": FENCED}


INSTEAD: dict[tuple[str, str], dict[str, Heard]] = {
    # it joins again (of Java AbstractCoordinator.SyncGroupResponseHandler, which has words of its own for what it does
    # not name; of librdkafka rdkafka_cgrp.c, rd_kafka_cgrp_handle_SyncGroup_memberstate, which joins again whatever the
    # error; of kafka-python coordinator/base.py, _process_sync_group_response; of franz-go consumer_group.go,
    # joinAndSync and manage; of kafkajs consumerGroup.js, joinAndSync; of aiokafka group_coordinator.py,
    # _send_sync_group_request, where what it does not name has no code)
    ("java", "SyncGroup"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING)
    | each(
        ("COORDINATOR_LOAD_IN_PROGRESS", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID"),
        f"{KAFKA_EXCEPTION}: Unexpected error from SyncGroup",
    ),
    ("librdkafka", "SyncGroup"): each(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "INCONSISTENT_GROUP_PROTOCOL"),
            *("INVALID_GROUP_ID", "GROUP_AUTHORIZATION_FAILED"),
        ),
        NOTHING,
    ),
    ("kafka-python", "SyncGroup"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    ("franz-go", "SyncGroup"): {"REBALANCE_IN_PROGRESS": NOTHING},
    ("kafkajs", "SyncGroup"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    ("aiokafka", "SyncGroup"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING)
    | each(
        (
            *("COORDINATOR_LOAD_IN_PROGRESS", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID"),
            "FENCED_INSTANCE_ID",
        ),
        NO_CODE,
    ),
    # it joins again (AbstractCoordinator.HeartbeatResponseHandler), or sends the next heartbeat: to its thread all
    # errors but FENCED_INSTANCE_ID are a heartbeat that failed (AbstractCoordinator.HeartbeatThread)
    ("java", "Heartbeat"): each(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "INVALID_GROUP_ID"),
            "GROUP_AUTHORIZATION_FAILED",
        ),
        NOTHING,
    ),
    # it joins again; an error that it does not name is none, and the next heartbeat comes (rdkafka_cgrp.c,
    # rd_kafka_cgrp_handle_Heartbeat)
    ("librdkafka", "Heartbeat"): each(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "INVALID_GROUP_ID"),
            "GROUP_AUTHORIZATION_FAILED",
        ),
        NOTHING,
    ),
    # it joins again, or sends the next heartbeat; after FENCED_INSTANCE_ID none, and its application is not told
    # (coordinator/base.py, _handle_heartbeat_response and _do_heartbeat)
    ("kafka-python", "Heartbeat"): each(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "INVALID_GROUP_ID"),
            "GROUP_AUTHORIZATION_FAILED",
        ),
        NOTHING,
    )
    | each(("FENCED_INSTANCE_ID",), NO_HEARTBEATS),
    # it joins again; an error that it does not name has no code (group_coordinator.py, _do_heartbeat)
    ("aiokafka", "Heartbeat"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING)
    | each(("COORDINATOR_LOAD_IN_PROGRESS", "INVALID_GROUP_ID", "FENCED_INSTANCE_ID"), NO_CODE),
    # it joins again (runner.js, scheduleFetchManager)
    ("kafkajs", "Heartbeat"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    # it leaves as it closes, and nothing can be done any more (of Java AbstractCoordinator.LeaveGroupResponseHandler;
    # of librdkafka rdkafka_cgrp.c, rd_kafka_cgrp_handle_LeaveGroup; of kafka-python coordinator/base.py,
    # maybe_leave_group_async; of aiokafka group_coordinator.py, _maybe_leave_group; of kafkajs runner.js, stop)
    **{
        (client, "LeaveGroup"): each(
            ("INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "FENCED_INSTANCE_ID"), NOTHING
        )
        for client in ("java", "librdkafka", "kafka-python", "aiokafka", "kafkajs")
    },
    # it joins again; without the right to a topic it stays, and its application hears so at its next poll unless it has
    # records before (AbstractHeartbeatRequestManager.onErrorResponse)
    ("java", "ShareGroupHeartbeat"): each(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), NOTHING)
    | each(("TOPIC_AUTHORIZATION_FAILED",), EITHER),
    # words of its own for the errors of a partition that it does not name (ShareFetchCollector)
    ("java", "ShareFetch"): each(
        (
            *("OFFSET_OUT_OF_RANGE", "LEADER_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "GROUP_ID_NOT_FOUND"),
            *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "FENCED_STATE_EPOCH"),
        ),
        f"{KAFKA_EXCEPTION}: Unexpected error code",
    )
    | each(("CORRUPT_MESSAGE",), f"{KAFKA_EXCEPTION}: Encountered corrupt message")
    # a session that fails begins again (ShareSessionHandler.handleResponse), and the first fetch of one acknowledges
    # nothing (ShareConsumeRequestManager.maybeAddAcknowledgements)
    | each(("GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INVALID_RECORD_STATE"), NOTHING),
    # it tries again, in a session that is new, which has nothing to acknowledge: it gives NETWORK_EXCEPTION instead
    # (ShareConsumeRequestManager.maybeAddAcknowledgements and acknowledgementsCannotBeSentError)
    ("java", "ShareAcknowledge"): each(
        (
            *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "KAFKA_STORAGE_ERROR"),
            *("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"),
        ),
        NETWORK,
    ),
    # it joins again (StreamsGroupHeartbeatRequestManager.onErrorResponse). In 4.4.0 FENCED_INSTANCE_ID has a case,
    # whose words have the instance id: a member without one asks an Optional without a value, and the exception ends
    # in the completion of the request, which nothing reads. 4.3.1 has no such case, and ends (test_streams_errors.py)
    ("java", "StreamsGroupHeartbeat"): each(
        ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID"), NOTHING
    ),
    # it says so in its log, and goes on until it is asked again (StreamsGroupTopologyDescriptionRequestManager)
    ("java", "StreamsGroupTopologyDescriptionUpdate"): each(
        (
            *("INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"),
            *("INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"),
        ),
        "java.lang.IllegalStateException: no description of the topology",
    ),
    # with transactions as before Kafka 4.0; its exception has the errors of partitions in words of its own
    # (TransactionManager.AddPartitionsToTxnHandler)
    ("java", "AddPartitionsToTxn"): each(
        ("CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST", "OPERATION_NOT_ATTEMPTED"),
        f"{KAFKA_EXCEPTION}: Could not add partitions to transaction due to errors",
    )
    | fenced(),
    # likewise what its handlers do not name (TransactionManager.AddOffsetsToTxnHandler, EndTxnHandler and
    # TxnOffsetCommitHandler; the last one turns what ends a membership into a CommitFailedException)
    ("java", "AddOffsetsToTxn"): each(
        ("INVALID_REQUEST",), f"{KAFKA_EXCEPTION}: Unexpected error in AddOffsetsToTxnResponse"
    )
    | fenced(),
    # it tries again (sink.go, doTxnReq), or it aborts (txn.go, GroupTransactSession.End)
    ("franz-go", "AddPartitionsToTxn"): {"OPERATION_NOT_ATTEMPTED": NOTHING},
    ("franz-go", "AddOffsetsToTxn"): {"TRANSACTION_ABORTABLE": "the transaction was aborted"},
    ("java", "EndTxn"): {
        "INVALID_REQUEST": f"{KAFKA_EXCEPTION}: Unhandled error in EndTxnResponse",
        "INVALID_PRODUCER_EPOCH": FENCED,
    },
    ("java", "TxnOffsetCommit"): each(
        (
            *("OFFSET_METADATA_TOO_LARGE", "INVALID_GROUP_ID", "REBALANCE_IN_PROGRESS", "INVALID_COMMIT_OFFSET_SIZE"),
            *("TOPIC_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INVALID_TXN_STATE"),
            *("INVALID_PRODUCER_ID_MAPPING", "GROUP_MAX_SIZE_REACHED", "FENCED_MEMBER_EPOCH"),
        ),
        f"{KAFKA_EXCEPTION}: Unexpected error in TxnOffsetCommitResponse",
    )
    | each(
        ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", "STALE_MEMBER_EPOCH"),
        "org.apache.kafka.clients.consumer.CommitFailedException",
    )
    | fenced(),
    # one code of its own for both (rdkafka_txnmgr.c, rd_kafka_txn_normalize_err)
    **{
        ("librdkafka", api): each(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"), FENCED_OF_LIBRDKAFKA)
        for api in APIS[1:]
    },
    # it tries again (rdkafka_idempotence.c, rd_kafka_idemp_check_error)
    ("librdkafka", "InitProducerId"): each(
        (
            *("UNSUPPORTED_VERSION", "INVALID_REQUEST", "POLICY_VIOLATION", "INVALID_PRODUCER_ID_MAPPING"),
            "TRANSACTION_ABORTABLE",
        ),
        NOTHING,
    )
    | each(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"), FENCED_OF_LIBRDKAFKA),
    # the older error is taken for the newer one, here and in the next three (transaction_manager.py,
    # InitProducerIdHandler, AddOffsetsToTxnHandler, EndTxnHandler, AddPartitionsToTxnHandler, TxnOffsetCommitHandler)
    **{("kafka-python", api): fenced() for api in ("InitProducerId", "AddOffsetsToTxn")},
    ("kafka-python", "EndTxn"): fenced(),
    # its exception has the errors of partitions in words of its own (transaction_manager.py, AddPartitionsToTxnHandler)
    ("kafka-python", "AddPartitionsToTxn"): each(
        (
            *("CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST", "OPERATION_NOT_ATTEMPTED"),
            "TRANSACTION_ABORTABLE",
        ),
        NO_CODE,
    )
    | fenced(),
    # its exception for a commit that failed has no code (TxnOffsetCommitHandler)
    ("kafka-python", "TxnOffsetCommit"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"), NO_CODE) | fenced(),
    # its exception for a producer that is fenced has no code (sender.py, InitPIDHandler, AddOffsetsToTxnHandler,
    # TxnOffsetCommitHandler and EndTxnHandler), and the later errors it does not know (errors.py, for_code)
    ("aiokafka", "InitProducerId"): each(("PRODUCER_FENCED", "TRANSACTION_ABORTABLE"), NO_CODE),
    **{
        ("aiokafka", api): each(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE"), NO_CODE)
        for api in ("AddOffsetsToTxn", "EndTxn")
    },
    # what is not the error of an authorization ends its sender (sender.py, AddPartitionsToTxnHandler); the transaction
    # has failed, it says at the next step
    ("aiokafka", "AddPartitionsToTxn"): each(
        (
            *("CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE"),
            *("INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE"),
        ),
        NO_CODE,
    )
    | each(("OPERATION_NOT_ATTEMPTED",), NOTHING)
    | each(("TOPIC_AUTHORIZATION_FAILED",), INVALID_STATE),
    ("aiokafka", "TxnOffsetCommit"): each(
        (
            *("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "TRANSACTION_ABORTABLE", "GROUP_MAX_SIZE_REACHED"),
            *("FENCED_INSTANCE_ID", "UNKNOWN_TOPIC_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"),
        ),
        NO_CODE,
    ),
    # what ends the membership is fatal, and the code of a fatal error hides its own (rdkafka_cgrp.c,
    # rd_kafka_cgrp_handle_ConsumerGroupHeartbeat)
    ("librdkafka", "ConsumerGroupHeartbeat"): each(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), NOTHING)
    | each(
        (
            *("INVALID_GROUP_ID", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST"),
            *("GROUP_ID_NOT_FOUND", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"),
            *("UNSUPPORTED_ASSIGNOR", "INVALID_REGULAR_EXPRESSION"),
        ),
        FATAL_OF_LIBRDKAFKA,
    ),
    # it joins again (rdkafka_cgrp.c, rd_kafka_cgrp_handle_ShareGroupHeartbeat)
    ("librdkafka", "ShareGroupHeartbeat"): each(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), NOTHING),
    # an error of the whole reply is none of its application (rdkafka_fetcher.c, at rd_kafka_broker_session_update), and
    # the first fetch acknowledges nothing
    ("librdkafka", "ShareFetch"): each(
        ("GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INVALID_RECORD_STATE"), NOTHING
    ),
    # it takes the broker for one without the API, and is a member of a classic group; it tries again three times while
    # the instance is another's (consumer_group_848.go, initialJoin)
    ("franz-go", "ConsumerGroupHeartbeat"): each(("UNSUPPORTED_VERSION", "UNRELEASED_INSTANCE_ID"), NOTHING),
    # it joins again (consumer_group.go, manage)
    ("franz-go", "Heartbeat"): each(("REBALANCE_IN_PROGRESS",), NOTHING),
    # it asks for all partitions, and the reply with the error has none (of kadm groups.go, DescribeShareGroupOffsets)
    ("franz-go", "DescribeShareGroupOffsets"): each(("TOPIC_AUTHORIZATION_FAILED",), NOTHING),
    # it joins again (consumer_share.go, manage)
    ("franz-go", "ShareGroupHeartbeat"): each(
        ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"), NOTHING
    ),
    # a session that fails begins again (consumer_share.go, handleShareReqResp), and its first fetch acknowledges none
    ("franz-go", "ShareFetch"): each(
        ("GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INVALID_RECORD_STATE"), NOTHING
    ),
    # it aborts, and says that nothing was committed, without the error (txn.go, GroupTransactSession.End)
    ("franz-go", "TxnOffsetCommit"): each(
        (
            *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "GROUP_ID_NOT_FOUND"),
            *("STALE_MEMBER_EPOCH", "TRANSACTION_ABORTABLE", "CONCURRENT_TRANSACTIONS"),
        ),
        "the transaction was aborted",
    ),
    # it asks again (client.go, findCoordinator)
    ("sarama", "FindCoordinator"): each(("GROUP_AUTHORIZATION_FAILED",), NOTHING),
    # it joins again (consumer_group.go, newSession and heartbeatLoop)
    ("sarama", "JoinGroup"): each(("UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED"), NOTHING),
    ("sarama", "SyncGroup"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    ("sarama", "Heartbeat"): each(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"), NOTHING),
    # it has left already (consumer_group.go, leave)
    ("sarama", "LeaveGroup"): each(("UNKNOWN_MEMBER_ID",), NOTHING),
}
# A partition with an error has a leader, of the id 0 where Kafka does not name one. franz-go takes that for a hint
# (consumer_share.go, handleShareReqResp and shareAck), and moves the partition to a node that there is not: it hears no
# more of it within a minute, and asks for metadata all the time. What it wants to acknowledge again is moved likewise,
# and what it then hears differs from time to time.
ASTRAY: Final = {
    "ShareFetch": (
        *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION"),
        *("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "TOPIC_AUTHORIZATION_FAILED", "CORRUPT_MESSAGE"),
        *("OFFSET_OUT_OF_RANGE", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "GROUP_ID_NOT_FOUND"),
        *("OFFSET_NOT_AVAILABLE", "UNKNOWN_TOPIC_ID", "FENCED_STATE_EPOCH"),
    ),
    "ShareAcknowledge": (
        *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "KAFKA_STORAGE_ERROR"),
    ),
}
