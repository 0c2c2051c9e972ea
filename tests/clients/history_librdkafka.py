"""librdkafka at work until the input ends: `python -m tests.clients.history_librdkafka ADDRESSES`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ShareConsumer, TopicPartition

NAME = "librdkafka"
WITHIN_SECONDS = 60.0


class Work:
    """One client of each kind. What each line of the journal means is in history.py."""

    def __init__(self, servers: str) -> None:
        self.common: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "socket.timeout.ms": 4000}
        self.acked: set[str] = set()
        self.enough, self.produced = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def say(self, *words: object) -> None:
        with self._lock:
            print(*words, flush=True)

    def told(self, work: Callable[..., None], *arguments: object) -> None:
        """Does a part of the work, and says at once if it fails: the others go on."""
        try:
            work(*arguments)
        except Exception as error:
            self.say("note", work.__name__, *arguments, repr(error))
            raise

    def is_missing(self, seen: set[str]) -> bool:
        return not self.produced.is_set() or not self.acked <= seen

    def produce(self) -> None:
        """With a new producer after a fatal error. librdkafka 2.16 has one where it has lost all connections, forgets
        with them in which epochs partitions are led, and begins again at a node that is cut off and led one before:
        that one refuses the sequence of records that come after those that another leader has taken meanwhile.
        """
        number, has_failed = 0, threading.Event()
        producer = self._idempotent(has_failed)
        while not self.enough.is_set():
            try:
                producer.produce(NAME, str(number), key=str(number), on_delivery=self._delivered)
                number += 1
                producer.poll(0)
            except KafkaException as error:
                has_failed.set()
                self.say("note", "produce", error)
            if has_failed.is_set():
                self._finish(producer, has_failed)
                has_failed.clear()
                producer = self._idempotent(has_failed)
            time.sleep(0.03)
        self._finish(producer, has_failed)
        self.produced.set()

    def _idempotent(self, has_failed: threading.Event) -> Producer:
        def on_error(error: KafkaError) -> None:
            if error.fatal():
                self.say("note", "produce", error)
                has_failed.set()

        return Producer({**self.common, "enable.idempotence": True, "error_cb": on_error})

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        value = message.value().decode()
        if error is None:
            self.acked.add(value)
        self.say("lost" if error else "acked", value)

    @staticmethod
    def _finish(producer: Producer, has_failed: threading.Event) -> None:
        """Waits for all deliveries. After a fatal error nothing more is sent, and what waits is lost."""
        ends = time.monotonic() + WITHIN_SECONDS
        while len(producer):
            with suppress(KafkaException):  # the fatal error, from most calls
                if has_failed.is_set():
                    producer.purge()
                producer.poll(0.1)
            assert time.monotonic() < ends, f"{len(producer)} records are not delivered"

    def consume(self, protocol: str) -> None:
        """One member of a group reads everything, and commits what it has read."""
        group, seen = f"{NAME}-{protocol}", set[str]()
        more = {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({**self.common, "group.id": group, **more})
        consumer.subscribe([NAME])
        while self.is_missing(seen):
            ends: dict[int, int] = {}
            time.sleep(0.2)  # some records for each commit
            for message in consumer.consume(500, 0.1):
                if message.error() is not None:
                    self.say("note", group, message.error())
                    continue
                partition, offset, value = message.partition() or 0, message.offset() or 0, (message.value() or b"")
                seen.add(value.decode())
                ends[partition] = offset + 1
                self.say("read", group, partition, offset, value.decode())
            if not ends:
                continue
            try:
                offsets = [TopicPartition(NAME, partition, offset) for partition, offset in ends.items()]
                for one in consumer.commit(offsets=offsets, asynchronous=False) or []:
                    if one.error is None:
                        self.say("committed", group, one.partition, one.offset)
            except KafkaException as missed:
                self.say("note", group, missed)
        consumer.close()

    def share(self) -> None:
        seen, missing = set[str](), object()
        consumer = ShareConsumer({**self.common, "group.id": f"{NAME}-share"})
        consumer.subscribe([NAME])
        while self.is_missing(seen):
            some: dict[int, list[str]] = {}
            time.sleep(0.2)
            for message in consumer.poll(0.1):
                if message.error() is None:
                    some.setdefault(message.partition() or 0, []).append((message.value() or b"").decode())
            outcome: dict[int, Any] = {}
            try:
                outcome = {at.partition: error for at, error in (consumer.commit_sync(10.0) or {}).items()}
            except KafkaException as missed:
                self.say("note", "share", missed)
            for partition, values in some.items():
                word = "accepted" if outcome.get(partition, missing) is None else "unsure"
                for value in values:
                    seen.add(value)
                    self.say(word, value)
        consumer.close()

    def transact(self) -> None:
        """Transactions of three records, each in a partition of its own. Without offsets: `send_offsets_to_transaction`
        of librdkafka 2.16 may wait for a coordinator that is gone whatever its timeout is, with Kafka too.
        """
        number, producer = 0, self._transactional()
        while not self.enough.is_set():
            failed = self._one_transaction(producer, number)
            if failed is not None:
                try:
                    if failed.fatal():
                        raise KafkaException(failed)
                    self._again(producer.abort_transaction)
                except KafkaException:
                    producer = self._transactional()
            number += 1
            time.sleep(0.1)

    def _transactional(self) -> Producer:
        producer = Producer({**self.common, "transactional.id": NAME})
        self._again(producer.init_transactions)
        return producer

    def _one_transaction(self, producer: Producer, number: int) -> KafkaError | None:
        """Returns why it was not committed; None if it was."""
        commits = False
        try:
            producer.begin_transaction()
            for part in range(3):
                producer.produce(f"{NAME}-whole", f"{number}-{part}", partition=part)
            commits = True
            self._again(producer.commit_transaction)
        except KafkaException as failed:
            self.say("note", "transaction", number, failed)
            self.say("doubtful" if commits else "aborted", number)
            error: KafkaError = failed.args[0]
            return error
        self.say("whole", number)
        return None

    def _again(self, call: Callable[..., object], *arguments: object) -> None:
        """Calls until it does not fail for a reason that may pass, as the client asks its users to.

        librdkafka can say so for ever of a transaction whose state it has lost; the program then begins again.
        """
        ends = time.monotonic() + WITHIN_SECONDS
        while True:
            try:
                call(*arguments, 10.0)
                return
            except KafkaException as error:
                self.say("note", getattr(call, "__name__", ""), error)
                if not error.args[0].retriable() or time.monotonic() > ends:
                    raise
                time.sleep(0.1)


def main(servers: str) -> None:
    work = Work(servers)
    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(work.told, one) for one in (work.produce, work.transact, work.share)]
        running += [threads.submit(work.told, work.consume, protocol) for protocol in ("classic", "consumer")]
        sys.stdin.read()
        work.enough.set()
        for one in running:
            one.result(90)
    work.say("ok")


if __name__ == "__main__":
    main(sys.argv[1])
