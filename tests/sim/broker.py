"""A whole broker under power failures: metadata log, snapshots, checkpoints and segments on files that forget what was
not synced.

    python -m tests.sim broker [seeds=20000] [seed=N]

What was acknowledged of the metadata is there again, and so is what was flushed of the records, whole, once and in
order. Of a request about hundreds of topics there is everything or nothing, wherever the power fails.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message, values
from ..support.world import World, told_with

LIVES = 3
CROWD = 300  # topics of one request
CROWD_EVERY = 50  # histories: the lives of one of them end in the middle of such a request


def run(seed: int) -> None:
    """One history of several lives. AssertionError with the seed."""
    with told_with(seed):
        _run(random.Random(seed), seed)


def _run(chance: random.Random, seed: int) -> None:
    files = None
    topics: dict[str, bytes] = {}
    gone: set[str] = set()
    durable: dict[str, list[bytes]] = {}
    crowd = _Crowd()
    for life in range(LIVES):
        snapshot_every = chance.choice(("400", "2000", "20971520"))
        world = World(files, seed * 10 + life, metadata_log_max_record_bytes_between_snapshots=snapshot_every)
        image = world.broker.image
        assert set(topics) <= set(image.topics), f"topics {set(topics) - set(image.topics)} are gone"
        assert not gone & set(image.topics), f"{gone & set(image.topics)} are back"
        crowd.check(world)
        world.pass_ms(10)  # what was recovered is made durable, and then shown
        for name, rows in durable.items():
            assert image.topics[name].id == topics[name]
            assert read(world, name)[: len(rows)] == rows, f"records of {name}"
        for n in range(chance.randint(1, 4)):
            _make_topic(world, chance, f"t{life}-{n}", topics, durable)
        if durable and chance.random() < 0.3:
            name = chance.choice(sorted(durable))
            d = m.DeleteTopicsRequest
            assert world.ask("DeleteTopics", 5, d(topic_names=[name], timeout_ms=10_000)).responses[0].error_code == 0
            gone.add(name)
            del topics[name], durable[name]
        for name in chance.sample(sorted(durable), min(2, len(durable))):
            _produce(world, chance, name, durable[name])
        if chance.random() < 0.3:
            world.broker.replicas.save_checkpoints()
        if chance.random() < 0.2:
            world.pass_ms(chance.randint(1, 70_000))
        if chance.random() < 0.2:
            world.broker.stop()
        elif seed % CROWD_EVERY == 0:
            crowd.cut_short(world, chance)
        files = world.lose_power()


class _Crowd:
    """Topics that one request creates, or one request deletes."""

    def __init__(self) -> None:
        self.names = {f"crowd-{n}" for n in range(CROWD)}
        self.allowed = {0}  # how many of them there may be

    def cut_short(self, world: World, chance: random.Random) -> None:
        """Creates or deletes all of them. The power fails soon, perhaps before the answer."""
        there = len(self._present(world))
        # the last thing that this broker does: each turn of the loop takes a millisecond
        world.schedule.soon = partial(world.schedule.later, 1)  # type: ignore[method-assign]
        if there:
            d = m.DeleteTopicsRequest
            answer = world.send("DeleteTopics", 5, d(topic_names=sorted(self.names), timeout_ms=10_000))
        else:
            r = m.CreateTopicsRequest
            wanted = [
                r.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in sorted(self.names)
            ]
            answer = world.send("CreateTopics", 5, r(topics=wanted, timeout_ms=10_000))
        self.allowed = {there, CROWD - there}
        for _ in range(chance.randrange(25)):
            world.pass_ms(1)
            assert len(self._present(world)) in self.allowed, "half of a request is seen"
        if answer.done:
            self.allowed = {CROWD - there}

    def _present(self, world: World) -> set[str]:
        return self.names & set(world.broker.image.topics)

    def check(self, world: World) -> None:
        """After a start."""
        found = len(self._present(world))
        assert found in self.allowed, f"{found} topics of {CROWD} are left of one request"
        self.allowed = {found}


def _make_topic(
    world: World, chance: random.Random, name: str, topics: dict[str, bytes], durable: dict[str, list[bytes]]
) -> None:
    configs = {
        "flush_messages": "1",
        "segment_bytes": chance.choice(("1048576", "1073741824")),
        "index_interval_bytes": "10",
    }
    r = m.CreateTopicsRequest
    wanted = r.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    wanted.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
    assert world.ask("CreateTopics", 5, r(topics=[wanted], timeout_ms=10_000)).topics[0].error_code == 0
    topics[name] = world.broker.image.topics[name].id
    durable[name] = []
    _produce(world, chance, name, durable[name])


def _produce(world: World, chance: random.Random, name: str, rows: list[bytes]) -> None:
    for _ in range(chance.randint(0, 5)):
        value = chance.randbytes(chance.choice((10, 10, 300)))
        answer = world.ask("Produce", 9, produce_message(name, batch(value)))
        assert answer.responses[0].partition_responses[0].error_code == 0
        rows.append(value)


def read(world: World, name: str) -> list[Any]:
    return values(world.ask("Fetch", 11, fetch_message(name, 0)).responses[0].partitions[0].records)
