"""Topics of a broker in memory: made, opened in turns, written, read, and with a policy of the high watermark."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.watermark_policies import parse_policy
from ottla.protocol import messages as m

from .ask import fetch_message, values
from .world import World


def create(world: World, name: str, partitions: int = 1, timeout_ms: int = 10_000, **configs: str) -> int:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    topic.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    answer = world.ask("CreateTopics", 5, r(topics=[topic], timeout_ms=timeout_ms))
    code: int = answer.error_code if hasattr(answer, "error_code") else answer.topics[0].error_code
    return code


def produced(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def read(world: World, name: str, offset: int = 0) -> list[bytes | None]:
    return values(world.ask("Fetch", 11, fetch_message(name, offset)).responses[0].partitions[0].records)


def set_policy(world: World, topic: str, text: str) -> None:
    world.broker.policies.set(topic, None, parse_policy(text))
    world.broker.turn.event(world.broker.replicas.configure)


def opened(world: World, name: str = "many") -> int:
    return sum(1 for (of, _), p in world.broker.partitions.by_name.items() if of == name and p.log is not None)


def turns_take_a_millisecond(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.schedule, "soon", lambda call: world.schedule.later(1, call))
