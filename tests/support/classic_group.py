"""Consumers of one group, of Kafka 0.8.2.2 and of `ottla.classic`, and what they have read."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from ottla.classic import ConsumerConfig, ConsumerConnector, Whitelist

from .poll import until

Read = tuple[str, int, int]  # topic, partition, offset


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
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        until(lambda: answer in self.lines, answer, every=0.02)

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
        self._ours: list[Ours] = []
        self._others: list[Printer] = []

    def ours(self, name: str, streams: int = 1, **more: Any) -> Ours:
        self._ours.append(Ours(config(self.zookeeper, self.name, name, **more), self.regex, streams))
        return self._ours[-1]

    def theirs(self, name: str, streams: int = 1) -> None:
        self._theirs.say(f"join {name} {self.name} {self.regex} {streams}", f"joined {name}")

    def they_leave(self, name: str) -> None:
        self._theirs.say(f"leave {name}", f"left {name}")

    def own_process(self, name: str) -> Printer:
        """A consumer of `ottla.classic` that can be killed."""
        arguments = [self.zookeeper, self.name, name, self.regex]
        command = [sys.executable, "-m", "tests.support.classic_consumer", *arguments]
        self._others.append(Printer(command, self._folder / f"{name}.log"))
        until(lambda: "ready" in self._others[-1].lines, f"{name} consumes", every=0.02)
        return self._others[-1]

    def read(self) -> Counter[Read]:
        found = Counter(one for ours in self._ours for one in list(ours.read))
        for printer in (self._theirs, *self._others):
            for line in list(printer.lines):
                words = line.split(" ")
                if words[0] == "read" and words[2].startswith(self.regex.rstrip(".*")):
                    found[words[2], int(words[3]), int(words[4])] += 1
        return found
