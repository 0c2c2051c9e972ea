"""librdkafka under test, as a program that is told what to do: it may end its process."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka import admin as librdkafka

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
    WITHIN_S,
    Addresses,
    Does,
    Heard,
    NoMoreHeartbeats,
    until_beaten,
)

OF_NEW_GROUPS = ["ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"]


def names_of_librdkafka() -> list[str]:
    names = [name for name, _ in _of_librdkafka(None)]
    return [*names, *CLIENTS, *IN_GROUPS, *transactions.APIS, *logins.APIS, *OF_NEW_GROUPS, "OffsetForLeaderEpoch"]


def waited(futures: dict[Any, Future[Any]]) -> list[Any]:
    return [future.result(WITHIN_S) for future in futures.values()]


class Librdkafka:
    """librdkafka, through confluent-kafka. It returns most errors of administration as they are."""

    def __init__(self, at: Addresses) -> None:
        self.at = at
        self.settings = {"bootstrap.servers": at.bootstrap, "log_level": 0, "retry.backoff.ms": 10}
        self.admin = librdkafka.AdminClient(self.settings)
        self._does: dict[str, Does] = dict(_of_librdkafka(self.admin))
        self._does |= {
            "prepare": self._does["CreateTopics"],
            "Produce": self._produce,
            "Fetch": self._fetch,
            "OffsetForLeaderEpoch": self._validate,
            "ConsumerGroupHeartbeat": self._join_with_heartbeats,
            **dict.fromkeys(["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"], self._share),
            **dict.fromkeys(["JoinGroup", "SyncGroup", "LeaveGroup"], self._join),
            "Heartbeat": self._beat,
            **dict.fromkeys(
                transactions.APIS, lambda name: transactions.of_librdkafka(self.settings, TOPIC, name, WITHIN_S)
            ),
            **{api: self._connects(api) for api in logins.APIS},
        }

    def do(self, api: str, name: str) -> Heard:
        try:
            self._does[api](name)
        except NoMoreHeartbeats as error:
            return str(error)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    def _connects(self, api: str) -> Does:
        return lambda _: logins.of_librdkafka(self.at, api, self.settings, WITHIN_S)

    def _produce(self, name: str) -> None:
        heard: list[Any] = []
        producer = confluent_kafka.Producer({**self.settings, "message.timeout.ms": int(WITHIN_S * 1000)})
        producer.produce(TOPIC, b"x", partition=0, on_delivery=lambda error, _: heard.append(error))
        producer.flush(2 * WITHIN_S)
        if heard[0] is not None:
            raise KafkaException(heard[0])

    def _read(self, consumer: confluent_kafka.Consumer) -> None:
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.error():
                raise KafkaException(message.error())
            if message is not None:
                return
        raise AssertionError("no record")

    def _consumer(self, group: str) -> confluent_kafka.Consumer:
        settings = {"group.id": group, "client.id": group, "auto.offset.reset": "error", "fetch.error.backoff.ms": 10}
        times = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
        times["fetch.wait.max.ms"] = FETCH_WAIT_MS
        return confluent_kafka.Consumer({**self.settings, **settings, **times})

    def _fetch(self, name: str) -> None:
        consumer = self._consumer(name)
        try:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
            self._read(consumer)
        finally:
            consumer.close()

    def _validate(self, name: str) -> None:
        """Seeks an offset with its epoch, which is compared with the leader's log."""
        consumer = self._consumer(name)
        try:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
            self._read(consumer)
            consumer.seek(confluent_kafka.TopicPartition(TOPIC, 0, 1, leader_epoch=0))
            self._read(consumer)
        finally:
            consumer.close()

    def _poll(self, consumer: confluent_kafka.Consumer) -> None:
        message = consumer.poll(HEARTBEAT_MS / 1000)
        if message is not None and message.error():
            raise KafkaException(message.error())

    def _join(self, name: str, beats: bool = False) -> None:
        consumer = self._consumer(name)
        start = confluent_kafka.TopicPartition(TOPIC, 0, 0)
        try:
            consumer.subscribe([TOPIC], on_assign=lambda joined, _: joined.assign([start]))
            self._read(consumer)
            if beats:
                until_beaten(self.at.lab, name, lambda: self._poll(consumer))
        finally:
            consumer.close()

    def _beat(self, name: str) -> None:
        """Reads a record, and goes on until more heartbeats were sent."""
        self._join(name, beats=True)

    def _join_with_heartbeats(self, name: str) -> None:
        settings = {"group.id": name, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**self.settings, **settings})
        try:
            consumer.subscribe([TOPIC])
            self._read(consumer)
        finally:
            consumer.close()

    def _share(self, name: str) -> None:
        """Reads records in a share group, and acknowledges them."""
        first = librdkafka.ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=librdkafka.AlterConfigOpType.SET
        )
        group = librdkafka.ConfigResource(librdkafka.ConfigResource.Type.GROUP, name, incremental_configs=[first])
        waited(self.admin.incremental_alter_configs([group]))
        consumer = confluent_kafka.ShareConsumer({**self.settings, "group.id": name})
        try:
            consumer.subscribe([TOPIC])
            until = time.monotonic() + WITHIN_S
            while not (found := list(consumer.poll(0.5))):
                assert time.monotonic() < until, "no record"
            for message in found:
                if message.error():
                    raise KafkaException(message.error())
            for refused in consumer.commit_sync(WITHIN_S).values():
                if refused is not None:
                    raise refused
        finally:
            consumer.close()


