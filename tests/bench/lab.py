"""What the lab costs those who use it: tracing, rules that do not match, a live verdict. `make bench ARGS="lab"`; and
how long it takes to show very many groups and members, `ARGS="lab-groups"`.

One broker serves the same requests in rounds, with a part of the lab and without it in turn, so that both meet the
same load of the machine. A round has a steady part, which is measured, between a start and an end that are not: a
program beside the broker starts, and works on what it has put off. Figures are medians of the ratio of what is got
through per second and of the processor time of the broker's loop, both to the rounds without the lab before and after,
and the processor time that a request takes more. Each run has one round of everything; five take some seven minutes.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.poll import until
from ..support.wire import Wire, request_frame
from .servers import RECORD_1K, RECORD_100, Figures, fetch_request, produce_request, topic, warm_memory

WARM = 20
START_SHARE = 0.3  # of the measured part, before it
MANY, TIMES = 10_000, 21
FLYING = 5
SMALL = 3  # of the loads, the first
END_SECONDS = 300.0  # for what a program has put off, on a machine that is busy
Part = Callable[[Broker], Callable[[], object]]
"""Begins a part of the lab; returns what ends it."""


class Load(NamedTuple):
    """The same request again and again."""

    name: str
    frame: bytes


class Round(NamedTuple):
    """What a request took: seconds of the clock, and of the processor in the broker's loop."""

    clock: float
    loop: float


def _traced(**asked: str) -> Part:
    def begin(broker: Broker) -> Callable[[], object]:
        directory = Path(str(broker.settings["ottla.trace.directory"]))
        number = broker.lab.post("traces", file="trace.jsonl", **asked)["number"]
        with Wire(broker.bootstrap_servers) as wire:
            for _ in range(WARM):
                wire.ask("ApiVersions", 3, m.ApiVersionsRequest())
        until(lambda: (directory / "trace.jsonl").stat().st_size > 0, "the writer has started")

        def end() -> None:
            broker.lab.with_timeout(END_SECONDS).delete(f"traces/{number}")
            for file in directory.iterdir():
                file.unlink()

        return end

    return begin


def _rules(*matches: Mapping[str, object]) -> Part:
    def begin(broker: Broker) -> Callable[[], object]:
        for match in matches:
            broker.lab.post("faults", {"action": {"kind": "error", "error": "UNKNOWN_SERVER_ERROR"}, **match})
        return lambda: broker.lab.delete("faults")

    return begin


def _examined(broker: Broker) -> Callable[[], object]:
    lab = broker.lab.with_timeout(END_SECONDS)
    lab.post("verdict")
    lab.get("verdict")  # its program has started
    return lambda: lab.delete("verdict")


def _nothing(broker: Broker) -> Callable[[], object]:
    return lambda: None


WITH_PROGRAMS: dict[str, Part] = {
    "trace": _traced(),
    "trace with frames": _traced(raw="frames"),
    "verdict": _examined,
}
RULES: dict[str, Part] = {
    "rule of another API": _rules({"api": "DeleteTopics"}),
    "rule of another topic": _rules({"topic": "other"}),
    "rule of another partition": _rules({"partition": 7}),
    "rule of another group": _rules({"group": "other"}),
    "100 rules of other topics": _rules(*({"topic": f"other-{one}"} for one in range(100))),
}


def loop_seconds(pid: int) -> float:
    """The processor time of a process's first thread, which is that of the loop."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def _flood(wire: Wire, frame: bytes, seconds: float) -> tuple[float, int]:
    """Sends a request again and again; returns the seconds that it took, and how many there were."""
    sent = flying = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        wire.send(frame)
        sent += 1
        flying += 1
        if flying == FLYING:
            wire.read_frame()
            flying -= 1
    for _ in range(flying):
        wire.read_frame()
    return time.perf_counter() - began, sent


def _round(broker: Broker, load: Load, part: Part, seconds: float) -> Round:
    end = part(broker)
    try:
        with Wire(broker.bootstrap_servers) as wire:
            _flood(wire, load.frame, seconds * START_SHARE)
            used = loop_seconds(broker.pid)
            taken, requests = _flood(wire, load.frame, seconds)
            return Round(taken / requests, (loop_seconds(broker.pid) - used) / requests)
    finally:
        end()  # returns when the part's program has done with everything


def loads(broker: Broker) -> Iterator[Load]:
    """What clients ask most: single records, a producer's default batch, and large ones."""
    yield Load("Produce of 100 B", produce_request("small", [RECORD_100]))
    yield Load("Fetch of 100 B", request_frame("Fetch", 11, fetch_request("one", 0)))
    yield Load("OffsetCommit", commit("g"))
    yield Load("Produce of 16 KiB", produce_request("medium", [RECORD_100] * 150))
    yield Load("Fetch of 16 KiB", request_frame("Fetch", 11, fetch_request("batch", 0)))
    yield Load("Produce of 1 MB", produce_request("large", [RECORD_1K] * 900))
    yield Load("Fetch of 1 MB", request_frame("Fetch", 11, fetch_request("whole", 0)))


