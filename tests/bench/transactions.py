"""Transactions, ottla and Apache Kafka side by side: commits, how long one takes, and reading what was committed. Run
by `make bench ARGS="transactions transactions-read"`.
"""

from __future__ import annotations

from ottla.protocol import messages as m

from ..support.wire import Wire
from .servers import Figures, clients, go_figures
from .sides import Server, dispose, fresh

COMMITS = 1000
TRANSACTIONS = 2000


def started(side: str) -> Server:
    """A server whose transaction coordinators are loaded."""
    server = fresh(side)
    server.start()
    with Wire(server.bootstrap_servers) as wire:
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
        while wire.ask("FindCoordinator", 4, find).coordinators[0].error_code:
            continue
        while wire.ask("ListTransactions", 0, m.ListTransactionsRequest()).error_code:
            continue
    return server


def speed(side: str) -> Figures:
    """franz-go's transactions of 100 records over 10 partitions, and how long EndTransaction takes."""
    program = clients()
    if program is None:
        return {}
    found: Figures = {}
    for label, producers, how in (
        ("one producer", 1, "free"),
        ("ten producers", 10, "free"),
        ("one producer, an LSO held", 1, "held"),
        ("ten producers, an LSO held", 10, "held"),
    ):
        server = started(side)
        rate, median, late = go_figures(
            program, server, "txn-speed", f"speed-{producers}", producers, COMMITS // producers, how
        )
        found |= {f"{label}: commits/s": rate, f"{label}: commit p50, ms": median, f"{label}: commit p99, ms": late}
        dispose(server)
    return found


def read(side: str) -> Figures:
    """franz-go reading committed records where every second transaction was aborted."""
    program = clients()
    if program is None:
        return {}
    server = started(side)
    (rate,) = go_figures(program, server, "txn-read", "read", TRANSACTIONS)
    dispose(server)
    return {"half aborted: committed records/s": rate}


SECTIONS = {"transactions": speed, "transactions-read": read}
