"""What the programs beside the broker take for an exchange: `make bench ARGS=programs`.

A world of clients is recorded once; then each program works on the blocks again and again, in this process. The figure
is the processor time of the best round, which depends least on what else the machine does.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from ottla.broker.lab.traces import recording, writer
from ottla.broker.lab.traces.feeding import Feed
from ottla.broker.lab.traces.stream import SIZE
from ottla.broker.lab.verdict import examining
from ottla.protocol import messages as m

from ..support import machine
from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create
from .servers import Figures

ROUNDS, TIMES = 31, 400


def recorded() -> list[bytes]:
    """The blocks that a recorder makes of producers, consumers and members that do the usual."""
    world = ConnectedWorld()
    create(world, "orders", 1)
    taken: list[bytes] = []

    lab, give = LabWorld(world), machine.VirtualProgram.take

    def take(program: machine.VirtualProgram, data: memoryview) -> int:
        taken.append(bytes(data))
        return give(program, data)

    with mock.patch.object(machine.VirtualProgram, "take", take):
        exchange(lab, world)
    return [one for one in taken[1::2] if not one.startswith(examining.QUESTION)]  # each follows its size


def exchange(lab: LabWorld, world: ConnectedWorld) -> None:
    lab.ask("POST /v1/verdict")
    client = world.connect()
    client.ask("ApiVersions", 4, m.ApiVersionsRequest(client_software_name="scripted", client_software_version="1.0"))
    client.ask("Metadata", 12, m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")]))
    client.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    r = m.OffsetCommitRequest
    for number in range(TIMES):
        data = batch(b"value", producer_id=5, producer_epoch=0, base_sequence=number)
        client.ask("Produce", 9, produce_message("orders", data))
        client.ask("Fetch", 12, fetch_message("orders", number, wait_ms=0))
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        topic = r.OffsetCommitRequestTopic(name="orders", partitions=[part])
        client.ask("OffsetCommit", 8, r(group_id="g", topics=[topic]))
    lab.ask("GET /v1/verdict")


def best_us(work: Callable[[], object], exchanges: int) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds) / exchanges * 1e6


def programs(side: str) -> Figures:
    """Microseconds of a processor for an exchange, with both of its lines or events."""
    if side != "ottla":
        return {}
    gc.set_threshold(*examining.COLLECTED_AFTER)
    blocks = recorded()
    requests = [one for block in blocks for one in recording.records(block) if one[0] == recording.REQUEST]

    with tempfile.TemporaryDirectory() as directory:

        def written() -> None:
            path = Path(directory) / "t.jsonl"
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            one = writer.begin([str(path), str(descriptor), str(1 << 30), "1", json.dumps({"raw": "none"})], len)
            for block in blocks:
                one.take(block)
            one.end()

        def examined() -> None:
            one = examining.begin([""], len)
            for block in blocks:
                one.take(block)

        def kept() -> None:
            feed = Feed(examining.begin([""], len))
            feed.puts_off = True
            for one in blocks:
                feed.feed(SIZE.pack(len(one)) + one)

        return {
            "that keeps what comes while much does, us for an exchange": best_us(kept, len(requests)),
            "that writes a trace, us for an exchange": best_us(written, len(requests)),
            "that examines clients, us for an exchange": best_us(examined, len(requests)),
        }


SECTIONS = {"programs": programs}
