"""What every call of the file layer on every kind of file leads to when it fails."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from ottla.broker.replica.directories import DirectoryError
from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message
from ..support.failing_files import FailingFiles
from ..support.failing_world import (
    SETTINGS,
    abortion,
    ask,
    create,
    produce,
    read,
)
from ..support.seeds import slow
from ..support.world import World

pytestmark = pytest.mark.long


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


# the operations on each kind of file: while a broker lives and stops, at a start after a crash, and after a clean stop
MATRIX = {
    "-delete": "remove_tree",
    ".checkpoint": "open rename sync write",
    ".index": "exists open remove rename sync write",
    ".index.deleted": "remove",
    ".log": "exists open read remove rename sync write",
    ".log.deleted": "exists remove",
    ".snapshot": "exists open remove rename sync write",
    ".snapshot.deleted": "remove",
    ".timeindex": "exists open remove rename sync write",
    ".timeindex.deleted": "remove",
    ".txnindex": "exists open sync write",
    ".txnindex.deleted": "remove",
    "/.kafka_cleanshutdown": "open rename sync write",
    "/__cluster_metadata-0": "names sync",
    "/cleaner-offset-checkpoint": "open rename sync write",
    "/data": "sync",
    "/flushed-offset": "open sync write",
    "/leader-epoch-checkpoint": "open remove rename sync write",
    "/log-start-offset-checkpoint": "open rename sync write",
    "/partition.metadata": "open remove sync write",
    "/recovery-point-offset-checkpoint": "open rename sync write",
    "/replication-offset-checkpoint": "open rename sync write",
    "/t-0": "exists make sync",
    "/t2-0": "exists make rename sync",
}


AT_START = {
    ".checkpoint": "open read remove rename sync write",
    ".index": "exists open rename sync write",
    ".log": "exists modified open read remove rename size sync write",
    ".log.deleted": "exists",
    ".snapshot": "exists open remove rename write",
    ".timeindex": "exists open rename sync write",
    ".txnindex": "exists open write",
    "/.kafka_cleanshutdown": "exists",
    "/.lock": "lock open",
    "/__cluster_metadata-0": "exists names sync",
    "/cleaner-offset-checkpoint": "read",
    "/data": "exists make names sync",
    "/flushed-offset": "exists open read rename sync write",
    "/leader-epoch-checkpoint": "open read rename sync write",
    "/log-start-offset-checkpoint": "read",
    "/meta.properties": "exists read",
    "/ottla.json": "exists read",
    "/partition.metadata": "open read sync",
    "/quorum-state": "open read rename sync write",
    "/recovery-point-offset-checkpoint": "read",
    "/replica-ends.json": "read",
    "/replication-offset-checkpoint": "read",
    "/t-0": "exists names sync",
}


AT_CLEAN_START = {
    ".checkpoint": "open read remove rename sync write",
    ".index": "exists open read rename sync write",
    ".log": "exists modified open read rename size sync write",
    ".log.deleted": "exists",
    ".snapshot": "exists open read remove rename write",
    ".timeindex": "exists open read rename sync write",
    ".txnindex": "exists",
    "/.kafka_cleanshutdown": "exists remove",
    "/.lock": "lock open",
    "/__cluster_metadata-0": "exists names sync",
    "/cleaner-offset-checkpoint": "read",
    "/data": "exists make names sync",
    "/flushed-offset": "exists open read rename sync write",
    "/leader-epoch-checkpoint": "open read rename sync write",
    "/log-start-offset-checkpoint": "read",
    "/meta.properties": "exists read",
    "/ottla.json": "exists read",
    "/partition.metadata": "open read sync",
    "/quorum-state": "open read rename sync write",
    "/recovery-point-offset-checkpoint": "read",
    "/replica-ends.json": "read",
    "/replication-offset-checkpoint": "read",
    "/t-0": "exists names",
}


def kind_of(path: str) -> str:
    """The end of a path by which a fault finds all files of its kind."""
    name = path.removesuffix(".tmp").rpartition("/")[2]
    if name[:20].isdigit():
        return name[name.index(".") :]
    if name.endswith("-delete"):
        return "-delete"
    return "/t-0" if name in ("kept-0", "t1-0", "trimmed-0", "aborted-0") else f"/{name}"


def called(files: FailingFiles) -> dict[str, str]:
    """The operations on each kind of file that have been called, as in the matrix."""
    found: dict[str, set[str]] = {}
    for operation, path in files.met:
        found.setdefault(kind_of(path), set()).add(operation)
    return {kind: " ".join(sorted(found[kind])) for kind in sorted(found)}


def cases(matrix: dict[str, str], *more: Any) -> list[tuple[Any, ...]]:
    """Every operation on every kind of file."""
    return [(kind, operation, *more) for kind, operations in matrix.items() for operation in operations.split()]


def sampled(cases: list[tuple[Any, ...]]) -> list[Any]:
    """The cases, all but every fourth of them marked `slow`."""
    return [case for n, one in enumerate(cases) for case in ([one] if n % 4 == 0 else slow([one]))]


def live(world: World, told: dict[str, list[bytes]], pass_ms: int = 130_000) -> None:
    """Some of everything that touches files; what was acknowledged is noted."""
    for number in range(3):
        name = f"t{number}" if number else "t"
        if create(world, name) != 0:
            continue
        told[name] = []
        for sequence in range(3):
            value = b"%s %d" % (name.encode(), sequence)
            if produce(world, name, value, producer_id=1, producer_epoch=0, base_sequence=sequence) == 0:
                told[name].append(value)
            log = world.broker.partitions.by_name[name, 0].log
            if log is not None and sequence == 1:
                ask(world, "DeleteRecords", 1, deletion(name, 0))
                world.broker.turn.event(partial(log.roll, world.schedule.now_ms()))
        ask(world, "Fetch", 11, fetch_message(name, 0))
    if create(world, "trimmed") == 0:
        for value in (b"a", b"b"):
            produce(world, "trimmed", value)
            log = world.broker.partitions.by_name["trimmed", 0].log
            if log is not None:
                world.broker.turn.event(partial(log.roll, world.schedule.now_ms()))
        ask(world, "DeleteRecords", 1, deletion("trimmed", 2))
    if create(world, "aborted") == 0:
        message = produce_message(
            "aborted", batch(b"x", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
        )
        message.transactional_id = "x"
        ask(world, "Produce", 9, message)
        ask(world, "WriteTxnMarkers", 1, abortion("aborted", 2))
        ask(world, "Fetch", 11, fetch_message("aborted", 0, isolation=1))
    world.pass_ms(pass_ms)
    ask(world, "DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t2"], timeout_ms=10_000))
    told.pop("t2", None)
    world.pass_ms(pass_ms)


def kept(files: FailingFiles, told: dict[str, list[bytes]]) -> World:
    """A broker with a topic."""
    world = World(files, **SETTINGS)
    assert create(world, "kept") == 0
    assert produce(world, "kept", b"kept") == 0
    told["kept"] = [b"kept"]
    files.met.clear()
    return world


def test_the_matrices_are_complete(files: FailingFiles) -> None:
    """They hold every call on a file or directory that a life and a start make."""
    world = kept(files, {})
    live(world, {})
    assert world.broker.stop() is None
    assert called(files) == MATRIX
    for clean, expected in ((False, AT_START), (True, AT_CLEAN_START)):
        again = FailingFiles()
        world = World(again, **SETTINGS)
        live(world, {}, 0)
        if clean:
            assert world.broker.stop() is None
        again.met.clear()
        World(again, 1, **SETTINGS).pass_ms(1000)
        assert called(again) == expected


def deletion(name: str, offset: int) -> Any:
    r = m.DeleteRecordsRequest
    return r(
        topics=[
            r.DeleteRecordsTopic(name=name, partitions=[r.DeleteRecordsPartition(partition_index=0, offset=offset)])
        ],
        timeout_ms=1000,
    )


@pytest.mark.parametrize(("kind", "operation"), sampled(cases(MATRIX)))
def test_a_disk_that_fails_takes_its_directory_offline_and_loses_nothing(
    files: FailingFiles, kind: str, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every request is answered, nothing hangs, the stop has a reason, and what was acknowledged is there when the disk
    is well again.
    """
    told: dict[str, list[bytes]] = {}
    world = kept(files, told)
    fault = files.fail(operation, kind)
    live(world, told)
    reason = world.broker.stop()
    assert not fault.hits or world.fatal or reason, "a disk failed, and nothing was said of it"
    assert "Traceback" not in caplog.text
    assert world.broker.metrics.bugs == 0
    files.faults.clear()
    again = World(files, 1, **SETTINGS)
    again.pass_ms(1000)
    for name, expected in told.items():
        assert [value for value in read(again, name) if value in expected] == expected, name
    assert not again.fatal


