"""What is planted is found, wherever it is planted, and nothing else is."""

from __future__ import annotations

import gzip
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from crc32c import crc32c
from ottla.broker.transaction.markers import TransactionEnd
from ottla.pipeline import checks, evidence, jobs, near
from ottla.pipeline.directory import Bounds
from ottla.pipeline.jobs import Input, audit, audit_in_sql
from ottla.pipeline.jobs.transactions import spans
from ottla.pipeline.options import Source
from ottla.pipeline.source import Planner
from ottla.pipeline.views import VIEWS
from ottla.protocol import records
from ottla.protocol.compression import GZIP, LZ4
from ottla.protocol.records import CRC_START, HEADER_SIZE, Record, Template
from ottla.storage import checkpoints, layout

pytestmark = pytest.mark.slow
NAME = "00000000000000000000"
END = 12
EXPIRY_MS = 50
ABORTED = layout.TXN_INDEX_ENTRY.pack(0, 8, 6, 8, 9)


def batch(base: int, count: int, since_ms: int = 1000, **settings: Any) -> bytes:
    made = [Record(b"k", b"value %d" % (base + n), since_ms + base + n, base + n) for n in range(count)]
    return bytes(records.encode(made, Template(base_offset=base, leader_epoch=3, **settings)))


def marker(offset: int, committed: bool) -> bytes:
    data = bytearray(TransactionEnd(8, 0, 0, committed, 1).batch(1000 + offset).data)
    struct.pack_into(">q", data, 0, offset)
    struct.pack_into(">i", data, 12, 3)
    return bytes(data)


def whole() -> list[bytes]:
    """Two producers, one of them in a transaction that is aborted."""
    return [
        batch(0, 3, producer_id=7, producer_epoch=0, base_sequence=0),
        batch(3, 3, producer_id=7, producer_epoch=0, base_sequence=3, codec=LZ4),
        batch(6, 2, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True),
        marker(8, committed=False),
        batch(9, 3, producer_id=7, producer_epoch=0, base_sequence=6),
    ]


