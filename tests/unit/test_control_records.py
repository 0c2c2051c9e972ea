"""Control records have one reader and one writer, and what reads a log takes only markers for markers."""

from __future__ import annotations

import pytest
from ottla.broker.shards.loader import live_entries, log_entries
from ottla.protocol import codec, control, messages, records
from ottla.protocol.control import ControlType, Marker
from ottla.protocol.records import Record, Template
from ottla.storage.files import HandlePool
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.memory_files import MemFiles


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_read_as_it_was_written(committed: bool) -> None:
    marker = Marker(committed, 70_000)
    record = control.marker_record(marker, 5)
    assert control.marker_of(record) == marker
    assert codec.parse("ControlRecordTypeSchema", 0, record.key or b"", 2).type == committed
    assert codec.parse("EndTxnMarker", 0, record.value or b"", 2).coordinator_epoch == 70_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\1"),
        (b"", b"\0\0\0\0\0\1"),
        (b"\0\0\0", b"\0\0\0\0\0\1"),
        (b"\0\0\0\2", b"\0\0\0\0\0\1"),
        (b"\0\0\x7f\xff", b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
    ],
)
def test_what_is_not_whole_or_of_another_type_is_no_marker(key: bytes | None, value: bytes | None) -> None:
    assert control.marker_of(Record(key, value)) is None


def test_types_are_known_by_their_keys() -> None:
    assert [control.control_type(b"\0\0\0" + bytes((n,))) for n in range(8)] == [*ControlType, None]


def test_a_loader_takes_no_other_control_record_for_the_end_of_a_transaction() -> None:
    files = MemFiles()
    files.make_directory("/d")
    log = open_now(HandlePool(files, 10), "/d/__consumer_offsets-0", LogSettings(), 0)
    template = Template(producer_id=1, producer_epoch=0, transactional=True, control=True)
    other = Record(b"\0\0\0\2", bytes(codec.build("LeaderChangeMessage", 0, messages.LeaderChangeMessage())), 1)
    for record in (other, control.marker_record(Marker(True, 3), 1), control.marker_record(Marker(False, 4), 1)):
        data = records.encode([record], template)
        log.append(data, list(records.batches(data)), 0, 1)
    expected = [(1, Marker(True, 3)), (2, Marker(False, 4))]
    assert [(e.offset, e.marker) for e in log_entries(log)] == expected
    assert [(e.offset, e.marker) for e in live_entries(log) if e is not None] == expected
