"""Fetches of megabytes, whose records the kernel moves from their file to the socket: each client gets the bytes of the
log, also where it reads slowly, beside others, or goes away.
"""

from __future__ import annotations

import random
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, produce
from ..support.wire import Wire, request_frame

SIZES = {0: (400_000, 24), 1: (20, 1), 2: (90_000, 30), 3: (33_000, 3)}  # of the batches of a partition, and how many
VERSIONS = (4, 11, 12)
SECONDS_MAX = 20.0  # for a reply


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("data")
    with Broker({"message.max.bytes": 2_000_000}, directory=directory) as started:
        chance = random.Random(7)
        with Wire(started.bootstrap_servers) as wire:
            create(wire, "t", len(SIZES))
            for partition, (size, count) in SIZES.items():
                for _ in range(count):
                    produce(wire, "t", chance.randbytes(size), partition=partition)
        yield started


Mark = tuple[int, int]
"""The length and the checksum of some megabytes."""


def mark(data: bytes) -> Mark:
    return len(data), zlib.crc32(data)


@pytest.fixture(scope="module")
def logs(broker: Broker) -> dict[int, Mark]:
    assert broker.directory is not None
    root = Path(broker.directory)
    return {one: mark((next(root.rglob(f"t-{one}")) / f"{0:020}.log").read_bytes()) for one in SIZES}


def fetching(version: int, *partitions: int) -> m.FetchRequest:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=one, fetch_offset=0, partition_max_bytes=50 << 20) for one in partitions]
    return r(max_wait_ms=0, max_bytes=50 << 20, session_epoch=-1, topics=[r.FetchTopic(topic="t", partitions=parts)])


def records_of(reply: Any) -> dict[int, Mark]:
    return {one.partition_index: mark(bytes(one.records)) for one in reply.responses[0].partitions}


def fast(broker: Broker) -> Wire:
    return Wire(broker.bootstrap_servers, SECONDS_MAX)


def slow(broker: Broker) -> Wire:
    """A connection whose socket takes little at once."""
    wire = fast(broker)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    return wire


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_gets_the_bytes_of_the_log(broker: Broker, logs: dict[int, Mark], version: int) -> None:
    with fast(broker) as wire:
        for wanted in ([0], [1], [0, 1, 2, 3], [3, 2, 1, 0]):
            found = records_of(wire.ask("Fetch", version, fetching(version, *wanted)))
            assert found == {partition: logs[partition] for partition in wanted}


def test_slow_clients_beside_a_fast_one_get_what_each_asked_for(broker: Broker, logs: dict[int, Mark]) -> None:
    with slow(broker) as first, slow(broker) as second, fast(broker) as third:
        first.say("Fetch", 12, fetching(12, 0))
        second.say("Fetch", 12, fetching(12, 2, 3))
        for _ in range(3):
            assert records_of(third.ask("Fetch", 12, fetching(12, 3, 0))) == {3: logs[3], 0: logs[0]}
        assert records_of(second.reply("Fetch", 12)) == {2: logs[2], 3: logs[3]}
        assert records_of(first.reply("Fetch", 12)) == {0: logs[0]}


@pytest.mark.parametrize("connect", [slow, fast])
def test_requests_that_come_together_are_answered_in_their_order(
    broker: Broker, logs: dict[int, Mark], connect: Callable[[Broker], Wire]
) -> None:
    names = request_frame("Metadata", 12, m.MetadataRequest(topics=[]))
    with connect(broker) as wire:
        wire.send(b"".join(names + request_frame("Fetch", 12, fetching(12, one)) for one in SIZES) + names)
        for one in SIZES:
            wire.reply("Metadata", 12)
            assert records_of(wire.reply("Fetch", 12)) == {one: logs[one]}
        wire.reply("Metadata", 12)


@pytest.mark.long
def test_clients_that_go_away_meanwhile_leave_nothing_to_others(broker: Broker, logs: dict[int, Mark]) -> None:
    for _ in range(5):
        with slow(broker) as leaving:
            leaving.say("Fetch", 12, fetching(12, 0, 2))
            leaving.read(100_000)
        with fast(broker) as wire:
            assert records_of(wire.ask("Fetch", 12, fetching(12, 2))) == {2: logs[2]}