class Planted:
    """A data directory with a partition for each thing that is wrong."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.numbers: dict[str, int] = defaultdict(int)
        self.ends: dict[tuple[str, int], int] = {}
        self.cleaned: dict[tuple[str, int], int] = {}
        self.what: dict[tuple[str, int], str] = {}

    def partition(
        self, topic: str, what: str, batches: list[bytes] | None = None, data: bytes | None = None, end: int = END
    ) -> Path:
        """A partition with the log `data`, or `batches`; its indexes are those of the whole log."""
        number = self.numbers[topic]
        self.numbers[topic] += 1
        directory = self.root / f"{topic}-{number}"
        directory.mkdir()
        self.ends[topic, number], self.what[topic, number] = end, what
        (directory / f"{NAME}.log").write_bytes(
            b"".join(batches) if data is None and batches is not None else data or b"".join(whole())
        )
        sizes = [len(one) for one in whole()]
        entries = [(5, sizes[0]), (8, sum(sizes[:3]))]
        (directory / f"{NAME}.index").write_bytes(
            b"".join(layout.INDEX_ENTRY.pack(*one) for one in entries) + bytes(40)
        )
        (directory / f"{NAME}.timeindex").write_bytes(
            layout.TIME_INDEX_ENTRY.pack(1005, 5) + layout.TIME_INDEX_ENTRY.pack(1011, 11)
        )
        (directory / f"{NAME}.txnindex").write_bytes(ABORTED)
        (directory / layout.LEADER_EPOCHS).write_bytes(checkpoints.encode_epochs([(3, 0)]))
        return directory

    def without_indexes(self, topic: str, what: str, batches: list[bytes], end: int = END) -> Path:
        """The indexes say nothing that could be wrong."""
        directory = self.partition(topic, what, batches, end=end)
        for suffix in (layout.INDEX, layout.TIME_INDEX, layout.TXN_INDEX):
            (directory / f"{NAME}{suffix}").write_bytes(b"")
        return directory

    def write_checkpoints(self) -> None:
        (self.root / layout.HIGH_WATERMARKS).write_bytes(checkpoints.encode_offsets(self.ends))
        (self.root / layout.CLEANER_OFFSETS).write_bytes(checkpoints.encode_offsets(self.cleaned))

    def input(self, spark: Any, since_ms: int | None = None) -> Input:
        return Input(spark, str(self.root), since_ms, settings={audit.PRODUCER_EXPIRY: str(EXPIRY_MS)})

    def findings(self, spark: Any, since_ms: int | None = None) -> list[Any]:
        """The rows of an audit."""
        self.write_checkpoints()
        source = self.input(spark, since_ms)
        rows: list[Any] = audit.report(source).tables["findings"].collect()
        source.close()
        return rows

    def kinds(self, rows: list[Any]) -> dict[str, set[str]]:
        """The kinds of findings by what was planted."""
        found: dict[str, set[str]] = {what: set() for what in self.what.values()}
        for row in rows:
            found[self.what[row.topic, row.partition]].add(row.kind)
        return found


def broken_block() -> bytes:
    """A batch whose CRC is right and whose compressed records are not."""
    data = bytearray(batch(0, 3, codec=LZ4))
    data[HEADER_SIZE + 12] ^= 0xFF
    struct.pack_into(">I", data, CRC_START - 4, crc32c(bytes(data[CRC_START:])))
    return bytes(data)


def bomb() -> bytes:
    """A few hundred kilobytes that would be 257 MiB."""
    body = gzip.compress(bytes(257 << 20), 1)
    data = bytearray(batch(0, 1, codec=GZIP)[:HEADER_SIZE]) + body
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, CRC_START - 4, crc32c(bytes(data[CRC_START:])))
    return bytes(data)


def index_byte(at: int) -> Callable[[Path], None]:
    def flip(directory: Path) -> None:
        path = directory / f"{NAME}.index"
        data = bytearray(path.read_bytes())
        data[at] ^= 4
        path.write_bytes(bytes(data))

    return flip


def written(name: str, data: bytes = b"x") -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(data)

    return write


def removed(name: str) -> Callable[[Path], None]:
    def remove(directory: Path) -> None:
        (directory / name).unlink()

    return remove


PRODUCER = {"producer_id": 7, "producer_epoch": 1}
LOGS: dict[str, tuple[list[bytes], set[str]]] = {
    "a sequence left out": (
        [batch(0, 2, base_sequence=0, **PRODUCER), batch(2, 1, base_sequence=5, **PRODUCER)],
        {"sequence-gap"},
    ),
    "a sequence again": (
        [batch(0, 2, base_sequence=0, **PRODUCER), batch(2, 2, base_sequence=0, **PRODUCER)],
        {"sequence-duplicate"},
    ),
    "sequences that wrap": (
        [batch(0, 2, base_sequence=2**31 - 2, **PRODUCER), batch(2, 1, base_sequence=0, **PRODUCER)],
        set(),
    ),
    "an epoch that was over": (
        [batch(0, 1, base_sequence=0, **PRODUCER), batch(1, 1, producer_id=7, producer_epoch=0, base_sequence=0)],
        {"producer-epoch"},
    ),
    "a new epoch begins at 0": (
        [batch(0, 4, base_sequence=9, **PRODUCER), batch(4, 1, producer_id=7, producer_epoch=2, base_sequence=0)],
        set(),
    ),
    "a new epoch begins later": (
        [batch(0, 4, base_sequence=9, **PRODUCER), batch(4, 1, producer_id=7, producer_epoch=2, base_sequence=3)],
        {"sequence-gap"},
    ),
    "a producer that was forgotten": (
        [batch(0, 2, base_sequence=0, **PRODUCER), batch(2, 1, 1000 + EXPIRY_MS, base_sequence=5, **PRODUCER)],
        set(),
    ),
    "a producer that was not yet forgotten": (
        [batch(0, 2, base_sequence=0, **PRODUCER), batch(2, 1, 1000 + EXPIRY_MS - 1, base_sequence=5, **PRODUCER)],
        {"sequence-gap"},
    ),
    "a compressed block that is none": ([broken_block()], {"records"}),
    "a bomb": ([bomb()], {"records"}),
    "a log that ends in the middle of a batch": ([*whole()[:2], whole()[2][:-7]], {"bytes", "end"}),
    "zeros after the end": ([*whole()[:2], bytes(5000)], set()),
    "an abort that the index has not": (whole(), {"transaction-index"}),
    "a commit": ([*whole()[:3], marker(8, committed=True), whole()[4]], set()),
}
ENDS = {"a log that ends in the middle of a batch": 8, "zeros after the end": 6}
FILES: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "an index entry of another offset": (index_byte(3), {"index"}),
    "an index entry at another position": (index_byte(7), {"index"}),
    "the second entry": (index_byte(15), {"index"}),
    "a time that no batch has": (written(f"{NAME}.timeindex", layout.TIME_INDEX_ENTRY.pack(1004, 5)), {"index"}),
    "an abort that never was": (
        written(f"{NAME}.txnindex", ABORTED + layout.TXN_INDEX_ENTRY.pack(0, 9, 9, 11, 12)),
        {"transaction-index"},
    ),
    "an abort that began elsewhere": (
        written(f"{NAME}.txnindex", layout.TXN_INDEX_ENTRY.pack(0, 8, 3, 8, 9)),
        {"transaction-index"},
    ),
    "an index without a segment": (written("00000000000000000777.index"), {"orphan"}),
    "a file of somebody else": (written("notes"), {"orphan"}),
    "a cleaning that did not end": (written(f"{NAME}.log.swap"), {"interrupted"}),
    "a segment that waits to be deleted": (written("00000000000000000000.log.deleted"), set()),
    "no index": (removed(f"{NAME}.index"), {"index"}),
    "another leader epoch than the checkpoint's": (
        written(layout.LEADER_EPOCHS, checkpoints.encode_epochs([(2, 0)])),
        {"leader-epoch"},
    ),
}


def flip_bytes(planted: Planted) -> None:
    data = b"".join(whole())
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        planted.partition("flip", f"byte {at}", data=bytes(flipped))
    planted.partition("whole", "nothing")


def displace_batches(planted: Planted) -> None:
    """In the logs alone: no index, and for the end of a log its high watermark."""
    batches = whole()
    for i in range(len(batches)):
        planted.without_indexes("dropped", f"dropped {i}", batches[:i] + batches[i + 1 :])
        planted.without_indexes("doubled", f"doubled {i}", [*batches[: i + 1], *batches[i:]])
    for i in range(len(batches) - 1):
        planted.without_indexes(
            "swapped", f"swapped {i}", [*batches[:i], batches[i + 1], batches[i], *batches[i + 2 :]]
        )


def damage(planted: Planted) -> None:
    for what, (batches, _) in LOGS.items():
        planted.without_indexes("log", what, batches, end=ENDS.get(what, 0))
    for what, (change, _) in FILES.items():
        change(planted.partition("file", what))
    unreadable = planted.without_indexes("unreadable", "a segment that cannot be read", [], end=0) / f"{NAME}.log"
    unreadable.unlink()
    unreadable.mkdir()
    cleaned = [batch(0, 1, base_sequence=0, **PRODUCER), batch(7, 1, base_sequence=7, **PRODUCER)]
    planted.without_indexes("cleaned", "a gap that the cleaner made", cleaned, end=0)
    planted.without_indexes("cleaned", "a gap after what was cleaned", cleaned, end=0)
    planted.cleaned = {("cleaned", 0): 7, ("cleaned", 1): 4}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """All that can be wrong, in one directory."""
    planted = Planted(tmp_path_factory.mktemp("planted"))
    flip_bytes(planted)
    displace_batches(planted)
    damage(planted)
    return planted


@pytest.fixture(scope="module")
def findings(spark: Any, planted: Planted) -> list[Any]:
    """What one audit says of all that is planted."""
    return planted.findings(spark)


@pytest.fixture(scope="module")
def found(planted: Planted, findings: list[Any]) -> dict[str, set[str]]:
    """What it finds of all that is planted."""
    return planted.kinds(findings)


def test_sql_finds_the_same(spark: Any, planted: Planted, findings: list[Any]) -> None:
    """Every finding, with its place and its words."""
    source = planted.input(spark)
    views = {
        view: source.table(view, **options)
        for view, options in {
            "batches": {"verifyRecords": "compressed"},
            "partitions": {},
            "index": {"verifyIndex": "true"},
            "files": {},
        }.items()
    }
    in_sql = audit_in_sql.of_views(**views, internal=None, expiry_ms=EXPIRY_MS).collect()
    source.close()
    assert sorted(map(str, in_sql)) == sorted(map(str, findings))
    assert len(findings) > 800


def test_what_is_little_is_checked_without_the_source(
    spark: Any, planted: Planted, findings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "ITEMS_MAX", 1 << 20)
    monkeypatch.setattr(jobs, "register", not_called)
    source = planted.input(spark)
    source.near = True
    assert sorted(map(str, audit.report(source).tables["findings"].collect())) == sorted(map(str, findings))


def not_called(*_: Any) -> None:
    raise AssertionError("nothing is registered for what is little")


def test_every_flipped_byte_of_a_log_is_found(found: dict[str, set[str]]) -> None:
    flipped = {what: kinds for what, kinds in found.items() if what.startswith("byte ")}
    assert [what for what, kinds in flipped.items() if not kinds] == []
    assert len(flipped) == len(b"".join(whole())) > 400
    assert found["nothing"] == set()


def test_whole_batches_that_are_missing_doubled_or_elsewhere(found: dict[str, set[str]]) -> None:
    without_transaction = {"transaction-index"}  # its index is empty
    kinds = {
        what: found[what] - without_transaction
        for what in found
        if what.startswith(("dropped ", "doubled ", "swapped "))
    }
    assert kinds["dropped 0"] >= {"segment"}
    assert all(kinds[f"dropped {i}"] >= {"continuity"} for i in (1, 2, 3))
    assert kinds["dropped 4"] == {"end"}
    assert all("order" in kinds[f"doubled {i}"] for i in range(5))
    assert all({"order", "continuity"} <= kinds[f"swapped {i}"] | {"continuity"} for i in range(4))
    assert {what for what, one in kinds.items() if not one} == set()
    assert len(kinds) == 5 + 5 + 4


def test_what_else_can_be_wrong(found: dict[str, set[str]]) -> None:
    wanted = {what: kinds for what, (_, kinds) in {**LOGS, **FILES}.items()}
    wanted |= {"a gap that the cleaner made": set(), "a gap after what was cleaned": {"continuity"}}
    wanted["a segment that cannot be read"] = {"bytes"}
    assert {what: found[what] for what in wanted} == wanted


def read_in_pieces(root: Path, batches_per_row: int, rows_at_once: int, patch: pytest.MonkeyPatch) -> list[Any]:
    """The result of the checks without Spark, which carries the rows of `evidence` in order."""
    patch.setattr(evidence, "BATCHES_PER_ROW", batches_per_row)
    patch.setattr(checks, "BATCHES_PER_ROW", batches_per_row)
    source = Source.of({"path": str(root), "view": "evidence", "verifyRecords": "compressed"})
    planner = Planner(source)
    schema = pa.schema([(one.name, KINDS[one.kind]) for one in VIEWS["evidence"]])
    read = [
        batch
        for task in planner.tasks((*one, Bounds()) for one in planner.partitions())
        for item in task.items
        for batch in evidence.rows(planner.directory, item, schema, source.reading)
    ]
    order: list[tuple[str, Any]] = [(name, "ascending") for name in ("topic", "partition", "segment", "position")]
    rows = pa.Table.from_batches(read).sort_by(order)
    # Spark has nulls first; these belong to no segment
    rows = pa.concat_tables([rows.filter(pc.field("segment").is_null()), rows.filter(pc.field("segment").is_valid())])
    rows = rows.combine_chunks()
    told = checks.checked(rows.to_batches(max_chunksize=rows_at_once), expiry_ms=EXPIRY_MS)
    return sorted((row for batch in told for row in batch.to_pylist()), key=repr)


KINDS = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}


def test_findings_do_not_depend_on_where_a_log_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Planted(tmp_path)
    displace_batches(planted)
    damage(planted)
    planted.write_checkpoints()
    whole_logs = read_in_pieces(tmp_path, 256, 1 << 20, monkeypatch)
    assert whole_logs == read_in_pieces(tmp_path, 1, 1, monkeypatch) == read_in_pieces(tmp_path, 2, 3, monkeypatch)
    assert {row["kind"] for row in whole_logs} >= {"order", "continuity", "sequence-gap", "transaction-index"}
    assert [row for row in whole_logs if row["open"]], "some logs end within a transaction"


def test_since_leaves_out_segments_that_are_older(spark: Any, tmp_path: Path) -> None:
    """By their last records, which are of 1011 and 1010; an index is compared with all of its segment."""
    planted = Planted(tmp_path)
    planted.partition("log", "whole", whole())
    planted.without_indexes("log", "doubled", [*whole(), whole()[4]])
    short = [*whole()[:4], batch(9, 2, producer_id=7, producer_epoch=0, base_sequence=6)]
    planted.without_indexes("log", "doubled and older", [*short, short[4]], end=11)
    found = planted.kinds(planted.findings(spark, since_ms=1011))
    assert found == {
        "whole": set(),
        "doubled": {"order", "sequence-duplicate", "transaction-index"},
        "doubled and older": set(),
    }


def test_a_transaction_that_no_producer_will_end(spark: Any, archive: Path, tmp_path: Path) -> None:
    """The partition with an open transaction, in a directory whose coordinator knows nothing of it."""
    shutil.copytree(archive / "story", tmp_path / "data")
    for log in (tmp_path / "data").glob("__transaction_state-*/*"):
        if log.suffix in (".log", ".index", ".timeindex"):
            log.write_bytes(b"")
    (tmp_path / "data" / layout.HIGH_WATERMARKS).unlink()
    source = Input(spark, str(tmp_path / "data"))
    found = spans(source.read("batches", topic="exact"))
    rows = audit_in_sql.in_transactions(found, source.read("internal", topic="__transaction_state")).collect()
    assert [(row.topic, row.partition, row.offset, row.kind) for row in rows] == [("exact", 0, 66, "transaction-hangs")]
    assert rows[0].detail.endswith("no transaction coordinator knows it")
