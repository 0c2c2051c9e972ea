"""Share consumers of others: Java and its tools, librdkafka, Go; and share groups under kills and
moves.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from ottla.testing import Broker

from ..oracle.kafka import program
from ..oracle.tools import tool
from ..support.ask import lab
from ..support.poll import until
from .conftest import Run

pytestmark = pytest.mark.slow
WITHIN = ("--timeout-ms", "60000")
SHORT_LOCKS: dict[str, object] = {"group.share.min.record.lock.duration.ms": 1000}


@pytest.fixture(scope="module")
def queues() -> Iterator[Broker]:
    with Broker(SHORT_LOCKS) as broker:
        yield broker


@pytest.fixture
def slow_queues(queues: Broker) -> Iterator[Broker]:
    """Their time hardly passes: no lock ends."""
    queues.clock.rate(0.05)
    yield queues
    queues.clock.system()


def queue(broker: Broker, count: int, partitions: int = 1, **configs: str) -> str:
    """A topic, and a group of its name that begins at its start."""
    name = f"q-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    entries = {"share.auto.offset.reset": "earliest"} | {k.replace("_", "."): v for k, v in configs.items()}
    changes = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in entries.items()]
    resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=changes)
    admin.incremental_alter_configs([resource])[resource].result()
    fill(broker, name, count, partitions)
    return name


def fill(broker: Broker, topic: str, count: int, partitions: int = 1) -> None:
    """Batches have ten records, however slowly they are made."""
    batches = {"batch.num.messages": 10, "linger.ms": 5000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, **batches})
    for n in range(count):
        producer.produce(topic, b"%d" % n, partition=n % partitions)
    assert producer.flush(60) == 0


def consumer(broker: Broker, name: str, explicit: bool = False) -> ShareConsumer:
    config: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, "group.id": name}
    made = ShareConsumer(config | ({"share.acknowledgement.mode": "explicit"} if explicit else {}))
    made.subscribe([name])
    return made


def poll_until(condition: Callable[[], bool], one: ShareConsumer, take: Callable[[Any], None]) -> None:
    def holds() -> bool:
        for message in one.poll(0.1):
            assert message.error() is None
            take(message)
        return condition()

    until(holds, "the consumer comes to this")


def test_librdkafka_accepts_what_it_polled(queues: Broker) -> None:
    name = queue(queues, 200, 2)
    seen: Counter[bytes] = Counter()
    with consumer(queues, name) as one:
        poll_until(lambda: len(seen) == 200, one, lambda message: seen.update([message.value()]))
        assert not [error for error in (one.commit_sync(60) or {}).values() if error is not None]
    with consumer(queues, name) as other:
        assert sum(len(other.poll(0.2)) for _ in range(5)) == 0
    assert set(seen.values()) == {1}


def test_librdkafka_acknowledges_one_by_one(queues: Broker) -> None:
    name = queue(queues, 50)
    seen: Counter[int] = Counter()
    with consumer(queues, name, explicit=True) as one:

        def take(message: Any) -> None:
            number = int(message.value())
            seen[number] += 1
            kind = AcknowledgeType.ACCEPT
            if number % 10 == 3 and seen[number] < 3:
                kind = AcknowledgeType.RELEASE
            elif number == 7:
                kind = AcknowledgeType.REJECT
            one.acknowledge(message, kind)

        def done() -> bool:
            one.commit_sync(60)
            return len(seen) == 50 and all(seen[number] == 3 for number in range(3, 50, 10))

        poll_until(done, one, take)
    assert {number for number, count in seen.items() if count > 1} == {3, 13, 23, 33, 43}
    assert seen[7] == 1


HOLDER = """
import sys
from confluent_kafka import ShareConsumer
one = ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2],
"share.acknowledgement.mode": "explicit"})
one.subscribe([sys.argv[2]])
while not (found := one.poll(0.2)):
    continue
