"""What a Fetch waits for."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.topic_world import create
from ..support.world import World

WAIT_MS = 500


def fetch(*places: tuple[str, int]) -> m.FetchRequest:
    r = m.FetchRequest
    topics = [
        r.FetchTopic(topic=n, partitions=[r.FetchPartition(partition=p, partition_max_bytes=99)]) for n, p in places
    ]
    return r(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1000, topics=topics)


@pytest.mark.parametrize("absent", [("absent", 0), ("t", 9)])
def test_a_fetch_waits_for_partitions_beside_one_that_does_not_exist(absent: tuple[str, int]) -> None:
    w = World()
    create(w, "t", 1)
    waiting = w.send("Fetch", 12, fetch(absent, ("t", 0)))
    alone = w.send("Fetch", 12, fetch(absent))
    assert alone.done, "there is nothing to wait for"
    assert not waiting.done
    w.ask("Produce", 9, produce_message("t", batch(b"v"), 0))
    assert waiting.done
    codes = [part.error_code for topic in waiting.reply.responses for part in topic.partitions]
    assert codes == [0, Errors.UNKNOWN_TOPIC_OR_PARTITION]