def _of_librdkafka(admin: Any) -> Iterator[tuple[str, Does]]:
    partition = confluent_kafka.TopicPartition(TOPIC, 0)
    resource = librdkafka.ConfigResource.Type.TOPIC
    setting = librdkafka.ConfigEntry("retention.ms", "1000000", incremental_operation=librdkafka.AlterConfigOpType.SET)

    def of_group(offset: int) -> confluent_kafka.ConsumerGroupTopicPartitions:
        asked = confluent_kafka.TopicPartition(TOPIC, 0, offset) if offset >= 0 else partition
        return confluent_kafka.ConsumerGroupTopicPartitions(GROUP, [asked])

    def checked(found: Iterable[Any]) -> None:
        for error in found:
            if error is not None:
                raise KafkaException(error)

    yield "CreateTopics", lambda name: waited(admin.create_topics([librdkafka.NewTopic(name, 1, 1)]))
    yield "DeleteTopics", lambda name: waited(admin.delete_topics([name]))
    yield "CreatePartitions", lambda name: waited(admin.create_partitions([librdkafka.NewPartitions(name, 2)]))
    yield "Metadata", lambda _: waited(admin.describe_topics(confluent_kafka.TopicCollection([TOPIC])))
    yield "DescribeConfigs", lambda _: waited(admin.describe_configs([librdkafka.ConfigResource(resource, TOPIC)]))
    yield (
        "IncrementalAlterConfigs",
        lambda _: waited(
            admin.incremental_alter_configs([librdkafka.ConfigResource(resource, TOPIC, incremental_configs=[setting])])
        ),
    )
    setting_alone = librdkafka.ConfigResource(resource, TOPIC, set_config={"retention.ms": "1000000"})
    yield "AlterConfigs", lambda _: waited(admin.alter_configs([setting_alone]))
    yield "DeleteRecords", lambda _: waited(admin.delete_records([confluent_kafka.TopicPartition(TOPIC, 0, 0)]))
    yield "ListOffsets", lambda _: waited(admin.list_offsets({partition: librdkafka.OffsetSpec.latest()}))
    yield (
        "ElectLeaders",
        lambda _: checked(
            admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(WITHIN_S).values()
        ),
    )
    yield "ListGroups", lambda _: checked(admin.list_consumer_groups().result(WITHIN_S).errors)
    # of the admin client: one that connects drops its first connection, at times with the answer
    yield "FindCoordinator", lambda name: waited(admin.describe_consumer_groups([name]))
    yield "ConsumerGroupDescribe", lambda _: waited(admin.describe_consumer_groups([GROUP]))
    yield "DescribeGroups", lambda _: waited(admin.describe_consumer_groups([GROUP]))
    yield "DeleteGroups", lambda _: waited(admin.delete_consumer_groups(["no-group"]))
    yield (
        "OffsetFetch",
        lambda _: checked(
            one.error
            for found in waited(admin.list_consumer_group_offsets([of_group(-1)]))
            for one in found.topic_partitions
        ),
    )
    yield (
        "OffsetCommit",
        lambda _: checked(
            one.error
            for found in waited(admin.alter_consumer_group_offsets([of_group(1)]))
            for one in found.topic_partitions
        ),
    )
    yield from _of_rights_and_users(admin)


def _of_rights_and_users(admin: Any) -> Iterator[tuple[str, Does]]:
    yield "DescribeAcls", lambda _: admin.describe_acls(_right(librdkafka.AclBindingFilter)).result(WITHIN_S)
    yield "CreateAcls", lambda _: waited(admin.create_acls([_right(librdkafka.AclBinding)]))
    yield "DeleteAcls", lambda _: waited(admin.delete_acls([_right(librdkafka.AclBindingFilter)]))
    yield "AlterUserScramCredentials", lambda _: waited(admin.alter_user_scram_credentials([_credential()]))
    yield "DescribeUserScramCredentials", lambda _: waited(admin.describe_user_scram_credentials(["u"]))


def _right(kind: Any) -> Any:
    read, allow = librdkafka.AclOperation.READ, librdkafka.AclPermissionType.ALLOW
    literal = librdkafka.ResourcePatternType.LITERAL
    return kind(librdkafka.ResourceType.TOPIC, "t", literal, "User:u", "*", read, allow)


def _credential() -> Any:
    info = librdkafka.ScramCredentialInfo(librdkafka.ScramMechanism.SCRAM_SHA_256, 4096)
    return librdkafka.UserScramCredentialUpsertion("u", info, b"secret")


def main(*at: str) -> None:
    client = Librdkafka(Addresses(*at))
    for line in sys.stdin:
        api, name = line.split()
        print("heard", client.do(api, name), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
