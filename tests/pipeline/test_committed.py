"""What of a partition is committed, whatever its indexes have of it already; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from ottla.pipeline import directory as directories
from ottla.pipeline.committed import committed
from ottla.pipeline.directory import Bounds, Directory
from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage.layout import DELETED
from ottla.storage.producers import Producers

from .logs import Written, offsets, put_away


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def marker(written: Written, producer_id: int, commit: bool) -> None:
    record = Record(b"\0\0\0" + (b"\1" if commit else b"\0"), bytes(6), 5, written.offset)
    with written.log.open("ab") as file:
        file.write(
            records.encode(
                [record],
                Template(base_offset=written.offset, producer_id=producer_id, transactional=True, control=True),
            )
        )
    written.offset += 1


def note(written: Written, *values: int) -> None:
    """Writes an entry of the transaction index: producer, first offset, last offset, last stable offset."""
    with written.log.with_suffix(".txnindex").open("ab") as file:
        file.write(b"\0\0" + b"".join(n.to_bytes(8, "big") for n in values))


@pytest.mark.parametrize("is_noted", [True, False])
def test_what_is_committed(written: Written, is_noted: bool) -> None:
    """Producer 1 aborts 0..2 and commits later; 2 has a transaction that is open at the end. A broker writes the marker
    of an abort before its entry in the index.
    """
    written.batch(producer_id=1, transactional=True)
    written.batch(producer_id=2, transactional=True)
    marker(written, 1, commit=False)
    written.batch(producer_id=1, transactional=True)
    marker(written, 1, commit=True)
    marker(written, 2, commit=True)
    written.batch(producer_id=2, transactional=True)
    written.batch()
    if is_noted:
        note(written, 1, 0, 6, 3)
    directory = Directory(str(written.root))
    assert directory.end_offset("t", 0) == 18
    assert committed(directory, "t", 0).last_stable_offset == 12
    assert offsets(written, Bounds(last_offset=11), committed=True) == [3, 4, 5, 7, 8, 9]
    assert offsets(written, committed=True) == [3, 4, 5, 7, 8, 9, *range(12, 18)]


def test_a_transaction_that_began_before_the_snapshot_of_producers(written: Written) -> None:
    """The index has those that ended before it."""
    written.batch(producer_id=2, transactional=True)
    marker(written, 2, commit=False)
    note(written, 2, 0, 3, 0)
    written.batch(producer_id=1, transactional=True)
    producers = Producers("t-0")
    *_, last = records.batches(written.log.read_bytes())
    producers.update(last.header, last.header.base_offset)
    (written.directory / f"{written.offset:020d}.snapshot").write_bytes(producers.snapshot())
    written.roll()
    marker(written, 1, commit=False)
    written.batch()
    assert committed(Directory(str(written.root)), "t", 0).last_stable_offset == 11
    assert offsets(written, committed=True) == [8, 9, 10]


@pytest.mark.parametrize("suffix", [DELETED, f".1{DELETED}"])
def test_the_transaction_index_of_a_segment_that_is_being_deleted(written: Written, suffix: str) -> None:
    """A task may read its records by the new name of the file: none that was aborted."""
    written.batch(producer_id=1, transactional=True)
    marker(written, 1, commit=False)
    note(written, 1, 0, 3, 0)
    first = written.log
    written.roll()
    written.batch()
    directory = Directory(str(written.root))
    segments = directory.segments("t", 0)
    put_away(first, suffix)
    assert directory.aborted(segments)["last"].tolist() == [3]


def test_the_transaction_index_of_a_segment_that_was_compacted(written: Written) -> None:
    """The index of before waits for its deletion with the log of before, and says nothing of this one, unless this
    one's is not in its place yet.
    """
    written.batch(producer_id=1, transactional=True)
    marker(written, 1, commit=False)
    note(written, 1, 0, 3, 0)
    directory, log, whole = Directory(str(written.root)), written.log, written.log.read_bytes()
    put_away(log, DELETED)
    log.write_bytes(whole)
    assert directory.aborted(directory.segments("t", 0))["last"].tolist() == []
    note(written, 1, 0, 3, 0)
    log.with_suffix(".txnindex").rename(log.with_suffix(".txnindex.swap"))
    assert directory.aborted(directory.segments("t", 0))["last"].tolist() == [3]


def test_a_transaction_index_that_cannot_be_read_does_not_commit_what_was_aborted(written: Written) -> None:
    written.batch(producer_id=1, transactional=True)
    marker(written, 1, commit=False)
    written.log.with_suffix(".txnindex").mkdir()
    with pytest.raises(IsADirectoryError):
        offsets(written, committed=True)


def test_a_log_is_looked_at_in_windows(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches may be smaller or larger than one; positions count from the beginning of a window."""
    for n in range(6):
        written.batch(1 + 20 * (n % 2), producer_id=n, transactional=True)
    for n in range(0, 6, 2):
        marker(written, n, commit=False)
    written.log.with_suffix(".index").unlink()
    whole = committed(Directory(str(written.root)), "t", 0)
    assert whole.last_stable_offset == 1, "the one of producer 1 is open"
    assert whole.aborted["first"].tolist() == [0, 22, 44]
    monkeypatch.setattr(directories, "WINDOW_BYTES", 200)
    directory = Directory(str(written.root))
    assert directory.end_offset("t", 0) == written.offset
    assert committed(directory, "t", 0).aborted.tolist() == whole.aborted.tolist()
    size = written.log.stat().st_size
    (segment,) = directory.segments("t", 0)
    assert len(list(directory.windows(segment, 0, size))) > 3
    written.log.write_bytes(written.log.read_bytes()[:-1])
    assert directory.end_offset("t", 0) == written.offset - 1