print(len(found), flush=True)
sys.stdin.read()
"""


def test_a_consumer_that_is_killed_loses_what_it_held_at_once(slow_queues: Broker) -> None:
    """Its locks would run for half a minute, of which next to nothing passes; its connection ends with it."""
    name = queue(slow_queues, 10)
    command = [sys.executable, "-c", HOLDER, slow_queues.bootstrap_servers, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = int(holder.stdout.readline())
        assert held == 10
        holder.kill()
        counts: dict[bytes, int] = {}
        with consumer(slow_queues, name) as other:
            poll_until(
                lambda: len(counts) == 10,
                other,
                lambda message: counts.update({message.value(): message.delivery_count()}),
            )
    assert set(counts.values()) == {2}


def share(broker: Broker, name: str, count: int, trouble: Callable[[threading.Event], None], once: bool = True) -> None:
    """Three members take a queue's records until each has been accepted; nothing that was accepted without an error
    comes back (`once`).
    """
    accepted: Counter[int] = Counter()
    failures: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            with consumer(broker, name, explicit=True) as one:
                while not stop.is_set():
                    found = one.poll(0.1)
                    for message in found:
                        one.acknowledge(message)
                    if not found:
                        continue
                    result = one.commit_sync(60) or {}
                    refused = {(p.topic, p.partition) for p, error in result.items() if error is not None}
                    accepted.update(
                        int(message.value())
                        for message in found
                        if (message.topic(), message.partition()) not in refused
                    )
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    end = threading.Timer(200, stop.set)
    end.start()
    trouble(stop)
    while len(accepted) < count and not failures and not stop.wait(0.05):
        continue
    stop.set()
    end.cancel()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert len(accepted) == count, f"{count - len(accepted)} are missing"
    assert not once or max(accepted.values()) == 1


# a lock may end while the machine is busy, and a record whose locks have ended five times is not delivered again
TROUBLED = {"share_record_lock_duration_ms": "2000", "share_delivery_count_limit": "10"}


def test_a_broker_that_is_killed_under_load() -> None:
    with Broker(SHORT_LOCKS) as broker:
        name = queue(broker, 3000, 2, **TROUBLED)

        def kill(stop: threading.Event) -> None:
            for _ in range(3):
                stop.wait(0.7)
                broker.kill()
                broker.start()

        share(broker, name, 3000, kill)


@pytest.mark.parametrize("what", ["coordinators", "leaders"])
def test_what_moves_under_traffic(what: str) -> None:
    """A leader forgets who holds what when it moves: another member gets the same records, and if that one is the first
    to accept them, they are before the start offset, where acknowledgements are passed over without an error.
    """
    with Broker(SHORT_LOCKS) as broker:
        name = queue(broker, 3000, 2, **TROUBLED)
        moved: list[Any] = []
        topic = "__share_group_state" if what == "coordinators" else name

        def move(stop: threading.Event) -> None:
            for _ in range(20):
                stop.wait(0.1)
                moved.append(lab(broker, "/v1/reload", {"topic": topic}))

        share(broker, name, 3000, move, once=what == "coordinators")
        assert len(moved) > 5


def test_a_topic_that_is_compacted_under_a_live_group(queues: Broker) -> None:
    """What a member gave back is compacted away before it comes again: the others come, and nothing is left behind."""
    name = queue(queues, 0)
    admin = AdminClient({"bootstrap.servers": queues.bootstrap_servers})
    changes = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in changes.items()]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()
    producer = Producer({"bootstrap.servers": queues.bootstrap_servers, "log_level": 2})
    for n in range(6):
        producer.produce(name, b"%d" % n + b"x" * 600_000, key=b"same")
        producer.flush(60)
    seen: dict[int, int] = {}
    with consumer(queues, name, explicit=True) as one:

        def give_back(message: Any) -> None:
            seen[message.offset()] = message.delivery_count()
            one.acknowledge(message, AcknowledgeType.RELEASE)

        poll_until(lambda: len(seen) == 6, one, give_back)
        one.commit_sync(60)
        assert lab(queues, "/v1/compact", {})["begun"]
        while lab(queues, f"/v1/topics/{name}")["partitions"][0]["size_bytes"] > 6 * 600_000:
            continue
        accepted: set[int] = set()

        def accept(message: Any) -> None:
            accepted.add(message.offset())
            one.acknowledge(message)

        def lag() -> int:
            one.commit_sync(60)
            return int(lab(queues, f"/v1/share/{name}")["share_partitions"][0]["lag"])

        poll_until(lambda: 5 in accepted and lag() == 0, one, accept)
    assert len(accepted) < 6


def test_the_command_line_shows_a_share_group(queues: Broker) -> None:
    name = queue(queues, 10)

    def show(*arguments: str) -> str:
        command = [sys.executable, "-m", "ottla", "share", "--lab", queues.lab_url, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    with consumer(queues, name, explicit=True) as one:
        found: list[Any] = until(lambda: one.poll(0.2), "the consumer gets records")
        assert name in show()
        lines = show(name).splitlines()
        assert lines[0].startswith(
            f"{name}:0  active  start_offset=0  end_offset=9  high_watermark=10  lag=10  in_flight=10"
        )
        assert lines[2].split()[:4] == ["0", "9", "ACQUIRED", "1"]
        assert "acquired" in lines[-1]
        one_partition = json.loads(show(name, f"{name}:0", "--json"))
        assert one_partition["share_partitions"][0]["records"][0]["state"] == "ACQUIRED"
        assert "has not loaded other" in show(name, "other")
        for message in found:
            one.acknowledge(message)
    logs = [str(path) for path in queues.data_directory.glob("__share_group_state-*/*.log")]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "dump", "--json", *logs],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    mine = [entry for entry in entries if entry.get("key", {}).get("group_id") == name]
    assert mine[0]["type"] == "ShareSnapshot"
    assert mine[-1]["data"]["state_batches"] == [
        {"first_offset": 0, "last_offset": 9, "delivery_state": 2, "delivery_count": 1}
    ]


@pytest.mark.oracle
def test_kafkas_own_share_consumer(queues: Broker, tmp_path: Path) -> None:
    """Both modes of acknowledging and of acquiring, callbacks, renewing, poison, twenty members, administration, and
    topics that change.
    """
    command = program("tools", "ShareClients", tmp_path)
    done = subprocess.run(
        [*command, queues.bootstrap_servers], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


def _lag(described: str, name: str) -> int:
    (line,) = (line.split() for line in described.splitlines() if line.startswith(name))
    return int(line[-1])


@pytest.mark.oracle
def test_kafkas_tools_consume_from_share_groups(queues: Broker) -> None:
    name = queue(queues, 40)
    at = ["--bootstrap-server", queues.bootstrap_servers, "--topic", name]
    console = tool("consumer.ConsoleShareConsumer", *at, "--group", name, "--max-messages", "40", *WITHIN)
    assert sorted(console.stdout.split(), key=int) == [str(n) for n in range(40)]
    fill(queues, name, 10)
    given_back = tool(
        "consumer.ConsoleShareConsumer", *at, "--group", name, "--max-messages", "10", *WITHIN, "--release"
    )
    assert len(given_back.stdout.split()) == 10
    verifiable = tool(
        "VerifiableShareConsumer", *at, "--group-id", name, "--max-messages", "10", "--acknowledgement-mode", "sync"
    )
    events = [json.loads(line) for line in verifiable.stdout.splitlines() if line.startswith("{")]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 10
    assert sum(event["count"] for event in events if event["name"] == "offsets_acknowledged" and event["success"]) == 10
    fill(queues, name, 500)
    perf = tool("ShareConsumerPerformance", *at, "--group", name, "--num-records", "500", "--timeout", "60000")
    assert "500" in perf.stdout, perf.stderr


@pytest.mark.oracle
def test_kafkas_tools_for_share_groups(queues: Broker) -> None:
    at = ["--bootstrap-server", queues.bootstrap_servers]
    name = queue(queues, 550)
    seen: Counter[bytes] = Counter()
    with consumer(queues, name) as one:
        poll_until(lambda: len(seen) == 550, one, lambda message: seen.update([message.value()]))
        one.commit_sync(60)

    def groups(*arguments: str) -> str:
        done = tool("consumer.group.ShareGroupCommand", *at, *arguments)
        return done.stdout + done.stderr

    assert name in groups("--list")
    until(lambda: "Empty" in groups("--list", "--state"), "the group is empty")
    assert "Empty" in groups("--describe", "--group", name, "--state")
    assert name in groups("--describe", "--all-groups", "--offsets", "--verbose")
    assert "no active members" in groups("--describe", "--group", name, "--members").lower()
    for how, lag in (
        (["--to-earliest"], 550),
        (["--to-latest"], 0),
        (["--to-datetime", "2020-01-01T00:00:00.000"], 550),
    ):
        chosen = ["--all-topics"] if how == ["--to-latest"] else ["--topic", name]
        before = _lag(groups("--describe", "--group", name), name)
        assert name in groups("--reset-offsets", "--group", name, *chosen, *how, "--dry-run")
        assert _lag(groups("--describe", "--group", name), name) == before, "a dry run changes nothing"
        assert name in groups("--reset-offsets", "--group", name, *chosen, *how, "--execute")
        assert _lag(groups("--describe", "--group", name), name) == lag, how
    assert "Successful" in groups("--delete-offsets", "--group", name, "--topic", name)
    assert "successful" in groups("--delete", "--group", name)
    assert name not in groups("--list")
    assert name not in tool("GroupsCommand", *at, "--list", "--share").stdout


@pytest.mark.go
def test_franz_go_in_share_groups(queues: Broker, go_clients: Run) -> None:
    go_clients(queues.bootstrap_servers, "share", within=200)
