"""kcat in examinations of the verdict: programs that stay, and some that are run again and again."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from .program import (
    CODEC,
    MECHANISM,
    PASSWORD,
    PROTOCOL,
    READ,
    SESSION_TIMEOUT_MS,
    STATIC,
    TOGETHER,
    USER,
    VALUE,
    Enough,
    churn,
    come_again,
    run,
)

SECONDS: Final = 60
STEP_SECONDS: Final = 0.1
SENDS: Final = 40
"""Records of one run, of which one is refused."""
LINE: Final = VALUE + b"\n"
READS: Final = ("-C", "-q", "-u", "-p", "0", "-o", "beginning", "-X", "fetch.wait.max.ms=50")


def _once(at: str, *arguments: str, lines: int = 1) -> None:
    """Runs kcat. One that gives up is run again at the next step."""
    subprocess.run(
        ["kcat", "-b", at, *arguments], input=LINE * lines, capture_output=True, timeout=SECONDS, check=False
    )


@contextmanager
def _staying(at: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A kcat that ends when it is told to, as by Ctrl-C."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(["kcat", "-b", at, *arguments], stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)


def _produce(at: str, topic: str, *options: str, lines: int = 1) -> None:
    _once(at, "-P", "-t", topic, "-p", "0", "-X", "linger.ms=0", *options, lines=lines)


def _idempotent(at: str, enough: Enough) -> None:
    while not enough():
        _produce(at, "plain", *_options("enable.idempotence=true", "batch.num.messages=1"), lines=TOGETHER)


def _plain(at: str, enough: Enough, *options: str) -> None:
    """A consumer that stays; records, topics and offsets are those of programs that are run again and again."""
    reads = (*READS, "-t", "plain", *options)
    with ExitStack() as readers:
        reader = readers.enter_context(_staying(at, *reads))
        while not enough():
            if reader.poll() is not None:  # it gives up when its broker is gone
                reader = readers.enter_context(_staying(at, *reads))
            _produce(at, "plain", "-X", "enable.idempotence=true", *options)
            _once(at, "-L", *options)
            _once(at, "-Q", "-t", "plain:0:-1", *options)


def _reading_own(at: str, enough: Enough) -> None:
    """kcat cannot produce now and then: it reads its standard input in blocks."""
    _produce(at, "plain")
    _reading(at, enough, "plain")


def _reading(at: str, enough: Enough, topic: str = READ) -> None:
    """A consumer that only reads. One that gives up is run again."""
    reads = (*READS, "-t", topic)
    with ExitStack() as readers:
        reader = readers.enter_context(_staying(at, *reads))
        while not enough():
            if reader.poll() is not None:
                reader = readers.enter_context(_staying(at, *reads))
            time.sleep(STEP_SECONDS)


def _options(*settings: str) -> tuple[str, ...]:
    return tuple(part for one in settings for part in ("-X", one))


def _transactions(at: str, enough: Enough) -> None:
    """Each run is a transaction."""
    while not enough():
        _produce(at, "written", "-X", "transactional.id=transactions")


class _Member:
    """A kcat in a group, which says on its standard error what it has been assigned."""

    def __init__(self, at: str, group: str, *settings: str) -> None:
        quick = ("heartbeat.interval.ms=100", f"session.timeout.ms={SESSION_TIMEOUT_MS}", "auto.commit.interval.ms=100")
        options = _options(*quick, "auto.offset.reset=earliest", *settings)
        command = ["kcat", "-b", at, "-u", *options, "-G", group, "shared"]
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, text=True)
        self.has_partitions = False
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "rebalanced" in line:
                self.has_partitions = "assigned: shared" in line

    def leave(self) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        self._listening.join()


def _group(at: str, enough: Enough) -> None:
    """Two members read and commit; the second one goes and comes again. A static member of another group does so in
    the end.
    """
    _produce(at, "shared")
    churn(lambda: _Member(at, "members"), lambda _: _produce(at, "shared"), enough)
    come_again(lambda: _Member(at, STATIC, f"group.instance.id={STATIC}"))


def _ending_writes(at: str, enough: Enough) -> None:
    """Each run is a transaction: one that cannot be ended ends the run."""
    while not enough():
        _produce(at, "written", *_options("transactional.id=ending"))


def _ending_sends(at: str, enough: Enough) -> None:
    """One run with many records."""
    while not enough():
        _produce(at, "plain", *_options("enable.idempotence=true", "batch.num.messages=1"), lines=SENDS)


def _ending_static(at: str, enough: Enough) -> None:
    """A static member, which commits by itself, until it ends."""
    quick = ("heartbeat.interval.ms=100", f"session.timeout.ms={SESSION_TIMEOUT_MS}", "auto.commit.interval.ms=500")
    options = _options(*quick, "group.instance.id=ending", "auto.offset.reset=earliest")
    _produce(at, "shared")
    with _staying(at, "-u", *options, "-G", "ending", "shared") as member:
        while not enough() and member.poll() is None:
            _produce(at, "shared")


LOGIN: Final = _options(
    f"security.protocol={PROTOCOL}",
    f"sasl.mechanisms={MECHANISM}",
    f"sasl.username={USER}",
    f"sasl.password={PASSWORD}",
)

if __name__ == "__main__":
    run({
        "basic": lambda at, enough: _plain(at, enough, *_options(f"compression.codec={CODEC}")),
        "idempotence": _idempotent,
        "network": _plain,
        "login": lambda at, enough: _plain(at, enough, *LOGIN),
        "truncation": _reading,
        "connections": _reading_own,
        "transactions": _transactions,
        "classic-group": _group,
        "ending-writes": _ending_writes,
        "ending-sends": _ending_sends,
        "ending-static": _ending_static,
    })  # fmt: skip
