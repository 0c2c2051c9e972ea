"""Runs histories of a simulator.

    python -m tests.sim [seeds=20000] [seed=N]                 logs
    python -m tests.sim groups [seeds=20000] [seed=N]          groups
    python -m tests.sim share [seeds=20000] [seed=N]           share groups
    python -m tests.sim streams [seeds=20000] [seed=N]         streams groups
    python -m tests.sim transactions [seeds=20000] [seed=N]    transactions
    python -m tests.sim indexes [seeds=20000] [seed=N]         damaged indexes
    python -m tests.sim broker [seeds=20000] [seed=N]          a whole broker
    python -m tests.sim damage [seeds=20000] [seed=N]          damaged directories
    python -m tests.sim faults [seeds=20000] [seed=N]          a whole broker in which a call fails
    python -m tests.sim security [seeds=20000] [seed=N]        users, rights and quotas
    python -m tests.sim cluster [seeds=20000] [seed=N]         several nodes
    python -m tests.sim balance [seeds=20000] [seed=N]         groups of ottla.classic
    python -m tests.sim connections [seeds=20000] [seed=N]     connections

Every failure prints its seed; `seed=N` repeats it.
"""

from __future__ import annotations

import sys
from importlib import import_module

SIMULATORS = (
    "logs",
    "groups",
    "share",
    "streams",
    "transactions",
    "indexes",
    "broker",
    "damage",
    "faults",
    "security",
    "cluster",
    "balance",
    "connections",
)


def main(arguments: list[str]) -> int:
    options = dict(a.split("=") for a in arguments if "=" in a)
    seeds = [int(options["seed"])] if "seed" in options else range(int(options.get("seeds", 20_000)))
    name = next((a for a in arguments if "=" not in a), "logs")
    if name not in SIMULATORS:
        print(f"no simulator {name}; there are {', '.join(SIMULATORS)}", file=sys.stderr)
        return 2
    run = import_module(f"tests.sim.{name}").run
    for number, seed in enumerate(seeds, 1):
        run(seed)
        if number % 1000 == 0:
            print(f"{number} histories hold", flush=True)
    print(f"{len(seeds)} histories hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
