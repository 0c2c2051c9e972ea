"""Clients that do one thing for each API, and report the error that they raise or find in what they get."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Timer
from typing import Any, Protocol

import confluent_kafka
import kafka
from confluent_kafka import KafkaException
from confluent_kafka import admin as librdkafka
from kafka import admin as kafka_python
from kafka import errors as kafka_errors
from kafka.structs import OffsetAndMetadata

from ..oracle.kafka import program
from . import error_transactions as transactions

ENDED = "the process has ended"
TOPIC, GROUP = "errors", "errors-group"
WITHIN_S = 60.0
SESSION_MS = 6000  # after an UNKNOWN_MEMBER_ID the member that there was is waited for
CLIENTS = ["Produce", "Fetch", "JoinGroup"]  # what producers and consumers do
IN_GROUPS = ["SyncGroup"]
Heard = int | str
"""The code of an error, 0 for none; or the words of an exception that is not Kafka's."""
Does = Callable[[str], object]
"""Does something; gets a new name."""


class Client(Protocol):
    """A client under test."""

    def prepare(self, topic: str) -> None:
        """Creates a topic of one partition."""

    def do(self, api: str, name: str) -> Heard:
        """Does what needs the API; returns the error."""

    def close(self) -> None: ...


class Program:
    """A client in a process of its own, which gets lines (`API NAME`) and answers them (`heard CODE`).

    One that ends, as librdkafka does at some errors, is started again for the next line.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def prepare(self, topic: str) -> None:
        assert self.do("prepare", topic) == 0

    def do(self, api: str, name: str) -> Heard:
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = Timer(3 * WITHIN_S, self._process.kill)
        late.start()
        try:
            self._process.stdin.write(f"{api} {name}\n")
            self._process.stdin.flush()
            while line := self._process.stdout.readline():
                found = re.fullmatch(r"heard (.*)\n", line)
                if found:  # other lines are the client's log
                    return int(found[1]) if found[1].lstrip("-").isdecimal() else found[1]
        finally:
            late.cancel()
        self.close()
        return ENDED

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def java(bootstrap: str, directory: Path) -> Program:
    """Kafka's own clients."""
    return Program([*program("broker", "ErrorCodes", directory), bootstrap])


def librdkafka_program(bootstrap: str) -> Program:
    """librdkafka, which may end its process."""
    return Program([sys.executable, "-m", __name__, bootstrap])


def operations_of_java() -> list[str]:
    source = (Path(__file__).parent / "java" / "ErrorCodes.java").read_text()
    return [name for name in re.findall(r'Map\.entry\("(\w+)"', source) if name != "prepare"]


def operations_of_go(function: str) -> list[str]:
    """The APIs for which a function of the Go program can do something."""
    source = (Path(__file__).parent / "go" / "errors.go").read_text().partition(f"func {function}(")[2]
    return re.findall(r'^\t\t"([A-Z]\w+)": ', source.partition("\nfunc ")[0], re.MULTILINE)


def operations_of_node() -> list[str]:
    source = (Path(__file__).parent / "node" / "errors.js").read_text()
    return re.findall(r"^  ([A-Z]\w+): ", source, re.MULTILINE)


def names_of_librdkafka() -> list[str]:
    return [name for name, _ in _of_librdkafka(None)] + [*CLIENTS, *IN_GROUPS, *transactions.APIS]


def names_of_kafka_python() -> list[str]:
    return [name for name, _ in _of_kafka_python(None)] + [*CLIENTS, *IN_GROUPS, *transactions.APIS]


def waited(futures: dict[Any, Future[Any]]) -> list[Any]:
    return [future.result(WITHIN_S) for future in futures.values()]


