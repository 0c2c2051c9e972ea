"""Clients at work through a history of nodes: stops, kills, pauses, drained, fenced, held and cut off nodes, moves,
elections, reassignments and a rolling restart.

Each client is a program that works until its input ends: it produces with acks=all and idempotence to a topic of its
name, reads that as the only member of a group for each protocol that it has, reads it as a share group if it can, and
commits transactions to `NAME-whole`. It writes a journal, a line for each thing that it is sure of:

- `acked N`, `lost N`: the delivery of the record N succeeded, or failed;
- `read GROUP PARTITION OFFSET N`, and `committed GROUP PARTITION OFFSET`, which the coordinator has confirmed;
- `accepted N`, `unsure N`: the share group's acknowledgement of N was confirmed, or may have failed;
- `whole N`, `doubtful N`, `aborted N`: how the transaction N ended, which has the records `N-0`, `N-1` and `N-2`, and,
  for most, the offset N;
- `note …`: what the client met, for people; `ok`: its last line.

`python -m tests.clients.history ottla|kafka NAMES…` runs the history by hand, on three nodes of ottla or of Apache
Kafka, prints how long each client waited in each step, and leaves the journals in the current directory. `steps=` is
another history: `steps="kill 2,start 2"`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..oracle.cluster import KafkaCluster
from ..oracle.cluster_pair import Cluster, Nodes, ask
from ..support.poll import until

PARTITIONS, NODES = 6, (1, 2, 3)
ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, object] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 2000,
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "min.insync.replicas": 2,
}
OURS: dict[str, object] = {**SETTINGS, "ottla.high.watermark": "lag=30ms"}
"""Followers are behind, so that an election loses what was not acknowledged yet."""
HISTORY = (
    "lose 3",
    "stop 1",
    "start 1",
    "kill 2",
    "start 2",
    "hold 3",
    "bounce 2",
    "release 3",
    "elect",
    "shrink",
    "widen",
    "move",
    "drain 1",
    "unfence 1",
    "fence 2",
    "unfence 2",
    "elect",
    "pause 3",
    "resume 3",
    "cut 2",
    "heal 2",
    "roll",
    "keep",
)
OURS_ALONE = ("lose", "keep", "hold", "bounce", "release", "cut", "heal", "move", "drain", "fence", "unfence")
WITHOUT_OFFSETS = ("franz", "librdkafka")  # in their transactions
SHARES = ("java", "librdkafka")
KINDS = ("acked", "lost", "read", "committed", "accepted", "unsure", "whole", "doubtful", "aborted", "note")
LOST_REPLIES = {"api": "Produce", "seed": 1, "action": {"kind": "close", "at": "before-reply"}}
POLL_SECONDS = 0.02
MORE = 20  # acknowledged records, before the next step
WITHIN_SECONDS = 90.0
LONGER_SECONDS = 240.0
PATIENCE = {"kafkajs": LONGER_SECONDS}
"""Its consumer asks a former coordinator for up to half a minute each time, of Kafka too, and joins as another one."""
Line = tuple[float, list[str]]


class Program:
    """One client's program, and its journal."""

    def __init__(self, name: str, command: Sequence[str], cwd: Path) -> None:
        self.name = name
        self.lines: list[Line] = []
        self.counts: Counter[str] = Counter()
        self._process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words = line.split()
            if words and line.endswith("\n"):  # it may be killed within a line
                self.lines.append((time.monotonic(), words))
                self.counts[words[0]] += 1

    def has_worked(self, before: Counter[str], kinds: Sequence[str]) -> bool:
        assert self._process.poll() is None, f"{self.name} has ended:\n{self.tail()}"
        return all(self.counts[kind] >= before[kind] + MORE for kind in kinds)

    @property
    def within_seconds(self) -> float:
        """The time in which it has to go on, and to end."""
        return PATIENCE.get(self.name, WITHIN_SECONDS)

    def end_soon(self) -> None:
        """Lets it come to its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        """Checks that it comes to its end."""
        try:
            code = self._process.wait(self.within_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end:\n{self.tail()}") from None
        assert code == 0, f"{self.name} failed:\n{self.tail()}"
        self._reader.join()
        said = [words for _, words in self.lines]  # after its end a client may still log futures that no one awaited
        assert ["ok"] in said, f"{self.name} has not ended well:\n{self.tail()}"

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def tail(self) -> str:
        return "\n".join(" ".join(words) for _, words in self.lines[-40:])

    def said(self, kind: str) -> list[list[str]]:
        return [words[1:] for _, words in self.lines if words[0] == kind]

    def stall(self, since: float) -> float:
        """The longest time that a record waited for its acknowledgement while a later one had it already, or in which
        nothing was acknowledged.
        """
        acked = {int(words[1]): at for at, words in self.lines if words[0] == "acked"}
        longest, first, last = 0.0, float("inf"), since
        for number in sorted(acked, reverse=True):
            first = min(first, acked[number])
            if acked[number] >= since:
                longest = max(longest, acked[number] - max(since, first))
        for at in sorted(one for one in acked.values() if one >= since):
            longest, last = max(longest, at - last), at
        return longest


# the cluster


def prepare(cluster: Cluster, names: Sequence[str]) -> None:
    """Creates the topics of the clients, and lets their share groups begin at the start."""
    admin = AdminClient({"bootstrap.servers": servers(cluster), "log_level": 0})
    topics = [
        *(NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for name in names),
        *(NewTopic(f"{name}-whole", 3, 3, config={"min.insync.replicas": "2"}) for name in names),
    ]
    for future in admin.create_topics(topics).values():
        future.result()
    for name in set(SHARES) & set(names):
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, f"{name}-share", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()


def servers(cluster: Cluster) -> str:
    return ",".join(cluster.address(node) for node in NODES)


def elect(cluster: Cluster, names: Sequence[str]) -> None:
    r = m.ElectLeadersRequest
    topics = [r.TopicPartitions(topic=name, partitions=list(range(PARTITIONS))) for name in names]
    asked = r(election_type=0, topic_partitions=topics, timeout_ms=10_000)

    def is_done() -> bool:
        """A node that has started takes a while to come into sync."""
        reply = ask(cluster, 1, "ElectLeaders", 2, asked)
        codes = {one.error_code for topic in reply.replica_election_results for one in topic.partition_result}
        return reply.error_code == 0 and codes <= {0, Errors.ELECTION_NOT_NEEDED}

    until(is_done, "each preferred replica leads", within=WITHIN_SECONDS)


def reassign(cluster: Cluster, names: Sequence[str], replicas: int) -> None:
    """Lets the first partitions of each topic have so many replicas, and waits until that is so."""
    r = m.AlterPartitionReassignmentsRequest
    topics = [
        r.ReassignableTopic(
            name=name,
            partitions=[
                r.ReassignablePartition(
                    partition_index=index, replicas=[(index + shift) % 3 + 1 for shift in range(replicas)]
                )
                for index in range(3)
            ],
        )
        for name in names
    ]
    reply = ask(cluster, 1, "AlterPartitionReassignments", 0, r(topics=topics, timeout_ms=10_000))
    assert reply.error_code == 0
    assert all(one.error_code == 0 for topic in reply.responses for one in topic.partitions)

    def is_done() -> bool:
        listed = m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=10_000)
        return not ask(cluster, 1, "ListPartitionReassignments", 0, listed).topics

    until(is_done, "the end of the reassignment", within=WITHIN_SECONDS)


def leads(cluster: Cluster, node: int, names: Sequence[str]) -> bool:
    r = m.MetadataRequest
    topics = [r.MetadataRequestTopic(name=name) for name in names]
    found = ask(cluster, 1 if node != 1 else 2, "Metadata", 12, r(topics=topics))
    return any(one.leader_id == node for topic in found.topics for one in topic.partitions)


def partitions(cluster: Cluster, topic: str) -> str:
    """How far the replicas of a topic are, a line for each partition."""
    if isinstance(cluster, KafkaCluster):
        return ""
    found = cluster.broker.lab.get("partitions", topic=topic)["partitions"]
    return "\n".join(map(str, found))


def happen(cluster: Cluster, step: str, names: Sequence[str], worked: Callable[[str], None]) -> None:
    """Lets a step happen. `worked` waits until all clients have worked after a part of a step."""
    what, _, number = step.partition(" ")
    if what == "elect":
        elect(cluster, names)
    elif what in ("shrink", "widen"):
        reassign(cluster, names, 2 if what == "shrink" else 3)
    elif what in ("lose", "keep"):
        assert isinstance(cluster, Nodes)
        cluster.broker.lab.delete("faults")
        if what == "lose":
            cluster.broker.lab.post("faults", {**LOST_REPLIES, "share": int(number) / 100})
    elif what == "move":
        assert isinstance(cluster, Nodes)
        for name in names:
            cluster.broker.lab.post(f"partitions/{name}/3/move")
    elif what == "bounce":  # with another one out of sync too few would be left
        cluster.happens("kill", int(number))
        cluster.happens("start", int(number))
    elif what == "roll":
        for node in NODES:
            cluster.happens("stop", node)
            cluster.happens("start", node)
            worked(f"the restart of node {node}")
    else:
        cluster.happens(what, int(number))


def run(cluster: Cluster, programs: Sequence[Program], history: Sequence[str] = HISTORY) -> None:
    """Goes through the history, and lets the programs end. Some find coordinators and leaders again much later, so that
    what they have done is looked at then.
    """
    go_through(cluster, programs, history)
    for one in programs:
        one.end_soon()
    for one in programs:
        one.end()
    for node in NODES:  # what coordinators know now they have read from their logs
        cluster.happens("stop", node)
        cluster.happens("start", node)


def go_through(cluster: Cluster, programs: Sequence[Program], history: Sequence[str]) -> None:
    """Lets the programs begin to work, and goes through a history. In each step every client has to produce on."""
    names = [one.name for one in programs]

    def worked(after: str, kinds: Sequence[str] = ("acked",)) -> None:
        before, since = [one.counts.copy() for one in programs], time.monotonic()
        for one, counts in zip(programs, before, strict=True):
            has_worked = partial(one.has_worked, counts, kinds)
            try:
                until(has_worked, f"{one.name} works after {after}", one.within_seconds, every=POLL_SECONDS)
            except AssertionError as error:
                done = "".join(f"{its.name} {its.counts - had}\n" for its, had in zip(programs, before, strict=True))
                error.add_note(f"{done}{one.tail()}\n{partitions(cluster, one.name)}")
                raise
        took = ", ".join(f"{one.name} {one.stall(since):.2f}" for one in programs)
        print(f"{after:24} {time.monotonic() - since:6.2f} s; longest wait for an acknowledgement: {took}", flush=True)

    worked("the start", ("acked", "read", "whole"))
    for step in history:
        if isinstance(cluster, KafkaCluster) and step.split()[0] in OURS_ALONE:
            continue
        happen(cluster, step, names, worked)
        if step.startswith(("pause", "cut")):
            node = int(step[-1])
            until(lambda node=node: not leads(cluster, node, names), "others lead", WITHIN_SECONDS)  # type: ignore[misc]
        worked(step)


# by hand


def command(name: str, folder: Path) -> tuple[list[str], Path]:
    """How a client's program is started, without its address, and where. It is built in `folder`."""
    here = Path(__file__).parent
    if name == "java":
        from ..oracle.kafka import program

        return program("broker", "HistoryClients", folder / "java"), ROOT
    if name in ("librdkafka", "aiokafka"):
        return [sys.executable, "-m", f"tests.clients.history_{name}"], ROOT
    if name == "kafkajs":
        directory = shutil.copytree(here / "node", folder / "node")
        install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(install, cwd=directory, check=True, capture_output=True, timeout=200)
        return ["node", "history.js"], directory
    subprocess.run(["go", "build", "-o", str(folder / "go"), "."], cwd=here / "go" / "history", check=True, timeout=300)
    return [str(folder / "go")], ROOT


def started(name: str, built: tuple[list[str], Path], cluster: Cluster) -> Program:
    parts, cwd = built
    more = [name] if name in ("franz", "sarama") else []
    return Program(name, [*parts, servers(cluster), *more], cwd)


def main(side: str, arguments: Sequence[str]) -> int:
    from .history_checks import check

    names = [one for one in arguments if "=" not in one]
    steps = [step for one in arguments if one.startswith("steps=") for step in one[6:].split(",")]
    wrong: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        built = {name: command(name, Path(folder)) for name in names}
        with Nodes(OURS) if side == "ottla" else KafkaCluster(SETTINGS) as cluster:
            prepare(cluster, names)
            programs = [started(name, built[name], cluster) for name in names]
            try:
                run(cluster, programs, steps or HISTORY)
                wrong = {one.name: found for one in programs if (found := check(servers(cluster), one))}
            finally:
                for one in programs:
                    one.kill()
                    lines = (f"{at:.3f} {' '.join(words)}\n" for at, words in one.lines)
                    Path(f"{side}-{one.name}.journal").write_text("".join(lines))
                    print(one.name, {kind: one.counts[kind] for kind in KINDS})
    for name, found in wrong.items():
        print(name, *found[:10], sep="\n  ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
