"""What every attack stands on: a broker in a process of its own, a watcher of its loop and memory, and the check
afterwards.

    @attack(quick=True)
    def the_same_group_twenty_thousand_times(site: Site) -> None:
        with site.wire() as wire:
            wire.ask("DescribeGroups", 5, …)

The loop is watched by another process, which asks for ApiVersions again and again: the longest answer is how long one
event held the loop. Tests assert only what does not depend on the machine (`times=False`), and do without that process;
`make attack` asserts the times too.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.wire import Wire

KEPT = "kept-by-the-attack"
ACKNOWLEDGED = b"acknowledged"


Settings = Mapping[str, object]


@dataclass(frozen=True)
class Attack:
    """One attack, its bounds, and what it needs of the broker."""

    name: str
    run: Callable[[Site], None]
    quick: bool
    hold_ms_max: float
    memory_mib_max: int
    settings: Settings | Callable[[], Settings]
    lab: bool


ATTACKS: dict[str, Attack] = {}


def attack(
    *,
    quick: bool = False,
    hold_ms_max: float = 50,
    memory_mib_max: int = 150,
    lab: bool = False,
    settings: Settings | Callable[[], Settings] | None = None,
) -> Callable[[Callable[[Site], None]], Callable[[Site], None]]:
    """Registers an attack.

    `quick`: it takes a few seconds at most and runs in `make test`. `hold_ms_max`: how long one event may hold the
    loop, without what the broker waits for a processor. `memory_mib_max`: how much the resident memory may grow while
    it runs.
    `settings`: broker keys by name, or what returns them. `lab`: whether the broker has its HTTP port.
    """

    def register(run: Callable[[Site], None]) -> Callable[[Site], None]:
        name = run.__name__
        if name in ATTACKS:
            raise ValueError(f"two attacks are called {name}")
        ATTACKS[name] = Attack(name, run, quick, hold_ms_max, memory_mib_max, settings or {}, lab)
        return run

    return register


@dataclass
class Outcome:
    """What was measured while an attack ran."""

    attack: Attack
    hold_ms: float | None
    memory_mib: float
    notes: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        notes = f"  {'; '.join(self.notes)}" if self.notes else ""
        held = "" if self.hold_ms is None else f"held {self.hold_ms:.0f} ms, "
        return f"{self.attack.name}: {held}{self.memory_mib:.0f} MiB more{notes}"


class Site:
    """A broker under attack, and what attacks use of it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.notes: list[str] = []

    def wire(self, timeout: float = 60.0) -> Wire:
        return Wire(self.broker.bootstrap_servers, timeout)

    def note(self, text: str) -> None:
        """Something measured, for the report."""
        self.notes.append(text)


class _Watcher:
    """Another process that asks the broker for ApiVersions again and again."""

    def __init__(self, broker: Broker) -> None:
        command = [sys.executable, "-m", "tests.attack.watcher", broker.bootstrap_servers, str(broker.pid)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun to ask

    def close(self) -> float:
        """Ends it; returns the longest time an answer took, in milliseconds."""
        answer, _ = self._process.communicate("\n", timeout=120)
        return float(answer) if answer.strip() else float("inf")


class _Memory:
    """A thread that samples the broker's memory. `before` and `peak` are in bytes."""

    def __init__(self, broker: Broker) -> None:
        self._measured = psutil.Process(broker.pid)
        self._stop = threading.Event()
        self.before = self.peak = self._rss()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _rss(self) -> int:
        try:
            rss: int = self._measured.memory_info().rss
        except psutil.NoSuchProcess:
            return 0
        return rss

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            self.peak = max(self.peak, self._rss())

    def close(self) -> float:
        """Ends the thread; returns by how many MiB the memory grew."""
        self._stop.set()
        self._thread.join()
        return (max(self.peak, self._rss()) - self.before) / 2**20


def _let_it_rest(broker: Broker, seconds_max: float = 20.0) -> None:
    """Waits until a broker does nothing: it imports modules for some seconds after its start."""
    process, until = psutil.Process(broker.pid), time.monotonic() + seconds_max
    while time.monotonic() < until:
        before = sum(process.cpu_times()[:2])
        time.sleep(0.25)
        if sum(process.cpu_times()[:2]) - before < 0.02:
            return


def run(one: Attack, times: bool = True) -> Outcome:
    """Runs an attack against a broker of its own. AssertionError where a bound does not hold; that of the loop is only
    looked at with `times`.
    """
    settings = one.settings() if callable(one.settings) else one.settings
    with Broker(dict(settings), lab=one.lab) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, KEPT)
            assert produce(wire, KEPT, ACKNOWLEDGED).error_code == 0
        site = Site(broker)
        _let_it_rest(broker)
        watcher = _Watcher(broker) if times else None
        memory = _Memory(broker)
        try:
            one.run(site)
        finally:
            memory_mib = memory.close()
            hold_ms = watcher.close() if watcher is not None else None
        outcome = Outcome(one, hold_ms, memory_mib, site.notes)
        assert broker.running, f"{one.name}: the broker ended:\n{broker.log[-3000:]}"
        assert "Traceback" not in broker.log, f"{one.name}:\n{broker.log[-3000:]}"
        with Wire(broker.bootstrap_servers) as wire:
            assert fetch(wire, KEPT) == [ACKNOWLEDGED], f"{one.name}: acknowledged records are gone"
        assert outcome.memory_mib <= one.memory_mib_max, f"{outcome.line}; {one.memory_mib_max} MiB are allowed"
        assert hold_ms is None or hold_ms <= one.hold_ms_max, f"{outcome.line}; {one.hold_ms_max:.0f} ms are allowed"
        return outcome


def attacks() -> dict[str, Attack]:
    """Every attack of this package, by name."""
    package = importlib.import_module(__package__ or "")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return ATTACKS


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """What happens inside may be answered with the connection's end."""
    from ..support.wire import Closed

    with contextlib.suppress(Closed, ConnectionError):
        yield


def main(arguments: list[str]) -> int:
    wanted = {name: one for name, one in attacks().items() if not arguments or any(word in name for word in arguments)}
    failed: list[Any] = []
    for one in wanted.values():
        try:
            print(run(one).line, flush=True)
        except Exception as error:
            failed.append(one)
            print(
                f"FAILED {error}" if isinstance(error, AssertionError) else f"FAILED {one.name}: {error!r}", flush=True
            )
    print(f"{len(wanted) - len(failed)} attacks held, {len(failed)} did not")
    return 1 if failed else 0


if __name__ == "__main__":
    from tests.attack.harness import main as imported  # the module that attacks register with

    sys.exit(imported(sys.argv[1:]))
