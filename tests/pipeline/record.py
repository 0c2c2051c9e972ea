"""Makes again the data directories of Apache Kafka 4.4.0 that the tests of the pipeline read: `python -m
tests.pipeline.record`.

`kafka.tar.xz` holds `story`, after the story and an end in order, and `before` and `after`: compacted topics as they
were written, and as Kafka's own cleaner left them. `truth.json` is what was true when the story ended, what clients
read of the compacted topics at both times, and when the cleaner came.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ..oracle.kafka import Kafka, tool
from ..support.poll import until
from . import story

HERE = Path(__file__).parent / "data"
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "6000",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "86400000",
}
TOPICS = ("compacted", "young")
LAG_MS = 3_600_000
CLEANED_WITHIN_S = 60


def compacted(directory: Path) -> dict[str, Any]:
    """Topics with keys that repeat; copied before they are cleaned and after. Returns the truth about them."""
    small = {
        "log.cleaner.enable": "false",
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    }
    kafka = Kafka(small)
    with kafka:
        write_compacted(kafka.bootstrap_servers)
        write_young(kafka.bootstrap_servers)
        kafka.stop()
        _copy(kafka.data_directory, directory / "before")
        kafka.settings = {**small, "log.cleaner.enable": "true", "log.cleaner.backoff.ms": 200}
        kafka.start()

        def is_cleaned() -> bool:
            cleaned = {line.rpartition(" ")[0] for line in _checkpoint(kafka.data_directory)}
            return {f"{topic} 0" for topic in TOPICS} <= cleaned

        until(is_cleaned, "the cleaner cleans every topic", within=CLEANED_WITHIN_S, every=0.2)
        cleaned_at_ms = int(time.time() * 1000)
        time.sleep(1)
        kafka.stop()
        _copy(kafka.data_directory, directory / "after")
    return {
        "cleaned_at_ms": cleaned_at_ms,
        "records": {name: read(directory / name, small) for name in ("before", "after")},
    }


def read(directory: Path, settings: dict[str, object]) -> dict[str, list[list[Any]]]:
    """What clients read of TOPICS in a directory; of a copy, as brokers and readers leave traces in it."""
    with tempfile.TemporaryDirectory() as copied:
        _copy(directory, Path(copied, "data"))
        with Kafka(settings, Path(copied), formatted=True) as kafka:
            return {topic: story.consumed(kafka.bootstrap_servers, topic, 1) for topic in TOPICS}


def write_compacted(servers: str) -> None:
    """With tombstones, and transactions some of which were aborted."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("compacted", 1, 1, config=COMPACTED)])["compacted"].result()
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "writer", "batch.num.messages": 20})
    producer.init_transactions(30)
    for round_ in range(12):
        producer.begin_transaction()
        for n in range(40):
            value = None if (n + round_) % 9 == 0 else f"{round_}-{n}" * 20
            producer.produce("compacted", value, f"key {(n * 7 + round_) % 100}")
        producer.flush(60)
        (producer.abort_transaction if round_ % 4 == 3 else producer.commit_transaction)(30)


def write_young(servers: str) -> None:
    """Every second part is older than what the cleaner waits for; it stops at the first one that is younger."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = NewTopic("young", 1, 1, config={**COMPACTED, "min.compaction.lag.ms": str(LAG_MS)})
    admin.create_topics([wanted])["young"].result()
    producer, now_ms = Producer({"bootstrap.servers": servers, "batch.num.messages": 20}), int(time.time() * 1000)
    for part in range(6):
        age_ms = 0 if part in (3, 5) else 3 * LAG_MS
        for n in range(60):
            producer.produce("young", f"{part}-{n}" * 20, f"{n % 20}", timestamp=now_ms - age_ms + n)
        assert producer.flush(60) == 0


def _checkpoint(directory: Path) -> list[str]:
    path = directory / "cleaner-offset-checkpoint"
    return path.read_text().splitlines() if path.exists() else []


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lock"))


def describe(servers: str) -> list[list[str]]:
    """What `kafka-consumer-groups --describe` says of each partition: group, topic, partition, current offset, log end
    and lag.
    """
    said = tool(
        "consumer.group.ConsumerGroupCommand", "--bootstrap-server", servers, "--describe", "--all-groups"
    ).stdout
    lines = [line.split()[:6] for line in said.splitlines()]
    return sorted(line for line in lines if len(line) == 6 and line[0] in story.GROUPS)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        truth: dict[str, Any] = {}
        with Kafka(story.SETTINGS) as kafka:
            truth = story.tell(kafka.bootstrap_servers)
            truth["described"] = describe(kafka.bootstrap_servers)
            kafka.stop()
            _copy(kafka.data_directory, directory / "story")
        truth["compacted"] = compacted(directory)
        HERE.mkdir(exist_ok=True)
        (directory / "truth.json").write_text(json.dumps(truth))
        with tarfile.open(HERE / "kafka.tar.xz", "w:xz") as archive:
            for one in sorted(directory.iterdir()):
                archive.add(one, one.name)
    print(f"{(HERE / 'kafka.tar.xz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
