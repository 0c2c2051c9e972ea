"""The pipe through which the kernel moves records from their file to the sockets of clients."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from ottla.broker.net import sending
from ottla.broker.net.sending import PIPE_BYTES, Moved, Pipe

pytestmark = pytest.mark.skipif(not hasattr(os, "splice"), reason="the system has no splice")
SIZE = 3 << 20
DATA = b"".join(number.to_bytes(4, "big") for number in range(SIZE // 4))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "log"
    path.write_bytes(DATA)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


class Line:
    """A socket that does not block, and its peer."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.settimeout(0.2)
        self.fd = self.ours.fileno()

    def received(self) -> bytes:
        """What is there."""
        parts = []
        with suppress(TimeoutError):
            while part := self.theirs.recv(1 << 20):
                parts.append(part)
        return b"".join(parts)

    def fill(self) -> bytes:
        """Writes until the socket is full; returns what was written."""
        sent = 0
        with suppress(BlockingIOError):
            while True:
                sent += self.ours.send(b"." * 4096)
        return b"." * sent

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


def test_the_head_the_records_and_the_tail_come_in_order(pipe: Pipe, file: int, line: Line) -> None:
    assert pipe.move(b"head", file, 5000, 70_000, b"tail", line.fd) == Moved(70_000, True, b"")
    assert line.received() == b"head" + DATA[5000:75_000] + b"tail"


def test_what_a_full_socket_does_not_take_is_given_back_and_nothing_stays_in_the_pipe(
    pipe: Pipe, file: int, line: Line, other: Line
) -> None:
    before = line.fill()
    moved = pipe.move(b"head", file, 100, 500_000, b"tail", line.fd)
    assert (moved.taken, moved.has_tail) == (500_000, True)
    assert len(moved.rest) > 0
    assert line.received() + bytes(moved.rest) == before + b"head" + DATA[100:500_100] + b"tail"
    pipe.move(b"mine", file, 0, 8, b"", other.fd)
    assert other.received() == b"mine" + DATA[:8]


def test_what_a_broken_socket_does_not_take_is_given_back(pipe: Pipe, file: int, line: Line, other: Line) -> None:
    line.theirs.close()
    assert pipe.move(b"head", file, 0, 40_000, b"", line.fd) == Moved(40_000, False, b"head" + DATA[:40_000])
    pipe.move(b"mine", file, 0, 8, b"", other.fd)
    assert other.received() == b"mine" + DATA[:8]


def test_no_more_is_taken_than_the_pipe_holds_and_then_no_tail(pipe: Pipe, file: int, line: Line) -> None:
    moved = pipe.move(b"head", file, 100, SIZE - 100, b"tail", line.fd)
    assert 0 < moved.taken < PIPE_BYTES
    assert not moved.has_tail
    assert line.received() + bytes(moved.rest) == b"head" + DATA[100 : 100 + moved.taken]


def test_of_a_file_that_has_ended_nothing_is_taken(pipe: Pipe, file: int, line: Line) -> None:
    assert pipe.move(b"head", file, SIZE, 100, b"tail", line.fd) == Moved(0, False, b"")
    assert line.received() == b"head"


def test_of_a_file_that_cannot_be_moved_nothing_is_taken(pipe: Pipe, line: Line, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)  # a directory
    assert pipe.move(b"head", descriptor, 0, 100, b"tail", line.fd) == Moved(0, False, b"")
    os.close(descriptor)
    assert line.received() == b"head"


def test_without_descriptors_nothing_is_sent(
    pipe: Pipe, file: int, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(flags: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", refuse)
    assert pipe.move(b"head", file, 0, 100, b"tail", line.fd) == Moved(0, False, b"head")
    monkeypatch.undo()
    assert pipe.move(b"head", file, 0, 100, b"tail", line.fd) == Moved(100, True, b"")


def test_a_pipe_that_is_small_is_not_used(pipe: Pipe, file: int, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, command: int, argument: int) -> int:
        raise PermissionError

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(sending, "fcntl", refuse)
    assert pipe.move(b"head", file, 0, 100, b"tail", line.fd) == Moved(0, False, b"head")
    assert os.listdir("/proc/self/fd") == before


def test_a_pipe_that_cannot_be_emptied_is_given_up(
    pipe: Pipe, file: int, line: Line, other: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, length: int) -> bytes:
        raise OSError(5, "Input/output error")

    line.fill()
    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(OSError, match="Input/output error"):
        pipe.move(b"head", file, 0, 500_000, b"", line.fd)
    monkeypatch.undo()
    assert pipe.move(b"mine", file, 0, 8, b"", other.fd) == Moved(8, False, b"")
    assert other.received() == b"mine" + DATA[:8]
