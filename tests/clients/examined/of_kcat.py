"""kcat in examinations of the verdict: programs that stay, and some that are run again and again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from .program import CHURN, READ, Enough, run

SECONDS: Final = 60
STEP_SECONDS: Final = 0.1
LINE: Final = b"value\n"


def _once(at: str, *arguments: str) -> None:
    """Runs kcat. One that gives up is run again at the next step."""
    subprocess.run(["kcat", "-b", at, *arguments], input=LINE, capture_output=True, timeout=SECONDS, check=False)


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


def _produce(at: str, topic: str, *options: str) -> None:
    _once(at, "-P", "-t", topic, "-p", "0", "-X", "linger.ms=0", *options)


def _plain(at: str, enough: Enough) -> None:
    """A consumer that stays; records, topics and offsets are those of programs that are run again and again."""
    reads = ("-C", "-q", "-u", "-t", "plain", "-p", "0", "-o", "beginning", "-X", "fetch.wait.max.ms=50")
    with ExitStack() as readers:
        reader = readers.enter_context(_staying(at, *reads))
        while not enough():
            if reader.poll() is not None:  # it gives up when its broker is gone
                reader = readers.enter_context(_staying(at, *reads))
            _produce(at, "plain", "-X", "enable.idempotence=true")
            _once(at, "-L")
            _once(at, "-Q", "-t", "plain:0:-1")


def _reading(at: str, enough: Enough) -> None:
    reads = ("-C", "-q", "-u", "-t", READ, "-p", "0", "-o", "beginning", "-X", "fetch.wait.max.ms=50")
    with _staying(at, *reads):
        while not enough():
            time.sleep(STEP_SECONDS)


def _transactions(at: str, enough: Enough) -> None:
    """Each run is a transaction."""
    while not enough():
        _produce(at, "written", "-X", "transactional.id=transactions")


def _group(at: str, enough: Enough) -> None:
    """Two members read and commit; the second one goes and comes again."""
    _produce(at, "shared")
    quick = ("heartbeat.interval.ms=100", "session.timeout.ms=30000", "auto.commit.interval.ms=100")
    options = [part for one in (*quick, "auto.offset.reset=earliest") for part in ("-X", one)]
    member = ("-q", "-u", *options, "-G", "members", "shared")
    number = 0
    with _staying(at, *member), ExitStack() as others:
        while not enough():
            if number % (2 * CHURN) == 0:
                others.enter_context(_staying(at, *member))
            elif number % (2 * CHURN) == CHURN:
                others.close()
            number += 1
            _produce(at, "shared")


if __name__ == "__main__":
    run({
        "basic": _plain,
        "idempotence": _plain,
        "network": _plain,
        "truncation": _reading,
        "transactions": _transactions,
        "classic-group": _group,
    })  # fmt: skip
