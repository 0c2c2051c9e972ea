"""Consumers of one group, of Kafka 0.8.2.2 and of `ottla.classic`, what they own, and what they have read."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from ottla.classic import (
    LATEST_TIME,
    ConsumerConfig,
    ConsumerConnector,
    Producer,
    ProducerConfig,
    ProducerData,
    SimpleConsumer,
    StringEncoder,
    Whitelist,
)
from ottla.classic.cluster import Address, Cluster, addresses

from .poll import until

Read = tuple[str, int, int]  # topic, partition, offset
READ = re.compile(r"read \S+ (\S+) (\d+) (\d+)\b")  # what a consumer prints: its name, and what it has read


class Printer(threading.Thread):
    """A program whose lines are read while it runs."""

    def __init__(self, command: list[str], log: Path) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self._errors = log.open("wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.start()

    def run(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def say(self, line: str, answer: str) -> None:
        """Gives the program a line, and waits until it has answered."""
        assert self.process.stdin is not None
        start = len(self.lines)
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        self.wait(answer, start)

    def wait(self, line: str, start: int = 0) -> None:
        """Waits until the program has printed a line. `start`: the number of lines that do not count."""

        def is_there() -> bool:
            is_over = self.process.poll() is not None
            found = line in self.lines[start:]
            assert found or not is_over, f"the program has ended before {line!r}"
            return found

        until(is_there, line, every=0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)
        self.join()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            assert stream is not None
            stream.close()


def config(zookeeper: str, group: str, name: str, **more: Any) -> ConsumerConfig:
    return ConsumerConfig(
        group,
        zookeeper,
        consumer_id=name,
        auto_offset_reset="smallest",
        auto_commit_interval_ms=500,
        fetch_wait_max_ms=50,
        rebalance_backoff_ms=300,
        zookeeper_session_timeout_ms=3000,
        **more,
    )


class Ours:
    """A consumer of `ottla.classic` in this process."""

    def __init__(self, wanted: ConsumerConfig, regex: str, streams: int = 1) -> None:
        self.read: list[Read] = []
        self.connector = ConsumerConnector(wanted)
        self._threads = [
            threading.Thread(target=self._consume, args=(stream,), daemon=True)
            for stream in self.connector.create_message_streams_by_filter(Whitelist(regex), streams)
        ]
        for one in self._threads:
            one.start()

    def _consume(self, stream: Any) -> None:
        for one in stream:
            self.read.append((one.topic, one.partition, one.offset))

    def leave(self) -> None:
        self.connector.shutdown()
        for one in self._threads:
            one.join()


class Group:
    """`regex`: the topics that all consumers want."""

    def __init__(self, name: str, zookeeper: str, regex: str, theirs: Printer, folder: Path) -> None:
        self.name, self.zookeeper, self.regex, self._theirs, self._folder = name, zookeeper, regex, theirs, folder
        self._start = len(theirs.lines)  # what came before is of other groups
        self._ours: list[Ours] = []
        self._others: list[Printer] = []

    def ours(self, name: str, streams: int = 1, **more: Any) -> Ours:
        self._ours.append(Ours(config(self.zookeeper, self.name, name, **more), self.regex, streams))
        return self._ours[-1]

    def theirs(self, name: str, streams: int = 1, **more: object) -> None:
        """`more`: properties, with underscores for dots."""
        properties = "".join(f" {key.replace('_', '.')}={str(value).lower()}" for key, value in more.items())
        place = f"{self.zookeeper} {self.name} {self.regex}"
        self._theirs.say(f"join {name} {place} {streams}{properties}", f"joined {name}")

    def they_read(self, name: str) -> None:
        """Waits until a consumer reads more: its rebalance is over."""
        start = len(self._theirs.lines)
        until(
            lambda: any(line.startswith(f"read {name} ") for line in self._theirs.lines[start:]),
            f"{name} reads",
            every=0.02,
        )

    def they_leave(self, name: str) -> None:
        self._theirs.say(f"leave {name}", f"left {name}")

    def own_process(self, name: str) -> Printer:
        """A consumer of `ottla.classic` that can be killed."""
        arguments = [self.zookeeper, self.name, name, self.regex]
        command = [sys.executable, "-m", "tests.support.classic_consumer", *arguments]
        self._others.append(Printer(command, self._folder / f"{name}.log"))
        self._others[-1].wait("ready")
        return self._others[-1]

    def read(self) -> Counter[Read]:
        found = Counter(one for ours in self._ours for one in list(ours.read))
        for lines in (self._theirs.lines[self._start :], *(one.lines for one in self._others)):
            for line in list(lines):
                read = READ.match(line)  # a process that is killed may have printed a part of its last line
                if read is not None and read[1].startswith(self.regex.rstrip(".*")):
                    found[read[1], int(read[2]), int(read[3])] += 1
        return found


class Traffic(threading.Thread):
    """Writes to topics until it is ended."""

    def __init__(self, servers: str, *topics: str) -> None:
        super().__init__(daemon=True)
        self.topics, self.count, self._ended = topics, 0, threading.Event()
        config = ProducerConfig(servers, request_required_acks=1, message_send_max_retries=50)
        self._producer: Producer[str, bytes] = Producer(config, key_encoder=StringEncoder())

    def run(self) -> None:
        while not self._ended.wait(0.003):
            for topic in self.topics:
                self._producer.send(ProducerData(topic, [b"%d" % self.count], key=str(self.count)))
            self.count += 1

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._producer.close()


def leaders_of(servers: str, topic: str) -> dict[int, Address]:
    """Returns where the leader of each partition listens."""
    cluster = Cluster(lambda: addresses(servers), "", 30)
    cluster.refresh([topic])
    found = {partition: cluster.address_of(leader) for partition, leader in cluster.leaders(topic).items()}
    cluster.close()
    return found


def leader_of(servers: str, topic: str, partition: int) -> SimpleConsumer:
    """Returns a consumer for the broker that leads a partition."""
    return SimpleConsumer(*leaders_of(servers, topic)[partition])


def end_of(servers: str, topic: str, partition: int) -> int:
    with leader_of(servers, topic, partition) as consumer:
        return consumer.get_offsets_before(topic, partition, LATEST_TIME, 1)[0]


def owners(zookeeper: KazooClient, group: str, topic: str) -> list[str]:
    """The consumers that own the partitions of a topic, in the order of the partitions."""
    path = f"/consumers/{group}/owners/{topic}"
    try:
        names = sorted(zookeeper.get_children(path), key=int)
        return [zookeeper.get(f"{path}/{name}")[0].decode().rpartition("-")[0] for name in names]
    except NoNodeError:  # an owner gives it up
        return []


def shares(zookeeper: KazooClient, group: str, topic: str, **counts: int) -> None:
    """Waits until each consumer owns so many partitions."""
    wanted = [f"{group}_{name}" for name in sorted(counts) for _ in range(counts[name])]
    until(lambda: owners(zookeeper, group, topic) == wanted, f"{counts} of {topic}", within=40, every=0.02)
