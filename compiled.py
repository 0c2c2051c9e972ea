"""The modules that mypyc compiles (`make compiled`, or a wheel that is built with OTTLA_COMPILED=1): logs, what a
Produce passes between its message and its log, the runtime of the coordinators, share-partitions, transactions, the way
of requests that are like an earlier one, and what notes requests for traces. The source is the same, compiled or not.

These modules gain because they use each other's classes. Modules that mostly handle what is interpreted (messages, the
codec's functions, the loop) lose: docs/decisions/compiled.md has the figures.

A class of a compiled module has only the attributes that its source declares, none can be replaced from outside, and no
interpreted class may have it as its base (a test holds that): whoever adds a module adds what derives from its classes.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension

ROOT = Path(__file__).resolve().parent
# For this warning of -Wall, GCC reads the 35 MB of C again and again: without -O, three quarters of its time.
WITHOUT_LINES = "-Wno-misleading-indentation"
TYPES = ROOT / ".types"  # what lets mypy find the folders as subpackages of `ottla`
MODULES = {
    "protocol": "frames layouts plain_messages records spans varints",
    "storage": "batch_info epochs file_slice gathered index log producers rolling segment settings validation",
    "coordinator": "aftermath batch format journal packing parked runtime shard_runtime timeline timers",
    "coordinator/group": "format",
    "coordinator/group/consumer": "leaving",
    "coordinator/share": "acquiring batches changes inflight partition shard state window",
    "coordinator/transaction": "format shard state",
    "coordinator/metadata": "new_partitions staged",
    "coordinator/group/offsets": "long_commits of_group repeated store",
    "broker": (
        "alarm event_times internal_topics later machine metrics peer repeated replies settings steps timer_queue turn"
    ),
    "broker/emulation": "dispatching",
    "broker/net": "connection context dispatch error_counts listening sasl_gate sending watches",
    "broker/share": "share_fetch share_partition_leader",
    "broker/transaction": "completion markers verification",
    "broker/shards": "host",
    "broker/replica": (
        "appender fetch_reads fetch_sessions followers high_watermarks partition partitions stale_leaders"
    ),
    "broker/apis": (
        "_fetch_reading _gathered_produces _known_produces _produce_appends _produce_verification _repeated "
        "_repeated_commits _repeated_fetches _repeated_produces _share_requests k00_produce k01_fetch"
    ),
    "broker/lab/traces": "client",
}


def paths() -> list[str]:
    """Returns the files of the modules, relative to the root."""
    return [f"{folder}/{name}.py" for folder, names in MODULES.items() for name in names.split()]


def is_wanted() -> bool:
    return os.environ.get("OTTLA_COMPILED", "0") not in ("", "0")


def extensions() -> list[Extension]:
    """Translates the modules to C, and returns what a C compiler makes of it. OTTLA_OPTIMIZATION: its level, 0 to 3."""
    from mypyc.build import mypycify

    link = TYPES / "ottla"
    if not link.is_symlink():
        TYPES.mkdir(exist_ok=True)
        link.symlink_to("..")
    os.environ["MYPYPATH"] = str(TYPES)
    os.chdir(ROOT)
    options = ["--config-file", "pyproject.toml"]
    found: list[Extension] = mypycify(
        [*options, *(f".types/ottla/{path}" for path in paths())],
        opt_level=os.environ.get("OTTLA_OPTIMIZATION", "3"),
        group_name="ottla",
    )
    for one in found:
        one.extra_compile_args.append(WITHOUT_LINES)
    return found
