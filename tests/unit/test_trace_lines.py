"""Files of traces as bytes: which belong together, compressed ones, and those that end too early."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from ottla.verdict import trace_lines
from ottla.verdict.trace_lines import Blocks, TraceError, event_of, trace_of, traces_of

from ottla.traces.reading import read

HEAD = b'{"event":"trace","format":1}'
COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


def noted(*numbers: int) -> bytes:
    return b"".join(b'{"event":"closed","connection":%d}\n' % one for one in numbers)


def numbers(path: Path) -> list[object]:
    return [one.get("connection", one["event"]) for one in read(path)]


def names(found: dict[str, list[trace_lines.Numbered]]) -> dict[str, list[str]]:
    return {base: [one.name for one in files] for base, files in found.items()}


def test_files_of_a_directory_belong_to_traces_by_their_names() -> None:
    assert names(traces_of(["b.jsonl", "a.jsonl", "a.jsonl.2.gz", "a.jsonl.1", "a.jsonl.10", "a.jsonl.bak"])) == {
        "a.jsonl": ["a.jsonl.10", "a.jsonl.2.gz", "a.jsonl.1", "a.jsonl"],
        "b.jsonl": ["b.jsonl"],
        "a.jsonl.bak": ["a.jsonl.bak"],
    }


def test_a_file_that_is_there_twice_is_read_once() -> None:
    assert names(traces_of(["t.gz", "t", "t.1.zst", "t.1"])) == {"t": ["t.1", "t"]}


def test_a_number_without_the_file_that_is_written_is_part_of_a_name() -> None:
    assert names(traces_of(["run.2025", "run.2026.gz"])) == {"run.2025": ["run.2025"], "run.2026": ["run.2026.gz"]}


def test_a_full_file_alone_is_a_trace_too() -> None:
    assert [one.name for one in trace_of(["t.1", "t.2", "t"], "t.1")] == ["t.1"]
    assert [one.name for one in trace_of(["t.1", "t.2"], "t")] == ["t.2", "t.1", "t"]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_are_read(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    (tmp_path / f"t.jsonl.1{suffix}").write_bytes(compress(HEAD + b"\n" + noted(1)))
    (tmp_path / f"t.jsonl{suffix}").write_bytes(compress(HEAD + b"\n" + noted(2)))
    assert numbers(tmp_path / f"t.jsonl{suffix}") == ["trace", 1, "trace", 2]


def test_what_a_compressed_file_that_ends_too_early_has_is_read(tmp_path: Path) -> None:
    whole = gzip.compress(HEAD + b"\n" + noted(*range(5000)), 0)
    (tmp_path / "t.gz").write_bytes(whole[: len(whole) // 2])
    found = numbers(tmp_path / "t.gz")
    assert found[1:] == list(range(len(found) - 1))
    assert 1000 < len(found) < 5000


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_is_not_compressed_as_its_name_says_is_no_trace(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.jsonl{suffix}"
    path.write_bytes(HEAD + b"\n" + noted(1))
    with pytest.raises(TraceError, match=f"t.jsonl{suffix}: cannot be decompressed"):
        numbers(path)


def test_a_full_file_that_was_cut_off_lacks_events(tmp_path: Path) -> None:
    """Unlike the last file of a trace, which a broker may be writing."""
    (tmp_path / "t.1").write_bytes(HEAD + b"\n" + noted(1) + b'{"event":"clo')
    (tmp_path / "t").write_bytes(HEAD + b"\n" + noted(2) + b'{"event":"clo')
    assert numbers(tmp_path / "t") == ["trace", 1, "damaged", "trace", 2]


def test_lines_are_found_across_blocks_and_a_line_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_lines, "BLOCK_BYTES", 7)
    monkeypatch.setattr(trace_lines, "LINE_BYTES_MAX", 40)
    lines = [b"", b"x" * 30, b"y" * 200, b"last"]
    blocks = Blocks("t", BytesIO(b"\n".join(lines) + b"\nrest"))
    found = [line for block in blocks for line in block]
    assert [found[0], found[1], found[3]] == [b"", b"x" * 30, b"last"]
    assert 0 < len(found[2]) <= 48
    assert blocks.is_cut


def test_nested_json_without_end_is_damaged() -> None:
    assert event_of(b"[" * 100_000, "t", 1)["event"] == "damaged"