Left = tuple[FailingFiles, dict[str, list[bytes]]]


@pytest.fixture(scope="module")
def left() -> dict[bool, Left]:
    """What a broker that crashed left, and one that stopped: the files, and what was acknowledged."""
    found: dict[bool, Left] = {}
    for clean in (False, True):
        files, told = found[clean] = FailingFiles(), {}
        world = World(files, **SETTINGS)
        live(world, told, 0)
        if clean:
            assert world.broker.stop() is None
        files.met.clear()
        files.synced.clear()
    return found


@pytest.mark.parametrize(
    ("kind", "operation", "clean"), sampled(cases(AT_START, False)) + slow(cases(AT_CLEAN_START, True))
)
def test_a_disk_that_fails_at_start_refuses_it_with_a_reason(
    left: dict[bool, Left], kind: str, operation: str, clean: bool
) -> None:
    """An OSError or a DirectoryError is exit 5 with a sentence; a partition's own file takes that partition offline, or
    the directory.
    """
    files, told = deepcopy(left[clean])
    fault = files.fail(operation, kind)
    try:
        again = World(files, 1, **SETTINGS)
    except (OSError, DirectoryError):
        assert fault.hits
    else:
        again.pass_ms(1000)
        codes = {produce(again, name, b"more") for name in told}
        assert codes == {0} or again.fatal, codes
        assert again.broker.metrics.bugs == 0
        reason = again.broker.stop()
        assert not fault.hits or again.fatal or reason, "a disk failed, and nothing was said of it"
    files.faults.clear()
    well = World(files, 2, **SETTINGS)
    well.pass_ms(1000)
    for name, expected in told.items():
        assert read(well, name)[: len(expected)] == expected, name