class Librdkafka:
    """librdkafka, through confluent-kafka. It returns most errors of administration as they are."""

    def __init__(self, bootstrap: str) -> None:
        self.settings = {"bootstrap.servers": bootstrap, "log_level": 0, "retry.backoff.ms": 10}
        self.admin = librdkafka.AdminClient(self.settings)
        self._does: dict[str, Does] = dict(_of_librdkafka(self.admin))
        self._does |= {
            "prepare": self._does["CreateTopics"],
            "Produce": self._produce,
            "Fetch": self._fetch,
            **dict.fromkeys(["JoinGroup", "SyncGroup"], self._join),
            **dict.fromkeys(
                transactions.APIS, lambda name: transactions.of_librdkafka(self.settings, TOPIC, name, WITHIN_S)
            ),
        }

    def do(self, api: str, name: str) -> Heard:
        try:
            self._does[api](name)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

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
        settings = {"group.id": group, "auto.offset.reset": "error", "fetch.error.backoff.ms": 10}
        return confluent_kafka.Consumer({**self.settings, **settings, "session.timeout.ms": SESSION_MS})

    def _fetch(self, name: str) -> None:
        consumer = self._consumer(name)
        try:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
            self._read(consumer)
        finally:
            consumer.close()

    def _join(self, name: str) -> None:
        consumer = self._consumer(name)
        start = confluent_kafka.TopicPartition(TOPIC, 0, 0)
        try:
            consumer.subscribe([TOPIC], on_assign=lambda joined, _: joined.assign([start]))
            self._read(consumer)
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
    yield "DeleteRecords", lambda _: waited(admin.delete_records([confluent_kafka.TopicPartition(TOPIC, 0, 0)]))
    yield "ListOffsets", lambda _: waited(admin.list_offsets({partition: librdkafka.OffsetSpec.latest()}))
    yield (
        "ElectLeaders",
        lambda _: checked(
            admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(WITHIN_S).values()
        ),
    )
    yield "ListGroups", lambda _: checked(admin.list_consumer_groups().result(WITHIN_S).errors)
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
    yield "DescribeUserScramCredentials", lambda _: waited(admin.describe_user_scram_credentials(["u"]))


class KafkaPython:
    """kafka-python, which leaves many errors of elements in what it returns."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, retry_backoff_ms=10)
        self._does: dict[str, Does] = dict(_of_kafka_python(self.admin)) | {
            "Produce": self._produce,
            "Fetch": self._fetch,
            **dict.fromkeys(["JoinGroup", "SyncGroup"], self._join),
            **dict.fromkeys(
                transactions.APIS, lambda name: transactions.of_kafka_python(self.bootstrap, TOPIC, name, WITHIN_S)
            ),
        }

    def prepare(self, topic: str) -> None:
        self.admin.create_topics([kafka_python.NewTopic(topic, 1, 1)])

    def do(self, api: str, name: str) -> Heard:
        try:
            return next(codes_within(self._does[api](name)), 0)
        except transactions.Raised as error:
            return error.code
        except kafka_errors.KafkaError as error:
            code: int | None = error.errno
            return repr(error) if code is None else code

    def _produce(self, name: str) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, retry_backoff_ms=10)
        try:
            producer.send(TOPIC, b"x", partition=0).get(WITHIN_S)
        finally:
            producer.close()

    def _consumer(self, group: str | None) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest" if group else "none",
            enable_auto_commit=False,
            retry_backoff_ms=10,
            session_timeout_ms=SESSION_MS,
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

    def _join(self, name: str) -> None:
        consumer = self._consumer(name)
        try:
            consumer.subscribe([TOPIC])
            next(consumer)
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
    yield "DescribeProducers", lambda _: admin.describe_producers([partition])
    yield "DescribeTransactions", lambda _: admin.describe_transactions(["none"])
    yield "ListTransactions", lambda _: admin.list_transactions()
    yield "DescribeQuorum", lambda _: admin.describe_metadata_quorum()
    yield "UpdateFeatures", lambda _: admin.update_features({})


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


def new_name() -> str:
    return f"errors-{uuid.uuid4().hex[:10]}"


def main(bootstrap: str) -> None:
    client = Librdkafka(bootstrap)
    for line in sys.stdin:
        api, name = line.split()
        print("heard", client.do(api, name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
