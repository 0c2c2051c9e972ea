"""aiokafka in examinations of the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.structs import TopicPartition

from .program import (
    CHURN,
    CODEC,
    MECHANISM,
    PASSWORD,
    PROTOCOL,
    READ,
    RECORDS_READ_MAX,
    SELDOM_SECONDS,
    SESSION_TIMEOUT_MS,
    STATIC,
    TOGETHER,
    USER,
    VALUE,
    Enough,
    Work,
    run,
)

HEARTBEATS: Final = 5
"""That a static member sends before it goes, at least: one for each of its polls."""
PLAIN = TopicPartition("plain", 0)
LOGIN: Final[dict[str, Any]] = {
    "security_protocol": PROTOCOL,
    "sasl_mechanism": MECHANISM,
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}
Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


def _consumer(at: str, *topics: str, **more: Any) -> AIOKafkaConsumer:
    given = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 50}
    return AIOKafkaConsumer(*topics, bootstrap_servers=at, **given, **more)


async def _started(make: Callable[[], Client]) -> Client:
    """A client that gives up when it cannot connect is made again by its application."""
    while True:
        client = make()
        try:
            await client.start()
            return client
        except KafkaConnectionError:
            await client.stop()
            await asyncio.sleep(0.1)


async def _stop(consumer: AIOKafkaConsumer) -> None:
    """Its fetcher cancels what waits to fetch again, and raises that (`Fetcher.close`): the rest is closed then."""
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        await consumer._client.close()


async def _plain(at: str, enough: Enough, together: int = 0, codec: str | None = None, **more: Any) -> None:
    """A producer, and a consumer that chooses its partition and commits. `together`: records that do not wait."""
    given = {"bootstrap_servers": at, "enable_idempotence": True, "compression_type": codec, **more}
    producer = await _started(lambda: AIOKafkaProducer(**given))
    await producer.send_and_wait(*_record(PLAIN.topic))
    consumer = await _started(lambda: _consumer(at, group_id="plain", **more))
    consumer.assign([PLAIN])
    await consumer.seek_to_beginning(PLAIN)
    while not enough():
        with suppress(KafkaError):  # what it gives up when a connection is closed, its application does again
            await asyncio.gather(*[await producer.send(*_record(PLAIN.topic)) for _ in range(together)])
            await producer.send_and_wait(*_record(PLAIN.topic))
            if await consumer.getmany(timeout_ms=50, max_records=RECORDS_READ_MAX):
                await consumer.commit()
            await consumer.end_offsets([PLAIN])
            await consumer.topics()
    await _stop(consumer)
    await producer.stop()


def _record(topic: str) -> tuple[str, bytes, bytes, int]:
    return topic, VALUE, b"key", 0


async def _seldom(at: str, enough: Enough) -> None:
    """A producer that sends a record now and then."""
    producer = await _started(lambda: AIOKafkaProducer(bootstrap_servers=at, enable_idempotence=True))
    while not enough():
        with suppress(KafkaError):  # what it gives up is lost
            await producer.send_and_wait(*_record(PLAIN.topic))
        await asyncio.sleep(SELDOM_SECONDS)
    await producer.stop()


async def _reading(at: str, enough: Enough) -> None:
    """A consumer that chooses its partition, and only reads."""
    consumer = await _started(lambda: _consumer(at))
    partition = TopicPartition(READ, 0)
    consumer.assign([partition])
    await consumer.seek_to_beginning(partition)
    while not enough():
        await consumer.getmany(timeout_ms=50, max_records=RECORDS_READ_MAX)
    await _stop(consumer)


async def _transactions(at: str, enough: Enough) -> None:
    """A transaction that cannot be aborted either is given up with its producer."""

    def make() -> AIOKafkaProducer:
        return AIOKafkaProducer(bootstrap_servers=at, transactional_id="transactions")

    producer = await _started(make)
    while not enough():
        try:
            await producer.begin_transaction()
            for _ in range(2):
                await producer.send_and_wait(*_record("written"))
            await producer.send_offsets_to_transaction({TopicPartition("written", 0): 1}, "group")
            await producer.commit_transaction()
        except KafkaError:
            try:
                await producer.abort_transaction()
            except KafkaError:
                await producer.stop()
                producer = await _started(make)
    await producer.stop()


async def _group(at: str, enough: Enough) -> None:
    """Two members read and commit; the second one goes and comes again. A static member of another group does so in
    the end.
    """
    quick: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_TIMEOUT_MS}
    more = {"group_id": "members", **quick}
    async with AIOKafkaProducer(bootstrap_servers=at) as producer, AsyncExitStack() as members:
        first = await members.enter_async_context(_consumer(at, "shared", **more))
        second: AIOKafkaConsumer | None = None
        number = 0
        while not enough():
            moves = number % CHURN == 0 and all(one.assignment() for one in (first, second) if one is not None)
            if moves and second is None:
                second = await members.enter_async_context(_consumer(at, "shared", **more))
            elif moves and second is not None:
                await second.stop()
                second = None
            number += 1
            await producer.send_and_wait("shared", VALUE, partition=number % 2)
            for one in (first, second):
                if one is not None:
                    await _read(one)
    for _ in range(2):
        async with _consumer(at, "shared", group_id=STATIC, group_instance_id=STATIC, **quick) as static:
            polls = 0
            while polls < HEARTBEATS or not static.assignment():
                polls += 1
                await _read(static)


async def _read(member: AIOKafkaConsumer) -> None:
    if await member.getmany(timeout_ms=100, max_records=RECORDS_READ_MAX):
        with suppress(KafkaError):  # the group rebalances: what was read is read again
            await member.commit()


async def _ending_writes(at: str, enough: Enough) -> None:
    """Transactions, until a producer can neither commit nor abort."""
    producer = await _started(lambda: AIOKafkaProducer(bootstrap_servers=at, transactional_id="ending"))
    with suppress(KafkaError, AssertionError):  # the latter says that the producer is in the state FATAL_ERROR
        while not enough():
            await producer.begin_transaction()
            try:
                await producer.send_and_wait(*_record("written"))
                await producer.commit_transaction()
            except KafkaError:
                await producer.abort_transaction()
    with suppress(KafkaError):
        await producer.stop()


async def _ending_sends(at: str, enough: Enough) -> None:
    """Records that do not wait for each other: one that is refused is lost."""
    async with AIOKafkaProducer(bootstrap_servers=at, enable_idempotence=True) as producer:
        while not enough():
            sent = [await producer.send(*_record(PLAIN.topic)) for _ in range(TOGETHER)]
            await asyncio.gather(*sent, return_exceptions=True)


def _work(work: Callable[[str, Enough], Awaitable[None]]) -> Work:
    def works(at: str, enough: Enough) -> None:
        async def all_of_it() -> None:
            await work(at, enough)

        asyncio.run(all_of_it())

    return works


if __name__ == "__main__":
    run(
        {
            "basic": _work(lambda at, enough: _plain(at, enough, codec=CODEC)),
            "idempotence": _work(lambda at, enough: _plain(at, enough, TOGETHER)),
            "network": _work(_plain),
            "login": _work(lambda at, enough: _plain(at, enough, **LOGIN)),
            "truncation": _work(_reading),
            "connections": _work(_seldom),
            "transactions": _work(_transactions),
            "classic-group": _work(_group),
            "ending-writes": _work(_ending_writes),
            "ending-sends": _work(_ending_sends),
        }
    )
