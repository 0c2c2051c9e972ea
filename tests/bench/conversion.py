"""Record batches that are fetched as message sets (Fetch 2), and message sets that become record batches (Produce 2):
ottla as 1.1, and Kafka 1.1.1 with a ZooKeeper, beside each other. `make bench ARGS=conversion`.

The client does next to nothing: it knows the lengths of all messages, and so where a reply ends. Beside other work the
tenth part of the requests that was served fastest says most.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate

from ottla.broker.apis import apis
from ottla.broker.emulation.apis import emulated
from ottla.broker.emulation.releases import releases
from ottla.protocol import legacy, records
from ottla.protocol.legacy import Message
from ottla.protocol.records import Record

from ottla.testing import Broker

from ..oracle.old_kafka import OldKafka
from ..support.ask import fetch_message, produce_message
from ..support.fuzz_earlier import make_topic
from ..support.wire import Wire
from .servers import Figures, quantile

RELEASE, VERSION = "1.1", "1.1.1"
BATCH_BYTES = 16 << 10
MESSAGE_BYTES = 34  # of a message of version 1 without key and value
ROUNDS = 3  # over the whole topic, after one that is not counted
LENGTHS = {"100 B": (100, 100), "50 to 150 B": (50, 150), "1 KB": (1024, 1024), "500 to 1500 B": (500, 1500)}
NUMBERS = {"100 B": 200_000, "50 to 150 B": 200_000, "1 KB": 40_000, "500 to 1500 B": 40_000}


@contextmanager
def running(side: str) -> Iterator[str]:
    """A broker of one side; gives its address."""
    if side == "ottla":
        with Broker({"ottla.emulate": RELEASE}, lab=False) as broker:
            yield broker.bootstrap_servers
    else:
        with OldKafka(VERSION, quick=False) as kafka:
            yield kafka.bootstrap_servers


def values_of(kind: str) -> list[bytes]:
    chance, (low, high) = random.Random(1), LENGTHS[kind]
    return [chance.randbytes(chance.randint(low, high)) for _ in range(NUMBERS[kind])]


def in_batches(values: list[bytes]) -> Iterator[list[bytes]]:
    some, size = list[bytes](), 0
    for value in values:
        if size + len(value) > BATCH_BYTES:
            yield some
            some, size = [], 0
        some.append(value)
        size += len(value)
    yield some


def produce(wire: Wire, name: str, version: int, sets: list[bytes]) -> list[float]:
    """Produces all sets, one after the other; returns the seconds that each takes."""
    seconds = []
    for data in sets:
        began = time.perf_counter()
        (topic,) = wire.ask("Produce", version, produce_message(name, data, acks=1)).responses
        seconds.append(time.perf_counter() - began)
        assert not topic.partition_responses[0].error_code, topic
    return seconds


def fetch(wire: Wire, name: str, ends: list[int]) -> list[float]:
    """Fetches a whole topic; returns the seconds that each reply takes. `ends`: where each message ends, counted from
    the first one.
    """
    seconds, offset = list[float](), 0
    while offset < len(ends):
        began = time.perf_counter()
        (topic,) = wire.ask("Fetch", 2, fetch_message(name, offset, max_bytes=1 << 20)).responses
        seconds.append(time.perf_counter() - began)
        data = topic.partitions[0].records
        start = ends[offset - 1] if offset else 0
        assert not topic.partitions[0].error_code, topic.partitions[0]
        assert int.from_bytes(bytes(data[:8]), "big") == offset
        offset = bisect_right(ends, start + len(data))
    return seconds


def measure(side: str) -> Figures:
    """Both ways: MB of values in a second, and milliseconds of a request (1 MiB that is fetched, a set of 16 KiB)."""
    figures, served = Figures(), emulated(releases()[RELEASE], apis())
    with running(side) as address, Wire(address) as wire:
        for number, kind in enumerate(LENGTHS):
            values = values_of(kind)
            megabytes = sum(map(len, values)) / 1e6
            ends = list(accumulate(MESSAGE_BYTES + len(value) for value in values))
            name, now = f"conversion-{number}", int(time.time() * 1000)
            batches = [bytes(records.encode([Record(None, v, now) for v in some])) for some in in_batches(values)]
            sets = [
                legacy.encode([Message(i, None, v, 1, now) for i, v in enumerate(some)]) for some in in_batches(values)
            ]
            make_topic(wire, served, name)
            make_topic(wire, served, f"{name}-up")
            produce(wire, name, 5, batches)
            rounds = [fetch(wire, name, ends) for _ in range(ROUNDS + 1)][1:]
            produced = produce(wire, f"{name}-up", 2, sets)
            replies = [one for some in rounds for one in some]
            figures[f"fetched down, {kind}, MB/s"] = megabytes / min(map(sum, rounds))
            figures[f"fetched down, {kind}, a reply, p10 ms"] = quantile(replies, 0.1) * 1e3
            figures[f"produced up, {kind}, MB/s"] = megabytes / sum(produced)
            figures[f"produced up, {kind}, a request, p10 ms"] = quantile(produced, 0.1) * 1e3
    return figures


SECTIONS: dict[str, Callable[[str], Figures]] = {"conversion": measure}
