"""Writes down what brokers of earlier releases, and their tools, keep in ZooKeeper, in `recorded/zookeeper.json`.

`python -m tests.oracle.record_zookeeper`, by hand; it takes two minutes. Ports and times are those of the run.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from kazoo.client import KazooClient

from ..support.poll import until
from ..support.sources import ROOT
from .jars import classpath
from .old_kafka import OldKafka

VERSIONS = ("0.8.2.2", "0.9.0.1", "0.10.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.4.1", "2.8.2", "3.9.1")
SETTLE_SECONDS = 1.0  # in which a controller does what a tool asks for
CONFIGS = ("cleanup.policy=delete", "segment.ms=99999", "segment.bytes=1000000", "max.message.bytes=5000", "flush.ms=7")


def tool(version: str, name: str, *arguments: str) -> None:
    """Runs a tool of the release; one that a release does not have, or that knows no ZooKeeper any more, fails."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", classpath(f"kafka-{version}"), f"kafka.admin.{name}"]
    subprocess.run([*command, *arguments], capture_output=True, timeout=60, check=False)
    time.sleep(SETTLE_SECONDS)


def tree(client: KazooClient, path: str = "/") -> dict[str, str | None]:
    data, _ = client.get(path)
    found = {path: data.decode() if data else None}
    for child in sorted(client.get_children(path)):
        if child != "zookeeper":
            found |= tree(client, f"{path.rstrip('/')}/{child}")
    return found


def record(version: str, rack: str | None) -> dict[str, Any]:
    settings: dict[str, object] = {"broker.id": 7, "offsets.topic.num.partitions": 2, "log.cleaner.enable": "false"}
    if rack is not None:
        settings["broker.rack"] = rack
    with OldKafka(version, settings) as kafka:
        client = KazooClient(kafka.zookeeper)
        client.start()
        until(lambda: client.exists("/brokers/ids/7") and client.exists("/controller"), "the broker is there")
        time.sleep(SETTLE_SECONDS)
        start = tree(client)
        at = ("--zookeeper", kafka.zookeeper)
        create = (*at, "--create", "--replication-factor", "1", "--topic")
        tool(version, "TopicCommand", *create, "orders", "--partitions", "2", "--config", "retention.ms=1000000")
        tool(version, "TopicCommand", *create, "many", "--partitions", "12")
        tool(version, "TopicCommand", *create, "two", "--partitions", "2", *(f"--config={one}" for one in CONFIGS))
        alter = (*at, "--alter", "--entity-type")
        for kind, name, values in (
            ("topics", "orders", "segment.ms=2000000"),
            ("clients", "c1", "producer_byte_rate=1000,consumer_byte_rate=2000"),
            ("users", "u 1", "producer_byte_rate=1000"),
        ):
            tool(version, "ConfigCommand", *alter, kind, "--entity-name", name, "--add-config", values)
        tool(version, "TopicCommand", *at, "--alter", "--topic", "orders", "--partitions", "3")
        written = {path: value for path, value in tree(client).items() if value}
        client.stop()
    return {"start": [path for path in start if path != "/"], "nodes": written}


def main() -> None:
    found: dict[str, Any] = {}
    for version in VERSIONS:
        found[version] = record(version, None)
        found[version]["with_rack"] = record(version, "r1")["nodes"]["/brokers/ids/7"]
        print(version, flush=True)
    (ROOT / "tests/oracle/recorded/zookeeper.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
