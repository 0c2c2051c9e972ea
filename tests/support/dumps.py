"""Kafka's DumpLogSegments over a data directory: every log deep, every index checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ottla.storage.layout import DIRECTORY_STRAY

from ottla.adoption.swap import OLD_META

from ..oracle.tools import tool

# "-1 is followed by N" is what the tool says of every segment that does not begin at 0
COMPLAINTS = re.compile(
    r"Found|isvalid: false|not match|mismatch|^ +\d+ is followed by|Exception|corrupt|invalid bytes", re.IGNORECASE
)

INDEXES = (".index", ".timeindex")  # the files of which the tool reads something else with --index-sanity-check


def _is_of_killed_kafka(file: Path) -> bool:
    """Whether an adoption in place has put a file aside as the Kafka before left it: its indexes are not trimmed."""
    partition = file.parent
    return partition.name.endswith(DIRECTORY_STRAY) and (partition.parent / OLD_META).exists()


def _complaints(lines: list[str]) -> Iterator[str]:
    """Yields what the tool does not like. Compaction leaves gaps in topics that have it in their name. The path of a
    file that is dumped may have any words in it.
    """
    is_compacted = False
    for line in lines:
        if line.startswith("Non-consecutive offsets in "):
            is_compacted = "/compacted-" in line
        elif line.startswith("Dumping ") or (is_compacted and " is followed by " in line):
            continue
        elif COMPLAINTS.search(line):
            yield line


def check_directory(directory: Path) -> int:
    """How many files were read; AssertionError with what the tool says of a file it does not like."""
    files = [
        p
        for p in sorted(directory.rglob("*"))
        if p.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot") and not _is_of_killed_kafka(p)
    ]
    files = [p for p in files if p.stat().st_size or p.suffix == ".log"]
    _dump(files, "--deep-iteration")
    _dump([p for p in files if p.suffix in INDEXES], "--index-sanity-check")
    return len(files)


def _dump(files: list[Path], how: str) -> None:
    for start in range(0, len(files), 200):
        some = ",".join(map(str, files[start : start + 200]))
        done = tool("DumpLogSegments", how, "--files", some, timeout=600)
        wrong = list(_complaints((done.stdout + done.stderr).splitlines()))
        assert not wrong, "\n".join(wrong[:20])
        assert done.returncode == 0, done.stderr[-2000:]
