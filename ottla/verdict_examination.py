"""A broker of one's own that examines who connects: `ottla verdict` without a trace or a running broker."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from . import verdict_addresses, verdict_connections, verdict_fatal, verdict_login, verdict_truncation
from .free_ports import free_run
from .testing import Broker, BrokerFailed

if TYPE_CHECKING:
    from .broker.lab.verdict.routes import VerdictView
    from .verdict.report import ClientReport
    from .verdict.rule import Examination
    from .verdict_guide import Guide

LEAVING_S_MAX: Final = 5.0
POLL_S: Final = 0.05
ENDS: Final = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
BOOTSTRAP: Final = "OTTLA_BOOTSTRAP_SERVERS"
Say = Callable[[str], None]


class _Examiner(Broker):
    """A broker that outlives a signal to the whole process group (Ctrl-C in a terminal, the end of a job): it still has
    its report to give.
    """

    _process_group = 0


def serve(examination: Examination | None, seed: int, listen: str, command: str | None, say: Say) -> VerdictView:
    """Examines the clients of a broker until the program `command` ends; without one, until one of ENDS comes.
    Returns the report. Raises BrokerFailed.
    """
    with _broker({"listeners": f"PLAINTEXT://{listen}"}) as broker:
        broker.lab.post("verdict", examination=examination, provokes=examination is not None, seed=seed)
        what = f"the examination {examination}" if examination is not None else "all rules, and no faults"
        _receive(broker, what, command, say)
        found: VerdictView = broker.lab.delete("verdict")
        return found


def truncate(listen: str, command: str | None, say: Say) -> list[ClientReport]:
    """Like `serve`, with the examination `truncation`: the reports have its rules only."""
    host, port = _consecutive(listen, verdict_truncation.NODES)
    listeners = f"PLAINTEXT://{host}:{port}"
    with _broker({"listeners": listeners, **verdict_truncation.SETTINGS}) as broker:
        guide = verdict_truncation.Truncation(broker)
        broker.lab.post("verdict", examination="basic")
        with _guided(guide, say):
            _receive(broker, f"the examination {verdict_truncation.NAME}", command, say)
        return _reports(broker, verdict_truncation.RULES)


def lose_connections(listen: str, command: str | None, say: Say) -> list[ClientReport]:
    """Like `truncate`, with the examination `connections`."""
    host, port = _consecutive(listen, verdict_connections.LISTENERS)
    with _broker(verdict_connections.settings(host, port)) as broker:
        broker.lab.post("verdict", examination="network")
        with _guided(verdict_connections.Connections(broker), say):
            _receive(broker, f"the examination {verdict_connections.NAME}", command, say, f"{host}:{port}")
        return _reports(broker, verdict_connections.RULES)


def try_addresses(listen: str, command: str | None, say: Say) -> list[ClientReport]:
    """Like `truncate`, with the examination `addresses`. The program is run again for the other address, unless a
    signal comes.
    """
    try:
        name = listen.rpartition(":")[0]
        addresses = verdict_addresses.addresses_of(name)
        _, port = _consecutive(listen, len(verdict_addresses.LISTENERS))
        unserved = verdict_addresses.unserved(port, addresses)
    except ValueError as error:
        raise BrokerFailed(f"cannot listen at {listen}: {error}") from None
    first, second = (f"{addresses[0]}:{port + one}" for one in verdict_addresses.BEGINNINGS)
    what = f"the examination {verdict_addresses.NAME}"
    with unserved, _broker(verdict_addresses.settings(name, port, addresses)) as broker:
        broker.lab.post("verdict", examination="network")
        arrivals = verdict_addresses.Arrivals(broker)
        if command is None:
            _receive(broker, what, None, say, f"{first}, and then {second}")
        elif _receive(broker, what, command, say, first):
            _receive(broker, "the program is run again", command, say, second)
        _say_steps(verdict_addresses.STEPS, arrivals.done, say)
        return _reports(broker, verdict_addresses.RULES)


def log_in(listen: str, command: str | None, say: Say) -> list[ClientReport]:
    """Like `truncate`, with the examination `login`."""
    with _broker({"listeners": f"{verdict_login.PROTOCOL}://{listen}", **verdict_login.SETTINGS}) as broker:
        broker.lab.post("verdict", examination="network")
        _receive(broker, f"the examination {verdict_login.NAME}", command, say)
        found = _reports(broker, verdict_login.RULES)
    ended = any(rule["outcome"] != "not exercised" for one in found for rule in one["rules"][:1])
    _say_steps((verdict_login.STEP,), (verdict_login.STEP,) if ended else (), say)
    return found


def end_clients(listen: str, command: str | None, say: Say) -> list[ClientReport]:
    """Like `truncate`, with the examination `fatal`. The program is run again as long as it meets what it has not met
    before, unless a signal comes.
    """
    with _broker({"listeners": f"PLAINTEXT://{listen}", **verdict_fatal.SETTINGS}) as broker:
        broker.lab.post("verdict")
        endings = verdict_fatal.Endings(broker)
        goes_on = _receive(broker, f"the examination {verdict_fatal.NAME}", command, say)
        while endings.end_met() and goes_on:
            goes_on = _receive(broker, "the program is run again", command, say)
        _say_steps(verdict_fatal.STEPS, endings.done, say)
        return _reports(broker, verdict_fatal.RULES)


OF_THEIR_OWN: Final[Mapping[str, Callable[[str, str | None, Say], list[ClientReport]]]] = {
    verdict_truncation.NAME: truncate,
    verdict_login.NAME: log_in,
    verdict_connections.NAME: lose_connections,
    verdict_addresses.NAME: try_addresses,
    verdict_fatal.NAME: end_clients,
}
"""What goes through the examinations that take more than faults by a schedule."""


def _consecutive(listen: str, count: int) -> tuple[str, int]:
    """Returns a host and the first of so many ports that follow each other: free ones for port 0, which each listener
    would choose for itself. Raises BrokerFailed.
    """
    host, _, port = listen.rpartition(":")
    if not (host and port.isdecimal()):
        raise BrokerFailed(f"cannot listen at {listen!r}: HOST:PORT was expected")
    if int(port):
        return host, int(port)
    try:
        return host, free_run(host, count)
    except OSError as error:
        raise BrokerFailed(f"cannot listen at {listen}: {error.strerror}") from None


@contextmanager
def _guided(guide: Guide, say: Say) -> Iterator[None]:
    """Takes clients through an examination meanwhile, and says at its end what was brought about."""
    guide.begin()
    try:
        yield
    finally:
        guide.end()
    _say_steps(guide.steps, guide.done, say)


def _say_steps(steps: Iterable[str], done: Collection[str], say: Say) -> None:
    for step in steps:
        say(f"{'provoked' if step in done else 'not come to'}: {step}")


def _reports(broker: Broker, rules: Collection[str]) -> list[ClientReport]:
    """Ends a verdict; returns what it says of some rules."""
    found: VerdictView = broker.lab.delete("verdict")
    for client in found["clients"]:
        client["rules"] = [one for one in client["rules"] if one["id"] in rules]
    return list(found["clients"])


@contextmanager
def _broker(settings: dict[str, object]) -> Iterator[Broker]:
    broker = _Examiner(settings)
    try:
        yield broker.start()
    finally:
        broker.close()


def _receive(broker: Broker, what: str, command: str | None, say: Say, servers: str = "") -> bool:
    """Serves until a program has ended, or a signal comes. Returns whether a program has, and no signal came.
    `servers`: where clients begin, if metadata says another address.
    """
    servers = servers or broker.bootstrap_servers
    say(f"examining the clients of {servers}: {what}")
    if command is None:
        _wait_for_signal(say)
        return False
    status, is_ended = _run(command, {**os.environ, BOOTSTRAP: servers}, say)
    say(f"the program ended with exit code {status}")
    _wait_for_leaving(broker)
    return not is_ended


def _run(command: str, environment: Mapping[str, str], say: Say) -> tuple[int, bool]:
    """Runs a program. Returns its exit code, and whether a signal came: what it did until then is in the report.
    A terminal sends Ctrl-C to the program as well, so only another signal and a second SIGINT end it from here.
    """
    signals: list[int] = []
    program: subprocess.Popen[bytes] | None = None

    def end_if_asked() -> None:
        if program is not None and signals not in ([], [signal.SIGINT]):
            program.terminate()

    def received(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        if signals == [signal.SIGINT]:
            say("waiting for the program to end; Ctrl-C again terminates it")
        end_if_asked()

    before = {one: signal.signal(one, received) for one in _ends()}
    try:
        program = subprocess.Popen(command, shell=True, env=environment)
        end_if_asked()
        return _ended(program), bool(signals)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _ended(program: subprocess.Popen[bytes]) -> int:
    """Waits until a program has ended; returns its exit code. Looks again and again: Python handles a signal that comes
    right before a system call when that has returned.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return program.wait(POLL_S)


def _ends() -> list[signal.Signals]:
    """Returns the signals that end an examination; after `nohup` a closed terminal does not."""
    return [one for one in ENDS if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN]


def _wait_for_signal(say: Say) -> None:
    ends = _ends()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        say("end with Ctrl-C")
        signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_leaving(broker: Broker) -> None:
    """Waits until the broker has seen that the connections of the program are closed."""
    until = time.monotonic() + LEAVING_S_MAX
    while broker.lab.clients() and time.monotonic() < until:
        time.sleep(POLL_S)
