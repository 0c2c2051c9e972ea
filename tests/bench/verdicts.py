"""`make bench-pipeline ARGS=verdict`: how fast `ottla pipeline verdict` examines traces, as many runs and as one.

librdkafka's clients do their work once, and the trace of it is copied with new ids: into directories, as those of CI
runs, and into one file. The wall clock says what this machine gave; the processor time of all processes says what it
costs, whatever else the machine does. `ARGS="verdict mb=10000 seconds=60"` makes longer ones.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer
from ottla.pipeline.command import started
from ottla.pipeline.jobs import verdict
from ottla.pipeline.traces import Trace, found
from ottla.verdict.from_trace import examine

from ottla.testing import Broker
from ottla.traces import reading

from ..support import trace_story

MB, SECONDS, PAIRS = 1000, 10, 3
CLIENT_SETS = 80  # in one trace: an examiner knows 1,000 clients
TARGET = 60  # MB/s on two cores
WARM_MB = 20
_NUMBERS = re.compile(rb'(,"(?:connection|exchange)":)(\d+)')
_CLIENT = re.compile(rb'(,"client_id":"[^"]*)(")')


def record(path: Path, seconds: float) -> None:
    """Every protocol with ids once, and then pairs of producers and consumers that keep busy."""
    with Broker({"ottla.trace": str(path), "ottla.trace.max.bytes": str(4 << 30)}) as broker:
        trace_story.tell(broker.bootstrap_servers)
        busy = [Thread(target=_busy, args=(broker.bootstrap_servers, n, seconds)) for n in range(PAIRS)]
        for one in busy:
            one.start()
        for one in busy:
            one.join()


def _busy(servers: str, number: int, seconds: float) -> None:
    topic, common = f"busy-{number}", {"bootstrap.servers": servers, "client.id": f"busy-{number}"}
    producer = Producer({**common, "enable.idempotence": True})
    protocol = "classic" if number % 2 else "consumer"
    group = {"group.id": topic, "auto.offset.reset": "earliest", "group.protocol": protocol}
    consumer = Consumer({**common, **group, "client.id": f"reader-{number}"})
    consumer.subscribe([topic])
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(20):
            producer.produce(topic, b"x" * 200)
        producer.flush(30)
        if consumer.consume(50, 0.05):
            consumer.commit(asynchronous=True)
    consumer.close()


def copies(lines: list[bytes], mb: int) -> Iterator[list[bytes]]:
    """The lines again and again, with other connections and clients."""
    size = sum(map(len, lines))
    highest = max(int(one) for line in lines for _, one in _NUMBERS.findall(line))
    for number in range(max(1, round(mb * 1e6 / size))):
        shift, name = number * (highest + 1), b"\\1-%d\\2" % (number % CLIENT_SETS)
        yield [_CLIENT.sub(name, _NUMBERS.sub(_shifted(shift), line), 1) for line in lines]


def _shifted(shift: int) -> Any:
    return lambda found: found[1] + b"%d" % (int(found[2]) + shift)


def processor_seconds() -> float:
    """Of this process and those that it has started, also of those that have ended."""
    here = psutil.Process()
    times = [here.cpu_times(), *(one.cpu_times() for one in here.children(recursive=True))]
    return float(sum(one.user + one.system + one.children_user + one.children_system for one in times))


def measured(session: Any, traces: list[Trace], label: str) -> Counter[str]:
    """Examines traces and prints how fast; returns the outcomes."""
    size = sum(one.bytes for one in traces) / 1e6
    cpu, began = processor_seconds(), time.perf_counter()
    judged = verdict.judged(session, traces).cache()  # as the command does: tables are made of it several times
    rows = verdict.verdicts(judged).groupBy("outcome").count().collect()
    judged.unpersist()
    wall, cost = time.perf_counter() - began, processor_seconds() - cpu
    print(
        f"{label:28} {size:7,.0f} MB in {wall:6.1f} s: {size / wall:5.1f} MB/s (target {TARGET}); "
        f"{cost:6.1f} s of processors: {2 * size / cost:5.1f} MB/s on two that do nothing else",
        flush=True,
    )
    return Counter({row["outcome"]: row["count"] for row in rows})


def of_command(path: Path) -> Counter[str]:
    """`ottla verdict`, in this process."""
    began = time.process_time()
    found = list(examine(reading.read(path)).report())
    cost = time.process_time() - began
    size = path.stat().st_size / 1e6
    print(f"{'ottla verdict':28} {size:7,.0f} MB: {size / cost:5.1f} MB for each second of a processor", flush=True)
    return Counter(rule["outcome"] for client in found for rule in client["rules"])


def main(arguments: list[str]) -> int:
    options = dict(one.split("=") for one in arguments if "=" in one)
    mb, seconds = int(options.get("mb", MB)), float(options.get("seconds", SECONDS))
    directory = Path(tempfile.mkdtemp(dir=options.get("directory")))
    try:
        record(directory / "recorded.jsonl", seconds)
        head, *lines = (directory / "recorded.jsonl").read_bytes().splitlines(keepends=True)
        expected = of_command(directory / "recorded.jsonl")
        session = started((), small=True)
        for label, size in (("", WARM_MB), ("many runs", mb)):
            runs = directory / f"runs-{size}"
            for number, copy in enumerate(copies(lines, size)):
                (runs / f"{number:06}").mkdir(parents=True)
                (runs / f"{number:06}" / "trace.jsonl").write_bytes(b"".join([head, *copy]))
            traces = found([str(runs)])
            outcomes = measured(session, traces, label or "a few runs, to warm up")
            assert outcomes == Counter({name: count * len(traces) for name, count in expected.items()}), outcomes
            shutil.rmtree(runs)
        with (directory / "one.jsonl").open("wb") as file:
            file.write(head)
            file.writelines(line for copy in copies(lines, mb) for line in copy)
        measured(session, found([str(directory / "one.jsonl")]), "one run")
        session.stop()
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
