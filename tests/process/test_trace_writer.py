"""The program that writes a trace, beside its broker: what is written when one of them ends."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from ottla.broker.lab.traces.feeding import NICE
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.poll import until
from ..support.wire import Wire

pytestmark = pytest.mark.slow

EXCHANGES = 2000


def events(file: Path) -> list[dict[str, Any]]:
    """The complete lines of a trace."""
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def numbers(file: Path, kind: str) -> list[int]:
    return [one["exchange"] for one in events(file) if one["event"] == kind]


def use(broker: Broker, count: int = EXCHANGES) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        for _ in range(count):
            wire.say("Metadata", 12, m.MetadataRequest(topics=[]))
        for _ in range(count):
            wire.read_frame()


def writer(broker: Broker) -> psutil.Process:
    (found,) = psutil.Process(broker.pid).children()
    return found


def has_ended(program: psutil.Process) -> bool:
    """Whether a process has ended; nothing may have taken note of it."""
    try:
        return bool(program.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_a_broker_that_stops_has_written_everything(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with Broker({"ottla.trace": file}) as broker:
        program = writer(broker)
        use(broker)
        broker.stop()  # at once, by SIGTERM
        assert has_ended(program)
    for kind in ("request", "reply"):
        assert numbers(file, kind) == list(range(1, EXCHANGES + 1))


def test_a_trace_that_is_ended_has_its_file_complete(tmp_path: Path) -> None:
    with Broker({"ottla.trace.directory": tmp_path}) as broker:
        number = broker.lab.post("traces", file="t.jsonl", raw="frames")["number"]
        use(broker)
        ended = broker.lab.delete(f"traces/{number}")
        assert numbers(tmp_path / "t.jsonl", "reply") == list(range(1, EXCHANGES + 1))
        assert (ended["dropped"], len(psutil.Process(broker.pid).children())) == (0, 0)


def test_a_broker_that_is_killed_leaves_what_its_program_had_taken(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with Broker({"ottla.trace": file}) as broker:
        program = writer(broker)
        use(broker, 10)
        until(lambda: numbers(file, "reply")[-1:] == [10], "all is written", every=0.01)
        use(broker)
        broker.kill()
        until(lambda: has_ended(program), "the program has ended, too", every=0.01)
    found = numbers(file, "request")
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= 10


def test_a_broker_goes_on_without_its_program_and_counts_what_is_missing(tmp_path: Path) -> None:
    with Broker({"ottla.trace": tmp_path / "t.jsonl"}) as broker:
        program = writer(broker)
        os.kill(program.pid, signal.SIGKILL)

        def dropped() -> int:
            use(broker, 1)
            count: int = broker.lab.get("traces")["traces"][0]["dropped"]
            return count

        until(lambda: dropped() > 2, "events are dropped")
        assert "t.jsonl has ended" in broker.log
        assert broker.stop() == 0


def test_a_program_yields_to_the_processes_of_its_session_and_ctrl_c_is_for_the_broker(tmp_path: Path) -> None:
    with Broker({"ottla.trace": tmp_path / "t.jsonl"}) as broker:
        program, its_broker = writer(broker), psutil.Process(broker.pid)
        use(broker, 1)
        until(lambda: program.nice() == min(its_broker.nice() + NICE, 19), "it has taken a lower priority")
        assert os.getsid(program.pid) == os.getsid(broker.pid)
        assert os.getpgid(program.pid) not in (os.getpgid(broker.pid), os.getpgid(0))
