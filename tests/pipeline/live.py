"""Traces of clients with the live verdict on them; beside the tests, because clients mostly wait."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ottla.verdict.from_trace import examine

from ottla.testing import Broker
from ottla.traces import reading

from ..oracle.kafka import program
from ..support import trace_story
from ..support.poll import until
from ..support.verdict_reports import timeless


class Judged(NamedTuple):
    """A trace, and the live verdict of the same events."""

    trace: Path
    live: Any


def wordless(report: Any) -> Any:
    return {**report, "rules": [_wordless(one) for one in report["rules"]]}


def _wordless(rule: Any) -> Any:
    return {name: value for name, value in rule.items() if name not in ("what", "why", "link")}


def by_command(path: Path) -> Any:
    return [wordless(one) for one in examine(reading.read(path)).report()]


def judged(directory: Path, work: Callable[[str], None]) -> Judged:
    """What `work` did on a broker."""
    written = directory / "written.jsonl"
    with Broker({"ottla.trace": str(written)}) as broker:
        broker.lab.post("verdict")
        work(broker.bootstrap_servers)
        trace, live = directory / "trace.jsonl", None

        def have_both_all() -> bool:
            """Whether all is written that the live verdict has seen: connections may still be closing."""
            nonlocal live
            trace.write_bytes(written.read_bytes())
            live = [wordless(one) for one in broker.lab.get("verdict")["clients"]]
            return bool(timeless(live) == timeless(by_command(trace)))

        until(have_both_all, "the trace has what the verdict has seen", within=60)
    return Judged(trace, live)


def on_librdkafka(directory: Path) -> Judged:
    return judged(directory, trace_story.tell)


def on_kafkas_clients(directory: Path) -> Judged:
    def work(servers: str) -> None:
        command = [*program("tools", "TransactionClients", directory), servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]

    return judged(directory, work)
