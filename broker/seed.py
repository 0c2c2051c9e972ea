"""Seeding: topics and records that a YAML file names are there when the broker is.

    topics:
      - name: orders
        partitions: 3
        configs: {cleanup.policy: compact}
        records:
          - {key: a, value: "1", partition: 0, headers: {source: seed}}

A topic that exists is left as it is, records and all.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from ..coordinator.metadata import topics
from ..protocol import messages, records
from ..protocol.records import Record
from .broker import Broker
from .later import Later

logger = logging.getLogger("ottla")


class SeedError(ValueError):
    """A seed file that cannot be planted."""


async def _settled(later: Later[Any]) -> Any:
    done = asyncio.Event()
    later.when_done(lambda _: done.set())
    await done.wait()
    return later.get()


def load(path: str) -> list[dict[str, Any]]:
    """The topics of a seed file. SeedError."""
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
        wanted = found["topics"]
        assert all(isinstance(topic["name"], str) for topic in wanted)
    except (OSError, yaml.YAMLError, KeyError, TypeError, AssertionError) as error:
        raise SeedError(f"{path}: not a seed file: {error}") from None
    topics_found: list[dict[str, Any]] = wanted
    return topics_found


async def plant(broker: Broker, path: str) -> None:
    """Creates the topics of a seed file that are not there, and writes their records."""
    for topic in load(path):
        if topic["name"] in broker.image.topics:
            continue
        await _create(broker, topic)
        for index, batch in _batches(topic).items():
            partition = broker.partition(topic["name"], index)
            data = records.encode(batch)
            partition.append(data, list(records.batches(data)), broker.schedule.now_ms())
            broker.event(lambda partition=partition: broker.note_append(partition))  # type: ignore[misc]


async def _create(broker: Broker, topic: dict[str, Any]) -> None:
    r = messages.CreateTopicsRequest
    wanted = r.CreatableTopic(name=topic["name"], num_partitions=topic.get("partitions", -1), replication_factor=-1)
    wanted.configs = [r.CreatableTopicConfig(name=k, value=str(v)) for k, v in (topic.get("configs") or {}).items()]
    later = broker.metadata.submit(lambda: topics.create_topics(broker.metadata.controller, r(topics=[wanted])))
    broker.settle()
    for _, error, *_ in await _settled(later):
        if error is not None:
            raise SeedError(f"topic {topic['name']}: {error}")


def _batches(topic: dict[str, Any]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for one in topic.get("records") or ():
        record = Record(_bytes(one.get("key")), _bytes(one.get("value")), int(one.get("timestamp", 0)))
        record.headers = [(name, _bytes(value)) for name, value in (one.get("headers") or {}).items()]
        found.setdefault(int(one.get("partition", 0)), []).append(record)
    return found


def _bytes(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()
