"""A broker that has nothing to do does as much with many partitions as with few."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ottla.broker.net.idle import IdleConnections
from ottla.protocol import messages as m

from ..support.ask import batch, produce_message
from ..support.connected import ConnectedWorld
from ..support.failing_files import FailingFiles
from ..support.topic_world import create, produced
from ..support.world import World

IDLE_MS = 50_000  # between two rounds of checkpoints, and before the first of retention


def calls_during(work: Callable[[], object]) -> int:
    """Returns how many functions are called."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_idle_connections_are_closed_within_a_second() -> None:
    world = ConnectedWorld()
    IdleConnections(world.broker.turn, world.connections, 600_000)
    idle, busy = world.connect(), world.connect()
    assert busy.send("ApiVersions", 0, m.ApiVersionsRequest()) in busy.ids
    world.pass_ms(300_000)
    busy.send("ApiVersions", 0, m.ApiVersionsRequest())
    world.pass_ms(300_000)
    assert (idle.closed, busy.closed) == (False, False)
    world.pass_ms(1001)
    assert (idle.closed, busy.closed) == (True, False)
    world.pass_ms(300_000)
    assert busy.closed


def idle_calls(partitions: int) -> int:
    world = World()
    assert create(world, "t", partitions) == 0
    for index in range(partitions):
        assert produced(world.ask("Produce", 9, produce_message("t", batch(b"x"), index))).error_code == 0
    world.pass_ms(65_000)
    return calls_during(lambda: world.pass_ms(IDLE_MS))


def test_what_an_idle_broker_does_does_not_depend_on_its_partitions() -> None:
    few, many = idle_calls(2), idle_calls(100)
    assert many < few + 98 / 2


def test_a_flush_is_due_in_logs_alone_that_have_something_to_flush() -> None:
    files = FailingFiles()
    world = World(files)
    for name in ("t", "u"):
        assert create(world, name, flush_ms="5000") == 0
    assert create(world, "v") == 0
    for name in ("t", "v"):
        assert produced(world.ask("Produce", 9, produce_message(name, batch(b"x")))).error_code == 0
    files.synced.clear()
    world.pass_ms(7000)
    assert "/data/t-0/00000000000000000000.log" in files.synced
    assert not [path for path in files.synced if path.startswith(("/data/u-0", "/data/v-0"))]
    assert not world.broker.replicas.flusher._ageing
