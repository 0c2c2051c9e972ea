"""The frame of a program whose client is examined: `python -m tests.clients.examined.of_aiokafka basic=127.0.0.1:9092`.

Each argument is the name of an examination and the address of its broker. The work of an examination goes on until a
line comes on the standard input; then the client closes all that it has, and the program says `NAME done`.
Programs in other languages, in the folders beside this one, do the same.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from ottla import verdict_login

Enough = Callable[[], bool]
Work = Callable[[str, Enough], None]

USER, PASSWORD, MECHANISM = verdict_login.USER, verdict_login.PASSWORD, verdict_login.MECHANISM
PROTOCOL = verdict_login.PROTOCOL
READ = "read"
"""The topic of which records are cut off."""
SESSION_TIMEOUT_MS = 6000
"""Of members of classic groups: for so long a group waits for a member that has got another id."""
VALUE = b"value" * 20
"""Long enough that a codec makes it shorter: some clients send it as it is otherwise."""
CODEC = "zstd"
"""Of the records in `basic`."""
STATIC = "static"
"""The group of a static member, and its instance id."""
TOGETHER = 10
"""Records that are sent without waiting, each in a batch of its own, if the client can do so."""
RECORDS_READ_MAX = 10
"""At once: so that a program comes to its next step soon."""
SELDOM_SECONDS = 3.0
"""Between records where connections become idle."""
POLL_SECONDS = 0.05
CHURN = 8
"""The steps after which the second member of a group goes, and after which it comes again, if all have partitions."""


class Member(Protocol):
    """A member of a group that reads by itself."""

    has_partitions: bool

    def leave(self) -> None: ...


def churn(join: Callable[[], Member], step: Callable[[int], None], enough: Enough) -> None:
    """Keeps a group of two, of which the second goes and comes again. `step`: what is done each time, with the number
    of the step.
    """
    members, number = [join()], 0
    while not enough():
        moves = number % CHURN == 0 and all(one.has_partitions for one in members)
        if moves and len(members) == 1:
            members.append(join())
        elif moves:
            members.pop().leave()
        number += 1
        step(number)
    for one in members:
        one.leave()


def come_again(join: Callable[[], Member]) -> None:
    """Lets a static member come, go, and come again when it has partitions."""
    for _ in range(2):
        member = join()
        while not member.has_partitions:
            time.sleep(POLL_SECONDS)
        member.leave()


def run(works: Mapping[str, Work]) -> None:
    """Does the work of each argument."""
    orders = threading.Semaphore(0)

    def listen() -> None:
        for _ in sys.stdin:
            orders.release()

    threading.Thread(target=listen, daemon=True).start()
    for argument in sys.argv[1:]:
        name, _, at = argument.partition("=")
        works[name](at, lambda: orders.acquire(blocking=False))
        print(name, "done", flush=True)
