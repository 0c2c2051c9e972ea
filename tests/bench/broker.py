"""ottla and Apache Kafka side by side: medians of interleaved runs, the spread, and the ratio. `make bench
ARGS="produce latency commits"`, `ARGS="latency sides=ottla,compiled,kafka,kfake"`.

What a machine does not have is left out (`sides.py`).
Loads are made by librdkafka (confluent-kafka) and by raw sockets on this machine.
"""

from __future__ import annotations

import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
from ottla.protocol import codec, records
from ottla.protocol import messages as m

from ..oracle.kafka import Kafka
from ..support.wire import Wire, request_frame
from .servers import (
    RECORD_1K,
    RECORD_100,
    Figures,
    fetch_request,
    go,
    perf_tool,
    produce_request,
    quantile,
    topic,
    warm_memory,
)
from .sides import Server, dispose, fresh, missing

RUNS = 5


# single figures


def start(side: str) -> Figures:
    """From exec to the first replies, and memory when idle."""
    server = fresh(side)
    if isinstance(server, Kafka):  # formatting is not counted: ottla formats while it starts
        server.start()
        server.stop()
        shutil.rmtree(server.data_directory)
        server.formatted = False
    began = time.perf_counter()
    server.start()
    if isinstance(server, Kafka):
        began = time.perf_counter() - server.start_seconds
    with Wire(server.bootstrap_servers) as wire:
        wire.ask("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="b", client_software_version="1"))
        first = time.perf_counter() - began
        create = m.CreateTopicsRequest.CreatableTopic(name="first", num_partitions=1, replication_factor=1)
        wire.ask("CreateTopics", 5, m.CreateTopicsRequest(topics=[create], timeout_ms=10_000))
        frame = produce_request("first", [b"x"])
        while True:
            wire.send(frame)
            answer = wire.reply("Produce", 9).responses[0].partition_responses[0]
            if answer.error_code == 0:
                break
        produced = time.perf_counter() - began
    rss = psutil.Process(server.pid).memory_info().rss / 1e6
    dispose(server)
    return {"to ApiVersions, s": first, "to Produce, s": produced, "idle memory, MB": rss}


def produce(side: str) -> Figures:
    """Throughput of one connection, one partition, acks=all, idempotent."""
    server = fresh(side)
    server.start()
    warm_memory()
    topic(server, "big")
    topic(server, "small")
    found: Figures = {}
    common = ["--bootstrap-server", server.bootstrap_servers]
    with_props = ["acks=all", "enable.idempotence=true", "linger.ms=5", "batch.size=1000000", "buffer.memory=134217728"]
    for name, count, size, batch in (("big", 600_000, 1024, "1000000"), ("small", 1_500_000, 100, "16384")):
        with_props[3] = f"batch.size={batch}"
        out = perf_tool(
            server, "ProducerPerformance", *common, "--topic", name, "--num-records", str(count), "--record-size",
            str(size),
            "--throughput", "-1", "--command-property", *with_props,
        )  # fmt: skip
        rate = float(out.strip().splitlines()[-1].split("(")[1].split(" MB")[0]) * 1.048576
        found[f"produce {size} B, MB/s"] = rate
        consumed = perf_tool(
            server,
            "ConsumerPerformance",
            *common,
            "--topic",
            name,
            "--num-records",
            str(count),
            "--hide-header",
            "--timeout",
            "60000",
        )
        row = consumed.strip().splitlines()[-1].split(", ")
        found[f"consume {size} B, MB/s"] = float(row[-2]) * 1.048576 if len(row) > 8 else float("nan")
    found["memory after, MB"] = psutil.Process(server.pid).memory_info().rss / 1e6
    dispose(server)
    return found


def raw(side: str) -> Figures:
    """Throughput of a client that costs nothing: prepared 1 MB requests, five in flight, then fetches of 1 MB."""
    server = fresh(side)
    server.start()
    warm_memory()
    topic(server, "raw")
    frame = produce_request("raw", [RECORD_1K] * 900)
    small = produce_request("raw", [RECORD_100] * 140)
    found: Figures = {}
    for name, one, count, size in (("1 KB", frame, 1200, 900 * 1024), ("100 B in 16 KiB", small, 12_000, 140 * 100)):
        with Wire(server.bootstrap_servers) as wire:
            for _ in range(50):
                wire.send(one)
                wire.read_frame()
            began = time.perf_counter()
            flying = 0
            for _ in range(count):
                wire.send(one)
                flying += 1
                if flying == 5:
                    wire.read_frame()
                    flying -= 1
            for _ in range(flying):
                wire.read_frame()
            found[f"raw produce {name}, MB/s"] = count * size / 1e6 / (time.perf_counter() - began)
        if name == "1 KB":
            _raw_consume(server, 1000)  # the first time, code is compiled, and modules imported after a start
            found["raw consume 1 KB, MB/s"] = _raw_consume(server, 1000)
    dispose(server)
    return found


def _raw_consume(server: Server, batches: int) -> float:
    """Reads into one buffer: a megabyte that a client allocates each time costs as many page faults as its allocator
    happens to need, half of the whole or nothing.
    """
    buffer = memoryview(bytearray(2 << 20))
    offset, size, began = 0, 0, time.perf_counter()
    with Wire(server.bootstrap_servers) as wire:
        while offset < batches * 900:
            wire.say("Fetch", 11, fetch_request("raw", offset))
            reply = codec.parse("FetchResponse", 11, wire.read_into(buffer), 4)
            data = reply.responses[0].partitions[0].records
            size += len(data)
            last = offset
            for at in records.batches(data):
                last = at.header.next_offset
            offset = last
    return size / 1e6 / (time.perf_counter() - began)


def latency(side: str) -> Figures:
    """One record at a time, and from produce to a waiting consumer."""
    server = fresh(side)
    server.start()
    topic(server, "one")
    frame = produce_request("one", [RECORD_100])
    times, through = [], []
    with Wire(server.bootstrap_servers) as wire:
        for n in range(6000):
            began = time.perf_counter()
            wire.send(frame)
            wire.read_frame()
            if n >= 2000:
                times.append((time.perf_counter() - began) * 1e6)
        end = 6000
        with Wire(server.bootstrap_servers) as reader:
            for n in range(1500):
                reader.send(request_frame("Fetch", 11, fetch_request("one", end + n, 10_000)))
                time.sleep(0.0005)  # the fetch is parked by then
                began = time.perf_counter()
                wire.send(frame)
                reader.read_frame()
                if n >= 300:
                    through.append((time.perf_counter() - began) * 1e6)
                wire.read_frame()
    dispose(server)
    return {
        "one at a time p50, us": quantile(times, 0.5),
        "p99, us": quantile(times, 0.99),
        "produce to consumer p50, us": quantile(through, 0.5),
    }


def wide(side: str) -> Figures:
    """100 connections that produce, a Produce of 100 partitions, and polls of an incremental session over 1,000 idle
    partitions.
    """
    server = fresh(side)
    server.start()
    topic(server, "wide", 100)
    topic(server, "idle", 1000)
    frame = produce_request("wide", [RECORD_100])
    wires = [Wire(server.bootstrap_servers) for _ in range(100)]
    began = time.perf_counter()
    for _ in range(60):
        for wire in wires:
            wire.send(frame)
        for wire in wires:
            wire.read_frame()
    rate = 6000 / (time.perf_counter() - began)
    broad = produce_request("wide", [RECORD_100], 100)
    began = time.perf_counter()
    for _ in range(200):
        wires[0].send(broad)
        wires[0].read_frame()
    per_broad = (time.perf_counter() - began) / 200 * 1e6
    poll = _session_poll(wires[1])
    for wire in wires:
        wire.close()
    dispose(server)
    return {
        "100 connections, requests/s": rate,
        "Produce of 100 partitions, us": per_broad,
        "poll of 1,000 idle, us": poll,
    }


def _session_poll(wire: Wire) -> float:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=i, partition_max_bytes=1 << 20) for i in range(1000)]
    full = r(topics=[r.FetchTopic(topic="idle", partitions=parts)], session_epoch=0, max_wait_ms=0, max_bytes=1 << 20)
    session = wire.ask("Fetch", 11, full).session_id
    times = []
    for epoch in range(1, 301):
        frame = request_frame("Fetch", 11, r(session_id=session, session_epoch=epoch, max_wait_ms=0, max_bytes=1 << 20))
        began = time.perf_counter()
        wire.send(frame)
        wire.read_frame()
        times.append((time.perf_counter() - began) * 1e6)
    return quantile(times[50:], 0.5)


