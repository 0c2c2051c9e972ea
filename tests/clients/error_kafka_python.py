"""kafka-python under test: what it hears when an API fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import kafka
from kafka import admin as kafka_python
from kafka import errors as kafka_errors
from kafka.admin._transactions import AbortTransactionSpec
from kafka.structs import OffsetAndMetadata

from . import error_logins as logins
from . import error_transactions as transactions
from .error_clients import (
    CLIENTS,
    FETCH_WAIT_MS,
    GROUP,
    HEARTBEAT_MS,
    IN_GROUPS,
    SESSION_MS,
    TOPIC,
    USER,
    WITHIN_S,
    Addresses,
    Does,
    Heard,
    NoMoreHeartbeats,
    until_beaten,
)


def names_of_kafka_python() -> list[str]:
    names = [name for name, _ in _of_kafka_python(None)]
    return [*names, *CLIENTS, *IN_GROUPS, *transactions.APIS, *logins.APIS, "OffsetForLeaderEpoch"]


class KafkaPython:
    """kafka-python, which leaves many errors of elements in what it returns."""

    def __init__(self, at: Addresses) -> None:
        self.at, self.bootstrap = at, at.bootstrap
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=at.bootstrap, retry_backoff_ms=10)
        self._does: dict[str, Does] = dict(_of_kafka_python(self.admin)) | {
            "Produce": self._produce,
            "Fetch": self._fetch,
            "OffsetForLeaderEpoch": self._validate,
            **dict.fromkeys(["JoinGroup", "SyncGroup", "LeaveGroup"], self._join),
            "Heartbeat": self._beat,
            **dict.fromkeys(
                transactions.APIS, lambda name: transactions.of_kafka_python(self.bootstrap, TOPIC, name, WITHIN_S)
            ),
            **{api: self._connects(api) for api in logins.APIS},
        }

    def prepare(self, topic: str) -> None:
        self.admin.create_topics([kafka_python.NewTopic(topic, 1, 1)])

    def do(self, api: str, name: str) -> Heard:
        try:
            return next(codes_within(self._does[api](name)), 0)
        except transactions.Raised as error:
            return error.code
        except NoMoreHeartbeats as error:
            return str(error)
        except kafka_errors.KafkaError as error:
            code: int | None = error.errno
            return repr(error) if code is None else code

    def _connects(self, api: str) -> Does:
        return lambda _: logins.of_kafka_python(self.at, api)

    def _produce(self, name: str) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, retry_backoff_ms=10)
        try:
            producer.send(TOPIC, b"x", partition=0).get(WITHIN_S)
        finally:
            producer.close()

    def _consumer(self, group: str | None, **more: object) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            **more,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest" if group else "none",
            enable_auto_commit=False,
            retry_backoff_ms=10,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            consumer_timeout_ms=int(WITHIN_S * 1000),
        )

    def _fetch(self, name: str) -> None:
        consumer = self._consumer(None)
        try:
            consumer.assign([kafka.TopicPartition(TOPIC, 0)])
            consumer.seek(kafka.TopicPartition(TOPIC, 0), 0)
            next(consumer)
        finally:
            consumer.close()

    def _validate(self, name: str) -> None:
        """Reads two records, each by a request of its own. Between them the offset is compared with the leader's log,
        if the second request hears that its epoch is wrong.
        """
        consumer = self._consumer(None, max_partition_fetch_bytes=1)
        partition = kafka.TopicPartition(TOPIC, 0)
        try:
            consumer.assign([partition])
            consumer.seek(partition, 0)
            next(consumer)
            next(consumer)
        finally:
            consumer.close()

    def _join(self, name: str) -> None:
        consumer = self._consumer(name)
        try:
            consumer.subscribe([TOPIC])
            next(consumer)
        finally:
            consumer.close()

    def _beat(self, name: str) -> None:
        """Reads a record, and goes on until more heartbeats were sent."""
        consumer = self._consumer(name, client_id=name)
        try:
            consumer.subscribe([TOPIC])
            next(consumer)
            until_beaten(self.at.lab, name, lambda: consumer.poll(HEARTBEAT_MS))
        finally:
            consumer.close()

    def close(self) -> None:
        self.admin.close()


def _of_kafka_python(admin: Any) -> Iterator[tuple[str, Does]]:
    partition = kafka.TopicPartition(TOPIC, 0)
    resource = kafka_python.ConfigResourceType.TOPIC
    setting = kafka_python.ConfigResource(resource, TOPIC, {"retention.ms": "1000000"})
    yield "CreateTopics", lambda name: admin.create_topics([kafka_python.NewTopic(name, 1, 1)])
    yield "DeleteTopics", lambda name: admin.delete_topics([name])
    yield "CreatePartitions", lambda name: admin.create_partitions({name: kafka_python.NewPartitions(2)})
    yield "Metadata", lambda _: admin.describe_topics([TOPIC])
    yield "DescribeTopicPartitions", lambda _: admin.describe_topic_partitions([TOPIC])
    yield "DescribeCluster", lambda _: admin.describe_cluster()
    yield "IncrementalAlterConfigs", lambda _: admin.alter_configs([setting])
    yield "AlterConfigs", lambda _: admin.alter_configs([setting], incremental=False)
    yield "DescribeConfigs", lambda _: admin.describe_configs([setting])
    yield "ListConfigResources", lambda _: admin.list_config_resources()
    yield "AlterReplicaLogDirs", lambda _: _moved(admin)
    yield "DescribeLogDirs", lambda _: admin.describe_log_dirs()
    yield "DeleteRecords", lambda _: admin.delete_records({partition: 0})
    yield "ListOffsets", lambda _: admin.list_partition_offsets({partition: -1})
    yield "ElectLeaders", lambda _: admin.elect_leaders(0, {TOPIC: [0]})
    yield "ListPartitionReassignments", lambda _: admin.list_partition_reassignments()
    yield "ListGroups", lambda _: admin.list_groups()
    yield "DescribeGroups", lambda _: admin.describe_groups([GROUP])
    yield "DeleteGroups", lambda _: admin.delete_groups(["no-group"])
    yield "OffsetFetch", lambda _: admin.list_group_offsets({GROUP: [partition]})
    yield "OffsetCommit", lambda _: admin.alter_group_offsets(GROUP, {partition: OffsetAndMetadata(1, "", -1)})
    yield "OffsetDelete", lambda _: admin.delete_group_offsets(GROUP, [partition])
    yield "FindCoordinator", lambda name: admin.describe_groups([name])
    yield "DescribeAcls", lambda _: admin.describe_acls(_right(kafka_python.ACLFilter))
    yield "CreateAcls", lambda _: admin.create_acls([_right(kafka_python.ACL)])
    yield "DeleteAcls", lambda _: admin.delete_acls([_right(kafka_python.ACLFilter)])
    yield "DescribeUserScramCredentials", lambda _: admin.describe_user_scram_credentials([USER])
    yield "AlterUserScramCredentials", lambda _: admin.alter_user_scram_credentials([_credential()])
    yield "AlterPartitionReassignments", lambda _: admin.alter_partition_reassignments({partition: [1]})
    yield "WriteTxnMarkers", lambda _: admin.abort_transaction(_open_transaction())
    yield "DescribeProducers", lambda _: admin.describe_producers([partition])
    yield "DescribeTransactions", lambda _: admin.describe_transactions(["none"])
    yield "ListTransactions", lambda _: admin.list_transactions()
    yield "DescribeQuorum", lambda _: admin.describe_metadata_quorum()
    yield "UpdateFeatures", lambda _: admin.update_features({})


def _right(kind: Any) -> Any:
    topic = kafka_python.ResourcePattern(kafka_python.ResourceType.TOPIC, "t")
    return kind("User:u", "*", kafka_python.ACLOperation.READ, kafka_python.ACLPermissionType.ALLOW, topic)


def _credential() -> Any:
    return kafka_python.UserScramCredentialUpsertion("u", "SCRAM-SHA-256", "secret", iterations=4096)


def _open_transaction() -> Any:
    return AbortTransactionSpec(kafka.TopicPartition(transactions.WRITTEN, 0), 99, 0)


def _moved(admin: Any) -> object:
    """A replica stays where it is."""
    directory = admin.describe_log_dirs()[0]["log_dirs"][0]["log_dir"]
    return admin.alter_replica_log_dirs({(TOPIC, 0, 1): directory})


def codes_within(found: object) -> Iterator[int]:
    """Yields the errors within what kafka-python returned: codes, classes of errors, their names and words."""
    if isinstance(found, dict):
        for name, value in found.items():
            if isinstance(name, str) and name.endswith("error_code") and value:
                yield int(value)
            else:
                yield from codes_within(value)
    elif isinstance(found, list | tuple | set):
        for one in found:
            yield from codes_within(one)
    elif isinstance(found, type):
        yield from _code_of(found)
    elif isinstance(found, str):
        words = re.match(r"\[Error (\d+)\]", found)
        if words:
            yield int(words[1])
        elif found.endswith("Error"):
            yield from _code_of(getattr(kafka_errors, found, None))
    elif hasattr(found, "to_dict"):
        yield from codes_within(found.to_dict())


def _code_of(error: object) -> Iterator[int]:
    code = getattr(error, "errno", None)
    if isinstance(code, int) and code:
        yield code
