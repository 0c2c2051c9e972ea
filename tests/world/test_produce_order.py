"""Where a Produce answers for partitions that it refuses."""

from __future__ import annotations

from ottla.protocol import messages as m

from ..support.ask import batch
from ..support.topic_world import create
from ..support.world import World

GOOD = batch(b"v")
MANY = 300


def produced(world: World, *topics: tuple[str, list[tuple[int, bytes]]]) -> list[tuple[str, list[int]]]:
    """The partitions of the reply by topic, in its order."""
    r = m.ProduceRequest
    named = [
        r.TopicProduceData(
            name=name, partition_data=[r.PartitionProduceData(index=i, records=data) for i, data in parts]
        )
        for name, parts in topics
    ]
    reply = world.ask("Produce", 9, r(acks=1, timeout_ms=1000, topic_data=named))
    return [(topic.name, [part.index for part in topic.partition_responses]) for topic in reply.responses]


def test_partitions_that_do_not_exist_and_then_records_that_are_no_batch_come_last() -> None:
    w = World()
    create(w, "t", 2)
    assert produced(w, ("t", [(1, b""), (9, GOOD), (0, GOOD)])) == [("t", [0, 9, 1])]
    assert produced(w, ("absent", [(0, GOOD)]), ("t", [(0, GOOD)])) == [("t", [0]), ("absent", [0])]


def test_a_request_that_takes_several_steps_gets_each_topic_once() -> None:
    w = World()
    create(w, "t", MANY)
    create(w, "u", 1)
    found = produced(w, ("u", [(0, b"")]), ("t", [(i, b"" if i % 7 else GOOD) for i in range(MANY)]))
    assert sorted((name, sorted(parts)) for name, parts in found) == [("t", [*range(MANY)]), ("u", [0])]