def _is_committed(wire: Wire) -> bool:
    wire.send(commit("g"))
    error: int = wire.reply("OffsetCommit", 8).topics[0].partitions[0].error_code
    return error == 0


@contextmanager
def broker(more: Mapping[str, object] = MappingProxyType({})) -> Iterator[Broker]:
    directory = Path(tempfile.mkdtemp(prefix="bench-lab-"))
    settings = {"ottla.trace.directory": str(directory / "traces"), "log.retention.bytes": 1 << 28, **more}
    (directory / "traces").mkdir()
    try:
        with Broker(settings, directory=directory / "data") as server:
            for name in ("small", "medium", "large", "one", "batch", "whole"):
                topic(server, name)
            with Wire(server.bootstrap_servers) as wire:
                for name, records in (
                    ("one", [RECORD_100]),
                    ("batch", [RECORD_100] * 150),
                    ("whole", [RECORD_1K] * 900),
                ):
                    wire.send(produce_request(name, records))
                    wire.read_frame()
                wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
                until(lambda: _is_committed(wire), "the coordinators are loaded")
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def figures(server: Broker, load: Load, parts: dict[str, Part], seconds: float) -> Figures:
    """Each part has a round between two without any, with which it is compared: what was written before makes rounds
    slower, and other programs do. `seconds`: of a round.
    """
    shown: Figures = {}
    before = _round(server, load, _nothing, seconds)
    for name, part in parts.items():
        one, after = _round(server, load, part, seconds), _round(server, load, _nothing, seconds)
        base = Round(*(sum(pair) / 2 for pair in zip(before, after, strict=True)))
        shown |= {
            f"{load.name}, us of the loop": base.loop * 1e6,
            f"{load.name}, {name}: rate": base.clock / one.clock,
            f"{load.name}, {name}: loop": one.loop / base.loop,
            f"{load.name}, {name}: more, us": (one.loop - base.loop) * 1e6,
        }
        before = after
    return shown


def lab(side: str) -> Figures:
    """Programs beside the broker with all loads, and rules with the small ones: a rule does not look at records."""
    if side != "ottla":
        return {}
    warm_memory()
    found: Figures = {}
    with broker() as server:
        for number, load in enumerate(loads(server)):
            found |= figures(server, load, WITH_PROGRAMS, 0.8)
            if number < SMALL:
                found |= figures(server, load, RULES, 0.3)
    return found


def commit(group: str) -> bytes:
    t = m.OffsetCommitRequest.OffsetCommitRequestTopic
    p = m.OffsetCommitRequest.OffsetCommitRequestPartition
    topics = [t(name="small", partitions=[p(partition_index=0, committed_offset=1)])]
    return request_frame("OffsetCommit", 8, m.OffsetCommitRequest(group_id=group, topics=topics))


def _beat(member: int) -> bytes:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id="many", member_id=f"member-{member}", member_epoch=0, rebalance_timeout_ms=60_000)
    request.subscribed_topic_names, request.topic_partitions = ["small"], []
    return request_frame("ConsumerGroupHeartbeat", 1, request)


def _while_pinged(server: Broker, ask: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds that a request to the lab takes, and the longest that another client waits meanwhile."""
    ping = request_frame("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="b", client_software_version="1"))
    longest = 0.0
    with Wire(server.bootstrap_servers) as wire, ThreadPoolExecutor(1) as thread:
        began = time.perf_counter()
        asked = thread.submit(ask)
        while not asked.done():
            sent = time.perf_counter()
            wire.send(ping)
            wire.read_frame()
            longest = max(longest, time.perf_counter() - sent)
            time.sleep(0.001)
        return (time.perf_counter() - began) * 1e3, longest * 1e3


def groups(side: str) -> Figures:
    """10,000 groups in a list, whole and in a page, and a group with 10,000 members."""
    if side != "ottla":
        return {}
    found: Figures = {}
    settings = {
        "group.consumer.max.size": MANY,
        "group.consumer.assignment.interval.ms": 15_000,
        "group.consumer.max.session.timeout.ms": 3_600_000,
        "group.consumer.session.timeout.ms": 3_600_000,
    }
    with broker(settings) as server:
        with Wire(server.bootstrap_servers) as wire:
            for number in range(MANY):
                for frame in (commit(f"group-{number}"), _beat(number)):
                    wire.send(frame)
                    wire.read_frame()
        assert len(server.lab.get("groups")["groups"]) > MANY
        assert len(server.lab.get("groups/many")["members"]) == MANY
        asked: dict[str, Callable[[], object]] = {
            "10,000 groups": lambda: server.lab.get("groups"),
            "a page of 1,000 groups": lambda: server.lab.get("groups", limit=1000),
            "a group with 10,000 members": lambda: server.lab.get("groups/many"),
        }
        for name, ask in asked.items():
            taken = [_while_pinged(server, ask) for _ in range(TIMES)]
            found[f"{name}, ms"] = statistics.median(one for one, _ in taken)
            found[f"{name}, longest wait of another, ms"] = statistics.median(one for _, one in taken)
    return found


SECTIONS: dict[str, Callable[[str], Figures]] = {"lab": lab, "lab-groups": groups}
