"""The MBeans of a running Kafka's coordinators of groups.

python -m tests.oracle.mbeans     asks a Kafka again, and writes `recorded/mbeans.txt`
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .kafka import Kafka, program

RECORDED = Path(__file__).parent / "recorded" / "mbeans.txt"
PATTERNS = ("kafka.server:type=group-coordinator-metrics,*", "kafka.coordinator.group:*")


def ask() -> list[str]:
    """Returns the MBeans' names, each with one of its attributes."""
    with tempfile.TemporaryDirectory() as folder, Kafka(own_process=True) as kafka:
        command = [*program("broker", "MBeans", Path(folder)), str(kafka.pid), *PATTERNS]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


def recorded() -> list[str]:
    return RECORDED.read_text().splitlines()


def main() -> int:
    lines = ask()
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(lines)} attributes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
