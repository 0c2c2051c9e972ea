"""aiokafka under test: what it hears when an API fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiokafka
from aiokafka import admin as aiokafka_admin
from aiokafka import errors as aiokafka_errors

from . import error_logins as logins
from . import error_transactions as transactions
from .error_clients import (
    FETCH_WAIT_MS,
    GROUP,
    HEARTBEAT_MS,
    SESSION_MS,
    TOPIC,
    WITHIN_S,
    Addresses,
    Heard,
    NoMoreHeartbeats,
    until_beaten,
)
from .error_kafka_python import KafkaPython, codes_within

_TOPIC_0 = aiokafka.TopicPartition(TOPIC, 0)
_SETTING = aiokafka_admin.config_resource.ConfigResource(
    aiokafka_admin.config_resource.ConfigResourceType.TOPIC, TOPIC, {"retention.ms": "1000000"}
)
OF_AIOKAFKA_CONSUMER: dict[str, Callable[[Any], Any]] = {
    "ListOffsets": lambda consumer: consumer.beginning_offsets([_TOPIC_0]),
    "OffsetFetch": lambda consumer: consumer.committed(_TOPIC_0),
    "OffsetCommit": lambda consumer: consumer.commit({_TOPIC_0: 0}),
}
OF_AIOKAFKA_ADMIN: dict[str, Callable[[Any, str], Any]] = {
    "CreateTopics": lambda admin, name: admin.create_topics([aiokafka_admin.NewTopic(name, 1, 1)]),
    "DeleteTopics": lambda admin, name: admin.delete_topics([name]),
    "CreatePartitions": lambda admin, name: admin.create_partitions({name: aiokafka_admin.NewPartitions(2)}),
    "Metadata": lambda admin, _: admin.describe_topics([TOPIC]),
    "AlterConfigs": lambda admin, _: admin.alter_configs([_SETTING]),
    "DescribeConfigs": lambda admin, _: admin.describe_configs([_SETTING]),
    "DeleteRecords": lambda admin, _: admin.delete_records({_TOPIC_0: aiokafka_admin.RecordsToDelete(0)}),
    "FindCoordinator": lambda admin, name: admin.find_coordinator(name),
    "ListGroups": lambda admin, _: admin.list_consumer_groups(),
    "DescribeGroups": lambda admin, _: admin.describe_consumer_groups([GROUP]),
}


class Aiokafka:
    """aiokafka: its producer, consumer and admin client; each does its work in a loop of its own. The admin client
    returns replies as they came, with their errors.
    """

    def __init__(self, at: Addresses) -> None:
        self.at, self.bootstrap = at, at.bootstrap

    def prepare(self, topic: str) -> None:
        helper = KafkaPython(self.at)
        try:
            helper.prepare(topic)
        finally:
            helper.close()

    def do(self, api: str, name: str) -> Heard:
        does = {"Produce": self._produce, "Fetch": self._fetch, "Heartbeat": self._beat}
        try:
            if api in OF_AIOKAFKA_ADMIN:
                return next(codes_within(asyncio.run(self._administer(OF_AIOKAFKA_ADMIN[api], name))), 0)
            if api in OF_AIOKAFKA_CONSUMER:
                asyncio.run(self._of_group(OF_AIOKAFKA_CONSUMER[api]))
            elif api in logins.APIS:
                asyncio.run(logins.of_aiokafka(self.at, api))
            elif api in transactions.APIS:
                asyncio.run(transactions.of_aiokafka(self.bootstrap, TOPIC, name, WITHIN_S))
            else:
                asyncio.run(does.get(api, self._join)(name))
        except transactions.Raised as error:
            return error.code
        except NoMoreHeartbeats as error:
            return str(error)
        except aiokafka_errors.KafkaError as error:
            return int(getattr(error, "errno", -1))
        return 0

    async def _administer(self, does: Callable[[Any, str], Any], name: str) -> list[object]:
        admin = aiokafka_admin.AIOKafkaAdminClient(
            bootstrap_servers=self.bootstrap, retry_backoff_ms=10, request_timeout_ms=int(WITHIN_S * 1000)
        )
        try:
            await admin.start()
            found = await does(admin, name)
        finally:
            await admin.close()
        replies = found if isinstance(found, list) else [found]
        return [one.to_object() if hasattr(one, "to_object") else one for one in replies]

    async def _of_group(self, does: Callable[[Any], Any]) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=GROUP, retry_backoff_ms=10, enable_auto_commit=False
        )
        try:
            await consumer.start()
            consumer.assign([_TOPIC_0])
            consumer.seek(_TOPIC_0, 0)  # before its fetcher asks where to begin
            await asyncio.wait_for(does(consumer), WITHIN_S)
        finally:
            await consumer.stop()

    async def _produce(self, name: str) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, retry_backoff_ms=10, request_timeout_ms=int(WITHIN_S * 1000)
        )
        await producer.start()
        try:
            await producer.send_and_wait(TOPIC, b"x", partition=0)
        finally:
            await producer.stop()

    async def _read(self, consumer: aiokafka.AIOKafkaConsumer, begins: Callable[[], None] = lambda: None) -> None:
        try:
            await consumer.start()
            begins()
            await asyncio.wait_for(consumer.getone(), WITHIN_S)
        finally:
            await consumer.stop()

    async def _fetch(self, name: str) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, retry_backoff_ms=10, auto_offset_reset="none"
        )
        partition = aiokafka.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        await self._read(consumer, lambda: consumer.seek(partition, 0))

    def _member(self, name: str) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self.bootstrap,
            client_id=name,
            group_id=name,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            retry_backoff_ms=10,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    async def _join(self, name: str) -> None:
        await self._read(self._member(name))

    async def _beat(self, name: str) -> None:
        """Reads a record, and goes on until more heartbeats were sent."""
        consumer, loop = self._member(name), asyncio.get_running_loop()

        def polls() -> None:
            asyncio.run_coroutine_threadsafe(consumer.getmany(timeout_ms=HEARTBEAT_MS), loop).result(WITHIN_S)

        try:
            await consumer.start()
            await asyncio.wait_for(consumer.getone(), WITHIN_S)
            await asyncio.to_thread(until_beaten, self.at.lab, name, polls)
        finally:
            await consumer.stop()

    def close(self) -> None:
        pass
