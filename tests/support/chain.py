"""A chain that consumes, transforms and produces, under SIGKILLs of the broker and of its links: every input comes out
once, in order by key.

    python -m tests.support.chain [seconds=180] [links=3] [seed=0]

The links are processes of librdkafka in one group, each with a transactional id of its own; a killed one is started
again. The feeder is an idempotent producer in this process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from .ask import lab

PARTITIONS = 4
KEYS = 7
SETTINGS: dict[str, object] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "offsets.topic.num.partitions": 4,
}
STRAGGLE_SECONDS = 90

# On its own librdkafka (2.16) gives up its only broker when that has been away and learns of it again; a call that was
# under way
# then waits for the broker that was given up, and is not answered any more.
CLIENT: dict[str, Any] = {"metadata.recovery.strategy": "none", "log_level": 0}


def link(servers: str, name: str, protocol: str) -> None:
    """One link: reads `in`, writes `out`, in transactions, until it is killed or fenced."""
    settings: dict[str, Any] = {
        "bootstrap.servers": servers, "group.id": "chain", "enable.auto.commit": False, "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "group.protocol": protocol, **CLIENT,
    }  # fmt: skip
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    consumer = Consumer(settings)
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": 10_000, **CLIENT}
    )
    producer.init_transactions(60)
    consumer.subscribe(["in"])
    while True:
        messages = [one for one in consumer.consume(30, 0.2) if one.error() is None]
        if messages:
            _pass_on(consumer, producer, messages)


def _pass_on(consumer: Consumer, producer: Producer, messages: list[Any]) -> None:
    """Produces the messages and commits their offsets in one transaction, or aborts it, and they are read again. Any
    other error ends the process.
    """
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce("out", b"x" + message.value(), key=message.key())
        following: dict[tuple[str, int], int] = {}
        for message in messages:
            following[message.topic(), message.partition()] = message.offset() + 1
        offsets = [TopicPartition(topic, index, offset) for (topic, index), offset in following.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        _until_done(lambda: producer.commit_transaction(30))
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        _until_done(lambda: producer.abort_transaction(30))
        first: dict[tuple[str, int], int] = {}
        for message in messages:
            first.setdefault((message.topic(), message.partition()), message.offset())
        for (topic, index), offset in first.items():
            consumer.seek(TopicPartition(topic, index, offset))


def _until_done(end: Callable[[], Any]) -> None:
    while True:
        try:
            end()
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


class Chain:
    """The broker, the feeder and the links."""

    def __init__(self, directory: Path, links: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.broker = Broker(SETTINGS, directory=directory, lab=True).start()
        servers = self.servers = self.broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("in", "out")]).values():
            made.result()
        self.feeder = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "delivery.timeout.ms": 120_000, **CLIENT}
        )
        self.sent = 0
        self.lost: list[KafkaError] = []
        protocol = self.chance.choice(("classic", "consumer"))
        self.commands = [
            [sys.executable, "-m", "tests.support.chain", "link", servers, f"chain-{n}", protocol] for n in range(links)
        ]
        self.links = [self._start(command) for command in self.commands]
        self.kills = {"broker": 0, "link": 0, "gave up": 0}

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def feed(self, count: int) -> None:
        for _ in range(count):
            n = self.sent
            self.feeder.produce(
                "in",
                str(n),
                key=f"k{n % KEYS}",
                on_delivery=lambda error, _: self.lost.append(error) if error else None,
            )
            self.sent += 1
        self.feeder.poll(0)

    def trouble(self) -> None:
        """Kills the broker or a link, and starts it again."""
        if self.chance.random() < 0.4:
            self.broker.kill()
            self.broker.start()
            self.kills["broker"] += 1
        else:
            self.chance.choice(self.links).kill()
            self.kills["link"] += 1

    def mend(self) -> None:
        for number, process in enumerate(self.links):
            if process.poll() is not None:
                self.kills["gave up"] += process.returncode > 0
                self.links[number] = self._start(self.commands[number])

    def run(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pause = time.monotonic() + self.chance.uniform(0.5, 3)
            while time.monotonic() < pause:
                self.feed(5)
                time.sleep(0.02)
            self.trouble()
            self.mend()
        assert self.feeder.flush(60) == 0
        assert not self.lost, f"{len(self.lost)} records of the feeder were refused: {self.lost[0]}"

    def check(self) -> int:
        """Waits for the last input to come out, and returns how many there were."""
        settings = {"group.id": "check", "isolation.level": "read_committed", "auto.offset.reset": "earliest", **CLIENT}
        reader = Consumer({"bootstrap.servers": self.servers, **settings})
        reader.assign([TopicPartition("out", p, 0) for p in range(PARTITIONS)])
        found: dict[str, list[int]] = {}
        count, until = 0, time.monotonic() + STRAGGLE_SECONDS
        while count < self.sent and time.monotonic() < until:
            self.mend()
            for message in reader.consume(500, 0.5):
                if message.error() is None:
                    found.setdefault(message.key().decode(), []).append(int(message.value()[1:]))
                    count += 1
        more = [message for message in reader.consume(10, 2) if message.error() is None]
        reader.close()
        assert not more, f"{len(more)} records too many"
        if count < self.sent:
            raise AssertionError(f"{count} of {self.sent} came out: {self._situation()}")
        for key, numbers in found.items():
            wanted = list(range(int(key[1:]), self.sent, KEYS))
            assert numbers == wanted, f"{key}: {_difference(numbers, wanted)}"
        return count

    def _situation(self) -> str:
        """What the broker says of transactions and of the group."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        group = admin.describe_consumer_groups(["chain"])["chain"].result()
        members = [[p.partition for p in one.assignment.topic_partitions] for one in group.members]
        asker = Consumer({"bootstrap.servers": self.servers, "group.id": "chain", "log_level": 0})
        inputs = [TopicPartition("in", p) for p in range(PARTITIONS)]
        committed_and_end = [(p.offset, asker.get_watermark_offsets(p)[1]) for p in asker.committed(inputs, 10)]
        asker.close()
        return (
            f"{lab(self.broker, '/v1/transactions')}; {group.state}, members with {members}; committed and ends "
            f"{committed_and_end}"
        )

    def close(self) -> None:
        for process in self.links:
            process.kill()
            process.wait()
        self.broker.close()


def _difference(numbers: list[int], wanted: list[int]) -> str:
    missing, twice = sorted(set(wanted) - set(numbers)), len(numbers) - len(set(numbers))
    return (
        f"{len(missing)} missing {missing[:5]}, {twice} twice, "
        f"{'in order' if numbers == sorted(numbers) else 'out of order'}"
    )


def run(directory: Path, seconds: float, links: int = 3, seed: int = 0) -> str:
    """AssertionError with the seed when an input is lost, doubled or out of order."""
    chain = Chain(directory, links, seed)
    try:
        chain.run(seconds)
        count = chain.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {chain.kills}: {error}") from error
    finally:
        chain.close()
    return f"{count} records, each once and in order; killed: {chain.kills}"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["link"]:
        try:
            link(*arguments[1:])
        finally:
            os._exit(1)  # dead at once, as by a kill: nothing is flushed or committed on the way out
    options = dict(a.split("=") for a in arguments)
    with tempfile.TemporaryDirectory() as directory:
        print(
            run(
                Path(directory),
                float(options.get("seconds", 180)),
                int(options.get("links", 3)),
                int(options.get("seed", 0)),
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