def many(side: str) -> Figures:
    """A data directory with 1,000 partitions: how soon it serves again."""
    server = fresh(side)
    server.start()
    topic(server, "many", 1000)
    frame = produce_request("many", [RECORD_100] * 10, 1000)
    with Wire(server.bootstrap_servers) as wire:
        wire.send(frame)
        wire.read_frame()
    server.stop()
    began = time.perf_counter()
    server.start()
    with Wire(server.bootstrap_servers) as wire:
        while True:
            wire.send(frame)
            answer = wire.reply("Produce", 9)
            if all(p.error_code == 0 for p in answer.responses[0].partition_responses):
                break
    took = time.perf_counter() - began
    dispose(server)
    return {"1,000 partitions ready, s": took}


def connections(side: str) -> Figures:
    """Memory of 5,000 idle connections, and of 200 consumers that ask for 50 MB and read nothing."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    server = fresh(side)
    server.start()
    topic(server, "fat")
    frame = produce_request("fat", [RECORD_1K] * 900)
    with Wire(server.bootstrap_servers) as wire:
        for _ in range(70):
            wire.send(frame)
            wire.read_frame()
    process = psutil.Process(server.pid)
    host, port = server.bootstrap_servers.split(":")
    before = process.memory_info().rss
    api = request_frame("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="b", client_software_version="1"))
    idle = []
    for _ in range(5000):
        one = socket.create_connection((host, int(port)))
        one.sendall(api)
        idle.append(one)
    for one in idle:
        one.recv(1 << 16)
    per_idle = (process.memory_info().rss - before) / 5000 / 1024
    for one in idle:
        one.close()
    time.sleep(1)
    before = process.memory_info().rss
    greedy = fetch_request("fat", 0)
    greedy.max_bytes = greedy.topics[0].partitions[0].partition_max_bytes = 50 << 20
    data = request_frame("Fetch", 11, greedy)
    hungry = []
    for _ in range(200):
        one = socket.create_connection((host, int(port)))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(data)
        hungry.append(one)
    time.sleep(3)
    per_hungry = (process.memory_info().rss - before) / 200 / 1e6
    for one in hungry:
        one.close()
    dispose(server)
    return {"idle connection, KiB": per_idle, "slow consumer, MB": per_hungry}


BENCHES: dict[str, Callable[[str], Figures]] = {
    "start": start,
    "raw": raw,
    "produce": produce,
    "go": go,
    "latency": latency,
    "wide": wide,
    "many": many,
    "connections": connections,
}


def _benches() -> dict[str, Callable[[str], Figures]]:
    """All sections by name."""
    from . import (
        beside,
        conversion,
        cores,
        groups,
        lab,
        nodes,
        partitions,
        programs,
        recording,
        rules,
        sasl,
        share,
        storms,
        streams,
        tls,
        transactions,
        verdict,
    )

    return {
        **BENCHES,
        **groups.SECTIONS,
        **storms.SECTIONS,
        **share.SECTIONS,
        **streams.SECTIONS,
        **transactions.SECTIONS,
        **beside.SECTIONS,
        **conversion.SECTIONS,
        **cores.SECTIONS,
        **nodes.SECTIONS,
        **partitions.SECTIONS,
        **sasl.SECTIONS,
        **tls.SECTIONS,
        **verdict.SECTIONS,
        **lab.SECTIONS,
        **rules.SECTIONS,
        **programs.SECTIONS,
        **recording.SECTIONS,
    }


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["growth"]:
        from . import growth

        return growth.main(arguments[1:])
    benches = _benches()
    unknown = [a for a in arguments if a not in (*benches, "codec") and not a.startswith(("runs=", "sides="))]
    if unknown:
        print(f"no benchmark {unknown[0]}; there are growth, codec, {', '.join(benches)}, and runs=N, sides=A,B")
        return 2
    runs = next((int(a[5:]) for a in arguments if a.startswith("runs=")), RUNS)
    chosen = [a for a in arguments if a in benches] or [name for name in benches if name != "mixed"]
    sides = []
    for side in next((a[6:] for a in arguments if a.startswith("sides=")), "ottla,kafka").split(","):
        if (why := missing(side)) is not None:
            print(f"{side} is not measured: {why}")
        else:
            sides.append(side)
    for name in chosen:
        figures: dict[str, dict[str, list[float]]] = {}
        for _ in range(runs):
            for side in sides:
                for figure, value in benches[name](side).items():
                    figures.setdefault(figure, {}).setdefault(side, []).append(value)
        _print(figures)
    if "codec" in arguments or not [a for a in arguments if a in benches]:
        subprocess.run([sys.executable, "-m", "tests.bench.codec"], check=True, timeout=600)
    return 0


def _print(figures: dict[str, dict[str, list[float]]]) -> None:
    for figure, by_side in figures.items():
        text = f"{figure:34}"
        for side, values in by_side.items():
            text += f"  {side} {statistics.median(values):9.3g} ({min(values):.3g}..{max(values):.3g})"
        first, *others = by_side
        for side in others:
            text += f"  {first}/{side} {statistics.median(by_side[first]) / statistics.median(by_side[side]):.3f}"
        print(text, flush=True)
