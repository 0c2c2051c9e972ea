"""aiokafka at work until the input ends: `python -m tests.clients.history_aiokafka ADDRESSES`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.structs import TopicPartition

NAME = "aiokafka"
WITHIN_SECONDS = 60.0
TIMEOUT_MS = 4000
ENDED = (KafkaError, AssertionError)
"""What aiokafka 0.14 raises from a transactional producer whose sender has ended, as by a lost FindCoordinator."""
Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


def say(*words: object) -> None:
    print(*words, flush=True)


async def started(make: Callable[[], Client]) -> Client:
    """A client that gives up when it cannot connect is made again by its application."""
    while True:
        client = make()
        try:
            await client.start()
            return client
        except (KafkaConnectionError, KafkaError):
            await client.stop()
            await asyncio.sleep(0.1)


class Work:
    """One client of each kind. What each line of the journal means is in history.py."""

    def __init__(self, servers: str) -> None:
        self.common: dict[str, Any] = {"bootstrap_servers": servers, "request_timeout_ms": TIMEOUT_MS}
        self.acked: set[bytes] = set()
        self.enough = self.produced = False

    async def told(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does a part of the work, and says at once if it fails: the others go on."""
        try:
            await work()
        except Exception as error:
            say("note", getattr(work, "__name__", ""), repr(error))
            raise

    async def produce(self) -> None:
        producer, number = await started(lambda: AIOKafkaProducer(enable_idempotence=True, **self.common)), 0
        sent: list[Awaitable[None]] = []
        while not self.enough:
            value = str(number).encode()
            try:
                sent.append(asyncio.create_task(self._delivered(value, await producer.send(NAME, value, value))))
            except KafkaError as error:  # there was no room or no metadata: it was not sent
                say("note", "send", repr(error))
            number += 1
            await asyncio.sleep(0.03)
        await asyncio.gather(*sent)
        await producer.stop()
        self.produced = True

    async def _delivered(self, value: bytes, delivery: Awaitable[object]) -> None:
        try:
            await delivery
        except KafkaError:
            say("lost", value.decode())
        else:
            self.acked.add(value)
            say("acked", value.decode())

    async def consume(self) -> None:
        """One member of a group reads everything, and commits what it has read."""
        group, seen = f"{NAME}-classic", set[bytes]()
        more: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = await started(lambda: AIOKafkaConsumer(NAME, **more, **self.common))
        while not self.produced or not self.acked <= seen:
            await asyncio.sleep(0.2)  # some records for each commit
            some = await consumer.getmany(timeout_ms=100)
            for at, records in some.items():
                for one in records:
                    seen.add(one.value or b"")
                    say("read", group, at.partition, one.offset, (one.value or b"").decode())
            ends = {at: records[-1].offset + 1 for at, records in some.items()}
            try:
                if ends:
                    await consumer.commit(ends)
                for at, offset in ends.items():
                    say("committed", group, at.partition, offset)
            except KafkaError as missed:
                say("note", group, repr(missed))
        try:
            await asyncio.wait_for(consumer.stop(), 10)
        except (TimeoutError, asyncio.CancelledError):
            say("note", group, "stop() has not ended")

    async def transact(self) -> None:
        """Transactions of three records, each in a partition of its own, and of an offset."""
        number, producer = 0, await started(self._transactional)
        while not self.enough:
            commits = False
            try:
                await producer.begin_transaction()
                for part in range(3):
                    await producer.send(f"{NAME}-whole", f"{number}-{part}".encode(), partition=part)
                await producer.send_offsets_to_transaction({TopicPartition(NAME, 0): number}, f"{NAME}-whole")
                commits = True
                await producer.commit_transaction()
                say("whole", number)
            except KafkaError as failed:
                say("note", "transaction", number, repr(failed))
                say("doubtful" if commits else "aborted", number)
                try:
                    await producer.abort_transaction()
                except ENDED:
                    with suppress(*ENDED):
                        await producer.stop()
                    producer = await started(self._transactional)
            number += 1
            await asyncio.sleep(0.1)
        await producer.stop()

    def _transactional(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(transactional_id=NAME, **self.common)


async def main(servers: str) -> None:
    work = Work(servers)
    running = [asyncio.create_task(work.told(one)) for one in (work.produce, work.consume, work.transact)]
    await asyncio.to_thread(sys.stdin.read)
    work.enough = True
    await asyncio.wait_for(asyncio.gather(*running), 90)
    say("ok")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
