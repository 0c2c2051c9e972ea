"""Reads traces: the events of files, in order, and of a running broker."""

from __future__ import annotations

import base64
import glob
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ..lab_client import Lab, LabRefused
from ..verdict.trace_lines import Event, TraceError, event_of, events, first_event, trace_of

POLL_S: Final = 0.3
_TRACE: Final = re.compile(r"(?P<lab>https?://[^/]+)(/v1/traces(/(?P<number>\d+)(/events)?)?)?/?")


def text(event: Event, name: str) -> str:
    """A field that is a text; empty if it is not there."""
    found = event.get(name)
    return found if isinstance(found, str) else ""


def frame_of(event: Event) -> bytes:
    """The raw frame of a request or reply; empty if the trace has none, or a damaged one."""
    try:
        return base64.b64decode(text(event, "raw"), validate=True)
    except ValueError:
        return b""


def filters(event: Event) -> str:
    """The filters of a trace, by its first line; empty for all other events and for a trace of everything."""
    found = event.get("filters") if event["event"] == "trace" else None
    return ", ".join(f"{name}={value}" for name, value in found.items()) if isinstance(found, dict) else ""


def files_of(path: Path) -> list[Path]:
    """The files of a trace, the oldest first: those that are full have numbers, `FILE.1` is the latest of them. Each
    may be compressed.
    """
    base = glob.escape(path.name.removesuffix(".gz").removesuffix(".zst"))
    names = (one.name for one in path.parent.glob(f"{base}*"))
    return [path.parent / one.name for one in trace_of(names, path.name)]


def read(path: Path) -> Iterator[Event]:
    """Yields the events of a trace, of its rotated files first. The last line may be incomplete. Raises TraceError or
    OSError.
    """
    files = files_of(path)
    for one in files:
        with one.open("rb") as file:
            yield from events(str(one), file, one == files[-1])


def follow(path: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[Event]:
    """Yields the events of a trace and then those that are added, across rotations, until it is interrupted."""
    read_last: int | None = None
    while True:
        found = _next_file(path, read_last)
        if found is None:
            sleep(POLL_S)
            continue
        name, file = found
        with file:
            read_last = os.fstat(file.fileno()).st_ino
            if name == path:
                yield from _until_rotated(file, path, sleep)
            else:
                yield from events(str(name), file, is_last=False)


def _next_file(path: Path, read_last: int | None) -> tuple[Path, BinaryIO] | None:
    """Opens the file of a trace that comes after the one with this inode: the oldest if there is no such file. Rotation
    may give all of them other names meanwhile; None if the next one has its old name no more, or no name yet.
    """
    files = files_of(path)
    inodes = [_inode(one) for one in files]
    place = inodes.index(read_last) + 1 if read_last in inodes else 0
    try:
        file = files[place].open("rb")
    except (FileNotFoundError, IndexError):
        if read_last is None:
            raise
        return None
    if os.fstat(file.fileno()).st_ino == inodes[place]:
        return files[place], file
    file.close()
    return None


def _until_rotated(file: BinaryIO, path: Path, sleep: Callable[[float], None]) -> Iterator[Event]:
    rest, number = b"", 1
    is_over = False
    while True:
        for line in file:
            rest += line
            if rest.endswith(b"\n"):
                yield first_event(rest, str(path)) if number == 1 else event_of(rest, str(path), number)
                rest, number = b"", number + 1
        if is_over:
            return
        is_over = _inode(path) not in (None, os.fstat(file.fileno()).st_ino)  # what was written meanwhile is read
        if not is_over:
            sleep(POLL_S)


def _inode(path: Path) -> int | None:
    """None while the file is being replaced."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def problem(error: Exception) -> str:
    """What is wrong with a trace, in words."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def events_of(source: str, following: bool = False) -> Iterator[Event]:
    """Returns the events of the trace that a command names: the path of a file, or the URL of a lab (`at_url`). Raises
    what `read`, `follow`, `ask` and `at_url` raise.
    """
    if is_url(source):
        return ask(*at_url(source), following)
    return follow(Path(source)) if following else read(Path(source))


def ask(lab: Lab, trace: int, following: bool, sleep: Callable[[float], None] = time.sleep) -> Iterator[Event]:
    """Yields the first line and the last events of a trace of a running broker, and those that follow. Raises
    LabRefused or LabUnreachable.
    """
    after, is_first = 0, True
    while True:
        page = lab.get(f"traces/{trace}/events", after=after)
        if is_first:
            yield page["head"]
            is_first = False
        elif page["missed"]:
            yield {"event": "dropped", "count": page["missed"]}
        yield from page["events"]
        has_more, after = page["next"] > after, page["next"]
        if not has_more:
            if not following:
                return
            sleep(POLL_S)


def at_url(url: str) -> tuple[Lab, int]:
    """The lab of a URL such as `http://127.0.0.1:9644`, and the number of a trace: of `/v1/traces/2` the second, else
    the first that is written. Raises TraceError, LabRefused, LabUnreachable.
    """
    found = _TRACE.fullmatch(url)
    if found is None:
        raise TraceError(f"{url} is not the URL of a lab, such as http://127.0.0.1:9644 or {{that}}/v1/traces/1")
    lab = Lab(found["lab"])
    return lab, int(found["number"]) if found["number"] else _first(lab)


def _first(lab: Lab) -> int:
    traces = lab.get("traces")["traces"]
    if not traces:
        raise LabRefused(404, "the broker writes no trace: ottla lab call start_trace begins one")
    first: int = traces[0]["number"]
    return first
